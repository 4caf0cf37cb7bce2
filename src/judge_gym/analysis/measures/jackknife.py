"""Intervals and influences of measures that are no means: delete one cluster at a time."""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from judge_gym.analysis.stats.clusters import MIN_FREEDOM, cluster_sums, mean_error
from judge_gym.analysis.stats.intervals import (
    LEVEL,
    Estimate,
    SumStatistic,
    t_quantile,
    undefined,
)

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
MIN_ITEMS = 20
MIN_CLUSTERS = 10
MIN_LABEL_ITEMS = 5
"""The number of items that each label must have which people use."""
Transform = Literal["arctanh", "log_distance"]
"""The scale on which an interval is symmetric: arctanh(value), or log(1 - value)."""


class Jackknife(NamedTuple):
    """A measure of a setup, and the measure without each cluster in turn."""

    value: float
    without: Floats
    """By cluster, in the order of the clusters' numbers."""
    sizes: Floats
    """The items of each cluster that have an influence."""

    @property
    def influences(self) -> Floats:
        """The pseudo-value of each cluster; of a mean over equal clusters, their means.

        Differences between setups on the same clusters are compared through these.
        """
        count = len(self.without)
        return count * self.value - (count - 1) * self.without

    @property
    def error(self) -> float:
        """The standard error."""
        count = len(self.without)
        if count < 2:
            return np.nan
        return float(np.sqrt((count - 1) * self.without.var()))

    @property
    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom; the number of clusters less 1 if all are equal."""
        sizes = self.sizes[self.sizes > 0].astype(int)
        if len(sizes) < 2:
            return 0.0
        if np.ptp(sizes) == 0:
            return len(sizes) - 1.0
        codes = np.repeat(np.arange(len(sizes)), sizes)
        return float(mean_error(np.zeros(len(codes)), codes).freedom)


class Measured(NamedTuple):
    """An estimate, and the reason if it has no interval."""

    estimate: Estimate
    withheld: str = ""


def jackknife_sums(statistic: SumStatistic, clusters: Codes | None = None) -> Jackknife:
    """Jackknifes a function of sums; items of one cluster are deleted together."""
    items = len(statistic.rows)
    active = np.asarray((statistic.rows != 0).any(axis=1), dtype=float)
    codes = np.arange(items) if clusters is None else clusters
    by_cluster = cluster_sums(statistic.rows, codes)
    sizes = cluster_sums(active, codes)
    sums = by_cluster.sum(axis=0)
    without = statistic.of(np.maximum(sums - by_cluster, 0.0))  # terms are shares, never negative
    return Jackknife(float(statistic.of(sums)), without, sizes)


def withheld_reason(sizes: Floats, label_items: npt.ArrayLike = ()) -> str:
    """Says why a measure beyond rates has no interval; empty if nothing speaks against it.

    Args:
        sizes: The number of items by cluster.
        label_items: The number of items that people give each label, unused ones among them.
    """
    items, clusters = int(sizes.sum()), int((sizes > 0).sum())
    if items < MIN_ITEMS:
        return f"{_counted(items, 'item')}; {MIN_ITEMS} are needed"
    if clusters < MIN_CLUSTERS:
        return f"{_counted(clusters, 'cluster')}; {MIN_CLUSTERS} are needed"
    used = [int(count) for count in np.asarray(label_items) if count > 0]
    if used and min(used) < MIN_LABEL_ITEMS:
        return f"a label has {_counted(min(used), 'item')}; {MIN_LABEL_ITEMS} are needed"
    return ""


def jackknife_interval(
    measure: Jackknife,
    transform: Transform,
    label_items: npt.ArrayLike = (),
    *,
    level: float = LEVEL,
) -> Measured:
    """Gives a kappa or correlation its interval, with Student's t on a transformed scale.

    The error is carried to the transformed scale by its slope. (The jackknife of transformed values
    would be infinite where a single disagreement is left out.)
    """
    items, value = int(measure.sizes.sum()), measure.value
    nothing = undefined(items, value)
    if np.isnan(value):
        return Measured(nothing, "not defined: the judge or people use a single label")
    reason = withheld_reason(measure.sizes, label_items)
    if reason:
        return Measured(nothing, reason)
    if np.isnan(measure.without).any():
        return Measured(nothing, "not defined without one of the clusters")
    if measure.freedom < MIN_FREEDOM:
        return Measured(nothing, "a few clusters have nearly all items")
    if abs(value) > 1 - 1e-9:
        return Measured(nothing, "without any disagreement its error is not known")
    if measure.error < 1e-12:
        return Measured(nothing, "without variance its error is not known")
    reach = float(t_quantile(measure.freedom, level)) * measure.error
    if transform == "arctanh":
        middle, half = np.arctanh(value), reach / (1 - value**2)
        low, high = np.tanh([middle - half, middle + half])
    else:
        low, high = 1 - (1 - value) * np.exp([reach / (1 - value), -reach / (1 - value)])
    return Measured(Estimate(value, max(-1.0, float(low)), min(1.0, float(high)), items))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
