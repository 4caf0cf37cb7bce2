"""Follows the runs of one command to their end, or executes whatever is queued as a worker."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from judge_gym.engine.calls.ask import Models
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.record import OUTAGE
from judge_gym.engine.calls.stopped import Stopped
from judge_gym.engine.capabilities import Capabilities
from judge_gym.engine.liveness import LockTaken, WorkerLock, lab_lock, worker_lock
from judge_gym.engine.orders import EVALS, Outcome, ProcessEnding, WorkOrder
from judge_gym.engine.suite_reports import missing_evals
from judge_gym.errors import BudgetError, DatabaseFull, DatabaseGone, JudgeGymError
from judge_gym.models.model_card import Limits
from judge_gym.records.actors import current_actor
from judge_gym.store import Store

if TYPE_CHECKING:
    from judge_gym.engine.queue import RunQueue
    from judge_gym.engine.worker import Analyze, Executor

T = TypeVar("T")
POLL = 0.2
"""Seconds between two queries of runs that another process executes."""
LOOK = 1.0
"""Seconds between two looks of an idle worker for work."""
LINGER = 5.0
"""Seconds without work after which a worker is idle."""


class RunFollower:
    """Follows the runs of one command from their orders to their end."""

    def __init__(
        self,
        store: Store,
        models: Models,
        limits: Limits,
        orders: Sequence[WorkOrder],
        capabilities: Capabilities,
    ) -> None:
        self._store = store
        self._models = models
        self._limits = limits
        self._capabilities = capabilities
        complete = [order.run for order in orders if self._complete(order)]
        self.orders = {order.run: order for order in orders if order.run not in complete}
        self.progress = {order.run: RunProgress() for order in orders}
        """The live counters, by run."""
        self.outcomes = {run: Outcome() for run in complete}
        self.stopped: JudgeGymError | None = None
        """Why it ended early: interrupted, or over budget."""
        self._errors: dict[int, Exception] = {}
        self._ids: dict[int, str] = {}
        self._joined: set[int] = set()
        """Runs that were executed already, perhaps under an order that asks for less."""
        self._interrupt: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None

    def interrupt(self) -> None:
        """Begins no further call; calls in flight are awaited and recorded."""
        if self._loop is not None:  # perhaps of another thread
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        for progress in self.progress.values():
            progress.ending = True
        self._interrupt()

    def _complete(self, order: WorkOrder) -> bool:
        """Whether every target of a run has its answer."""
        if order.suite is not None:
            run = self._store.suites.find_run(-order.run)
            return not missing_evals(self._store, run, order.suite.selection)
        progress = self._store.progress.of_run(order.run, order.tag)
        for workflow, targets in progress.targets.items():
            if progress.done[workflow] < targets or progress.failed[workflow]:
                return False
        possible = progress.targets["score"] > progress.not_needed["score"]
        return possible and not self._store.progress.uncriticised(order.run)

    async def follow(self, queue: "RunQueue") -> None:
        """Queues the runs and returns when they have ended."""
        from judge_gym.engine.worker import Executor

        self._loop = asyncio.get_running_loop()
        before = self._store.usage.last_attempt()
        self._store.events.record(self.orders, "started", actor=current_actor())
        self._queue = queue
        try:
            with first_interrupt(self._stop):
                for order in self.orders.values():
                    self._add(order)
                while self._waiting and self.stopped is None:
                    try:
                        with worker_lock(self._store.database, queue.protocol) as lock:
                            given = (self._limits, self.progress, self._capabilities, self.orders)
                            await self._execute(
                                Executor(self._store, self._models, queue, lock, *given)
                            )
                    except LockTaken:
                        await self._watch()
        except asyncio.CancelledError:  # the second Ctrl-C: the next command finds what is left
            self.stopped = Stopped("interrupted")
        finally:
            for run in self.orders:
                # What it has cost since this command began, in whatever process.
                outcome = self.outcomes.setdefault(run, Outcome.of(None, self.progress[run]))
                outcome.paid, _, outcome.usd, _ = self._store.usage.paid(run, before)
        self._conclude()

    @property
    def _waiting(self) -> dict[int, str]:
        return {run: id for run, id in self._ids.items() if run not in self.outcomes}

    def _add(self, order: WorkOrder) -> None:
        self._ids[order.run], new = self._queue.add(order)
        if not new:
            self._joined.add(order.run)

    # --- executed here ---------------------------------------------------------------------------

    async def _execute(self, executor: "Executor") -> None:
        """Executes the runs in this process, and what others queue meanwhile."""

        def stop() -> None:
            with suppress(DatabaseGone, DatabaseFull):  # then others continue it
                self._store.events.record(
                    self._waiting, "paused", "interrupted", actor=current_actor()
                )
            executor.stop(Stopped("interrupted"))

        async def all_ended() -> bool:
            ended = {id for id in self._waiting.values() if id in executor.outcomes}
            self._collect(executor.outcomes, executor.errors)
            await self._recorded(ended)
            if self._waiting:
                with suppress(DatabaseGone):  # perhaps it ended in another process
                    self._collect(self._queue.outcomes(self._waiting.values()), {})
            return not self._waiting

        async with executor:
            self._interrupt = stop
            await executor.work(all_ended)
            self._interrupt = lambda: None
        if executor.cut_off and isinstance(executor.failure, Stopped):
            self.stopped = executor.failure
            return
        marked = isinstance(executor.failure, ProcessEnding) and not executor.superseded
        if (executor.cut_off or marked) and executor.failure is not None:
            raise executor.failure
        executor.offline.refuse_missing()

    async def _recorded(self, ids: Collection[str]) -> None:
        """Waits until DBOS has recorded the end of workflows, or they would be executed again."""
        for _ in range(500):
            with suppress(DatabaseGone):
                if not ids or len(self._queue.outcomes(ids)) == len(ids):
                    return
            await asyncio.sleep(0.01)

    def _collect(self, outcomes: Mapping[str, Outcome], errors: Mapping[str, Exception]) -> None:
        """Takes over the outcomes of runs; a run that was joined is then queued as ordered here."""
        for run, id in self._waiting.items():
            if id not in outcomes:
                continue
            if id in errors:
                self._errors[run] = errors[id]
            if run in self._joined and outcomes[id].end in ("done", "stopped", "paused"):
                self._joined.remove(run)
                self._store.events.record([run], "started", "continued", actor=current_actor())
                self._add(self.orders[run])
            else:
                self.outcomes[run] = outcomes[id]

    # --- executed elsewhere ----------------------------------------------------------------------

    async def _watch(self) -> None:
        """Watches another process execute the runs, until they end or the lab is free."""
        detached = asyncio.Event()
        self._interrupt = detached.set
        while not detached.is_set():
            self._collect(self._queue.outcomes(self._waiting.values()), {})
            for run in self._waiting:
                self._read_progress(self.orders[run])
            if not self._waiting:
                return
            try:
                with lab_lock(self._store.database):
                    return
            except LockTaken:
                await asyncio.sleep(POLL)
        self.stopped = Stopped(
            "no longer followed: another judge-gym executes it, and 'judge-gym pause' stops it"
        )

    def _read_progress(self, order: WorkOrder) -> None:
        """Sets the live counters of a run from its rows."""
        live = self.progress[order.run]
        if order.suite is not None:
            run, selection = self._store.suites.find_run(-order.run), order.suite.selection
            targets = sum((run.replicates_of if selection is None else selection).values())
            left = len(missing_evals(self._store, run, selection))
            live.targets, live.done = {EVALS: targets}, {EVALS: targets - left}
            return
        progress = self._store.progress.of_run(order.run, order.tag)
        live.targets, live.done = dict(progress.targets), dict(progress.done)

    def _conclude(self) -> None:
        """Raises the error that made a run fail, or notes why the command ended early."""
        early = {run: outcome for run, outcome in self.outcomes.items() if outcome.end != "done"}
        for run, outcome in early.items():
            if outcome.end == "failed":
                raise self._errors.get(run) or outcome.error or JudgeGymError(outcome.message)
            if outcome.end == "waiting":
                outcome.warnings.append(outcome.message)
        stopped = [outcome for outcome in early.values() if outcome.end != "waiting"]
        over = [outcome for outcome in stopped if outcome.end == "run-over-budget"]
        whole = [outcome for outcome in stopped if outcome.end != "run-over-budget"]
        if whole:
            self.stopped = self.stopped or whole[0].error
        elif over:
            message = f"{len(over)} of {len(self.outcomes)} runs: {over[0].message}"
            self.stopped = self.stopped or BudgetError(message)


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
    analyze: "Analyze | None" = None,
) -> None:
    """Executes what is queued until it is interrupted, or with `until_idle` until nothing is left.

    It fills `progress`, calls `on_start` with the worker's name when it is ready, and performs
    analyses by `analyze`. DBOS polls each queue several times a second, so that it runs only while
    there is work; otherwise the worker looks for work once a second.
    """
    from judge_gym.engine.worker import Executor

    interrupted = asyncio.Event()
    executor: Executor | None = None
    last_work = 0.0

    def interrupt() -> None:
        interrupted.set()
        for run in progress.values():
            run.ending = True
        if executor is not None:
            executor.changed.set()

    async def over() -> bool:
        nonlocal last_work
        assert executor is not None
        if interrupted.is_set() or executor.asker.error is not None:
            return True
        with suppress(DatabaseGone):
            if await asyncio.to_thread(executor.has_work):
                last_work = time.monotonic()
            elif until_idle:
                return not store.events.retries()
            return time.monotonic() > last_work + LINGER
        return False

    async def serve(lock: WorkerLock) -> bool:
        """Executes work as it arrives, and returns whether to continue under another name."""
        nonlocal executor, last_work
        while not interrupted.is_set():
            executor = Executor(
                store, models, queue, lock, limits, progress, capabilities, analyze=analyze
            )
            if not (until_idle or await _work_arrives(executor, interrupted)):
                break
            last_work = time.monotonic()
            async with executor:
                await executor.work(over)
            if executor.superseded:
                return True
            if executor.failure is not None:
                raise executor.failure
            if until_idle:
                break
        return False

    superseded = True
    try:
        with first_interrupt(interrupt):
            while superseded and not interrupted.is_set():
                with worker_lock(store.database, queue.protocol) as lock:
                    on_start(lock.name)
                    superseded = await serve(lock)
    except asyncio.CancelledError:
        if not interrupted.is_set():
            raise
        # The second Ctrl-C: the next worker finds what is left.


async def _work_arrives(executor: "Executor", interrupted: asyncio.Event) -> bool:
    """Returns True when there is work, and False when the worker is interrupted before.

    Raises:
        DatabaseGone: the database was away for longer than a worker with work waits for it.
    """
    answered = time.monotonic()
    while not interrupted.is_set():
        try:
            if await asyncio.to_thread(executor.has_work):
                return True
            answered = time.monotonic()
        except DatabaseGone:
            if time.monotonic() > answered + sum(OUTAGE):
                raise
        with suppress(TimeoutError):
            await asyncio.wait_for(interrupted.wait(), LOOK)
    return False


@contextmanager
def first_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Lets calls in flight finish on the first Ctrl-C or SIGTERM; the second ends at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt() -> None:
        stop()
        if task is not None:
            for number in SIGNALS:
                loop.add_signal_handler(number, task.cancel)

    for number in SIGNALS:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_in_loop(work: Coroutine[Any, Any, T], stop: Callable[[], None] = lambda: None) -> T:
    """Runs a coroutine to its end, also in a notebook, whose thread has a running loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(asyncio.run, work)
        try:
            return future.result()
        except KeyboardInterrupt:
            stop()
            return future.result()
