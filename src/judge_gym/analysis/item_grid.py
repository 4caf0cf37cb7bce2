"""The verdicts of all setups on all items, compact enough to sort a hundred thousand items.

Disagreement on an item is the expected distance of two verdicts of different setups: for ordered
stages as a share of the scale, else 0 if they are the same and 1 if not. A verdict that names
several stages counts in equal parts. Where a single setup judged the item, two of its repeats are
compared.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
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
        found: Floats = np.full(items, np.nan)
        scored = self._scored[self._code]
        chosen = np.isin(self._setup, [*setups]) & (scored > 0)
        if not chosen.any():
            return found
        cell, place = np.unique(
            self._item[chosen] * (int(self._setup.max()) + 1) + self._setup[chosen],
            return_inverse=True,
        )
        item = cell // (int(self._setup.max()) + 1)
        n = np.bincount(place, scored[chosen])
        many = np.bincount(item, minlength=items)
        between, within = np.zeros(items), np.zeros(len(cell))
        # Ordered stages differ by the thresholds between them, others by each stage.
        for share, weight in self._shares:
            part = np.bincount(place, scored[chosen] * share[self._code[chosen]]) / n
            one = np.bincount(item, part, minlength=items)
            square = np.bincount(item, part * part, minlength=items)
            between += weight * 2 * (one * (many - one) - one + square)
            within += weight * 2 * part * (1 - part)
        several = many > 1
        found[several] = between[several] / (many * (many - 1))[several]
        alone = (many[item] == 1) & (n > 1)
        found[item[alone]] = (within * n / np.maximum(n - 1, 1))[alone]
        return np.round(found, 9)  # equal items must tie, whatever the order of sums

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
    def _shares(self) -> list[tuple[Floats, float]]:
        """Shares of verdicts by code, each with its weight in the distance of two verdicts.

        Of ordered stages, the share at or below each place of the scale, which weighs the distance
        to the next; of others, the share on each stage, which weighs one half.
        """
        ordinal = [(c, n) for c, (_, n, ordered) in enumerate(self._kinds) if ordered]
        places = sorted({stage / max(n - 1, 1) for _, n in ordinal for stage in range(n)})
        shares: list[tuple[Floats, float]] = []
        for low, high in pairwise(places):
            below = np.zeros(len(self._kinds))
            for code, n in ordinal:
                reached = {s for s in range(1, n + 1) if (s - 1) / max(n - 1, 1) <= low}
                below[code] = self._share(code, reached)
            shares.append((below, high - low))
        nominal = [(c, n) for c, (_, n, ordered) in enumerate(self._kinds) if not ordered]
        for stage in range(1, max((n for _, n in nominal), default=0) + 1):
            on = np.zeros(len(self._kinds))
            for code, _ in nominal:
                on[code] = self._share(code, {stage})
            shares.append((on, 0.5))
        return shares

    def _share(self, code: int, stages: set[int]) -> float:
        """Returns the share of a code's scored verdicts that falls on some stages."""
        total = self._scored[code]
        found = sum(
            count * len(stages & {*named}) / len(named)
            for verdict, count in self._counts[code].items()
            if (named := _stages(verdict))
        )
        return float(found / total) if total else 0.0


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
