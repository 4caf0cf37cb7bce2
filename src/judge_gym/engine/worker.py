"""Executes runs in this process: holds DBOS and the asker, and follows the events of runs."""

import asyncio
import contextlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from dbos._error import DBOSAwaitedWorkflowCancelledError

from judge_gym.engine.calls.ask import Asker, Models
from judge_gym.engine.calls.circuit_breaker import EndpointDown
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.offline import OfflineAsker
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.record import OUTAGE
from judge_gym.engine.capabilities import Capabilities
from judge_gym.engine.liveness import WorkerLock
from judge_gym.engine.orders import (
    ANALYSES,
    Cancelled,
    Outcome,
    Paused,
    PausedAsOrdered,
    ProcessEnding,
    WorkOrder,
    end_of,
    study_of,
)
from judge_gym.engine.queue import POLL, RUNS, SHARDS, RunQueue, parent, run_number
from judge_gym.engine.steps import Shard, StudyPipeline, shown_texts
from judge_gym.engine.suites import SuitePipeline
from judge_gym.errors import DatabaseFull, DatabaseGone, JudgeGymError, StoreError
from judge_gym.models.model_card import Limits
from judge_gym.store import Event, Kind, Store
from judge_gym.store.database import database_full
from judge_gym.suites import Interrupted

LISTEN = 0.5
"""Seconds between two queries of the events of runs."""
REPORT = 1.0
"""Seconds between two reports of the calls in flight."""
LOOK_AT_EVENTS = 5.0
"""Seconds between two looks of an idle process for runs to try again, and for its own end."""
SWEEP = 1.0
"""Seconds between two searches for the work of dead processes."""
ORPHANED = 10
"""Sweeps in a row that must find a workflow which this process started and does not execute."""
CACHED_RUNS = 64
"""Runs whose rows and texts are kept in memory."""
EVENTS = {"done": "ended", "run-over-budget": "over-budget", "stopped": "paused"}
"""The kind of event for an end, where it has another name."""

P = ParamSpec("P")
T = TypeVar("T")
Pipeline = StudyPipeline | SuitePipeline
"""The steps of one run, as one workflow executes them."""
OpenPipeline = Callable[[WorkOrder, RunProgress], Pipeline]
"""Opens the pipeline of one workflow."""
Analyze = Callable[[int, threading.Event], None]
"""Performs an analysis by its number, and raises Interrupted when the event is set."""


class Executor:
    """Executes queued runs in this process, which has one executor, as DBOS exists once.

    Given limits replace those of the registry; `progress` holds the live counters by run. A run
    that waits for an endpoint is tried again later, unless it is `awaited` by a command. Analyses
    are performed only where `analyze` is given.
    """

    def __init__(
        self,
        store: Store,
        models: Models,
        queue: RunQueue,
        lock: WorkerLock,
        limits: Limits,
        progress: dict[int, RunProgress],
        capabilities: Capabilities,
        awaited: Collection[int] = (),
        analyze: Analyze | None = None,
    ) -> None:
        self.name = lock.name
        self._awaited = awaited
        self.queue = queue
        self.progress = progress
        self.errors: dict[str, Exception] = {}
        """The errors that ended workflows here, with all their attributes, by workflow id."""
        self.outcomes: dict[str, Outcome] = {}
        """How runs ended here, by workflow id."""
        self.changed = asyncio.Event()
        """Set when a run has ended here."""
        self.failure: Exception | None = None
        """Why this process could not continue its work, such as a database that is full."""
        self.superseded = False
        """Whether others declared this process dead and took over its work, so that it restarts."""
        self._analyze = analyze
        self.served = [] if awaited else [RUNS, SHARDS, *([ANALYSES] if analyze else [])]
        """The queues that this process serves. Each is polled all the time, so a command begins
        with those of its own runs, and adds others when something waits in them."""
        self._store = store
        self._capabilities = capabilities
        self._sandboxes: dict[int, ThreadPoolExecutor] = {}
        """By their number of jobs: runs that are executed together share them."""
        self._stop_sandboxes = threading.Event()
        self._lock = lock
        self._leases, self._claims = store.leases(self.name), store.claims(self.name)
        self.asker = Asker(
            store.ledger,
            models,
            Meters(store, self._leases),
            limits=limits,
            leases=self._leases,
            claims=self._claims,
            confirmed=lock.confirmed,
        )
        self.offline = OfflineAsker(store.ledger, models)
        self._running: set[str] = set()
        self._awaiting_shards: set[str] = set()
        self._pipelines: OrderedDict[str, OpenPipeline] = OrderedDict()
        self._dbos: DBOS | None = None
        self._last_event = 0
        self._followed: dict[int, int] = {}
        """The last event of each run that was applied."""
        self._orphaned: dict[str, int] = {}
        self._look_at_events = 0.0
        self._abandoned = False
        """Whether the database is away while this process ends."""

    async def __aenter__(self) -> "Executor":
        self._last_event = self._store.events.last_id()
        register_workflows(self)
        self._serve_queues()
        try:
            self._dbos = DBOS(config=self.queue.config(self.name))
            DBOS.listen_queues(self.served)
            DBOS.launch()
        except Exception:
            DBOS.destroy(destroy_registry=True)
            raise
        self._listener = asyncio.create_task(self._follow_events())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.cancel()
        DBOS.destroy(destroy_registry=True)
        for sandboxes in self._sandboxes.values():
            sandboxes.shutdown(wait=False)
        # DBOS had made its threads those of the loop, and has ended them.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        with contextlib.suppress(DatabaseGone, DatabaseFull):  # then they lapse
            self._store.in_flight.report(self.name, {})
            if self._leases is not None and self._claims is not None:
                self._leases.release()
                self._claims.release_all()

    # --- the process -----------------------------------------------------------------------------

    async def work(self, until: Callable[[], Awaitable[bool]]) -> None:
        """Executes what is queued until a condition holds, or until it cannot go on; then leaves.

        Calls in flight are awaited and recorded, and what is unfinished is left to others.
        """
        try:
            await self._sweep_in_thread()
            while not self.superseded and not self.cut_off:
                self.changed.clear()
                if await until():
                    break
                try:
                    await asyncio.wait_for(self.changed.wait(), SWEEP)
                except TimeoutError:
                    await self._sweep_in_thread()
        except DatabaseFull as error:
            self.stop(error)
        self.failure = self.asker.error
        if isinstance(self.failure, DatabaseFull):
            await asyncio.to_thread(self._record_no_room, self.failure)
        self.stop(ProcessEnding("its process has ended"))
        # A run that others took over does not end here, nor does one whose database is away.
        endless = self.superseded or self.cut_off
        while self.asker.in_flight or (self._running - self._awaiting_shards and not endless):
            await asyncio.sleep(0.01)

    async def _sweep_in_thread(self) -> None:
        try:
            await asyncio.to_thread(self.sweep)
        except DatabaseGone:  # a process that ends does not wait for it
            self._abandoned = self.asker.error is not None

    @property
    def cut_off(self) -> bool:
        """Whether the database was away for too long, or has no room."""
        return self._abandoned or isinstance(self.asker.error, DatabaseGone | DatabaseFull)

    def _record_no_room(self, error: DatabaseFull) -> None:
        """Records why runs stopped, if there is room for that."""
        with contextlib.suppress(StoreError):
            for run, event in self._store.events.latest_by_run(self.progress.keys()).items():
                if event.kind == "started":
                    kind: Kind = "paused" if run in self._awaited else "waiting"
                    self._store.events.record([run], kind, error.message)

    def stop(self, error: JudgeGymError) -> None:
        """Begins no further call and ends sandboxes; calls in flight are awaited and recorded."""
        for asker in (self.asker, self.offline):
            asker.stop(error)
        self._stop_sandboxes.set()

    def has_work(self) -> bool:
        """Returns whether there is anything to execute, or a reason to end."""
        if self._running:
            return True
        if time.monotonic() >= self._look_at_events:
            self._look_at_events = time.monotonic() + LOOK_AT_EVENTS
            retries = self._store.events.retries()
            if self._is_forbidden() or any(e.detail["retry_at"] <= time.time() for e in retries):
                return True
        return self._capabilities.look(self.queue, self.served)[-1]

    def _is_forbidden(self) -> bool:
        """Whether the database was marked as production while this process was running."""
        database = self._store.database
        return database.profile != "prod" and database.read_profile() == "prod"

    def sweep(self) -> None:
        """Queues again the work of dead processes, and work that an outage left behind."""
        database = self._store.database
        if self._is_forbidden():
            # Calls in flight are still recorded, since the session's own mark is not read again.
            self.stop(
                ProcessEnding(
                    f"the database {database.display_url} was marked as production, and this "
                    "worker is not: start workers with --profile prod"
                )
            )
            return
        looked, running = time.monotonic(), set(self._running)
        rows = self.queue.executing()
        mine = [row for row in rows if row.executor_id == self.name]
        # What runs here both before and after the query did so when it was made.
        missing = running & self._running - {row.workflow_id for row in mine}
        if self.queue.any_active(missing):
            self.superseded = True
            self.stop(ProcessEnding("others declared this process dead and continue its work"))
            return
        self._lock.confirm(looked)
        others = {row.executor_id or "" for row in rows}
        if self._leases is not None and self._claims is not None:
            self._claims.release()
            others |= self._leases.holders() | self._claims.holders()
        others.discard(self.name)
        for name, seconds in self._lock.end_hung(others).items():
            runs = {run_number(row.workflow_id) for row in rows if row.executor_id == name}
            message = f"the worker {name} was silent for {seconds:.0f} s: others take up its work"
            self._store.events.record(runs, "taken-over", message)
        dead = self._lock.dead(others)
        if self._leases is not None and self._claims is not None:
            self._leases.dead = dead
            if dead:
                self._claims.release_all(dead)
        lost = [row for row in rows if row.executor_id in dead]
        # A workflow that has just started or ended looks like this, too, but not for long.
        self._orphaned = {
            row.workflow_id: self._orphaned.get(row.workflow_id, 0) + 1
            for row in mine
            if row.workflow_id not in self._running
        }
        orphaned = [row for row in mine if self._orphaned.get(row.workflow_id, 0) > ORPHANED]
        if orphaned and self._store.database.file is not None:  # its end was not recorded
            queue = self.queue.engine.url.render_as_string(hide_password=True)
            self.stop(database_full(queue, "the end of its work cannot be recorded"))
            return
        self.queue.requeue(lost + orphaned)
        for event in self._store.events.retries():
            if event.detail["retry_at"] <= time.time():
                self.queue.add_again(event.run_id)
        self._serve_queues()

    def _serve_queues(self) -> None:
        """Serves the queues whose work this process can execute, and reports why others wait."""
        able, reasons, _ = self._capabilities.look(self.queue, self.served)
        self.served += able
        if self._dbos is not None and self._dbos._listening_queues is not None:
            # DBOS reads this list again every second, but has no public way to extend it.
            self._dbos._listening_queues += able
        for run, event in self._store.events.latest_by_run(reasons.keys()).items():
            if event.kind == "started":
                message = f"the worker {self.name} cannot take it: {reasons[run]}"
                self._store.events.record([run], "waiting", message)

    # --- workflows -------------------------------------------------------------------------------

    async def execute(
        self,
        stored: dict[str, Any],
        id: str,
        work: Callable[[Pipeline], Awaitable[None]],
    ) -> dict[str, Any]:
        """Executes one workflow and returns its outcome as JSON.

        It never raises, since DBOS would keep the error forever.

        Args:
            stored: the order.
            id: of the workflow.
            work: what it does with the run's pipeline.
        """
        order, error = WorkOrder.from_json(stored), None
        progress = self.progress.setdefault(order.run, RunProgress()).part()

        async def begin() -> Pipeline:
            self._follow(order.run, again=parent(id) == id)
            if isinstance(held := self.asker.held(order.run), Paused | Cancelled):
                raise held  # even where others have paid for all its answers
            return self._pipeline(order, id, progress)

        async with self._executing(id):
            try:
                with self._store.database.plain_errors():  # the queue's errors, too
                    await work(await self.outlast_outage(begin))
            except (ProcessEnding, DatabaseGone, DatabaseFull):
                raise
            except Exception as raised:  # whatever it is, it becomes the outcome of the run
                error = raised
                if end_of(error) == "failed":
                    self.asker.hold(order.run, error)  # its other shards end, too
            outcome = Outcome.of(error, progress)
            if error is not None:
                self.errors[id] = error
            if parent(id) == id:
                try:
                    await self.outlast_in_thread(self._record_end, order, outcome, error)
                except (DatabaseGone, DatabaseFull):
                    raise
                except StoreError:
                    pass  # it has ended all the same
                self.outcomes[id] = outcome
                self.changed.set()
            return asdict(outcome)

    async def analyze(self, number: int, id: str) -> None:
        """Performs an analysis in a thread; others continue it if this process ends first."""
        assert self._analyze is not None
        async with self._executing(id):
            with self.awaiting_shards(id):
                await self.outlast_in_thread(self._analyze, number, self._stop_sandboxes)

    @contextlib.asynccontextmanager
    async def _executing(self, id: str) -> AsyncIterator[None]:
        """Marks a workflow as executed here; one that an outage stopped is left to be continued."""
        self._running.add(id)
        try:
            yield
            return
        except (ProcessEnding, Interrupted, DatabaseGone):
            pass
        except DatabaseFull as error:
            self.stop(error)
            self.changed.set()
        finally:  # also where DBOS cancels it, which is no Exception
            self._running.discard(id)
        if self.asker.error is not None:
            await asyncio.Event().wait()  # forever: a process that ends takes no further work
        raise asyncio.CancelledError  # DBOS records no end of it, and counts it no longer

    def _pipeline(self, order: WorkOrder, id: str, progress: RunProgress) -> Pipeline:
        """Returns the pipeline of a run; its rows and texts are read once for all its shards."""
        key = parent(id)
        if key not in self._pipelines:
            open_pipeline = self._open_study if order.suite is None else self._open_suite
            self._pipelines[key] = open_pipeline(order)
            while len(self._pipelines) > CACHED_RUNS:
                self._pipelines.popitem(last=False)
        self._pipelines.move_to_end(key)
        return self._pipelines[key](order, progress)

    def _open_study(self, order: WorkOrder) -> OpenPipeline:
        run = self._store.runs.find(order.run, order.tag)
        asker = self.offline if order.offline else self.asker
        texts = cache(partial(shown_texts, self._store, run))
        return partial(StudyPipeline, self._store, asker, run, texts)

    def _open_suite(self, order: WorkOrder) -> OpenPipeline:
        assert order.suite is not None
        run = self._store.suites.find_run(-order.run)
        suite, sandbox = self._capabilities.suites.find(run, order.suite)
        jobs = order.suite.jobs
        if jobs not in self._sandboxes:
            self._sandboxes[jobs] = ThreadPoolExecutor(jobs, "sandbox")
        stoppable = replace(sandbox, stop=self._stop_sandboxes)
        return partial(
            SuitePipeline, self._store, self.asker, run, suite, stoppable, self._sandboxes[jobs]
        )

    async def perform(self, pipeline: Pipeline, step: str, shard: Shard) -> None:
        """Performs a shard, and again after an outage of the database server."""
        await self.outlast_outage(partial(pipeline.perform, step, shard))

    async def outlast_outage(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Attempts something again after an outage of the database server, or lastly raises it."""
        for wait in OUTAGE:
            try:
                return await attempt()
            except DatabaseGone:
                if self.asker.error is not None:  # a process that ends does not wait
                    raise
                await asyncio.sleep(wait)
        return await attempt()

    async def outlast_in_thread(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Calls a function in a thread, and again after an outage of the database server."""
        return await self.outlast_outage(partial(asyncio.to_thread, function, *args, **kwargs))

    @contextlib.contextmanager
    def awaiting_shards(self, id: str) -> Iterator[None]:
        """Marks a run that only waits for its shards: a process that ends does not wait for it."""
        self._awaiting_shards.add(id)
        try:
            yield
        finally:
            self._awaiting_shards.discard(id)

    def _record_end(self, order: WorkOrder, outcome: Outcome, error: Exception | None) -> None:
        kind: Any = EVENTS.get(outcome.end, outcome.end)
        detail: dict[str, Any] = {}
        if isinstance(error, EndpointDown):
            if order.run in self._awaited or error.trial is None:
                outcome.message = f"{error.message}, the same command continues"
            else:
                retry_at = datetime.now(UTC) + timedelta(seconds=error.trial["wait"])
                outcome.message = f"{error.message}; retrying at {retry_at:%H:%M:%S} UTC"
                detail = {**error.trial, "retry_at": retry_at.timestamp()}
        latest = self._store.events.latest(order.run)
        paused = isinstance(error, Paused) and not isinstance(error, PausedAsOrdered)
        if paused and latest is not None and latest.kind == "started":
            # A command continued the run while its last calls ended: a worker queues it again.
            kind, detail = "waiting", {"retry_at": time.time()}
            outcome.message = "continues as soon as its last calls have ended"
        if latest is not None and latest.kind in (kind, "paused", "cancelled"):
            return  # the command that pauses records it, and only a command continues
        if kind == "over-budget":
            if order.suite is not None:
                study = study_of(self._store.suites.find_run(-order.run).suite)
            else:
                _, study = self._store.experiments.find(order.tag)
            detail = {"budget": dict(self._store.studies.budget(study))}
        message = outcome.message or ("all that was asked is done" if kind == "ended" else "")
        self._store.events.record([order.run], kind, message, detail)

    # --- events ----------------------------------------------------------------------------------

    def _follow(self, run_id: int, *, again: bool) -> None:
        """Applies the latest event of a run and the budgets as they are, and later events."""
        self.asker.reload_budgets()
        if again or run_id not in self._followed or self.asker.stopped(run_id):
            latest = self._store.events.latest(run_id)
            if latest is not None and latest.kind == "waiting":
                # For a process like this one, or for an endpoint that is tried again now.
                detail = {"trial": latest.detail} if "endpoint" in latest.detail else {}
                message = f"taken up by {self.name}"
                self._store.events.record([run_id], "started", message, detail)
                latest = self._store.events.latest(run_id)
            self._followed.setdefault(run_id, 0)
            if latest is not None:
                self._apply(latest)

    async def _follow_events(self) -> None:
        reported, due = Counter[tuple[str, str]](), 0.0
        while True:
            await asyncio.sleep(LISTEN)
            try:
                calls = +self.asker.begun
                if (calls or reported) and time.monotonic() >= due:
                    reported, due = calls, time.monotonic() + REPORT
                    await asyncio.to_thread(self._store.in_flight.report, self.name, calls)
                since, runs = self._last_event, set(self._followed)
                for event in await asyncio.to_thread(self._store.events.since, since, runs):
                    self._last_event = event.id
                    self._apply(event)
            except DatabaseGone:
                continue
            except DatabaseFull as error:
                self.stop(error)

    def _apply(self, event: Event) -> None:
        """Applies an event of a run, unless it or a later one was applied already."""
        if event.id <= self._followed[event.run_id]:
            return
        self._followed[event.run_id] = event.id
        match event.kind:
            case "paused":
                self.asker.hold(event.run_id, Paused(event.message or "paused"))
            case "cancelled":
                self.asker.hold(event.run_id, Cancelled(event.message or "cancelled"))
            case "started":
                self.asker.release(event.run_id, event.detail.get("trial"))
            case "retuned":
                self.asker.retune(event.detail)


def register_workflows(executor: Executor) -> None:
    """Registers the durable workflows with DBOS, which finds them by name, for one executor.

    They carry only names and numbers. The lab's rows and the ledger show what is missing, so that
    executing one again neither asks nor writes anything twice. DBOS exists once per process, and so
    does the executor that these functions close over.
    """

    @DBOS.workflow(name="run", max_recovery_attempts=None)
    async def run(order: dict[str, Any]) -> dict[str, Any]:
        """Executes a run: evidence, rubric, scoring, rubric swap, probe; or a suite's evals."""

        async def every_step(pipeline: Pipeline) -> None:
            await executor.outlast_in_thread(pipeline.announce)
            for step in pipeline.steps:
                missing = await executor.outlast_in_thread(pipeline.shards, step)
                # A step of DBOS, so that after a crash the same shards are awaited, whatever is
                # missing by then. It cannot fail: DBOS would keep the error forever.
                shards = await DBOS.run_step_async({"name": f"plan {step}"}, list, missing)
                if len(shards) <= 1 or pipeline.order.offline:
                    for shard in shards:
                        await executor.perform(pipeline, step, shard)
                else:
                    await spread(pipeline, step, shards)
                await executor.outlast_in_thread(pipeline.finish, step)

        return await executor.execute(order, str(DBOS.workflow_id), every_step)

    async def spread(pipeline: Pipeline, step: str, shards: Sequence[Shard]) -> None:
        """Queues the shards of a step for any process, and waits until all have ended."""
        id, handles = str(DBOS.workflow_id), []
        _, queue = pipeline.order.queues
        for number, shard in enumerate(shards):
            study = SetEnqueueOptions(queue_partition_key=pipeline.order.study)
            with SetWorkflowID(f"{id}/{step}/{number}"), study:
                order = pipeline.order.to_json()
                handles.append(
                    await DBOS.enqueue_workflow_async(queue, run_shard, order, step, shard)
                )
        error: Exception | None = None
        with executor.awaiting_shards(id):
            for handle in handles:
                try:
                    outcome = Outcome(**await handle.get_result(polling_interval_sec=POLL))
                except DBOSAwaitedWorkflowCancelledError:
                    continue  # it was taken off the queue, because another one ended early
                outcome.add_to(pipeline.progress)
                error = error or executor.errors.pop(handle.workflow_id, None) or outcome.error
                if error is not None:
                    executor.queue.drop_waiting([other.workflow_id for other in handles])
        if error is not None:
            raise error

    @DBOS.workflow(name="analysis", max_recovery_attempts=None)
    async def analysis(number: int) -> None:
        """Performs an analysis of a suite run, whose judges are runs like any others."""
        await executor.analyze(number, str(DBOS.workflow_id))

    @DBOS.workflow(name="shard", max_recovery_attempts=None)
    async def run_shard(order: dict[str, Any], step: str, shard: Shard) -> dict[str, Any]:
        """Executes a part of one step of a run."""

        async def one_shard(pipeline: Pipeline) -> None:
            await executor.perform(pipeline, step, shard)

        return await executor.execute(order, str(DBOS.workflow_id), one_shard)
