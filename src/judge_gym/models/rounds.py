"""How processes that share something agree on it: in rounds, each a short transaction.

A process takes part only while it has something to ask for or to hold.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from judge_gym.errors import DatabaseGone

T = TypeVar("T")
How = Callable[[dict[str, Any], dict[str, Any], Sequence[dict[str, Any]], float], T]

GAP = 0.05
"""Seconds between rounds for each process: the more there are, the rarer are those of each."""
RENEW = 1.0
"""Seconds after which a process says again what it holds."""
PATIENCE = 60
"""Rounds in a row, about a second each, that may fail because the database is away."""


class Leases(Protocol):
    """What processes share, kept where each of them can reach it."""

    def change(self, scope: str, how: How[T]) -> T:
        """Change what is common and what this process holds, knowing what the others do."""
        ...


class Pause(NamedTuple):
    """When the next round is due."""

    least: float
    most: float
    """Seconds, unless there is news before."""


class Rounds:
    """Meets the other processes again and again, as long as there is anything to agree on.

    Args:
        meet: one round.
        busy: whether there is anything to agree on; the last round is held when there is not.
        fail: tells those who wait that no round can be held.
    """

    def __init__(
        self,
        meet: Callable[[], Awaitable[Pause]],
        busy: Callable[[], bool],
        fail: Callable[[Exception], None],
    ) -> None:
        self._meet = meet
        self._busy = busy
        self._fail = fail
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """There is something new to agree on."""
        self._news.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._hold())

    async def _hold(self) -> None:
        missed = 0
        try:
            while True:
                self._news.clear()
                last = not self._busy()
                try:
                    pause, missed = await self._meet(), 0
                except Exception as fault:  # whatever it is, those who wait must hear of it
                    missed += 1
                    if not isinstance(fault, DatabaseGone) or missed > PATIENCE:
                        self._fail(fault)
                    pause = Pause(RENEW, RENEW)
                if last and not self._busy():
                    return
                await asyncio.sleep(pause.least)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), max(0.0, pause.most - pause.least))
        finally:
            self._task = None
