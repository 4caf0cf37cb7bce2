"""The room where work is done: runs are carried out over the ledger, interrupted and continued.

A plain asyncio loop. Any number of runs go on side by side and share one limit of calls in flight;
a file lock beside the database keeps two processes from doing the same work.
"""

import asyncio
import gc
import signal
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from judge_gym.axes import Design
from judge_gym.engine.asking import (
    CONCURRENCY,
    Answering,
    Asker,
    EndpointDown,
    Models,
    Stopped,
    Tally,
)
from judge_gym.engine.budget import Meter, RunOverBudget, Spend, spent
from judge_gym.engine.offline import OfflineAsker, OfflineError
from judge_gym.engine.pipeline import WORKFLOWS, Pipeline, Workflow, makers
from judge_gym.engine.planning import Plan, Planner, StagePlan
from judge_gym.engine.reparsing import Reparsed, reparse
from judge_gym.engine.results import FINISHED, Execution, Result, RunResult
from judge_gym.errors import BudgetError, ConflictError, DesignError, JudgeGymError
from judge_gym.models.cards import Limits
from judge_gym.store import Run, Store
from judge_gym.studies import BudgetSpec

__all__ = [
    "FINISHED",
    "WORKFLOWS",
    "Engine",
    "Execution",
    "Models",
    "OfflineError",
    "Plan",
    "Planner",
    "Reparsed",
    "Result",
    "RunResult",
    "Spend",
    "StagePlan",
    "Stopped",
    "Tally",
    "Workflow",
    "makers",
    "reparse",
]

RUNS_AT_ONCE = 8
T = TypeVar("T")


class Engine:
    """Carries out runs."""

    def __init__(
        self,
        store: Store,
        models: Models,
        *,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._limits = limits or Limits()
        self._models = models
        self._asker: Answering | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def planner(self) -> Planner:
        """A walk over the same runs without a call."""
        concurrency = self._limits.concurrency or CONCURRENCY
        return Planner(self._store.ledger, self._models, concurrency=concurrency)

    def execute(
        self,
        runs: Sequence[Run],
        workflows: Collection[Workflow] = WORKFLOWS,
        *,
        budget: BudgetSpec,
        watch: Callable[[Sequence[Tally]], None] = lambda tallies: None,
        offline: bool = False,
    ) -> Execution:
        """Carry out runs under `lock`; returns when all is done, or when it was stopped.

        Args:
            runs: whose targets are to be met.
            workflows: what may be made.
            budget: the limits of the study that they belong to.
            watch: called once with the tallies, before the work; they change under its eyes.
            offline: open no model; what the ledger does not hold is an error at the end.
        """
        tallies = [Tally() for _ in runs]
        watch(tallies)
        replay = OfflineAsker(self._store.ledger, self._models) if offline else None
        try:
            asker = replay or self._online(runs, workflows, budget)
            work = self._execute(runs, workflows, tallies, asker)
            with _heap_at_rest():
                stopped = _in_own_loop(work, self.interrupt)
        except asyncio.CancelledError:  # the second Ctrl-C
            stopped = Stopped("interrupted")
        if replay is not None and stopped is None:
            replay.refuse_missing()
        progress = [self._store.progress.of_run(run.id, run.experiment.tag) for run in runs]
        return Execution(runs, tallies, progress, stopped)

    def interrupt(self) -> None:
        """Begin no further call; those in flight are awaited and recorded."""
        if self._asker is not None and self._loop is not None:  # perhaps in another thread
            self._loop.call_soon_threadsafe(self._asker.stop, Stopped("interrupted"))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Work on this database alone."""
        lock = FileLock(f"{self._store.database.file}.lock")
        try:
            with lock.acquire(timeout=0):
                yield
        except Timeout:
            raise ConflictError(
                f"another judge-gym is at work on {self._store.database.shown}; "
                "wait for it or stop it"
            ) from None

    def refuse_uncallable(
        self, design: Design, rivals: Sequence[str], workflows: Collection[Workflow]
    ) -> None:
        """Open every model that may be asked: what cannot be called is refused before any call."""
        for model, role in models_of(design, rivals, workflows).items():
            try:
                self._models.open(model)
            except DesignError as fault:
                raise DesignError(f"{role}: {fault.message}", choices=fault.choices) from fault

    def _online(
        self, runs: Sequence[Run], workflows: Collection[Workflow], budget: BudgetSpec
    ) -> Asker:
        """The way to models, within a budget."""
        usage = self._store.queries.usage
        paid = [row for study in {run.study for run in runs} for row in usage(study=study)]
        by_run = {run.id: spent(usage(run=run.id)) for run in runs}
        meter = Meter(budget, spent(paid), by_run)
        asked = {
            model
            for run in runs
            for model in models_of(run.experiment.design, run.rivals, workflows)
        }
        meter.check_prices({model: self._models.card(model) for model in asked})
        return Asker(self._store.ledger, self._models, meter, limits=self._limits)

    async def _execute(
        self,
        runs: Sequence[Run],
        workflows: Collection[Workflow],
        tallies: Sequence[Tally],
        asker: Answering,
    ) -> JudgeGymError | None:
        """Carry out runs side by side; why they were stopped, if they were."""
        room = asyncio.Semaphore(RUNS_AT_ONCE)

        pipelines = [
            Pipeline(self._store, asker, run, tally, workflows)
            for run, tally in zip(runs, tallies, strict=True)
        ]
        for pipeline in pipelines:
            pipeline.announce()
        reached: list[RunOverBudget] = []

        async def carry_out(pipeline: Pipeline) -> None:
            async with room:
                try:
                    await pipeline.carry_out()
                except EndpointDown as fault:  # others go on
                    pipeline.tally.warnings.append(fault.message)
                except RunOverBudget as fault:
                    reached.append(fault)
                except JudgeGymError as fault:
                    asker.stop(fault)  # the others end too, after what they have in flight
                    raise

        self._asker, self._loop = asker, asyncio.get_running_loop()
        with _first_interrupt(self.interrupt):
            ended = await asyncio.gather(
                *(carry_out(pipeline) for pipeline in pipelines), return_exceptions=True
            )
        faults = [fault for fault in ended if isinstance(fault, BaseException)]
        grave = [fault for fault in faults if not isinstance(fault, Stopped | BudgetError)]
        if grave:
            raise grave[0]
        stops = [fault for fault in faults if isinstance(fault, JudgeGymError)]
        if reached and not stops:
            return BudgetError(f"{len(reached)} of {len(runs)} runs: {reached[0].message}")
        return stops[0] if stops else None


def models_of(
    design: Design, rivals: Sequence[str], workflows: Collection[Workflow]
) -> dict[str, str]:
    """Every model that a run may ask, and what for."""
    rubric = design.rubric.resolve(design.judge.model)
    judge: dict[str | None, str] = {design.judge.model: "judges"}
    critic: dict[str | None, str] = {rubric.critic: "rubric.critic"}
    others: dict[str | None, str] = dict.fromkeys(rivals, "swap")
    wanted: dict[Workflow, dict[str | None, str]] = {
        "evidence": {design.evidence.resolve().editor: "evidence.editor"},
        "rubric": {rubric.author: "rubric.author", **critic},
        "score": {**judge},
        "swap": {**others, **critic, **judge} if rivals else {},
        "probe": {**judge},
    }
    roles = {model: role for workflow in workflows for model, role in wanted[workflow].items()}
    return {model: role for model, role in sorted(roles.items(), key=str) if model is not None}


@contextmanager
def _heap_at_rest() -> Iterator[None]:
    """What there is now stays: looking through it for garbage would halt all calls, and often."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _first_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C lets calls in flight land; the second ends at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt() -> None:
        stop()
        if task is not None:
            loop.add_signal_handler(signal.SIGINT, task.cancel)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _in_own_loop(work: Coroutine[Any, Any, T], stop: Callable[[], None]) -> T:
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
