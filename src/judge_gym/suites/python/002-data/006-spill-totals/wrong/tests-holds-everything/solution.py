"""Sums by key."""

from collections import Counter
from collections.abc import Iterable, Iterator


def totals(rows: Iterable[tuple[str, int]], limit: int, folder: str) -> Iterator[tuple[str, int]]:
    """Each key with the sum of its numbers, in order."""
    if limit < 1:
        raise ValueError(f"at least one key must fit into memory, not {limit}")
    return _totals(rows)


def _totals(rows: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    sums: Counter[str] = Counter()
    for key, number in rows:
        sums[key] += number
    yield from sorted(sums.items())
