"""Rank correlation of a judge's mean stage with people's mean: tau-b and Spearman's.

Neither is a function of sums over items, so that the jackknife deletes each cluster exactly, from
the signs of all pairs of items (quadratic in distinct values, in blocks that fit in memory).
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from judge_gym.analysis.measures.jackknife import Jackknife
from judge_gym.analysis.stats.clusters import cluster_sums
from judge_gym.analysis.stats.intervals import (
    CORRELATION,
    LEVEL,
    Estimate,
    jackknife_estimate,
    undefined,
)

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Correlation = Literal["tau_b", "spearman"]
MOST_UNSCORED = 0.1
"""The share of items without a score from which the correlation has no interval."""
MIN_RATER_ITEMS = 10
"""The number of items that a rater must share with others to be compared with them."""
BLOCK = 1 << 22
"""The number of pairs of items that are held in memory at once."""
DIGITS = 9
"""Means that are equal to so many decimals are tied: those of 1, 3, 2 and of 2, 2, 2 differ by
rounding."""


class RankCorrelation(NamedTuple):
    """A rank correlation over the items that have a score."""

    jackknife: Jackknife
    unscored: int
    """The items with labels that have no score of the judge, which are left out."""


def mean_stage(verdict: Floats, stages: int) -> Floats:
    """Averages each item's stages (from 1 on) over scored verdicts, NaN where there are none."""
    scored = verdict[:, :stages]
    total = scored.sum(axis=1)
    mean: Floats = np.full(len(verdict), np.nan)
    np.divide(scored @ np.arange(1.0, stages + 1), total, out=mean, where=total > 1e-12)
    return mean


def rank_correlation(
    judge: Floats, people: Floats, clusters: Codes | None = None, kind: Correlation = "tau_b"
) -> RankCorrelation:
    """Correlates the judge's mean stages with people's, both by item and NaN where missing.

    Influences are by cluster of all items, in the order of their numbers; clusters without any
    scored item have none.
    """
    codes = (
        np.arange(len(judge)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    )
    return RankCorrelation(
        _correlate(judge, people, codes, kind),
        int((np.isnan(judge) & ~np.isnan(people)).sum()),
    )


def rank_interval(correlation: RankCorrelation, *, level: float = LEVEL) -> Estimate:
    """Gives a rank correlation its interval, unless the judge leaves out too many items."""
    jackknife = correlation.jackknife
    sizes = jackknife.sizes[jackknife.sizes > 0]
    items = int(sizes.sum())
    total = items + correlation.unscored
    if correlation.unscored > MOST_UNSCORED * total:
        reason = f"{correlation.unscored} of {total} items have no score"
        return undefined(items, jackknife.value, reason)
    if np.isnan(jackknife.value):
        return undefined(items, withheld="the judge or people use a single stage")
    return jackknife_estimate(
        jackknife.value, jackknife.error, sizes, scale=CORRELATION, level=level
    )


# --- people with each other, and a judge in the place of one of them ------------------------------


class AmongPeople(NamedTuple):
    """Rank correlations with the mean of the other raters, averaged over the rater left out."""

    people: RankCorrelation
    """Each rater's stage with the mean of the others."""
    judge: RankCorrelation | None
    """The judge's mean stage with the same means, on the same items."""
    raters: int
    """The raters that share enough items with others."""


def among_people(
    ratings: Floats,
    judge: Floats | None = None,
    clusters: Codes | None = None,
    kind: Correlation = "tau_b",
) -> AmongPeople | None:
    """Correlates each rater with the mean of the others, and the judge with the same means.

    Raters are weighed by the items that they share with others, which are all items where everybody
    rated everything. A rater that shares fewer than ten, or whose correlation is not defined, is
    left out. None if nobody remains.

    Args:
        ratings: Stages by item and rater; NaN where a rater did not rate.
        judge: The judge's mean stages by item.
        clusters: The number of each item's cluster.
        kind: Which correlation.
    """
    items, raters = ratings.shape
    codes = _numbered(clusters, items)
    rated = ~np.isnan(ratings)
    totals, counts = np.nansum(ratings, axis=1), rated.sum(axis=1)
    weights: list[float] = []
    ours: list[Jackknife] = []
    theirs: list[Jackknife] = []
    used = np.full(items, False)
    for rater in range(raters):
        shared = rated[:, rater] & (counts > 1)
        other_mean = np.full(items, np.nan)
        other_mean[shared] = (totals - ratings[:, rater])[shared] / (counts - 1)[shared]
        correlation = _correlate(ratings[:, rater], other_mean, codes, kind)
        if shared.sum() < MIN_RATER_ITEMS or np.isnan(correlation.value):
            continue
        used |= shared
        weights.append(float(shared.sum()))
        ours.append(correlation)
        if judge is not None:
            theirs.append(_correlate(judge, other_mean, codes, kind))
    if not weights:
        return None
    people = RankCorrelation(_average(ours, weights, used, codes), 0)
    if judge is None:
        return AmongPeople(people, None, len(weights))
    scored = used & ~np.isnan(judge)
    beside = _average(theirs, weights, scored, codes)
    return AmongPeople(people, RankCorrelation(beside, int((used & ~scored).sum())), len(weights))


def _average(
    parts: list[Jackknife], weights: list[float], used: npt.NDArray[np.bool_], codes: Codes
) -> Jackknife:
    """Averages correlations, with and without each cluster."""
    value = float(np.average([part.value for part in parts], weights=weights))
    without: Floats = np.average([part.without for part in parts], axis=0, weights=weights)
    return Jackknife(value, without, cluster_sums(used.astype(float), codes))


# --- correlations without each cluster -----------------------------------------------------------


def _correlate(x: Floats, y: Floats, codes: Codes, kind: Correlation) -> Jackknife:
    """Correlates where both have a value. `codes` number the clusters of all items from 0 on."""
    complete = ~np.isnan(x) & ~np.isnan(y)
    sizes = cluster_sums(complete.astype(float), codes)
    if not complete.any():
        return Jackknife(np.nan, np.full(len(sizes), np.nan), sizes)
    order = np.flatnonzero(complete)[np.argsort(codes[complete], kind="stable")]
    products = _tau_sums if kind == "tau_b" else _rank_sums
    all_products, without = products(x[order].round(DIGITS), y[order].round(DIGITS), codes[order])
    value = _ratio(all_products)
    values = np.full(len(sizes), value)  # a cluster without complete items changes nothing
    values[np.unique(codes[order])] = _ratio(without)
    return Jackknife(float(value), values, sizes)


def _ratio(sums: Floats) -> Floats:
    """Maps (xy, xx, yy) in the first axis to the correlation, NaN where a side has no spread."""
    spread = sums[1] * sums[2]
    ratio: Floats = np.full(np.shape(spread), np.nan)
    np.divide(sums[0], np.sqrt(np.maximum(spread, 0.0)), out=ratio, where=spread > 0.5)
    return ratio


def _tau_sums(x: Floats, y: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """Counts concordant less discordant pairs, and pairs untied in x and y: all, and by cluster.

    Without a cluster, the pairs of its items are subtracted; those within it were subtracted twice.
    """
    cells = _Cells.of(x, y, codes)
    rows = np.zeros((3, len(cells.x)))
    for block in _blocks(len(cells.x), len(cells.x)):
        signs = np.sign(cells.x[block, None] - cells.x), np.sign(cells.y[block, None] - cells.y)
        rows[:, block] = np.stack(_pair_products(*signs)) @ cells.items
    starts = _starts(cells.cluster)
    by_cluster = np.add.reduceat(rows[:, cells.cell] * cells.times, starts, axis=1)
    if len(starts) < len(cells.cell):
        by_cluster -= _within_clusters(cells) / 2
    total = rows @ cells.items / 2
    return total, total[:, None] - by_cluster


def _within_clusters(cells: "_Cells") -> Floats:
    """Sums what `_tau_sums` counts over the ordered pairs within each cluster."""
    starts = _starts(cells.cluster)
    sizes = np.diff([*starts, len(cells.cell)])
    totals = np.zeros((3, len(starts)))
    for cluster in np.flatnonzero(sizes > 1):
        span = slice(starts[cluster], starts[cluster] + sizes[cluster])
        cell, times = cells.cell[span], cells.times[span]
        x, y = cells.x[cell], cells.y[cell]
        for block in _blocks(len(cell), len(cell)):
            signs = np.sign(x[block, None] - x), np.sign(y[block, None] - y)
            for kind, product in enumerate(_pair_products(*signs)):
                totals[kind, cluster] += times[block] @ product @ times
    return totals


def _pair_products(signs_x: Floats, signs_y: Floats) -> tuple[Floats, Floats, Floats]:
    return signs_x * signs_y, np.abs(signs_x), np.abs(signs_y)


def _rank_sums(x: Floats, y: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """Sums products of centred ranks (doubled): of all items, and anew without each cluster.

    The doubled distance of a rank, with ties, from the mean rank is the sum of the signs of the
    differences from all items; without a cluster, those from its items are subtracted.
    """
    cells = _Cells.of(x, y, codes)
    ranks = [_sign_sums(side, side, cells.items) for side in (cells.x, cells.y)]
    starts = _starts(cells.cluster)
    ends = np.append(starts[1:], len(cells.cell))
    without = np.zeros((3, len(starts)))
    # Clusters of one item are alike where their items are in one cell.
    alike = np.full(len(cells.x), -1)
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        cell, times = cells.cell[start:end], cells.times[start:end]
        single = end - start == 1 and times[0] == 1
        if single and alike[cell[0]] >= 0:
            without[:, number] = without[:, alike[cell[0]]]
            continue
        remaining = [
            rank - _sign_sums(side, side[cell], times)
            for rank, side in zip(ranks, (cells.x, cells.y), strict=True)
        ]
        count = cells.items.copy()
        count[cell] -= times
        without[:, number] = _products(remaining[0], remaining[1]) @ count
        if single:
            alike[cell[0]] = number
    return _products(ranks[0], ranks[1]) @ cells.items, without


def _sign_sums(values: Floats, others: Floats, times: Floats) -> Floats:
    """Sums the signs of the differences of each value from others, which occur several times."""
    order = np.argsort(others, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(times[order])])
    smaller = below[np.searchsorted(others[order], values, side="left")]
    larger = below[-1] - below[np.searchsorted(others[order], values, side="right")]
    difference: Floats = smaller - larger
    return difference


def _products(x: Floats, y: Floats) -> Floats:
    return np.stack([x * y, x * x, y * y])


class _Cells(NamedTuple):
    """Items with equal values as one: stages are few, and pairs of items many."""

    x: Floats
    """The first value of each cell."""
    y: Floats
    items: Floats
    """The number of its items."""
    cell: Codes
    """The cell of each entry: a cell that a cluster has; sorted by cluster."""
    cluster: Codes
    times: Floats
    """How many items of the cluster are in the cell."""

    @staticmethod
    def of(x: Floats, y: Floats, codes: Codes) -> "_Cells":
        """Groups items by their values, and by cluster."""
        values, cell = np.unique(np.column_stack([x, y]), axis=0, return_inverse=True)
        cell = cell.reshape(-1)
        count = np.bincount(cell, minlength=len(values)).astype(float)
        key = np.unique(codes, return_inverse=True)[1] * max(1, len(values)) + cell
        entries, times = np.unique(key, return_counts=True)
        cluster, of_entry = np.divmod(entries, max(1, len(values)))
        return _Cells(values[:, 0], values[:, 1], count, of_entry, cluster, times.astype(float))


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yields parts of the rows of a matrix that fit in memory."""
    size = max(1, BLOCK // max(1, columns))
    for start in range(0, rows, size):
        yield slice(start, start + size)


def _numbered(clusters: Codes | None, items: int) -> Codes:
    """Numbers clusters from 0 on. By default, each item is its own."""
    return np.arange(items) if clusters is None else np.unique(clusters, return_inverse=True)[1]


def _starts(codes: Codes) -> npt.NDArray[np.intp]:
    """Finds where each cluster begins among sorted codes."""
    return np.flatnonzero(np.diff(codes, prepend=-1))
