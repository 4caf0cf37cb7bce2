"""A map over threads: the executor's own, which takes every item at once."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def ordered_map(function: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Yields the results of calls in the order of the items."""
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")

    def results() -> Iterator[R]:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(function, items)

    return results()
