"""Compares two setups on the items that both judged: A minus B, in a sentence and item by item."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.endpoints import positions
from judge_gym.analysis.frames import NAMES_APART
from judge_gym.analysis.judges.quantities import as_quantity
from judge_gym.analysis.judges.sentence import MEASURES
from judge_gym.analysis.stats.comparisons import compare
from judge_gym.analysis.verdicts import Verdicts
from judge_gym.records.comparison import ComparedItem, Endpoint
from judge_gym.records.judge_table import MIN_CLUSTERS, Decider, JudgeTable, Quantity
from judge_gym.records.numbers import signed_decimal, signed_hundredths, signed_points

ITEMS = 25
"""The number of items that are listed."""
WORDS: Mapping[Endpoint, tuple[str, str, str]] = {
    "accuracy": ("is", "more accurate than", "less accurate than"),
    "agreement": ("agrees with people", "more often than", "less often than"),
    "stage": ("places items", "higher than", "lower than"),
}
SIDES = (0, 1)
"""The setups A and B of the verdicts that are compared."""


class Contrast(NamedTuple):
    """The result that the sentence states."""

    endpoint: Endpoint | None
    difference: Quantity | None
    """A minus B."""
    measure: Decider = "exact"
    """The measure of quality that is compared."""


def main_contrast(pair: JudgeTable, a: str, b: str, stage: Quantity | None) -> Contrast:
    """Chooses the contrast of quality where it is known, else that of stages.

    Args:
        pair: the judge table of the two setups alone.
        a: the name of A in that table.
        b: the name of B in it.
        stage: the difference in mean stages.
    """
    rows = {row["setup"]: row for row in pair["rows"]}
    ahead, behind = rows[a]["difference"], rows[b]["difference"]
    # A table gives the difference from its best setup, on the row of the other one.
    if pair["kind"] is not None and (ahead or behind):
        return Contrast(pair["kind"], ahead or _negative(behind), pair["measure"])
    return Contrast("stage" if stage else None, stage)


def _negative(quantity: Quantity | None) -> Quantity | None:
    if quantity is None:
        return None
    low, high = quantity["low"], quantity["high"]
    return {
        "value": -quantity["value"],
        "low": None if high is None else -high,
        "high": None if low is None else -low,
        "n": quantity["n"],
    }


def comparison_sentence(
    contrast: Contrast, a: str, b: str, *, judged_by_both: int, differing: int
) -> str:
    """States the result. A direction is only claimed if the interval excludes 0.

    >>> found = Contrast("accuracy", {"value": -0.04, "low": -0.07, "high": -0.01, "n": 60})
    >>> comparison_sentence(found, "A", "B", judged_by_both=60, differing=9)
    'A is 4 points [1, 7] less accurate than B (60 items).'
    """
    endpoint, difference, measure = contrast
    if endpoint is None or difference is None:
        if not judged_by_both:
            return f"{a} and {b} cannot be compared: no item was judged by both."
        return (
            f"{a} and {b} usually give the same verdict on {judged_by_both - differing:,} of "
            f"{judged_by_both:,} items; which is right is unknown."
        )
    value, low, high = difference["value"], difference["low"], difference["high"]
    in_points = endpoint != "stage" and measure in ("exact", "balanced")

    signed: Callable[[float], str] = signed_hundredths
    if in_points:
        signed = signed_points
    elif endpoint != "stage" and measure in ("weighted", "rank"):
        signed = signed_decimal

    def number(share: float) -> str:
        return signed(abs(share)).lstrip("+")

    unit = " stages" if endpoint != "stage" and measure == "error" else ""
    if in_points:
        unit = " point" if number(value) == "1" else " points"

    verb, more, less = _words(endpoint, measure)
    items = f"{difference['n']:,} item{'s' if difference['n'] != 1 else ''}"
    scale = "" if endpoint != "stage" else ", where 0 is the first stage and 1 the last"

    def direction(ends: str = "") -> str:
        return f"{verb} {number(value)}{unit}{ends} {more if value > 0 else less} {b}"

    if low is None or high is None:
        start = f"{a} and {b} are not told apart: {items}, and an interval needs {MIN_CLUSTERS}."
        return f"{start} So far {a} {direction()}{scale}." if number(value) != number(0) else start
    if low <= 0 <= high:
        return (
            f"{a} and {b} are not told apart in {_quality(endpoint, measure)}: A minus B is "
            f"{signed(value)}{unit} [{signed(low)}, {signed(high)}] ({items}){scale}."
        )
    ends = sorted((abs(low), abs(high)))
    return f"{a} {direction(f' [{number(ends[0])}, {number(ends[1])}]')} ({items}){scale}."


def _words(endpoint: Endpoint, measure: Decider) -> tuple[str, str, str]:
    """Chooses the verb of a difference, and how it goes on for more and for less."""
    if endpoint == "stage" or measure == "exact":
        return WORDS[endpoint]
    name = MEASURES[measure]
    return "is", f"higher in {name} than", f"lower in {name} than"


def _quality(endpoint: Endpoint, measure: Decider) -> str:
    if endpoint == "stage":
        return "stage"
    if measure != "exact":
        return MEASURES[measure]
    return "accuracy" if endpoint == "accuracy" else "agreement with people"


def table_sentence(contrast: Contrast, table: JudgeTable, a: str, b: str) -> str:
    """Explains why the table of all setups ties two that a direct comparison separates.

    The intervals of many differences together are wider than that of one.
    """
    difference, rows = contrast.difference, table["rows"]
    if contrast.endpoint in (None, "stage") or difference is None or difference["low"] is None:
        return ""
    apart = not difference["low"] <= 0 <= (difference["high"] or 0.0)
    standings = {row["standing"] for row in rows if row["setup"] in (a, b)}
    if not apart or len(rows) < 3 or not standings <= {"best", "tied"}:
        return ""
    return (
        f"Among all {len(rows)} setups of the study they are not told apart: there many pairs are "
        "compared at once."
    )


def stage_sentence(contrast: Contrast, stage: Quantity | None, a: str, b: str) -> str:
    """States how far apart mean stages are, beside a sentence on quality."""
    if contrast.endpoint in (None, "stage") or stage is None:
        return ""
    difference_row = Contrast("stage", stage)
    return comparison_sentence(difference_row, a, b, judged_by_both=stage["n"], differing=0)


def stage_difference(verdicts: Verdicts) -> Quantity | None:
    """Estimates the mean stage of A minus that of B, over items that both scored.

    Options of a nominal rubric have no mean stage.
    """
    stages = _stages(verdicts)
    both = ~np.isnan(stages).any(axis=1)
    if not both.any():
        return None
    mean = compare(stages[both], verdicts.clusters[both], against=1).differences[0]
    return None if mean is None else as_quantity(mean)


def _stages(verdicts: Verdicts) -> FloatArray:
    """Averages the stage by item and setup, NaN without an ordered one."""
    ordered = (verdicts.rows["rubric_kind"] == "ordinal").to_numpy()
    return verdicts.per_cell(np.where(ordered, positions(verdicts.rows), np.nan))


def differing_items(
    verdicts: Verdicts, titles: Mapping[Any, str]
) -> tuple[int, list[ComparedItem]]:
    """Counts the items that both setups judged, and lists those with different usual verdicts.

    Args:
        verdicts: the verdicts of A and B.
        titles: the titles of items, by evidence.
    """
    answers = [_answers(verdicts, side) for side in SIDES]
    shared = sorted(answers[0].keys() & answers[1].keys())
    stages = _stages(verdicts)
    items: list[ComparedItem] = []
    labels = dict(iter(verdicts.raters.drop_duplicates(["unit", "rater"]).groupby("unit")["stage"]))
    for unit in shared:
        left, right = (side[unit] for side in answers)
        if left.usual == right.usual:
            continue
        concept, evidence = verdicts.units[unit]
        gap = abs(float(stages[unit, 0] - stages[unit, 1]))
        items.append(
            {
                "concept": concept,
                "task": left.task,
                "evidence": evidence,
                "title": titles.get(evidence, str(evidence)),
                "a": left.text,
                "b": right.text,
                "tag_a": left.tag,
                "tag_b": right.tag,
                "truth": left.truth,
                "people": {
                    _words_of([int(stage)], left.stages): int(count)
                    for stage, count in Counter(sorted(labels.get(unit, ()))).items()
                },
                "gap": _distance(left.counts, right.counts) if np.isnan(gap) else gap,
            }
        )
    # Equal gaps may differ in their last digit.
    items.sort(key=lambda item: (-round(item["gap"], 12), item["title"]))
    return len(shared), items


class _Answers(NamedTuple):
    """What a setup said about an item."""

    task: str
    tag: str
    truth: str | None
    stages: Sequence[str]
    """The names of the stages; none if the judge named them."""
    counts: Counter[str]

    @property
    def usual(self) -> str:
        return self.counts.most_common(1)[0][0]

    @property
    def text(self) -> str:
        [(verdict, times)] = self.counts.most_common(1)
        total = self.counts.total()
        return verdict if times == total else f"{verdict}, {times} of {total}"


def _answers(verdicts: Verdicts, side: int) -> dict[int, _Answers]:
    """Collects the answers of a setup by unit."""
    rows = verdicts.rows[(verdicts.setup == side) & verdicts.rows["asked"].to_numpy()]
    answers = {}
    for _, part in rows.groupby("unit", sort=False):
        first = part.iloc[0]
        names = _stage_names(first)
        truth = pd.to_numeric(first["truth"], errors="coerce")
        counts = Counter(
            _words_of(_stages_of(mask), names) if mask else str(status).replace("_", " ")
            for status, mask in zip(part["status"], part["mask"], strict=True)
        )
        answer = None if pd.isna(truth) else _words_of([int(truth)], names)
        about = (str(first["task"]), str(first["tag"]))
        answers[int(first["unit"])] = _Answers(*about, answer, names, counts)
    return answers


def _stage_names(row: pd.Series) -> Sequence[str]:
    """Names a rubric's stages, if the task provides it: judges name theirs at will."""
    is_provided = row["rubric.author"] == "provided" and row["stage_names"]
    return str(row["stage_names"]).split(NAMES_APART) if is_provided else ()


def _stages_of(mask: int) -> list[int]:
    return [stage + 1 for stage in range(mask.bit_length()) if mask >> stage & 1]


def _words_of(stages: Sequence[int], names: Sequence[str]) -> str:
    named = all(stage <= len(names) for stage in stages)
    return " or ".join(names[stage - 1] if named else f"stage {stage}" for stage in stages)


def _distance(left: Counter[str], right: Counter[str]) -> float:
    """Computes the total variation distance of two distributions."""
    kinds = {*left, *right}
    return 0.5 * sum(abs(left[k] / left.total() - right[k] / right.total()) for k in kinds)
