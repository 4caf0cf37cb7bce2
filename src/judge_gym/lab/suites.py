"""The noun `lab.suites`: check and run suites of coding tasks, and keep their scores."""

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack
from urllib.parse import urlsplit

from pydantic import AwareDatetime, Field

from judge_gym.client.pages import lab_of, run_of
from judge_gym.engine import JOBS, Engine, Spend, SuiteExecution, enough, study_of
from judge_gym.engine.calls.budget import refuse_unpriced
from judge_gym.errors import (
    BudgetError,
    ConflictError,
    DesignError,
    JudgeGymError,
    NotFoundError,
    Remedy,
    unknown,
)
from judge_gym.lab.plan_rows import planned_endpoints, planned_stage
from judge_gym.lab.runs import WatchProgress
from judge_gym.lab.suite_commands import SuiteCommand, Target
from judge_gym.lab.suite_files import RUN_FILE, File, as_json, eval_files
from judge_gym.lab.suite_reports import SuiteReport, eval_row, reports
from judge_gym.lab.suite_schedule import due_rows, estimated_cost
from judge_gym.lab.suite_scores import leaderboard_rows, number_or_none, score_rows
from judge_gym.models import Registry
from judge_gym.models.simulated import CODERS, CoderProfile, profile
from judge_gym.models.simulated.coder import solution
from judge_gym.records import (
    EvalResult,
    EvalSource,
    Passed,
    StepResult,
    SuiteResult,
    SuiteRun,
)
from judge_gym.records.outcomes import read_outcome
from judge_gym.records.requests import (
    LOCAL,
    Amount,
    Budget,
    ConditionName,
    ConditionSettings,
    Count,
    Evals,
    Files,
    Id,
    Long,
    Name,
    Outcome,
    Part,
    Sent,
    Step,
    SuiteName,
    TaskFiles,
    Word,
)
from judge_gym.records.responses import (
    DueRow,
    EvalDetail,
    EvalRow,
    LeaderboardRow,
    ScoreRow,
    StepRow,
    SuitePlan,
    SuiteRunDetail,
    SuiteRunRow,
    as_record,
)
from judge_gym.store import Store
from judge_gym.studies import BudgetSpec
from judge_gym.suites import (
    SHIPPED,
    AnswerCheck,
    CodeTask,
    Condition,
    Effect,
    Suite,
    ablate,
    ablations,
    check_answers,
    load_suite,
    open_sandbox,
    own_guidelines,
    select,
)

SERIES = "0"
ABLATION_REPLICATES = 3
_NUMBER = re.compile(r"\d{1,7}")
DEFAULT_SETTINGS: Mapping[str, Any] = ConditionSettings().model_dump()
NO_FILES: Mapping[str, str] = {}
EXECUTION = ("calls", "reused", "usd")
"""The parts of a report that describe the command that was just run."""


class EvalKeywords(TypedDict, total=False):
    """Which evals of a suite are meant. An eval must satisfy all keywords."""

    evals: Annotated[
        Sequence[Name],
        Field(default=(), max_length=10_000, description="Parts of paths, or globs; all if empty."),
    ]
    filter: Annotated[
        Name | None, Field(description="A regular expression that is searched in paths.")
    ]
    category: Annotated[Sequence[Name], Field(default=(), max_length=1000)]
    """Names of categories, with their number or without."""
    failed_of: Annotated[Id | None, Field(description="A run: only evals that did not pass there.")]
    limit: Annotated[int | None, Field(ge=1, description="Only the first so many evals.")]


class SuiteKeywords(EvalKeywords, total=False):
    """How a suite is run, as keyword arguments of `Suites.run`, `run_each` and `ablate`."""

    replicates: Annotated[
        int | None,
        Field(ge=1, le=1000, description="Answers to each task; by default 1."),
    ]
    series: Annotated[
        Name, Field(default=SERIES, description="Another name asks again for everything.")
    ]
    budget: Annotated[Budget, Field(default={})]
    """What all runs of the suite may spend."""
    jobs: Annotated[int, LOCAL]
    """Evals in sandboxes at once."""
    allow_unisolated: Annotated[bool, LOCAL]
    """Run candidates even where no sandbox works."""


class Suites:
    """Runs suites of coding tasks with models, and compares the runs of this lab and of others."""

    def __init__(
        self,
        store: Store,
        models: Registry,
        engine: Engine,
        addresses: Collection[str] = (),
    ) -> None:
        self._store = store
        self._models = models
        self._engine = engine
        self._addresses = addresses
        """Where this lab is served, as `HOST:PORT`: pages there are its own."""

    # --- suites ----------------------------------------------------------------------------------

    def list(
        self, folder: Path = Path(), *, on_error: Callable[[str], None] = lambda message: None
    ) -> Sequence[Suite]:
        """Lists the suite that judge-gym ships, and those in a folder.

        Args:
            folder: where suites are looked for.
            on_error: is given the message of each suite that cannot be loaded and is left out.
        """
        suites = [load_suite(SHIPPED)]
        for file in sorted(folder.glob("*/suite.toml")):
            try:
                suites.append(load_suite(file.parent))
            except JudgeGymError as error:
                on_error(error.message)
        return suites

    def find(self, suite: str | Path) -> Suite:
        """Loads a suite from its folder, or the shipped one for `python`."""
        try:
            return load_suite(suite)
        except NotFoundError as error:
            own_suites = sorted(str(file.parent) for file in Path().glob("*/suite.toml"))
            choices = ["python", *own_suites]
            raise NotFoundError(
                f"{error.message}; choose {' or '.join(choices)}", choices=choices
            ) from error

    def check(
        self,
        suite: str | Path,
        *,
        jobs: int | None = None,
        allow_unisolated: bool = False,
        **which: Unpack[EvalKeywords],
    ) -> tuple[AnswerCheck, ...]:
        """Runs the reference answers and the wrong ones through the steps and stores nothing."""
        loaded = self.find(suite)
        sandbox = open_sandbox(allow_unisolated=allow_unisolated)
        return check_answers(loaded, sandbox, self._select(loaded, which), at_once=jobs)

    def _select(self, suite: Suite, which: EvalKeywords) -> tuple[CodeTask, ...]:
        run = which.get("failed_of")
        among = None
        if run is not None:
            among = {row["path"] for row in self.list_failed(run)}
            if not among:
                raise NotFoundError(f"every eval of run {run} passed")
            if gone := sorted(among - {task.path for task in suite.evals}):
                raise NotFoundError(
                    f"run {run} failed {gone[0]}, which the suite {suite.name!r} does not have"
                )
        return select(
            suite,
            which.get("evals", ()),
            filter=which.get("filter"),
            categories=which.get("category", ()),
            among=among,
            limit=which.get("limit"),
        )

    # --- runs ------------------------------------------------------------------------------------

    def run(
        self,
        suite: str | Path,
        model: str,
        *,
        condition: str = "default",
        watch: WatchProgress = lambda progress: None,
        **options: Unpack[SuiteKeywords],
    ) -> SuiteReport:
        """Runs a suite with a model and grades its code, continuing an unfinished run.

        Args:
            suite: a folder, or `python`.
            model: its id or bare name.
            condition: the name of one of the suite's conditions.
            watch: called with the progress counters before the work starts.
            options: see `SuiteKeywords`.
        """
        [report] = self.run_each(suite, [model], conditions=[condition], watch=watch, **options)
        return report

    def run_each(
        self,
        suite: str | Path,
        models: Sequence[str],
        *,
        conditions: Sequence[str | Condition] = ("default",),
        on_checked: Callable[[Suite], None] = lambda suite: None,
        on_start: Callable[[SuiteRun], None] = lambda run: None,
        watch: WatchProgress = lambda progress: None,
        **options: Unpack[SuiteKeywords],
    ) -> tuple[SuiteReport, ...]:
        """Runs a suite with every model under every condition, all at once.

        Args:
            suite: a folder, or `python`.
            models: ids or bare names.
            conditions: names of the suite's conditions, or others.
            on_checked: called before anything is stored; an error in it refuses the command.
            on_start: called with each stored run before the work; an error in it ends the command.
            watch: called with the progress counters of all runs before the work starts.
            options: see `SuiteKeywords`.
        """
        command = self._command(self.find(suite), models, conditions, options)
        self._refuse(command)
        on_checked(command.suite)
        runs = self._save(command)
        for run in runs:
            on_start(run)
        executions = self._engine.execute_suites(
            runs, command.work, suite=command.suite, watch=watch
        )
        return self._reports_of(executions)

    def start(
        self,
        suite: SuiteName,
        model: Name,
        *,
        condition: ConditionName = "default",
        guidelines: Annotated[
            Long | None, Field(description="Shown instead of the suite's, as a condition.")
        ] = None,
        **options: Unpack[SuiteKeywords],
    ) -> SuiteRunRow:
        """Queues a run of a suite for the lab's workers.

        The run of this model, condition and series is continued if there is one: further evals are
        added to it, and replicates to all its evals. Another series makes a new run.

        Args:
            suite: the name of the included suite or of one in the working folder.
            model: its id or bare name.
            condition: the name of one of the suite's conditions, or for the guidelines.
            guidelines: a text that is shown instead of the suite's guidelines.
            options: see `SuiteKeywords`.
        """
        selected = condition if guidelines is None else own_guidelines(condition, guidelines)
        command = self._command(self._find_by_name(suite), [model], [selected], options)
        self._refuse(command)
        before = self._same_run(command, *command.points[0])
        if before is not None:
            if not self._missing(command, before):
                raise ConflictError(
                    f"run {before.id} has all these results; another series asks the model again"
                )
            self._engine.refuse_joining(before, command.work)
        [run] = self._save(command)
        self._engine.start_suites([run], command.work)
        return _run_row(self.report(run.id))

    def _find_by_name(self, suite: str) -> Suite:
        """Finds the shipped suite, or one in the working folder, by its name alone."""
        by_name = {loaded.name: loaded for loaded in self.list()}
        if suite not in by_name:
            raise NotFoundError(unknown("suite", suite, by_name), choices=by_name)
        return by_name[suite]

    def plan(
        self,
        suite: SuiteName,
        models: Annotated[Sequence[Name], Field(min_length=1, max_length=200)],
        *,
        conditions: Annotated[
            Sequence[Name], Field(min_length=1, max_length=200, description="Their names.")
        ] = ("default",),
        ablate: Annotated[
            bool,
            Field(
                description="Plan the ablation of each condition's guidelines; 3 replicates then."
            ),
        ] = False,
        sections: Annotated[
            Sequence[Name], Field(max_length=500, description="With ablate: only these sections.")
        ] = (),
        **options: Unpack[SuiteKeywords],
    ) -> SuitePlan:
        """Estimates what a run of a suite would ask and cost, and what is in the ledger already.

        Args:
            suite: the name of the included suite or of one in the working folder.
            models: ids or bare names.
            conditions: names of the suite's conditions.
            ablate: plan the ablation of each condition's guidelines.
            sections: with `ablate`, only these sections of the guidelines.
            options: see `SuiteKeywords`.
        """
        return self.estimate(
            self._find_by_name(suite).folder,
            models,
            conditions=conditions,
            ablate=ablate,
            sections=sections,
            **options,
        )

    def estimate(
        self,
        suite: str | Path,
        models: Sequence[str],
        *,
        conditions: Sequence[str | Condition] = ("default",),
        ablate: bool = False,
        sections: Sequence[str] = (),
        **options: Unpack[SuiteKeywords],
    ) -> SuitePlan:
        """Plans a run of a suite in any folder, or an ablation, and stores nothing.

        Args:
            suite: a folder, or `python`.
            models: ids or bare names.
            conditions: names of the suite's conditions, or others.
            ablate: plan the ablation of each condition's guidelines.
            sections: with `ablate`, only these sections of the guidelines.
            options: see `SuiteKeywords`.
        """
        loaded = self.find(suite)
        if ablate:
            options = _ablation_options(options)
            bases = [_condition(loaded, condition) for condition in conditions]
            conditions = [under for base in bases for under in _ablation(loaded, base, sections)]
        elif sections:
            raise DesignError("sections belong to an ablation of the guidelines")
        command = self._command(loaded, models, conditions, options)
        try:
            self._refuse(command)
            uncallable = []
        except DesignError as error:
            uncallable = [error.message]
        planner = self._engine.planner()
        runs = []
        for model, condition in command.points:
            before = self._same_run(command, model, condition)
            missing = self._missing(command, before)
            number = before.id if before is not None else None
            runs.append(command.plan(planner, model, condition, number, missing))
        return {
            "suite": loaded.name,
            "version": loaded.version,
            "runs": runs,
            "calls": planned_stage(planner.plan.total()),
            "endpoints": planned_endpoints(planner.plan),
            "budget": command.budget.model_dump(exclude_none=True),
            "uncallable": uncallable,
        }

    def check_model(
        self,
        suite: str | Path,
        model: str,
        *,
        condition: str = "default",
        limit: int | None = None,
    ) -> str:
        """Resolves a model that can run a suite, and refuses others before any call."""
        loaded = self.find(suite)
        return self._writer(loaded, model, _condition(loaded, condition), loaded.evals[:limit])

    def _writer(
        self, suite: Suite, model: str, condition: Condition, tasks: Sequence[CodeTask]
    ) -> str:
        id = self._models.resolve(model)
        self._models.open(id, web_search=condition.web_search)
        if not id.startswith("sim:"):
            return id
        simulated = profile(id.removeprefix("sim:"))
        if not isinstance(simulated, CoderProfile):
            choices = [f"sim:{name}" for name in CODERS]
            raise DesignError(
                f"{id} is a simulated judge and writes no code; choose {' or '.join(choices)}",
                choices=choices,
            )
        folder = simulated.suite
        if folder and not (Path(folder) / "suite.toml").is_file():
            raise DesignError(f"{folder!r} in {id} is no suite: it has no suite.toml")
        if all(solution(task.task.strip(), folder) is None for task in tasks):
            mark = "&" if "?" in id else "?"
            raise DesignError(
                f"{id} copies reference answers, and knows none of the suite {suite.name!r}; "
                f"name its folder: '{id}{mark}suite={suite.folder}'"
            )
        return id

    def _command(
        self,
        suite: Suite,
        models: Sequence[str],
        conditions: Sequence[str | Condition],
        options: SuiteKeywords,
    ) -> SuiteCommand:
        """Resolves what a command asks of every model under every condition."""
        if not models:
            raise DesignError("a suite is run with at least one model")
        tasks = self._select(suite, options)
        limits, replicates = options.get("budget") or {}, options.get("replicates")
        selected = [_condition(suite, condition) for condition in conditions]
        ids = [self._models.resolve(model) for model in models]
        return SuiteCommand(
            suite,
            tasks,
            tuple(dict.fromkeys(itertools.product(ids, selected))),
            options.get("series", SERIES),
            1 if replicates is None else replicates,
            limits,
            BudgetSpec.model_validate(self.budget(suite.name)).changed(limits),
            options.get("jobs", JOBS),
            options.get("allow_unisolated", False),
        )

    def _refuse(self, command: SuiteCommand) -> None:
        """Raises why a command cannot be executed here, before it stores or pays anything."""
        for model, condition in command.points:
            self._writer(command.suite, model, condition, command.tasks)
            card = self._models.card(model)
            refuse_unpriced(command.budget, [card], searches=condition.web_search)
        open_sandbox(allow_unisolated=command.allow_unisolated)

    def _same_run(self, command: SuiteCommand, model: str, condition: Condition) -> SuiteRun | None:
        """Finds the run that a command continues with a model under a condition."""
        return self._store.suites.find_same(*command.identity(model, condition))

    def _missing(self, command: SuiteCommand, before: SuiteRun | None) -> Sequence[Target]:
        """Lists the targets of a command that have no settled result in an earlier run."""
        if before is None:
            return command.targets
        return self._store.suites.missing(before, command.work.selection)

    def _save(self, command: SuiteCommand) -> Sequence[SuiteRun]:
        """Stores the budget, the tasks and the runs of a command that was checked."""
        self._engine.refuse_copy()
        suite = command.suite
        self._change_budget(suite.name, command.limits)
        sources = [task.source for task in suite.evals]
        self._store.suites.save_tasks(suite.name, suite.version, sources)
        return [
            self._store.suites.save_run(
                *command.identity(*point),
                replicates=command.replicates,
                evals=[task.path for task in command.tasks],
            )
            for point in command.points
        ]

    def _reports_of(self, executions: Sequence[SuiteExecution]) -> tuple[SuiteReport, ...]:
        """Builds the report of each run that a command just executed."""
        executed = tuple(
            report
            for execution in executions
            for report in reports(self._store, [execution.run], execution)
        )
        if not any(isinstance(report.stopped, BudgetError) for report in executed):
            return executed
        limits = self._enough(executed)
        return tuple(replace(report, enough=limits) for report in executed)

    def _enough(self, stopped: Sequence[SuiteReport]) -> dict[str, float]:
        """Estimates sufficient limits, if further evals cost what others did."""
        study = study_of(stopped[0].run.suite)
        budget = BudgetSpec.model_validate(self._store.studies.budget(study))
        calls, tokens, usd, _ = self._store.usage.paid(study, 0)
        missing = sum(
            report.run.targets - sum(row.result.settled for row in report.results)
            for report in stopped
        )
        share = 1 + missing / max(1, calls)
        return enough(budget, Spend(calls + missing, round(tokens * share), usd * share))

    def resume(
        self,
        run: int | str,
        *,
        budget: Mapping[str, Any] | None = None,
        watch: WatchProgress = lambda progress: None,
    ) -> SuiteReport:
        """Continues a run that was paused, interrupted or over its budget, and follows it."""
        suite_run = self.find_run(run)
        self._change_budget(suite_run.suite, budget)
        [report] = self._reports_of(self._engine.execute_suites([suite_run], watch=watch))
        return report

    def budget(self, suite: str) -> Mapping[str, Any]:
        """What all runs of a suite may spend."""
        return self._store.studies.budget(study_of(suite))

    def _change_budget(self, suite: str, budget: Mapping[str, Any] | None) -> None:
        if budget:
            study = study_of(suite)
            before = BudgetSpec.model_validate(self._store.studies.budget(study))
            after = before.changed(budget).model_dump(exclude_none=True)
            self._store.studies.save(study, after)

    def ablate(
        self,
        suite: str | Path,
        model: str,
        *,
        condition: str = "default",
        sections: Sequence[str] = (),
        watch: WatchProgress = lambda progress: None,
        **options: Unpack[SuiteKeywords],
    ) -> tuple[tuple[SuiteReport, ...], tuple[Effect, ...]]:
        """Removes the guidelines section by section, and measures the effect of each.

        Reports cover only the compared evals and replicates. If a run is stopped there are no
        effects; the same command continues it.
        """
        options = _ablation_options(options)
        loaded = self.find(suite)
        conditions = _ablation(loaded, _condition(loaded, condition), sections)
        paths = [task.path for task in self._select(loaded, options)]
        executed = self.run_each(
            loaded.folder, [model], conditions=conditions, watch=watch, **options
        )
        replicates = options["replicates"] or 1
        compared = tuple(report.narrowed(paths, replicates) for report in executed)
        if any(report.stopped is not None for report in compared):
            return compared, ()
        base_results, *other_results = [
            [row.result for row in report.results] for report in compared
        ]
        names = [removed.name for removed in conditions[1:]]
        return compared, ablate(base_results, dict(zip(names, other_results, strict=True)))

    # --- scores ----------------------------------------------------------------------------------

    def list_runs(
        self, *, suite: Name | None = None, model: Name | None = None
    ) -> Sequence[SuiteRunRow]:
        """Lists suite runs with their scores, oldest first."""
        return [_run_row(report) for report in self.reports(suite=suite, model=model)]

    def show_run(self, run: Id) -> SuiteRunDetail:
        """Shows a suite run with its score and all its evals."""
        report = self.report(run)
        return {**_run_row(report), "evals": [_eval_row(row) for row in report.results]}

    def reports(
        self, *, suite: str | None = None, model: str | None = None
    ) -> tuple[SuiteReport, ...]:
        """Builds the reports of all runs, or those of a suite or a model, oldest first."""
        return reports(self._store, self._store.suites.list_runs(suite=suite, model=model))

    def report(self, run: int) -> SuiteReport:
        """Builds the report of a run by its number."""
        [report] = reports(self._store, [self._store.suites.find_run(run)])
        return report

    def find_run(self, name: int | str) -> SuiteRun:
        """Finds a run by its number, the beginning of its key, or the address of its page.

        Raises:
            DesignError: the address is that of another lab, which may have another run there.
        """
        other, text = lab_of(str(name)), run_of(str(name))
        if other is not None and urlsplit(other).netloc not in self._addresses:
            raise DesignError(
                f"run {text} at {urlsplit(other).netloc} may be another run than that of this lab: "
                "name a run of this lab by its number, or ask that lab"
            )
        if _NUMBER.fullmatch(text):
            return self._store.suites.find_run(int(text))
        runs = self._store.suites.list_runs()
        matches = [run for run in runs if text and run.key.startswith(text.lower())]
        if len(matches) == 1:
            return matches[0]
        choices = [str(run.id) for run in matches or runs]
        if matches:
            raise ConflictError(
                f"{text!r} begins the keys of {len(matches)} runs; choose {' or '.join(choices)}",
                choices=choices,
            )
        raise NotFoundError(
            f"there is no suite run {text!r}", choices=choices, remedy=Remedy("suites.list_runs")
        )

    def results(self, run: int) -> Sequence[SuiteResult]:
        """Reads the results of a run as rows, without the files that the model wrote."""
        return self._store.suites.results(run).get(run, [])

    def find_result(self, eval: int) -> SuiteResult:
        """Reads a result with its files."""
        return self._store.suites.find_result(eval)

    def find_task(self, run: SuiteRun, path: str) -> EvalSource:
        """Reads the files behind an eval of a run, by its `category/name`."""
        return self._store.suites.source(run, *path.split("/", 1))

    def leaderboard(self, *, suite: Name | None = None) -> Sequence[LeaderboardRow]:
        """Ranks the last complete runs of each model, condition and version, the best first."""
        return leaderboard_rows(self.reports(suite=suite))

    def history(
        self,
        suite: Name,
        version: Name,
        *,
        model: Name | None = None,
        condition: Name | None = None,
        category: Name | None = None,
    ) -> Sequence[ScoreRow]:
        """Lists the scores of comparable runs over time, of a whole suite or of a category.

        Only runs with a result of every eval count, of the suite or of the category.
        """
        reports = self.reports(suite=suite, model=model)
        selected = [report for report in reports if condition in (None, report.run.condition)]
        return score_rows(selected, version, self.list_tasks(suite, version), category)

    def list_failed(self, run: Id) -> Sequence[EvalRow]:
        """Lists the evals of a run that did not pass, with the step and the reason."""
        return [
            _eval_row(row)
            for row in self.report(run).results
            if not isinstance(row.result.outcome, Passed)
        ]

    def show_eval(self, eval: Id) -> EvalDetail:
        """Shows an eval's task, steps, output files, reference answer, grader and gaps.

        What a model searched for is the output of the step `search`.
        """
        row = self._store.suites.find_result(eval)
        run = self._store.suites.find_run(row.run_id)
        source = self._store.suites.source(run, row.result.category, row.result.name)
        return {
            **_eval_row(row),
            "finish": self._last_attempt(row.result.call_id).get("finish"),
            "suite": run.suite,
            "version": run.version,
            "model": run.model,
            "condition": run.condition,
            "task": source.task,
            "steps": [as_record(StepRow, asdict(step)) for step in row.result.steps],
            "files": dict(row.result.files),
            "answer": dict(source.answer),
            "grader": dict(source.grader),
            "gaps": source.gaps,
        }

    def files(self, run: int | str, *, eval: int | None = None) -> Iterator[File]:
        """Yields the files of a run, or of one of its results, as relative paths and contents.

        Each result has a folder with its task, the model's reply, the output files, the log of
        each step, the reference answer and the grader.
        """
        suite_run = self.find_run(run)
        rows = [row.id for row in self.results(suite_run.id)] if eval is None else [eval]
        yield RUN_FILE, as_json(self.show_run(suite_run.id))
        for row in rows:
            detail = self.show_eval(row)
            reply = self._last_attempt(detail["call_id"]).get("body")
            yield from eval_files(detail, reply, replicates=suite_run.replicates)

    def _last_attempt(self, call: int | None) -> Mapping[str, Any]:
        """Reads the newest attempt at a call, empty if the call is in another lab's ledger."""
        history = self._store.ledger.transcript(call)[1] if call is not None else ()
        return dict(history[-1]) if history else {}

    # --- schedule --------------------------------------------------------------------------------

    def due(
        self,
        suite: Annotated[Name, Field(description="Its name.")] = "python",
        *,
        models: Annotated[
            Sequence[Name], Field(max_length=200, description="Ids; else all known.")
        ] = (),
        condition: ConditionName = "default",
    ) -> Sequence[DueRow]:
        """Lists when each model is due for another run of a suite, those that are due first.

        Without models, those that are scheduled or were run.
        """
        runs = self.list_runs(suite=suite)
        model_ids = [*models] or [*self._scheduled_models(), *(run["model"] for run in runs)]
        return due_rows(self._models, runs, model_ids, condition=condition, now=datetime.now(UTC))

    def schedule(
        self,
        suite: str | Path,
        models: Sequence[str],
        *,
        condition: str = "default",
        runs: Sequence[SuiteRunRow] | None = None,
        now: datetime | None = None,
    ) -> Sequence[DueRow]:
        """Lists when each model is due for another run of a suite, with estimated costs.

        Args:
            suite: a folder, or `python`.
            models: ids or bare names.
            condition: the name of one of the suite's conditions.
            runs: those of another lab, in place of this one's.
            now: the time, if it is another.
        """
        loaded = self.find(suite)
        selected = _condition(loaded, condition)
        ids = [self._models.resolve(model) for model in models]
        return due_rows(
            self._models,
            self.list_runs(suite=loaded.name) if runs is None else runs,
            ids,
            condition=condition,
            now=now or datetime.now(UTC),
            estimates={id: estimated_cost(self._models, loaded, id, selected) for id in ids},
        )

    def _scheduled_models(self) -> Sequence[str]:
        """Lists the models that `judge-gym.models.toml` schedules."""
        entry = self._models.entries.schedule
        return [] if entry is None else [self._models.resolve(model) for model in entry.models]

    @contextmanager
    def limited(self, suite: str, usd: float) -> Iterator[None]:
        """Limits what each run of a suite may cost, until the block ends."""
        budget = BudgetSpec.model_validate(self._store.studies.budget(study_of(suite)))
        self._change_budget(suite, {"run.usd": max(usd, 1e-9)})  # a limit is above 0
        try:
            yield
        finally:
            self._change_budget(suite, {"run.usd": budget.run.usd})

    # --- scores of other labs --------------------------------------------------------------------

    def list_tasks(self, suite: Name, version: Name) -> Sequence[str]:
        """Lists the evals of a version of a suite whose files are stored, by their paths."""
        return self._store.suites.paths(suite, version)

    def save_tasks(
        self,
        suite: Name,
        version: Name,
        evals: Annotated[
            Sequence[Mapping[str, Any]],
            Sent(Sequence[TaskFiles]),
            Field(min_length=1, max_length=1000),
        ],
    ) -> Sequence[str]:
        """Stores the files of evals that are not stored yet, and lists the paths of all."""
        sources = [EvalSource(**{"answer": {}, "grader": {}, **files}) for files in evals]
        self._store.suites.save_tasks(suite, version, sources)
        return self.list_tasks(suite, version)

    def save_run(
        self,
        suite: Name,
        version: Name,
        model: Name,
        evals: Evals,
        *,
        condition: ConditionName = "default",
        settings: Annotated[Mapping[str, Any], Sent(ConditionSettings)] = DEFAULT_SETTINGS,
        series: Name = SERIES,
        replicates: Annotated[int, Field(ge=1, le=1000)] = 1,
        created: AwareDatetime | None = None,
    ) -> int:
        """Stores a run that another lab makes, or raises its targets, and returns its number."""
        valid_paths = set(self.list_tasks(suite, version))
        if unknown_paths := sorted({*evals} - valid_paths):
            raise NotFoundError(
                f"there is no eval {unknown_paths[0]!r} in version {version!r} of the suite "
                f"{suite!r} here; its files come first"
            )
        return self._store.suites.save_run(
            suite,
            version,
            model,
            condition,
            {**DEFAULT_SETTINGS, **settings},
            series,
            replicates=replicates,
            evals=evals,
            created=created,
        ).id

    def save_eval(
        self,
        run: Id,
        category: Part,
        name: Part,
        outcome: Annotated[Mapping[str, Any], Sent(Outcome)],
        at: Annotated[AwareDatetime, Field(description="When it was made; stored once per time.")],
        *,
        replicate: Count = 0,
        steps: Annotated[
            Sequence[Mapping[str, Any]], Sent(Sequence[Step]), Field(max_length=100)
        ] = (),
        files: Files = NO_FILES,
        seconds: Annotated[Amount, Field(description="Of the generation.")] = 0.0,
        usd: Amount | None = None,
        isolation: Word = "",
    ) -> int:
        """Stores a result of a run and returns its number. Only an inconclusive one is replaced."""
        suite_run = self._store.suites.find_run(run)
        result = EvalResult(
            category=category,
            name=name,
            outcome=read_outcome(outcome),
            replicate=replicate,
            steps=tuple(StepResult(**step) for step in steps),
            files=files,
            seconds=seconds,
            usd=usd,
            isolation=isolation,
        )
        if not 0 <= replicate < suite_run.replicates_of.get(result.path, 0):
            raise DesignError(f"run {run} asks for no replicate {replicate} of {result.path!r}")
        return self._store.suites.save_posted_result(suite_run, result, at)


def _condition(suite: Suite, name: str | Condition) -> Condition:
    """Finds a condition of a suite by its name. Any other is returned as it is."""
    if isinstance(name, Condition):
        return name
    if name not in suite.conditions:
        choices = list(suite.conditions)
        raise DesignError(unknown("condition", name, choices), choices=choices)
    return suite.conditions[name]


def _ablation_options(options: SuiteKeywords) -> SuiteKeywords:
    """Completes the options of an ablation, whose replicates have their own default."""
    replicates = options.get("replicates")
    return {**options, "replicates": ABLATION_REPLICATES if replicates is None else replicates}


def _ablation(suite: Suite, base: Condition, sections: Sequence[str]) -> list[Condition]:
    """Lists a condition and the same without each section of the guidelines."""
    if not suite.guidelines:
        raise DesignError(f"the suite {suite.name!r} has no guidelines to remove")
    return [base, *ablations(suite.guidelines, sections, base)]


def _run_row(report: SuiteReport) -> SuiteRunRow:
    """Converts a run to a response, without what only the command that just ran it knows."""
    row = {
        name: number_or_none(value) if isinstance(value, float) else value
        for name, value in report.to_json().items()
        if name not in EXECUTION
    }
    return as_record(SuiteRunRow, {**row, "created": report.run.created})


def _eval_row(row: SuiteResult) -> EvalRow:
    return as_record(EvalRow, eval_row(row))
