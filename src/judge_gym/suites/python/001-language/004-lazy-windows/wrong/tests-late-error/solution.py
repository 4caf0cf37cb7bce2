"""Windows over a stream."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice


def windows(items: Iterable[int], size: int) -> Iterator[tuple[int, ...]]:
    """Every run of neighbouring items."""
    if size < 1:
        raise ValueError(f"a window holds at least one item, not {size}")
    source = iter(items)
    window = deque(islice(source, size), maxlen=size)
    if len(window) == size:
        yield tuple(window)
    for item in source:
        window.append(item)
        yield tuple(window)
