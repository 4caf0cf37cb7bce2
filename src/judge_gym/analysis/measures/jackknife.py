"""Intervals and influences of measures that are no means: delete one cluster at a time."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from judge_gym.analysis.stats.clusters import MIN_FREEDOM, cluster_sums, mean_error
from judge_gym.analysis.stats.intervals import (
    LEVEL,
    Estimate,
    Statistic,
    t_quantile,
    undefined,
)

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
MIN_ITEMS = 20
MIN_CLUSTERS = 10
MIN_LABEL_ITEMS = 5
"""The number of items that each label must have which people use."""


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


def jackknife_sums(statistic: Statistic, clusters: Codes | None = None) -> Jackknife:
    """Jackknifes a function of sums; items of one cluster are deleted together."""
    items = len(statistic.rows)
    active = np.asarray((statistic.rows != 0).any(axis=1), dtype=float)
    codes = np.arange(items) if clusters is None else clusters
    by_cluster = cluster_sums(statistic.rows, codes)
    sizes = cluster_sums(active, codes)
    sums = by_cluster.sum(axis=0)
    without = statistic.of(np.maximum(sums - by_cluster, 0.0))  # terms are shares, never negative
    return Jackknife(float(statistic.of(sums)), without, sizes)


def withheld_reason(sizes: Floats, label_items: npt.ArrayLike | None = None) -> str:
    """Says why a measure beyond rates has no interval; empty if nothing speaks against it.

    Args:
        sizes: The number of items by cluster.
        label_items: The number of items that people give each label, unused ones among them; None
            if the measure does not depend on how often each occurs.
    """
    items, clusters = int(sizes.sum()), int((sizes > 0).sum())
    if items < MIN_ITEMS:
        return f"{_counted(items, 'item')}; {MIN_ITEMS} are needed"
    if clusters < MIN_CLUSTERS:
        return f"{_counted(clusters, 'cluster')}; {MIN_CLUSTERS} are needed"
    if label_items is None:
        return ""
    used = _used(label_items)
    if len(used) < 2:
        return "people use a single label"
    if min(used) < MIN_LABEL_ITEMS:
        return f"a label has {_counted(min(used), 'item')}; {MIN_LABEL_ITEMS} are needed"
    return ""


def jackknife_interval(
    measure: Jackknife, label_items: npt.ArrayLike | None = None, *, level: float = LEVEL
) -> Measured:
    """Gives a kappa or correlation its interval: Student's t on the scale of arctanh.

    The error is carried to that scale by its slope: the jackknife of transformed values would be
    infinite where a single disagreement is left out. There are at most as many degrees of freedom
    as the rarest label has items, less 1: nearly all of the error of a kappa comes from these, and
    with the freedom of all items 85 to 92 % of intervals cover where mistakes are rare but large.
    """
    items, value = int(measure.sizes.sum()), measure.value
    nothing = undefined(items, value)
    reason = withheld_reason(measure.sizes, label_items)
    if reason:
        return Measured(nothing, reason)
    if np.isnan(value):
        return Measured(nothing, "not defined: the judge or people use a single label")
    if np.isnan(measure.without).any():
        return Measured(nothing, "not defined without one of the clusters")
    freedom = measure.freedom
    if freedom < MIN_FREEDOM:
        return Measured(nothing, "a few clusters have nearly all items")
    if label_items is not None:
        freedom = min(freedom, min(_used(label_items)) - 1.0)
    if abs(value) > 1 - 1e-9:
        return Measured(nothing, "without any disagreement its error is not known")
    if measure.error < 1e-12:
        return Measured(nothing, "without variance its error is not known")
    half = float(t_quantile(freedom, level)) * measure.error / (1 - value**2)
    low, high = np.tanh([np.arctanh(value) - half, np.arctanh(value) + half])
    return Measured(Estimate(value, float(low), float(high), items))


def _used(label_items: npt.ArrayLike) -> list[int]:
    return [int(count) for count in np.asarray(label_items) if count > 0]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
