"""The story of a run, top to bottom.

A run is loaded and announced. For each of its steps, what is missing is divided into shards; each
shard is asked about, read and saved, here or in any process that serves the queue; and the run's
end becomes an event. DBOS keeps which workflow was begun where. What is done shows in the lab's
rows and the ledger alone, so that executing a workflow again neither asks nor writes twice.
"""

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from dbos import error as dbos_errors

from judge_gym.engine.calls.ask import Asker
from judge_gym.engine.calls.circuit_breaker import EndpointDown
from judge_gym.engine.calls.offline import OfflineAsker
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.record import OUTAGE
from judge_gym.engine.controls import Controls
from judge_gym.engine.orders import (
    Outcome,
    Paused,
    PausedAsOrdered,
    ProcessEnding,
    WorkOrder,
    end_of,
    parent,
    study_of,
)
from judge_gym.engine.queue import POLL, RunQueue, shards_at_once
from judge_gym.engine.steps import Questions, Shard, StudySteps, shown_texts
from judge_gym.engine.suites import SuiteFinder, SuiteSteps
from judge_gym.errors import DatabaseFull, DatabaseGone, StoreError
from judge_gym.records import Rubric
from judge_gym.stages import RubricTarget
from judge_gym.stages.rubric import ASKS
from judge_gym.store import Store
from judge_gym.suites import Interrupted

CACHED_RUNS = 64
"""Runs whose rows and texts are kept in memory."""
EVENTS = {"done": "ended", "run-over-budget": "over-budget", "stopped": "paused"}
"""The kind of event for an end, where it has another name."""

P = ParamSpec("P")
T = TypeVar("T")
Steps = StudySteps | SuiteSteps
"""The steps of one run, as one workflow executes them."""
OpenSteps = Callable[[WorkOrder, RunProgress], Steps]
"""Opens the steps of a run for one workflow."""
Analyze = Callable[[int, threading.Event], None]
"""Performs an analysis by its number, and raises Interrupted when the event is set."""


class Workflows:
    """The workflows that this process executes.

    A run that waits for an endpoint is tried again later, unless it is `awaited` by a command.
    Analyses are performed only where `analyze` is given.
    """

    def __init__(
        self,
        store: Store,
        queue: RunQueue,
        asker: Asker,
        controls: Controls,
        suites: SuiteFinder,
        progress: dict[int, RunProgress],
        *,
        offline: OfflineAsker,
        awaited: Collection[int] = (),
        analyze: Analyze | None = None,
    ) -> None:
        self._store = store
        self._queue = queue
        self._asker = asker
        self._offline = offline
        self._controls = controls
        self._suites = suites
        self._progress = progress
        self._awaited = awaited
        self._analyze = analyze
        self.running: set[str] = set()
        """The ids of the workflows that are executed here."""
        self.awaiting_shards: set[str] = set()
        """Of these, runs that only wait: a process that ends does not wait for them."""
        self.outcomes: dict[str, Outcome] = {}
        """How runs ended here, by workflow id."""
        self.errors: dict[str, Exception] = {}
        """The errors that ended workflows here, with all their attributes, by workflow id."""
        self.ended = asyncio.Event()
        """Set when a run has ended here."""
        # Nobody else can work on a file while this process holds its lock, so that a shard need not
        # pass through the queue, where it would be written, polled for and waited for.
        self._alone = store.database.file is not None
        self._places: dict[tuple[str, str], asyncio.Semaphore] = {}
        """The places of shards that are executed here at once, by queue and study."""
        self._opened: OrderedDict[str, OpenSteps] = OrderedDict()
        self._sandboxes: dict[int, ThreadPoolExecutor] = {}
        """By their number of jobs: runs that are executed together share them."""
        self._stop_sandboxes = threading.Event()

    def stop(self, error: Exception) -> None:
        """Begins no further call and ends sandboxes; calls in flight are awaited and recorded."""
        self._asker.stop(error)
        self._offline.stop(error)
        self._stop_sandboxes.set()

    def close(self) -> None:
        """Releases the threads of sandboxes."""
        for sandboxes in self._sandboxes.values():
            sandboxes.shutdown(wait=False)

    def register(self) -> None:
        """Registers the workflows with DBOS, which finds them by name.

        Their arguments are stored in the queue: names and numbers only. DBOS exists once per
        process, and so do the workflows that these functions close over.
        """

        @DBOS.workflow(name="run", max_recovery_attempts=None)
        async def run(order: dict[str, Any]) -> dict[str, Any]:
            return await self._execute(order, str(DBOS.workflow_id), self._every_step)

        @DBOS.workflow(name="shard", max_recovery_attempts=None)
        async def shard(order: dict[str, Any], step: str, shard: Shard) -> dict[str, Any]:
            async def one_shard(steps: Steps) -> None:
                await self._retry_while_down(partial(perform, steps, step, shard))

            return await self._execute(order, str(DBOS.workflow_id), one_shard)

        @DBOS.workflow(name="analysis", max_recovery_attempts=None)
        async def analysis(number: int) -> None:
            await self._perform_analysis(number, str(DBOS.workflow_id))

        self._shard_workflow = shard

    # --- the story -------------------------------------------------------------------------------

    async def _execute(
        self, stored: dict[str, Any], id: str, work: Callable[[Steps], Awaitable[None]]
    ) -> dict[str, Any]:
        """Loads a run, does some work on it, and returns the outcome as JSON.

        Every error becomes an outcome, since DBOS would keep a raised one forever; only where this
        process cannot continue, the workflow is left to others.
        """
        order, error = WorkOrder.from_json(stored), None
        progress = self._progress.setdefault(order.run, RunProgress()).part()
        async with self._executing(id):
            try:
                with self._store.database.plain_errors():  # the queue's errors, too
                    await work(
                        await self._retry_while_down(partial(self._load, order, id, progress))
                    )
            except (ProcessEnding, DatabaseGone, DatabaseFull):
                raise
            except Exception as raised:  # whatever it is, it becomes the outcome of the run
                error = raised
                if end_of(error) == "failed":
                    self._asker.hold(order.run, error)  # its other shards end, too
            outcome = Outcome.of(error, progress)
            if error is not None:
                self.errors[id] = error
            # Only the run itself records an end: a shard is a part of it, and its error becomes the
            # run's.
            if parent(id) == id:
                await self._finish(order, id, outcome, error)
            return asdict(outcome)

    async def _load(self, order: WorkOrder, id: str, progress: RunProgress) -> Steps:
        """Returns the steps of a run; its rows and texts are read once for all its shards."""
        # The shards of a run share what was read for it; what they count is theirs.
        key = parent(id)
        # Before anything is read: a pause that was recorded while this was queued ends it here.
        self._controls.take_up(order.run, again=key == id)
        if key not in self._opened:
            open_steps = self._open_study if order.suite is None else self._open_suite
            self._opened[key] = open_steps(order)
            while len(self._opened) > CACHED_RUNS:
                self._opened.popitem(last=False)
        self._opened.move_to_end(key)
        return self._opened[key](order, progress)

    async def _every_step(self, steps: Steps) -> None:
        """Executes a run: evidence, rubric, scoring, rubric swap, probe; or a suite's evals."""
        await self._in_thread(steps.announce)
        for step in steps.names:
            missing = await self._in_thread(steps.shards, step)
            # A step of DBOS, so that after a crash the same shards are awaited, whatever is
            # missing by then. It cannot fail: DBOS would keep the error forever.
            shards = await DBOS.run_step_async({"name": f"plan {step}"}, list, missing)
            if len(shards) <= 1 or steps.order.offline:
                for shard in shards:
                    await self._retry_while_down(partial(perform, steps, step, shard))
            elif self._alone:
                await self._perform_here(steps, step, shards)
            else:
                await self._spread(steps, step, shards)
            await self._in_thread(steps.finish, step)

    async def _perform_here(self, steps: Steps, step: str, shards: Sequence[Shard]) -> None:
        """Executes the shards of a step in this process, a few at once, until all have ended.

        As on the queue, a shard that has begun ends by itself, also where another one fails: its
        calls in flight are paid for. Those that have not begun by then never do.
        """
        order, failed = steps.order, False
        places = self._places_of(order)

        async def perform_in_turn(shard: Shard) -> None:
            nonlocal failed
            async with places:
                if failed:
                    return
                try:
                    await self._retry_while_down(partial(perform, steps, step, shard))
                except Exception as error:
                    failed = True
                    if end_of(error) == "failed":
                        self._asker.hold(order.run, error)  # its other shards end, too
                    raise

        ends = await asyncio.gather(*map(perform_in_turn, shards), return_exceptions=True)
        for error in ends:
            if error is not None:
                raise error

    def _places_of(self, order: WorkOrder) -> asyncio.Semaphore:
        """Returns the places that the shards of a study share, as many as its queue would give."""
        key = order.queues[1], order.study
        if key not in self._places:
            self._places[key] = asyncio.Semaphore(shards_at_once(of_suite=order.suite is not None))
        return self._places[key]

    async def _spread(self, steps: Steps, step: str, shards: Sequence[Shard]) -> None:
        """Queues the shards of a step for any process, and waits until all have ended."""
        id, handles = str(DBOS.workflow_id), []
        order, (_, queue) = steps.order, steps.order.queues
        for number, shard in enumerate(shards):
            study = SetEnqueueOptions(queue_partition_key=order.study)
            with SetWorkflowID(f"{id}/{step}/{number}"), study:
                handle = await DBOS.enqueue_workflow_async(
                    queue, self._shard_workflow, order.to_json(), step, shard
                )
                handles.append(handle)
        error: Exception | None = None
        # All handles are awaited, also after an error: a shard that has begun ends by itself.
        with self._waiting_for_shards(id):
            for handle in handles:
                try:
                    outcome = Outcome(**await handle.get_result(polling_interval_sec=POLL))
                except dbos_errors.DBOSAwaitedWorkflowCancelledError:
                    continue  # it was taken off the queue, because another one ended early
                outcome.add_to(steps.progress)
                error = error or self.errors.pop(handle.workflow_id, None) or outcome.error
                if error is not None:
                    self._queue.drop_waiting([other.workflow_id for other in handles])
        if error is not None:
            raise error

    async def _finish(
        self, order: WorkOrder, id: str, outcome: Outcome, error: Exception | None
    ) -> None:
        """Records how a run ended, and notes it for whoever waits for the run."""
        try:
            await self._in_thread(self._record_end, order, outcome, error)
        except (DatabaseGone, DatabaseFull):
            raise
        except StoreError:
            pass  # it has ended all the same
        # After the event is recorded: whoever waits for the run reads its end from there.
        self.outcomes[id] = outcome
        self.ended.set()

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
        # A command may have written an event since the last call ended: it decides, not this end.
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

    async def _perform_analysis(self, number: int, id: str) -> None:
        """Performs an analysis of a suite run, whose judges are runs like any others.

        Others continue it if this process ends first.
        """
        assert self._analyze is not None
        async with self._executing(id):
            with self._waiting_for_shards(id):
                await self._in_thread(self._analyze, number, self._stop_sandboxes)

    # --- what a run needs ------------------------------------------------------------------------

    def _open_study(self, order: WorkOrder) -> OpenSteps:
        run = self._store.runs.find(order.run, order.tag)
        asker = self._offline if order.offline else self._asker
        texts = cache(partial(shown_texts, self._store, run))
        return partial(StudySteps, self._store, asker, run, texts)

    def _open_suite(self, order: WorkOrder) -> OpenSteps:
        assert order.suite is not None
        run = self._store.suites.find_run(-order.run)
        suite, sandbox = self._suites.find(run, order.suite)
        jobs = order.suite.jobs
        if jobs not in self._sandboxes:
            self._sandboxes[jobs] = ThreadPoolExecutor(jobs, "sandbox")
        stoppable = replace(sandbox, stop=self._stop_sandboxes)
        return partial(
            SuiteSteps, self._store, self._asker, run, suite, stoppable, self._sandboxes[jobs]
        )

    # --- outages and ends ------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _executing(self, id: str) -> AsyncIterator[None]:
        """Marks a workflow as executed here; one that an outage stopped is left to be continued."""
        # Before the first await, since a sweep compares this set with the queue's rows.
        self.running.add(id)
        try:
            yield
            return
        except (ProcessEnding, Interrupted, DatabaseGone):
            pass
        except DatabaseFull as error:
            self.stop(error)
            self.ended.set()
        finally:  # also where DBOS cancels it, which is no Exception
            self.running.discard(id)
        if self._asker.error is not None:
            await asyncio.Event().wait()  # forever: a process that ends takes no further work
        raise asyncio.CancelledError  # DBOS records no end of it, and counts it no longer

    @contextlib.contextmanager
    def _waiting_for_shards(self, id: str) -> Iterator[None]:
        self.awaiting_shards.add(id)
        try:
            yield
        finally:
            self.awaiting_shards.discard(id)

    async def _retry_while_down(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Attempts something again after an outage of the database server, or lastly raises it."""
        for wait in OUTAGE:
            try:
                return await attempt()
            except DatabaseGone:
                if self._asker.error is not None:  # a process that ends does not wait
                    raise
                await asyncio.sleep(wait)
        return await attempt()

    async def _in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a function in a thread, and again after an outage of the database server."""
        return await self._retry_while_down(partial(asyncio.to_thread, function, *args, **kwargs))


async def perform(steps: Steps, step: str, shard: Shard) -> None:
    """Asks about what is missing of a shard, reads the answers and saves what they say."""
    if isinstance(steps, SuiteSteps):
        await steps.generate_and_grade(shard)
    elif step in ("rubric", "rival-rubrics"):
        await make_rubrics(steps, step)
    else:
        await ask(steps, steps.questions(step, shard))


async def make_rubrics(steps: StudySteps, step: str) -> None:
    """Has the rubrics of a step written and criticised, one after the other: they are few."""
    for target in steps.rubrics_to_make(step):
        rubric = steps.find_rubric(target)
        if rubric in (None, "provider_error"):
            steps.refuse_unwritten(step, target)
            await write_rubric(steps, target)
            rubric = steps.find_rubric(target)
        if rubric is None:
            continue  # it is not in the ledger, and no model may be called
        steps.link_rubric(step, target, rubric)
        if isinstance(rubric, Rubric) and steps.may_write(step):
            await ask(steps, steps.critique(rubric))


async def write_rubric(steps: StudySteps, target: RubricTarget) -> None:
    """Asks for a rubric, and again where its number of stages is wrong."""
    stage, payer = steps.rubric_stage, steps.payer("rubricer")
    for attempt in range(ASKS):
        requests = stage.requests([replace(target, ask=attempt)])
        [answer] = await steps.asker.ask(requests, payer, steps.progress)
        if answer is None:
            return
        rubric = stage.read(target, answer.completion)
        if rubric != "parse_failed" or attempt == ASKS - 1:
            steps.save_rubric(target, rubric, asks=attempt + 1, call_id=answer.call_id)
            return


async def ask(steps: StudySteps, questions: Questions[Any, Any]) -> None:
    """Asks about targets, and saves what is read of each answer soon after it is recorded.

    The calls of a shard are made at once, within the limits. Each group of answers that has
    arrived is saved in one transaction, so that a kill loses no more than is read again from the
    ledger.
    """
    if not questions.targets:
        return
    stage, payer = questions.stage, steps.payer(questions.asked_by)
    requests = [*zip(questions.targets, stage.requests(questions.targets), strict=True)]
    answers = steps.asker.answers(requests, payer, steps.progress)
    async with contextlib.aclosing(answers) as arriving:
        async for group in arriving:
            questions.save(
                [
                    replace(stage.read(target, answer.completion), call_id=answer.call_id)
                    for target, answer in group
                ]
            )
