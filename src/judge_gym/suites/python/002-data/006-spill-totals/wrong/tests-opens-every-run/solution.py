"""Sums by key, with sorted runs on disk."""

import heapq
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

Row = tuple[str, int]


def totals(rows: Iterable[Row], limit: int, folder: str) -> Iterator[Row]:
    """Each key with the sum of its numbers, in order."""
    if limit < 1:
        raise ValueError(f"at least one key must fit into memory, not {limit}")
    return _totals(rows, limit, Path(folder))


def _totals(rows: Iterable[Row], limit: int, folder: Path) -> Iterator[Row]:
    runs = _Runs(folder)
    try:
        sums: dict[str, int] = {}
        for key, number in rows:
            if key not in sums and len(sums) == limit:
                runs.add(sorted(sums.items()))
                sums.clear()
            sums[key] = sums.get(key, 0) + number
        yield from _summed([runs.all(), sorted(sums.items())])
    finally:
        runs.remove()


class _Runs:
    """Sorted files of rows, by level: those of a level have about the same size."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._levels: list[list[Path]] = []
        self._numbers = itertools.count()

    def add(self, rows: Iterable[Row], level: int = 0) -> None:
        """Write a run; merge its level where that is full."""
        path = self._folder / f"run-{next(self._numbers)}"
        if level == len(self._levels):
            self._levels.append([])
        with path.open("w", encoding="ascii") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
        self._levels[level].append(path)

    def all(self) -> Iterator[Row]:
        """The rows of all runs; first as many are merged as are needed to open the rest at once."""
        paths = [path for level in self._levels for path in level]
        yield from _merged(paths)

    def remove(self) -> None:
        """Delete every file."""
        for name in os.listdir(self._folder):
            (self._folder / name).unlink()


def _merged(paths: list[Path]) -> Iterator[Row]:
    with ExitStack() as stack:
        files = [stack.enter_context(path.open(encoding="ascii")) for path in paths]
        yield from _summed([map(_row, file) for file in files])


def _row(line: str) -> Row:
    key, number = json.loads(line)
    return key, number


def _summed(sources: Iterable[Iterable[Row]]) -> Iterator[Row]:
    """The rows of sorted sources, with one row for each key."""
    last: Row | None = None
    for key, number in heapq.merge(*sources):
        if last is not None and last[0] == key:
            last = (key, last[1] + number)
            continue
        if last is not None:
            yield last
        last = (key, number)
    if last is not None:
        yield last
