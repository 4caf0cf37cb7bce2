"""What processes share, without a database: for tests that set the clock, or need many rounds."""

import threading
from copy import deepcopy
from typing import Any, TypeVar

from judge_gym.models.leases import LeaseChange

T = TypeVar("T")


class MemoryLeases:
    """What processes share, in memory, with a clock that a test sets forward."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.common: dict[str, Any] = {}
        self.parts: dict[str, dict[str, Any]] = {}
        self.rounds = 0
        self.fault: Exception | None = None
        self._lock = threading.Lock()

    def of(self, holder: str) -> "ProcessLeases":
        return ProcessLeases(self, holder)

    def change(self, holder: str, how: LeaseChange[T]) -> T:
        with self._lock:
            if self.fault is not None:
                raise self.fault
            self.rounds += 1
            mine = self.parts.pop(holder, {})
            others = deepcopy(list(self.parts.values()))
            result = how(self.common, mine, others, self.now)
            if mine:
                self.parts[holder] = mine
            return result


class ProcessLeases:
    """One process."""

    def __init__(self, shared: MemoryLeases, holder: str) -> None:
        self._shared, self._holder = shared, holder

    def change(self, scope: str, how: LeaseChange[T]) -> T:
        return self._shared.change(self._holder, how)
