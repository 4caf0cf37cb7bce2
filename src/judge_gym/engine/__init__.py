"""The room where work is done: runs are carried out over the ledger, interrupted and continued.

Runs are dispatched by DBOS and carried out by whoever holds the lock of the lab, or by any number
of workers on Postgres. The ledger and the rows are the truth; DBOS says what is queued and who is
at it.
"""

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace

from judge_gym.axes import Design
from judge_gym.engine.calls.ask import Models, Stopped
from judge_gym.engine.calls.budget import Spend, refuse_unpriced
from judge_gym.engine.calls.limit import CONCURRENCY
from judge_gym.engine.calls.offline import OfflineError
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.follower import RunFollower, in_own_loop
from judge_gym.engine.runs.locks import lab_lock
from judge_gym.engine.runs.options import WORKFLOWS, RunOptions, Workflow
from judge_gym.engine.runs.orders import WorkOrder
from judge_gym.engine.runs.plan import Plan, Planner, StagePlan
from judge_gym.engine.runs.reparse import Reparsed, reparse
from judge_gym.engine.runs.results import FINISHED, Execution, Result, RunResult
from judge_gym.engine.runs.targets import makers
from judge_gym.engine.runs.worker import Worker
from judge_gym.errors import DesignError
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

    def planner(self) -> Planner:
        """A walk over the same runs without a call."""
        concurrency = self._limits.concurrency or CONCURRENCY
        return Planner(self._store.ledger, self._models, concurrency=concurrency)

    def execute(
        self,
        runs: Sequence[Run],
        options: RunOptions,
        *,
        budget: BudgetSpec,
        watch: Callable[[Sequence[RunProgress]], None] = lambda tallies: None,
        concurrency: int | None = None,
    ) -> Execution:
        """Have runs carried out, here or where somebody is at it; returns when they have ended.

        Args:
            runs: whose targets are to be met.
            options: how.
            budget: the limits of the study that they belong to.
            watch: called once with the tallies, before the work; they change under its eyes.
            concurrency: calls in flight at most, within the engine's own limit.
        """
        if not options.offline:
            self._refuse_unpriced(runs, options.workflows, budget)
        orders = [WorkOrder.of_run(run, options) for run in runs]
        limits = self._limits
        if concurrency is not None:
            least = min(limits.concurrency or concurrency, concurrency)
            limits = replace(limits, concurrency=least)
        following = RunFollower(self._store, self._models, limits, orders)
        watch([following.tallies[run.id] for run in runs])
        if following.orders:
            from judge_gym.engine.runs.queue import RunQueue  # heavy, and only work needs it

            with closing(RunQueue(self._store.database)) as dispatch, _heap_at_rest():
                in_own_loop(following.carry_out(dispatch), following.interrupt)
        progress = [self._store.progress.of_run(run.id, run.experiment.tag) for run in runs]
        outcomes = [following.outcomes[run.id] for run in runs]
        return Execution(runs, outcomes, progress, following.stopped)

    def begin(self, runs: Sequence[Run], options: RunOptions, *, budget: BudgetSpec) -> list[str]:
        """Order runs and return at once; whoever works on the lab carries them out.

        Returns:
            The tags of runs that somebody is at with another order, which stays as it is.
        """
        from judge_gym.engine.runs.queue import RunQueue

        clashes = []

        self._refuse_unpriced(runs, options.workflows, budget)
        self._store.events.record([run.id for run in runs], "started")
        with closing(RunQueue(self._store.database)) as dispatch:
            for run in runs:
                order = WorkOrder.of_run(run, options)
                id, new = dispatch.begin(order)
                if not new and dispatch.order(id) != order:
                    clashes.append(run.experiment.tag)
        return clashes

    def work(
        self,
        *,
        until_idle: bool = False,
        begun: Callable[[str], None] = lambda name: None,
        watch: Callable[[Mapping[int, RunProgress]], None] = lambda tallies: None,
    ) -> Mapping[int, RunProgress]:
        """Carry out what others have ordered, until interrupted; what was done, by run.

        Args:
            until_idle: end when nothing is left to do.
            begun: called with the worker's name when it is ready.
            watch: called once with the tallies; they change under its eyes.
        """
        from judge_gym.engine.runs.queue import RunQueue

        worker = Worker(self._store, self._models, self._limits)
        watch(worker.tallies)
        with closing(RunQueue(self._store.database)) as dispatch, _heap_at_rest():
            work = worker.work(dispatch, until_idle=until_idle, begun=begun)
            return in_own_loop(work, lambda: None)

    def idle(self) -> bool:
        """Whether nothing that was ordered waits or goes on."""
        from judge_gym.engine.runs.queue import RunQueue

        with closing(RunQueue(self._store.database)) as dispatch:
            return dispatch.idle()

    def strangers(self) -> list[str]:
        """What is queued for another version of judge-gym, which this one does not touch."""
        from judge_gym.engine.runs.queue import RunQueue

        with closing(RunQueue(self._store.database)) as dispatch:
            return [f"{row.workflow_id} (protocol {row.app_version})" for row in dispatch.strange()]

    def lock(self) -> AbstractContextManager[None]:
        """Work on this database alone."""
        return lab_lock(self._store.database)

    def refuse_uncallable(
        self, design: Design, rivals: Sequence[str], workflows: Collection[Workflow]
    ) -> None:
        """Open every model that may be asked: what cannot be called is refused before any call."""
        for model, role in models_of(design, rivals, workflows).items():
            try:
                self._models.open(model)
            except DesignError as fault:
                raise DesignError(f"{role}: {fault.message}", choices=fault.choices) from fault

    def _refuse_unpriced(
        self, runs: Sequence[Run], workflows: Collection[Workflow], budget: BudgetSpec
    ) -> None:
        asked = {
            model
            for run in runs
            for model in models_of(run.experiment.design, run.rivals, workflows)
        }
        refuse_unpriced(budget, [self._models.card(model) for model in sorted(asked)])


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
