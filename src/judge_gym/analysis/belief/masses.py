"""Mass functions, many at a time, as a table of focal sets, each a bit mask.

Only sets with mass have an entry, so a scale of 26 stages costs no more than one of 4.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from judge_gym.errors import DesignError, unknown

Mass = Mapping[frozenset[int], float]

SCALES = range(2, 27)
TOLERANCE = 1e-9
"""The largest deviation of the sum of masses from 1; masses are rescaled to sum to 1."""


def bits(chosen: Iterable[int]) -> int:
    """Encodes a set of stages as a mask."""
    return sum(1 << stage - 1 for stage in set(chosen))


def stages(mask: int) -> frozenset[int]:
    """Decodes a mask into its stages."""
    return frozenset(bit + 1 for bit in range(mask.bit_length()) if mask >> bit & 1)


def checked_frame(frame: int) -> int:
    """Refuses an invalid frame."""
    if frame not in SCALES:
        raise DesignError(f"a frame of {frame} stages; choose {SCALES[0]} to {SCALES[-1]}")
    return frame


def checked_share(alpha: float) -> float:
    """Refuses a discount outside 0 to 1."""
    if not 0 <= alpha <= 1:
        raise DesignError(f"discount alpha is {alpha}; choose 0 to 1")
    return alpha


def checked(mass: Mass, frame: int | None, *, empty: bool = False) -> dict[frozenset[int], float]:
    """Scales the sets with positive mass to sum to 1, and refuses invalid masses.

    The frame is the number of stages, None if unknown; `empty` allows mass on the empty set.
    """
    if frame is not None:
        checked_frame(frame)
    for subset, value in mass.items():
        if not 0 <= value <= 1 + TOLERANCE:
            raise DesignError(f"mass {value} on {sorted(subset)}; masses lie between 0 and 1")
        if value > 0 and not subset and not empty:
            raise DesignError(f"mass {value} on the empty set; give it to sets of stages")
        inside(subset, frame)
    total = sum(mass.values())
    if abs(total - 1) > TOLERANCE:
        raise DesignError(f"masses sum to {total:.9g}; they must sum to 1")
    return {frozenset(subset): value / total for subset, value in mass.items() if value > 0}


def inside(chosen: Iterable[int], frame: int | None) -> frozenset[int]:
    """Refuses stages outside the frame."""
    stages_of_set = frozenset(chosen)
    last = SCALES[-1] if frame is None else frame
    if outside := [stage for stage in stages_of_set if not 1 <= stage <= last]:
        raise DesignError(f"stage {min(outside)} of {sorted(stages_of_set)}; choose 1 to {last}")
    return stages_of_set


IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
MassKind = Literal["frequency", "categorical"]
Abstentions = Literal["left_out", "vacuous"]


class Focal(NamedTuple):
    """Entries of a table, sorted by row: the row, the focal set and the weight of each."""

    row: IntArray
    mask: IntArray
    weight: FloatArray

    def where(self, kept: BoolArray) -> "Focal":
        """Selects the entries of a mask."""
        return Focal(self.row[kept], self.mask[kept], self.weight[kept])


def summed(keys: Sequence[IntArray], weight: FloatArray) -> tuple[list[IntArray], FloatArray]:
    """Adds up the weights of each distinct combination of keys, which come sorted."""
    if not len(weight):
        return list(keys), weight
    spans = [int(key.max()) + 1 for key in keys]
    if prod(spans) < 1 << 62:  # one number per entry sorts several times faster
        packed = np.ravel_multi_index(tuple(keys), spans)
        order = np.argsort(packed, kind="stable")  # a fixed order gives equal sums on every machine
        new = packed[order][1:] != packed[order][:-1]
    else:
        order = np.lexsort(keys[::-1])
        new = np.logical_or.reduce([key[order][1:] != key[order][:-1] for key in keys])
    starts = np.flatnonzero(np.concatenate([[True], new]))
    sums = np.add.reduceat(weight[order], starts)
    return [key[order[starts]] for key in keys], sums


def focal(row: IntArray, mask: IntArray, weight: FloatArray) -> Focal:
    """Makes a table with one entry per row and focal set."""
    (row, mask), weight = summed((row, mask), weight)
    return Focal(row, mask, weight)


def matched(left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """Finds the indices of all pairs of equal values, where `right` is sorted.

    >>> left, right = matched(np.array([7, 8]), np.array([7, 7, 9]))
    >>> left.tolist(), right.tolist()
    ([0, 0], [0, 1])
    """
    start = np.searchsorted(right, left, "left")
    partners = np.searchsorted(right, left, "right") - start
    first = np.repeat(np.cumsum(partners) - partners, partners)
    within = np.arange(int(partners.sum())) - first
    return np.repeat(np.arange(len(left)), partners), np.repeat(start, partners) + within


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """Mass functions on a common frame, one per row. A row without mass is undefined."""

    frame: int
    count: int
    focal: Focal

    @staticmethod
    def of(masses: Iterable[Mass], *, frame: int) -> "Masses":
        """Builds masses from mappings of sets of stages to mass, one row each."""
        rows = [checked(mass, frame) for mass in masses]
        row = np.repeat(np.arange(len(rows)), [len(mass) for mass in rows])
        mask = np.array([bits(subset) for mass in rows for subset in mass], dtype=np.int64)
        weight = np.array([value for mass in rows for value in mass.values()], dtype=float)
        return Masses(frame, len(rows), focal(row, mask, weight))

    def mapping(self, row: int) -> dict[frozenset[int], float]:
        """Writes one row as a mapping from sets of stages to mass."""
        low, high = np.searchsorted(self.focal.row, [row, row + 1])
        pairs = zip(self.focal.mask[low:high], self.focal.weight[low:high], strict=True)
        return {stages(int(mask)): float(weight) for mask, weight in pairs}

    @property
    def whole(self) -> int:
        """The mask of the whole frame."""
        return (1 << self.frame) - 1

    @property
    def defined(self) -> BoolArray:
        """Which rows have mass."""
        return np.bincount(self.focal.row, minlength=self.count) > 0

    def take(self, rows: IntArray) -> "Masses":
        """Selects rows in the given order, with repetitions."""
        row, entry = matched(rows, self.focal.row)
        return Masses(
            self.frame, len(rows), Focal(row, self.focal.mask[entry], self.focal.weight[entry])
        )

    def discounted(self, alpha: float) -> "Masses":
        """Moves a share alpha of each row's mass to the whole frame."""
        remainder = 1 - checked_share(alpha)
        rows = np.flatnonzero(self.defined)
        moved = focal(
            np.concatenate([self.focal.row, rows]),
            np.concatenate([self.focal.mask, np.full(len(rows), self.whole)]),
            np.concatenate([remainder * self.focal.weight, np.full(len(rows), alpha)]),
        )
        return Masses(self.frame, self.count, moved.where(moved.weight > 0))

    def belief(self) -> FloatArray:
        """Computes the belief of each single stage, by row and stage."""
        return self._per_stage(np.where(self._sizes == 1, self.focal.weight, 0.0))

    def plausibility(self) -> FloatArray:
        """Computes the plausibility of each single stage, by row and stage."""
        return self._per_stage(self.focal.weight)

    def pignistic(self) -> FloatArray:
        """Spreads the mass of each set equally over its stages: the pignistic probability."""
        return self._per_stage(self.focal.weight / self._sizes)

    def uncertainty_gap(self) -> FloatArray:
        """Averages plausibility minus belief over stages."""
        gap: FloatArray = (self.plausibility() - self.belief()).mean(axis=1)
        return gap

    def subset_size(self) -> FloatArray:
        """Averages the size of focal sets, weighted by mass."""
        return self._rowwise(self.focal.weight * self._sizes)

    @property
    def _sizes(self) -> FloatArray:
        return np.bitwise_count(self.focal.mask).astype(float)

    def _per_stage(self, weight: FloatArray) -> FloatArray:
        """Adds up the weight of the entries that contain each stage."""
        columns = [
            self._rowwise(weight * (self.focal.mask >> stage & 1)) for stage in range(self.frame)
        ]
        return np.stack(columns, axis=1)

    def _rowwise(self, values: FloatArray) -> FloatArray:
        """Sums over the entries of each row. NaN marks undefined rows."""
        sums = np.bincount(self.focal.row, values, minlength=self.count)
        return np.where(self.defined, sums, np.nan)


# --- from verdicts to masses ---------------------------------------------------------------------


class Sources(NamedTuple):
    """Masses to be combined, and the cell of each."""

    masses: Masses
    cell: IntArray


def sources(
    cell: IntArray,
    chosen: IntArray,
    *,
    frame: int,
    cells: int,
    mass: MassKind = "frequency",
    abstentions: Abstentions = "left_out",
) -> Sources:
    """Builds the masses of cells from the mask of each verdict, where 0 is an abstention.

    With `frequency`, a cell has the share of each chosen set; with `categorical`, every verdict is
    a source with all mass on its set. Abstentions are `left_out`, or `vacuous`: mass on the whole
    frame.
    """
    for what, value, choices in (
        ("mass", mass, get_args(MassKind)),
        ("abstentions", abstentions, get_args(Abstentions)),
    ):
        if value not in choices:
            raise DesignError(unknown(what, value, choices), choices=choices)
    checked_frame(frame)
    if abstentions == "vacuous":
        chosen = np.where(chosen == 0, (1 << frame) - 1, chosen)
    is_scored = chosen != 0
    cell, chosen = cell[is_scored], chosen[is_scored]
    if mass == "categorical":
        each = Focal(np.arange(len(chosen)), chosen, np.ones(len(chosen)))
        return Sources(Masses(frame, len(chosen), each), cell)
    counts = focal(cell, chosen, np.ones(len(chosen)))
    verdicts = np.bincount(cell, minlength=cells)
    shares = counts._replace(weight=counts.weight / verdicts[counts.row])
    return Sources(Masses(frame, cells, shares), np.arange(cells))


def stage_masks(texts: Sequence[str], *, frame: int) -> IntArray:
    """Encodes verdicts written as in a frame of samples. Without a stage the mask is 0.

    >>> stage_masks(["2 3", "1", ""], frame=4).tolist()
    [6, 1, 0]
    """
    checked_frame(frame)
    mask_of_text = {text: bits(inside(map(int, text.split()), frame)) for text in set(texts)}
    return np.array([mask_of_text[text] for text in texts], dtype=np.int64)
