"""Lists in lists."""


def flatten(items: list[object]) -> list[object]:
    """The items of nested lists, without recursion: depth is not limited by the stack."""
    found: list[object] = []
    left = list(reversed(items))
    while left:
        item = left.pop()
        if isinstance(item, list):
            left.extend(reversed(item))
        else:
            found.append(item)
    return found
