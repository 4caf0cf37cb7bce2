"""Follows the runs of one command from their orders to their end, here or in other processes."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from judge_gym.engine.calls.ask import Models
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.stopped import Stopped
from judge_gym.engine.capabilities import Capabilities
from judge_gym.engine.interrupts import first_interrupt
from judge_gym.engine.liveness import LockTaken, lab_lock, worker_lock
from judge_gym.engine.orders import EVALS, Outcome, ProcessEnding, WorkOrder
from judge_gym.errors import BudgetError, DatabaseFull, DatabaseGone, JudgeGymError
from judge_gym.models.model_card import Limits
from judge_gym.records.actors import current_actor
from judge_gym.store import Store

if TYPE_CHECKING:
    from judge_gym.engine.queue import RunQueue
    from judge_gym.engine.worker import Worker

POLL = 0.2
"""Seconds between two queries of runs that another process executes."""


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
            # Called in a notebook's thread, while the loop runs in another, where alone its tasks
            # and events may be touched.
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        for progress in self.progress.values():
            progress.ending = True
        self._interrupt()

    def _complete(self, order: WorkOrder) -> bool:
        """Whether every target of a run has its answer."""
        if order.suite is not None:
            run = self._store.suites.find_run(-order.run)
            return not self._store.suites.missing(run, order.suite.selection)
        progress = self._store.progress.of_run(order.run, order.tag)
        for workflow, targets in progress.targets.items():
            if progress.done[workflow] < targets or progress.failed[workflow]:
                return False
        possible = progress.targets["score"] > progress.not_needed["score"]
        return possible and not self._store.progress.uncriticised(order.run)

    async def follow(self, queue: "RunQueue") -> None:
        """Queues the runs and returns when they have ended."""
        from judge_gym.engine.worker import Worker

        self._loop = asyncio.get_running_loop()
        # Before the runs are queued: from then on any process may pay for them.
        before = self._store.usage.last_attempt()
        self._store.events.record(self.orders, "started", actor=current_actor())
        self._queue = queue
        try:
            with first_interrupt(self._stop):
                for run, order in self.orders.items():
                    # Queued before the lock is tried: if this process is killed now, the next one
                    # finds it.
                    self._ids[run], is_new = queue.add(order)
                    if not is_new:
                        self._joined.add(run)
                while self._waiting and self.stopped is None:
                    try:
                        with worker_lock(self._store.database, queue.protocol) as lock:
                            worker = Worker(
                                self._store,
                                self._models,
                                queue,
                                lock,
                                self._limits,
                                self.progress,
                                self._capabilities,
                                awaited=self.orders,
                            )
                            await self._execute(worker)
                    # Who works on the file executes what is queued in it, so that this command only
                    # watches; if that process ends first, the lock is free and this one continues.
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

    # --- executed here ---------------------------------------------------------------------------

    async def _execute(self, worker: "Worker") -> None:
        """Executes the runs in this process, and what others queue meanwhile."""
        workflows = worker.workflows

        def stop() -> None:
            with suppress(DatabaseGone, DatabaseFull):  # then others continue it
                self._store.events.record(
                    self._waiting, "paused", "interrupted", actor=current_actor()
                )
            worker.stop(Stopped("interrupted"))

        async def all_ended() -> bool:
            ended = {id for id in self._waiting.values() if id in workflows.outcomes}
            self._collect(workflows.outcomes, workflows.errors)
            await self._recorded(ended)
            if elsewhere := set(self._waiting.values()) - workflows.running:
                with suppress(DatabaseGone):  # perhaps it ended in another process
                    self._collect(self._queue.outcomes(elsewhere), {})
            return not self._waiting

        async with worker:
            self._interrupt = stop
            await worker.work(all_ended)
            self._interrupt = lambda: None
        failure = worker.failure
        if worker.database_lost and isinstance(failure, Stopped):
            self.stopped = failure
            return
        if worker.database_lost and failure is not None:
            raise failure
        if worker.declared_dead:
            return  # under another name, it follows those who continue the work
        if isinstance(failure, ProcessEnding):
            raise failure
        worker.offline.refuse_missing()

    async def _recorded(self, ids: Collection[str]) -> None:
        """Waits until DBOS has recorded the end of workflows, or they would be executed again."""
        # It is recorded by a thread of DBOS after the workflow has returned. Five seconds are
        # enough for any disk; beyond them, the next process finds the run complete.
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
                self._store.events.record([run], "started", "continued", actor=current_actor())
                self._ids[run], is_new = self._queue.add(self.orders[run])
                if is_new:
                    self._joined.remove(run)
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
            missing = len(self._store.suites.missing(run, selection))
            live.targets, live.done = {EVALS: targets}, {EVALS: targets - missing}
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
