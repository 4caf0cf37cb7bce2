"""Which setups are best: comparisons that hold for a whole table, and corrected for the choice."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from judge_gym.analysis.stats.intervals import (
    LEVEL,
    NORMAL_FROM,
    Floats,
    item_error,
    seeded,
    t_quantile,
)
from judge_gym.records.judge_table import MIN_CLUSTERS, Standing

Codes = npt.NDArray[np.intp]
DRAWS, NORMAL_DRAWS = 1999, 9999
FOLDS = 10


class Comparison(NamedTuple):
    """Setups compared on the same items."""

    standings: tuple[Standing, ...]
    at_most_worse: Floats
    """By how much the best setup is at most better than each, with 95 % confidence for each."""


def cluster_sums(values: Floats, clusters: Codes) -> Floats:
    """Returns the sums of each column over the rows of each cluster."""
    sums = np.zeros((int(clusters.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(sums, clusters, values)
    return sums


def difference_interval(
    differences: Floats, clusters: Codes, level: float = LEVEL
) -> tuple[float, float] | tuple[None, None]:
    """Returns the interval of a mean difference of shares, by cluster; None with too few."""
    error, freedom = item_error(differences, clusters.astype(np.int64))
    if np.isnan(error):
        return None, None
    mean, half = float(differences.mean()), float(t_quantile(freedom, level) * error)
    return max(-1.0, mean - half), min(1.0, mean + half)


def compare(values: Floats, clusters: Codes) -> Comparison:
    """Compares setups with the best of the others (Hsu 1984); `values` are by item and setup.

    A setup is worse if the largest studentised difference (another minus it, by cluster) exceeds
    the 95 % quantile of that maximum. The quantile is of a wild bootstrap over clusters, whose
    random signs make all setups equal on average, so that few discordant items prove nothing.
    """
    setups, groups = values.shape[1], int(clusters.max(initial=-1)) + 1
    if setups < 2 or groups < MIN_CLUSTERS:
        return Comparison(("unknown",) * setups, np.full(setups, np.nan))
    sizes = np.bincount(clusters).astype(float)
    worse, behind = np.zeros(setups, dtype=bool), np.zeros(setups)
    for place in range(setups):
        sums = cluster_sums(np.delete(values, place, axis=1) - values[:, [place]], clusters)
        means, errors = _means(sums.sum(axis=0), sums, sums.T @ sizes, sizes)
        limit = _largest(sums, sizes)
        worse[place] = float(_studentised(means, errors).max()) > limit
        behind[place] = max(0.0, float((means + max(limit, 0.0) * errors).max()))
    kept: Standing = "best" if int((~worse).sum()) == 1 else "tied"
    return Comparison(tuple("worse" if lost else kept for lost in worse), behind)


def _largest(sums: Floats, sizes: Floats) -> float:
    """Returns the 95 % quantile of the largest studentised difference if there is none."""
    groups = len(sums)
    if groups >= NORMAL_FROM:
        drawn = _correlated(sums.T, "standing")
    else:
        signs = seeded("standing", groups).choice([-1.0, 1.0], (DRAWS, groups))
        drawn = _studentised(*_means(signs @ sums, sums, signs @ (sums * sizes[:, None]), sizes))
    return float(np.quantile(drawn.max(axis=1), LEVEL, method="higher"))


def _means(totals: Floats, sums: Floats, by_size: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Returns means over items and their errors by cluster.

    Signs change `totals` (of the clusters' sums) and `by_size` (of sums times sizes), not squares.
    """
    means = totals / sizes.sum()
    squares = (sums**2).sum(axis=0) - 2 * means * by_size + means**2 * (sizes**2).sum()
    spread = np.maximum(squares, 0.0) * len(sizes) / (len(sizes) - 1)
    return means, np.sqrt(spread) / sizes.sum()


def _studentised(means: Floats, errors: Floats) -> Floats:
    """Returns means in units of their errors; infinite without any variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(np.abs(means) > 1e-9, np.sign(means) * np.inf, 0.0)
        t: Floats = np.where(errors > 1e-9, means / errors, limits)
    return t


def simultaneous_level(influences: Floats) -> float:
    """Returns the level of each interval at which all of them hold together in 95 % of tables.

    `influences` has, by row of a table and cluster, how far the cluster moves the row's estimate.
    The level is that of the largest of normal deviations with these correlations (single-step
    max-T); rows without variance count as independent.
    """
    if len(influences) < 2:
        return LEVEL
    largest = np.quantile(np.abs(_correlated(influences, "max-t")).max(axis=1), LEVEL)
    return float(special.ndtr(largest) * 2 - 1)


def pairwise_level(influences: Floats) -> float:
    """Returns the level at which the intervals of the differences of all pairs of rows hold."""
    if len(influences) < 3:
        return LEVEL
    drawn = _correlated(influences, "pairs") * np.linalg.norm(influences, axis=1)
    largest = np.zeros(len(drawn))
    for place in range(len(influences) - 1):
        errors = np.linalg.norm(influences[place + 1 :] - influences[place], axis=1)
        gaps = np.abs(drawn[:, place + 1 :] - drawn[:, [place]])
        t = gaps / np.where(errors > 1e-12, errors, np.inf)
        largest = np.maximum(largest, t.max(axis=1))
    return max(LEVEL, float(special.ndtr(np.quantile(largest, LEVEL)) * 2 - 1))


def _correlated(rows: Floats, purpose: str) -> Floats:
    """Returns draws of normal numbers, with a column per row and the correlations of the rows."""
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    units = np.where(sizes > 1e-12, rows / np.maximum(sizes, 1e-12), 0.0)
    correlations = units @ units.T
    np.fill_diagonal(correlations, 1.0)
    values, vectors = np.linalg.eigh(correlations)
    drawn = seeded(purpose, len(rows)).standard_normal((NORMAL_DRAWS, len(rows)))
    found: Floats = drawn @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    return found


def choose(values: Floats, clusters: Codes, prices: Floats, margin: float | None) -> int:
    """Returns the place of the setup with the highest mean, or of a cheaper one that is as good.

    A cheaper one is only taken if it is at most the margin worse than the best.
    """
    means = values.mean(axis=0)
    best = min(range(len(means)), key=lambda k: (-round(means[k], 12), _price(prices, k), k))
    if not margin:
        return best
    found = compare(values, np.unique(clusters, return_inverse=True)[1])
    fine = [
        place
        for place, standing in enumerate(found.standings)
        if standing == "tied" and found.at_most_worse[place] < margin
    ]
    return min([best, *fine], key=lambda k: (_price(prices, k), -means[k]))


def _price(prices: Floats, place: int) -> float:
    return float(np.inf if np.isnan(prices[place]) else prices[place])


def cross_fitted(values: Floats, clusters: Codes, prices: Floats, margin: float | None) -> Floats:
    """Returns each item's value by the setup that was chosen on the other folds of clusters."""
    groups = int(clusters.max(initial=-1)) + 1
    order = seeded("folds", groups).permutation(groups)
    fold = (order % min(FOLDS, groups))[clusters]
    found = np.full(len(values), np.nan)
    for number in np.unique(fold):
        out = fold == number
        if out.all():
            return values[:, choose(values, clusters, prices, margin)]
        found[out] = values[out, choose(values[~out], clusters[~out], prices, margin)]
    return found
