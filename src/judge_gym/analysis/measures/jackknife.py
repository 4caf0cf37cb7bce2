"""Influences of clusters on measures that are no means: each cluster is left out in turn."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from judge_gym.analysis.stats.clusters import cluster_sums
from judge_gym.analysis.stats.intervals import Statistic

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


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
