"""Validity checks on the instrument: each passes, fails, is undecided or lacks data.

A check passes if its 95 % interval lies wholly on the right side of its threshold, fails if it lies
wholly on the wrong side, and is undecided if the interval contains the threshold or is unknown.
What the blueprint names beside a check is shown with its interval, and decides nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import accuracy, positions
from judge_gym.analysis.frames import (
    CELL,
    ITEM,
    JUDGE,
    PANEL,
    clusters_of,
    first_replicates,
    once_per_call,
    own_rows,
    select_rows,
)
from judge_gym.analysis.judges.pair_frames import pair_table
from judge_gym.analysis.metrics.accuracy import ground_truth
from judge_gym.analysis.metrics.conflict import conflict_by_item
from judge_gym.analysis.panels import distances_without_draws, item_distances, panels, per_item
from judge_gym.analysis.stats.clusters import MIN_FREEDOM, Codes, ErrorPart, cluster_robust
from judge_gym.analysis.stats.intervals import (
    Estimate,
    Estimator,
    draw_part,
    estimate_over_items,
    half_width,
    pseudo_values,
    skewed,
    undefined,
    variances,
    without_each_draw,
)
from judge_gym.errors import DesignError, unknown

MIN_ITEMS = 5
MIN_CONCEPTS, MIN_DOSES = 6, 3
"""The numbers from which the dose-response is about concepts in general."""
UNDECIDED, LACKING = "undecided", "lacks data"
DESCRIPTIVE = "descriptive"
"""The result of what is shown beside a check and decides nothing."""
PUBLISHED = "o1-mini has 0.657 on JudgeBench"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits at which checks pass."""

    control: float = 0.1
    """The squared distance of judges on controls is below it."""
    effective: float = 0.5
    """At least this share of verdicts on controls is scored: abstaining is not agreement."""
    dose: float = 0.0
    """The slope of the distance over the dose (how contested a concept is) is above it."""
    benchmark: float = 0.6
    """The accuracy on benchmarks is above it."""
    consistency: float = 0.056
    """The variance over replicates, on a scale from 0 to 1, is below it: 0.5 on four stages."""

    @staticmethod
    def of(given: Mapping[str, float]) -> "Thresholds":
        """Returns the defaults, with some replaced by name."""
        names = [field.name for field in fields(Thresholds)]
        for name, value in given.items():
            if name not in names:
                raise DesignError(unknown("gate", name, names), choices=names)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise DesignError(f"gate {name} must be a number, not {value!r}")
        return Thresholds(**given)


DEFAULTS = Thresholds()


def validity(frame: pd.DataFrame, thresholds: Thresholds = DEFAULTS) -> pd.DataFrame:
    """Runs the checks on a tidy frame: check, criterion, value, low, high, items, result, note."""
    own = own_rows(frame)
    return pd.DataFrame([check(own, thresholds) for check in CHECKS])


def _discriminant_control(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    controls = frame[frame["task_type"] == "control"]
    name, rule = "discriminant control", f"squared distance on controls below {limits.control:g}"
    if controls.empty:
        return _row(name, rule, undefined(), LACKING, "no task of type control")
    scored = float((once_per_call(controls, [JUDGE])["status"] == "scored").mean())
    found = _distance(controls)
    if scored < limits.effective:
        note = f"only {scored:.0%} of verdicts are scored: abstaining is not agreement"
        return _row(name, rule, found, "fail", note)
    return _row(name, rule, found, _below(found, limits.control), f"{scored:.0%} scored")


def _control_conflict(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    """Describes k of every two judges on controls; k of more would grow with their number."""
    name, rule = "control: conflict k", "k of two judges (equal fan-in), near that of one alone"
    once = once_per_call(frame[frame["task_type"] == "control"], [JUDGE])
    found = _mean_over_items(once, PANEL, _pairwise_k, skewed)
    if not found.n:
        return _row(name, rule, found, LACKING, "needs two judges with repeats on controls")
    alone = _conflict(once, "own").mean()
    note = f"a judge's k with itself: {alone:.3f}; k is no distance, and the distance decides"
    return _row(name, rule, found, DESCRIPTIVE, note)


def _control_reference(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    """Describes how far the mean verdict on controls is from a reference value, such as an index.

    The value is about the country, not about one article: only means over items are compared.
    """
    name = "control: error against reference"
    rule = "mean stage minus the reference value, scale 0 to 1"
    errors = ground_truth(frame[frame["task_type"] == "control"])
    errors = errors[errors["measure"] == "error"]
    if errors.empty:
        return _row(name, rule, undefined(), LACKING, "no control with a reference value")
    worst = errors.sort_values("mean", key=abs).iloc[-1]
    found = Estimate(worst["mean"], worst["low"], worst["high"], int(worst["items"]))
    note = f"the judge with the largest error, {worst[JUDGE]}; the distance decides"
    return _row(name, rule, found, DESCRIPTIVE, note)


def _mean_over_items(
    frame: pd.DataFrame,
    by: Sequence[str],
    values: Callable[[pd.DataFrame], pd.Series],
    estimate: Estimator,
) -> Estimate:
    """Returns the mean over items of a value by item, with an interval that covers draws too."""
    whole = values(frame)
    without = [
        part.reindex(whole.index).to_numpy(float)
        for part in without_each_draw(frame, by, values, keep_others=True).values()
    ]
    clusters = clusters_of(frame, whole.index)
    return estimate_over_items(estimate, whole.to_numpy(float), without, clusters)


def _pairwise_k(frame: pd.DataFrame) -> pd.Series:
    return _conflict(frame, "pairwise")


def _conflict(frame: pd.DataFrame, kind: str) -> pd.Series:
    """Returns a kind of conflict by item, averaged over panels."""
    parts = [pd.Series(conflict_by_item(panel)[kind], panel.evidence) for panel in panels(frame)]
    known = pd.concat(parts).dropna() if parts else pd.Series(dtype=float)
    return known.groupby(level=0).mean()


def _dose_response(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    name, rule = "dose-response", f"slope of the distance over the dose above {limits.dose:g}"
    dosed = frame[frame["dose"].notna()]
    if dosed["dose"].nunique() < 2:
        return _row(name, rule, undefined(), LACKING, "needs tasks of two doses")
    once, by = once_per_call(dosed, [JUDGE]), ["dose", "concept", *PANEL]
    distances = item_distances(once, by)
    found, *without = (
        per_item(part, ["dose"]) for part in (distances, *distances_without_draws(once, by))
    )
    means = found.groupby(level="dose").mean()
    if len(means) < 2:
        return _row(name, rule, undefined(), LACKING, "needs distances at two doses: 2 repeats")
    note = "; ".join(f"dose {dose:g}: {mean:.3f}" for dose, mean in means.items())
    concepts = per_item(distances, ["dose", "concept"]).groupby(level=["dose", "concept"]).mean()
    if len(concepts) >= MIN_CONCEPTS and len(means) >= MIN_DOSES:
        slope = _slope_over_concepts(concepts)
        note += f"; over {len(concepts)} concepts"
    else:
        items = found.reset_index()
        clusters = clusters_of(dosed, pd.Index(items["evidence"]))
        slope = _slope(items, [part.reindex(found.index) for part in without], clusters)
        note += f"; on these {len(concepts)} concepts, pools and rubrics"
    return _row(name, rule, slope, _above(slope, limits.dose), note)


def _external_benchmark(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    name, rule = "external benchmark", f"accuracy above {limits.benchmark:g}"
    known = frame[pd.to_numeric(frame["truth"], errors="coerce").notna()]
    rows = _known_answers(known)
    if rows.empty:
        return _row(name, rule, undefined(), LACKING, "no benchmark with known answers")
    worst = rows.sort_values("mean").iloc[0]
    found = Estimate(worst["mean"], worst["low"], worst["high"], int(worst["items"]))
    note = f"the weakest judge, {worst[JUDGE]}; {PUBLISHED}"
    return _row(name, rule, found, _above(found, limits.benchmark), note)


def _consistency(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    name = "internal consistency"
    rule = f"variance over replicates, scale 0 to 1, below {limits.consistency:g}"
    ordinal = select_rows(frame, frame["rubric_kind"] == "ordinal")
    controls = ordinal[ordinal["task_type"] == "control"]
    used = ordinal if controls.empty else controls
    once = first_replicates(once_per_call(used, [JUDGE]))
    found = _mean_over_items(once, CELL, _variance, variances)
    note = "on controls" if len(controls) else "no controls: on all ordinal tasks"
    return _row(name, rule, found, _below(found, limits.consistency), note)


def _variance(frame: pd.DataFrame) -> pd.Series:
    """Returns by item the variance over replicates under one rubric, averaged over cells."""
    places = pd.Series(positions(frame), index=frame.index)
    keys = [*ITEM, "rubric", "flipped"]
    found = places.groupby([frame[name] for name in keys], observed=True).var(ddof=1).dropna()
    return found.groupby(level=ITEM).mean().groupby(level="evidence").mean()


def _distance(frame: pd.DataFrame) -> Estimate:
    """Returns the mean squared distance of judges over items."""
    once = once_per_call(frame, [JUDGE])
    values = per_item(item_distances(once, PANEL))
    without = [
        per_item(part).reindex(values.index).to_numpy(float)
        for part in distances_without_draws(once, PANEL)
    ]
    clusters = clusters_of(frame, values.index)
    return estimate_over_items(
        skewed, values.to_numpy(float), without, clusters, mean_over_draws=False
    )


CHECKS: tuple[Callable[[pd.DataFrame, Thresholds], dict[str, object]], ...] = (
    _discriminant_control,
    _control_conflict,
    _control_reference,
    _dose_response,
    _external_benchmark,
    _consistency,
)


def _known_answers(known: pd.DataFrame) -> pd.DataFrame:
    """Returns the accuracy of each judge, for pairs over both orders."""
    pairs = pair_table(known[known["pair"]], CELL)
    if len(pairs):
        pairs = pairs.rename(columns={"accuracy": "mean", "n": "items"})
    return pd.concat([pairs, accuracy(known[~known["pair"]], CELL)], ignore_index=True)


def _slope_over_concepts(means: pd.Series) -> Estimate:
    """Returns the slope of concepts' mean distances over the dose, with t of concepts - 2."""
    dose = means.index.get_level_values("dose").to_numpy(dtype=float)
    gap, n = dose - dose.mean(), len(dose)
    value = float(gap @ means.to_numpy() / (gap @ gap))
    rest = means.to_numpy() - means.mean() - value * gap
    half = half_width([ErrorPart(float(np.sqrt(rest @ rest / (n - 2) / (gap @ gap))), n - 2)])
    return Estimate(value, value - half, value + half, n)


def _slope(
    found: pd.DataFrame, without: Sequence[pd.Series], clusters: Codes | None = None
) -> Estimate:
    """Returns the slope of the distance over the dose, with errors clustered on items.

    `clusters` has the number of each row's cluster, by default its item; `without` has the
    distances without each draw of rubrics, in the same order.
    """
    items = pd.factorize(found["evidence"])[0].astype(np.int64)
    count = int(items.max()) + 1
    dose = found["dose"].to_numpy(dtype=float)
    matrix = np.column_stack([np.ones(len(dose)), dose])
    distance = found["distance"].to_numpy(dtype=float)
    fitted = cluster_robust(distance, matrix, items if clusters is None else clusters)
    if fitted.freedoms[1] < MIN_FREEDOM:
        return undefined(count)
    parts = [ErrorPart(float(fitted.bse[1]), float(fitted.freedoms[1]))]
    if without:
        table = pseudo_values(found["distance"], np.stack(without))
        weight = (dose - dose.mean()) / ((dose - dose.mean()) ** 2).sum()
        # Tasks of different doses have different rubrics: each adds by its weight in the slope.
        for one in np.unique(dose):
            part = draw_part(table[:, dose == one], mean_over_draws=False)
            parts.append(part._replace(error=part.error * abs(float(weight[dose == one].sum()))))
    value, half = float(fitted.params[1]), half_width(parts)
    return Estimate(value, value - half, value + half, count)


def _row(check: str, criterion: str, found: Estimate, result: str, note: str) -> dict[str, object]:
    numbers = found.named("value", "low", "high", "items")
    return {"check": check, "criterion": criterion, **numbers, "result": result, "note": note}


def _below(found: Estimate, limit: float, *, below: str = "pass", above: str = "fail") -> str:
    """Returns the result of a check by the side of the limit that the whole interval is on."""
    if not np.isfinite(found.value):
        return LACKING
    if not found.known or found.n < MIN_ITEMS or found.low <= limit <= found.high:
        return UNDECIDED
    return below if found.high < limit else above


def _above(found: Estimate, limit: float) -> str:
    return _below(found, limit, below="fail", above="pass")
