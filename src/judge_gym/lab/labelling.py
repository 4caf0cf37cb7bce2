"""People label items in the browser: which items, for whom, what each sees, and what they said.

A rater sees what a judge of the study sees, and no verdict or label of anybody else. Only after
the last item of the own queue, judges' verdicts on it may be shown.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from judge_gym.analysis.judges.label_draws import LabelDraw, assign, draw_items
from judge_gym.axes import RECORDED
from judge_gym.errors import ConflictError, DesignError, NotFoundError, unknown
from judge_gym.lab.items import StudyItems
from judge_gym.lab.label_frames import pair_label
from judge_gym.lab.studies import Studies, Target
from judge_gym.lab.texts import files_of
from judge_gym.records import Evidence, Pool, digest
from judge_gym.records.evidence import FIELD_NAMES
from judge_gym.records.responses import LabelQueueRow, QueueRater
from judge_gym.sources.files import read_items
from judge_gym.store import Store
from judge_gym.store.labels import ADJUDICATE, Assignment, GivenLabel, Kind, Queue
from judge_gym.studies import Experiment

if TYPE_CHECKING:
    from judge_gym.recorded.options import FileReading

Confidence = Literal["sure", "likely", "guess"]
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
USUAL_OVERLAP = 0.2
"""The share of items that two of several raters label, unless it is said otherwise."""
LINK_DAYS = 14
"""How long the link of a rater is valid, unless it is said otherwise."""
ITEMS = "items.jsonl"


@dataclass(frozen=True, slots=True)
class Choice:
    """A label that a rater can choose."""

    key: str
    """The key that chooses it: 1 to 9, then a, b, ..."""
    label: str
    criteria: Sequence[str]


@dataclass(frozen=True, slots=True)
class LabelPage:
    """What a rater sees of one item, and what they said of it."""

    queue: int
    question: str
    rater: str
    position: int
    """From 1."""
    total: int
    labelled: int
    sections: Sequence[tuple[str, str]]
    """The parts of the item, each with its heading; one text has none."""
    choices: Sequence[Choice]
    answered: bool
    stage: str | None
    """The label as it is shown; None for "cannot judge"."""
    confidence: str | None
    note: str | None
    others: Sequence[tuple[str, str]]
    """Where raters differed, what each said; otherwise nothing."""
    next: int | None
    """The position of the next item without a label; None if all have one."""


class Labelling:
    """Draws items for people, shows them one by one, and records what people say."""

    def __init__(self, store: Store, studies: Studies, items: StudyItems) -> None:
        self._store = store
        self._studies = studies
        self._items = items

    # --- queues ----------------------------------------------------------------------------------

    def ask(
        self, study: Target, raters: Sequence[str], draw: LabelDraw, overlap: float | None
    ) -> LabelQueueRow:
        """Draws items of a study, and divides them among raters.

        Args:
            study: its name or its file; what the file describes is stored.
            raters: the people, by name.
            draw: how items are drawn.
            overlap: the share that two raters label; by default a fifth if there are several.
        """
        name = self._studies.name(study)
        experiment = self._experiment(study, name)
        hashes = {item.id: item.hash for item in experiment.task.pool.items}
        disagreement = self._disagreement(name) if draw.disputed or draw.hard else None
        drawn = draw_items(hashes, draw, disagreement)
        share = _overlap_share(overlap, raters)
        queues = assign(drawn, hashes, raters, overlap=share, seed=draw.seed)
        return self._create(name, experiment, drawn, queues, {**_draw_row(draw), "overlap": share})

    def ask_about_file(
        self, reading: "FileReading", raters: Sequence[str], draw: LabelDraw, overlap: float | None
    ) -> LabelQueueRow:
        """Draws items of a file, without a study; its labels are the choices."""
        from judge_gym.recorded.study_items import study_items

        recording = reading.recording
        rows = study_items(recording)
        if len(rows.stages) < 2:
            raise DesignError(
                f"{recording.source} has no two labels to choose from; name them with "
                "--order fail,pass"
            )
        # People's labels in the file are no part of what a rater sees or of an item.
        items = [
            {name: value for name, value in row.items() if name not in rows.raters}
            for row in rows.rows
        ]
        lines = "".join(f"{json.dumps(item, ensure_ascii=False)}\n" for item in items)
        with files_of({ITEMS: lines}) as folder:
            pool = self._store.evidence.save_pool(Pool(read_items(folder / ITEMS)))
        rubric = {
            "kind": "ordinal" if rows.ordered else "nominal",
            "stages": [[stage] for stage in rows.stages],
        }
        hashes = {item.id: item.hash for item in pool.items}
        drawn = draw_items(hashes, draw)
        share = _overlap_share(overlap, raters)
        queues = assign(drawn, hashes, raters, overlap=share, seed=draw.seed)
        queue = {"study": recording.source, "concept": recording.question, "tag": None}
        return self._save(
            {**queue, "rubric": rubric}, drawn, queues, {**_draw_row(draw), "overlap": share}, pool
        )

    def ask_about_disagreements(self, study: Target, rater: str) -> LabelQueueRow:
        """Makes a queue of the items that raters labelled differently, for one who decides."""
        name = self._studies.name(study)
        experiment = self._experiment(study, name)
        ids = [item.id for item in experiment.task.pool.items]
        stages: dict[int, dict[str, str]] = {}
        settled = set()
        for row in self._store.labels.history(ids):
            if row["kind"] == "adjudicated":
                settled.add(row["evidence"])
            elif row["stage"] is not None and _is_about(row, name, experiment.task.concept):
                stages.setdefault(row["evidence"], {})[row["rater"]] = row["stage"]
        differing = [
            item
            for item in ids
            if len({*stages.get(item, {}).values()}) > 1 and item not in settled
        ]
        if not differing:
            raise DesignError(f"raters of {name} differ on no item that is not decided yet")
        drawn: dict[int, float | None] = dict.fromkeys(differing)
        return self._create(name, experiment, drawn, {rater: differing}, {ADJUDICATE: True})

    def _create(
        self,
        study: str,
        experiment: Experiment,
        drawn: Mapping[int, float | None],
        queues: Mapping[str, Sequence[int]],
        draw: Mapping[str, Any],
    ) -> LabelQueueRow:
        rubric = experiment.task.rubric
        assert rubric is not None
        queue = {
            "study": study,
            "concept": experiment.task.concept,
            "tag": experiment.tag,
            "rubric": {
                "kind": rubric.kind,
                "stages": [[stage.label, *stage.criteria] for stage in rubric.stages],
            },
        }
        return self._save(queue, drawn, queues, draw, experiment.task.pool)

    def _save(
        self,
        queue: Mapping[str, Any],
        drawn: Mapping[int, float | None],
        queues: Mapping[str, Sequence[int]],
        draw: Mapping[str, Any],
        pool: Pool,
    ) -> LabelQueueRow:
        for earlier in self._store.label_queues.of_study(queue["study"]):
            raters = {row.rater for row in self._store.label_queues.assignments(earlier.id)}
            same = earlier.concept == queue["concept"] and earlier.rubric == queue["rubric"]
            if same and earlier.draw == draw and raters == {*queues}:
                return self.describe(earlier)  # the same command continues
        items = {item.id: item for item in pool.items}
        assignments = [
            Assignment(rater, position, item, _is_flipped(items[item], rater))
            for rater, ids in queues.items()
            for position, item in enumerate(ids, 1)
        ]
        id = self._store.label_queues.create({**queue, "draw": draw}, drawn, assignments)
        return self.describe(self._store.label_queues.find(id))

    def _experiment(self, study: Target, name: str) -> Experiment:
        """Finds the experiment whose items, wording and rubric people see: the study's first."""
        rows = self._studies.find(study)
        if rows:
            experiments = [self._store.experiments.find(row["tag"])[0] for row in rows]
        else:  # it was never run: what a file describes is stored
            experiments = [*self._studies.save_all(self._studies.prepare(study))]
        given = [each for each in experiments if each.task.rubric is not None]
        if not given:
            raise DesignError(
                f"the judges of {name} write their own rubrics, so there is none for people; give "
                "its task a rubric"
            )
        pools = {each.task.pool.hash for each in given}
        concepts = {each.task.concept for each in given}
        if len(pools) > 1 or len(concepts) > 1:
            tags = sorted({each.tag for each in given})
            raise DesignError(
                f"{name} has {len(concepts)} questions on {len(pools)} sets of items; name one of "
                "its experiments",
                choices=tags[:20],
            )
        return given[0]

    def _disagreement(self, study: str) -> dict[int, float]:
        return self._items.disagreements(study)

    def describe(self, queue: Queue) -> LabelQueueRow:
        """Counts how far each rater of a queue is."""
        total: dict[str, int] = {}
        for assignment in self._store.label_queues.assignments(queue.id):
            total[assignment.rater] = total.get(assignment.rater, 0) + 1
        raters: list[QueueRater] = [
            {
                "rater": rater,
                "items": count,
                "labelled": len(self._given(queue, rater)),
            }
            for rater, count in total.items()
        ]
        return {
            "queue": queue.id,
            "study": queue.study,
            "question": queue.concept,
            "draw": dict(queue.draw),
            "created": queue.created,
            "raters": raters,
        }

    def queues(self, study: str | None = None) -> Sequence[LabelQueueRow]:
        """Returns the queues of a study, or all, with how far each rater is."""
        return [self.describe(queue) for queue in self._store.label_queues.of_study(study)]

    def link(self, queue: int, rater: str, days: int = LINK_DAYS) -> str:
        """Creates the token with which a rater labels, and can do nothing else; shown once."""
        if not 1 <= days <= 365:
            raise DesignError(f"a link that is valid for {days} days; choose 1 to 365")
        raters = [row["rater"] for row in self.describe(self._queue(queue))["raters"]]
        if rater not in raters:
            raise NotFoundError(unknown("rater", rater, raters), choices=raters)
        expires = datetime.now(UTC) + timedelta(days=days)
        return self._store.tokens.create_link(queue, rater, expires)

    def export(self, queue: int) -> list[dict[str, Any]]:
        """Lists every label that was given in a queue, by the user's name of each item."""
        items = {row.evidence_id for row in self._store.label_queues.assignments(queue)}
        rows = self._store.labels.history(items)
        return self._named([row for row in rows if row["queue_id"] == queue])

    def export_study(self, study: Target) -> list[dict[str, Any]]:
        """Lists every label of a study's items, also replaced ones, by the user's names."""
        items = {
            item.id
            for row in self._studies.find(study)
            for item in self._store.experiments.find(row["tag"])[0].task.pool.items
        }
        return self._named(self._store.labels.history(items))

    def _named(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Adds to labels what users call the item: its own id, or its title."""
        items = {
            id: self._store.evidence.find_evidence(id) for id in {row["evidence"] for row in rows}
        }
        names = {id: str(item.metadata.get("id") or item.title) for id, item in items.items()}
        return [
            {**row, "item": names[row["evidence"]], "stage": row["stage"] or ""} for row in rows
        ]

    # --- what a rater sees and says --------------------------------------------------------------

    def page(self, queue: int, rater: str, position: int | None = None) -> LabelPage | None:
        """Shows an item of a rater's queue; None once all have a label and no position is named."""
        about = self._queue(queue)
        assignments = self._assignments(queue, rater)
        given = self._given(about, rater)
        open_positions = [a.position for a in assignments if a.evidence_id not in given]
        if position is None:
            if not open_positions:
                return None
            position = open_positions[0]
        assignment = _at(assignments, position)
        item = self._store.evidence.find_evidence(assignment.evidence_id)
        label = given.get(item.id)
        stage = None if label is None else label.stage
        if stage is not None and assignment.flipped:
            stage = pair_label(stage, about.rubric)
        later = [place for place in open_positions if place > position]
        return LabelPage(
            queue=queue,
            question=about.concept,
            rater=rater,
            position=position,
            total=len(assignments),
            labelled=len(given),
            sections=self._sections(about, item, flipped=assignment.flipped),
            choices=[
                Choice(_key(number), stage[0], stage[1:])
                for number, stage in enumerate(about.rubric["stages"], 1)
            ],
            answered=label is not None,
            stage=stage,
            confidence=None if label is None else label.confidence,
            note=None if label is None else label.note,
            others=self._earlier_labels(about, item) if ADJUDICATE in about.draw else (),
            next=next(iter([*later, *open_positions]), None),
        )

    def give(
        self,
        queue: int,
        rater: str,
        position: int,
        stage: str | None,
        *,
        confidence: str | None = None,
        note: str = "",
    ) -> int | None:
        """Records a label, and returns the position of the next item without one.

        Args:
            queue: the queue.
            rater: who labels.
            position: of the item, from 1.
            stage: one of the choices as it was shown; None where the person cannot judge.
            confidence: how sure they are.
            note: what they add.
        """
        about = self._queue(queue)
        assignment = _at(self._assignments(queue, rater), position)
        names = [each[0] for each in about.rubric["stages"]]
        if stage is not None and stage not in names:
            raise DesignError(unknown("label", stage, names), choices=names)
        if confidence is not None and confidence not in CONFIDENCES:
            raise DesignError(unknown("confidence", confidence, CONFIDENCES), choices=CONFIDENCES)
        item = self._store.evidence.find_evidence(assignment.evidence_id)
        sections = self._sections(about, item, flipped=assignment.flipped)
        identity = pair_label(stage, about.rubric) if stage and assignment.flipped else stage
        self._store.labels.give(
            {
                "evidence_id": item.id,
                "study": self._label_study(about),
                "concept": about.concept,
                "rater": rater,
                "stage": identity,
                "confidence": confidence,
                "note": note.strip() or None,
                "queue_id": queue,
                "shown": digest([[list(section) for section in sections], about.rubric]),
            },
            kind="adjudicated" if ADJUDICATE in about.draw else "given",
        )
        page = self.page(queue, rater, position)
        return None if page is None else page.next

    def reveal(self, queue: int, rater: str) -> list[dict[str, Any]]:
        """Lists judges' verdicts beside a rater's labels, once the whole queue is labelled."""
        about = self._queue(queue)
        assignments = self._assignments(queue, rater)
        given = self._given(about, rater)
        if any(assignment.evidence_id not in given for assignment in assignments):
            raise ConflictError("judges' verdicts are shown after the last item of the queue")
        if about.tag is None:
            return []
        rows = []
        for assignment in assignments:
            answers = self._items.answers_on(about.study, assignment.evidence_id)
            label = given[assignment.evidence_id].stage
            rows.append(
                {
                    "position": assignment.position,
                    "title": self._store.evidence.find_evidence(assignment.evidence_id).title,
                    "label": label,
                    "answers": answers,
                }
            )
        return rows

    def review(self, queue: int, rater: str, sample: int, *, sound: bool) -> None:
        """Records whether a rater finds a judge's reasoning sound; stored apart from labels."""
        revealed = {
            answer["sample"] for row in self.reveal(queue, rater) for answer in row["answers"]
        }
        if sample not in revealed:
            raise NotFoundError(f"sample {sample} is no verdict on an item of this queue")
        self._store.label_queues.review(queue, rater, sample, sound=sound)

    def _label_study(self, queue: Queue) -> str:
        """Names the study whose labels are its own: a recorded one, or a file without a study."""
        if queue.tag is None:
            return queue.study
        design = self._store.experiments.find(queue.tag)[0].design
        return queue.study if RECORDED in design.values() else ""

    def _queue(self, id: int) -> Queue:
        return self._store.label_queues.find(id)

    def _assignments(self, queue: int, rater: str) -> Sequence[Assignment]:
        assignments = self._store.label_queues.assignments(queue, rater)
        if not assignments:
            raise NotFoundError(f"queue {queue} has no items for {rater!r}")
        return assignments

    def _given(self, queue: Queue, rater: str) -> dict[int, GivenLabel]:
        """Finds a rater's labels of a queue; a decision is another label than that of a rater."""
        kinds: tuple[Kind, ...] = ("given", "imported")
        if ADJUDICATE in queue.draw:
            kinds = ("adjudicated",)
        return self._store.label_queues.given(queue, rater, kinds=kinds)

    def _earlier_labels(self, queue: Queue, item: Evidence) -> list[tuple[str, str]]:
        latest = {
            row["rater"]: row["stage"]
            for row in self._store.labels.history([item.id])
            if row["kind"] != "adjudicated" and _is_about(row, queue.study, queue.concept)
        }
        return sorted((rater, stage) for rater, stage in latest.items() if stage is not None)

    def _sections(self, queue: Queue, item: Evidence, *, flipped: bool) -> list[tuple[str, str]]:
        """Returns an item as the judges of the study see it."""
        if item.responses:
            first, second = reversed(item.responses) if flipped else item.responses
            parts = [("First response", first), ("Second response", second)]
            return [("Prompt", item.text), *parts] if item.text else parts
        if queue.tag is None:
            fields, text = dict(item.fields), item.text
        else:
            experiment = self._store.experiments.find(queue.tag)[0]
            strategy = experiment.design.evidence.resolve()
            fields, text = strategy.shown(item.fields), item.text
            if strategy.editor is not None:
                from judge_gym.stages.evidence import Neutralizer

                maker = Neutralizer(experiment.design).maker
                views = self._store.evidence.view_texts(maker, experiment.task.pool)
                if item.id not in views:
                    raise ConflictError(
                        f"judges of {queue.study} read a neutral view of each text, and that of "
                        f"{item.title!r} is not made; run the study's step evidence first"
                    )
                text = views[item.id]
        if fields:
            return [(name.capitalize(), fields[name]) for name in FIELD_NAMES if name in fields]
        return [("", text)]


def _is_about(label: Mapping[str, Any], study: str, concept: str) -> bool:
    return label["study"] in ("", study) and label["concept"] in ("", concept)


def _overlap_share(overlap: float | None, raters: Sequence[str]) -> float:
    """Chooses the share of items that two raters label, where none is named."""
    if overlap is not None:
        return overlap
    return USUAL_OVERLAP if len(raters) > 1 else 0.0


def _draw_row(draw: LabelDraw) -> dict[str, Any]:
    return {
        "by": "disagreement" if draw.disputed else "random",
        "items": draw.items,
        "core": draw.core if draw.disputed else 1.0,
        "hard": draw.hard,
        "seed": draw.seed,
    }


def _is_flipped(item: Evidence, rater: str) -> bool:
    """Decides by a hash whether a rater sees the responses of a pair in reverse."""
    return bool(item.responses) and int(digest(["flip", rater, item.hash])[:4], 16) % 2 == 1


def _at(assignments: Sequence[Assignment], position: int) -> Assignment:
    for assignment in assignments:
        if assignment.position == position:
            return assignment
    raise NotFoundError(f"the queue has items 1 to {len(assignments)}, not {position}")


def _key(number: int) -> str:
    return str(number) if number < 10 else chr(ord("a") + number - 10)
