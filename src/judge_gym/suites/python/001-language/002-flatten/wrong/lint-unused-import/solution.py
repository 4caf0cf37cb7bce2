"""Lists in lists."""

import itertools
from collections.abc import Iterator


def flatten(items: list[object], depth: int | None = None) -> list[object]:
    """The items of nested lists, without recursion: depth is not limited by the stack."""
    if depth is not None and depth < 0:
        raise ValueError(f"{depth} levels cannot be opened")
    found: list[object] = []
    path: list[tuple[int, Iterator[object]]] = [(id(items), iter(items))]
    opened = {id(items)}
    while path:
        identity, rest = path[-1]
        for item in rest:
            if not isinstance(item, list) or (depth is not None and len(path) > depth):
                found.append(item)
                continue
            if id(item) in opened:
                raise ValueError("a list contains itself")
            path.append((id(item), iter(item)))
            opened.add(id(item))
            break
        else:
            path.pop()
            opened.discard(identity)
    return found
