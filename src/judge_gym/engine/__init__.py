"""Executes runs over the ledger: durable, resumable, within budgets and limits.

Runs are dispatched by DBOS and executed by the one process that holds the lab's lock, or by any
number of workers on Postgres. The ledger and the lab's rows are the truth; DBOS only holds what is
queued and which process executes it.
"""

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from judge_gym.axes import Design
from judge_gym.engine.calls.ask import Models, Stopped
from judge_gym.engine.calls.budget import Spend, refuse_unpriced
from judge_gym.engine.calls.limit import CONCURRENCY
from judge_gym.engine.calls.offline import OfflineError
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.follower import RunFollower, run_in_loop
from judge_gym.engine.runs.locks import lab_lock
from judge_gym.engine.runs.options import WORKFLOWS, RunOptions, Workflow
from judge_gym.engine.runs.orders import WorkOrder
from judge_gym.engine.runs.plan import Plan, Planner, StagePlan
from judge_gym.engine.runs.reparse import Reparsed, reparse
from judge_gym.engine.runs.results import FINISHED, Execution, Result, RunResult
from judge_gym.engine.runs.targets import makers
from judge_gym.engine.runs.worker import work
from judge_gym.errors import DesignError
from judge_gym.models.cards import Limits
from judge_gym.store import Run, Store
from judge_gym.studies import BudgetSpec

if TYPE_CHECKING:
    from judge_gym.engine.runs.queue import RunQueue

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
    "RunOptions",
    "RunProgress",
    "RunResult",
    "Spend",
    "StagePlan",
    "Stopped",
    "Workflow",
    "makers",
    "reparse",
]


class Engine:
    """Plans, queues and executes the runs of a lab.

    Args:
        store: of the lab.
        models: where models come from.
        limits: where given, they replace those of the registry.
    """

    def __init__(self, store: Store, models: Models, *, limits: Limits | None = None) -> None:
        self._store = store
        self._limits = limits or Limits()
        self._models = models

    def planner(self) -> Planner:
        """Returns a planner, which walks runs without calling a model."""
        concurrency = self._limits.concurrency or CONCURRENCY
        return Planner(self._store.ledger, self._models, concurrency=concurrency)

    def execute(
        self,
        runs: Sequence[Run],
        options: RunOptions,
        *,
        budget: BudgetSpec,
        watch: Callable[[Sequence[RunProgress]], None] = lambda progress: None,
        concurrency: int | None = None,
    ) -> Execution:
        """Executes runs, or follows the process that does, and returns when they have ended.

        Args:
            runs: whose targets are to be met.
            options: how they are executed.
            budget: of the study that they belong to.
            watch: called once with the live progress of each run, before the work.
            concurrency: the most calls in flight, within the engine's own limit.
        """
        if not options.offline:
            self._refuse_unpriced(runs, options.workflows, budget)
        orders = [WorkOrder.of_run(run, options) for run in runs]
        limits = self._limits
        if concurrency is not None:
            least = min(limits.concurrency or concurrency, concurrency)
            limits = replace(limits, concurrency=least)
        follower = RunFollower(self._store, self._models, limits, orders)
        watch([follower.progress[run.id] for run in runs])
        if follower.orders:
            with self._queue() as queue, _heap_frozen():
                run_in_loop(follower.follow(queue), follower.interrupt)
        progress = [self._store.progress.of_run(run.id, run.experiment.tag) for run in runs]
        outcomes = [follower.outcomes[run.id] for run in runs]
        return Execution(runs, outcomes, progress, follower.stopped)

    def begin(self, runs: Sequence[Run], options: RunOptions, *, budget: BudgetSpec) -> list[str]:
        """Queues runs for the lab's workers and returns at once.

        Returns:
            The tags of runs that are being executed under another order, which stays as it is.
        """
        self._refuse_unpriced(runs, options.workflows, budget)
        self._store.events.record([run.id for run in runs], "started")
        clashes = []
        with self._queue() as queue:
            for run in runs:
                order = WorkOrder.of_run(run, options)
                id, new = queue.add(order)
                if not new and queue.order(id) != order:
                    clashes.append(run.experiment.tag)
        return clashes

    def work(
        self,
        *,
        until_idle: bool = False,
        begun: Callable[[str], None] = lambda name: None,
        watch: Callable[[Mapping[int, RunProgress]], None] = lambda progress: None,
    ) -> Mapping[int, RunProgress]:
        """Executes what is queued until interrupted; returns the progress made here, by run.

        Args:
            until_idle: end when nothing is left to do.
            begun: called with the worker's name when it is ready.
            watch: called once with the live progress, which gains runs as they begin.
        """
        progress: dict[int, RunProgress] = {}
        watch(progress)
        shared = (self._limits, progress)
        with self._queue() as queue, _heap_frozen():
            run_in_loop(
                work(
                    self._store,
                    self._models,
                    queue,
                    *shared,
                    until_idle=until_idle,
                    on_start=begun,
                )
            )
        return progress

    def idle(self) -> bool:
        """Whether nothing is queued or executed."""
        with self._queue() as queue:
            return queue.idle()

    def strangers(self) -> list[str]:
        """Returns what is queued for another version of judge-gym, which this one leaves alone."""
        with self._queue() as queue:
            rows = queue.other_versions()
        return [f"{row.workflow_id} (protocol {row.app_version})" for row in rows]

    def lock(self) -> AbstractContextManager[None]:
        """Holds the lab for what no two processes may do at once."""
        return lab_lock(self._store.database)

    def refuse_uncallable(
        self, design: Design, rivals: Sequence[str], workflows: Collection[Workflow]
    ) -> None:
        """Refuses a design, before any call, if one of its models cannot be called."""
        for model, role in models_of(design, rivals, workflows).items():
            try:
                self._models.open(model)
            except DesignError as error:
                raise DesignError(f"{role}: {error.message}", choices=error.choices) from error

    def _refuse_unpriced(
        self, runs: Sequence[Run], workflows: Collection[Workflow], budget: BudgetSpec
    ) -> None:
        models = {
            model
            for run in runs
            for model in models_of(run.experiment.design, run.rivals, workflows)
        }
        refuse_unpriced(budget, [self._models.card(model) for model in sorted(models)])

    @contextmanager
    def _queue(self) -> Iterator["RunQueue"]:
        from judge_gym.engine.runs.queue import RunQueue  # DBOS is slow to import

        with closing(RunQueue(self._store.database)) as queue:
            yield queue


def models_of(
    design: Design, rivals: Sequence[str], workflows: Collection[Workflow]
) -> dict[str, str]:
    """Returns every model that a run may call, and its role."""
    rubric = design.rubric.resolve(design.judge.model)
    judge: dict[str | None, str] = {design.judge.model: "judges"}
    critic: dict[str | None, str] = {rubric.critic: "rubric.critic"}
    others: dict[str | None, str] = dict.fromkeys(rivals, "swap")
    by_workflow: dict[Workflow, dict[str | None, str]] = {
        "evidence": {design.evidence.resolve().editor: "evidence.editor"},
        "rubric": {rubric.author: "rubric.author", **critic},
        "score": {**judge},
        "swap": {**others, **critic, **judge} if rivals else {},
        "probe": {**judge},
    }
    roles = {model: role for name in workflows for model, role in by_workflow[name].items()}
    return {model: role for model, role in sorted(roles.items(), key=str) if model is not None}


@contextmanager
def _heap_frozen() -> Iterator[None]:
    """Exempts the present heap from garbage collection, which would often halt all calls."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
