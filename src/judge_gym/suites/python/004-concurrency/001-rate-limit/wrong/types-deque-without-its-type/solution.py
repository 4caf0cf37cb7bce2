"""So many calls within so many seconds."""

from collections import deque
from collections.abc import Callable


class Limiter:
    """Remembers when each person's latest calls were."""

    def __init__(self, calls: int, seconds: float, clock: Callable[[], float]) -> None:
        self._calls = calls
        self._seconds = seconds
        self._clock = clock
        self._made: dict[str, list[float]] = {}

    def allow(self, who: str) -> bool:
        """Whether a person may make a call now; if so it counts."""
        now = self._clock()
        made = self._made.setdefault(who, deque(maxlen=self._calls))
        if len(made) == self._calls and now - made[0] < self._seconds:
            return False
        made.append(now)
        return True
