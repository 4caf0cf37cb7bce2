"""Declared contrasts of setups, how a mean over items is tested, and what becomes of a test.

Holm's two-sided p over all tests of a family below .05 makes a claim supported or, if the effect
has the opposite sign, contradicted. Otherwise it is equivalent if the study declared a margin and
two one-sided tests place the effect within it, and else undecided: a missing effect is never
concluded from a large p. A claim without data counts as p = 1 in the family.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.frames import (
    clusters_of,
    level_name,
)
from judge_gym.analysis.stats.clusters import Codes, ErrorPart, grouped_codes, scope
from judge_gym.analysis.stats.contrasts import UNAFFECTED, Sides, carried_by_few
from judge_gym.analysis.stats.intervals import (
    MANY_DRAWS,
    Estimate,
    Floats,
    difference,
    draw_part,
    estimate,
    half_width,
    item_error,
    p_value,
    pseudo_values,
    t_quantile,
    undefined,
)
from judge_gym.analysis.stats.paired_tests import holm
from judge_gym.analysis.verdicts import (
    Dataset,
    row_means,
)
from judge_gym.studies.declarations import (
    ENDPOINTS,
    NOTHING_DECLARED,
    ContrastSpec,
    Declarations,
)

ALPHA = 0.05
MIN_ITEMS = 5
FEW_ITEMS = 30
"""The number of items below which a declared contrast has the interval of a bounded mean: large
shifts of rare items are easily missed, and Student's t then supported contrasts that do not hold in
10 to 39 % of samples."""
RULE = (
    f"supported or contradicted if Holm's two-sided p over the table is below {ALPHA:g}, and "
    "negligible if the 90 % interval also lies within the declared margin; else equivalent if the "
    "effect lies within the margin by two one-sided tests; else undecided; at least "
    f"{MIN_ITEMS} items"
)


class HypothesisResult(NamedTuple):
    """An estimate, the p-value that corresponds to its interval, and a note for the reader."""

    estimate: Estimate
    p: float
    note: str
    parts: tuple[ErrorPart, ...] = ()
    """The components of the estimate's error."""
    scope: str = ""
    """What the claim is limited to; empty if it is about more than what was observed."""


class Tested(NamedTuple):
    """A hypothesis or a declared contrast, with its result."""

    key: str
    """What a study declares it by."""
    name: str
    claim: str
    estimand: str
    result: HypothesisResult
    directed: bool = True
    """Whether the claim is an effect above 0, or else any effect."""


def outcomes(tests: Sequence[Tested], declared: Declarations = NOTHING_DECLARED) -> pd.DataFrame:
    """Decides on the outcomes of tests that a reader sees together: they are one family.

    Effects smaller than the declared margin are negligible; without one, none is shown to be.
    """
    margin, results = declared.margin, [test.result for test in tests]
    p_values = [
        result.p if result.estimate.known and result.estimate.n >= MIN_ITEMS else np.nan
        for result in results
    ]
    corrected = holm(np.nan_to_num(p_values, nan=1.0))
    within = [
        equivalence_p(result, margin) if margin and np.isfinite(p) else 1.0
        for result, p in zip(results, p_values, strict=True)
    ]
    rows = []
    for test, p, adjusted, equivalent in zip(
        tests, p_values, corrected, holm(np.array(within)), strict=True
    ):
        tested, has_value = np.isfinite(p), np.isfinite(test.result.estimate.value)
        outcome = "undecided" if has_value else "no data"
        if tested:
            outcome = _outcome(test, adjusted, equivalent, margin)
        rows.append(
            {
                "hypothesis": test.name,
                "claim": _limited(test.claim, test.result.scope),
                "estimand": test.estimand,
                "rule": RULE,
                **test.result.estimate.named("value", "low", "high", "items"),
                "p": p,
                "holm": adjusted if tested else np.nan,
                "outcome": outcome,
                "scope": test.result.scope,
                "declared": declared.when(test.key),
                "note": test.result.note,
            }
        )
    return pd.DataFrame(rows)


def equivalence_p(result: HypothesisResult, margin: float) -> float:
    """Computes the p-value of two one-sided tests that an effect lies within the margin."""
    sides = []
    for inside in (margin + result.estimate.value, margin - result.estimate.value):
        p = p_value(inside, result.parts) / 2
        sides.append(p if inside > 0 else 1 - p)
    return max(sides)


def _outcome(test: Tested, adjusted: float, equivalent: float, margin: float | None) -> str:
    """Decides the outcome of a hypothesis that could be tested."""
    value = test.result.estimate.value
    if adjusted < ALPHA:
        reach = half_width(test.result.parts, 1 - 2 * ALPHA)
        side = "supported" if value > 0 or not test.directed else "contradicted"
        return f"{side}, negligible" if margin and abs(value) + reach < margin else side
    return "equivalent" if margin and equivalent < ALPHA else "undecided"


def _limited(claim: str, scope: str) -> str:
    """Begins a claim with what it is limited to."""
    return f"{scope.capitalize()}, {claim[0].lower()}{claim[1:]}" if scope else claim


def contrast_tests(data: Dataset, declared: Sequence[ContrastSpec]) -> list[Tested]:
    """Tests each declared contrast over all tasks, judges and designs that differ in it alone."""
    if not declared:
        return []
    sides = data.derive(Sides, ENDPOINTS)
    return [_contrast_test(sides, contrast) for contrast in declared]


def _contrast_test(sides: Sides, contrast: ContrastSpec) -> Tested:
    """Tests level minus base, with an item's difference averaged over what is matched.

    A contrast that expects a lower level is tested as base minus level.
    """
    sign = -1 if contrast.expect == "lower" else 1
    column = ENDPOINTS.index(contrast.endpoint)
    level, base = level_name(contrast.level), level_name(contrast.base)
    pairs = sides.matched(contrast.knob, level, base)

    def differences(without: int | None = None) -> pd.Series:
        parts = [
            pd.Series(sides.differences([pair], without)[0, :, column], sides.items[pair[0][0]])
            for pair in pairs
        ]
        return sign * pd.concat(parts).dropna().groupby(level=0).mean()

    result = no_result("no two experiments differ in this alone, with the same displays")
    if pairs:
        gaps = differences()
        draw_values = values_by_draw(gaps, [differences(draw) for draw in sides.draws(pairs)])
        clusters = clusters_of(sides.frame, gaps.index)
        result = one_sample(gaps, draw_values, clusters, alike=len(gaps) < FEW_ITEMS)
        carriers = carried_by_few(gaps.to_numpy(), result.estimate, result.p)
        calls = "probe_call_id" if contrast.endpoint == "probability" else "call_id"
        shared = sides.shared_calls(pairs, calls) == 1
        tasks, judges = (len({pair[0][part] for pair in pairs}) for part in (0, 2))
        scope = [f"{tasks} tasks" if tasks > 1 else "", f"{judges} judges" if judges > 1 else ""]
        mean = " and ".join(filter(None, scope))
        notes = [mean and f"mean over {mean}", UNAFFECTED if shared else result.note, carriers]
        result = result._replace(note="; ".join(filter(None, notes)))
    verb = {"higher": "is higher than", "lower": "is lower than", None: "differs from"}
    return Tested(
        key=contrast.name,
        name=contrast.name,
        claim=f"{contrast.knob} {level} {verb[contrast.expect]} {base} in {contrast.endpoint}.",
        estimand=f"{contrast.endpoint}, {'base minus level' if sign < 0 else 'level minus base'}",
        result=result,
        directed=contrast.expect is not None,
    )


def values_by_draw(whole: pd.Series, without: Sequence[pd.Series]) -> Floats | None:
    """Computes pseudo-values by draw and item, or None if draws are few."""
    if not without:
        return None
    return pseudo_values(whole, np.stack([draw.reindex(whole.index) for draw in without]))


def one_sample(
    values: npt.ArrayLike,
    draws: npt.ArrayLike | None = None,
    clusters: Codes | None = None,
    *,
    mean_over_draws: bool = False,
    alike: bool = False,
) -> HypothesisResult:
    """Tests a mean over items by Student's t, from five draws of rubrics on of draws too.

    `draws` are the contributions of draws of rubrics, by draw and item; `alike` is whether what is
    compared is the same on most items. Items in clusters have CR2 errors; with too few clusters
    there is no test, and the scope says so.
    """
    sides = [np.asarray(values, dtype=float)]
    return _tested(sides, [draws], [clusters], mean_over_draws, partial(_error, alike=alike))


def two_samples(
    ours: npt.ArrayLike, theirs: npt.ArrayLike, clusters: Sequence[Codes | None] = (None, None)
) -> HypothesisResult:
    """Tests the difference of two means over different items by Welch's t, and of draws too.

    A side is one value per item, or a table of draws by items; `clusters` has those of each side.
    """
    tables = [np.atleast_2d(np.asarray(side, dtype=float)) for side in (ours, theirs)]
    # The values of a side may be means of concepts, to which the scale of items does not apply.
    return _tested([row_means(table.T) for table in tables], tables, clusters, True, item_error)


def _tested(
    sides: Sequence[Floats],
    draws: Sequence[npt.ArrayLike | None],
    clusters: Sequence[Codes | None],
    mean_over_draws: bool,
    error: Callable[[Floats, Codes | None], ErrorPart],
) -> HypothesisResult:
    """Tests the mean of the first side, minus that of a second if there is one."""
    both = list(zip(sides, clusters, strict=True))
    codes = [grouped_codes(codes_of_group, ~np.isnan(values)) for values, codes_of_group in both]
    scopes = [scope(values, codes_of_group) for values, codes_of_group in both]
    limit, _, within = next(filter(None, scopes), "").partition(", ")
    means = [values[~np.isnan(values)] for values in sides]
    counts = [len(values) for values in means]
    has_all = min(counts) > 0
    value = float(means[0].mean() - sum(other.mean() for other in means[1:])) if has_all else np.nan
    if min(counts) < 2 or all(np.ptp(values) == 0 for values in means):
        return HypothesisResult(
            undefined(sum(counts), value), np.nan, "too few items, or no variance"
        )
    errors = [
        error(values, codes_of_group) for values, codes_of_group in zip(means, codes, strict=True)
    ]
    squares = [part.error**2 for part in errors]
    if limit:
        return HypothesisResult(undefined(sum(counts), value), np.nan, within, scope=limit)
    # Welch's degrees of freedom; for one side, its own.
    lost = sum(part.error**4 / part.freedom for part in errors)
    parts = [ErrorPart(float(np.sqrt(sum(squares))), sum(squares) ** 2 / lost)]
    tables = [np.asarray(table, dtype=float) for table in draws if table is not None]
    parts += [
        draw_part(table, mean_over_draws=mean_over_draws)
        for table in tables
        if len(table) >= MANY_DRAWS
    ]
    half = half_width(parts)
    interval = Estimate(value, value - half, value + half, sum(counts))
    return HypothesisResult(interval, p_value(value, parts), "", tuple(parts))


def _error(values: Floats, clusters: Codes | None, *, alike: bool) -> ErrorPart:
    """Derives the error that belongs to the longer side of the interval of a mean over items.

    Where most items are alike, that is more than the standard error.
    """
    error, freedom = item_error(values, clusters)
    mean = estimate(values, clusters, scale=difference(1, cautious=alike))
    if mean.known:
        side = max(mean.high - mean.value, mean.value - mean.low)
        error = max(error, side / float(t_quantile(freedom)))
    return ErrorPart(error, freedom)


def no_result(what: str) -> HypothesisResult:
    """Says why a test has no result."""
    return HypothesisResult(undefined(), np.nan, what)
