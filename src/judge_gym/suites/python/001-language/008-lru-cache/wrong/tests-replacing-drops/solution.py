"""A cache of what was used last."""

from collections import OrderedDict


class Cache:
    """Entries by key, the one used longest ago first."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"a cache holds at least one entry, not {size}")
        self._size = size
        self._entries: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> int | None:
        """The value under a key, or None."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: str, value: int) -> None:
        """Store a value."""
        if len(self._entries) == self._size:
            self._entries.popitem(last=False)
        self._entries[key] = value
        self._entries.move_to_end(key)
