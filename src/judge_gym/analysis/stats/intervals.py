"""Estimates with their 95 % intervals; undefined is not a number, never 0.

The unit is the evidence item: a cell's replicates are averaged first, then items are the sample.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # its rooms load where they are used: reading a score wants none of them

from judge_gym.records import digest

Floats = npt.NDArray[np.float64]
LEVEL = 0.95
PERCENTILE_FROM = 40
"""Clusters from which the percentile bootstrap covers what it should; below, bootstrap-t."""
SKEWED_FROM = 6
"""Items from which a resample says something of the skew."""
DEGENERATE = 0.01
"""Of resamples without a spread, the share from which there is nothing to studentise by."""
DRAWS = 999
NORMAL_FROM = 1000
"""Clusters from which the sums of a resample are normal, nearer than 999 draws could tell."""
HELD = 1 << 22
"""Numbers that a bootstrap holds at once."""


class Estimate(NamedTuple):
    """A value, its interval, and the number of independent units that it rests on."""

    value: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Whether there is an interval to decide by."""
        return bool(np.isfinite([self.value, self.low, self.high]).all())


class Summed(NamedTuple):
    """A statistic of sums over clusters (evidence items), so that none is added up twice."""

    rows: Floats
    """A row per cluster: what is summed."""
    of: Callable[[Floats], Floats]
    """From sums (..., columns) to values (...)."""

    @property
    def value(self) -> float:
        """The statistic of all clusters."""
        return float(self.of(self.rows.sum(axis=0)))


def undefined(n: int = 0, value: float = np.nan) -> Estimate:
    """An estimate without an interval."""
    return Estimate(value, np.nan, np.nan, n)


def seeded(*key: Any) -> np.random.Generator:
    """Random numbers that are the same wherever the key is."""
    return np.random.default_rng(int(digest(list(key))[:16], 16))


def student(values: npt.ArrayLike) -> Estimate:
    """The mean over items with Student's t; items that are not a number are left out.

    Without variance there is nothing to tell how sure the mean is: then there is no interval.

    >>> [round(part, 3) for part in student([0.1, 0.2, 0.3])]
    [0.2, -0.048, 0.448, 3]
    """
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    n = len(known)
    if n == 0:
        return undefined()
    mean = float(known.mean())
    spread = float(known.std(ddof=1)) if n > 1 else 0.0
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return undefined(n, mean)
    half = float(scipy.stats.t.ppf((1 + LEVEL) / 2, n - 1) * spread / np.sqrt(n))
    return Estimate(mean, mean - half, mean + half, n)


def skewed(values: npt.ArrayLike) -> Estimate:
    """The mean over items of what is skewed over them, such as distances and variances.

    Student's t covers such a mean in about 91 % at 12 items, bootstrap-t in 94 % or more; with very
    few items, or values that nearly all coincide, there is nothing to resample, and t stands; from
    40 items on it does.

    >>> values = [0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.2, 0.9]
    >>> student(values).low < 0 < skewed(values).low, student(values).high < skewed(values).high
    (True, True)
    """
    found = student(values)
    if not found.known or not SKEWED_FROM <= found.n < PERCENTILE_FROM:
        return found
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    drawn = known[seeded("skewed", found.n).integers(0, found.n, (DRAWS, found.n))]
    errors = drawn.std(axis=1, ddof=1) / np.sqrt(found.n)
    error = float(known.std(ddof=1)) / np.sqrt(found.n)
    if (errors < error / 100).mean() > DEGENERATE:
        return found
    t = (drawn.mean(axis=1) - found.value) / np.maximum(errors, error / 100)
    low, high = np.quantile(t, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return found._replace(
        low=float(found.value - high * error), high=float(found.value - low * error)
    )


def share(values: npt.ArrayLike) -> Estimate:
    """A mean share over items: Wilson's where every item is 0 or 1, else Student's, within 0 to 1.

    >>> [round(part, 3) for part in share([1, 1, 0, 1])]
    [0.75, 0.301, 0.954, 4]
    """
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    if len(known) and np.isin(known, (0.0, 1.0)).all():
        return wilson(int(known.sum()), len(known))
    found = student(known)
    return (
        found._replace(low=max(0.0, found.low), high=min(1.0, found.high)) if found.known else found
    )


def wilson(right: int, n: int) -> Estimate:
    """A simple share with Wilson's interval."""
    if n == 0:
        return undefined()
    found = scipy.stats.binomtest(right, n).proportion_ci(LEVEL, method="wilson")
    return Estimate(right / n, float(found.low), float(found.high), n)


# --- what is not a mean --------------------------------------------------------------------------


def clustered_error(values: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """The standard error of a mean of values that are alike within clusters (Miller 2024)."""
    known = np.asarray(values, dtype=float)
    _, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    residuals = np.bincount(cluster, known - known.mean())
    return float(np.sqrt((residuals**2).sum()) / len(known))


def bootstrap(given: Summed, *, key: Any) -> Estimate:
    """What is not a mean: studentised over clusters, from 40 on by percentiles.

    Args:
        given: the statistic, and what each cluster adds to its sums.
        key: what the random draws are seeded from.
    """
    rows, n = given.rows, len(given.rows)
    value = given.value if n else np.nan
    if n < 3 or not np.isfinite(value):
        return undefined(n, value)
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    if n >= PERCENTILE_FROM:
        drawn = given.of(resampled(rows, key=key))
        low, high = np.quantile(drawn[np.isfinite(drawn)], tails)
        return Estimate(value, float(low), float(high), n)
    found = []
    for part in _parts(_picks(n, key), rows.size):
        drawn = rows[part]
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append((given.of(drawn.sum(axis=1)) - value) / jackknife_error(drawn, given))
    t = np.concatenate(found)
    t = t[np.isfinite(t)]
    error = float(jackknife_error(rows, given))
    if len(t) < DRAWS / 2 or not error > 0:  # too few resamples have a spread to studentise by
        return undefined(n, value)
    low, high = np.quantile(t, tails)
    return Estimate(value, value - float(high) * error, value - float(low) * error, n)


def resampled(rows: Floats, *, key: Any) -> Floats:
    """The sums over clusters, drawn anew: a row per draw; of very many, the limit of such draws."""
    n = len(rows)
    if n >= NORMAL_FROM:
        sums = rows.sum(axis=0)
        shape = np.linalg.qr(rows - sums / n, mode="r")
        drawn: Floats = sums + seeded("limit", key, n).normal(size=(DRAWS, len(shape))) @ shape
        return drawn
    return np.concatenate([_counts(part, n) @ rows for part in _parts(_picks(n, key), n)])


def _picks(n: int, key: Any) -> npt.NDArray[np.int64]:
    return seeded("bootstrap", key, n).integers(0, n, (DRAWS, n))


def _parts(picks: npt.NDArray[np.int64], width: int) -> Iterator[npt.NDArray[np.int64]]:
    """The draws, as many at a time as memory should hold."""
    size = max(1, HELD // width)
    return (picks[low : low + size] for low in range(0, len(picks), size))


def _counts(picks: npt.NDArray[np.int64], n: int) -> Floats:
    """How often each draw has each cluster."""
    places = picks + n * np.arange(len(picks))[:, None]
    return np.bincount(places.ravel(), minlength=picks.size).reshape(-1, n).astype(float)


def item_values(given: Summed) -> Floats:
    """What each cluster adds to a statistic; of a mean, the values that are averaged."""
    n, sums = len(given.rows), given.rows.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # what is left may define nothing
        found: Floats = n * given.of(sums) - (n - 1) * given.of(sums - given.rows)
    return found


def jackknife_error(rows: Floats, given: Summed) -> Floats:
    """The standard error of each set of clusters, from leaving out one at a time."""
    left = given.of(rows.sum(axis=-2, keepdims=True) - rows)
    spread: Floats = np.sqrt((rows.shape[-2] - 1) * left.var(axis=-1))
    # What is left of equal numbers after rounding is no spread.
    return np.where(spread > 1e-12, spread, 0.0)
