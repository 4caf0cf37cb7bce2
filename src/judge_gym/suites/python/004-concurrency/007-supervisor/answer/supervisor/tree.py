"""The supervisor."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from supervisor.children import Child, Event

Strategy = Literal["one", "rest", "all"]


class TooManyRestarts(Exception):
    """Children were restarted too often."""

    def __init__(self, name: str) -> None:
        super().__init__(f"too many restarts, the last of {name}")
        self.name = name


class Supervisor:
    """Runs children in tasks of their own."""

    def __init__(
        self,
        children: Sequence[Child],
        clock: Callable[[], float],
        *,
        strategy: Strategy = "one",
        max_restarts: int = 3,
        seconds: float = 5,
    ) -> None:
        if len({child.name for child in children}) < len(children):
            raise ValueError("two children have the same name")
        if strategy not in get_args(Strategy):
            raise ValueError(f"unknown strategy {strategy!r}")
        self.events: list[Event] = []
        self._children = list(children)
        self._clock = clock
        self._strategy = strategy
        self._max_restarts = max_restarts
        self._seconds = seconds
        self._restarts: deque[float] = deque()
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Runs until no child runs."""
        try:
            for index in range(len(self._children)):
                self._start(index)
            while self._tasks:
                await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
                await self._treat(self._collect())
        finally:
            await self._stop(range(len(self._children)))

    def _start(self, index: int) -> None:
        child = self._children[index]
        self._tasks[index] = asyncio.create_task(child.start())
        self.events.append(Event("started", child.name))

    def _collect(self) -> dict[int, BaseException | None]:
        """Returns the children that have ended, with the exceptions of those that failed."""
        ended: dict[int, BaseException | None] = {}
        for index in sorted(self._tasks):
            if self._tasks[index].done():
                error = ended[index] = self._tasks.pop(index).exception()
                kind: Literal["failed", "returned"] = "failed" if error else "returned"
                self.events.append(Event(kind, self._children[index].name))
        return ended

    async def _treat(self, ended: dict[int, BaseException | None]) -> None:
        for index, error in ended.items():
            child = self._children[index]
            wanted = child.restart == "always" or (child.restart == "on-failure" and error)
            if index in self._tasks or not wanted:
                continue
            if not self._count_restart():
                await self._stop(range(len(self._children)))
                raise TooManyRestarts(child.name) from error
            last = index if self._strategy == "one" else len(self._children) - 1
            group = range(0 if self._strategy == "all" else index, last + 1)
            await self._stop(group)
            for each in group:
                self._start(each)

    def _count_restart(self) -> bool:
        now = self._clock()
        while self._restarts and now - self._restarts[0] >= self._seconds:
            self._restarts.popleft()
        if len(self._restarts) >= self._max_restarts:
            return False
        self._restarts.append(now)
        return True

    async def _stop(self, group: range) -> None:
        for index in reversed(group):
            task = self._tasks.get(index)
            if task is None:
                continue
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()
            del self._tasks[index]
            self.events.append(Event("stopped", self._children[index].name))
