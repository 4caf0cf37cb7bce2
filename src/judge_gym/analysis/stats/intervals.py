"""Estimates with 95 % intervals. Whatever is undefined is not a number, never 0.

The unit of analysis is the evidence item: replicates of a cell are averaged first, then items are
the sample. Items of one cluster depend on each other: estimates take the cluster of each item (none
given: each item is its own) and have no interval with too few clusters to infer beyond them. From
five draws of rubrics on, an interval has a component for items and one for draws, and a result
holds beyond the rubrics drawn; with fewer draws, it holds for these rubrics only.

A quantity has a `Scale`, which decides how its interval is made; `estimate` makes it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

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
    mean_error,
)
from judge_gym.records import digest
from judge_gym.records.numbers import plural

Floats = npt.NDArray[np.float64]
LEVEL = 0.95
TAILS = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]

# --- scales --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """What kind of quantity an estimate is of: its ends, and how its interval is made."""

    kind: Literal["bounded", "difference", "median", "kappa", "correlation", "unbounded"]
    low: float = -np.inf
    """The lower end of the scale, beyond which no interval goes."""
    high: float = np.inf
    squared: bool = False
    """Whether items are squares, such as distances, whose error over draws grows with them."""
    cautious: bool = False
    """Whether a difference has the bounded interval whatever the data look like."""


SHARE = Scale("bounded", 0, 1)
"""Rates and shares."""
SIGNED_SHARE = Scale("bounded", -1, 1)
"""One share minus another of the same answers, such as position bias."""
DISTANCE = Scale("bounded", 0, 1, squared=True)
"""Normalised stages, distances, and other quantities from 0 to 1 that grow as squares do."""
VARIANCE = Scale("bounded", 0, 0.5, squared=True)
"""Variances over repeats on the scale from 0 to 1, largest for 0 and 1."""
ABOVE_CHANCE = Scale("bounded", -np.inf, 1, squared=True)
"""What exceeds chance, which may be below 0 too."""
DIFFERENCE = Scale("difference", -1, 1)
"""Differences of two conditions on the same items, for quantities from 0 to 1."""
MEDIAN = Scale("median")
"""Money and seconds, of which the median is estimated."""
KAPPA = Scale("kappa", -1, 1)
"""Agreement beyond chance: alpha, kappa, intraclass correlation."""
CORRELATION = Scale("correlation", -1, 1)
UNBOUNDED = Scale("unbounded")
"""Means without known ends, and with items of which none dominates."""


def between(low: float, high: float) -> Scale:
    """Makes the scale of a quantity with these ends, such as the stages from 1 to 5."""
    return Scale("bounded", low, high)


def difference(reach: float, *, cautious: bool = False) -> Scale:
    """Makes the scale of differences that are at most `reach` either way."""
    return Scale("difference", -reach, reach, cautious=cautious)


# --- estimates -----------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """A value, its interval, and the number of independent units it is based on."""

    value: float
    low: float
    high: float
    n: int
    """The number of items."""
    effective_n: float = np.nan
    """The number of independent items that would be as informative; less than n in clusters."""
    withheld: str = ""
    """Why there is no interval; empty if there is one."""

    @property
    def known(self) -> bool:
        """Whether the value and both ends of the interval are finite."""
        return bool(np.isfinite(self[:3]).all())

    def named(self, *names: str) -> dict[str, float]:
        """Names value, low, high and n, in this order, where n may be left out."""
        return dict(zip(names, self[:4], strict=False))

    def columns(self, name: str) -> dict[str, float]:
        """Writes value and interval as columns: the name, with `_low` and with `_high`."""
        return self.named(name, f"{name}_low", f"{name}_high")

    def clipped(self, low: float = -np.inf, high: float = np.inf) -> "Estimate":
        """Cuts the interval off at the ends of the scale."""
        if not self.known:
            return self
        return self._replace(low=max(low, self.low), high=min(high, self.high))


class Statistic(NamedTuple):
    """A statistic that is a function of sums over units, such as evidence items."""

    rows: Floats
    """One row per unit: the terms of the sums."""
    of: Callable[[Floats], Floats]
    """Maps sums (..., columns) to values (...)."""
    labels: tuple[int, ...] = ()
    """The number of items with each label that is used; an interval of an agreement needs enough
    of each."""
    alike: float = 0.0
    """The largest share of ratings that one label has, if that is to be checked."""
    items: int = 0
    """The number of items, if a row is the sum over several."""

    @property
    def value(self) -> float:
        """The statistic over all units."""
        return float(self.of(self.rows.sum(axis=0)))

    def over(self, clusters: Codes) -> "Statistic":
        """Returns the statistic of rows that belong to the given clusters."""
        return self._replace(rows=cluster_sums(self.rows, clusters), items=len(clusters))


def undefined(n: int = 0, value: float = np.nan, withheld: str = "no value") -> Estimate:
    """Makes an estimate without an interval, for the given reason."""
    return Estimate(value, np.nan, np.nan, n, float(n), withheld)


def estimate(
    values: npt.ArrayLike | Statistic,
    clusters: Codes | None = None,
    *,
    scale: Scale,
    below: npt.ArrayLike | None = None,
    level: float = LEVEL,
    without: Sequence[npt.ArrayLike] = (),
    mean_over_draws: bool = True,
) -> Estimate:
    """Estimates a quantity over items, by cluster and, if there are many, by draw.

    Args:
        values: one number per item, of which the mean is estimated (NaN: missing); with `below`,
            the numerators of a ratio; or a statistic of sums.
        clusters: the number of each item's cluster; each is its own if left out.
        scale: the kind of quantity, which decides the interval.
        below: the denominators of a ratio of sums; with columns (as `values` then has), the mean of
            several ratios is estimated, such as balanced accuracy.
        level: the confidence level; intervals that are to hold together need a higher one.
        without: the values without each draw of rubrics in turn; empty if draws are few.
        mean_over_draws: whether a value is a mean over draws. Comparisons of judges are not: there
            draws multiply, of which pseudo-values capture the first order only, and what they miss
            is as large as the interaction that `draw_part` would subtract.

    >>> [round(part, 3) for part in estimate([0.0] * 60, scale=SHARE)[:4]]
    [0.0, 0.0, 0.06, 60]
    >>> [round(part, 3) for part in estimate([0.1, 0.2, 0.3], scale=UNBOUNDED)[:4]]
    [0.2, -0.048, 0.448, 3]
    """
    if isinstance(values, Statistic):
        return _statistic_estimate(values, clusters, scale, level)
    if below is not None:
        linear = linearised(values, below, scale)
        rarest = _rarest(below)
        if rarest < MIN_LABELLED:  # a label without mistakes by luck: 68 to 90 % cover
            reason = f"a label has {plural(rarest, 'item')}, and {MIN_LABELLED} are needed"
            return undefined(len(linear.values), linear.value, reason)
        alike = len(linear.values) > 0 and np.ptp(linear.values) <= 1e-12
        if alike and np.ndim(below) == 2 and scale.low < linear.value < scale.high:
            return _mean_of_constant_ratios(values, below, clusters, scale, level)
        codes = None if clusters is None else clusters[linear.used]
        return _ratio_estimate(linear, codes, scale, level)
    numbers: Floats = np.asarray(values, dtype=float)
    present = ~np.isnan(numbers)
    items, codes = numbers[present], grouped_codes(clusters, present)
    over_items = _METHODS[scale.kind](items, codes, scale, level)
    if not without:
        return over_items
    return widened_by_draws(
        over_items,
        pseudo_values(numbers, np.stack([np.asarray(values, float) for values in without])),
        mean_over_draws=mean_over_draws,
        # Distances between judges are squares, and skewed over items as squares are.
        squared=not mean_over_draws and scale.squared,
    ).clipped(scale.low, scale.high)


def seeded(*key: Any) -> np.random.Generator:
    """Makes a random generator whose seed depends on the key alone."""
    return np.random.default_rng(int(digest(list(key))[:16], 16))


# --- means: Student's t --------------------------------------------------------------------------


def t_quantile(freedom: npt.ArrayLike, level: float = LEVEL) -> Floats:
    """Returns the quantile of Student's t at the upper end of an interval."""
    return np.asarray(special.stdtrit(freedom, (1 + level) / 2))


def item_error(values: Floats, clusters: Codes | None) -> ErrorPart:
    """Computes the error of a mean over items, NaN with too few clusters or items."""
    n = len(values)
    if clusters is None:
        error = float(values.std(ddof=1)) / np.sqrt(n) if n > 1 else np.nan
        return ErrorPart(error, n - 1)
    part = mean_error(values, clusters)
    return part if part.freedom >= MIN_FREEDOM else ErrorPart(np.nan, part.freedom)


def _student(items: Floats, clusters: Codes | None, scale: Scale, level: float) -> Estimate:
    """Estimates a mean with Student's t interval, cut off at the ends of the scale.

    In clusters the error is CR2, with Satterthwaite's degrees of freedom. Without variance the
    precision of the mean is unknown, and there is no interval.
    """
    n = len(items)
    if n == 0:
        return undefined()
    mean = float(items.mean())
    error, freedom = item_error(items, clusters)
    if np.isnan(error):
        return undefined(n, mean, _too_few(n, clusters))
    if error * np.sqrt(n) <= 1e-12 * max(1.0, abs(mean)):
        return undefined(n, mean, "no variance between items")
    half = float(t_quantile(freedom, level) * error)
    size = _effective_n(items, clusters, error)
    return Estimate(mean, mean - half, mean + half, n, size).clipped(scale.low, scale.high)


def _too_few(n: int, clusters: Codes | None) -> str:
    """Says why nothing can be inferred beyond the items or clusters."""
    if clusters is None or n < 2:
        return "a single item" if n else "no value"
    count = plural(len(np.unique(clusters)), "cluster")
    return f"the items form {count}, too few to infer beyond them"


def _effective_n(items: Floats, clusters: Codes | None, error: float) -> float:
    """Computes the number of independent items whose mean has the same error."""
    n = len(items)
    if clusters is None or not error > 0:
        return float(n if clusters is None else len(np.unique(clusters)))
    return min(float(n), float(items.var(ddof=1)) / error**2)


# --- means on a scale with ends ------------------------------------------------------------------

WEIGHT_DRAWS = 4_999
MANY_ITEMS = 1000
"""The number of items from which equal values share one random weight, and means are taken to be
normal unless few items differ from an end of the scale."""
HARDLY = 0.1
"""The largest change, in standard errors, by one more item at an end of the scale, with which the
mean of many items is taken to be normal. It limits the skewness of the mean too."""
BINS = 2000


def _bounded(items: Floats, clusters: Codes | None, scale: Scale, level: float) -> Estimate:
    """Estimates the mean of a quantity on a bounded scale: a rate, a stage, a distance.

    The interval is Gaffke's (2005), which extends Clopper and Pearson's from proportions to bounded
    means: items have random weights, which sum to 1 together with the weight of one more item at
    the end of the scale. It covers the mean of 8 items as well as that of 60, also where most items
    are 0, or few are far from the others, for which Student's t and the bootstrap cover 35 to 90 %,
    and needs no variance between items. Unbiased estimates may lie outside the scale; the ends of
    intervals do not. In clusters it is Korn and Graubard's (1998), Clopper and Pearson's with the
    effective number of items: the number of clusters where all values are at one end of the scale.
    """
    n = len(items)
    if clusters is not None:
        in_clusters = _bounded_in_clusters if np.isfinite(scale.low) else _student
        return in_clusters(items, clusters, scale, level)
    if n and np.isfinite(scale.low) and ((items == scale.low) | (items == scale.high)).all():
        return _proportion(int((items == scale.high).sum()), n, scale, level)
    if n < 2:
        return undefined(n, float(items[0]) if n else np.nan, _too_few(n, None))
    least = min(scale.low if np.isfinite(scale.low) else 0.0, float(items.min()))
    most, mean = max(scale.high, float(items.max())), float(items.mean())
    # One more item at the end of the scale would hardly move the mean, nor make it skewed.
    reach = max(most - mean, mean - least) / n
    if n >= MANY_ITEMS and reach <= HARDLY * float(items.std()) / np.sqrt(n):
        return _student(items, None, scale, level)
    sums, weight_left = _weighted_sums(items)
    below, above = sums + weight_left * least, sums + weight_left * most
    tail = (1 - level) / 2
    low, high = _quantile(below, tail), _quantile(above, 1 - tail)
    return Estimate(mean, low, high, n, n).clipped(scale.low, scale.high)


def _proportion(successes: float, n: float, scale: Scale, level: float) -> Estimate:
    """Estimates a mean of values at the ends of the scale, in closed form."""
    tail = (1 - level) / 2
    low = special.betaincinv(successes, n - successes + 1, tail) if successes else 0.0
    high = special.betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    ends = scale.low + (scale.high - scale.low) * np.array([successes / n, low, high])
    return Estimate(float(ends[0]), float(ends[1]), float(ends[2]), int(n), float(n))


def _bounded_in_clusters(items: Floats, clusters: Codes, scale: Scale, level: float) -> Estimate:
    """Estimates the mean of values in clusters, which is a share of the scale."""
    n, mean, width = len(items), float(items.mean()), scale.high - scale.low
    error, freedom = item_error(items, clusters)
    if np.isnan(error):
        return undefined(n, mean, _too_few(n, clusters))
    if items.min() < scale.low or items.max() > scale.high:  # unbiased estimates of a square
        return _student(items, clusters, scale, level)
    share, count = (mean - scale.low) / width, len(np.unique(clusters))
    if np.ptp(items) == 0:
        alike = _proportion(share * count, count, scale, level)
        return alike._replace(value=mean, n=n)
    size = share * (1 - share) * (width / max(error, 1e-9)) ** 2
    size *= float(t_quantile(np.inf, level) / t_quantile(freedom, level)) ** 2
    # Items in clusters are at most as informative as independent ones.
    clustered = _proportion(share * size, size, scale, level)
    alone = _bounded(items, None, scale, level)
    low, high = min(clustered.low, alone.low), max(clustered.high, alone.high)
    return Estimate(mean, low, high, n, _effective_n(items, clusters, error))


def _weighted_sums(items: Floats) -> tuple[Floats, Floats]:
    """Draws randomly weighted sums of items, and the weight of one more item."""
    n = len(items)
    if n < MANY_ITEMS:
        weights = _weights(n)
        return weights[:, :n] @ items, weights[:, n]
    # Weights of equal items add up to a gamma variable, so that a level needs one draw, not one per
    # item. Values within a two-thousandth of their range count as equal, with their mean.
    levels, codes = np.unique(items, return_inverse=True)
    if len(levels) > BINS:
        start, width = levels[0], (levels[-1] - levels[0]) / BINS
        codes = np.unique(np.minimum((items - start) // width, BINS - 1), return_inverse=True)[1]
    counts = np.bincount(codes)
    means = np.bincount(codes, items) / counts
    weights = seeded("bounded", n).standard_gamma([*counts, 1], (WEIGHT_DRAWS, len(counts) + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights[:, :-1] @ means, weights[:, -1]


@lru_cache(maxsize=32)
def _weights(n: int) -> Floats:
    """Draws random weights of items and of one more item."""
    return seeded("bounded", n).dirichlet(np.ones(n + 1), WEIGHT_DRAWS)


def _quantile(values: Floats, share: float) -> float:
    """Returns the same as `np.quantile`, whose checks take longer than the work."""
    position = share * (len(values) - 1)
    below = int(position)
    low, high = np.partition(values, [below, below + 1])[below : below + 2]
    part = position - below
    return float(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))


# --- differences ---------------------------------------------------------------------------------


def _difference(items: Floats, clusters: Codes | None, scale: Scale, level: float) -> Estimate:
    """Returns the mean over items of a difference.

    The interval is Student's. Where most differences are 0, or what is compared is alike on most
    items, the sample may lack the rare others, and Student's covers 66 to 90 %: then it is that of
    a bounded mean, and so it is without any variance.
    """
    students = _student(items, clusters, scale, level)
    no_variance = len(items) > 1 and np.ptp(items) <= 1e-12
    if no_variance or (students.known and (scale.cautious or (items == 0).mean() > 0.5)):
        return _bounded(items, clusters, scale, level)
    return students


# --- medians -------------------------------------------------------------------------------------


def _median(items: Floats, clusters: Codes | None, scale: Scale, level: float) -> Estimate:
    """Returns a median with an interval of order statistics, by cluster (Woodruff 1952)."""
    n, ordered = len(items), np.sort(items)
    if not n:
        return undefined()
    median = float(np.median(items))
    rank = np.arange(n)[np.argsort(np.argsort(items))]
    below = _bounded((rank < n / 2).astype(float), clusters, SHARE, level)
    if below.withheld:
        return below._replace(value=median)
    places = np.floor(below.low * n) - 1, np.ceil(below.high * n)
    first, last = np.clip(places, 0, n - 1).astype(int)
    low, high = float(ordered[first]), float(ordered[last])
    return Estimate(median, min(low, median), max(high, median), n, below.effective_n)


_Method = Callable[[Floats, Codes | None, Scale, float], Estimate]
_METHODS: dict[str, _Method] = {
    "bounded": _bounded,
    "difference": _difference,
    "median": _median,
    "unbounded": _student,
}
"""How the interval of a mean (or median) over items is made."""


# --- ratios --------------------------------------------------------------------------------------


class Linearised(NamedTuple):
    """A ratio as a mean: to first order, it is that of its items' deviations from it."""

    value: float
    values: Floats
    """One number per used item, whose mean is the ratio."""
    used: npt.NDArray[np.bool_]
    """The items that count: denominators are not 0."""
    low: float
    """The least that an item's number can be."""
    high: float


def linearised(above: npt.ArrayLike, below: npt.ArrayLike, scale: Scale) -> Linearised:
    """Linearises a ratio of sums, or with columns the mean of a ratio per column.

    With unequal denominators the numbers leave the ends of the scale: those of an item with r times
    the mean denominator lie between value - (value - low) r and value + (high - value) r. Clipping
    them to the scale would bias their mean (at 10 % unreadable repeats, consistency was covered in
    57 % of samples of 600 items).
    """
    tops, bottoms = (np.asarray(side, dtype=float) for side in (above, below))
    if tops.ndim == 1:
        tops, bottoms = tops[:, None], bottoms[:, None]
    used: npt.NDArray[np.bool_] = np.asarray((bottoms > 0).any(axis=1))
    tops, bottoms = np.where(bottoms[used] > 0, tops[used], 0.0), bottoms[used]
    if not used.any() or (bottoms.sum(axis=0) <= 0).any():
        return Linearised(np.nan, np.empty(0), np.zeros_like(used), scale.low, scale.high)
    ratios = tops.sum(axis=0) / bottoms.sum(axis=0)
    value, weights = float(ratios.mean()), bottoms / bottoms.mean(axis=0)
    values = value + ((tops - ratios * bottoms) / bottoms.mean(axis=0)).mean(axis=1)
    low = value - float(((ratios - scale.low) * weights).mean(axis=1).max())
    high = value + float(((scale.high - ratios) * weights).mean(axis=1).max())
    if np.ptp(weights) == 0 and len(ratios) == 1:  # a mean; values and ends keep their digits
        values, low, high = tops[:, 0] / bottoms[:, 0], scale.low, scale.high
    # Rounding must not move an item beyond the ends.
    return Linearised(value, np.clip(values, low, high), used, low, high)


def _rarest(below: npt.ArrayLike) -> int:
    """Counts the items of the ratio that has the fewest, of several ratios."""
    bottoms = np.asarray(below, dtype=float)
    return int((bottoms > 0).sum(axis=0).min()) if bottoms.ndim == 2 else MIN_LABELLED


def influences(
    values: npt.ArrayLike | Sequence[Statistic], below: npt.ArrayLike | None = None
) -> Floats:
    """Returns numbers by item and setup whose mean over items is the setup's estimate.

    They say how far each item moves the estimate: of means the values themselves, of ratios the
    linearised ones (with columns, of the mean of several ratios), of statistics the jackknife
    pseudo-values.
    """
    if isinstance(values, Sequence) and values and isinstance(values[0], Statistic):
        columns = []
        for statistic in values:
            assert isinstance(statistic, Statistic)
            moved = jackknife_values(statistic)
            columns.append(moved - moved.mean() + statistic.value)  # without its bias correction
        return np.column_stack(columns)
    numbers = np.asarray(values, dtype=float)
    if below is None:
        return numbers
    under = np.asarray(below, dtype=float)
    if numbers.ndim == 2:
        numbers, under = numbers[:, :, None], under[:, :, None]
    numbers = np.where(under > 0, numbers, 0.0)
    ratios = numbers.sum(axis=0) / under.sum(axis=0)
    moved = ratios + (numbers - ratios * under) / under.mean(axis=0)
    means: Floats = moved.mean(axis=2)
    return means


def _ratio_estimate(
    linear: Linearised, clusters: Codes | None, scale: Scale, level: float
) -> Estimate:
    """Estimates a ratio with the bounded interval of its linearised values."""
    codes = grouped_codes(clusters, np.full(len(linear.values), True))
    reach = Scale(scale.kind, linear.low, linear.high, scale.squared, scale.cautious)
    mean = _METHODS[scale.kind](linear.values, codes, reach, level)
    return mean._replace(value=linear.value).clipped(scale.low, scale.high)


def _mean_of_constant_ratios(
    above: npt.ArrayLike,
    below: npt.ArrayLike,
    clusters: Codes | None,
    scale: Scale,
    level: float,
) -> Estimate:
    """Returns the mean of ratios of which none varies: those of a judge with one answer.

    Its ends are the means of the ratios' ends. The scale of the linearised values, which is wide
    where a label is rare, would give a judge that always passes a balanced accuracy of 14 to 100 %.
    """
    tops, bottoms = (np.asarray(side, dtype=float) for side in (above, below))
    parts = [
        estimate(top, clusters, scale=scale, below=bottom, level=level)
        for top, bottom in zip(tops.T, bottoms.T, strict=True)
    ]
    value, low, high = np.mean([part[:3] for part in parts], axis=0)
    n = int((bottoms > 0).any(axis=1).sum())
    reason = next((part.withheld for part in parts if part.withheld), "")
    return Estimate(float(value), float(low), float(high), n, float(n), reason)


# --- statistics other than means -----------------------------------------------------------------

MIN_ITEMS = 20
"""The number of items below which kappas and correlations have no interval."""
MIN_CLUSTERS = 10
"""The number of clusters below which they have none."""
MIN_LABELLED = 5
"""The number of items that each used label must have."""
MOST_ALIKE, RARE_LABELLED = 0.8, 20
"""The largest share of ratings that one label may have, unless every other has so many items. Kappa
of raters who agree little was covered in 71 to 92 % of samples of 20 and 30 items beyond it."""


def _statistic_estimate(
    statistic: Statistic, clusters: Codes | None, scale: Scale, level: float
) -> Estimate:
    """Estimates a statistic with a delete-one-cluster jackknife interval."""
    codes = grouped_codes(clusters, np.full(len(statistic.rows), True))
    n = statistic.items or len(statistic.rows)
    value = statistic.value if n else np.nan
    if codes is not None:
        statistic = statistic.over(codes)
    error = float(jackknife_error(statistic.rows, statistic)) if n else np.nan
    if codes is None:  # rows may be sums over several items, of about equally many each
        sizes = np.diff(np.linspace(0, n, len(statistic.rows) + 1).astype(int))
    else:
        sizes = np.unique(codes, return_counts=True)[1]
    labels, alike = statistic.labels, statistic.alike
    return jackknife_estimate(
        value, error, sizes, scale=scale, labels=labels, alike=alike, level=level
    )


def jackknife_estimate(
    value: float,
    error: float,
    sizes: npt.ArrayLike,
    *,
    scale: Scale,
    labels: Sequence[int] = (),
    alike: float = 0.0,
    level: float = LEVEL,
) -> Estimate:
    """Returns a value with an interval from its jackknife error, by Student's t.

    Intervals of kappas and correlations are symmetric on the scale of arctanh (Fisher). The error
    is moved to that scale by the derivative: leaving out the only disagreement would make its value
    infinite. There are at most as many degrees of freedom as the rarest label has items, less 1:
    nearly all of a kappa's error comes from these, and with the freedom of all items 82 to 92 % of
    intervals cover where mistakes are rare but large.

    Args:
        value: the statistic.
        error: its jackknife error, by cluster.
        sizes: the number of items of each cluster that has any.
        scale: the kind of quantity, which decides the interval.
        labels: the number of items with each label that is used.
        alike: the largest share of ratings that one label has.
        level: the confidence level.
    """
    counts = np.asarray(sizes, dtype=int)
    n, clusters = int(counts.sum()), len(counts)
    if not np.isfinite(value):
        return undefined(n)
    codes = None if clusters == n else np.repeat(np.arange(clusters), counts)
    agreement = scale.kind in ("kappa", "correlation")
    reason = _lacks(n, clusters, labels, alike) if agreement else ""
    if reason or clusters < 3:
        return undefined(n, value, reason or _too_few(n, codes))
    freedom = clusters - 1.0 if np.ptp(counts) == 0 else _freedom_of_sizes(counts)
    if freedom < MIN_FREEDOM:
        return undefined(n, value, _too_few(n, codes))
    if not np.isfinite(error):
        return undefined(n, value, "not defined without one of the items")
    if not error > 0:
        return undefined(n, value, "no item differs from the others")
    if agreement:
        freedom = min([freedom, *(count - 1.0 for count in labels)])
    half = float(t_quantile(freedom, level)) * error
    low, high = value - half, value + half
    if agreement:
        bend = max(1 - value**2, 1e-9)
        low, high = np.tanh(np.arctanh(np.clip(value, -1, 1)) + np.array([-half, half]) / bend)
    interval = Estimate(value, float(low), float(high), n, float(clusters))
    return interval.clipped(scale.low, scale.high)


def _freedom_of_sizes(sizes: npt.NDArray[np.int64]) -> float:
    """Returns Satterthwaite's degrees of freedom of a mean over clusters of these sizes."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return float(mean_error(np.zeros(len(codes)), codes).freedom)


def _lacks(items: int, clusters: int, labels: Sequence[int], alike: float) -> str:
    """Says what an interval of a kappa or correlation lacks, or nothing."""
    if items < MIN_ITEMS:
        return f"{plural(items, 'item')}, and {MIN_ITEMS} are needed"
    if clusters < MIN_CLUSTERS:
        return f"{plural(clusters, 'cluster')}, and {MIN_CLUSTERS} are needed"
    rarest = min(labels, default=MIN_LABELLED)
    if rarest < MIN_LABELLED:
        return f"a label has {plural(rarest, 'item')}, and {MIN_LABELLED} are needed"
    if alike > MOST_ALIKE and rarest < RARE_LABELLED:
        return f"nearly all labels are alike, and a rare one has fewer than {RARE_LABELLED} items"
    return "only one label is used" if len(labels) == 1 else ""


def jackknife_values(statistic: Statistic) -> Floats:
    """Computes the jackknife pseudo-value of each unit."""
    n, sums = len(statistic.rows), statistic.rows.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # the remainder may be undefined
        values: Floats = n * statistic.of(sums) - (n - 1) * statistic.of(sums - statistic.rows)
    return values


def jackknife_error(rows: Floats, statistic: Statistic) -> Floats:
    """Returns the jackknife standard error of each set of clusters."""
    with np.errstate(invalid="ignore", divide="ignore"):
        left = statistic.of(rows.sum(axis=-2, keepdims=True) - rows)
    spread: Floats = np.sqrt((rows.shape[-2] - 1) * left.var(axis=-1))
    # Rounding errors of equal values are no variance.
    return np.where(spread <= 1e-12, 0.0, spread)


RESAMPLES = 999


def bootstrap_sums(rows: Floats, *, key: Any) -> Floats:
    """Sums over resampled clusters, one row per draw, seeded from the key.

    From 1,000 clusters on, sums are drawn from their normal limit.
    """
    n = len(rows)
    if n >= MANY_ITEMS:
        sums = rows.sum(axis=0)
        shape = np.linalg.qr(rows - sums / n, mode="r")
        rng = seeded("limit", key, n)
        resampled: Floats = sums + rng.normal(size=(RESAMPLES, len(shape))) @ shape
        return resampled
    picks = seeded("bootstrap", key, n).integers(0, n, (RESAMPLES, n))
    positions = picks + n * np.arange(RESAMPLES)[:, None]
    counts = np.bincount(positions.ravel(), minlength=picks.size).reshape(-1, n)
    return counts.astype(float) @ rows


# --- means whose items are known up to bounds -----------------------------------------------------


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
    has_value = ~np.isnan(ends).any(axis=0)
    ends, codes = ends[:, has_value], grouped_codes(clusters, has_value)
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


# --- draws of rubrics ----------------------------------------------------------------------------

MANY_DRAWS = 5
"""The number of draws of rubrics from which a result holds beyond these rubrics."""
Result = TypeVar("Result")


def draw_part(table: npt.ArrayLike, *, mean_over_draws: bool = True) -> ErrorPart:
    """Returns the error component that draws of rubrics add to a mean over items.

    `table` has values by draw and item (items that lack a draw are left out); for a statistic that
    is not a mean over draws, its pseudo-values. From a mean over draws, the interaction of draw and
    item, which the error over items already contains, is subtracted.
    """
    values = np.asarray(table, dtype=float)
    values = values[:, ~np.isnan(values).any(axis=0)]
    draws, items = values.shape
    if items < 2:
        return ErrorPart(np.nan, draws - 1)
    by_draw = values.mean(axis=1, keepdims=True)
    interaction = 0.0
    if mean_over_draws:
        rest = values - by_draw - values.mean(axis=0) + values.mean()
        interaction = float((rest**2).sum()) / ((draws - 1) * (items - 1)) / items
    variance = max(0.0, by_draw.var(ddof=1) - interaction)
    return ErrorPart(float(np.sqrt(variance / draws)), draws - 1)


def pseudo_values(whole: npt.ArrayLike, without: npt.ArrayLike) -> Floats:
    """Computes jackknife pseudo-values by draw and item, from values without each draw.

    >>> pseudo_values([2.0], [[3.0], [1.0]]).tolist()  # of a mean, the draws themselves
    [[1.0], [3.0]]
    """
    lacking = np.asarray(without, dtype=float)
    values: Floats = len(lacking) * np.asarray(whole, dtype=float) - (len(lacking) - 1) * lacking
    return values


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


def without_each_draw(
    frame: pd.DataFrame,
    by: Sequence[str],
    analysis: Callable[[pd.DataFrame], Result],
    *,
    keep_others: bool = False,
) -> dict[int, Result]:
    """Applies an analysis to samples without each draw of rubrics, if draws are many.

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
        int(number): analysis(
            frame[np.where((many & has[:, column])[group], draw != number, keep_others)]
        )
        for column, number in enumerate(np.unique(draw))
        if (many & has[:, column]).any()
    }
