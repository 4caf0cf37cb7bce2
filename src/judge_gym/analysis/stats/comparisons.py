"""Comparisons of setups or conditions on the same items: one pair, or all against the best.

`compare` gives differences with intervals, which setups are worse than the best, and by how much at
most. One rule decides what is worse, wherever a table, a sentence or a page says it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from judge_gym.analysis.stats.clusters import Codes, cluster_sums, grouped_codes, infers
from judge_gym.analysis.stats.intervals import (
    DIFFERENCE,
    LEVEL,
    MANY_ITEMS,
    Estimate,
    Floats,
    Scale,
    Statistic,
    difference,
    draw_part,
    estimate,
    influences,
    item_error,
    p_value,
    seeded,
    widened_by_draws,
)
from judge_gym.analysis.stats.paired_tests import cliffs_delta, mcnemar, sign_flip
from judge_gym.records.judge_table import MIN_CLUSTERS, Standing
from judge_gym.records.numbers import plural

SIGN_DRAWS, NORMAL_DRAWS = 1999, 9999


class Comparison(NamedTuple):
    """Setups compared on the same items."""

    reference: int
    """The setup that the others are compared with: the one with the highest mean, or that asked."""
    differences: tuple[Estimate | None, ...]
    """Each setup minus the reference; None for the reference itself."""
    standings: tuple[Standing, ...]
    """Unknown with too few clusters, and where a reference was asked for."""
    at_most_worse: Floats
    """By how much the best setup is at most better than each, with 95 % confidence for each."""


class PairedResult(NamedTuple):
    """The difference of two conditions on the items that both have, with a test."""

    difference: Estimate
    p: float
    test: str
    d_z: float
    cliffs_delta: float


def compare(
    values: npt.ArrayLike | Sequence[Statistic],
    clusters: Codes | None = None,
    *,
    below: npt.ArrayLike | None = None,
    against: int | None = None,
    scale: Scale = DIFFERENCE,
    level: float = LEVEL,
) -> Comparison:
    """Compares setups on the same items.

    Args:
        values: one number per item and setup; with `below`, numerators of ratios by item and setup
            (and column, of which the mean is compared, such as balanced accuracy); or a statistic
            for each setup, whose rows are the same items.
        clusters: the number of each item's cluster; each is its own if left out.
        below: the denominators of ratios.
        against: the setup that the others are compared with; the best if left out.
        scale: that of the differences of a single item.
        level: the confidence level of all differences together.

    Which setup is the best depends on the data, so that intervals of differences from it hold for
    all pairs of setups together.
    """
    table = influences(values, below)
    items, setups = table.shape
    codes = np.arange(items) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sums = cluster_sums(table - table.mean(axis=0), codes) / max(items, 1)
    reference = int(table.mean(axis=0).argmax()) if against is None else against
    enough = len(sums) >= MIN_CLUSTERS
    gaps = table - table[:, [reference]]
    between = cluster_sums((gaps - gaps.mean(axis=0)) / max(items, 1), codes)
    together = level if against is not None else pairwise_level(between.T, level)
    # The influence of an item on a measure other than a mean may exceed the scale of the measure.
    widest = max(scale.high, float(np.ptp(table, axis=1).max(initial=0.0)))
    reach = difference(widest, cautious=scale.cautious)
    differences = [
        None
        if setup == reference
        else estimate(gaps[:, setup], codes, scale=reach, level=together).clipped(*_ends(scale))
        for setup in range(setups)
    ]
    unknown = ("unknown",) * setups, np.full(setups, np.nan)
    if against is not None or setups < 2 or not enough:
        if not enough:
            differences = [gap and _without_interval(gap, len(sums)) for gap in differences]
        return Comparison(reference, tuple(differences), *unknown)
    limits = _worse(cluster_sums(table, codes), np.bincount(codes).astype(float))
    standing: Standing = "best" if int(np.isnan(limits).sum()) == 1 else "tied"
    standings = tuple(standing if np.isnan(limit) else "worse" for limit in limits)
    errors = np.sqrt(((sums - sums[:, [reference]]) ** 2).sum(axis=0))
    differences = [
        gap and _agreeing(gap, limit, error)
        for gap, limit, error in zip(differences, limits, errors, strict=True)
    ]
    behind = [_at_most_worse(table, setup, codes, sums, reach) for setup in range(setups)]
    return Comparison(reference, tuple(differences), standings, np.array(behind))


def _ends(scale: Scale) -> tuple[float, float]:
    return scale.low, scale.high


def _without_interval(difference: Estimate, clusters: int) -> Estimate:
    """Removes a difference's interval, which few clusters do not support."""
    reason = f"{plural(clusters, 'cluster')}, and {MIN_CLUSTERS} are needed"
    return difference._replace(low=np.nan, high=np.nan, withheld=reason)


# --- which setups are worse ----------------------------------------------------------------------


def _worse(sums: Floats, sizes: Floats) -> Floats:
    """Finds setups outside the model confidence set, with the limit that each exceeded, else NaN.

    The model confidence set (Hansen, Lunde and Nason 2011) contains the best setup in 95 % of
    tables: while the largest studentised difference of two setups exceeds its 95 % quantile, the
    setup that is most behind another leaves. Equal setups are all kept in 95 % of tables, so that
    any "worse" among them is said in at most 5 %. Of two setups, each is worse in 2.5 %.

    The quantile is of a wild bootstrap, whose random signs of clusters make all setups equal on
    average, so that few discordant items prove nothing: five that all favour one of two setups have
    p = 2 / 32.
    """
    setups = sums.shape[1]
    t = np.zeros((setups, setups))  # how far a setup is ahead of another, in standard errors
    for setup in range(setups):
        gaps = sums - sums[:, [setup]]
        t[:, setup] = _studentised(*_means(gaps.sum(axis=0), gaps, sizes @ gaps, sizes))
    # The order of leaving does not depend on the bootstrap, whose maxima grow with the set.
    order, remaining = [], list(range(setups))
    while len(remaining) > 1:
        behind = t[np.ix_(remaining, remaining)].max(axis=0)
        order.append(remaining.pop(int(behind.argmax())))
    flips, members = _Flips(sums, sizes), list(remaining)
    largest = np.zeros(flips.draws)
    steps = []
    for setup in reversed(order):
        largest = np.maximum(largest, flips.largest(members, setup))
        members.append(setup)
        reached = float(np.abs(t[np.ix_(members, members)]).max())
        p = (1 + int((largest >= reached - 1e-9).sum())) / (1 + len(largest))
        steps.append((setup, p, float(np.quantile(largest, LEVEL, method="higher"))))
    limits = np.full(setups, np.nan)
    for setup, p, limit in reversed(steps):
        if p > 1 - LEVEL:
            break
        limits[setup] = limit
    return limits


class _Flips:
    """Draws of studentised differences between setups that are equal on average."""

    def __init__(self, sums: Floats, sizes: Floats) -> None:
        # Clusters on which all setups do the same have no sign.
        discordant = np.ptp(sums, axis=1) > 1e-12
        self._sums, self._sizes, self._all_sizes = sums[discordant], sizes[discordant], sizes
        groups = len(self._sums)
        self._normal = groups >= MANY_ITEMS
        if self._normal:  # the limit of many signs
            centred = np.linalg.qr(self._sums, mode="r")
            rng = seeded("standing", len(sums))
            self._totals = rng.standard_normal((NORMAL_DRAWS, len(centred))) @ centred
        else:
            self._signs = seeded("standing", groups).choice([-1.0, 1.0], (SIGN_DRAWS, groups))

    @property
    def draws(self) -> int:
        return NORMAL_DRAWS if self._normal else SIGN_DRAWS

    def largest(self, setups: Sequence[int], other: int) -> Floats:
        """Finds the largest absolute difference between a setup and some others, by draw."""
        gaps = self._sums[:, list(setups)] - self._sums[:, [other]]
        if self._normal:
            moved = self._totals[:, list(setups)] - self._totals[:, [other]]
            errors = np.linalg.norm(gaps, axis=0)
            t = np.abs(moved) / np.where(errors > 1e-12, errors, np.inf)
        else:
            by_size = self._signs @ (gaps * self._sizes[:, None])
            means, errors = _means(self._signs @ gaps, gaps, by_size, self._all_sizes)
            t = np.abs(_studentised(means, errors))
        largest: Floats = t.max(axis=1)
        return largest


def _means(totals: Floats, sums: Floats, by_size: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Computes means over items and their errors by cluster.

    Signs change `totals` (of the clusters' sums) and `by_size` (of sums times sizes), not squares.
    """
    means = totals / sizes.sum()
    squares = (sums**2).sum(axis=0) - 2 * means * by_size + means**2 * (sizes**2).sum()
    spread = np.maximum(squares, 0.0) * len(sizes) / (len(sizes) - 1)
    return means, np.sqrt(spread) / sizes.sum()


def _studentised(means: Floats, errors: Floats) -> Floats:
    """Divides means by their errors, which is infinite without any variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.where(np.abs(means) > 1e-9, np.sign(means) * np.inf, 0.0)
        t: Floats = np.where(errors > 1e-9, means / errors, ends)
    return t


def _agreeing(difference: Estimate, limit: float, error: float) -> Estimate:
    """Widens or narrows a difference's interval until it excludes 0 where the setup is worse.

    The test decides, and the interval is made by another method. Where they disagree about 0, the
    interval ends where the test would no longer tell the setup from the best, or reaches 0.
    """
    if not difference.known:
        return difference
    if np.isnan(limit):
        return difference._replace(high=max(difference.high, 0.0))
    if difference.high < 0:
        return difference
    end = difference.value + limit * error if np.isfinite(limit) else difference.value
    return difference._replace(high=min(end, 0.0))


def _at_most_worse(table: Floats, setup: int, codes: Codes, sums: Floats, scale: Scale) -> float:
    """Bounds by how much the best of the others is better than a setup."""
    other_setups = np.delete(np.arange(table.shape[1]), setup)
    largest = _correlated((sums[:, other_setups] - sums[:, [setup]]).T, "best of others").max(
        axis=1
    )
    # One-sided: an interval of this level misses above in 5 % of tables, for all others together.
    level = 2 * float(special.ndtr(np.quantile(largest, LEVEL))) - 1
    ends = [
        estimate(table[:, other] - table[:, setup], codes, scale=scale, level=level).high
        for other in other_setups
    ]
    return max(0.0, float(np.max(ends)))


# --- levels at which several intervals hold together ---------------------------------------------


def simultaneous_level(influences: Floats, level: float = LEVEL) -> float:
    """Finds the level of each interval at which all hold together in 95 % of tables.

    `influences` has, by row of a table and cluster, how far the cluster moves the row's estimate.
    The level is that of the largest of normal deviations with these correlations (single-step
    max-T); rows without variance count as independent.
    """
    if len(influences) < 2:
        return level
    largest = np.quantile(np.abs(_correlated(influences, "max-t")).max(axis=1), level)
    return float(special.ndtr(largest) * 2 - 1)


def pairwise_level(influences: Floats, level: float = LEVEL) -> float:
    """Finds the level at which the intervals of the differences of all pairs of rows hold."""
    if len(influences) < 3:
        return level
    draws = _correlated(influences, "pairs") * np.linalg.norm(influences, axis=1)
    largest = np.zeros(len(draws))
    for row in range(len(influences) - 1):
        errors = np.linalg.norm(influences[row + 1 :] - influences[row], axis=1)
        gaps = np.abs(draws[:, row + 1 :] - draws[:, [row]])
        t = gaps / np.where(errors > 1e-12, errors, np.inf)
        largest = np.maximum(largest, t.max(axis=1))
    return max(level, float(special.ndtr(np.quantile(largest, level)) * 2 - 1))


def _correlated(rows: Floats, purpose: str) -> Floats:
    """Draws normal numbers, with a column per row and the correlations of the rows."""
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    units = np.where(sizes > 1e-12, rows / np.maximum(sizes, 1e-12), 0.0)
    correlations = units @ units.T
    np.fill_diagonal(correlations, 1.0)
    values, vectors = np.linalg.eigh(correlations)
    draws: Floats = (
        _normal_draws(purpose, len(rows)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    )
    return draws


@lru_cache(maxsize=16)
def _normal_draws(purpose: str, columns: int) -> Floats:
    return seeded(purpose, columns).standard_normal((NORMAL_DRAWS, columns))


# --- one pair, with a test -----------------------------------------------------------------------


def compare_pair(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    clusters: Codes | None = None,
    *,
    key: Any,
    scale: Scale = DIFFERENCE,
    draws: npt.ArrayLike | None = None,
) -> PairedResult:
    """Compares two conditions, left minus right, on the items that have a value in both.

    Values that are all 0 or 1 are tested by McNemar, others by flipping signs, seeded from the key.
    With many draws of rubrics (differences by draw and item), interval and test account for the
    draws, by Student's t of items and of draws. In clusters signs are flipped by cluster; with too
    few clusters there is neither interval nor test.
    """
    # Means of equal numbers may differ in their last digit; ranks and signs must not see that.
    ours, theirs = (np.round(np.asarray(side, dtype=float), 12) for side in (left, right))
    both = np.isfinite(ours) & np.isfinite(theirs)
    ours, theirs, codes = ours[both], theirs[both], grouped_codes(clusters, both)
    gaps = ours - theirs
    mean = estimate(gaps, codes, scale=scale)
    mean = mean._replace(value=round(mean.value, 11) + 0.0)
    spread = float(gaps.std(ddof=1)) if len(gaps) > 1 else np.nan
    sizes = mean.value / (spread if spread > 1e-12 else np.nan), cliffs_delta(ours, theirs)
    if draws is not None and mean.known:
        p = p_value(mean.value, [item_error(gaps, codes), draw_part(draws)])
        widened = widened_by_draws(mean, draws).clipped(scale.low, scale.high)
        return PairedResult(widened, p, "t of items and draws", *sizes)
    if codes is not None:
        p = sign_flip(cluster_sums(gaps, codes), key=key) if infers(codes) else np.nan
        return PairedResult(mean, p, "sign flip of clusters", *sizes)
    if np.isin(ours, (0.0, 1.0)).all() and np.isin(theirs, (0.0, 1.0)).all():
        return PairedResult(mean, mcnemar(ours, theirs), "McNemar", *sizes)
    return PairedResult(mean, sign_flip(gaps, key=key), "sign flip", *sizes)
