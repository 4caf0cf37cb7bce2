"""So many calls within each window of the clock."""

from collections.abc import Callable


class Limiter:
    """Counts each person's calls in the current window."""

    def __init__(self, calls: int, seconds: float, clock: Callable[[], float]) -> None:
        self._calls = calls
        self._seconds = seconds
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    def allow(self, who: str) -> bool:
        """Whether a person may make a call now; if so it counts."""
        now = self._clock()
        since, count = self._counts.get(who, (now, 0))
        if now - since >= self._seconds:
            since, count = now, 0
        if count >= self._calls:
            return False
        self._counts[who] = (since, count + 1)
        return True
