"""The noun `lab.recordings`: verdicts and labels that others recorded, as runs of a study."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import yaml

from judge_gym.axes import FOREIGN, RECORDED, find_knob
from judge_gym.axes.presentation import LETTERS
from judge_gym.errors import ConflictError, DesignError, MissingFileError, NotFoundError
from judge_gym.lab.imports import load_analysis
from judge_gym.lab.sample_frames import annotations
from judge_gym.records import (
    Display,
    Draw,
    Evidence,
    Message,
    NominalRubric,
    OrdinalRubric,
    Pool,
    Request,
    Rubric,
    RubricStage,
    Status,
    digest,
    storable,
)
from judge_gym.records.calls import Role
from judge_gym.records.evidence import render_fields
from judge_gym.sources.benchmarks import PAIR_OPTIONS
from judge_gym.store import Place, RecordedVerdict, Run, Store, Targets
from judge_gym.studies import Experiment, Task, experiment_tag, resolve_design, with_rubric

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.recorded import Recording
    from judge_gym.recorded.importers import Importer

STUDY = re.compile(r"[\w.-]+")
MOST_SETUPS = 1_000
"""The most judges and settings of a recording; a column with more levels is no setting."""
ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "model": "assistant",
}
"""The roles of recorded messages; every other one is that of a user."""


class ImportedStudy(NamedTuple):
    """What an import read, and how much of it is new to the lab."""

    study: str
    format: str
    sources: tuple[str, ...]
    judges: tuple[str, ...]
    experiments: int
    items: int
    verdicts: int
    labels: int
    raters: tuple[str, ...]
    new: Mapping[str, int]
    """How many experiments, verdicts and labels the lab did not have."""
    notes: tuple[str, ...]
    file: str
    """A study file by which other judges are asked about the same items; empty without texts."""


@dataclass(frozen=True)
class _Part:
    """A recording, made ready to be stored."""

    recording: "Recording"
    task: Task
    experiments: Sequence[Experiment]
    verdicts: "pd.DataFrame"
    """Sorted by `experiment`, its number; `place` is the number of the item, `stage` of the label
    (0 without a score)."""
    labels: "pd.DataFrame"
    stages: Sequence[str]
    """The names of the stages, by which people's labels are stored."""

    @property
    def readable(self) -> bool:
        """Whether every item has a text, so that other judges can be asked."""
        items = self.recording.items
        return bool(((items["text"] != "") | (items["response_a"] != "")).all())


class Recordings:
    """Imports verdicts and labels that others recorded, without asking or paying anyone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def note(self, study: str) -> str:
        """Says which judges of a study others recorded, and where, or nothing if none were."""
        rows = self._store.experiments.rows(study=study)
        if not any(RECORDED in row["design"] for row in rows):
            return ""
        load_analysis()
        from judge_gym.analysis.report.page import recorded_note

        return recorded_note(annotations(rows))

    def formats(self) -> Mapping[str, str]:
        """Describes what each importer reads, by the name of its format."""
        load_analysis()
        from judge_gym.recorded.importers import importers

        return {name: reader.ABOUT for name, reader in importers().items()}

    def import_file(self, format: str, path: Path, study: str) -> ImportedStudy:
        """Imports a file or folder as a study, all of it or nothing.

        Args:
            format: the name of an importer, or `auto` for the one that fits.
            path: the file or folder.
            study: the study to which its experiments belong.
        """
        return self.add(self.read(format, path), study)

    def read(self, format: str, path: Path) -> "Sequence[Recording]":
        """Reads a file or folder, and stores nothing."""
        return self._importer(format, path)[1].read(path)

    def format_of(self, path: Path) -> str:
        """Returns the name of the format that fits a file or folder."""
        return self._importer("auto", path)[0]

    def _importer(self, format: str, path: Path) -> "tuple[str, Importer]":
        load_analysis()
        from judge_gym.recorded.importers import find_importer

        if not path.exists():
            raise MissingFileError(f"there is no file {path}")
        return find_importer(format, path)

    def add(self, recordings: "Sequence[Recording]", study: str) -> ImportedStudy:
        """Stores recordings as finished runs of a study, all of them or none.

        What was stored before is left as it is: the same recordings again add nothing.
        """
        load_analysis()
        if not STUDY.fullmatch(study):
            raise DesignError(
                f"a study's name has letters, digits, '.', '_' and '-', not {study!r}"
            )
        if not recordings:
            raise DesignError("nothing was judged there: it has no verdict of a judge")
        several = len(recordings) > 1
        parts = [
            _part(recording, study, partial(self._pool_name, study, recording, several=several))
            for recording in recordings
        ]
        tags = Counter(each.tag for part in parts for each in part.experiments)
        if twice := [tag for tag, count in tags.items() if count > 1]:
            raise DesignError(f"two settings would have the name {twice[0]!r}")
        text = _study_file(study, parts)
        new: Counter[str] = Counter()
        with self._store.database.together():
            for part in parts:
                new.update(self._save(part, study))
            if not self._store.studies.is_saved(study):
                self._store.studies.save(study, {}, text)
        return ImportedStudy(
            study=study,
            format=parts[0].recording.format,
            sources=tuple(dict.fromkeys(part.recording.source for part in parts)),
            judges=tuple(dict.fromkeys(name for part in parts for name in _judges(part))),
            experiments=sum(len(part.experiments) for part in parts),
            items=len({item.id or item.hash for part in parts for item in part.task.pool.items}),
            verdicts=sum(len(part.verdicts) for part in parts),
            labels=sum(len(part.labels) for part in parts),
            raters=tuple(dict.fromkeys(name for part in parts for name in part.labels["rater"])),
            new={name: new[name] for name in ("experiments", "verdicts", "labels")},
            notes=tuple(dict.fromkeys(note for part in parts for note in _notes(part))),
            file=text if all(part.readable for part in parts) else "",
        )

    def _save(self, part: _Part, study: str) -> dict[str, int]:
        """Stores a recording, and returns how much of it is new."""
        store, recording = self._store, part.recording
        pool = store.evidence.save_pool(part.task.pool)
        store.evidence.add_ids(pool.items)
        assert part.task.rubric is not None, "a recording has a scale"
        rubric = store.rubrics.save_given(part.task.rubric)
        task = replace(part.task, pool=pool, rubric=rubric)
        self._refuse_changed(part, study, pool)
        store.evidence.name_pool(task.pool_name, pool)
        new: Counter[str] = Counter()
        rows = dict(iter(part.verdicts.groupby("experiment", sort=True)))
        for number, experiment in enumerate(part.experiments):
            saved = replace(experiment, task=task)
            store.experiments.save(saved, study)
            repeats = int(rows[number]["repeat"].max()) + 1
            targets = Targets(repeats, (), probe=False, tolerance=1.0)
            series = str(experiment.seed)
            run = store.runs.save(saved, study, series, targets, makers=(None, None))
            store.runs.link_rubric(run, rubric.id, False)
            stored = store.recorded.of_run(run)
            verdicts = _verdicts(part, saved, rows[number])
            if stored:
                self._refuse_different(part, study, run, stored, verdicts)
                continue
            store.recorded.save(run, rubric.id, verdicts)
            mark = f"Recorded {_level(recording)}, not asked by this lab"
            store.events.record([run.id], "ended", mark)
            new.update(experiments=1, verdicts=len(rows[number]))
        labels = [
            {
                "evidence_id": pool.items[index].id,
                "study": study,
                "concept": recording.question,
                "rater": rater,
                "stage": part.stages[stage - 1],
            }
            for index, rater, stage in zip(
                *(part.labels[name].tolist() for name in ("place", "rater", "stage")), strict=True
            )
        ]
        try:
            new["labels"] = store.labels.save(labels, replace=False)["new"]
        except ConflictError as error:
            raise ConflictError(
                f"{recording.source}: {error.message.partition(';')[0]}; nothing was imported"
            ) from None
        return new

    def _pool_name(self, study: str, recording: "Recording", pool: Pool, *, several: bool) -> str:
        """Names a pool after the study, unless another pool has that name."""
        slug = re.sub(r"[^\w.-]+", "-", recording.question).strip("-")
        name = f"{study}-{slug}" if several else study
        try:
            frozen = self._store.evidence.find_named_pool(name)
        except NotFoundError:
            return name
        contents = [(item.hash, item.truth) for item in frozen.items]
        if contents == [(item.hash, item.truth) for item in pool.items]:
            return name
        return f"{name}-{digest([pool.hash, [item.truth for item in pool.items]])[:8]}"

    def _refuse_changed(self, part: _Part, study: str, pool: Pool) -> None:
        """Refuses a source that was imported into the study with other items or another scale."""
        task, level = part.task, _level(part.recording)
        for row in self._store.experiments.rows(study=study):
            same = row["design"].get(RECORDED) == level and row["concept"] == task.concept
            if same and row["pool_id"] != pool.id:
                raise ConflictError(
                    f"{part.recording.source} was imported into {study} before, with other items; "
                    "import it as another study with --study NAME"
                )

    def _refuse_different(
        self,
        part: _Part,
        study: str,
        run: Run,
        stored: Mapping[Place, tuple[Status, str]],
        verdicts: Iterator[RecordedVerdict],
    ) -> None:
        """Refuses verdicts that differ from those of an earlier import of the same source."""
        imported = {
            verdict.place: (verdict.status, " ".join(map(str, verdict.stages)))
            for verdict in verdicts
        }
        if imported == stored:
            return
        changed = sum(stored.get(index) != verdict for index, verdict in imported.items())
        missing = len(stored.keys() - imported.keys())
        differs = f"{changed:,} verdicts" if changed else f"{missing:,} verdicts less"
        raise ConflictError(
            f"{part.recording.source} was imported into {study} before, and differs: "
            f"{differs} of {run.experiment.design.judge.model}; import it as another study with "
            "--study NAME"
        )


def _level(recording: "Recording") -> str:
    """The level of the knob that says where a judge was recorded."""
    if recording.format == "file":
        return f"in {recording.source}"
    return f"by {recording.format} ({recording.source})"


def _judges(part: _Part) -> list[str]:
    return [experiment.design.judge.model for experiment in part.experiments]


# --- from a recording to tasks and experiments ----------------------------------------------------


def _part(recording: "Recording", study: str, name: Callable[[Pool], str]) -> _Part:
    """Makes a recording ready to be stored, and refuses one that contradicts itself.

    `name` gives its items their name as a pool.
    """
    from judge_gym.recorded.checks import checked

    recording = checked(recording)
    rubric = _rubric(recording)
    stages = {label: number for number, label in enumerate(recording.scale.labels, 1)}
    pool = Pool(tuple(_items(recording, stages)))
    task = with_rubric(Task("", recording.question, name(pool), pool), rubric)
    verdicts, experiments = _experiments(recording, task, study)
    places = {item: index for index, item in enumerate(recording.items["item"])}
    scored = verdicts["status"] == "scored"
    verdicts = verdicts.assign(
        place=verdicts["item"].map(places),
        stage=verdicts["label"].where(scored).map(stages).fillna(0).astype(int),
    )
    _refuse_repeated(recording, verdicts, experiments)
    labels = recording.labels.drop_duplicates()
    labels = labels.assign(place=labels["item"].map(places), stage=labels["label"].map(stages))
    names = [stage.label for stage in rubric.stages]
    verdicts = verdicts.sort_values("experiment", kind="stable")
    return _Part(recording, task, experiments, verdicts, labels, names)


def _rubric(recording: "Recording") -> Rubric:
    """Builds a given rubric from the scale. A pair has the options of our benchmark."""
    scale, question = recording.scale, recording.question
    names = [stage.label for stage in PAIR_OPTIONS] if recording.paired else scale.labels
    stages = tuple(
        RubricStage(name, tuple(recording.criteria.get(label, ())) or (name,))
        for name, label in zip(names, scale.labels, strict=False)
    )
    kind = OrdinalRubric if scale.ordered and not recording.paired else NominalRubric
    return kind(stages, author="provided", concept=question, country="")


def _items(recording: "Recording", stages: Mapping[str, int]) -> Iterator[Evidence]:
    """Yields the items, those without a text or with that of another included."""
    from judge_gym.recorded import ITEM_COLUMNS
    from judge_gym.recorded.recording import item_parts, readable_parts

    fields = [str(name) for name in recording.items if name not in ITEM_COLUMNS]
    bodies: set[str] = set()
    for row in recording.items.to_dict("records"):
        paired = row["response_a"] != ""
        parts = {} if paired else readable_parts(item_parts(row))
        text = render_fields(parts) if parts else row["text"]
        absent = not (text or paired)
        if absent:
            text = f"The text of {row['item']!r} was not recorded {_level(recording)}."
        item = Evidence(
            title=row["title"] or row["item"],
            text=text,
            source=recording.source,
            truth=stages[row["truth"]] if row["truth"] else None,
            metadata={
                "id": row["item"],
                **{n: _plain(row[n]) for n in fields if _has_value(row[n]) and n not in parts},
                **_facts(row["length"], absent),
            },
            responses=(row["response_a"], row["response_b"]) if paired else (),
            fields=parts,
            cluster=row["cluster"],
        )
        while item.body in bodies:  # invisible, so that both stay items
            item = replace(item, text=f"{item.text}\n")
        bodies.add(item.body)
        yield item


def _facts(length: float, absent: bool) -> dict[str, Any]:
    """Collects what is known of an item in place of its text."""
    facts = {"length": float(length)} if _has_value(length) else {}
    return {"recorded": {**facts, "text": not absent}} if facts or absent else {}


def _plain(value: Any) -> Any:
    """Converts the value of a field to JSON."""
    if isinstance(value, str):
        return storable(value)
    return value if isinstance(value, bool | int | float | list | dict) else str(value)


def _has_value(value: Any) -> bool:
    """Whether a cell has a value: neither empty nor missing."""
    return value is not None and value != "" and value == value


def _experiments(
    recording: "Recording", task: Task, study: str
) -> "tuple[pd.DataFrame, Sequence[Experiment]]":
    """Numbers verdicts by experiment, and designs an experiment for each setup."""
    from judge_gym.analysis.frames import knob_columns

    verdicts = recording.verdicts
    knobs = knob_columns(verdicts)
    unknown = [str(name) for name in verdicts if "." in str(name) and str(name) not in knobs]
    for name in unknown:
        find_knob(name)  # which refuses it with the choices
    setups = verdicts.groupby(["judge", *knobs], dropna=False, sort=False, observed=True)
    if setups.ngroups > MOST_SETUPS:
        levels = {name: verdicts[name].nunique() for name in ("judge", *knobs)}
        most = max(levels, key=lambda name: levels[name])
        raise DesignError(
            f"{recording.source}: {most} has {levels[most]:,} levels in {len(verdicts):,} "
            "verdicts; that is no setting of a judge"
        )
    numbers = setups.ngroup()
    firsts = verdicts.loc[~numbers.duplicated(), ["judge", *knobs]]
    varied = [name for name in knobs if firsts[name].nunique(dropna=False) > 1]
    orders = _orders(recording)
    experiments = []
    for row in firsts.to_dict("records"):
        levels = {name: _level_of(name, row[name]) for name in knobs}
        recorded = {name: level for name, level in levels.items() if level is not None}
        origin = {"judge.model": row["judge"], RECORDED: _level(recording)}
        design = resolve_design(task, {**orders, **recorded, **origin})[0]
        tag_levels = {name.removeprefix(FOREIGN): levels[name] for name in varied}
        tag_levels = {name: level for name, level in tag_levels.items() if level is not None}
        tag = experiment_tag(
            study,
            task.concept,
            task.pool_name,
            row["judge"],
            {**tag_levels, "recorded": recording.source.replace("/", "-")},
        )
        experiments.append(Experiment(tag, task, design, 0))
    return verdicts.assign(experiment=numbers), experiments


def _orders(recording: "Recording") -> dict[str, str]:
    """Finds in which order pairs were shown, where verdicts say it."""
    if not recording.paired:
        return {}
    flipped = recording.verdicts["flipped"].astype(bool)
    order = "swapped" if flipped.all() else "both" if flipped.any() else "given"
    return {"presentation.pair_order": order}


def _level_of(knob: str, value: Any) -> Any:
    """Converts a recorded level to that of its knob. None stands for an unrecorded one."""
    if not _has_value(value):
        return None
    plain = value.item() if hasattr(value, "item") else value
    if not knob.startswith(FOREIGN):
        declared = find_knob(knob)
        if isinstance(plain, str) and declared.type != "text":
            return yaml.safe_load(plain)
        return int(plain) if declared.type == "an integer" and plain == int(plain) else plain
    if isinstance(plain, bool):
        return str(plain).lower()
    return f"{plain:g}" if isinstance(plain, float) else storable(str(plain))


def _refuse_repeated(
    recording: "Recording", verdicts: "pd.DataFrame", experiments: Sequence[Experiment]
) -> None:
    """Refuses two verdicts of one judge and setting on one item, repeat and order."""
    digests = {number: each.digest for number, each in enumerate(experiments)}
    key = verdicts.assign(digest=verdicts["experiment"].map(digests))
    twice = key.duplicated(["digest", "item", "repeat", "flipped"])
    if not twice.any():
        return
    row = verdicts[twice].iloc[0]
    more = f" (and {twice.sum() - 1:,} more)" if twice.sum() > 1 else ""
    raise DesignError(
        f"{recording.source}: {row['judge']} has two verdicts on {row['item']!r}, repeat "
        f"{row['repeat']}{more}; number its repeats, or name the setting in which they differ"
    )


def _verdicts(
    part: _Part, experiment: Experiment, rows: "pd.DataFrame"
) -> Iterator[RecordedVerdict]:
    """Yields the verdicts of an experiment with their calls."""
    design, items, experiment_digest = (
        experiment.design,
        experiment.task.pool.items,
        experiment.digest,
    )
    endpoint, judge = f"recorded:{part.recording.source}", experiment.design.judge
    scale = len(part.stages)
    straight = Display(LETTERS[:scale], tuple(range(1, scale + 1)))
    columns = (
        *("place", "repeat", "flipped", "status", "stage", "prompt", "answer", "rationale"),
        *("call", "usd", "seconds"),
    )
    for index, repeat, flipped, status, stage, prompt, answer, rationale, call, usd, seconds in zip(
        *(rows[name].tolist() for name in columns), strict=True
    ):
        item, flipped = items[index], bool(flipped)
        said = answer if rationale in answer else f"{rationale}\n\n{answer}".strip()
        which = [call] if call else [experiment_digest, item.hash, flipped, status, stage]
        yield RecordedVerdict(
            place=Place(item.id, int(repeat), flipped),
            status=cast(Status, status),
            stages=(stage,) if stage else (),
            display=straight.flipped() if flipped else straight,
            request=Request(
                model=judge.model,
                messages=_messages(prompt),
                draw=Draw(f"recorded {digest([*which, said])[:16]}", 0 if call else int(repeat)),
                temperature=design.judge.temperature,
                max_tokens=judge.max_tokens,
            ),
            endpoint=endpoint,
            answer=said,
            usd=float(usd) if _has_value(usd) else None,
            seconds=float(seconds) if _has_value(seconds) else 0.0,
        )


def _messages(prompt: str) -> tuple[Message, ...]:
    """Reads the messages of a recorded prompt, a JSON list of them or one text."""
    if prompt.lstrip().startswith("["):
        with suppress(ValueError, TypeError, KeyError):
            return tuple(
                Message(ROLES.get(each["role"], "user"), (_content(each["content"]),))
                for each in json.loads(prompt)
            )
    return (Message("user", (prompt,) if prompt else ()),)


def _content(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


# --- what is said of it ---------------------------------------------------------------------------


def _notes(part: _Part) -> Iterator[str]:
    """Yields what was not mapped, and what was taken for granted."""
    from judge_gym.recorded import VERDICT_COLUMNS

    yield from part.recording.notes
    items, source = part.recording.items, part.recording.source
    if not part.readable:
        absent = int(((items["text"] == "") & (items["response_a"] == "")).sum())
        yield (
            f"{source}: {absent:,} items have no text, so no other judge can be asked about them"
        )
    lost = [
        str(name)
        for name in part.recording.verdicts
        if name not in VERDICT_COLUMNS and "." not in str(name)
    ]
    if lost:
        yield f"{source}: not stored with the verdicts: {', '.join(lost)}"
    texts = items.loc[items["text"] != "", ["text", "response_a", "response_b"]]
    if same := int(texts.duplicated().sum()):
        yield f"{source}: {same:,} items have the text of another; each stays an item"


def _study_file(study: str, parts: Sequence[_Part]) -> str:
    """Writes a study file that asks other judges about the same items."""
    positives = {part.recording.scale.positive for part in parts}
    written: dict[str, Any] = {
        "study": study,
        "repeats": 1,
        "items": {part.task.pool_name: {"pool": part.task.pool_name} for part in parts},
        "tasks": [
            {
                "question": part.task.concept,
                "items": part.task.pool_name,
                "rubric": {
                    "kind": part.task.rubric.kind,
                    "stages": [
                        {"label": stage.label, "criteria": [*stage.criteria]}
                        for stage in part.task.rubric.stages
                    ],
                },
            }
            for part in parts
            if part.task.rubric is not None
        ],
        "probe": False,
    }
    if len(positives) == 1 and (positive := positives.pop()) is not None:
        written["positive"] = positive
    body = yaml.safe_dump(written, sort_keys=False, allow_unicode=True, width=100)
    sources = " and ".join(dict.fromkeys(_level(part.recording) for part in parts))
    return (
        f"# Verdicts on these items were recorded {sources}.\n"
        f"# To ask other judges, name them here, then: judge-gym plan {study}.yaml\n"
        f"judges: []  # such as openai:gpt-5.2 or local:smollm2\n{body}"
    )
