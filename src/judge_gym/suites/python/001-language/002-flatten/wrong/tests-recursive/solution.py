"""Lists in lists."""


def flatten(items: list[object], depth: int | None = None) -> list[object]:
    """The items of nested lists."""
    if depth is not None and depth < 0:
        raise ValueError(f"{depth} levels cannot be opened")
    found: list[object] = []
    for item in items:
        if isinstance(item, list) and depth != 0:
            found.extend(flatten(item, None if depth is None else depth - 1))
        else:
            found.append(item)
    return found
