"""A cache in which no key is loaded twice at the same time."""

import threading
from collections.abc import Callable


class _Load:
    """A load in progress, and how it ended."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.ended = threading.Event()
        self.waiting = 0
        self.since = 0.0
        self.value = ""
        self.error: BaseException | None = None


class Cache:
    """Values by key, each loaded by the first thread that asks."""

    def __init__(
        self, load: Callable[[str], str], seconds: float, clock: Callable[[], float]
    ) -> None:
        self._load = load
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._values: dict[str, tuple[str, float]] = {}
        self._loads: dict[str, _Load] = {}
        self._loading = threading.local()

    def get(self, key: str) -> str:
        """Returns the value of a key; loads it, or waits for its load."""
        own: set[str] = self._loading.__dict__.setdefault("keys", set())
        with self._lock:
            if key in own:
                raise RuntimeError(f"the load of {key!r} needs its own result")
            if key in self._values:
                value, since = self._values[key]
                if self._clock() - since < self._seconds:
                    return value
                del self._values[key]
            load = self._loads.get(key)
            if load is not None:
                load.waiting += 1
            else:
                mine = self._loads[key] = _Load()
                mine.since = self._clock()
        if load is not None:
            return self._wait(load)
        own.add(key)
        try:
            return self._fill(key, mine)
        finally:
            own.discard(key)

    def forget(self, key: str) -> None:
        """Removes a value; a running load of it is not stored."""
        with self._lock:
            self._values.pop(key, None)
            self._loads.pop(key, None)

    def waiting(self, key: str) -> int:
        """Returns how many calls wait for the load of a key."""
        with self._lock:
            load = self._loads.get(key)
            return load.waiting if load else 0

    def _wait(self, load: _Load) -> str:
        load.ended.wait()
        if load.error is not None:
            raise load.error
        return load.value

    def _fill(self, key: str, load: _Load) -> str:
        try:
            load.value = self._load(key)
        except BaseException as error:
            load.error = error
            raise
        finally:
            with self._lock:
                if self._loads.get(key) is load:
                    del self._loads[key]
                    if load.error is None:
                        self._values[key] = (load.value, load.since)
            load.ended.set()
        return load.value
