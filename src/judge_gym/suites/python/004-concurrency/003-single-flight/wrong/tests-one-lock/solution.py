"""A cache whose lock is held during a load: keys wait for each other."""

import threading
from collections.abc import Callable


class Cache:
    """Values by key."""

    def __init__(
        self, load: Callable[[str], str], seconds: float, clock: Callable[[], float]
    ) -> None:
        self._load = load
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.RLock()
        self._values: dict[str, tuple[str, float]] = {}
        self._waiting: dict[str, int] = {}

    def get(self, key: str) -> str:
        """Returns the value of a key."""
        self._waiting[key] = self._waiting.get(key, 0) + 1
        with self._lock:
            self._waiting[key] -= 1
            if key in self._values:
                value, since = self._values[key]
                if self._clock() - since < self._seconds:
                    return value
            value = self._load(key)
            self._values[key] = (value, self._clock())
            return value

    def forget(self, key: str) -> None:
        """Removes a value."""
        with self._lock:
            self._values.pop(key, None)

    def waiting(self, key: str) -> int:
        """Returns how many calls wait."""
        return self._waiting.get(key, 0)
