"""The process that executes what is queued: for one command, or as a worker until it is stopped."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from dbos import DBOS

from judge_gym.engine.calls.ask import Asker, Models
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.offline import OfflineAsker
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.record import OUTAGE
from judge_gym.engine.capabilities import Capabilities
from judge_gym.engine.controls import Controls
from judge_gym.engine.interrupts import first_interrupt
from judge_gym.engine.liveness import DeclaredDead, Sweeper, WorkerLock, worker_lock
from judge_gym.engine.orders import ANALYSES, ProcessEnding
from judge_gym.engine.queue import RUNS, SHARDS, RunQueue, serve_more_queues
from judge_gym.engine.workflow import Analyze, Workflows
from judge_gym.errors import DatabaseFull, DatabaseGone, JudgeGymError, StoreError
from judge_gym.models.model_card import Limits
from judge_gym.store import Kind, Store

LOOK_AT_EVENTS = 5.0
"""Seconds between two looks of an idle process for runs to try again, and for its own end."""
SWEEP = 1.0
"""Seconds between two searches for the work of dead processes."""
SWEEP_FILE = 3.0
"""Seconds between them in a file, where no other process can die: what is found there is work that
was queued meanwhile, or is to be tried again."""
LOOK = 1.0
"""Seconds between two looks of an idle worker for work."""
LINGER = 5.0
"""Seconds without work after which a worker is idle."""


class Worker:
    """Executes queued runs in this process, which has one worker, as DBOS exists once.

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
        *,
        awaited: Collection[int] = (),
        analyze: Analyze | None = None,
    ) -> None:
        self.name = lock.name
        self.failure: Exception | None = None
        """Why this process could not continue its work, such as a database that is full."""
        self.declared_dead = False
        """Whether others took over its work, so that it is to begin again under another name."""
        self._store = store
        self._queue = queue
        self._progress = progress
        self._capabilities = capabilities
        self._awaited = awaited
        self._served = [] if awaited else [RUNS, SHARDS, *([ANALYSES] if analyze else [])]
        """The queues that this process serves. Each is polled all the time, so a command begins
        with those of its own runs, and adds others when something waits in them."""
        self._dbos: DBOS | None = None
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
        self._controls = Controls(store, self.asker, self.name)
        self.workflows = Workflows(
            store,
            queue,
            self.asker,
            self._controls,
            capabilities.suites,
            progress,
            offline=self.offline,
            awaited=awaited,
            analyze=analyze,
        )
        running = self.workflows.running
        self._sweeper = Sweeper(store, queue, lock, running, self._leases, self._claims)
        self._look_at_events = 0.0
        self._next_sweep = 0.0
        self._is_ending = False
        self._abandoned = False
        """Whether the database is away while this process ends."""

    async def __aenter__(self) -> "Worker":
        self._controls.start()
        self.workflows.register()
        self._serve_queues()
        try:
            self._dbos = DBOS(config=self._queue.config(self.name))
            # Without this it would take work whose models or suites this machine lacks.
            DBOS.listen_queues(self._served)
            DBOS.launch()
        except Exception:
            # The process may try again, and DBOS exists once: half of one would refuse the next.
            DBOS.destroy(destroy_registry=True)
            raise
        self._listener = asyncio.create_task(self._controls.listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        # In this order: no event is applied to workflows that are being ended.
        self._listener.cancel()
        DBOS.destroy(destroy_registry=True)
        self.workflows.close()
        # DBOS had made its threads those of the loop, and has ended them.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        with contextlib.suppress(DatabaseGone, DatabaseFull):  # then they lapse
            self._store.in_flight.report(self.name, {})
            if self._leases is not None and self._claims is not None:
                self._leases.release()
                self._claims.release_all()

    async def work(self, until: Callable[[], Awaitable[bool]]) -> None:
        """Executes what is queued until a condition holds, or until it cannot go on; then leaves.

        Calls in flight are awaited and recorded, and what is unfinished is left to others.
        """
        ended = self.workflows.ended
        try:
            await self._sweep_in_thread()
            while not (self._is_ending or self.database_lost):
                # Before the condition is checked: a run that ends during the check sets it again.
                ended.clear()
                if await until():
                    break
                try:
                    await asyncio.wait_for(ended.wait(), SWEEP)
                except TimeoutError:
                    if time.monotonic() >= self._next_sweep:
                        await self._sweep_in_thread()
        except DatabaseFull as error:
            self.stop(error)
        self.failure = self.asker.error
        if isinstance(self.failure, DatabaseFull):
            await asyncio.to_thread(self._record_no_room, self.failure)
        # Only the first reason counts: after a Ctrl-C or an error this changes nothing.
        self.stop(ProcessEnding("its process has ended"))
        # A run that others took over does not end here, nor does one whose database is away.
        endless = self.declared_dead or self.database_lost
        running, waiting = self.workflows.running, self.workflows.awaiting_shards
        while self.asker.in_flight or (running - waiting and not endless):
            await asyncio.sleep(0.01)

    def stop(self, error: JudgeGymError) -> None:
        """Begins no further call and ends sandboxes; calls in flight are awaited and recorded."""
        self.workflows.stop(error)

    @property
    def database_lost(self) -> bool:
        """Whether the database was away for too long, or has no room."""
        return self._abandoned or isinstance(self.asker.error, DatabaseGone | DatabaseFull)

    def has_work(self) -> bool:
        """Returns whether there is anything to execute, or a reason to end."""
        if self.workflows.running:
            return True
        if time.monotonic() >= self._look_at_events:
            self._look_at_events = time.monotonic() + LOOK_AT_EVENTS
            retries = self._store.events.retries()
            due = any(event.detail["retry_at"] <= time.time() for event in retries)
            if due or self._is_forbidden():
                return True
        return self._capabilities.look(self._queue, self._served)[-1]

    # --- every second ----------------------------------------------------------------------------

    async def _sweep_in_thread(self) -> None:
        on_file = self._store.database.file is not None
        self._next_sweep = time.monotonic() + (SWEEP_FILE if on_file else SWEEP)
        try:
            await asyncio.to_thread(self._sweep)
        except DatabaseGone:  # a process that ends does not wait for it
            self._abandoned = self.asker.error is not None
        except ProcessEnding as error:
            self.declared_dead = isinstance(error, DeclaredDead)
            self._is_ending = True
            self.stop(error)

    def _sweep(self) -> None:
        """Takes over from dead processes, and queues runs again whose endpoint is to be tried."""
        if self._is_forbidden():
            # Calls in flight are still recorded, since the session's own mark is not read again.
            raise ProcessEnding(
                f"the database {self._store.database.display_url} was marked as production, and "
                "this worker is not: start workers with --profile prod"
            )
        self._sweeper.sweep()
        for event in self._store.events.retries():
            if event.detail["retry_at"] <= time.time():
                self._queue.add_again(event.run_id)
        self._serve_queues()

    def _serve_queues(self) -> None:
        """Serves the queues whose work this process can execute, and reports why others wait."""
        able, reasons, _ = self._capabilities.look(self._queue, self._served)
        self._served += able
        if self._dbos is not None:
            serve_more_queues(self._dbos, able)
        for run, event in self._store.events.latest_by_run(reasons.keys()).items():
            if event.kind == "started":
                message = f"the worker {self.name} cannot take it: {reasons[run]}"
                self._store.events.record([run], "waiting", message)

    def _is_forbidden(self) -> bool:
        """Whether the database was marked as production while this process was running."""
        database = self._store.database
        return database.profile != "prod" and database.read_profile() == "prod"

    def _record_no_room(self, error: DatabaseFull) -> None:
        """Records why runs stopped, if there is room for that."""
        with contextlib.suppress(StoreError):
            for run, event in self._store.events.latest_by_run(self._progress.keys()).items():
                if event.kind == "started":
                    kind: Kind = "paused" if run in self._awaited else "waiting"
                    self._store.events.record([run], kind, error.message)


async def serve(
    store: Store,
    models: Models,
    queue: RunQueue,
    limits: Limits,
    progress: dict[int, RunProgress],
    capabilities: Capabilities,
    *,
    until_idle: bool,
    on_start: Callable[[str], None],
    analyze: Analyze | None = None,
) -> None:
    """Executes what is queued until it is interrupted, or with `until_idle` until nothing is left.

    It fills `progress`, calls `on_start` with the worker's name when it is ready, and performs
    analyses by `analyze`. DBOS polls each queue several times a second, so that it runs only while
    there is work; otherwise the worker looks for work once a second.
    """
    interrupted = asyncio.Event()
    worker: Worker | None = None
    last_work = 0.0

    def interrupt() -> None:
        interrupted.set()
        for run in progress.values():
            run.ending = True
        if worker is not None:
            worker.workflows.ended.set()

    async def over() -> bool:
        nonlocal last_work
        assert worker is not None
        if interrupted.is_set() or worker.asker.error is not None:
            return True
        with suppress(DatabaseGone):
            if await asyncio.to_thread(worker.has_work):
                last_work = time.monotonic()
            elif until_idle:
                return not store.events.retries()
            return time.monotonic() > last_work + LINGER
        return False

    async def serve_under(lock: WorkerLock) -> bool:
        """Executes work as it arrives, and returns whether to continue under another name."""
        nonlocal worker, last_work
        while not interrupted.is_set():
            worker = Worker(
                store, models, queue, lock, limits, progress, capabilities, analyze=analyze
            )
            if not (until_idle or await _work_arrives(worker, interrupted)):
                break
            last_work = time.monotonic()
            async with worker:
                await worker.work(over)
            if worker.declared_dead:
                return True
            if worker.failure is not None:
                raise worker.failure
            if until_idle:
                break
        return False

    declared_dead = True
    try:
        with first_interrupt(interrupt):
            while declared_dead and not interrupted.is_set():
                # A new lock has a new name: under the old one others have taken over the work.
                with worker_lock(store.database, queue.protocol) as lock:
                    on_start(lock.name)
                    declared_dead = await serve_under(lock)
    except asyncio.CancelledError:
        if not interrupted.is_set():
            raise
        # The second Ctrl-C: the next worker finds what is left.


async def _work_arrives(worker: Worker, interrupted: asyncio.Event) -> bool:
    """Returns True when there is work, and False when the worker is interrupted before.

    Raises:
        DatabaseGone: the database was away for longer than a worker with work waits for it.
    """
    answered = time.monotonic()
    while not interrupted.is_set():
        try:
            if await asyncio.to_thread(worker.has_work):
                return True
            answered = time.monotonic()
        except DatabaseGone:
            if time.monotonic() > answered + sum(OUTAGE):
                raise
        with suppress(TimeoutError):
            await asyncio.wait_for(interrupted.wait(), LOOK)
    return False
