"""Proportional conflict redistribution over all tuples of focal sets, one set per source.

The tuples of a group are the cells of a tensor with an axis per source. Groups of similar size are
stacked, so that small tensors cost little.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from judge_gym.analysis.belief.masses import FloatArray, Focal, IntArray, Masses, focal
from judge_gym.errors import DesignError

CELLS = 1 << 16
"""The number of tuples held at once: a tensor of them fits a processor's cache."""
MOST_TUPLES = 2_000_000_000
"""The largest number of tuples in all; more would take over a minute."""

Weights = Callable[[list[IntArray], list[FloatArray]], list[FloatArray]]
"""Maps the sets and masses of each source, as axes of a tensor, to the weight of its set."""


def own_weights(masks: list[IntArray], masses: list[FloatArray]) -> list[FloatArray]:
    """Returns the weights of PCR6: a set's weight is the mass that the source gave it."""
    return masses


def product_weights(masks: list[IntArray], masses: list[FloatArray]) -> list[FloatArray]:
    """Returns the weights of PCR5: the product of the masses of all sources that chose a set.

    The weight is assigned to the first of these sources, so that it counts once.
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
    """Returns the mass of conflicting tuples, redistributed to their sets by weight.

    `panels` are groups with equally many sources, with the rows of each group.
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
            given.append(_redistribute_block(masses.focal, groups[block], rows[block], weights))
    row, mask, weight = (np.concatenate(part) for part in zip(*given, strict=True))
    return focal(row, mask, weight)


def _blocks(size: IntArray) -> Iterator[IntArray]:
    """Yields groups of similar size, as many as one tensor may hold."""
    order = np.lexsort(size.T[::-1])[::-1]
    low = 0
    while low < len(order):
        # Sorted by the first axis, then the second, and so on: later axes may grow in a block.
        reach = order[low : low + max(1, CELLS // prod(size[order[low]].tolist()))]
        padded = np.maximum.accumulate(size[reach], axis=0).prod(axis=1, dtype=float)
        fits = padded * np.arange(1, len(reach) + 1) <= CELLS
        high = low + max(1, int(fits.argmin()) if not fits.all() else len(reach))
        yield order[low:high]
        low = high


def _redistribute_block(
    entries: Focal, groups: IntArray, rows: IntArray, weights: Weights
) -> Focal:
    """Returns the redistributed mass of a block of groups."""
    padded = [_padded(entries, source) for source in rows.T]
    back = [np.zeros_like(mass) for _, mass in padded]
    # The smallest sources come last. Sources with a single set need no axis of their own.
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
    """Yields slices of the tensor that fit in memory: the first axes one set at a time."""
    held = 0
    while held < len(shape) - 1 and groups * prod(shape[held:]) > CELLS:
        held += 1
    whole = [slice(None)] * (len(shape) - held)
    for place in product(*(range(length) for length in shape[:held])):
        yield [*(slice(at, at + 1) for at in place), *whole]


def _padded(entries: Focal, rows: IntArray) -> tuple[IntArray, FloatArray]:
    """Returns the sets and masses of rows, padded with empty sets without mass."""
    start, end = (np.searchsorted(entries.row, rows, side) for side in ("left", "right"))
    place = np.arange(int((end - start).max()))
    there = place < (end - start)[:, None]
    entry = np.where(there, start[:, None] + place, 0)
    return np.where(there, entries.mask[entry], 0), np.where(there, entries.weight[entry], 0.0)
