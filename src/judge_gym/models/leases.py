"""Lets processes that share limits agree on them in rounds, each a short transaction.

A process takes part only while it requests or holds something.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from judge_gym.errors import DatabaseGone

T = TypeVar("T")
LeaseChange = Callable[[dict[str, Any], dict[str, Any], Sequence[dict[str, Any]], float], T]

GAP = 0.05
"""Seconds between the rounds of a process, times the number of processes."""
RENEW = 1.0
"""Seconds after which a process renews what it holds."""
PATIENCE = 60
"""Rounds in a row, about a second each, that may fail because the database is unreachable."""


class Leases(Protocol):
    """What processes share, stored where each can reach it."""

    def change(self, scope: str, how: LeaseChange[T]) -> T:
        """Changes the common part and this process's part, given those of the others."""
        ...


class Pause(NamedTuple):
    """The time until the next round."""

    least: float
    most: float
    """Seconds, unless something changes before."""


@dataclass
class LeaseRounds:
    """Holds rounds with the other processes while there is anything to agree on."""

    hold: Callable[[], Awaitable[Pause]]
    """Holds one round."""
    busy: Callable[[], bool]
    """Tells whether there is anything to agree on; without, one last round is held."""
    fail: Callable[[Exception], None]
    """Passes an error on to the calls that wait."""

    def __post_init__(self) -> None:
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Starts a round soon: there is something to agree on."""
        self._changed.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        missed = 0
        try:
            while True:
                self._changed.clear()
                last = not self.busy()
                try:
                    pause, missed = await self.hold(), 0
                except Exception as error:  # whatever it is, the calls that wait must end
                    missed += 1
                    if not isinstance(error, DatabaseGone) or missed > PATIENCE:
                        self.fail(error)
                    pause = Pause(RENEW, RENEW)
                if last and not self.busy():
                    return
                await asyncio.sleep(pause.least)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), max(0.0, pause.most - pause.least))
        finally:
            self._task = None
