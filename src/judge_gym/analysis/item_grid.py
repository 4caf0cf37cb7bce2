"""The verdicts of all setups on all items, compact enough to sort a hundred thousand items.

It is an index over cells that the store has added up, since a page of items cannot wait until all
samples of a study are read. Disagreement on an item is the mean of the measure `disagreement` over
setups: the share of pairs of verdicts of two setups, on scales of the same length, that differ.
Where a single setup judged the item, two of its repeats are compared.

The distance of an item's verdicts from people's labels is the mean over setups of the expected
distance between a verdict and a label: in stages on ordinal scales, else 0 where they are equal and
1 where they differ.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
DIVIDED = -1
"""Stands for a label where several were given by equally many people."""


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
        labels: how many people gave an item each stage: a row per item, a column per stage.
    """

    def __init__(
        self, cells: Sequence[Cell], truths: Sequence[int], labels: Ints | None = None
    ) -> None:
        self.truths: Ints = np.array(truths, dtype=np.int64)
        self.labels: Ints = np.zeros((len(truths), 0), np.int64) if labels is None else labels
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
        """Counts how often each setup gave each verdict on an item."""
        start, end = np.searchsorted(self._sorted_items, [item, item + 1])
        counts_by_setup: dict[int, Counter[str]] = {}
        for row in self._by_item[start:end]:
            counts_by_setup.setdefault(int(self._setup[row]), Counter()).update(
                self._counts[int(self._code[row])]
            )
        return counts_by_setup

    def disagreement(self, setups: Sequence[int]) -> Floats:
        """Measures the disagreement of setups on each item, NaN with fewer than 2 verdicts."""
        items = len(self.truths)
        disagreement: Floats = np.full(items, np.nan)
        scored = self._scored[self._code]
        is_compared = np.isin(self._setup, [*setups]) & (scored > 0)
        if not is_compared.any():
            return disagreement
        code, weight = self._code[is_compared], scored[is_compared]
        scales, count = np.array([n for _, n, _ in self._kinds]), int(self._setup.max()) + 1
        of_scale = self._item[is_compared] * (int(scales.max()) + 1) + scales[code]
        cells, cell = np.unique(of_scale * count + self._setup[is_compared], return_inverse=True)
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

    def from_people(self, setups: Sequence[int]) -> Floats:
        """Measures how far verdicts are from people's labels on each item, NaN without either."""
        items, raters = len(self.truths), self.labels.sum(axis=1)
        scored = self._scored[self._code]
        is_compared = np.isin(self._setup, [*setups]) & (scored > 0) & (raters[self._item] > 0)
        code, item, weight = self._code[is_compared], self._item[is_compared], scored[is_compared]
        distance = np.zeros(len(code))
        for label, distances in enumerate(self._distances.T):
            distance += self.labels[item, label] / raters[item] * distances[code]
        _, cell = np.unique(self._cells[is_compared], return_inverse=True)
        of_cell = np.zeros(int(cell.max(initial=-1)) + 1, dtype=np.int64)
        of_cell[cell] = item
        mean = np.bincount(cell, weight * distance) / np.bincount(cell, weight)
        count = np.bincount(of_cell, minlength=items)
        far: Floats = np.full(items, np.nan)
        np.divide(np.bincount(of_cell, mean, items), count, out=far, where=count > 0)
        return np.round(far, 9) + 0.0  # as of disagreement

    def with_status(self, status: str, setups: Sequence[int]) -> Bools:
        """Says for each item whether any verdict of some setups has a status."""
        has = np.array([_statuses(counts)[status] > 0 for counts in self._counts], dtype=bool)
        return self._any(self._item, self._setup, has[self._code], setups)

    def wrong(self, setups: Sequence[int]) -> Bools:
        """Says for each item whether a setup's most frequent verdict lacks the known stage."""
        return self._unlike(self.truths, setups)

    def against_people(self, setups: Sequence[int]) -> Bools:
        """Says whether a setup's most frequent verdict lacks the label of most people."""
        return self._unlike(self.majority, setups)

    def with_verdict(self, verdicts: Sequence[str], setups: Sequence[int]) -> Bools:
        """Says whether some setup's most frequent verdict on each item is the listed one.

        A status such as `abstained` is the most frequent verdict where none was scored.
        """
        numbers = {verdict: number for number, verdict in enumerate(self.verdicts)}
        wanted = np.array([numbers.get(verdict, -1) for verdict in verdicts], dtype=np.int64)
        cells = self._usual
        holds = cells.verdict == wanted[cells.item]
        return self._any(cells.item, cells.setup, holds, setups)

    def crossed(self, setup: int, reference: Ints) -> list[tuple[int, str]]:
        """Lists the items with a reference that a setup judged, each with its usual verdict."""
        cells = self._usual
        of_setup = (cells.setup == setup) & (reference[cells.item] != 0)
        pairs = zip(cells.item[of_setup].tolist(), cells.verdict[of_setup].tolist(), strict=True)
        return [(item, self.verdicts[verdict]) for item, verdict in pairs]

    @cached_property
    def majority(self) -> Ints:
        """The stage that most people gave each item: `DIVIDED` if several, 0 without a label."""
        if not self.labels.size:
            return np.zeros_like(self.truths)
        most = self.labels.max(axis=1)
        several = (self.labels == most[:, None]).sum(axis=1) > 1
        stages = np.where(several, DIVIDED, self.labels.argmax(axis=1) + 1)
        return np.asarray(np.where(most > 0, stages, 0), dtype=np.int64)

    @cached_property
    def verdicts(self) -> list[str]:
        """All verdicts that were given: those with stages first, then statuses without a score."""
        distinct = {verdict for counts in self._counts for verdict in counts}
        return sorted(distinct, key=lambda verdict: (not _stages(verdict), verdict))

    def _unlike(self, reference: Ints, setups: Sequence[int]) -> Bools:
        """Says whether some setup's usual verdict lacks the item's reference, if it has one."""
        cells = self._usual
        expected = np.maximum(reference[cells.item], 0)
        contains = np.zeros((len(self.verdicts), int(expected.max(initial=0)) + 1), dtype=bool)
        for number, verdict in enumerate(self.verdicts):
            contains[number, [n for n in _stages(verdict) if n < contains.shape[1]]] = True
        holds = (expected > 0) & ~contains[cells.verdict, expected]
        return self._any(cells.item, cells.setup, holds, setups)

    def _any(self, item: Ints, setup: Ints, holds: Bools, setups: Sequence[int]) -> Bools:
        rows = item[holds & np.isin(setup, [*setups])]
        return np.bincount(rows, minlength=len(self.truths)) > 0

    @cached_property
    def _cells(self) -> Ints:
        """The number of each row's item and setup."""
        return self._item * (int(self._setup.max(initial=0)) + 1) + self._setup

    @cached_property
    def _usual(self) -> "_Usual":
        """The verdict that each setup gave most often on each item, as `most_frequent` has it."""
        _, first, cell = np.unique(self._cells, return_index=True, return_inverse=True)
        usual, most = np.zeros(len(first), dtype=np.int64), np.zeros(len(first))
        without_score = np.ones(len(first), dtype=bool)
        for number, verdict in enumerate(self.verdicts):
            times = np.array([counts[verdict] for counts in self._counts], dtype=float)
            count = np.bincount(cell, times[self._code], len(first))
            more = (count > 0) & (count >= most)
            if _stages(verdict):
                without_score &= count == 0
            else:  # which counts only where nothing was scored
                more &= without_score
            usual[more], most[more] = number, count[more]
        return _Usual(self._item[first], self._setup[first], usual)

    @cached_property
    def _distances(self) -> Floats:
        """The mean distance of each code's scored verdicts from each label."""
        labels = np.arange(1, self.labels.shape[1] + 1)
        table: Floats = np.zeros((len(self._kinds), len(labels)))
        for code, ((_, _, ordinal), counts) in enumerate(
            zip(self._kinds, self._counts, strict=True)
        ):
            for verdict, count in counts.items():
                for stage in (stages := _stages(verdict)):
                    gap = np.abs(labels - stage)
                    distance = gap if ordinal else gap > 0
                    table[code] += count / len(stages) * distance
        return table / np.maximum(self._scored, 1)[:, None]

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


class _Usual(NamedTuple):
    """The most frequent verdict of each setup on each item that it judged."""

    item: Ints
    setup: Ints
    verdict: Ints
    """Its number among all verdicts."""


def most_frequent(counts: Mapping[str, int]) -> str:
    """Finds the verdict that was given most often, empty if none was scored.

    >>> most_frequent({"3": 1, "2": 2, "abstained": 5})
    '2'
    """
    scored = {verdict: count for verdict, count in counts.items() if _stages(verdict)}
    return max(scored, key=lambda verdict: (scored[verdict], verdict), default="")


def _stages(verdict: str) -> list[int]:
    """Lists the stages of a verdict: none if it is the status of an answer without one."""
    return [int(stage) for stage in verdict.split()] if verdict[:1].isdigit() else []


def _statuses(counts: Mapping[str, int]) -> Counter[str]:
    statuses: Counter[str] = Counter()
    for verdict, count in counts.items():
        statuses["scored" if _stages(verdict) else verdict] += count
    return statuses
