"""Windows over a stream."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice


def windows(items: Iterable[int], size: int) -> Iterator[tuple[int, ...]]:
    """Every run of neighbouring items."""
    if size < 1:
        raise ValueError(f"a window holds at least one item, not {size}")
    return _windows(iter(list(items)), size)


def _windows(items: Iterator[int], size: int) -> Iterator[tuple[int, ...]]:
    window = deque(islice(items, size), maxlen=size)
    if len(window) == size:
        yield tuple(window)
    for item in items:
        window.append(item)
        yield tuple(window)
