"""How far judges lie apart: conflict, and the distance that is tested.

Conflict is no distance: a judge who is torn conflicts with itself, and k grows with the number of
masses, so it is compared at equal numbers only. The squared Jousselme distance is one.
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
"""Pairs of focal sets that are held at once."""


def jaccard(left: IntArray, right: IntArray) -> FloatArray:
    """The share of the stages of two sets that both have; two empty sets are alike."""
    either = np.bitwise_count(left | right).astype(float)
    both = np.bitwise_count(left & right).astype(float)
    alike: FloatArray = np.divide(both, either, out=np.ones_like(either), where=either > 0)
    return alike


def disjoint(left: IntArray, right: IntArray) -> FloatArray:
    """1 where two sets share no stage, else 0."""
    apart: FloatArray = np.equal(left & right, 0).astype(float)
    return apart


def form(left: Focal, right: Focal, kernel: Kernel, *, count: int) -> FloatArray:
    """For each row, the sum over pairs of entries of kernel x weight x weight."""
    partners = np.bincount(right.row, minlength=count)[left.row]
    held = np.cumsum(partners)
    found = np.zeros(count)
    low = 0
    while low < len(held):
        done = held[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(held, done + BLOCK, "right")))
        here, there = matched(left.row[low:high], right.row)
        here += low
        values = kernel(left.mask[here], right.mask[there]) * left.weight[here]
        found += np.bincount(left.row[here], values * right.weight[there], minlength=count)
        low = high
    return found


def conflict(masses: Masses, left: IntArray, right: IntArray) -> FloatArray:
    """K of each pair of rows; of a row with itself, how torn it is."""
    ours, theirs = masses.take(left), masses.take(right)
    both = masses.defined[left] & masses.defined[right]
    found = form(ours.focal, theirs.focal, disjoint, count=len(left))
    return np.where(both, found, np.nan)


def squared_jousselme(masses: Masses, left: IntArray, right: IntArray) -> FloatArray:
    """The squared Jousselme distance of each pair of rows.

    Of frequencies it is biased upward, because chance alone makes them differ: `squared_distance`
    is the estimate.
    """
    ours, theirs = masses.take(left), masses.take(right)
    minus = theirs.focal._replace(weight=-theirs.focal.weight)
    both = masses.defined[left] & masses.defined[right]
    parts = (np.concatenate(part) for part in zip(ours.focal, minus, strict=True))
    difference = focal(*parts)  # summed first, so that equal masses are at 0 exactly
    found = form(difference, difference, jaccard, count=len(left)) / 2
    return np.where(both, np.maximum(found, 0.0), np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class PanelConflict:
    """Conflict within each group of masses; not a number with fewer than two."""

    pairwise: FloatArray
    """The mean K of two different masses of the group."""
    own: FloatArray
    """The mean K of a mass with itself."""
    joint: FloatArray
    """K of all masses at once; it grows with their number."""
    fan_in: IntArray
    """That number."""

    @property
    def excess(self) -> FloatArray:
        """Pairwise conflict beyond what each has with itself; negative for some subsets."""
        return self.pairwise - self.own


def panel_conflict(masses: Masses, group: IntArray, *, groups: int) -> PanelConflict:
    """The conflict of the masses of each group, such as the judges of one item; undiscounted."""
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
        fan_in=fan_in,
    )


# --- over verdicts -------------------------------------------------------------------------------


class Verdicts(NamedTuple):
    """One judge's verdicts: item, replicate and chosen mask of each; 0 is an abstention."""

    item: IntArray
    replicate: IntArray
    chosen: IntArray
    draw: IntArray | None = None
    """Of the rubric, where what is found should hold beyond the rubrics drawn."""


def squared_distance(ours: Verdicts, theirs: Verdicts, *, items: int) -> FloatArray:
    """The squared Jousselme distance of two judges on each item, unbiased.

    A U-statistic over distinct replicates: on one replicate both judges saw the same display, so
    such pairs are left out across judges too, and so are verdicts under one draw of rubrics, where
    draws are told. It may dip below 0; an item where a judge has fewer than two replicates is not a
    number.
    """
    return squared_distances([ours, theirs], items=items)[:, 0]


def squared_distances(judges: Sequence[Verdicts], *, items: int) -> FloatArray:
    """The squared distance of every two judges on each item: items by pairs, in their order."""
    scored = [_scored(one) for one in judges]
    own = [_mean_likeness(one, one, items) for one in scored]
    found = [
        (own[a] + own[b]) / 2 - _mean_likeness(scored[a], scored[b], items)
        for a, b in combinations(range(len(scored)), 2)
    ]
    return np.stack(found, axis=1) if found else np.empty((items, 0))


def replicate_conflict(verdicts: Verdicts, *, items: int) -> FloatArray:
    """The share of pairs of a judge's replicates on an item that share no stage."""
    scored = _scored(verdicts)
    return _mean_over_pairs(scored, scored, disjoint, items)


def _scored(verdicts: Verdicts) -> Verdicts:
    kept = verdicts.chosen != 0
    item, replicate, chosen, draw = verdicts
    return Verdicts(item[kept], replicate[kept], chosen[kept], None if draw is None else draw[kept])


def _mean_likeness(ours: Verdicts, theirs: Verdicts, items: int) -> FloatArray:
    return _mean_over_pairs(ours, theirs, jaccard, items)


def _mean_over_pairs(ours: Verdicts, theirs: Verdicts, kernel: Kernel, items: int) -> FloatArray:
    """The mean of the kernel over pairs of verdicts on an item from different replicates.

    That is all pairs, without those of the same item and replicate; draws of rubrics likewise. All
    sums run over distinct chosen sets, which are far fewer than verdicts.
    """
    everywhere = np.zeros(len(ours.item), np.int64), np.zeros(len(theirs.item), np.int64)
    replicates = _numbered(ours.replicate, theirs.replicate)
    alike = [(1, everywhere), (-1, replicates)]
    if ours.draw is not None and theirs.draw is not None:
        draws = _numbered(ours.draw, theirs.draw)
        both = _numbered(*(_joined(one, of) for one, of in zip(draws, replicates, strict=True)))
        alike += [(-1, draws), (1, both)]
    sums, pairs = np.zeros(items), np.zeros(items)
    for sign, (left, right) in alike:
        width = 1 + int(max(left.max(initial=0), right.max(initial=0)))
        here, there = ours.item * width + left, theirs.item * width + right
        found = _pairs(here, ours.chosen, there, theirs.chosen, kernel, items * width)
        for total, values in zip((sums, pairs), found, strict=True):
            total += sign * values.reshape(items, width).sum(axis=1)
    mean: FloatArray = np.divide(sums, pairs, out=np.full(items, np.nan), where=pairs > 0)
    return mean


def _numbered(left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """The places of two sides' values among all."""
    numbers = np.union1d(left, right)
    return np.searchsorted(numbers, left), np.searchsorted(numbers, right)


def _joined(one: IntArray, other: IntArray) -> IntArray:
    """A number for each two."""
    return one << 32 | other


def _pairs(
    left: IntArray, left_mask: IntArray, right: IntArray, right_mask: IntArray,
    kernel: Kernel, count: int,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Per row, the sum of the kernel over all pairs of verdicts, and how many pairs there are."""
    ours = focal(left, left_mask, np.ones(len(left)))
    theirs = focal(right, right_mask, np.ones(len(right)))
    pairs = np.bincount(left, minlength=count) * np.bincount(right, minlength=count)
    return form(ours, theirs, kernel, count=count), pairs.astype(float)
