"""Executes runs over the ledger: durable, resumable, within budgets and limits.

Runs are dispatched by DBOS and executed by the one process that holds the lab's lock, or by any
number of workers on Postgres. The ledger and the lab's rows are the truth; DBOS only holds what is
queued and which process executes it.

`workflow` tells the story of a run, and `steps` and `suites` know what is missing of it. `follower`
waits for the runs of a command, `worker` is the process that executes, `liveness` notices dead ones
and takes over, `controls` applies pauses and new limits, `capabilities` says what this machine can
do. `queue` and `orders` are what processes pass on, `planner` counts before anything is paid, and
`calls` asks the models.
"""

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from judge_gym.axes import Design
from judge_gym.engine.calls.budget import Spend, enough, refuse_unpriced
from judge_gym.engine.calls.limit import endpoint_of
from judge_gym.engine.calls.progress import LIMITS, MEASURED, RunProgress
from judge_gym.engine.calls.stopped import Stopped
from judge_gym.engine.liveness import lab_lock
from judge_gym.engine.orders import (
    ANALYSES,
    FINISHED,
    JOBS,
    Result,
    RunOptions,
    RunResult,
    SuiteExecution,
    SuiteWork,
    WorkOrder,
    study_of,
    study_result,
)
from judge_gym.errors import ConflictError, DesignError
from judge_gym.models.model_card import Limits
from judge_gym.records import Request, SuiteRun
from judge_gym.records.actors import current_actor
from judge_gym.records.inputs import WORKFLOWS, Workflow
from judge_gym.store import Answer, Payer, Run, Store
from judge_gym.studies import BudgetSpec

if TYPE_CHECKING:
    from judge_gym.engine.calls.ask import Models
    from judge_gym.engine.capabilities import Capabilities
    from judge_gym.engine.follower import RunFollower
    from judge_gym.engine.planner import Paces, Planner
    from judge_gym.engine.queue import RunQueue
    from judge_gym.engine.workflow import Analyze
    from judge_gym.suites import Suite

__all__ = [
    "FINISHED",
    "JOBS",
    "LIMITS",
    "MEASURED",
    "WORKFLOWS",
    "Engine",
    "Result",
    "RunOptions",
    "RunProgress",
    "RunResult",
    "Spend",
    "Stopped",
    "SuiteExecution",
    "SuiteWork",
    "Workflow",
    "enough",
    "study_of",
]


QUEUED = "queued for a worker"
NO_RUN = 0
"""The payer of calls that belong to a study, and to no run of it."""


class Engine:
    """Plans, queues and executes the runs of a lab; given limits replace those of the registry.

    What plans and executes is imported by the methods that use it: every lab has an engine, and
    most commands only read.
    """

    def __init__(self, store: Store, models: "Models", *, limits: Limits | None = None) -> None:
        self._store = store
        self._limits = limits or Limits()
        self._models = models

    @cached_property
    def _capabilities(self) -> "Capabilities":
        from judge_gym.engine.capabilities import Capabilities

        return Capabilities(self._store, self._models)

    def planner(self) -> "Planner":
        """Returns a planner, which walks runs without calling a model."""
        from judge_gym.engine.planner import Planner

        return Planner(self._store.ledger, self._models, self._paces())

    def _paces(self) -> "Paces":
        from judge_gym.engine.planner import Paces

        return Paces(self._store.usage, self._limits)

    def execute(
        self,
        study: str,
        runs: Sequence[Run],
        options: RunOptions,
        *,
        budget: BudgetSpec,
        watch: Callable[[Sequence[RunProgress]], None] = lambda progress: None,
        concurrency: int | None = None,
    ) -> Result:
        """Executes runs, or follows the process that does, and returns when they have ended.

        Args:
            study: its name.
            runs: of the study.
            options: how they are executed.
            budget: of the study.
            watch: called once with the live progress of each run, before the work.
            concurrency: the most calls in flight, within the engine's own limit.
        """
        if not options.offline:
            self._refuse_unpriced(runs, options.workflows, budget)
        orders = [self._order(run, options) for run in runs]
        limits = self._limits
        if concurrency is not None:
            least = min(limits.concurrency or concurrency, concurrency)
            limits = replace(limits, concurrency=least)
        paces = self._paces()

        def watch_paced(progress: Sequence[RunProgress]) -> None:
            for run, counters in zip(runs, progress, strict=True):
                models = models_of(run.experiment.design, run.rivals, options.workflows)
                cards = [self._models.card(model) for model in models]
                counters.expected = {card.id: paces.of(card) for card in cards}
                counters.endpoints = {card.id: endpoint_of(card) for card in cards}
            watch(progress)

        follower = self._follow(orders, limits, watch_paced)
        progress = [self._store.progress.of_run(run.id, run.experiment.tag) for run in runs]
        outcomes = [follower.outcomes[run.id] for run in runs]
        return study_result(study, runs, outcomes, progress, follower.stopped)

    def ask(
        self,
        requests: Sequence[Request],
        progress: RunProgress,
        *,
        study: str,
        tag: str,
        stage: str,
    ) -> list[Answer]:
        """Asks what belongs to no run, and waits for the answers; those in the ledger are reused.

        Args:
            requests: what is asked.
            progress: counts what is paid, and gets warnings of calls that failed.
            study: who pays, within its saved budget.
            tag: the experiment that the answers are for.
            stage: the name of the step, for the account of what was paid.
        """
        keys = [request.key(self._models.card(request.model).endpoint) for request in requests]
        stored = self._store.ledger.find(keys)
        if all(key in stored for key in keys):
            return [stored[key] for key in keys]
        from judge_gym.engine.calls.ask import Asker
        from judge_gym.engine.calls.meters import Meters
        from judge_gym.engine.interrupts import first_interrupt, run_in_loop

        self.refuse_copy()
        self._store.identity.confirm()
        budget = BudgetSpec.model_validate(self._store.studies.budget(study))
        models = sorted({request.model for request in requests})
        refuse_unpriced(budget, [self._models.card(model) for model in models])
        for model in models:
            self._models.open(model)
        asker = Asker(self._store.ledger, self._models, Meters(self._store), limits=self._limits)

        def stop() -> None:
            asker.stop(Stopped("interrupted"))

        async def ask() -> list[Answer]:
            with first_interrupt(stop):
                return await asker.ask(requests, Payer(NO_RUN, study, tag, stage), progress)

        # Without leases and claims, which several processes share, this one has to be alone.
        with self.lock():
            return run_in_loop(ask(), stop)

    def execute_suites(
        self,
        runs: Sequence[SuiteRun],
        work: SuiteWork | None = None,
        *,
        suite: "Suite | None" = None,
        watch: Callable[[Sequence[RunProgress]], None] = lambda progress: None,
    ) -> list[SuiteExecution]:
        """Executes suite runs at once, or follows the process that does, until all have ended.

        Args:
            runs: whose targets are to be met.
            work: what they need; by default what the last order of each says.
            suite: where it is loaded already.
            watch: called once with the live progress of each run, before the work.

        Raises:
            SuiteMissing: this machine lacks the suite at a run's version, or a tool.
        """
        if suite is not None:
            self._capabilities.suites.add(suite)
        orders = [self._suite_order(run, work) for run in runs]
        for run, order in zip(runs, orders, strict=True):
            assert order.suite is not None
            self._capabilities.suites.find(run, order.suite)

        def watch_labelled(progress: Sequence[RunProgress]) -> None:
            for run, counters in zip(runs, progress, strict=True):
                counters.label = f"{run.model}, {run.condition}"
                counters.endpoints = {run.model: endpoint_of(self._models.card(run.model))}
            watch(progress)

        follower = self._follow(orders, self._limits, watch_labelled)
        return [SuiteExecution(run, follower.outcomes[run.payer], follower.stopped) for run in runs]

    def start_suites(self, runs: Sequence[SuiteRun], work: SuiteWork | None = None) -> None:
        """Queues suite runs for the lab's workers; by default as each was ordered last."""
        orders = [self._suite_order(run, work) for run in runs]
        with self._confirmed_queue() as queue:
            self._store.events.record(
                [run.payer for run in runs], "started", QUEUED, actor=current_actor()
            )
            queue.register(orders)
            for order in orders:
                queue.add(order)

    def refuse_joining(self, run: SuiteRun, work: SuiteWork) -> None:
        """Refuses work for a run that is in progress and was not asked for all of it."""
        with self._queue() as queue:
            active = queue.active_order(run.payer)
        if active is None or active.suite is None:
            return
        ordered = run.replicates_of if active.suite.selection is None else active.suite.selection
        if any(ordered.get(path, 0) < n for path, n in (work.selection or {}).items()):
            raise ConflictError(
                f"run {run.id} is in progress, with other evals or fewer replicates; start these "
                "when it has ended, or in another series"
            )

    def start_analysis(self, number: int) -> None:
        """Queues an analysis of a suite run for the lab's workers."""
        with self._confirmed_queue() as queue:
            queue.add_analysis(number)

    def _suite_order(self, run: SuiteRun, work: SuiteWork | None) -> WorkOrder:
        budget = BudgetSpec.model_validate(self._store.studies.budget(study_of(run.suite)))
        searches = bool(run.settings.get("web_search"))
        refuse_unpriced(budget, [self._models.card(run.model)], searches=searches)
        if work is None:
            with self._queue() as queue:
                last = queue.last_order(run.payer)
            work = last.suite if last is not None else None
            if work is not None and not self._store.suites.missing(run, work.selection):
                work = replace(work, selection=None)  # the rest of the run
        return WorkOrder.of_suite(run, work or SuiteWork(run.version), self._places([run.model]))

    def _order(self, run: Run, options: RunOptions) -> WorkOrder:
        models = models_of(run.experiment.design, run.rivals, options.workflows)
        return WorkOrder.of_run(run, options, self._places(models))

    def _places(self, models: Iterable[str]) -> dict[str, str]:
        """Returns the endpoints of models, without simulated ones, which every process has."""
        cards = {model: self._models.card(model) for model in models}
        return {model: card.endpoint for model, card in cards.items() if card.kind != "sim"}

    def _follow(
        self,
        orders: Sequence[WorkOrder],
        limits: Limits,
        watch: Callable[[Sequence[RunProgress]], None],
    ) -> "RunFollower":
        from judge_gym.engine.follower import RunFollower
        from judge_gym.engine.interrupts import run_in_loop

        follower = RunFollower(self._store, self._models, limits, orders, self._capabilities)
        watch([follower.progress[order.run] for order in orders])
        if follower.orders:
            with self._confirmed_queue() as queue, _heap_frozen():
                queue.register(orders)
                run_in_loop(follower.follow(queue), follower.interrupt)
        return follower

    def start(self, runs: Sequence[Run], options: RunOptions, *, budget: BudgetSpec) -> list[str]:
        """Queues runs for the lab's workers and returns at once.

        Returns:
            The tags of runs that are being executed under another order, which stays as it is.
        """
        self._refuse_unpriced(runs, options.workflows, budget)
        clashes = []
        orders = {run.experiment.tag: self._order(run, options) for run in runs}
        with self._confirmed_queue() as queue:
            self._store.events.record(
                [run.id for run in runs], "started", QUEUED, actor=current_actor()
            )
            queue.register(orders.values())
            for tag, order in orders.items():
                id, new = queue.add(order)
                if not new and queue.order(id) != order:
                    clashes.append(tag)
        return clashes

    def work(
        self,
        *,
        until_idle: bool = False,
        on_start: Callable[[str], None] = lambda name: None,
        watch: Callable[[Mapping[int, RunProgress]], None] = lambda progress: None,
        analyze: "Analyze | None" = None,
    ) -> Mapping[int, RunProgress]:
        """Executes what is queued until interrupted; returns the progress made here, by run.

        Args:
            until_idle: end when nothing is left to do.
            on_start: called with the worker's name when it is ready.
            watch: called once with the live progress, which gains runs as they begin.
            analyze: performs queued analyses; without it, they are left to other workers.
        """
        from judge_gym.engine.interrupts import run_in_loop
        from judge_gym.engine.worker import serve

        progress: dict[int, RunProgress] = {}
        watch(progress)
        with self._confirmed_queue() as queue, _heap_frozen():
            run_in_loop(
                serve(
                    self._store,
                    self._models,
                    queue,
                    self._limits,
                    progress,
                    self._capabilities,
                    until_idle=until_idle,
                    on_start=on_start,
                    analyze=analyze,
                )
            )
        return progress

    def idle(self) -> bool:
        """Whether nothing is queued, executed or to be tried again by a worker on this machine."""
        if self._store.identity.is_copy():
            return True
        if self._store.events.retries():
            return False
        with self._queue() as queue:
            return not self._capabilities.look(queue, [ANALYSES])[-1]

    def served_elsewhere(self) -> bool:
        """Whether a worker on a server executes what is queued, and has refused none of it."""
        from judge_gym.engine.queue import PROTOCOL
        from judge_gym.store.locks import running_protocols

        if self._store.database.file is not None:
            return False
        worker = running_protocols(self._store.database).get(int(PROTOCOL))
        return worker is not None and not worker.hung and not self._store.events.refused()

    def other_versions(self) -> list[str]:
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

    def refuse_unrunnable(
        self, run: Run, options: RunOptions, budget: BudgetSpec, target: str | None
    ) -> None:
        """Refuses a run before it is stored: a model, a price, a view or a rubric is missing.

        Args:
            run: with its experiment and its targets.
            options: how it is to be executed.
            budget: of its study.
            target: the study or tag that the user named.
        """
        from judge_gym.engine.steps import refuse_unprepared

        if not options.offline:
            self.refuse_uncallable(run.experiment.design, run.rivals, options.workflows)
            self._refuse_unpriced([run], options.workflows, budget)
        refuse_unprepared(self._store, run, options.workflows, target)

    def _refuse_unpriced(
        self, runs: Sequence[Run], workflows: Collection[Workflow], budget: BudgetSpec
    ) -> None:
        models = {
            model
            for run in runs
            for model in models_of(run.experiment.design, run.rivals, workflows)
        }
        refuse_unpriced(budget, [self._models.card(model) for model in sorted(models)])

    def adopt(self, *, cancel: bool = False) -> int:
        """Confirms that this copy of a database is used from now on.

        Args:
            cancel: the queued runs, instead of continuing them.

        Returns:
            The number of queued runs.
        """
        with self._queue() as queue:
            queued = queue.active_runs()
            if cancel:
                queue.drop(queued)
                runs = {int(id.partition(".")[0]) for id in queued}
                self._store.events.record(
                    runs, "cancelled", "cancelled in a copy of the database", actor=current_actor()
                )
            self._store.identity.adopt()
        return len(queued)

    def refuse_copy(self) -> None:
        """Refuses to pay for anything in a copy of a database that no user confirmed."""
        self._store.database.refuse_other_profile()
        self._store.identity.refuse_copy()

    @contextmanager
    def _confirmed_queue(self) -> Iterator["RunQueue"]:
        """Opens the queue to add to it or to execute it, unless the database is a copy."""
        self.refuse_copy()
        self._store.identity.confirm()
        with self._queue() as queue:
            yield queue

    @contextmanager
    def _queue(self) -> Iterator["RunQueue"]:
        from judge_gym.engine.queue import RunQueue  # DBOS is slow to import

        self._store.database.refuse_other_profile()
        with closing(RunQueue(self._store.database)) as queue:
            yield queue


def models_of(
    design: Design, rivals: Sequence[str], workflows: Collection[Workflow]
) -> dict[str, str]:
    """Returns every model that a run may call, and its role."""
    rubric = design.rubric.resolve(design.judge.model)
    judge: dict[str | None, str] = {design.judge.model: "judges"}
    critic: dict[str | None, str] = {rubric.critic: "rubric.critic"}
    authors: dict[str | None, str] = dict.fromkeys(rivals, "swap")
    by_workflow: dict[Workflow, dict[str | None, str]] = {
        "evidence": {design.evidence.resolve().editor: "evidence.editor"},
        "rubric": {rubric.author: "rubric.author", **critic},
        "score": {**judge},
        "swap": {**authors, **critic, **judge} if rivals else {},
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
