"""Checks the judges of a file: how good each is, and what people would say of all items.

A file is read into a `FileReading`; everything after it is computed from that alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.frames import JUDGE, knob_columns, own_rows, tidy
from judge_gym.analysis.judges.beside_people import judged_units
from judge_gym.analysis.judges.compared import label_scale
from judge_gym.analysis.judges.quantities import as_quantity
from judge_gym.analysis.judges.setups import Setup, setups_of
from judge_gym.analysis.judges.systems import SystemDifference, SystemItems, system_difference
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.measures.scales import propose_positive
from judge_gym.analysis.report.page import simulation_banner
from judge_gym.analysis.verdicts import of_setups
from judge_gym.errors import DesignError
from judge_gym.recorded.check_sentences import (
    answer,
    missing,
    people_sentences,
    system_sentence,
    table_notes,
)
from judge_gym.recorded.file import DEFAULTS
from judge_gym.recorded.logs import read_verdicts
from judge_gym.recorded.options import FileOptions, FileReading, RoleName
from judge_gym.recorded.recording import (
    LabelScale,
    Recording,
    as_samples,
    item_parts,
    readable_parts,
)
from judge_gym.records.check import (
    CheckedQuantity,
    CheckedRoles,
    CheckedSystems,
    CheckResult,
)
from judge_gym.records.evidence import render_fields
from judge_gym.records.judge_table import JudgeTable, MeasureName, Quantity

if TYPE_CHECKING:
    from judge_gym.analysis.report import Report

NEAR = 1.0
"""The distance in stages up to which an ordinal verdict is no disagreement."""
MOST_UNJUDGED = 0.9
"""The share of the file's items from which a judge without verdicts on them was not asked."""
SHOWN = 200
"""The number of disagreements with their texts."""
ROW = "recorded_row"
"""The column of a frame with the number of the recorded verdict."""


class DisagreedItem(NamedTuple):
    """An item on which the first judge differs from people, or two judges from each other."""

    item: str
    text: str
    reference: str
    """What people or the known answer say, in the words of the labels; empty without either."""
    verdicts: Mapping[str, str]
    """What each judge says, the first judge first."""
    rationale: str
    """The first judge's reasons, where the file has them."""


@dataclass(frozen=True, eq=False)
class Check:
    """The check of a file: its answer in words, the numbers behind it, and where judges differ."""

    result: CheckResult
    """What `judge-gym check --json` prints."""
    table: JudgeTable
    """The judges, as `judge-gym judges` shows them."""
    sentences: tuple[str, ...]
    """The answer, a sentence or two a line."""
    disagreements: tuple[DisagreedItem, ...]
    """The first of `result["disagreements"]`, those furthest apart first."""
    reading: FileReading
    """How the file was read."""
    samples: pd.DataFrame
    """The tidy samples, for further analyses."""
    people: pd.DataFrame
    """People's labels of them, with columns tag, evidence, rater, stage."""

    def __repr__(self) -> str:
        lines = [*self.sentences, *(f"- {text}" for text in self.result["missing"])]
        return "\n".join(lines)

    def page(self) -> "Report":
        """Makes the page with the answer, the judge table and the disagreements."""
        from judge_gym.recorded.check_page import check_page

        return check_page(self)

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


def check(
    source: "str | Path | pd.DataFrame",
    *,
    item: str | None = None,
    text: str | None = None,
    responses: tuple[str, str] | None = None,
    judges: Sequence[str] = (),
    people: Sequence[str] = (),
    truth: str | None = None,
    repeat: str | None = None,
    cluster: str | None = None,
    score: str | None = None,
    positive: str | None = None,
    length: str | None = None,
    usd: str | None = None,
    seconds: str | None = None,
    system: str | None = None,
    rationale: str | None = None,
    knobs: Sequence[str] = (),
    labels: str | Path | None = None,
    order: Sequence[str] = (),
    same: Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
    accept: bool = False,
    measure: MeasureName | None = None,
) -> Check:
    """Checks the judges of a file or frame of verdicts and people's labels.

    The roles of columns are found by their values; every one can be named.

    Args:
        source: a file (CSV, JSON, JSONL, parquet, Excel), or a data frame.
        item: the column with the id of an item.
        text: the column with what is judged.
        responses: the two columns with the responses of a pair.
        judges: columns with verdicts, or the one that names the judge of its row.
        people: columns with people's labels, or the one that names the rater of its row.
        truth: the column with known answers.
        repeat: the column with the number of the repeat.
        cluster: the column with what makes items dependent, such as a conversation.
        score: a comparison that makes two labels of numbers: `score>=4`.
        positive: the positive one of two labels.
        length: the column with the length of a text; by default that of the text.
        usd: the column with the price of a verdict.
        seconds: the column with its time.
        system: the column that names the system, or its version, that wrote the text.
        rationale: the column with the judge's reasons.
        knobs: columns that name what varied between verdicts, such as the prompt.
        labels: a second file with people's labels, joined by item.
        order: the labels from the lowest to the highest.
        same: spellings by the label that they mean.
        missing: words that stand for no label.
        accept: whether what is uncertain is taken as proposed, instead of an error.
        measure: which measure decides between judges: exact, balanced, weighted, rank or error.
    """
    options = FileOptions(
        item=item,
        text=text,
        responses=responses,
        judges=tuple(judges),
        people=tuple(people),
        truth=truth,
        repeat=repeat,
        cluster=cluster,
        score=score,
        positive=positive,
        length=length,
        usd=usd,
        seconds=seconds,
        system=system,
        rationale=rationale,
        knobs=tuple(knobs),
        labels=None if labels is None else Path(labels),
        order=tuple(order),
        same=same or {},
        missing=tuple(missing),
        accept=accept,
    )
    path = source if isinstance(source, pd.DataFrame) else Path(source)
    return check_reading(read_certain(path, options), measure=measure, positive=positive)


def read_certain(source: "Path | pd.DataFrame", options: FileOptions = DEFAULTS) -> FileReading:
    """Reads a file about which nothing is uncertain, or whose proposals are accepted."""
    reading = read_verdicts(source, options)
    reading.refuse_open_questions()
    return reading


def check_reading(
    reading: FileReading,
    *,
    measure: MeasureName | None = None,
    loss: Mapping[str, float] | None = None,
    positive: str | None = None,
) -> Check:
    """Checks the judges of a file that was read.

    Args:
        reading: the file.
        positive: the positive label, if a user declared it; else it is that of the reading.
        measure: which measure decides between judges; by default the one that fits the scale.
        loss: what a `miss` and a `false_alarm` cost; expected loss then decides.
    """
    recording = reading.recording
    reading.refuse_without_verdicts()
    if len(recording.scale.labels) < 2:
        raise DesignError(
            f"{recording.source} has a single label, {', '.join(recording.scale.labels)!r}; name "
            "one that nobody gave with --order, as in --order fail,pass",
            choices=recording.scale.labels,
        )
    samples, people = as_samples(recording)
    samples[ROW] = np.arange(len(samples))
    frame = tidy(_with_unjudged(samples, recording), source=recording.source)
    del samples  # which take much memory
    if positive is None and propose_positive(recording.scale.labels) != recording.scale.positive:
        positive = recording.scale.positive
    table = judge_table(
        frame,
        people,
        measure=measure,
        loss=loss,
        positive=positive,
        simulated=simulation_banner({*map(str, frame["judge.model"])}),
    )
    unsupported = [*missing(reading, table)]
    table = {**table, "notes": table_notes(table)}
    if table["kind"] is None:  # its own sentence names commands on studies
        table["sentence"] = f"{' '.join(answer(table))} {unsupported[0]}."
    own = own_rows(frame)
    setups = {setup.name: setup for setup in setups_of(own)}
    ranked = [setups[row["setup"]] for row in table["rows"]]
    first = setups[table["chosen"]] if table["chosen"] else ranked[0]
    ranked = [first, *(setup for setup in ranked if setup is not first)]
    differing, cases = _disagreements(recording, own, ranked, people, table)
    systems = [*_systems(recording, own, first, people, table)]
    sentences = [
        *answer(table),
        *people_sentences(table),
        *(text for text, _ in systems),
        *_differing_sentence(table, ranked, differing, recording.scale),
    ]
    result: CheckResult = {
        "sentence": " ".join(sentences),
        "roles": _roles(reading),
        "scale": _scale(recording.scale, table),
        "judges": [
            {
                "judge": row["setup"],
                "measures": _quantities(row["measures"]),
                "consistency": _known(row["consistency"]),
                "usd_per_1000": _known(row["usd_per_1000"]),
            }
            for row in table["rows"]
        ],
        "people": None,
        "rate": None,
        "length": None,
        "systems": systems[0][1] if systems else None,
        "disagreements": differing,
        "missing": unsupported,
    }
    if table["people"] is not None:
        result["people"] = {"measures": _quantities(table["people"]["measures"])}
    if (rate := table["rate"]) is not None:
        result["rate"] = {
            "judge": rate["setup"],
            "raw": _quantity(rate["raw"]),
            "corrected": _quantity(rate["corrected"]),
            "method": rate["method"],
            "rogan_gladen": _known(rate["rogan_gladen"]),
            "labels": _quantity(rate["labels"]),
        }
    length = table["length"]
    if length is not None and length["effect"] is not None and length["unit"] == "doubling":
        effect = _quantity(length["effect"])
        result["length"] = {"judge": length["setup"], "per_doubling": effect}
    return Check(result, table, tuple(sentences), tuple(cases), reading, frame, people)


def _with_unjudged(samples: pd.DataFrame, recording: Recording) -> pd.DataFrame:
    """Adds a failed call for each item that a judge of many items has no verdict on.

    What people would say of all items of the file includes those.
    """
    items = recording.items.set_index("item")
    parts = [samples]
    by = [JUDGE, *(name for name in knob_columns(samples) if name != JUDGE)]
    for _, rows in samples.groupby(by, sort=False, dropna=False, observed=True):
        lacking = items.index.difference(pd.Index(rows["evidence"].unique()), sort=False)
        if not len(lacking) or len(lacking) > MOST_UNJUDGED * len(items):
            continue
        about = items.loc[lacking]
        unjudged = pd.DataFrame({name: rows[name].iloc[0] for name in samples}, index=lacking)
        parts.append(
            unjudged.assign(
                evidence=lacking,
                evidence_title=about["title"].where(about["title"] != "", lacking),
                replicate=0,
                status="provider_error",
                stages="",
                truth=about["truth"].map(_stages(recording)),
                cluster=about["cluster"],
                length=about["length"],
                flipped=False,
                usd=np.nan,
                seconds=np.nan,
                answer="",
                call_id=np.nan,
                **{ROW: -1},
            )
        )
    return pd.concat(parts, ignore_index=True) if len(parts) > 1 else samples


def _stages(recording: Recording) -> dict[str, int]:
    return {label: number for number, label in enumerate(recording.scale.labels, 1)}


# --- the parts of the result ---------------------------------------------------------------------


def _quantity(quantity: Quantity) -> CheckedQuantity:
    """Writes an estimate with the ends of its interval, or with the reason why it has none."""
    low, high = quantity["low"], quantity["high"]
    if low is None or high is None:
        withheld = quantity.get("withheld", "no interval")
        return {"value": quantity["value"], "n": quantity["n"], "withheld": withheld}
    return {"value": quantity["value"], "low": low, "high": high, "n": quantity["n"]}


def _known(quantity: Quantity | None) -> CheckedQuantity | None:
    return None if quantity is None else _quantity(quantity)


def _quantities(measures: Mapping[str, Quantity]) -> dict[str, CheckedQuantity]:
    return {name: _quantity(quantity) for name, quantity in measures.items()}


def _roles(reading: FileReading) -> CheckedRoles:
    def columns(name: RoleName) -> list[str]:
        return [role.column for role in reading.roles if role.role == name]

    def column(name: RoleName) -> str | None:
        return next(iter(columns(name)), None)

    return {
        "item": column("item"),
        "text": column("text"),
        "responses": [*columns("response_a"), *columns("response_b")],
        "judges": columns("judge"),
        "verdict": column("verdict"),
        "people": columns("person"),
        "label": column("label"),
        "truth": column("truth"),
        "repeat": column("repeat"),
        "cluster": column("cluster"),
        "length": column("length"),
        "usd": column("usd"),
        "seconds": column("seconds"),
        "system": column("system"),
        "rationale": column("rationale"),
        "knobs": columns("knob"),
    }


def _scale(scale: LabelScale, table: JudgeTable) -> Any:
    """Describes the labels; the positive one is what the table uses, which may have proposed it."""
    positive = scale.positive
    if table["scale"] is not None:
        positive = table["scale"]["positive"]
    return {"kind": scale.kind, "labels": [*scale.labels], "positive": positive}


# --- systems -------------------------------------------------------------------------------------


def _systems(
    recording: Recording,
    own: pd.DataFrame,
    setup: Setup,
    people: pd.DataFrame,
    table: JudgeTable,
) -> list[tuple[str, CheckedSystems]]:
    """Compares each further system with the first one by name, by the verdicts of one judge."""
    if "system" not in recording.items or table["rate"] is None:
        return []
    named = recording.items.set_index("item")
    systems = sorted({*named["system"]} - {""})
    if len(systems) < 2:
        return []
    # The setup stands alone here, so that its units are those that it judged.
    verdicts = of_setups(own, [setup], people)
    reference = verdicts.references[table["kind"] or "agreement"]
    positive = None if table["scale"] is None else table["scale"]["positive"]
    scale = label_scale(verdicts, reference, positive)
    judged = None if scale is None else judged_units(verdicts, 0, scale, reference.labels)
    if judged is None:
        return []
    about = named.loc[[verdicts.units[unit][1] for unit in judged.units]]
    question = pd.factorize(_without_system(about))[0].astype(np.int64)
    whole = SystemItems(
        items=question,
        labels=judged.label,
        shares=judged.verdict,
        clusters=verdicts.clusters[judged.units],
        lengths=about["length"].to_numpy(dtype=float),
    )
    of = about["system"].to_numpy()
    sides = {name: whole.on(np.flatnonzero(of == name)) for name in systems}
    return [
        _system_pair(name, systems[0], sides, judged.scores, is_rate=judged.is_rate)
        for name in systems[1:]
        if len(sides[name].items) and len(sides[systems[0]].items)
    ]


def _without_system(items: pd.DataFrame) -> pd.Series:
    """Returns the user's item of each system's item, which is its name without the system."""
    pairs = [*zip(items.index.astype(str), items["system"].astype(str), strict=True)]
    if not all(item.endswith(f" ({system})") for item, system in pairs):
        return items["cluster"]
    return pd.Series([item.removesuffix(f" ({system})") for item, system in pairs], items.index)


def _reference_labels(
    recording: Recording, people: pd.DataFrame, table: JudgeTable
) -> pd.DataFrame:
    """Returns people's labels, or the known answers in their form where these lead."""
    if table["kind"] != "accuracy":
        return people
    stages = _stages(recording)
    items = recording.items.assign(stage=recording.items["truth"].map(stages)).dropna(
        subset=["stage"]
    )
    return pd.DataFrame(
        {"tag": "", "evidence": items["item"], "rater": "", "stage": items["stage"].astype("int64")}
    )


def _system_pair(
    a: str, b: str, sides: Mapping[str, SystemItems], scores: FloatArray, *, is_rate: bool
) -> tuple[str, CheckedSystems]:
    gap: SystemDifference = system_difference(sides[a], sides[b], scores, is_rate=is_rate)
    unit = "points" if is_rate else "points of the scale"
    withheld = gap.withheld or "no labels"
    corrected = gap.corrected._replace(withheld=gap.corrected.withheld or withheld)
    systems: CheckedSystems = {
        "a": a,
        "b": b,
        "judged": _quantity(as_quantity(gap.judged)),
        "corrected": _quantity(as_quantity(corrected)),
    }
    return system_sentence(a, b, gap, unit=unit), systems


# --- disagreements -------------------------------------------------------------------------------


def _disagreements(
    recording: Recording,
    own: pd.DataFrame,
    ranked: Sequence[Setup],
    people: pd.DataFrame,
    table: JudgeTable,
) -> tuple[int, list[DisagreedItem]]:
    """Counts the items on which the first judge differs from labels, and describes the furthest."""
    items = pd.Index(recording.items["item"])
    stages = len(recording.scale.labels)
    verdicts = _distribution(own.iloc[ranked[0].index], items, stages)
    if table["kind"] is not None:
        labels = _reference_labels(recording, people, table)
        place = items.get_indexer(labels["evidence"].to_numpy())
        counts = np.zeros((len(items), stages))
        np.add.at(counts, (place[place >= 0], labels["stage"].to_numpy()[place >= 0] - 1), 1.0)
    elif len(ranked) > 1:
        labels = people
        counts = _distribution(own.iloc[ranked[1].index], items, stages)[:, 1:]
    else:
        return 0, []
    gap = _gaps(verdicts, counts, ordinal=recording.scale.kind == "ordinal")
    least = NEAR if recording.scale.kind == "ordinal" else 0.5
    places = np.flatnonzero(gap > least)
    places = places[np.argsort(-gap[places], kind="stable")]
    shown = places[:SHOWN].astype(np.int64)
    return len(places), _cases(recording, own, ranked, labels, items[shown], table)


def _distribution(rows: pd.DataFrame, items: pd.Index, stages: int) -> FloatArray:
    """Counts the verdicts on each item: those without a score first, then each stage.

    A verdict for several stages is spread over them.
    """
    rows = rows[rows["status"] != "provider_error"]
    place = items.get_indexer(pd.Index(rows["evidence"].astype(str)))
    mask = rows["mask"].to_numpy()
    size = np.maximum(np.bitwise_count(mask), 1)
    weights = [mask == 0, *((mask >> stage & 1) / size for stage in range(stages))]
    return np.column_stack([np.bincount(place, weight, len(items)) for weight in weights])


def _gaps(verdicts: FloatArray, labels: FloatArray, *, ordinal: bool) -> FloatArray:
    """Computes how far verdicts are from labels; -1 where either is missing.

    On an ordinal scale it is the distance of means in stages, and infinite without a score; else
    the share of pairs of a verdict and a label that differ.
    """
    asked, labelled = verdicts.sum(axis=1), labels.sum(axis=1)
    both = (asked > 0) & (labelled > 0)
    right = (verdicts[:, 1:] * labels).sum(axis=1) / np.maximum(asked * labelled, 1)
    if not ordinal:
        return np.where(both, 1 - right, -1.0)
    places = np.arange(labels.shape[1])
    scored = verdicts[:, 1:].sum(axis=1)
    mean = verdicts[:, 1:] @ places / np.maximum(scored, 1)
    distance = np.abs(mean - labels @ places / np.maximum(labelled, 1))
    return np.where(both, np.where(scored > 0, distance, np.inf), -1.0)


def _cases(
    recording: Recording,
    own: pd.DataFrame,
    ranked: Sequence[Setup],
    labels: pd.DataFrame,
    chosen: pd.Index,
    table: JudgeTable,
) -> list[DisagreedItem]:
    """Describes some items in the words of the file."""
    about = recording.items.set_index("item").loc[chosen]
    names = recording.scale.labels
    verdicts = recording.verdicts
    words: dict[str, dict[str, str]] = {item: {} for item in chosen}
    rationale: dict[str, str] = {}
    for setup in ranked:
        rows = own.iloc[setup.index]
        rows = rows[rows["evidence"].astype(str).isin(words) & (rows[ROW] >= 0)]
        recorded = verdicts.iloc[rows[ROW].to_numpy(dtype=np.int64)]
        for item, part in recorded.groupby("item", sort=False):
            said = Counter(
                label or str(status).replace("parse_failed", "unreadable").replace("_", " ")
                for label, status in zip(part["label"], part["status"], strict=True)
            )
            words[str(item)][setup.name] = _counted(said)
            if setup is ranked[0]:
                reasons = [text for text in [*part["rationale"], *part["answer"]] if text]
                rationale[str(item)] = reasons[0] if reasons else ""
    given: dict[str, str] = {}
    if table["kind"] is not None:
        rated = labels[labels["evidence"].isin(words)]
        for item, part in rated.groupby("evidence", sort=False):
            given[str(item)] = _counted(Counter(names[stage - 1] for stage in part["stage"]))
    return [
        DisagreedItem(
            str(item),
            _item_text(row),
            given.get(str(item), ""),
            words[str(item)],
            rationale.get(str(item), ""),
        )
        for item, row in about.iterrows()
    ]


def _counted(words: Counter[str]) -> str:
    """Writes what was said, with how often where not always: `pass, 2 of 3`."""
    total = words.total()
    parts = [
        word if times == total else f"{word}, {times} of {total}"
        for word, times in words.most_common()
    ]
    return "; ".join(parts)


def _item_text(row: pd.Series) -> str:
    if named := item_parts(row):
        return render_fields(readable_parts(named))
    parts = [row["text"]]
    if row["response_a"] or row["response_b"]:
        parts += [f"A: {row['response_a']}", f"B: {row['response_b']}"]
    return "\n\n".join(part for part in parts if part)


def _differing_sentence(
    table: JudgeTable, ranked: Sequence[Setup], differing: int, scale: LabelScale
) -> list[str]:
    """Says on how many items the first judge differs from labels, or two judges do."""
    count = f"{differing:,} disagreement{'' if differing == 1 else 's'}"
    names = [setup.name for setup in ranked]
    far = " of more than one stage" if scale.kind == "ordinal" else ""
    if table["kind"] is None:
        return [f"{count}{far} between {names[0]} and {names[1]}."] if len(names) > 1 else []
    whom = "people" if table["kind"] == "agreement" else "the known answers"
    whose = f" of {names[0]}" if len(names) > 1 else ""
    return [f"{count}{whose} with {whom}{far}."]
