"""The verdicts of all setups on all items, compact enough to sort a hundred thousand items.

It is an index over cells that the store has added up, since a page of items cannot wait until all
samples of a study are read. Disagreement on an item is the mean of the measure `disagreement` over
setups: the share of pairs of verdicts of two setups, on scales of the same length, that differ.
Where a single setup judged the item, two of its repeats are compared.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Cell(NamedTuple):
    """What one setup said about one item."""

    item: int
    setup: int
    verdicts: str
    """The stages of each scored repeat, else its status: `2,2 3,abstained`."""
    n_stages: int
    ordinal: bool


class ItemGrid:
    """Items and setups by number, and the verdicts in their cells.

    Args:
        cells: any number of cells for an item and a setup, which are added up.
        truths: the known stage of each item; 0 if unknown.
    """

    def __init__(self, cells: Sequence[Cell], truths: Sequence[int]) -> None:
        self.truths: Ints = np.array(truths, dtype=np.int64)
        codes: dict[tuple[str, int, bool], int] = {}
        self._code: Ints = np.array(
            [codes.setdefault(cell[2:], len(codes)) for cell in cells], dtype=np.int64
        )
        self._item: Ints = np.array([cell.item for cell in cells], dtype=np.int64)
        self._setup: Ints = np.array([cell.setup for cell in cells], dtype=np.int64)
        self._kinds = [*codes]
        self._counts = [Counter(verdicts.split(",")) for verdicts, *_ in codes]
        order = np.argsort(self._item, kind="stable")
        self._by_item, self._sorted_items = order, self._item[order]

    def counts(self, item: int) -> dict[int, Counter[str]]:
        """Returns how often each setup gave each verdict on an item."""
        start, end = np.searchsorted(self._sorted_items, [item, item + 1])
        found: dict[int, Counter[str]] = {}
        for row in self._by_item[start:end]:
            found.setdefault(int(self._setup[row]), Counter()).update(
                self._counts[int(self._code[row])]
            )
        return found

    def disagreement(self, setups: Sequence[int]) -> Floats:
        """Returns the disagreement of some setups on each item; NaN with fewer than 2 verdicts."""
        items = len(self.truths)
        disagreement: Floats = np.full(items, np.nan)
        scored = self._scored[self._code]
        chosen = np.isin(self._setup, [*setups]) & (scored > 0)
        if not chosen.any():
            return disagreement
        code, weight = self._code[chosen], scored[chosen]
        scales, count = np.array([n for _, n, _ in self._kinds]), int(self._setup.max()) + 1
        of_scale = self._item[chosen] * (int(scales.max()) + 1) + scales[code]
        cells, cell = np.unique(of_scale * count + self._setup[chosen], return_inverse=True)
        groups, group = np.unique(cells // count, return_inverse=True)
        item = groups // (int(scales.max()) + 1)
        n, setups_of_group = np.bincount(cell, weight), np.bincount(group)
        alike, repeated = np.zeros(len(groups)), np.zeros(len(cells))
        for share in self._shares:
            part = np.bincount(cell, weight * share[code], len(cells)) / n
            alike += np.bincount(group, part) ** 2 - np.bincount(group, part * part)
            repeated += part * part
        pairs = np.bincount(item, setups_of_group * (setups_of_group - 1.0), items)
        same = np.bincount(item, alike, items) / np.maximum(pairs, 1)
        disagreement[pairs > 0] = 1 - same[pairs > 0]
        of_cell = item[group]
        alone = (np.bincount(of_cell, minlength=items)[of_cell] == 1) & (n > 1)
        disagreement[of_cell[alone]] = ((1 - repeated) * n / np.maximum(n - 1, 1))[alone]
        return np.round(disagreement, 9) + 0.0  # equal items must tie, whatever the order of sums

    def with_status(self, status: str, setups: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Returns whether any verdict of some setups on each item has a status."""
        has = np.array([_statuses(counts)[status] > 0 for counts in self._counts], dtype=bool)
        return self._any(has[self._code], setups)

    def wrong(self, setups: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Returns whether some setup's most frequent verdict on each item is not the known one."""
        usual = np.array([_stage(most_frequent(counts)) for counts in self._counts], dtype=np.int64)
        truth = self.truths[self._item]
        return self._any((truth > 0) & (usual[self._code] != truth), setups)

    def _any(self, holds: npt.NDArray[np.bool_], setups: Sequence[int]) -> npt.NDArray[np.bool_]:
        rows = self._item[holds & np.isin(self._setup, [*setups])]
        return np.bincount(rows, minlength=len(self.truths)) > 0

    @cached_property
    def _scored(self) -> Floats:
        """The number of scored verdicts by code."""
        return np.array([_statuses(counts)["scored"] for counts in self._counts], dtype=float)

    @cached_property
    def _shares(self) -> list[Floats]:
        """The share of each verdict by code, among its scored verdicts."""
        verdicts = sorted({verdict for counts in self._counts for verdict in counts})
        return [
            np.array([counts[verdict] for counts in self._counts]) / np.maximum(self._scored, 1)
            for verdict in verdicts
            if _stages(verdict)
        ]


def most_frequent(counts: Mapping[str, int]) -> str:
    """Returns the verdict that was given most often; empty if none was scored.

    >>> most_frequent({"3": 1, "2": 2, "abstained": 5})
    '2'
    """
    scored = {verdict: count for verdict, count in counts.items() if _stages(verdict)}
    return max(scored, key=lambda verdict: (scored[verdict], verdict), default="")


def _stages(verdict: str) -> list[int]:
    """Returns the stages of a verdict; none if it is the status of an answer without one."""
    return [int(stage) for stage in verdict.split()] if verdict[:1].isdigit() else []


def _stage(verdict: str) -> int:
    return int(verdict) if verdict.isdigit() else 0


def _statuses(counts: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for verdict, count in counts.items():
        found["scored" if _stages(verdict) else verdict] += count
    return found
