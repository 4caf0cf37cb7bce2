"""Seeing runs through to their end: carried out here if the lab is free, else where it is not."""

import asyncio
import signal
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from judge_gym.engine.calls.ask import Models, Stopped
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.locks import LockTaken, lab_lock, turn
from judge_gym.engine.runs.orders import Outcome, WorkOrder
from judge_gym.errors import BudgetError, DatabaseGone, JudgeGymError
from judge_gym.models.cards import Limits
from judge_gym.store import Store

if TYPE_CHECKING:
    from judge_gym.engine.runs.executor import Executor
    from judge_gym.engine.runs.queue import RunQueue

T = TypeVar("T")
POLL = 0.2
"""Seconds between looks at work that goes on elsewhere."""
SWEEP = 1.0
"""Seconds between looks for what dead processes were at."""


class RunFollower:
    """The runs of one command, from its order to their end.

    Args:
        store: where they are.
        models: whom to ask.
        limits: what is given here stands in the place of what the registry states.
        orders: what is to be done.
    """

    def __init__(
        self, store: Store, models: Models, limits: Limits, orders: Sequence[WorkOrder]
    ) -> None:
        self._store = store
        self._models = models
        self._limits = limits
        complete = [order.run for order in orders if self._complete(order)]
        self.orders = {order.run: order for order in orders if order.run not in complete}
        self.tallies = {order.run: RunProgress() for order in orders}
        """What goes on, for those who watch."""
        self.outcomes = {run: Outcome() for run in complete}
        self.stopped: JudgeGymError | None = None
        """Why it ended early: interrupted, or over budget."""
        self._faults: dict[int, Exception] = {}
        self._ids: dict[int, str] = {}
        self._joined: set[int] = set()
        """Runs that somebody was at already: what they were asked for may have been less."""
        self._interrupt: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None

    def interrupt(self) -> None:
        """Begin no further call; those in flight are awaited and recorded."""
        if self._loop is not None:  # perhaps in another thread
            self._loop.call_soon_threadsafe(self._interrupt)

    def _complete(self, order: WorkOrder) -> bool:
        """Whether every target of a run has its answer."""
        progress = self._store.progress.of_run(order.run, order.tag)
        for workflow, wanted in progress.wanted.items():
            if progress.done[workflow] < wanted or progress.failed[workflow]:
                return False
        return bool(progress.wanted["score"]) and not self._store.progress.uncriticised(order.run)

    async def carry_out(self, dispatch: "RunQueue") -> None:
        """Order the runs and see them through."""
        from judge_gym.engine.runs.executor import Executor

        self._loop = asyncio.get_running_loop()
        before = self._store.queries.last_attempt()
        self._store.events.record(self.orders, "started")
        self._dispatch = dispatch
        try:
            with first_interrupt(lambda: self._interrupt()):
                for order in self.orders.values():
                    self._begin(order)
                while self._waiting and self.stopped is None:
                    try:
                        with turn(self._store.database, dispatch.protocol) as mine:
                            given = (self._store, self._models, dispatch, mine, self._limits)
                            await self._execute(Executor(*given))
                    except LockTaken:
                        await self._follow()
        except asyncio.CancelledError:  # the second Ctrl-C: what goes on is found by the next one
            self.stopped = Stopped("interrupted")
        finally:
            for run in self.orders:
                self._settle(run, before)
        self._judge()

    def _settle(self, run: int, before: int) -> None:
        """What a run has cost since this command began, whoever carried it out."""
        outcome = self.outcomes.setdefault(run, Outcome.of(None, self.tallies[run]))
        outcome.paid, _, outcome.usd, _ = self._store.queries.paid(run, before)

    @property
    def _waiting(self) -> dict[int, str]:
        return {run: id for run, id in self._ids.items() if run not in self.outcomes}

    def _begin(self, order: WorkOrder) -> None:
        self._ids[order.run], new = self._dispatch.begin(order)
        if not new:
            self._joined.add(order.run)

    async def _kept(self, ids: Collection[str]) -> None:
        """Wait until DBOS has written down that workflows ended, or they would go on next time."""
        for _ in range(500):
            with suppress(DatabaseGone):
                if not ids or len(self._dispatch.outcomes(ids)) == len(ids):
                    return
            await asyncio.sleep(0.01)

    def _collect(self, outcomes: Mapping[str, Outcome], faults: Mapping[str, Exception]) -> None:
        for run, id in self._waiting.items():
            if id in outcomes:
                if id in faults:
                    self._faults[run] = faults[id]
                self._ended(run, outcomes[id])

    def _ended(self, run: int, outcome: Outcome) -> None:
        """Take an end for what it is, or begin again what another had begun with less in mind."""
        if run in self._joined and outcome.end in ("done", "stopped", "paused"):
            self._joined.remove(run)
            self._store.events.record([run], "started")
            self._begin(self.orders[run])
        else:
            self.outcomes[run] = outcome

    async def _execute(self, executor: "Executor") -> None:
        """Carry the runs out in this process, and what others order meanwhile."""

        def stop() -> None:
            with suppress(DatabaseGone):  # then others go on with it
                self._store.events.record(self._waiting, "paused", "interrupted")
            executor.stop(Stopped("interrupted"))

        executor.tallies = self.tallies
        if self._store.database.file is not None:
            self._take_over()
        async with executor:
            self._interrupt = stop
            while self._waiting and not executor.ousted and not executor.cut_off:
                ended = {id for id in self._waiting.values() if id in executor.outcomes}
                self._collect(executor.outcomes, executor.faults)
                await self._kept(ended)
                if not self._waiting:
                    break
                executor.changed.clear()
                try:
                    await asyncio.wait_for(executor.changed.wait(), SWEEP)
                except TimeoutError:  # now and then: perhaps it ended elsewhere
                    with suppress(DatabaseGone):
                        self._collect(self._dispatch.outcomes(self._waiting.values()), {})
                        await asyncio.to_thread(executor.sweep)
            await executor.leave()  # what others ordered goes on with the next
            self._interrupt = lambda: None
        if executor.cut_off and executor.asker.fault is not None:
            raise executor.asker.fault
        executor.offline.refuse_missing()

    def _take_over(self) -> None:
        """Go on with what a dead process was at, if it is ours to do; let the rest stand."""
        from judge_gym.engine.runs.queue import parent

        left = self._dispatch.active()
        mine = set(self._ids.values())
        self._dispatch.again([row for row in left if parent(row.workflow_id) in mine])
        others = {parent(row.workflow_id) for row in left} - mine
        self._dispatch.drop(others)
        runs = {int(id.partition(".")[0]) for id in others}
        self._store.events.record(
            runs, "paused", "its process ended; go on with judge-gym resume, or run it again"
        )

    async def _follow(self) -> None:
        """Watch the runs being carried out elsewhere, until they end or the lab is free."""
        detached = asyncio.Event()
        self._interrupt = detached.set
        while not detached.is_set():
            self._collect(self._dispatch.outcomes(self._waiting.values()), {})
            for run in self._waiting:
                self._look(run)
            if not self._waiting:
                return
            try:
                with lab_lock(self._store.database):
                    return
            except LockTaken:
                await asyncio.sleep(POLL)
        self.stopped = Stopped(
            "no longer followed: another judge-gym carries it out, and 'judge-gym pause' stops it"
        )

    def _look(self, run: int) -> None:
        progress = self._store.progress.of_run(run, self.orders[run].tag)
        self.tallies[run].wanted = dict(progress.wanted)
        self.tallies[run].done = dict(progress.done)

    def _judge(self) -> None:
        """Raise what should not have happened; say why it ended early, if it did."""
        ends = {run: outcome for run, outcome in self.outcomes.items() if outcome.end != "done"}
        for run, outcome in ends.items():
            if outcome.end == "failed":
                raise self._faults.get(run) or outcome.fault or JudgeGymError(outcome.said)
            if outcome.end == "waiting":
                outcome.warnings.append(outcome.said)
        early = [outcome for outcome in ends.values() if outcome.end != "waiting"]
        own = [outcome for outcome in early if outcome.end == "run-over-budget"]
        whole = [outcome for outcome in early if outcome.end != "run-over-budget"]
        if whole:
            self.stopped = self.stopped or whole[0].fault
        elif own:
            said = f"{len(own)} of {len(self.outcomes)} runs: {own[0].said}"
            self.stopped = self.stopped or BudgetError(said)


@contextmanager
def first_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM lets calls in flight land; the second ends at once."""
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


def in_own_loop(work: Coroutine[Any, Any, T], stop: Callable[[], None]) -> T:
    """Run to the end, also from a notebook, whose thread has a loop already."""
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
