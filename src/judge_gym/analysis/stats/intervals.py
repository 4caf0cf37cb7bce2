"""Estimates with 95 % intervals. Whatever is undefined is not a number, never 0.

The unit of analysis is the evidence item: replicates of a cell are averaged first, then items are
the sample. Items of one cluster depend on each other: estimates take the cluster of each item (none
given: each item is its own) and have no interval with too few clusters to infer beyond them. From
five draws of rubrics on, an interval has a component for items and one for draws, and a result
holds beyond the rubrics drawn; with fewer draws, it holds for these rubrics only.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special  # not scipy.stats, which takes half a second to load

from judge_gym.analysis.stats.clusters import (
    MIN_FREEDOM,
    Codes,
    ErrorPart,
    cluster_sums,
    grouped_codes,
    infers,
    mean_error,
)
from judge_gym.records import digest

Floats = npt.NDArray[np.float64]
LEVEL = 0.95
TAILS = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
PERCENTILE_FROM = 200
"""The number of clusters from which the percentile bootstrap is used; below it, bootstrap-t."""
DRAWS = 999
WEIGHT_DRAWS = 4_999
NORMAL_FROM = 1000
"""The number of clusters from which sums over clusters are taken to be normal."""
HELD = 1 << 22
"""The number of values that a bootstrap holds in memory at once."""


class Estimate(NamedTuple):
    """A value, its interval, and the number of independent units it is based on."""

    value: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Whether the value and both ends of the interval are finite."""
        return bool(np.isfinite([self.value, self.low, self.high]).all())

    def named(self, *names: str) -> dict[str, float]:
        """Returns value, low, high and n under these names, in this order; n may be left out."""
        return dict(zip(names, self, strict=False))

    def columns(self, name: str) -> dict[str, float]:
        """Returns the value and its interval as columns: the name, with `_low` and with `_high`."""
        return self.named(name, f"{name}_low", f"{name}_high")

    def clipped(self, low: float = -np.inf, high: float = np.inf) -> "Estimate":
        """Returns the estimate with its interval cut off at the ends of the scale."""
        if not self.known:
            return self
        return self._replace(low=max(low, self.low), high=min(high, self.high))


class SumStatistic(NamedTuple):
    """A statistic that is a function of sums over clusters, such as evidence items."""

    rows: Floats
    """One row per cluster: the terms of the sums."""
    of: Callable[[Floats], Floats]
    """Maps sums (..., columns) to values (...)."""

    @property
    def value(self) -> float:
        """The statistic over all clusters."""
        return float(self.of(self.rows.sum(axis=0)))

    def over(self, clusters: Codes) -> "SumStatistic":
        """Returns the statistic of rows that belong to the given clusters."""
        return self._replace(rows=cluster_sums(self.rows, clusters))


def undefined(n: int = 0, value: float = np.nan) -> Estimate:
    """Returns an estimate without an interval."""
    return Estimate(value, np.nan, np.nan, n)


def seeded(*key: Any) -> np.random.Generator:
    """Returns a random generator whose seed depends on the key alone."""
    return np.random.default_rng(int(digest(list(key))[:16], 16))


def _known(values: npt.ArrayLike, clusters: Codes | None = None) -> tuple[Floats, Codes | None]:
    """Returns the values that are not missing, with their clusters if some have several items."""
    found: Floats = np.asarray(values, dtype=float)
    known = ~np.isnan(found)
    return found[known], grouped_codes(clusters, known)


def t_quantile(freedom: npt.ArrayLike, level: float = LEVEL) -> Floats:
    """Returns the quantile of Student's t at the upper end of an interval."""
    return np.asarray(special.stdtrit(freedom, (1 + level) / 2))


def student(
    values: npt.ArrayLike, clusters: Codes | None = None, *, level: float = LEVEL
) -> Estimate:
    """Returns the mean over items with Student's t interval, ignoring missing values.

    In clusters the error is CR2, with Satterthwaite's degrees of freedom. Without variance the
    precision of the mean is unknown, and there is no interval.

    >>> [round(part, 3) for part in student([0.1, 0.2, 0.3])]
    [0.2, -0.048, 0.448, 3]
    """
    known, codes = _known(values, clusters)
    n = len(known)
    if n == 0:
        return undefined()
    mean = float(known.mean())
    error, freedom = item_error(known, codes)
    if error * np.sqrt(n) <= 1e-12 * max(1.0, abs(mean)) or np.isnan(error):
        return undefined(n, mean)
    half = float(t_quantile(freedom, level) * error)
    return Estimate(mean, mean - half, mean + half, n)


def item_error(values: Floats, clusters: Codes | None) -> ErrorPart:
    """Returns the error of a mean over items; not a number with too few clusters or items."""
    n = len(values)
    if clusters is None:
        error = float(values.std(ddof=1)) / np.sqrt(n) if n > 1 else np.nan
        return ErrorPart(error, n - 1)
    found = mean_error(values, clusters)
    return found if found.freedom >= MIN_FREEDOM else ErrorPart(np.nan, found.freedom)


@dataclass(frozen=True)
class Bounded:
    """Estimates the mean over items of a quantity on a bounded scale: a rate, a stage, a distance.

    The interval is Gaffke's (2005), which extends Clopper and Pearson's from proportions to bounded
    means: items have random weights, which sum to 1 together with the weight of one more item at
    the end of the scale. It covers the mean of 8 items as well as that of 60, also where most items
    are 0, or few are far from the others, for which Student's t and the bootstrap cover 35 to 90 %,
    and needs no variance between items. Unbiased estimates may lie outside the scale; the ends of
    intervals do not. In clusters it is Korn and Graubard's (1998), Clopper and Pearson's with the
    effective number of items: the number of clusters where all values are at one end of the scale.

    >>> [round(part, 3) for part in Bounded()([0.0] * 60)]
    [0.0, 0.0, 0.06, 60]
    """

    low: float = 0.0
    """The lower end of the scale; infinite if it is unknown, and then the smallest item or 0."""
    high: float = 1.0
    squared: bool = False
    """Whether items are squares, such as distances, whose error over draws grows with them."""
    level: float = LEVEL
    """The confidence level; intervals that are to hold together need a higher one."""

    def __call__(self, values: npt.ArrayLike, clusters: Codes | None = None) -> Estimate:
        """Returns the mean with its interval, ignoring missing values."""
        known, codes = _known(values, clusters)
        n = len(known)
        if codes is not None:
            in_clusters = self._in_clusters if np.isfinite(self.low) else student
            return in_clusters(known, codes)
        if n and ((known == self.low) | (known == self.high)).all():
            return self._proportion(int((known == self.high).sum()), n)
        if n < 2:
            return undefined(n, float(known[0]) if n else np.nan)
        if n >= NORMAL_FROM:
            return student(known, level=self.level).clipped(self.low, self.high)
        weights = _weights(n)
        sums = weights[:, :n] @ known
        least = self.low if np.isfinite(self.low) else 0.0
        below = sums + weights[:, n] * min(least, float(known.min()))
        above = sums + weights[:, n] * max(self.high, float(known.max()))
        tail = (1 - self.level) / 2
        low, high = _quantile(below, tail), _quantile(above, 1 - tail)
        return Estimate(float(known.mean()), low, high, n).clipped(self.low, self.high)

    def _proportion(self, successes: float, n: float) -> Estimate:
        """Returns a mean of values at the ends of the scale, for which there is a closed form."""
        tail = (1 - self.level) / 2
        low = special.betaincinv(successes, n - successes + 1, tail) if successes else 0.0
        high = special.betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
        ends = self.low + (self.high - self.low) * np.array([successes / n, low, high])
        return Estimate(float(ends[0]), float(ends[1]), float(ends[2]), int(n))

    def _in_clusters(self, values: Floats, clusters: Codes) -> Estimate:
        """Returns the mean of values in clusters, which is a share of the scale."""
        n, mean = len(values), float(values.mean())
        error, freedom = item_error(values, clusters)
        if np.isnan(error):
            return undefined(n, mean)
        if values.min() < self.low or values.max() > self.high:  # unbiased estimates of a square
            return student(values, clusters, level=self.level).clipped(self.low, self.high)
        share, count = (mean - self.low) / (self.high - self.low), len(np.unique(clusters))
        if np.ptp(values) == 0:
            return self._proportion(share * count, count)._replace(value=mean, n=n)
        size = share * (1 - share) * ((self.high - self.low) / max(error, 1e-9)) ** 2
        size *= float(t_quantile(np.inf, self.level) / t_quantile(freedom, self.level)) ** 2
        # Items in clusters are at most as informative as independent ones.
        found, alone = self._proportion(share * size, size), self(values)
        return Estimate(mean, min(found.low, alone.low), max(found.high, alone.high), n)


bounded = Bounded()
"""Estimates means of rates and shares."""
skewed = Bounded(squared=True)
"""Estimates means of stages, distances and other quantities from 0 to 1."""
variances = Bounded(high=0.5, squared=True)
"""Estimates means of variances over repeats on the scale from 0 to 1, largest for 0 and 1."""
above_chance = Bounded(low=-np.inf, squared=True)
"""Estimates means of what exceeds chance, which may be below 0 too."""


def _quantile(values: Floats, share: float) -> float:
    """Returns the same as `np.quantile`, whose checks take longer than the work."""
    place = share * (len(values) - 1)
    below = int(place)
    low, high = np.partition(values, [below, below + 1])[below : below + 2]
    part = place - below
    return float(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))


@cache
def _weights(n: int) -> Floats:
    """Returns random weights of items and of one more item, by draw."""
    return seeded("bounded", n).dirichlet(np.ones(n + 1), WEIGHT_DRAWS)


def signed(
    values: npt.ArrayLike,
    clusters: Codes | None = None,
    *,
    reach: float = 1.0,
    alike: bool = False,
    level: float = LEVEL,
) -> Estimate:
    """Returns the mean over items of a difference, which is at most `reach` either way.

    The interval is Student's. Where most differences are 0, or what is compared is `alike` on most
    items, the sample may lack the rare others, and Student's covers 75 to 90 %: then it is that of
    `Bounded`.
    """
    known, codes = _known(values, clusters)
    found = student(known, codes, level=level)
    if found.known and (alike or (known == 0).mean() > 0.5):
        found = Bounded(-reach, reach, level=level)(known, codes)
    return found.clipped(-reach, reach)


class Bounds(NamedTuple):
    """The ends between which a mean lies, whatever the missing values are."""

    lowest: float
    highest: float


def mean_bounds(least: npt.ArrayLike, most: npt.ArrayLike, clusters: Codes | None = None) -> Bounds:
    """Returns Imbens and Manski's (2004) interval of a mean whose items are known up to bounds.

    Each item has the least and the most that its value can be. The interval covers the mean in
    95 % of samples, wherever it lies between the means of both; without a gap it is Student's.
    """
    ends = np.stack([np.asarray(least, dtype=float), np.asarray(most, dtype=float)])
    known = ~np.isnan(ends).any(axis=0)
    ends, codes = ends[:, known], grouped_codes(clusters, known)
    if ends.shape[1] < 2:
        return Bounds(np.nan, np.nan)
    (low, high), parts = ends.mean(axis=1), [item_error(end, codes) for end in ends]
    errors, freedom = np.array([part.error for part in parts]), parts[0].freedom
    if np.isnan(errors).any():
        return Bounds(np.nan, np.nan)
    gap = (high - low) / max(float(errors.max()), 1e-12)

    def excess(reach: float) -> float:
        return float(special.stdtr(freedom, reach + gap) - special.stdtr(freedom, -reach)) - LEVEL

    reach = _root(excess, 0.0, 1.0 + float(t_quantile(freedom)))
    return Bounds(float(low - reach * errors[0]), float(high + reach * errors[1]))


# --- statistics other than means -----------------------------------------------------------------


def bootstrap(statistic: SumStatistic, *, key: Any, clusters: Codes | None = None) -> Estimate:
    """Returns a statistic with a bootstrap interval over clusters; draws are seeded from the key.

    Rows are items; those of one of the given clusters are drawn together. The interval is
    studentised below 200 clusters, and made of percentiles from there on.
    """
    codes = grouped_codes(clusters, np.full(len(statistic.rows), True))
    if codes is not None:
        items, statistic = len(codes), statistic.over(codes)
        if not infers(codes):
            return undefined(items, statistic.value)
        return bootstrap(statistic, key=key)._replace(n=items)
    rows, n = statistic.rows, len(statistic.rows)
    value = statistic.value if n else np.nan
    if n < 3 or not np.isfinite(value):
        return undefined(n, value)
    if n >= PERCENTILE_FROM:
        drawn = statistic.of(bootstrap_sums(rows, key=key))
        low, high = np.quantile(drawn[np.isfinite(drawn)], TAILS)
        return Estimate(value, float(low), float(high), n)
    parts = []
    for picks in _chunks(_picks(n, key), rows.size):
        drawn = rows[picks]
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = statistic.of(drawn.sum(axis=1)) - value
            parts.append(gaps / jackknife_error(drawn, statistic))
    t = np.concatenate(parts)
    t = t[np.isfinite(t)]
    error = float(jackknife_error(rows, statistic))
    if len(t) < DRAWS / 2 or not error > 0:  # too few resamples with a standard error
        return undefined(n, value)
    low, high = np.quantile(t, TAILS)
    return Estimate(value, value - float(high) * error, value - float(low) * error, n)


def bootstrap_sums(rows: Floats, *, key: Any) -> Floats:
    """Returns sums over resampled clusters, one row per draw.

    From `NORMAL_FROM` clusters on, sums are drawn from their normal limit.
    """
    n = len(rows)
    if n >= NORMAL_FROM:
        sums = rows.sum(axis=0)
        shape = np.linalg.qr(rows - sums / n, mode="r")
        drawn: Floats = sums + seeded("limit", key, n).normal(size=(DRAWS, len(shape))) @ shape
        return drawn
    return np.concatenate([_counts(part, n) @ rows for part in _chunks(_picks(n, key), n)])


def _picks(n: int, key: Any) -> npt.NDArray[np.int64]:
    return seeded("bootstrap", key, n).integers(0, n, (DRAWS, n))


def _chunks(picks: npt.NDArray[np.int64], width: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yields the draws in parts that fit in memory."""
    size = max(1, HELD // width)
    return (picks[low : low + size] for low in range(0, len(picks), size))


def _counts(picks: npt.NDArray[np.int64], n: int) -> Floats:
    """Counts how often each draw contains each cluster."""
    places = picks + n * np.arange(len(picks))[:, None]
    return np.bincount(places.ravel(), minlength=picks.size).reshape(-1, n).astype(float)


def jackknife_values(statistic: SumStatistic) -> Floats:
    """Returns the jackknife pseudo-value of each cluster; of a mean, the averaged values."""
    n, sums = len(statistic.rows), statistic.rows.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # the remainder may be undefined
        found: Floats = n * statistic.of(sums) - (n - 1) * statistic.of(sums - statistic.rows)
    return found


def jackknife_error(rows: Floats, statistic: SumStatistic) -> Floats:
    """Returns the jackknife standard error of each set of clusters."""
    left = statistic.of(rows.sum(axis=-2, keepdims=True) - rows)
    spread: Floats = np.sqrt((rows.shape[-2] - 1) * left.var(axis=-1))
    # Rounding errors of equal values are no variance.
    return np.where(spread > 1e-12, spread, 0.0)


MANY_DRAWS = 5
"""The number of draws of rubrics from which a result holds beyond these rubrics."""
Result = TypeVar("Result")


def draw_part(table: npt.ArrayLike, *, mean_over_draws: bool = True) -> ErrorPart:
    """Returns the error component that draws of rubrics add to a mean over items.

    `table` has values by draw and item (items that lack a draw are left out); for a statistic that
    is not a mean over draws, its pseudo-values. From a mean over draws, the interaction of draw and
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
    errors, freedoms = np.array(parts, dtype=float).T
    if not np.isfinite(half_width(parts)) or not errors.any():
        return np.nan

    def within(log_p: float) -> float:
        reach = np.hypot.reduce(-special.stdtrit(freedoms, np.exp(log_p) / 2) * errors)
        return float(abs(value) - reach)

    return float(np.exp(_root(within, -200.0, 0.0)))


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Returns where a rising function is 0, by bisection; an end if it is 0 beyond.

    `scipy.optimize` takes a third of a second to load.
    """
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return low


def widened_by_draws(
    found: Estimate, table: npt.ArrayLike, *, mean_over_draws: bool = True, squared: bool = False
) -> Estimate:
    """Returns an estimate over items with an interval that covers the draws of `draw_part` too.

    The error of a square grows with it, so that its interval is symmetric for its root.
    """
    more = half_width([draw_part(table, mean_over_draws=mean_over_draws)])
    # If the root of v has the error m / (2 root), its square reaches to v ± m + m^2 / (4 v).
    bend = more**2 / (4 * max(found.value, more)) if squared and more > 0 else 0.0
    low = np.hypot(found.value - found.low, more - bend)
    high = np.hypot(found.high - found.value, more + bend)
    return found._replace(low=float(found.value - low), high=float(found.value + high))


class Estimator(Protocol):
    """Maps one value per item (missing ones are not a number) to their mean with its interval."""

    def __call__(self, values: Floats, clusters: Codes | None = None) -> Estimate:
        """Returns the mean; `clusters` has the number of each item's cluster."""


def estimate_over_items(
    estimate: Estimator,
    whole: Floats,
    without: Sequence[Floats],
    clusters: Codes | None = None,
    *,
    mean_over_draws: bool = True,
) -> Estimate:
    """Returns a mean over items, with an interval over items and, if there are many, draws.

    `whole` has one value per item, `without` the values without each draw in turn; it is empty if
    draws are few. `clusters` has the number of each item's cluster. Comparisons of judges are not
    means over draws: there draws multiply, of which pseudo-values capture the first order only, and
    what they miss is as large as the interaction that `draw_part` would subtract.
    """
    found = estimate(whole, clusters)
    if not without:
        return found
    # Distances between judges are squares, and skewed over items as squares are.
    found = widened_by_draws(
        found,
        pseudo_values(whole, np.stack(without)),
        mean_over_draws=mean_over_draws,
        squared=not mean_over_draws and isinstance(estimate, Bounded) and estimate.squared,
    )
    if isinstance(estimate, Bounded):
        return found.clipped(estimate.low, estimate.high)
    return found


def without_each_draw(
    frame: pd.DataFrame,
    by: Sequence[str],
    analysis: Callable[[pd.DataFrame], Result],
    *,
    keep_others: bool = False,
) -> dict[int, Result]:
    """Applies an analysis to samples without each draw of rubrics; empty if draws are few.

    Groups (of the columns `by`) with many draws, this one among them, are passed on without it, and
    with `keep_others` all other groups too, for averages over groups.
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
