"""Uncertainty from the draw of rubrics: how an estimate would change with other rubrics.

From five draws on, an interval has a component for items and one for draws, and a result holds
beyond the rubrics drawn. With fewer draws, it holds for these rubrics only.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from judge_gym.analysis.stats.intervals import LEVEL, Estimate, Floats, share, skewed, t_quantile

MANY_DRAWS = 5
"""The number of draws of rubrics from which a result holds beyond these rubrics."""
Result = TypeVar("Result")


class ErrorPart(NamedTuple):
    """A component of a standard error, with its degrees of freedom."""

    error: float
    freedom: float


def draw_part(table: npt.ArrayLike, *, mean_over_draws: bool = True) -> ErrorPart:
    """Returns the error component that draws of rubrics add to a mean over items.

    Args:
        table: values by draw and item; items that lack a draw are left out. For a statistic that
            is not a mean over draws, its pseudo-values.
        mean_over_draws: whether the values are means over draws. Then the interaction of draw and
            item, which the error over items already contains, is subtracted.
    """
    known = np.asarray(table, dtype=float)
    known = known[:, ~np.isnan(known).any(axis=0)]
    draws, items = known.shape
    if items < 2:
        return ErrorPart(np.nan, draws - 1)
    by_draw = known.mean(axis=1, keepdims=True)
    interaction = 0.0
    if mean_over_draws:
        rest = known - by_draw - known.mean(axis=0) + known.mean()
        interaction = float((rest**2).sum()) / ((draws - 1) * (items - 1)) / items
    variance = max(0.0, by_draw.var(ddof=1) - interaction)
    return ErrorPart(float(np.sqrt(variance / draws)), draws - 1)


def pseudo_values(whole: npt.ArrayLike, without: npt.ArrayLike) -> Floats:
    """Returns jackknife pseudo-values by draw and item, from the values without each draw.

    >>> pseudo_values([2.0], [[3.0], [1.0]]).tolist()  # of a mean, the draws themselves
    [[1.0], [3.0]]
    """
    lacking = np.asarray(without, dtype=float)
    found: Floats = len(lacking) * np.asarray(whole, dtype=float) - (len(lacking) - 1) * lacking
    return found


def half_width(parts: Sequence[ErrorPart], level: float = LEVEL) -> float:
    """Returns half the width of an interval whose error has several components."""
    errors, freedoms = np.array(parts, dtype=float).T
    return float(np.hypot.reduce(t_quantile(freedoms, level) * errors))


def p_value(value: float, parts: Sequence[ErrorPart]) -> float:
    """Returns the two-sided p-value that corresponds to the interval of `half_width`."""
    from scipy.optimize import brentq

    errors, freedoms = np.array(parts, dtype=float).T
    if not np.isfinite(half_width(parts)) or not errors.any():
        return np.nan

    def beyond(log_p: float) -> float:
        reach = np.hypot.reduce(-special.stdtrit(freedoms, np.exp(log_p) / 2) * errors)
        return float(reach - abs(value))

    least = -200.0
    return float(np.exp(brentq(beyond, least, 0.0) if beyond(least) > 0 else least))


def widened_by_draws(
    found: Estimate, table: npt.ArrayLike, *, mean_over_draws: bool = True, squared: bool = False
) -> Estimate:
    """Returns an estimate over items with an interval that covers the draws too.

    Args:
        found: the estimate, with its interval over items.
        table: as for `draw_part`.
        mean_over_draws: as for `draw_part`.
        squared: whether the value is a square, whose error grows with it, so that the interval
            is symmetric for its root.
    """
    more = half_width([draw_part(table, mean_over_draws=mean_over_draws)])
    # If the root of v has the error m / (2 root), its square reaches to v ± m + m^2 / (4 v).
    bend = more**2 / (4 * max(found.value, more)) if squared and more > 0 else 0.0
    low = np.hypot(found.value - found.low, more - bend)
    high = np.hypot(found.high - found.value, more + bend)
    return found._replace(low=float(found.value - low), high=float(found.value + high))


Estimator = Callable[[Floats], Estimate]
"""Maps one value per item (missing ones are not a number) to their mean with its interval."""


def estimate_over_items(
    estimate: Estimator, whole: Floats, without: Sequence[Floats], *, mean_over_draws: bool = True
) -> Estimate:
    """Returns a mean over items, with an interval over items and, if there are many, draws.

    Args:
        estimate: computes the mean and its interval over items.
        whole: one value per item.
        without: the same values without each of the draws in turn; empty if draws are few.
        mean_over_draws: whether the values are means over draws. Comparisons of judges are not:
            there draws multiply, of which pseudo-values capture the first order only, and what
            they miss is as large as the interaction that `draw_part` would subtract.
    """
    found = estimate(whole)
    if not without:
        return found
    # Distances between judges are squares, and skewed over items as squares are.
    found = widened_by_draws(
        found,
        pseudo_values(whole, np.stack(without)),
        mean_over_draws=mean_over_draws,
        squared=not mean_over_draws and estimate is skewed,
    )
    return found.clipped(0.0, 1.0) if estimate is share else found


def without_each_draw(
    frame: pd.DataFrame,
    by: Sequence[str],
    analysis: Callable[[pd.DataFrame], Result],
    *,
    keep_others: bool = False,
) -> dict[int, Result]:
    """Applies an analysis to the samples without each draw of rubrics in turn, by draw.

    Args:
        frame: samples. Groups with many draws, this one among them, are passed on without it.
        by: the columns that define a group, such as task, variant and judge.
        analysis: what is computed from the remaining samples.
        keep_others: whether all other groups are passed on too, for averages over groups.

    Returns:
        The results by draw; empty if draws are few.
    """
    if "rubric_draw" not in frame or frame["rubric_draw"].nunique() < MANY_DRAWS:
        return {}
    draw = frame["rubric_draw"].to_numpy()
    group = frame.groupby(list(by), observed=True).ngroup().to_numpy()
    has = pd.crosstab(group, draw).to_numpy() > 0
    many = has.sum(axis=1) >= MANY_DRAWS
    return {
        int(one): analysis(frame[np.where((many & has[:, place])[group], draw != one, keep_others)])
        for place, one in enumerate(np.unique(draw))
        if (many & has[:, place]).any()
    }
