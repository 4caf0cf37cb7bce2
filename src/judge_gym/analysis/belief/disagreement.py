"""Disagreement of judges: conflict, and the squared Jousselme distance.

Conflict is not a distance: an inconsistent judge conflicts with itself, and k grows with the number
of masses, so it is comparable only at equal numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from judge_gym.analysis.belief.masses import FloatArray, Focal, IntArray, Masses, focal, matched
from judge_gym.analysis.belief.rules import combine_groups

Kernel = Callable[[IntArray, IntArray], FloatArray]
BLOCK = 1 << 20
"""The number of pairs of focal sets held in memory at once."""


def jaccard(left: IntArray, right: IntArray) -> FloatArray:
    """Computes the Jaccard similarity of sets, which is 1 for two empty sets."""
    either = np.bitwise_count(left | right).astype(float)
    both = np.bitwise_count(left & right).astype(float)
    alike: FloatArray = np.divide(both, either, out=np.ones_like(either), where=either > 0)
    return alike


def disjoint(left: IntArray, right: IntArray) -> FloatArray:
    """Compares sets: 1 if two of them share no stage, else 0."""
    apart: FloatArray = np.equal(left & right, 0).astype(float)
    return apart


def bilinear_form(left: Focal, right: Focal, kernel: Kernel, *, count: int) -> FloatArray:
    """Sums kernel x weight x weight over all pairs of entries of each row."""
    partners = np.bincount(right.row, minlength=count)[left.row]
    pair_counts = np.cumsum(partners)
    sums = np.zeros(count)
    low = 0
    while low < len(pair_counts):
        done = pair_counts[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(pair_counts, done + BLOCK, "right")))
        here, there = matched(left.row[low:high], right.row)
        here += low
        values = kernel(left.mask[here], right.mask[there]) * left.weight[here]
        sums += np.bincount(left.row[here], values * right.weight[there], minlength=count)
        low = high
    return sums


def conflict(masses: Masses, left: IntArray, right: IntArray) -> FloatArray:
    """Computes K of each pair of rows, or the self-conflict of a row paired with itself."""
    return _between_rows(masses, left, right, disjoint)


def squared_jousselme(masses: Masses, left: IntArray, right: IntArray) -> FloatArray:
    """Computes the squared Jousselme distance of each pair of rows."""
    alike = (_between_rows(masses, rows, rows, jaccard) for rows in (left, right))
    return sum(alike) / 2 - _between_rows(masses, left, right, jaccard)


def _between_rows(masses: Masses, left: IntArray, right: IntArray, kernel: Kernel) -> FloatArray:
    """Averages the kernel over the sets of each pair of rows."""
    ours, theirs = masses.take(left), masses.take(right)
    both = masses.defined[left] & masses.defined[right]
    means = bilinear_form(ours.focal, theirs.focal, kernel, count=len(left))
    return np.where(both, means, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class PanelConflict:
    """The conflict within each group of masses, NaN with fewer than two."""

    pairwise: FloatArray
    """The mean K of two different masses of the group."""
    own: FloatArray
    """The mean K of a mass with itself."""
    joint: FloatArray
    """K of all masses at once, which grows with their number."""

    @property
    def excess(self) -> FloatArray:
        """Pairwise conflict minus self-conflict, which may be negative for subsets."""
        return self.pairwise - self.own


def panel_conflict(masses: Masses, group: IntArray, *, groups: int) -> PanelConflict:
    """Measures the conflict of the masses of each group, such as the judges of one item."""
    rows = np.flatnonzero(masses.defined)
    rows = rows[np.argsort(group[rows], kind="stable")]
    fan_in = np.bincount(group[rows], minlength=groups)
    left, right = matched(group[rows], group[rows])
    left, right = rows[left[left < right]], rows[right[left < right]]

    def mean(values: FloatArray, of: IntArray) -> FloatArray:
        sums, counts = np.bincount(of, values, groups), np.bincount(of, minlength=groups)
        return np.where(fan_in > 1, sums / np.maximum(counts, 1), np.nan)

    joint = combine_groups(masses, group, rule="average", groups=groups).conflict
    return PanelConflict(
        pairwise=mean(conflict(masses, left, right), group[left]),
        own=mean(conflict(masses, rows, rows), group[rows]),
        joint=np.where(fan_in > 1, joint, np.nan),
    )


# --- from verdicts -------------------------------------------------------------------------------


class Replicates(NamedTuple):
    """The verdicts of one judge: item, replicate and chosen mask, where 0 is an abstention."""

    item: IntArray
    replicate: IntArray
    chosen: IntArray
    draw: IntArray | None = None
    """The draw of the rubric, given if results should generalise beyond the rubrics drawn."""


def squared_distances(judges: Sequence[Replicates], *, items: int) -> FloatArray:
    """Estimates the squared Jousselme distance of judges, by item and pair of judges.

    It is a U-statistic over distinct replicates. In the same replicate both judges saw the same
    display, so such pairs are left out across judges too, and so are verdicts under the same draw
    of rubrics if draws are given. It may be negative; it is NaN if a judge has fewer than two
    replicates on an item.
    """
    scored = [_scored(judge) for judge in judges]
    within_judge = [_mean_over_pairs(judge, judge, jaccard, items) for judge in scored]
    distances = [
        (within_judge[a] + within_judge[b]) / 2
        - _mean_over_pairs(scored[a], scored[b], jaccard, items)
        for a, b in combinations(range(len(scored)), 2)
    ]
    return np.stack(distances, axis=1) if distances else np.empty((items, 0))


def replicate_conflict(verdicts: Replicates, *, items: int) -> FloatArray:
    """Computes the share of a judge's replicate pairs without a common stage, by item."""
    scored = _scored(verdicts)
    return _mean_over_pairs(scored, scored, disjoint, items)


def _scored(verdicts: Replicates) -> Replicates:
    is_scored = verdicts.chosen != 0
    item, replicate, mask, draw = verdicts
    return Replicates(
        item[is_scored],
        replicate[is_scored],
        mask[is_scored],
        None if draw is None else draw[is_scored],
    )


def _mean_over_pairs(
    ours: Replicates, theirs: Replicates, kernel: Kernel, items: int
) -> FloatArray:
    """Averages the kernel over pairs of verdicts on an item in different replicates.

    The sum is over all pairs, minus those of the same replicate; likewise for draws of rubrics.
    Sums run over distinct chosen sets, which are far fewer than verdicts.
    """
    everywhere = np.zeros(len(ours.item), np.int64), np.zeros(len(theirs.item), np.int64)
    replicates = _numbered(ours.replicate, theirs.replicate)
    alike = [(1, everywhere), (-1, replicates)]
    if ours.draw is not None and theirs.draw is not None:
        draws = _numbered(ours.draw, theirs.draw)
        both = _numbered(
            *(_joined(left_code, of) for left_code, of in zip(draws, replicates, strict=True))
        )
        alike += [(-1, draws), (1, both)]
    sums, pairs = np.zeros(items), np.zeros(items)
    for sign, (left, right) in alike:
        width = 1 + int(max(left.max(initial=0), right.max(initial=0)))
        here, there = ours.item * width + left, theirs.item * width + right
        sums_and_counts = _pairs(here, ours.chosen, there, theirs.chosen, kernel, items * width)
        for total, values in zip((sums, pairs), sums_and_counts, strict=True):
            total += sign * values.reshape(items, width).sum(axis=1)
    mean: FloatArray = np.divide(sums, pairs, out=np.full(items, np.nan), where=pairs > 0)
    return mean


def _numbered(left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """Numbers the values of two arrays jointly."""
    numbers = np.union1d(left, right)
    return np.searchsorted(numbers, left), np.searchsorted(numbers, right)


def _joined(one: IntArray, other: IntArray) -> IntArray:
    """Numbers each combination of two numbers."""
    return one << 32 | other


def _pairs(
    left: IntArray, left_mask: IntArray, right: IntArray, right_mask: IntArray,
    kernel: Kernel, count: int,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Sums the kernel over all pairs of verdicts by row, and counts the pairs."""
    ours = focal(left, left_mask, np.ones(len(left)))
    theirs = focal(right, right_mask, np.ones(len(right)))
    pairs = np.bincount(left, minlength=count) * np.bincount(right, minlength=count)
    return bilinear_form(ours, theirs, kernel, count=count), pairs.astype(float)
