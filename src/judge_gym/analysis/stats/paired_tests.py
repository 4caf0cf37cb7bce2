"""Tests of paired values, effect sizes, and corrections for many tests.

A p-value from random draws counts the observed arrangement as one of them, so it is never 0.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from judge_gym.analysis.stats.intervals import Floats, seeded

DRAWS = 5000
EXACT_DISCORDANT = 25
"""The number of discordant pairs below which McNemar's test is exact."""
NORMAL_FROM = 2000
"""The number of values from which the sign-flip test uses its normal limit."""


CLEAR_Q = 0.05
"""The q-value below which a difference is clear."""


def is_clear(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Says which differences are clear by their q-value and, where they have one, their interval.

    A test that assumes symmetry and an interval that does not may disagree; a reader who sees both
    is told nothing then.
    """
    around_0 = (rows["low"].astype(float) <= 0) & (rows["high"].astype(float) >= 0)
    return (rows["q"].astype(float) < CLEAR_Q) & ~around_0


def sign_flip(differences: npt.ArrayLike, *, key: Any) -> float:
    """Returns the two-sided p-value of paired differences, symmetric about 0 under the null.

    All arrangements are listed if they are fewer than 5,000; otherwise 5,000 are drawn. With very
    many values, none of which dominates, the normal limit of the test is used.

    >>> sign_flip([0.1, 0.2, 0.3, 0.4, 0.5], key="worked")  # two of 32 arrangements
    0.0625
    """
    values = np.asarray(differences, dtype=float)
    values = values[~np.isnan(values)]
    if not len(values):
        return np.nan
    # A difference of 0 has no sign; rounding must not separate tied arrangements.
    moved = values[values != 0]
    least = abs(moved.sum()) - 1e-9 * np.abs(moved).sum()
    n = len(moved)
    if n < np.log2(DRAWS):
        signs = 1.0 - 2.0 * (np.arange(1 << n)[:, None] >> np.arange(n) & 1)
        return float((np.abs(signs @ moved) >= least).mean())
    squares = float(moved @ moved)
    if n >= NORMAL_FROM and 100 * float(np.abs(moved).max()) ** 2 <= squares:
        return max(1 / (1 + DRAWS), float(special.erfc(abs(moved.sum()) / np.sqrt(2 * squares))))
    rng = seeded("sign flip", key, n)
    # A random byte holds eight signs; the sums of eight signed values are looked up.
    bytes_of = -(-n // 8)
    signs = 1.0 - 2.0 * (np.arange(256)[:, None] >> np.arange(8) & 1)
    sums_of = np.pad(moved, (0, 8 * bytes_of - n)).reshape(bytes_of, 8) @ signs.T
    random_bytes = rng.integers(0, 256, (DRAWS, bytes_of), dtype=np.uint8)
    sums = np.zeros(DRAWS)
    for byte in range(bytes_of):
        sums += sums_of[byte][random_bytes[:, byte]]
    return (1 + int((np.abs(sums) >= least).sum())) / (1 + DRAWS)


def mcnemar(left: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """Computes McNemar's p-value of paired values of 0 or 1, exact below 25 discordant pairs."""
    ours, theirs = np.asarray(left, dtype=float) > 0, np.asarray(right, dtype=float) > 0
    if not len(ours):
        return np.nan
    more, less = int((ours & ~theirs).sum()), int((~ours & theirs).sum())
    if more + less < EXACT_DISCORDANT:
        return exact_sign_test(more, less)
    return float(special.chdtrc(1, (abs(more - less) - 1) ** 2 / (more + less)))


def exact_sign_test(more: int, less: int) -> float:
    """Returns the two-sided binomial p-value of two counts that are equally likely."""
    return min(1.0, 2 * float(special.bdtr(min(more, less), more + less, 0.5)))


def cliffs_delta(left: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """Returns how often a left value exceeds a right one, minus how often it falls below.

    >>> cliffs_delta([1, 2], [1, 1])
    0.5
    """
    ours, theirs = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    if not len(ours) or not len(theirs):
        return np.nan
    _, rank_index, counts = np.unique(
        np.concatenate([ours, theirs]), return_inverse=True, return_counts=True
    )
    ranks = counts.cumsum() - (counts - 1) / 2  # equal values share the mean of their ranks
    rank_sum = ranks[rank_index[: len(ours)]].sum()
    wins = rank_sum - len(ours) * (len(ours) + 1) / 2
    return float(2 * wins / (len(ours) * len(theirs)) - 1)


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Returns p-values corrected to control the false discovery rate."""
    values = np.asarray(p, dtype=float)
    order, n = np.argsort(values, kind="stable"), len(values)
    steps = values[order] / (np.arange(1, n + 1) / n)
    adjusted = np.empty(n)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return adjusted


def among_known(correct: Callable[[Floats], Floats], p: npt.ArrayLike) -> Floats:
    """Corrects the known p-values of one family, and leaves the others unknown."""
    values = np.array(p, dtype=float)
    has_value = ~np.isnan(values)
    values[has_value] = correct(values[has_value])
    return values


def holm(p: npt.ArrayLike) -> Floats:
    """Returns p-values corrected to control the family-wise error rate.

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
