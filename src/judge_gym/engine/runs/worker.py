"""The loop of a worker: a process that executes whatever is queued, until it is interrupted."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from judge_gym.engine.calls.ask import Models
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.capabilities import Capabilities
from judge_gym.engine.runs.follower import first_interrupt
from judge_gym.engine.runs.locks import worker_lock
from judge_gym.errors import DatabaseGone
from judge_gym.models.model_card import Limits
from judge_gym.store import Store

if TYPE_CHECKING:
    from judge_gym.engine.runs.queue import RunQueue


async def work(
    store: Store,
    models: Models,
    queue: "RunQueue",
    limits: Limits,
    progress: dict[int, RunProgress],
    capabilities: Capabilities,
    *,
    until_idle: bool,
    on_start: Callable[[str], None],
) -> None:
    """Executes what is queued until it is interrupted, or with `until_idle` until nothing is left.

    It fills `progress`, and calls `on_start` with the worker's name when it is ready.
    """
    from judge_gym.engine.runs.executor import Executor

    interrupted = False
    executor: Executor | None = None

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        if executor is not None:
            executor.changed.set()

    async def over() -> bool:
        assert executor is not None
        if interrupted or executor.asker.error is not None:
            return True
        with suppress(DatabaseGone):
            idle = until_idle and queue.idle(executor.served)
            return idle and not store.events.retries()
        return False

    with first_interrupt(interrupt):
        while executor is None or (executor.superseded and not interrupted):
            with worker_lock(store.database, queue.protocol) as lock:
                executor = Executor(store, models, queue, lock, limits, progress, capabilities)
                async with executor:
                    on_start(executor.name)
                    with suppress(DatabaseGone):
                        await asyncio.to_thread(executor.sweep)
                    await executor.work(over)
            if executor.failure is not None and not executor.superseded:
                raise executor.failure
