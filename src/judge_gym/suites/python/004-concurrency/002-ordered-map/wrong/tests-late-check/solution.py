"""A map over threads that keeps the order of its items."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def ordered_map(function: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Yields the results of calls in the order of the items."""
    if workers < 1:  # in a generator this runs at the first request
        raise ValueError(f"workers must be at least 1, not {workers}")
    source = iter(items)
    pool = ThreadPoolExecutor(workers)
    results: deque[Future[R]] = deque()
    exhausted = False
    try:
        while True:
            while not exhausted and len(results) < workers:
                try:
                    item = next(source)
                except StopIteration:
                    exhausted = True
                except Exception as error:
                    failure: Future[R] = Future()
                    failure.set_exception(error)
                    results.append(failure)
                    exhausted = True
                else:
                    results.append(pool.submit(function, item))
            if not results:
                return
            yield results.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
