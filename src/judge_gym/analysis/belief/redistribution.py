"""Proportional conflict redistribution: every tuple of focal sets, one a source, is visited.

The tuples of a group are the cells of a tensor with an axis per source. Groups of like size are
stacked, so that small tensors cost no more than their cells.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from judge_gym.analysis.belief.masses import FloatArray, Focal, IntArray, Masses, focal
from judge_gym.errors import DesignError

CELLS = 1 << 16
"""Tuples that are held at once: a tensor of them fits a processor's cache."""
MOST_TUPLES = 2_000_000_000
"""Tuples in all; beyond it there is a minute or more to wait."""

Weights = Callable[[list[IntArray], list[FloatArray]], list[FloatArray]]
"""From the sets and masses of each source, as axes of a tensor, to the weight of each one's set."""


def own_weights(masks: list[IntArray], masses: list[FloatArray]) -> list[FloatArray]:
    """PCR6: each source's set weighs what that source gave it."""
    return masses


def product_weights(masks: list[IntArray], masses: list[FloatArray]) -> list[FloatArray]:
    """PCR5: a set weighs the product of the masses of all sources that chose it.

    It stands with the first of these sources, so that it counts once.
    """
    weights = []
    for source, weight in enumerate(masses):
        for other, mass in enumerate(masses):
            if other != source:
                factor = 0.0 if other < source else mass
                weight = weight * np.where(masks[other] == masks[source], factor, 1.0)
        weights.append(weight)
    return weights


def redistributed(
    masses: Masses, panels: Iterable[tuple[IntArray, IntArray]], weights: Weights
) -> Focal:
    """What the conflicting tuples of each group give back to their sets, by weight.

    Args:
        masses: a row per source.
        panels: groups of the same number of sources, and the rows of each (a line per group).
        weights: by what the mass of a tuple is shared out.
    """
    panels = list(panels)
    size = np.bincount(masses.focal.row, minlength=masses.count)
    tuples = sum(float(size[rows].astype(float).prod(axis=1).sum()) for _, rows in panels)
    if tuples > MOST_TUPLES:
        raise DesignError(
            f"{tuples:.3g} tuples of focal sets, more than {MOST_TUPLES:,}: combine fewer groups "
            "or sources, pool verdicts into frequencies, or choose another rule"
        )
    given = [Focal(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for groups, rows in panels:
        rows = np.take_along_axis(rows, np.argsort(-size[rows], axis=1), axis=1)
        for block in _blocks(size[rows]):
            given.append(_given_back(masses.focal, groups[block], rows[block], weights))
    row, mask, weight = (np.concatenate(part) for part in zip(*given, strict=True))
    return focal(row, mask, weight)


def _blocks(size: IntArray) -> Iterator[IntArray]:
    """Lines of like size, as many as the tensor of them may hold."""
    order = np.lexsort(size.T[::-1])[::-1]
    low = 0
    while low < len(order):
        # Sorted by the first axis, then the second, ...: a later one may grow within a block.
        reach = order[low : low + max(1, CELLS // prod(size[order[low]].tolist()))]
        padded = np.maximum.accumulate(size[reach], axis=0).prod(axis=1, dtype=float)
        fits = padded * np.arange(1, len(reach) + 1) <= CELLS
        high = low + max(1, int(fits.argmin()) if not fits.all() else len(reach))
        yield order[low:high]
        low = high


def _given_back(entries: Focal, groups: IntArray, rows: IntArray, weights: Weights) -> Focal:
    """What the tuples of a block of groups give back."""
    padded = [_padded(entries, source) for source in rows.T]
    back = [np.zeros_like(mass) for _, mass in padded]
    # The smallest sources stand last. One with a single set needs no axis, of which there are few.
    widths = [mass.shape[1] for _, mass in padded if mass.shape[1] > 1] or [1]
    for cut in _cuts(widths, len(rows)):
        masks, masses = [], []
        for source, (sets, values) in enumerate(padded):
            part = cut[source] if source < len(cut) else slice(None)
            shape = [-1 if axis == source else 1 for axis in range(len(widths))]
            masks.append(sets[:, part].reshape(len(rows), *shape))
            masses.append(values[:, part].reshape(len(rows), *shape))
        meet, share = reduce(np.bitwise_and, masks), reduce(np.multiply, masses)
        share = np.where(meet == 0, share, 0.0)
        weight = weights(masks, masses)
        np.divide(share, reduce(np.add, weight), out=share, where=share > 0)
        for source, given in enumerate(back):
            part = cut[source] if source < len(cut) else slice(None)
            others = tuple(axis + 1 for axis in range(len(widths)) if axis != source)
            given[:, part] += (share * weight[source]).sum(axis=others).reshape(len(rows), -1)
    row = [np.broadcast_to(groups[:, None], given.shape) for given in back]
    found = focal(
        np.concatenate([part.ravel() for part in row]),
        np.concatenate([mask.ravel() for mask, _ in padded]),
        np.concatenate([part.ravel() for part in back]),
    )
    return found.where(found.weight > 0)


def _cuts(shape: list[int], groups: int) -> Iterator[list[slice]]:
    """Slices of the tensor that can be held at once: the first axes one set at a time."""
    held = 0
    while held < len(shape) - 1 and groups * prod(shape[held:]) > CELLS:
        held += 1
    whole = [slice(None)] * (len(shape) - held)
    for place in product(*(range(length) for length in shape[:held])):
        yield [*(slice(at, at + 1) for at in place), *whole]


def _padded(entries: Focal, rows: IntArray) -> tuple[IntArray, FloatArray]:
    """Sets and masses of these rows, a line each, filled up with empty sets of no mass."""
    start, end = (np.searchsorted(entries.row, rows, side) for side in ("left", "right"))
    place = np.arange(int((end - start).max()))
    there = place < (end - start)[:, None]
    entry = np.where(there, start[:, None] + place, 0)
    return np.where(there, entries.mask[entry], 0), np.where(there, entries.weight[entry], 0.0)
