"""The five validity checks on the instrument: each passes, fails, is undecided or lacks data.

A check passes if its 95 % interval lies wholly on the right side of its threshold, fails if it lies
wholly on the wrong side, and is undecided if the interval contains the threshold or is unknown; it
then says what would decide it. What the blueprint names beside the control is a table of its own,
`control_descriptions`, and decides nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from math import ceil

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.disagreement import squared_jousselme
from judge_gym.analysis.endpoints import positions
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
from judge_gym.analysis.measures.known_answers import known_answers
from judge_gym.analysis.stats.clusters import MIN_FREEDOM, Codes, ErrorPart, cluster_robust
from judge_gym.analysis.stats.intervals import (
    DISTANCE,
    MANY_ITEMS,
    SHARE,
    VARIANCE,
    Estimate,
    Scale,
    draw_part,
    estimate,
    half_width,
    pseudo_values,
    undefined,
    without_each_draw,
)
from judge_gym.analysis.verdicts import (
    Verdicts,
    distances_without_draws,
    item_distances,
    panels,
    per_item,
)
from judge_gym.errors import DesignError, unknown
from judge_gym.protocols.conflict import conflict_by_item
from judge_gym.protocols.reference_values import reference_errors
from judge_gym.records.numbers import percent

MIN_ITEMS = 5
MIN_CONCEPTS, MIN_DOSES = 6, 3
"""The numbers from which the dose-response is about concepts in general."""
UNDECIDED, LACKING, TOO_FEW = "undecided", "lacks data", "too few items"
EXACT = 1e-9
"""The largest difference of two ways to compute the same distance that is due to rounding."""


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
    """Runs the five checks. `needs` is what would decide one that is undecided."""
    samples = own_rows(frame)
    return pd.DataFrame([check(samples, thresholds) for check in CHECKS])


def control_descriptions(frame: pd.DataFrame) -> pd.DataFrame:
    """Describes controls beside their check: conflict k, and the error against a reference value.

    Without controls the table is empty.
    """
    controls = own_rows(frame)
    controls = controls[controls["task_type"] == "control"]
    if controls.empty:
        return pd.DataFrame()
    return pd.DataFrame([_control_conflict(controls), _control_reference(controls)])


def _discriminant_control(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    controls = frame[frame["task_type"] == "control"]
    name, rule = "discriminant control", f"squared distance on controls below {limits.control:g}"
    if controls.empty:
        return _row(name, rule, undefined(), LACKING, needs="a task of type control")
    scored = float((once_per_call(controls, [JUDGE])["status"] == "scored").mean())
    distance = _distance(controls)
    if scored < limits.effective:
        note = f"only {percent(scored)} of verdicts are scored: abstaining is not agreement"
        return _row(name, rule, distance, "fail", note=note)
    decision = _below(distance, limits.control, "two judges with two scored repeats", DISTANCE)
    return _row(name, rule, distance, *decision, note=f"{percent(scored)} scored")


def _control_conflict(controls: pd.DataFrame) -> dict[str, object]:
    """Describes k of every two judges on controls, as k of more grows with their number."""
    name, meaning = "conflict k", "k of two judges (equal fan-in); k is no distance"
    once = once_per_call(controls, [JUDGE])
    conflict = _mean_over_items(once, PANEL, _pairwise_k, DISTANCE)
    if not conflict.n:
        return _description(name, meaning, conflict, "needs two judges with repeats")
    alone = _conflict(once, "own").mean()
    return _description(name, meaning, conflict, f"a judge's k with itself: {alone:.3f}")


def _control_reference(controls: pd.DataFrame) -> dict[str, object]:
    """Describes how far the mean verdict on controls is from a reference value, such as an index.

    The value is about the country, not about one article: only means over items are compared.
    """
    name = "error against the reference"
    meaning = "mean stage minus the reference value, scale 0 to 1"
    errors = reference_errors(controls)
    if errors.empty:
        return _description(name, meaning, undefined(), "needs a reference value")
    worst = errors.sort_values("mean", key=abs).iloc[-1]
    error = Estimate(worst["mean"], worst["low"], worst["high"], int(worst["items"]))
    return _description(name, meaning, error, f"the judge with the largest error, {worst[JUDGE]}")


def _description(quantity: str, meaning: str, found: Estimate, note: str) -> dict[str, object]:
    numbers = found.named("value", "low", "high", "items")
    return {"quantity": quantity, "meaning": meaning, **numbers, "note": note}


def _mean_over_items(
    frame: pd.DataFrame,
    by: Sequence[str],
    values: Callable[[pd.DataFrame], pd.Series],
    scale: Scale,
) -> Estimate:
    """Returns the mean over items of a value by item, with an interval that covers draws too."""
    by_item = values(frame)
    without = [
        part.reindex(by_item.index).to_numpy(float)
        for part in without_each_draw(frame, by, values, keep_others=True).values()
    ]
    clusters = clusters_of(frame, by_item.index)
    return estimate(by_item.to_numpy(float), clusters, scale=scale, without=without)


def _pairwise_k(frame: pd.DataFrame) -> pd.Series:
    return _conflict(frame, "pairwise")


def _conflict(frame: pd.DataFrame, kind: str) -> pd.Series:
    """Returns a kind of conflict by item, averaged over panels."""
    parts = [pd.Series(conflict_by_item(panel)[kind], panel.units) for panel in panels(frame)]
    defined = pd.concat(parts).dropna() if parts else pd.Series(dtype=float)
    return defined.groupby(level=0).mean()


def _dose_response(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    name, rule = "dose-response", f"slope of the distance over the dose above {limits.dose:g}"
    dosed = frame[frame["dose"].notna()]
    if dosed["dose"].nunique() < 2:
        return _row(name, rule, undefined(), LACKING, needs="tasks of two doses")
    once, by = once_per_call(dosed, [JUDGE]), ["dose", "concept", *PANEL]
    distances = item_distances(once, by)
    by_dose, *without = (
        per_item(part, ["dose"]) for part in (distances, *distances_without_draws(once, by))
    )
    means = by_dose.groupby(level="dose").mean()
    if len(means) < 2:
        return _row(name, rule, undefined(), LACKING, needs="at two doses, two judges with repeats")
    note = "; ".join(f"dose {dose:g}: {mean:.3f}" for dose, mean in means.items())
    concepts = per_item(distances, ["dose", "concept"]).groupby(level=["dose", "concept"]).mean()
    if len(concepts) >= MIN_CONCEPTS and len(means) >= MIN_DOSES:
        slope = _slope_over_concepts(concepts)
        note += f"; over {len(concepts)} concepts"
    else:
        items = by_dose.reset_index()
        clusters = clusters_of(dosed, pd.Index(items["evidence"]))
        slope = _slope(items, [part.reindex(by_dose.index) for part in without], clusters)
        note += f"; on these {len(concepts)} concepts, pools and rubrics"
    return _row(name, rule, slope, *_above(slope, limits.dose, "distances"), note=note)


def _external_benchmark(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    name, rule = "external benchmark", f"accuracy above {limits.benchmark:g}"
    with_answers = frame[pd.to_numeric(frame["truth"], errors="coerce").notna()]
    rows = known_answers(with_answers, CELL)
    if rows.empty:
        return _row(name, rule, undefined(), LACKING, needs="a benchmark with known answers")
    worst = rows.sort_values("mean").iloc[0]
    accuracy = Estimate(worst["mean"], worst["low"], worst["high"], int(worst["items"]))
    note = f"the weakest judge, {worst[JUDGE]}"
    decision = _above(accuracy, limits.benchmark, "scored verdicts", SHARE)
    return _row(name, rule, accuracy, *decision, note=note)


def _consistency(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    name = "internal consistency"
    rule = f"variance over replicates, scale 0 to 1, below {limits.consistency:g}"
    ordinal = select_rows(frame, frame["rubric_kind"] == "ordinal")
    controls = ordinal[ordinal["task_type"] == "control"]
    used = ordinal if controls.empty else controls
    once = first_replicates(once_per_call(used, [JUDGE]))
    variance = _mean_over_items(once, CELL, _variance, VARIANCE)
    note = "on controls" if len(controls) else "no controls: on all ordinal tasks"
    decision = _below(variance, limits.consistency, "two scored repeats", VARIANCE)
    return _row(name, rule, variance, *decision, note=note)


def _variance(frame: pd.DataFrame) -> pd.Series:
    """Returns by item the variance over replicates under one rubric, averaged over cells."""
    places = pd.Series(positions(frame), index=frame.index)
    keys = [*ITEM, "rubric", "flipped"]
    variances = places.groupby([frame[name] for name in keys], observed=True).var(ddof=1).dropna()
    return variances.groupby(level=ITEM).mean().groupby(level="evidence").mean()


def _belief_functions(frame: pd.DataFrame, limits: Thresholds) -> dict[str, object]:
    """Compares distances of belief functions with plain ones, where each verdict is one stage.

    The squared Jousselme distance of two judges is then half the squared Euclidean distance of
    their shares of verdicts per stage, which are counted here without the belief functions.
    """
    name = "belief functions"
    rule = f"distances of single verdicts are those of plain counts, within {EXACT:g}"
    single = np.bitwise_count(frame["mask"]) == 1
    if "verdict.method" in frame:
        single &= frame["verdict.method"] == "single"
    parts = [_distance_errors(panel) for panel in panels(select_rows(frame, single))]
    errors = pd.concat(parts) if parts else pd.Series(dtype=float)
    if errors.empty:
        needs = "items that two judges scored with verdict.method single"
        return _row(name, rule, undefined(), LACKING, needs=needs)
    error = undefined(errors.index.nunique(), float(errors.max()))
    result = "pass" if error.value <= EXACT else "fail"
    note = f"the largest difference of {len(errors):,} distances"
    return _row(name, rule, error, result, note=note)


def _distance_errors(panel: Verdicts) -> pd.Series:
    """Returns by item and pair of judges how far both distances of single verdicts are apart."""
    stage = np.log2(panel.mask).astype(int)
    shares = np.zeros((*panel.size, panel.n_stages))
    np.add.at(shares, (panel.unit, panel.setup, stage), 1.0)
    counts = shares.sum(axis=-1, keepdims=True)
    shares /= np.maximum(counts, 1)
    parts = []
    for ours, theirs in combinations(range(len(panel.setups)), 2):
        items = np.flatnonzero((counts[:, [ours, theirs], 0] > 0).all(axis=1))
        plain = ((shares[items, ours] - shares[items, theirs]) ** 2).sum(axis=-1) / 2
        first = items * len(panel.setups)
        distances = squared_jousselme(panel.masses, first + ours, first + theirs)
        parts.append(pd.Series(abs(distances - plain), np.array(panel.units)[items]))
    return pd.concat(parts) if parts else pd.Series(dtype=float)


def _distance(frame: pd.DataFrame) -> Estimate:
    """Returns the mean squared distance of judges over items."""
    once = once_per_call(frame, [JUDGE])
    values = per_item(item_distances(once, PANEL))
    without = [
        per_item(part).reindex(values.index).to_numpy(float)
        for part in distances_without_draws(once, PANEL)
    ]
    clusters = clusters_of(frame, values.index)
    return estimate(
        values.to_numpy(float), clusters, scale=DISTANCE, without=without, mean_over_draws=False
    )


CHECKS: tuple[Callable[[pd.DataFrame, Thresholds], dict[str, object]], ...] = (
    _discriminant_control,
    _dose_response,
    _external_benchmark,
    _consistency,
    _belief_functions,
)


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
        for level in np.unique(dose):
            part = draw_part(table[:, dose == level], mean_over_draws=False)
            parts.append(part._replace(error=part.error * abs(float(weight[dose == level].sum()))))
    value, half = float(fitted.params[1]), half_width(parts)
    return Estimate(value, value - half, value + half, count)


def _row(
    check: str, criterion: str, found: Estimate, result: str, needs: str = "", note: str = ""
) -> dict[str, object]:
    decision = {"check": check, "result": result, "criterion": criterion}
    numbers = found.named("value", "low", "high", "items")
    return {**decision, **numbers, "needs": needs, "note": note}


def _below(found: Estimate, limit: float, data: str, scale: Scale) -> tuple[str, str]:
    """Decides a check whose quantity is to be below a limit, and says what it needs."""
    fewest = _fewest_items(lambda n: estimate(np.full(n, scale.low), scale=scale).high < limit)
    return _decide(found, limit, ("pass", "fail"), data, fewest)


def _above(found: Estimate, limit: float, data: str, scale: Scale | None = None) -> tuple[str, str]:
    """Decides a check whose quantity is to be above a limit, and says what it needs."""
    fewest = MIN_ITEMS
    if scale is not None:
        fewest = _fewest_items(lambda n: estimate(np.full(n, scale.high), scale=scale).low > limit)
    return _decide(found, limit, ("fail", "pass"), data, fewest)


def _fewest_items(passes: Callable[[int], bool]) -> int:
    """Finds the least number of items with which a perfect instrument passes, 0 if none."""
    return next(filter(passes, range(MIN_ITEMS, MANY_ITEMS)), 0)


def _decide(
    found: Estimate, limit: float, sides: tuple[str, str], data: str, fewest: int
) -> tuple[str, str]:
    """Returns the result by the side of the limit that the whole interval is on, and what it needs.

    `sides` are the results below and above the limit, and `data` is what there is no value without.
    """
    value, low, high, n = found[:4]
    if not np.isfinite(value):
        return LACKING, data
    if found.known and n >= MIN_ITEMS and not low <= limit <= high:
        return sides[0] if high < limit else sides[1], ""
    if not fewest:
        return UNDECIDED, "another threshold: not even a perfect instrument passes this one"
    if n < fewest:
        return TOO_FEW, f"{fewest} items"
    if not found.known:
        return UNDECIDED, "more items, or more clusters of items"
    gap, half = abs(value - limit), high - value if value < limit else value - low
    if gap * 1000 < half:
        return UNDECIDED, "another threshold: the estimate is at this one"
    return UNDECIDED, f"about {ceil(n * (half / gap) ** 2):,} items at this estimate"
