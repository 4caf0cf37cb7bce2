"""A map over threads in batches: a slow call holds up the calls of the next batch."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def ordered_map(function: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Yields the results of calls in the order of the items."""
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    return _results(function, items, workers)


def _results(function: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    source = iter(items)
    with ThreadPoolExecutor(workers) as pool:
        while batch := list(islice(source, workers)):
            for future in [pool.submit(function, item) for item in batch]:
                yield future.result()
