"""Draws of rubrics: what another draw would have done to an estimate over items.

From five draws on, what is found holds beyond the rubrics drawn: an interval has a part for the
items and one for the draws, each a block. With fewer, it is of these rubrics.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize, stats

from judge_gym.analysis.stats.intervals import LEVEL, Estimate, Floats, share, skewed

DRAWS_FOR_BLOCKS = 5
"""Draws of rubrics from which what is found holds beyond these rubrics."""
Made = TypeVar("Made")


class Part(NamedTuple):
    """A part of a standard error, and the degrees of freedom that it is known by."""

    error: float
    freedom: float


def draw_part(table: npt.ArrayLike, *, apart: bool = True) -> Part:
    """What the draws of a block add to the error of a mean over items.

    Args:
        table: draws by items; items that lack a draw are left out. Of what is no mean over draws,
            pseudo-values.
        apart: whether what draw and item do together is taken off: the error over items holds it,
            and of a mean it must not count twice.
    """
    known = np.asarray(table, dtype=float)
    known = known[:, ~np.isnan(known).any(axis=0)]
    draws, items = known.shape
    if items < 2:
        return Part(np.nan, draws - 1)
    by_draw = known.mean(axis=1, keepdims=True)
    rest = known - by_draw - known.mean(axis=0) + known.mean()
    both = float((rest**2).sum()) / ((draws - 1) * (items - 1)) / items if apart else 0.0
    return Part(float(np.sqrt(max(0.0, by_draw.var(ddof=1) - both) / draws)), draws - 1)


def pseudo_values(whole: npt.ArrayLike, without: npt.ArrayLike) -> Floats:
    """What each draw adds to a value by item, from the values without it: draws by items.

    >>> pseudo_values([2.0], [[3.0], [1.0]]).tolist()  # of a mean, the draws themselves
    [[1.0], [3.0]]
    """
    lacking = np.asarray(without, dtype=float)
    found: Floats = len(lacking) * np.asarray(whole, dtype=float) - (len(lacking) - 1) * lacking
    return found


def half_width(parts: Sequence[Part], level: float = LEVEL) -> float:
    """Half an interval whose error has several parts, each with its own Student's t."""
    errors, freedoms = np.array(parts, dtype=float).T
    return float(np.hypot.reduce(stats.t.ppf((1 + level) / 2, freedoms) * errors))


def p_of(value: float, parts: Sequence[Part]) -> float:
    """The two-sided p-value that belongs to such an interval."""
    errors, freedoms = np.array(parts, dtype=float).T
    if not np.isfinite(half_width(parts)) or not errors.any():
        return np.nan

    def beyond(log_p: float) -> float:
        far = np.hypot.reduce(stats.t.isf(np.exp(log_p) / 2, freedoms) * errors)
        return float(far - abs(value))

    least = -200.0
    return float(np.exp(optimize.brentq(beyond, least, 0.0) if beyond(least) > 0 else least))


def over_draws(
    found: Estimate, table: npt.ArrayLike, *, apart: bool = True, square: bool = False
) -> Estimate:
    """An estimate over items whose interval allows for the draws too.

    Args:
        found: the estimate, with its interval over items.
        table: as for `draw_part`.
        apart: likewise.
        square: whether it grows like a square, whose error grows with it; that of the root does
            not.
    """
    more = half_width([draw_part(table, apart=apart)])
    # Where the root of v has the error m / (2 root), its square reaches to v ± m + m^2 / (4 v).
    bend = more**2 / (4 * max(found.value, more)) if square and more > 0 else 0.0
    low = np.hypot(found.value - found.low, more - bend)
    high = np.hypot(found.high - found.value, more + bend)
    return found._replace(low=float(found.value - low), high=float(found.value + high))


Estimator = Callable[[Floats], Estimate]
"""From a value per item, not a number where there is none, to their mean with its interval."""


def estimated(
    estimate: Estimator, whole: Floats, without: Sequence[Floats], *, apart: bool = True
) -> Estimate:
    """A mean over items, with its interval over items and, where there are many, over draws.

    Args:
        estimate: what tells the interval over items.
        whole: a value per item.
        without: the same values without each of the draws in turn; empty where draws are few.
        apart: whether values are means over draws. What compares judges is none: there draws
            multiply, of which pseudo-values tell the first order alone, and what they leave out is
            as large as what `draw_part` would take off.
    """
    found = estimate(whole)
    if not without:
        return found
    # Distances of judges are squares, and skewed over items as squares are.
    square = not apart and estimate is skewed
    found = over_draws(found, pseudo_values(whole, np.stack(without)), apart=apart, square=square)
    if estimate is share and found.known:
        return found._replace(low=max(0.0, found.low), high=min(1.0, found.high))
    return found


def left_out(
    frame: pd.DataFrame,
    by: Sequence[str],
    make: Callable[[pd.DataFrame], Made],
    *,
    others: bool = False,
) -> dict[int, Made]:
    """By draw, what is made of the samples without it; nothing where draws are few.

    Args:
        frame: samples; groups with many draws, that one among them, are passed on without it.
        by: what a group is, such as task, variant and judge.
        make: what is made of the samples that are left.
        others: whether all other groups are passed on too, for what is averaged over groups.
    """
    if "rubric_draw" not in frame or frame["rubric_draw"].nunique() < DRAWS_FOR_BLOCKS:
        return {}
    draw = frame["rubric_draw"].to_numpy()
    group = frame.groupby(list(by), observed=True).ngroup().to_numpy()
    has = pd.crosstab(group, draw).to_numpy() > 0
    many = has.sum(axis=1) >= DRAWS_FOR_BLOCKS
    return {
        int(one): make(frame[np.where((many & has[:, place])[group], draw != one, others)])
        for place, one in enumerate(np.unique(draw))
        if (many & has[:, place]).any()
    }
