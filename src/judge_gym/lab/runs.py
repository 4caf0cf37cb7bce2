"""The noun `lab.runs`: plan, run, start, pause, cancel and watch the runs of studies."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack

from pydantic import Field

from judge_gym.engine import Engine, Result, RunOptions, RunProgress, Workflow, study_of
from judge_gym.errors import BudgetError, ConflictError, DesignError
from judge_gym.lab.cursors import all_rows, read_cursor, write_cursor
from judge_gym.lab.drafts import Drafts
from judge_gym.lab.estimates import Estimates
from judge_gym.lab.evidence import EvidenceLibrary
from judge_gym.lab.items import RERUN
from judge_gym.lab.plan_rows import planned_endpoints, planned_stage
from judge_gym.lab.prepare import PreparedStudy, refuse_recorded, targets_of
from judge_gym.lab.quick_studies import quick_study_text
from judge_gym.lab.run_controls import RunControls
from judge_gym.lab.run_states import RunStates, find_suite_run
from judge_gym.lab.studies import Studies, Target
from judge_gym.lab.study_files import StudySource
from judge_gym.lab.suite_reports import reports
from judge_gym.models import Registry
from judge_gym.records import Pool
from judge_gym.records.actors import current_actor
from judge_gym.records.inputs import ARTICLES, WORKFLOWS
from judge_gym.records.requests import (
    LOCAL,
    NOTHING,
    Budget,
    CallLimits,
    Id,
    Knobs,
    Name,
    Samples,
    Sent,
    Series,
    StudyText,
    Tag,
    TargetName,
)
from judge_gym.records.responses import (
    LabStatus,
    LogRow,
    PlannedExperiment,
    PlanSummary,
    QuickStudy,
    Reparsed,
    Retuned,
    as_record,
    as_records,
)
from judge_gym.store import LogCursor, Page, Run, Store, Targets

if TYPE_CHECKING:
    from judge_gym.engine.planner import Plan, StagePlan

UNREADABLE = {"parse_failed": "could not be read", "truncated": "were cut off (judge.max_tokens)"}
"""What is said of answers by the status of their verdicts."""
MANY_UNREADABLE = 0.1
"""The share of a judge's answers that may be unreadable without a warning."""
WatchProgress = Callable[[Sequence[RunProgress]], None]


class RunKeywords(TypedDict, total=False):
    """The fields of `RunOptions` as keyword arguments."""

    workflows: Annotated[
        Sequence[Workflow], Field(default=WORKFLOWS, min_length=1, max_length=len(WORKFLOWS))
    ]
    samples: Samples
    series: Series
    new_run: Annotated[bool, Field(default=False)]
    rivals: Annotated[Sequence[Name], Field(default=(), max_length=50)]
    budget: Annotated[Budget, Field(default=NOTHING)]
    overrides: Annotated[Knobs, Field(default=NOTHING, description="Knobs over those of the text.")]
    pause_after: Workflow | None
    only_failed: Annotated[bool, Field(default=False)]
    offline: Annotated[bool, LOCAL]
    allow_private: Annotated[bool, LOCAL]


class Runs:
    """Runs studies and experiments, and controls and watches their runs.

    A target is a study file, a study's name or an experiment's tag; `suite:RUN` is a suite run, and
    `analysis:NUMBER` an analysis of one.
    """

    def __init__(
        self,
        store: Store,
        models: Registry,
        engine: Engine,
        evidence: EvidenceLibrary,
        studies: Studies,
        drafts: Drafts,
    ) -> None:
        self._store = store
        self._models = models
        self._engine = engine
        self._evidence = evidence
        self._studies = studies
        self._drafts = drafts
        self._estimates = Estimates(store, models, engine)
        self._controls = RunControls(store, studies)
        self._states = RunStates(store, studies)

    # --- planning --------------------------------------------------------------------------------

    def plan(
        self,
        target: Annotated[Target | PreparedStudy | None, Sent(TargetName | None)] = None,
        *,
        study: StudyText = None,
        overrides: Annotated[Knobs, Field(description="Knobs over those of the text.")] = NOTHING,
        series: Series = None,
        samples: Samples = None,
    ) -> PlanSummary:
        """Estimates what a study would ask and cost at most, and what is in the ledger already.

        Args:
            target: a study file, a study's name or an experiment's tag, or a prepared study.
            study: instead of a target, the text of a study file.
            overrides: knobs over those of the study file's base design.
            series: draw scores and probes afresh under this name.
            samples: replicates per cell, instead of the study's.
        """
        source = self._source(target, study, overrides)
        plan, prepared = self.estimate(source, series=series, samples=samples)
        stages: dict[str, StagePlan] = dict(plan.stages.items())
        stages["all"] = plan.total()
        return {
            "study": prepared.study,
            "experiments": [
                as_record(PlannedExperiment, {"tag": tag, **counts})
                for tag, counts in plan.experiments.items()
            ],
            "stages": {name: planned_stage(stage) for name, stage in stages.items()},
            "endpoints": planned_endpoints(plan),
            "duplicates": dict(prepared.sweep.duplicates),
            "skipped_swaps": [*prepared.sweep.skipped_swaps],
            "budget": prepared.budget.model_dump(exclude_none=True),
            "warnings": [*prepared.warnings],
            "uncallable": self._estimates.uncallable(prepared),
        }

    def estimate(
        self,
        target: Target | PreparedStudy,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        samples: int | None = None,
    ) -> "tuple[Plan, PreparedStudy]":
        """Plans a target, and returns it with the warnings that planning adds."""
        if not isinstance(target, PreparedStudy):
            target = self._studies.prepare(target, overrides=overrides)
        return self._estimates.estimate(target, series=series, samples=samples)

    # --- running ---------------------------------------------------------------------------------

    def run(
        self,
        target: Target | PreparedStudy,
        *,
        watch: WatchProgress = lambda progress: None,
        concurrency: int | None = None,
        **options: Unpack[RunKeywords],
    ) -> Result:
        """Runs a study or experiments to the end without paying for stored answers again.

        Args:
            target: a study file, a study's name or an experiment's tag, or a prepared study.
            watch: called with the progress counters before the work starts.
            concurrency: calls in flight at most, within the lab's own limit.
            options: see `RunOptions`.
        """
        run_options = RunOptions(**options)
        source = self._source(target, None, run_options.overrides)
        prepared = self._collect_then_prepare(source, run_options)
        new_calls = self._estimates.note_new_calls(prepared, run_options)
        prepared, runs, notes = self._save_runs(prepared, run_options, _name(source))
        result = self._engine.execute(
            prepared.study,
            runs,
            run_options,
            budget=prepared.budget,
            watch=watch,
            concurrency=concurrency,
        )
        unreadable = _unreadable(prepared.study, runs, result)
        all_notes = (*prepared.warnings, *new_calls, *notes, *result.warnings, *unreadable)
        warnings = tuple(dict.fromkeys(all_notes))
        if not isinstance(result.stopped, BudgetError):
            return replace(result, warnings=warnings)
        left = self._estimates.remaining(runs)
        enough = self._estimates.sufficient_budget(prepared.study, runs, left)
        return replace(result, warnings=warnings, left=left, enough=enough)

    def start(
        self,
        target: Annotated[Target | PreparedStudy | None, Sent(TargetName | None)] = None,
        *,
        study: StudyText = None,
        **options: Unpack[RunKeywords],
    ) -> Sequence[str]:
        """Queues a study or an experiment for a worker and returns the tags at once."""
        run_options = RunOptions(**options)
        source = self._source(target, study, run_options.overrides)
        prepared = self._collect_then_prepare(source, run_options)
        prepared, runs, _ = self._save_runs(prepared, run_options, _name(source))
        clashes = self._engine.start(runs, run_options, budget=prepared.budget)
        if clashes:
            raise ConflictError(
                f"{' and '.join(clashes[:3])} is being executed with other options; "
                "start it when that has ended, or pause it first"
            )
        return [run.experiment.tag for run in runs]

    # --- preparing, in the order in which it happens ---------------------------------------------

    def _source(
        self,
        target: Target | PreparedStudy | None,
        study: str | None,
        overrides: Mapping[str, Any],
    ) -> str | StudySource | PreparedStudy:
        """Reads a study file or the text of one. A name is returned as it is."""
        if study is not None and target is None:
            return self._studies.prepare_text(study, overrides=overrides)
        if target is None or study is not None:
            raise DesignError("give either target or study")
        if isinstance(target, PreparedStudy):
            return target
        return self._studies.read(target, overrides)

    def _collect_then_prepare(
        self, source: str | StudySource | PreparedStudy, options: RunOptions
    ) -> PreparedStudy:
        """Prepares a study whose evidence is collected first, if it has to be searched for."""
        if isinstance(source, PreparedStudy):
            return source
        if not options.offline:
            collected = self._evidence.collect_missing(source, allow_private=options.allow_private)
            for result in collected.values():
                result.raise_error()
                if result.found.interrupted:
                    raise KeyboardInterrupt
            if "evidence" in options.workflows and isinstance(source, str):
                self._drafts.freeze_all(self._studies.find(source), ARTICLES)
        return self._studies.prepare(source)

    def _save_runs(
        self, prepared: PreparedStudy, options: RunOptions, target: str | None
    ) -> tuple[PreparedStudy, Sequence[Run], Sequence[str]]:
        """Saves runs with their targets, and refuses those that cannot be executed.

        `target` is the study or tag that the user named, where there is one.
        """
        from judge_gym.engine.steps import makers

        self._engine.refuse_copy()
        prepared = replace(prepared, budget=prepared.budget.changed(options.budget))
        targets, notes = targets_of(
            prepared, self._models, samples=options.samples, rivals=options.rivals
        )
        swaps_only = set(options.workflows) == {"swap"}
        if swaps_only and not any(each.rivals for each in targets.values()):
            raise DesignError("no swap is asked for; set swap: all, or name an author with --from")
        for experiment in prepared.sweep.experiments:
            series = options.series or str(experiment.seed)
            run = Run(0, experiment, prepared.study, series, *targets[experiment.tag])
            self._engine.refuse_unrunnable(run, options, prepared.budget, target)
        limits = prepared.budget.model_dump(exclude_none=True)
        if prepared.file is not None or options.budget:
            self._store.studies.save(prepared.study, limits, prepared.file, prepared.declared)
        runs = [
            self._store.runs.save(
                saved,
                prepared.study,
                options.series or str(saved.seed),
                targets[saved.tag],
                makers=makers(saved),
                exact=options.samples is not None,
                new=options.new_run,
            )
            for saved in self._studies.save_all(prepared)
        ]
        ids = {item.hash: item.id for run in runs for item in run.experiment.task.pool.items}
        labels = (
            {"evidence_id": ids[hash], "concept": concept, "rater": rater, "stage": stage}
            for hash, concept, rater, stage in prepared.labels
        )
        self._store.labels.save(labels, replace=True)
        return prepared, runs, notes

    # --- one verdict again, and experiments of a window ------------------------------------------

    def rerun_sample(self, sample: Id) -> Sequence[str]:
        """Queues one fresh verdict of a sample's judge on the same item under the returned tag.

        A recorded answer is never replaced. The fresh verdict belongs to an experiment of its own,
        which has the item alone and a new series, so that no result of the study counts it.
        """
        row = self._store.samples.find(sample)
        if row["is_swap"]:
            raise ConflictError(
                f"sample {sample} was scored under another judge's rubric; choose one of the "
                f"experiment whose rubric that is"
            )
        experiment, _ = self._store.experiments.find(row["tag"])
        refuse_recorded(row["tag"], experiment.design.values())
        pool = experiment.task.pool
        item = next(item for item in pool.items if item.id == row["evidence"])
        tag = f"{row['tag'].partition(RERUN)[0]}{RERUN}{row['evidence']}"
        single_item = replace(experiment.task, pool=Pool((item,), pool.window))
        self._studies.save("", replace(experiment, tag=tag, task=single_item))
        prepared = self._studies.prepare_tags([tag])
        targets = {tag: Targets(1, (), probe=False, tolerance=0.0)}
        number = len(self._store.progress.of_tag(tag)) + 1
        return self.start(replace(prepared, targets=targets), series=f"rerun-{number}")

    def run_evidence(
        self,
        *,
        window_id: int | None = None,
        tag: str | None = None,
        limit: int = ARTICLES,
        watch: WatchProgress = lambda progress: None,
    ) -> Result:
        """Runs W1 to its end, as `start_evidence` describes."""
        prepared = self._drafts.prepare_with_evidence(window_id, tag, limit)
        return self.run(prepared, workflows=["evidence"], watch=watch)

    def start_evidence(
        self,
        *,
        window_id: Id | None = None,
        tag: Tag | None = None,
        limit: Annotated[int, Field(ge=1, le=1000, description="Articles of a search.")] = ARTICLES,
    ) -> Sequence[str]:
        """Starts W1 of a window's experiments or of one: searches for drafts, then makes views.

        Each concept of a draft is searched once with the lab's source, unless the window holds
        evidence; what is found is frozen as the draft's pool. Returns the tags.

        Args:
            window_id: the window on which experiments were created.
            tag: one experiment alone.
            limit: the most articles that a search keeps.
        """
        prepared = self._drafts.prepare_with_evidence(window_id, tag, limit)
        return self.start(prepared, workflows=["evidence"])

    def quick_study(
        self,
        texts: Annotated[
            Sequence[Annotated[str, Field(min_length=1)] | Mapping[str, Any]],
            Field(min_length=1, max_length=1000, description="Or {text, title?, truth?}."),
        ],
        question: Annotated[Name, Field(description="What is judged: politeness.")],
        judges: Annotated[Sequence[Name], Field(min_length=1, max_length=50)],
        *,
        vary: Annotated[
            Mapping[str, Sequence[Any]], Field(description="Levels by knob.")
        ] = NOTHING,
        stages: Annotated[
            Sequence[Name],
            Field(
                max_length=26, description="`label: criterion`, lowest first; else judges write."
            ),
        ] = (),
        samples: Annotated[int, Field(ge=1, le=1000)] = 3,
        name: Annotated[str | None, Field(pattern=r"^[\w.-]+$", max_length=100)] = None,
        budget: Budget = NOTHING,
    ) -> QuickStudy:
        """Has judges judge texts, under each design that varies one knob, and queues the study.

        Args:
            texts: each a text, or an item with `text` and optionally `title` and `truth`.
            question: what is judged, such as `politeness`.
            judges: models.
            vary: levels by knob; one knob is varied at a time.
            stages: from the lowest, each `label` or `label: criterion`; else judges write a rubric.
            samples: repeats per judge, item and design.
            name: of the study; else one is made from its content.
            budget: what it may spend: usd, calls, tokens, minutes; needed for models that cost.
        """
        if not budget and any(not self._models.card(judge).simulated for judge in judges):
            raise DesignError("judges that are not simulated need a budget, such as usd: 1")
        text = quick_study_text(
            texts,
            question,
            judges,
            vary=vary,
            stages=stages,
            samples=samples,
            name=name,
            budget=budget,
        )
        plan, prepared = self.estimate(self._studies.prepare_text(text))
        tags = self.start(prepared)
        total = plan.total()
        return {
            "study": prepared.study,
            "started": [*tags],
            "calls": total.to_pay,
            "usd": total.usd,
            "warnings": [*prepared.warnings],
        }

    # --- controlling -----------------------------------------------------------------------------

    def pause(self, target: TargetName) -> Sequence[str]:
        """Pauses unfinished runs in every process, but not calls in flight; lists their tags."""
        return self._controls.record(target, "paused", f"Paused by {current_actor()}")

    def cancel(self, target: TargetName) -> Sequence[str]:
        """Ends unfinished runs and lists their tags. Only `run` continues them."""
        return self._controls.record(target, "cancelled", f"Cancelled by {current_actor()}")

    def resume(
        self,
        target: TargetName,
        *,
        budget: Budget = NOTHING,
        pause_after: Workflow | None = None,
        series: Annotated[Series, Field(description="By default that of the seed.")] = None,
    ) -> Sequence[str]:
        """Queues what was paused, interrupted or over its budget, and returns the tags."""
        source = self._studies.read(target)
        if series is not None:
            self._controls.refuse_unknown_series(source, series)
        if (suite_run := find_suite_run(self._store, source)) is not None:
            [report] = reports(self._store, [suite_run])
            stops = [] if report.ended else [report.event]
            self._controls.refuse_exhausted(target, study_of(suite_run.suite), stops, budget)
            self._controls.change_budget(study_of(suite_run.suite), budget)
            self._engine.start_suites([suite_run])
            return [target]
        rows = self._studies.find(source)
        progress = self._store.progress.of_tags([row["tag"] for row in rows])
        stops = [
            run.event
            for runs in progress.values()
            for run in runs
            if not run.complete and series in (None, run.series)
        ]
        self._controls.refuse_exhausted(target, str(rows[0]["study"]), stops, budget)
        return self.start(source, budget=budget, pause_after=pause_after, series=series)

    def run_resumed(
        self,
        target: str,
        *,
        budget: Mapping[str, Any] | None = None,
        pause_after: Workflow | None = None,
        series: str | None = None,
        watch: WatchProgress = lambda progress: None,
    ) -> Result:
        """Continues what was paused, interrupted or over its budget, to its end."""
        source = self._studies.read(target)
        if series is not None:
            self._controls.refuse_unknown_series(source, series)
        return self.run(
            source, budget=budget or {}, pause_after=pause_after, series=series, watch=watch
        )

    def retry(self, target: TargetName) -> Sequence[str]:
        """Queues the failed calls of runs to be asked again, and returns the tags."""
        return self.start(target, only_failed=True)

    def retune(
        self,
        target: TargetName,
        *,
        budget: Budget = NOTHING,
        limits: Annotated[Mapping[str, int | None], Sent(CallLimits)] = NOTHING,
    ) -> Retuned:
        """Changes the budget of a study, or limits on calls, while its runs continue."""
        return self._controls.retune(target, budget=budget, limits=limits)

    def reparse(
        self,
        target: TargetName,
        *,
        write: Annotated[bool, Field(description="Change the records; else only compare.")] = False,
    ) -> Reparsed:
        """Reads stored answers with today's parsers and counts what changes, asking nothing."""
        from judge_gym.lab.reparse import reparse

        tags = [row["tag"] for row in self._studies.find(target)]
        with self._engine.lock() if write else nullcontext():
            return as_record(Reparsed, reparse(self._store, tags, write=write).to_json())

    # --- watching --------------------------------------------------------------------------------

    def status(
        self,
        target: TargetName | None = None,
        *,
        limit: Annotated[int, Field(ge=1, le=1000, description="Experiments at most.")] = 20,
    ) -> LabStatus:
        """Reports the progress of a target's runs, or of the newest, active ones first."""
        return self._states.status(target, limit=limit)

    def wait(
        self,
        target: TargetName,
        *,
        timeout: Annotated[float, Field(ge=0, le=50, description="Seconds.")] = 30,
    ) -> LabStatus:
        """Waits until a target has ended, or for some seconds, and returns its progress.

        Args:
            target: a study, a tag, `suite:RUN` or `analysis:NUMBER`.
            timeout: seconds.
        """
        return self._states.wait(target, timeout=timeout)

    def logs(self, target: TargetName | None = None) -> Sequence[LogRow]:
        """Lists events of runs, and failed attempts at calls with the reason, newest first."""
        return as_records(LogRow, all_rows(partial(self.page_logs, target)))

    def page_logs(
        self, target: str | None = None, *, after: str | None = None, limit: int = 100
    ) -> Page:
        """Reads a page of the log, after the cursor of the previous page."""
        if target is not None:
            self._studies.find(target)
        cursor = LogCursor(*read_cursor(after, int, int)) if after is not None else None
        rows, following = self._store.logs.page(target, after=cursor, limit=limit)
        return Page(rows, write_cursor(following))


def _name(source: str | StudySource | PreparedStudy) -> str | None:
    """The name by which a command can refer to the source again, if it has one."""
    if isinstance(source, StudySource):
        return source.study.file
    return source if isinstance(source, str) else None


def _unreadable(study: str, runs: Sequence[Run], result: Result) -> list[str]:
    """Warns about judges many of whose answers could not be read, or were cut off."""
    answers: Counter[str] = Counter()
    unreadable: Counter[tuple[str, str]] = Counter()
    for run, ended in zip(runs, result.runs, strict=True):
        judge = run.experiment.design.judge.model
        answers[judge] += sum(ended.counts.values()) - ended.counts.get("provider_error", 0)
        for status in UNREADABLE:
            unreadable[judge, status] += ended.counts.get(status, 0)
    return [
        f"{count:,} of {answers[judge]:,} answers of {judge} {UNREADABLE[status]}; list them with: "
        f"'judge-gym answers {study} --status {status}'"
        for (judge, status), count in unreadable.items()
        if count > MANY_UNREADABLE * answers[judge]
    ]
