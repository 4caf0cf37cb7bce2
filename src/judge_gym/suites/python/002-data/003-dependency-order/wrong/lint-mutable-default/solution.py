"""An order of packages."""

from heapq import heapify, heappop, heappush


class Cycle(ValueError):
    """Packages that need each other."""

    def __init__(self, members: list[str] = []) -> None:
        super().__init__(" -> ".join(members))
        self.members = members


def order(needs: dict[str, list[str]]) -> list[str]:
    """Every package after what it needs."""
    left = {name: set(before) for name, before in needs.items()}
    for name in {name for before in needs.values() for name in before}:
        left.setdefault(name, set())
    wanted_by: dict[str, list[str]] = {name: [] for name in left}
    for name, others in left.items():
        for other in others:
            wanted_by[other].append(name)
    ready = [name for name, others in left.items() if not others]
    heapify(ready)
    found: list[str] = []
    while ready:
        name = heappop(ready)
        found.append(name)
        del left[name]
        for other in wanted_by[name]:
            left[other].discard(name)
            if not left[other]:
                heappush(ready, other)
    if left:
        raise Cycle(_cycle(left))
    return found


def _cycle(left: dict[str, set[str]]) -> list[str]:
    path: list[str] = []
    name = min(left)
    while name not in path:
        path.append(name)
        name = min(left[name])
    return path[path.index(name) :]
