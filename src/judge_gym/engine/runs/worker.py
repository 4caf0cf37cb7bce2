"""A worker: a process that carries out whatever is queued, until it is told to end."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from judge_gym.engine.calls.ask import Models
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.follower import SWEEP, first_interrupt
from judge_gym.engine.runs.locks import turn
from judge_gym.errors import DatabaseGone
from judge_gym.models.cards import Limits
from judge_gym.store import Store

if TYPE_CHECKING:
    from judge_gym.engine.runs.queue import RunQueue


class Worker:
    """Carries out runs and shards that others have ordered.

    Args:
        store: where they are.
        models: whom to ask.
        limits: what is given here stands in the place of what the registry states.
    """

    def __init__(self, store: Store, models: Models, limits: Limits) -> None:
        self._store = store
        self._models = models
        self._limits = limits
        self.tallies: dict[int, RunProgress] = {}
        """What goes on here, by run."""

    async def work(
        self,
        dispatch: "RunQueue",
        *,
        until_idle: bool,
        begun: Callable[[str], None],
    ) -> Mapping[int, RunProgress]:
        """Work until interrupted, or until nothing is left to do.

        Args:
            dispatch: the queue.
            until_idle: end when nothing is queued or carried out any more.
            begun: called with the worker's name when it is ready.
        """
        over = asyncio.Event()
        with first_interrupt(over.set):
            while await self._work(dispatch, until_idle, begun, over):
                pass  # taken for dead and back again: it begins anew, under another name
        return self.tallies

    async def _work(
        self,
        dispatch: "RunQueue",
        until_idle: bool,
        begun: Callable[[str], None],
        over: asyncio.Event,
    ) -> bool:
        """Work under one name; whether to begin anew."""
        from judge_gym.engine.runs.executor import Executor

        with turn(self._store.database, dispatch.protocol) as mine:
            executor = Executor(self._store, self._models, dispatch, mine, self._limits)
            executor.tallies = self.tallies
            async with executor:
                begun(executor.name)
                while not over.is_set() and executor.asker.fault is None:
                    with suppress(DatabaseGone):
                        await asyncio.to_thread(executor.sweep)
                        if until_idle and dispatch.idle():
                            break
                    with suppress(TimeoutError):
                        await asyncio.wait_for(over.wait(), SWEEP)
                fault = executor.asker.fault  # such as a database that takes nothing any more
                await executor.leave()
        if fault is not None and not executor.ousted:
            raise fault
        return executor.ousted and not over.is_set()
