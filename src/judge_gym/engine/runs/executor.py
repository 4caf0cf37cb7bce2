"""A process that carries out runs: it holds DBOS, the way to models, and an ear for wishes.

DBOS is one to a process, and so is this.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dbos import DBOS

from judge_gym.engine.calls.ask import Answering, Asker, Models
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.offline import OfflineAsker
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.record import OUTAGE
from judge_gym.engine.runs.locks import WorkerLock
from judge_gym.engine.runs.options import Workflow
from judge_gym.engine.runs.orders import Cancelled, Leaving, Outcome, Paused, WorkOrder, end_of
from judge_gym.engine.runs.pipeline import Pipeline, Shard
from judge_gym.engine.runs.queue import RunQueue, parent
from judge_gym.errors import DatabaseGone, JudgeGymError, StoreError
from judge_gym.models.cards import Limits
from judge_gym.store import Event, Store

LISTEN = 0.5
"""Seconds between looks at what people wish."""
IDLE = 10
"""How often in a row a workflow of this process is found that nobody carries out."""
REMEMBERED = 64
"""Runs whose texts and rubrics are kept at hand."""
_executor: "Executor | None" = None


def here() -> "Executor":
    """The executor of this process."""
    assert _executor is not None, "workflows are carried out by an executor"
    return _executor


class QueueFull(StoreError):
    """How workflows ended cannot be written down."""


class Executor:
    """This process, while it carries out runs.

    Args:
        store: where runs are.
        models: whom to ask.
        dispatch: the queue.
        turn: its right to do so.
        limits: what is given here stands in the place of what the registry states.
    """

    def __init__(
        self,
        store: Store,
        models: Models,
        dispatch: RunQueue,
        turn: WorkerLock,
        limits: Limits | None = None,
    ) -> None:
        self.name = turn.name
        self.turn = turn
        self.store = store
        self.dispatch = dispatch
        self._leases = store.leases(self.name)
        meters = Meters(store, self._leases)
        self.asker = Asker(
            store.ledger, models, meters, limits=limits, leases=self._leases, sure=turn.sure
        )
        self.offline = OfflineAsker(store.ledger, models)
        self.tallies: dict[int, RunProgress] = {}
        """What goes on in this process, by run."""
        self.faults: dict[str, Exception] = {}
        """What ended workflows here, with all that an error can carry, by their ids."""
        self.outcomes: dict[str, Outcome] = {}
        self.running: set[str] = set()
        """What is carried out here, by id."""
        self.waiting: set[str] = set()
        """Runs among them that do nothing but wait for their shards."""
        self.changed = asyncio.Event()
        """Set when a run has ended here."""
        self.ousted = False
        """Whether others took this process for dead, and are at its work: it has to begin anew."""
        self._pipelines: OrderedDict[str, Pipeline] = OrderedDict()
        self._heard = 0
        self._known: set[int] = set()
        self._idle: dict[str, int] = {}

    async def __aenter__(self) -> "Executor":
        global _executor
        from judge_gym.engine.runs import workflows  # noqa: F401  they register themselves

        assert _executor is None, "one executor to a process"
        _executor = self
        self._heard = self.store.events.last_id()
        try:
            DBOS(config=self.dispatch.config(self.name))
            DBOS.launch()
        except Exception:  # raised again: the next one begins afresh
            _executor = None
            raise
        self._ear = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        global _executor
        self._ear.cancel()
        DBOS.destroy()
        # It had made its threads those of the loop, and has ended them.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        if self._leases is not None:
            with contextlib.suppress(DatabaseGone):  # then it lapses
                self._leases.leave()
        _executor = None

    async def leave(self) -> None:
        """Let go of what is still carried out here; what is in flight is awaited and recorded."""
        self.stop(Leaving("its process has ended"))
        # A run that others took up has no end here, nor what waits for a database that is away.
        endless = self.ousted or self.cut_off
        while self.asker.in_flight or (self.running - self.waiting and not endless):
            await asyncio.sleep(0.01)

    @property
    def cut_off(self) -> bool:
        """Whether the database was away for longer than one waits, or the queue keeps nothing."""
        return isinstance(self.asker.fault, DatabaseGone | QueueFull)

    def sweep(self) -> None:
        """Queue again what dead processes were at, and what an outage made nobody's."""
        looked, running = time.monotonic(), set(self.running)
        rows = self.dispatch.active()
        mine = [row for row in rows if row.executor_id == self.name]
        # What is carried out here before and after that look was so when it was made.
        doubtful = running & self.running - {row.workflow_id for row in mine}
        if self.dispatch.goes_on(doubtful):
            self.ousted = True
            self.stop(Leaving("others took this process for dead, and go on with its work"))
            return
        self.turn.settle(looked)
        others = {row.executor_id or "" for row in rows}
        others |= self._leases.holders() if self._leases is not None else set()
        dead = self.turn.dead(others - {self.name})
        if self._leases is not None:
            self._leases.gone = dead
        lost = [row for row in rows if row.executor_id in dead]
        # One that has just begun or ended looks idle too: many times in a row it is not by chance.
        self._idle = {
            row.workflow_id: self._idle.get(row.workflow_id, 0) + 1
            for row in mine
            if row.workflow_id not in self.running
        }
        idle = [row for row in mine if self._idle.get(row.workflow_id, 0) > IDLE]
        if idle and self.store.database.file is not None:  # no outage: its end could not be kept
            where = self.store.database.shown
            self.stop(
                QueueFull(f"the queue beside {where} keeps nothing: database or disk is full")
            )
            return
        self.dispatch.again(lost + idle)

    @contextlib.contextmanager
    def job(self, kept: dict[str, Any], id: str) -> Iterator["Job"]:
        """A workflow that is carried out here; what it raises is how it ended."""
        order = WorkOrder.of(kept)
        job = Job(self, order, id)
        self.running.add(id)
        try:
            with self.store.database.plainly():  # the queue's faults, too
                job.open()
                yield job
        except Exception as fault:  # a workflow never raises: DBOS would keep the error for ever
            job.fault = job.fault or fault
            if end_of(fault) == "failed" and not isinstance(fault, Leaving):
                self.asker.hold(order.run, fault)  # its other shards end too

    def pipeline(self, order: WorkOrder, id: str) -> Pipeline:
        """What a run does, kept at hand for its further shards."""
        key = parent(id)
        if key not in self._pipelines:
            run = self.store.runs.find_run(order.run, order.tag)
            asker: Answering = self.offline if order.offline else self.asker
            self._pipelines[key] = Pipeline(
                self.store, asker, run, order.workflows, order.only_failed
            )
            while len(self._pipelines) > REMEMBERED:
                self._pipelines.popitem(last=False)
        self._pipelines.move_to_end(key)
        return self._pipelines[key]

    # --- what people wish ------------------------------------------------------------------------

    def hear(self, run_id: int, *, anew: bool) -> None:
        """Know how a run stands, and keep listening; a run that begins is looked at anew."""
        if anew or run_id not in self._known:
            self._known.add(run_id)
            latest = self.store.events.latest(run_id)
            if latest is not None:
                self._heed(latest)

    async def _listen(self) -> None:
        while True:
            await asyncio.sleep(LISTEN)
            with contextlib.suppress(DatabaseGone):
                known = set(self._known)
                for event in await asyncio.to_thread(self.store.events.since, self._heard, known):
                    self._heard = event.id
                    self._heed(event)

    def _heed(self, event: Event) -> None:
        match event.kind:
            case "paused":
                self.asker.hold(event.run_id, Paused(event.said or "paused"))
            case "cancelled":
                self.asker.hold(event.run_id, Cancelled(event.said or "cancelled"))
            case "started":
                self.asker.release(event.run_id)
            case "retuned":
                self.asker.retune(event.detail)

    def stop(self, fault: JudgeGymError) -> None:
        """Begin no further call; those in flight are awaited and recorded."""
        for asker in (self.asker, self.offline):
            asker.stop(fault)


class Job:
    """A run, or a shard of one, in the hands of this process."""

    def __init__(self, executor: Executor, order: WorkOrder, id: str) -> None:
        self.order = order
        self.id = id
        self.fault: Exception | None = None
        live = executor.tallies.setdefault(order.run, RunProgress())
        self._tally = live.part()
        self._total = Outcome()
        self._executor = executor

    @property
    def is_run(self) -> bool:
        """Whether it is the whole run."""
        return parent(self.id) == self.id

    def open(self) -> None:
        """Find what is to be done; refuse it where people wish it."""
        self._executor.hear(self.order.run, anew=self.is_run)
        self._pipeline = self._executor.pipeline(self.order, self.id)
        if self.is_run:
            self._pipeline.announce(self._executor.tallies[self.order.run])

    def does(self, workflow: Workflow) -> bool:
        """Whether a workflow is to be looked at: others may need what it made."""
        if workflow == "evidence":
            return bool(set(self.order.workflows) - {"rubric"})
        return workflow in self.order.workflows

    def shards(self, workflow: Workflow) -> list[Shard]:
        """What is missing of a workflow."""
        return self._pipeline.shards(workflow, self._tally)

    def alone(self, shards: Collection[Shard]) -> bool:
        """Whether the run does its shards itself: there is one, or nobody is to be asked."""
        return len(shards) <= 1 or self.order.offline

    async def perform(self, workflow: Workflow, shard: Shard) -> None:
        """Carry out a shard, with patience for a database server that is away."""
        for wait in (*OUTAGE, None):
            try:
                return await self._pipeline.perform(workflow, shard, self._tally)
            except DatabaseGone:
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    async def rubrics(self, workflow: Workflow) -> None:
        """Have the rubrics written that a workflow scores under."""
        wanted = {"rubric", "score"} if workflow == "rubric" else {"swap"}
        if wanted & set(self.order.workflows):
            await self._pipeline.rubrics(workflow, self._tally)
            self.after(workflow)

    @contextlib.contextmanager
    def waits(self) -> Iterator[None]:
        """It waits for its shards; a process that ends does not wait with it."""
        self._executor.waiting.add(self.id)
        try:
            yield
        finally:
            self._executor.waiting.discard(self.id)

    def add(self, id: str, part: Outcome) -> None:
        """Count a shard that has ended; the fault of one ends the run."""
        self._total.add(part)
        self.fault = self.fault or self._executor.faults.pop(id, None) or part.fault

    def drop_waiting(self, ids: Collection[str]) -> None:
        """Take shards off the queue that nobody has begun: the run is ending."""
        self._executor.dispatch.drop_waiting(ids)

    def after(self, workflow: Workflow) -> None:
        """The end of a workflow: the run stops here if a shard did, or if people wish it."""
        if workflow == "evidence":
            for warning in self._pipeline.unread_views():
                self._tally.warn(warning)
        if self.fault is not None:
            raise self.fault
        if self.order.pause_after == workflow:
            raise Paused(f"paused after {workflow}, as asked for")

    async def ended(self) -> Outcome:
        """How it ended; a run's end is an event, too."""
        self._executor.running.discard(self.id)
        if isinstance(self.fault, Leaving | DatabaseGone):
            await asyncio.Event().wait()  # for ever: it has not ended, others go on with it
        outcome = Outcome.of(self.fault, self._tally)
        self._total.add(outcome)
        self._total.end, self._total.said = outcome.end, outcome.said
        if self.fault is not None:
            self._executor.faults[self.id] = self.fault
        if self.is_run:
            with contextlib.suppress(StoreError):  # it has ended all the same
                self._say(self._total)
            self._executor.outcomes[self.id] = self._total
            self._executor.changed.set()
        return self._total

    def _say(self, outcome: Outcome) -> None:
        kinds = {"done": "ended", "run-over-budget": "over-budget", "stopped": "paused"}
        kind: Any = kinds.get(outcome.end, outcome.end)
        latest = self._executor.store.events.latest(self.order.run)
        if latest is None or latest.kind != kind:  # whoever paused it has said so
            self._executor.store.events.record([self.order.run], kind, outcome.said)
