"""Compares two setups on the items that both judged: A minus B, in a sentence and item by item."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import positions
from judge_gym.analysis.frames import once_per_call
from judge_gym.analysis.judges.quantities import as_quantity
from judge_gym.analysis.judges.sentence import LOWER_IS_BETTER, MEASURES
from judge_gym.analysis.stats.comparisons import compare
from judge_gym.records.comparison import ComparedItem, Endpoint
from judge_gym.records.judge_table import MIN_CLUSTERS, Decider, JudgeTable, Quantity

UNIT = ["concept", "evidence"]
ITEMS = 25
"""The number of items that are listed."""
WORDS: Mapping[Endpoint, tuple[str, str, str]] = {
    "accuracy": ("is", "more accurate than", "less accurate than"),
    "agreement": ("agrees with people", "more often than", "less often than"),
    "stage": ("places items", "higher than", "lower than"),
}


class Contrast(NamedTuple):
    """The result that the sentence states."""

    endpoint: Endpoint | None
    difference: Quantity | None
    """A minus B."""
    measure: Decider = "exact"
    """The measure of quality that the difference is one of."""


def main_contrast(pair: JudgeTable, a: str, b: str, stage: Quantity | None) -> Contrast:
    """Returns the contrast of quality where it is known, else that of stages.

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
    """Returns the result in words; a direction is only claimed if the interval excludes 0.

    >>> found = Contrast("accuracy", {"value": -0.04, "low": -0.07, "high": -0.01, "n": 60})
    >>> comparison_sentence(found, "A", "B", judged_by_both=60, differing=9)
    'A is 4 points less accurate than B, 95 % interval 1 to 7 (60 items).'
    """
    endpoint, difference, measure = contrast
    if endpoint is None or difference is None:
        if not judged_by_both:
            return f"{a} and {b} cannot be compared: no item was judged by both."
        return (
            f"{a} and {b} usually give the same verdict on {judged_by_both - differing:,} of "
            f"{judged_by_both:,} items; which is right is unknown."
        )
    verb, more, less, what = _words(endpoint, measure)
    value, low, high = difference["value"], difference["low"], difference["high"]
    as_points = endpoint != "stage" and measure in ("exact", "balanced")
    size, digits = (100.0, 0) if as_points else (1.0, 2)

    def number(share: float, sign: str = "") -> str:
        text = f"{share * size:{sign}.{digits}f}"
        return text.lstrip("+-") if not float(text) else text

    unit = " stages" if endpoint != "stage" and measure == "error" else ""
    if as_points:
        unit = " point" if number(abs(value)) == "1" else " points"

    items = f"{difference['n']:,} item{'s' if difference['n'] != 1 else ''}"
    scale = "" if endpoint != "stage" else ", where 0 is the first stage and 1 the last"
    direction = f"{verb} {number(abs(value))}{unit} {more if value > 0 else less} {b}"
    if endpoint != "stage" and measure != "exact":
        direction += f" in {what}"
    if low is None or high is None:
        start = f"{a} and {b} are not told apart: {items}, and an interval needs {MIN_CLUSTERS}."
        return f"{start} So far {a} {direction}{scale}." if number(value) != "0" else start
    if low <= 0 <= high:
        return (
            f"{a} and {b} are not told apart in {what}: A minus B is {number(value, '+')}{unit}, "
            f"95 % interval {number(low, '+')} to {number(high, '+')} ({items}){scale}."
        )
    ends = sorted((abs(low), abs(high)))
    interval = f"95 % interval {number(ends[0])} to {number(ends[1])}"
    return f"{a} {direction}, {interval} ({items}){scale}."


def _words(endpoint: Endpoint, measure: Decider) -> tuple[str, str, str, str]:
    """Returns the verb, what a difference above and below 0 is called, and what is compared."""
    if endpoint == "stage" or measure == "exact":
        what = {"accuracy": "accuracy", "agreement": "agreement with people"}.get(endpoint, "stage")
        return *WORDS[endpoint], what
    directions = ("better than", "worse than")
    better, worse = directions[::-1] if measure in LOWER_IS_BETTER else directions
    return "is", better, worse, MEASURES[measure]


def stage_sentence(contrast: Contrast, stage: Quantity | None, a: str, b: str) -> str:
    """Returns how far apart mean stages are, beside a sentence on quality; empty if it is that."""
    if contrast.endpoint in (None, "stage") or stage is None:
        return ""
    found = Contrast("stage", stage)
    return comparison_sentence(found, a, b, judged_by_both=stage["n"], differing=0)


def stage_difference(a: pd.DataFrame, b: pd.DataFrame) -> Quantity | None:
    """Returns the mean stage of A minus that of B, over items that both scored, by cluster.

    Options of a nominal rubric have no mean stage.
    """
    left, right = _stages(a), _stages(b)
    shared = left.index.intersection(right.index)
    if shared.empty:
        return None
    stages = np.column_stack([side.loc[shared, "stage"].to_numpy(float) for side in (left, right)])
    clusters = pd.factorize(left.loc[shared, "cluster"])[0]
    mean = compare(stages, clusters, against=1).differences[0]
    return None if mean is None else as_quantity(mean)


def _stages(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean stage and the cluster of each item."""
    scored = rows[(rows["status"] == "scored") & (rows["rubric_kind"] == "ordinal")]
    scored = once_per_call(scored, UNIT[:1])
    names = scored["evidence"].astype(str)
    if "cluster" in scored:
        given = scored["cluster"].astype("str").fillna("")
        names = names.where(given == "", "cluster " + given)
    placed = scored.assign(stage=positions(scored), cluster=names)
    return placed.groupby(UNIT, observed=True).agg(
        stage=("stage", "mean"), cluster=("cluster", "first")
    )


def differing_items(
    a: pd.DataFrame, b: pd.DataFrame, stage_names: Mapping[str, Sequence[str]]
) -> tuple[int, list[ComparedItem]]:
    """Returns how many items both judged, and those whose usual verdicts differ.

    Args:
        a: the samples of A.
        b: the samples of B.
        stage_names: the names of the stages of experiments with a given rubric, by tag.
    """
    sides = [_verdicts(rows, stage_names) for rows in (a, b)]
    shared = [key for key in sides[0] if key in sides[1]]
    places = [_stages(rows)["stage"].to_dict() for rows in (a, b)]
    found: list[ComparedItem] = []
    for key in shared:
        left, right = sides[0][key], sides[1][key]
        if left.usual == right.usual:
            continue
        ordered = key in places[0] and key in places[1]
        found.append(
            {
                "concept": key[0],
                "task": left.task,
                "evidence": key[1],
                "title": left.title,
                "a": left.text,
                "b": right.text,
                "tag_a": left.tag,
                "tag_b": right.tag,
                "truth": left.truth,
                "gap": abs(places[0][key] - places[1][key])
                if ordered
                else _gap(left.counts, right.counts),
            }
        )
    found.sort(key=lambda item: (-item["gap"], item["title"]))
    return len(shared), found


class _Verdicts(NamedTuple):
    """What a setup said about an item."""

    title: str
    task: str
    tag: str
    truth: str | None
    counts: Counter[str]

    @property
    def usual(self) -> str:
        return self.counts.most_common(1)[0][0]

    @property
    def text(self) -> str:
        [(verdict, times)] = self.counts.most_common(1)
        total = self.counts.total()
        return verdict if times == total else f"{verdict}, {times} of {total}"


def _verdicts(
    rows: pd.DataFrame, stage_names: Mapping[str, Sequence[str]]
) -> dict[tuple[str, Any], _Verdicts]:
    asked = rows[rows["status"] != "provider_error"]
    found = {}
    for (concept, evidence), part in asked.groupby(UNIT, sort=False, observed=True):
        first = part.iloc[0]
        names = stage_names.get(str(first["tag"]), ())
        truth = pd.to_numeric(first["truth"], errors="coerce")
        counts = Counter(
            _stage(str(stages), names) if status == "scored" else str(status).replace("_", " ")
            for status, stages in zip(part["status"], part["stages"], strict=True)
        )
        known = None if pd.isna(truth) else _stage(str(int(truth)), names)
        title = str(first["evidence_title"]) if "evidence_title" in part else str(evidence)
        found[str(concept), evidence] = _Verdicts(
            title, str(first["task"]), str(first["tag"]), known, counts
        )
    return found


def _stage(stages: str, names: Sequence[str]) -> str:
    numbers = [int(stage) for stage in stages.split()]
    named = all(number <= len(names) for number in numbers)
    return " or ".join(names[n - 1] if named else f"stage {n}" for n in numbers)


def _gap(left: Counter[str], right: Counter[str]) -> float:
    """Returns the distance of two distributions in total variation."""
    kinds = {*left, *right}
    return 0.5 * sum(abs(left[k] / left.total() - right[k] / right.total()) for k in kinds)
