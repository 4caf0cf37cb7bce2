"""The noun `lab.runs`: plan, run, start, pause, cancel and watch the runs of studies."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

import yaml

from judge_gym.engine import (
    FINISHED,
    WORKFLOWS,
    Engine,
    Result,
    RunOptions,
    RunProgress,
    Spend,
    Workflow,
    enough,
    study_of,
)
from judge_gym.errors import BudgetError, ConflictError, DesignError, NotFoundError, unknown
from judge_gym.lab.cursors import all_rows, read_cursor, write_cursor
from judge_gym.lab.evidence import EvidenceLibrary
from judge_gym.lab.experiments import Experiments, run_counts
from judge_gym.lab.items import RERUN
from judge_gym.lab.plan_rows import planned_endpoints, planned_stage
from judge_gym.lab.prepare import PreparedStudy, refuse_recorded, targets_of
from judge_gym.lab.suite_reports import SuiteReport, reports
from judge_gym.models import Registry
from judge_gym.records import Pool, SuiteRun, digest
from judge_gym.records.actors import current_actor
from judge_gym.records.build import build, version
from judge_gym.records.environment import DATABASE_URL, WORKER_LOG
from judge_gym.records.inputs import ARTICLES, STUDY_SUFFIXES
from judge_gym.records.responses import (
    LabStatus,
    LogRow,
    PlannedExperiment,
    PlanSummary,
    QuickStudy,
    Reparsed,
    Retuned,
    RunState,
)
from judge_gym.store import (
    AnalysisRecord,
    Event,
    Kind,
    LogCursor,
    Page,
    Progress,
    Run,
    Store,
    Targets,
)
from judge_gym.store.database import DEFAULT
from judge_gym.studies import BudgetSpec, Caps

if TYPE_CHECKING:
    from judge_gym.engine.planner import Plan, StagePlan
    from judge_gym.engine.workflow import Analyze

DEFAULTS = "defaults"
"""The reason for new calls of a study whose file says the same as before."""
UNREADABLE = {"parse_failed": "could not be read", "truncated": "were cut off (judge.max_tokens)"}
"""What is said of answers by the status of their verdicts."""
MANY_UNREADABLE = 0.1
"""The share of a judge's answers that may be unreadable without a warning."""
POLL = 0.3
"""Seconds between two looks at what is waited for."""
WatchProgress = Callable[[Sequence[RunProgress]], None]


class RunKeywords(TypedDict, total=False):
    """The fields of `RunOptions` as keyword arguments."""

    workflows: Sequence[Workflow]
    samples: int | None
    series: str | None
    new_run: bool
    rivals: Sequence[str]
    budget: Mapping[str, Any]
    overrides: Mapping[str, Any]
    offline: bool
    pause_after: Workflow | None
    only_failed: bool
    allow_private: bool
    confirmed: bool


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
        experiments: Experiments,
        *,
        analyze: "Analyze | None" = None,
    ) -> None:
        self._store = store
        self._analyze = analyze
        self._models = models
        self._engine = engine
        self._evidence = evidence
        self._experiments = experiments

    # --- running ---------------------------------------------------------------------------------

    def plan(
        self,
        target: str | Path | PreparedStudy | None = None,
        *,
        study: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        samples: int | None = None,
    ) -> PlanSummary:
        """Estimates what a study would ask and cost at most, and what is in the ledger already.

        Args:
            target: a study file, a study's name or an experiment's tag, or a prepared study.
            study: instead of a target, the text of a study file.
            overrides: knobs over those of the study file's base design.
            series: draw scores and probes afresh under this name.
            samples: replicates per cell, instead of the study's.
        """
        source = self._prepared(target, study, overrides or {})
        plan, prepared = self.estimate(source, series=series, samples=samples)
        stages: dict[str, StagePlan] = dict(plan.stages.items())
        stages["all"] = plan.total()
        return {
            "study": prepared.study,
            "experiments": [
                cast(PlannedExperiment, {"tag": tag, **counts})
                for tag, counts in plan.experiments.items()
            ],
            "stages": {name: planned_stage(stage) for name, stage in stages.items()},
            "endpoints": planned_endpoints(plan),
            "duplicates": dict(prepared.sweep.duplicates),
            "skipped_swaps": [*prepared.sweep.skipped_swaps],
            "budget": prepared.budget.model_dump(exclude_none=True),
            "warnings": [*prepared.warnings],
            "uncallable": self._uncallable(prepared),
        }

    def _uncallable(self, prepared: PreparedStudy) -> list[str]:
        """Returns why models of a study cannot be called, such as a key that is not set."""
        reasons: dict[str, None] = {}
        for experiment in prepared.sweep.experiments:
            rivals = prepared.targets[experiment.tag].rivals
            try:
                self._engine.refuse_uncallable(experiment.design, rivals, WORKFLOWS)
            except DesignError as error:
                reasons[error.message] = None
        return [*reasons]

    def estimate(
        self,
        target: str | Path | PreparedStudy,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        samples: int | None = None,
    ) -> "tuple[Plan, PreparedStudy]":
        """Plans a target, and returns it with the warnings that planning adds."""
        prepared = self._prepared(target, None, overrides or {})
        targets, notes = targets_of(prepared, self._models, samples=samples)
        planner = self._engine.planner()
        for experiment in prepared.sweep.experiments:
            drawn = series or str(experiment.seed)
            asked = targets[experiment.tag]
            active = self._store.runs.targets(experiment, prepared.study, drawn)
            if active is not None:
                asked = active.raised(asked, exact=samples is not None)
            planner.add(Run(0, experiment, prepared.study, drawn, *asked))
        notes += self._uncallable(prepared)
        for study, calls in planner.payers().items():
            if study != prepared.study:
                whose = f"study {study!r}" if study else "experiments without a study"
                notes.append(f"{calls} calls are shared with {whose}, which paid for them")
        notes += self._shared_experiments(prepared, series)
        notes += _new_calls(self._changes(prepared), planner.plan)
        noted = tuple(dict.fromkeys([*prepared.warnings, *notes]))
        return planner.plan, replace(prepared, warnings=noted)

    def _shared_experiments(self, prepared: PreparedStudy, series: str | None) -> list[str]:
        """Returns notes on unfinished runs of other studies that ask the same."""
        notes = []
        for tag, shared in self._store.runs.others(
            {made.digest: series or str(made.seed) for made in prepared.sweep.experiments},
            prepared.study,
        ).items():
            [progress] = [run for run in self._store.progress.of_tag(tag) if run.run_id == shared]
            if not progress.complete:
                notes.append(
                    f"{tag} is unfinished and asks the same: the study that asks first pays, and "
                    "each keeps its own samples, status and budget"
                )
        return notes

    def run(
        self,
        target: str | Path | PreparedStudy,
        *,
        watch: WatchProgress = lambda progress: None,
        concurrency: int | None = None,
        **options: Unpack[RunKeywords],
    ) -> Result:
        """Runs a study or experiments to the end; answers in the ledger are not paid for again.

        Args:
            target: a study file, a study's name or an experiment's tag, or a prepared study.
            watch: called with the progress counters before the work starts.
            concurrency: calls in flight at most, within the lab's own limit.
            options: see `RunOptions`.
        """
        chosen = RunOptions(**options)
        source = self._collected(target, chosen)
        new_calls = self._confirmed_calls(source, chosen)
        prepared, runs, notes = self._stored(source, chosen, _name(target))
        result = self._engine.execute(
            prepared.study,
            runs,
            chosen,
            budget=prepared.budget,
            watch=watch,
            concurrency=concurrency,
        )
        unread = _unreadable(prepared.study, runs, result)
        noted = (*prepared.warnings, *new_calls, *notes, *result.warnings, *unread)
        warnings = tuple(dict.fromkeys(noted))
        if not isinstance(result.stopped, BudgetError):
            return replace(result, warnings=warnings)
        left = self._left(runs)
        enough = self._enough(prepared.study, runs, left)
        return replace(result, warnings=warnings, left=left, enough=enough)

    def start(
        self,
        target: str | Path | PreparedStudy | None = None,
        *,
        study: str | None = None,
        **options: Unpack[RunKeywords],
    ) -> Sequence[str]:
        """Queues a study or an experiment for a worker and returns the tags at once."""
        chosen = RunOptions(**options)
        source = target if study is None else self._prepared(target, study, chosen.overrides)
        collected = self._collected(source, chosen)
        self._confirmed_calls(collected, chosen)
        prepared, runs, _ = self._stored(collected, chosen, _name(target))
        clashes = self._engine.start(runs, chosen, budget=prepared.budget)
        if clashes:
            raise ConflictError(
                f"{' and '.join(clashes[:3])} is being executed with other options; "
                "start it when that has ended, or pause it first"
            )
        return [run.experiment.tag for run in runs]

    def rerun_sample(self, sample: int) -> Sequence[str]:
        """Queues one fresh verdict of a sample's judge on the same item; returns its tag.

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
        alone = replace(experiment.task, pool=Pool((item,), pool.window))
        self._experiments.save("", replace(experiment, tag=tag, task=alone))
        prepared = self._experiments.prepare_found([tag])
        once = replace(prepared, targets={tag: Targets(1, (), probe=False, tolerance=0.0)})
        number = len(self._store.progress.of_tag(tag)) + 1
        return self.start(once, series=f"rerun-{number}")

    def run_evidence(
        self,
        *,
        window_id: int | None = None,
        tag: str | None = None,
        limit: int = ARTICLES,
        watch: WatchProgress = lambda progress: None,
    ) -> Result:
        """Runs W1 to its end; see `start_evidence`."""
        prepared = self._with_evidence(window_id, tag, limit)
        return self.run(prepared, workflows=["evidence"], watch=watch)

    def start_evidence(
        self,
        *,
        window_id: int | None = None,
        tag: str | None = None,
        limit: int = ARTICLES,
    ) -> Sequence[str]:
        """Starts W1 of a window's experiments or of one: searches for drafts, then makes views.

        Each concept of a draft is searched once with the lab's source, unless the window holds
        evidence; what is found is frozen as the draft's pool. Returns the tags.

        Args:
            window_id: the window on which experiments were created.
            tag: one experiment alone.
            limit: the most articles that a search keeps.
        """
        return self.start(self._with_evidence(window_id, tag, limit), workflows=["evidence"])

    def _with_evidence(self, window_id: int | None, tag: str | None, limit: int) -> PreparedStudy:
        """Prepares experiments whose drafts are given their evidence first."""
        if window_id is None and tag is None:
            raise DesignError("give a window or an experiment's tag")
        rows = self._experiments.created_on(window_id) if window_id is not None else None
        if tag is not None:
            [row] = self._experiments.find(tag)
            if rows is not None and row not in rows:
                raise DesignError(f"{tag} was not created on the window {window_id}")
            rows = [row]
        if not rows:
            raise ConflictError(
                f"no experiment was created on the window {window_id}; create one first: its "
                "concept is what is searched for"
            )
        self._freeze_drafts(rows, limit)
        return self._experiments.prepare_found([row["tag"] for row in rows])

    def _freeze_drafts(self, rows: Sequence[Mapping[str, Any]], limit: int) -> None:
        """Gives drafts what their window holds, else what a search for their concept finds."""
        for row in rows:
            if not row["draft"]:
                continue
            draft, pool = self._experiments.find_draft(row["tag"])
            if not pool.items and draft.task.type != "benchmark":
                self._engine.refuse_uncallable(draft.design, (), ["evidence"])
                assert pool.window is not None, "a draft is created on a window"
                pool = self._evidence.search(draft.task.concept, pool.window, limit=limit)
            self._experiments.freeze(draft, pool)

    def quick_study(
        self,
        texts: Sequence[str | Mapping[str, Any]],
        question: str,
        judges: Sequence[str],
        *,
        vary: Mapping[str, Sequence[Any]] | None = None,
        stages: Sequence[str] = (),
        samples: int = 3,
        name: str | None = None,
        budget: Mapping[str, Any] | None = None,
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
        items = [text if isinstance(text, str) else dict(text) for text in texts]
        task = {"concept": question, "evidence": "texts"}
        study: dict[str, Any] = {
            "study": name or f"quick-{digest([items, question, [*stages]])[:8]}",
            "samples": samples,
            "evidence": {"texts": {"items": items}},
            "tasks": [{**task, "rubric": [*stages]} if stages else task],
            "judges": [*judges],
            "vary": {knob: [*levels] for knob, levels in (vary or {}).items()},
            "sweep": "ablate",
            "probe": False,
            "budget": dict(budget or {}),
        }
        text = yaml.safe_dump(study, sort_keys=False, allow_unicode=True, width=100)
        plan, prepared = self.estimate(self._experiments.prepare_text(text))
        started = self.start(prepared)
        total = plan.total()
        return {
            "study": study["study"],
            "started": [*started],
            "calls": total.to_pay,
            "usd": total.usd,
            "warnings": [*prepared.warnings],
        }

    def resume(
        self,
        target: str,
        *,
        budget: Mapping[str, Any] | None = None,
        pause_after: Workflow | None = None,
        series: str | None = None,
    ) -> Sequence[str]:
        """Queues what was paused, interrupted or over its budget, and returns the tags."""
        if series is not None:
            self.refuse_unknown_series(target, series)
        if (suite_run := self._suite_run(target)) is not None:
            [report] = reports(self._store, [suite_run])
            stops = [] if report.ended else [report.event]
            self._refuse_exhausted(target, study_of(suite_run.suite), stops, budget or {})
            self._change_budget(study_of(suite_run.suite), budget or {})
            self._engine.start_suites([suite_run])
            return [target]
        rows = self._experiments.find(target)
        progress = self._store.progress.of_tags([row["tag"] for row in rows])
        stops = [
            run.event
            for runs in progress.values()
            for run in runs
            if not run.complete and series in (None, run.series)
        ]
        self._refuse_exhausted(target, str(rows[0]["study"]), stops, budget or {})
        return self.start(target, budget=budget or {}, pause_after=pause_after, series=series)

    def refuse_unknown_series(self, target: str, series: str) -> None:
        """Raises an error where no run of a target has this series: there is nothing to resume."""
        if (suite_run := self._suite_run(target)) is not None:
            known = {suite_run.series}
        else:
            tags = [row["tag"] for row in self._experiments.find(target)]
            progress = self._store.progress.of_tags(tags)
            known = {run.series for runs in progress.values() for run in runs}
        if series not in known:
            raise NotFoundError(unknown("series", series, sorted(known)), choices=sorted(known))

    def _refuse_exhausted(
        self,
        target: str,
        study: str,
        stops: Sequence[Event | None],
        budget: Mapping[str, Any],
    ) -> None:
        """Raises an error where all unfinished runs stopped at the budget that still applies.

        Args:
            target: as it was named.
            study: whose budget it is.
            stops: the last event of each unfinished run.
            budget: limits instead of the study's.
        """
        now = BudgetSpec.model_validate(self._store.studies.budget(study)).changed(budget)
        exhausted = [
            event
            for event in stops
            if event is not None
            and event.kind == "over-budget"
            and "budget" in event.detail
            and BudgetSpec.model_validate(event.detail["budget"]) == now
        ]
        if exhausted and len(exhausted) == len(stops):
            limits = now.model_dump(exclude_none=True)
            name = next((name for name in limits if name != "run"), "run.calls")
            raise BudgetError(
                f"{exhausted[0].message}: nothing was started; raise it with "
                f"'judge-gym resume {target} --budget {name}=LIMIT'"
            )

    def retry(self, target: str) -> Sequence[str]:
        """Queues the failed calls of runs to be asked again, and returns the tags."""
        return self.start(target, only_failed=True)

    def _prepared(
        self,
        target: str | Path | PreparedStudy | None,
        study: str | None,
        overrides: Mapping[str, Any],
    ) -> PreparedStudy:
        if (target is None) == (study is None):
            raise DesignError("give either target or study")
        if study is not None:
            return self._experiments.prepare_text(study, overrides=overrides)
        if isinstance(target, PreparedStudy):
            return target
        return self._experiments.prepare(target or "", overrides=overrides)

    def _changes(self, prepared: PreparedStudy) -> dict[str, str]:
        """Returns what has changed in experiments since they were last run, by tag."""
        stored = {
            row["tag"]: row["digest"] for row in self._store.experiments.rows(study=prepared.study)
        }
        changes = {}
        for new in prepared.sweep.experiments:
            if new.tag in prepared.changed_by_defaults:
                changes[new.tag] = DEFAULTS
                continue
            if stored.get(new.tag, new.digest) == new.digest:
                continue
            old, _ = self._store.experiments.find(new.tag)
            if not self._store.progress.of_tag(new.tag):
                continue
            pools = (old.task.pool, new.task.pool)
            rubrics = [task.rubric.stages if task.rubric else () for task in (old.task, new.task)]
            changed = [
                *([new.task.rubric_file or "the rubric"] if rubrics[0] != rubrics[1] else []),
                *([f"evidence {new.task.pool_name!r}"] if pools[0].hash != pools[1].hash else []),
            ]
            changes[new.tag] = " and ".join(changed) or "the design"
        return changes

    def _confirmed_calls(self, prepared: PreparedStudy, options: RunOptions) -> list[str]:
        """Returns notes on new calls; refuses those of changed defaults that are not confirmed."""
        changes = {} if options.offline else self._changes(prepared)
        if not changes:
            return []
        plan, _ = self.estimate(prepared, series=options.series, samples=options.samples)
        notes = _new_calls(changes, plan)
        unconfirmed = _new_calls({t: c for t, c in changes.items() if c == DEFAULTS}, plan)
        if unconfirmed and not options.confirmed:
            raise ConflictError(
                f"{unconfirmed[0]}, and nothing was started: keep its experiments with protocol: "
                "contested-concepts and their evidence.editor and rubric.critic in the study, or "
                "pay for new ones with --yes (confirmed: true)"
            )
        return notes

    def _collected(
        self, target: str | Path | PreparedStudy | None, options: RunOptions
    ) -> PreparedStudy:
        """Prepares a target whose evidence is collected first, if it has to be searched for."""
        if not options.offline and isinstance(target, str | Path):
            collected = self._evidence.collect_missing(target, allow_private=options.allow_private)
            for result in collected.values():
                result.raise_error()
                if result.found.interrupted:
                    raise KeyboardInterrupt
            if "evidence" in options.workflows and Path(target).suffix not in STUDY_SUFFIXES:
                self._freeze_drafts(self._experiments.find(str(target)), ARTICLES)
        return self._prepared(target, None, options.overrides)

    def _stored(
        self, prepared: PreparedStudy, options: RunOptions, target: str | None
    ) -> tuple[PreparedStudy, Sequence[Run], Sequence[str]]:
        """Stores runs with their targets; refuses those that cannot be executed.

        `target` is the study or tag that the user named, where there is one.
        """
        from judge_gym.engine.steps import makers

        self._engine.refuse_copy()
        prepared = replace(prepared, budget=prepared.budget.changed(options.budget))
        targets, notes = targets_of(
            prepared, self._models, samples=options.samples, rivals=options.rivals
        )
        swaps_only = set(options.workflows) == {"swap"}
        if swaps_only and not any(asked.rivals for asked in targets.values()):
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
            for saved in self._experiments.save_all(prepared)
        ]
        ids = {item.hash: item.id for run in runs for item in run.experiment.task.pool.items}
        labels = (
            {"evidence_id": ids[hash], "concept": concept, "rater": rater, "stage": stage}
            for hash, concept, rater, stage in prepared.labels
        )
        self._store.evidence.save_labels(labels, replace=True)
        return prepared, runs, notes

    def _left(self, runs: Sequence[Run]) -> "StagePlan":
        """Returns what is still to be paid of runs that were started."""
        planner = self._engine.planner()
        for run in runs:
            planner.add(run)
        return planner.plan.total()

    def _enough(self, study: str, runs: Sequence[Run], left: "StagePlan") -> dict[str, float]:
        """Returns the limits that would be enough to end a study's runs."""
        budget = BudgetSpec.model_validate(self._store.studies.budget(study))
        whole = self._spend(study, left)
        most = Spend()
        for run in runs if budget.run != Caps() else ():
            own = self._spend(run.id, self._left([run]))
            most = Spend(*map(max, astuple(most), astuple(own)))
        return enough(budget, whole, most, left.seconds / 60)

    def _spend(self, payer: str | int, left: "StagePlan") -> Spend:
        """Returns what a study or a run has paid, with what is left to pay."""
        calls, tokens, usd, _ = self._store.usage.paid(payer, 0)
        ahead = left.input_tokens + left.output_tokens
        return Spend(calls + left.to_pay, tokens + ahead, usd + (left.usd or 0.0))

    # --- controlling -----------------------------------------------------------------------------

    def pause(self, target: str) -> Sequence[str]:
        """Starts no further call of unfinished runs, in any process; returns their tags."""
        return self._record(target, "paused", f"Paused by {current_actor()}")

    def cancel(self, target: str) -> Sequence[str]:
        """Stops unfinished runs for good: only `run` continues them; returns their tags."""
        return self._record(target, "cancelled", f"Cancelled by {current_actor()}")

    def retune(
        self,
        target: str,
        *,
        budget: Mapping[str, Any] | None = None,
        limits: Mapping[str, int | None] | None = None,
    ) -> Retuned:
        """Changes the budget of a study, or limits on calls, while its runs continue."""
        suite_run = self._suite_run(target)
        if suite_run is not None:
            study = study_of(suite_run.suite)
        else:
            study = str(self._experiments.find(target)[0]["study"])
        changed = self._change_budget(study, budget or {})
        budget_now = changed.model_dump(exclude_none=True)
        set_now = {name: limit for name, limit in (limits or {}).items() if limit is not None}
        detail = {"budget": budget_now, "limits": set_now}
        parts = (f"{name}: {_limits_text(given)}" for name, given in detail.items() if given)
        self._record(target, "retuned", "; ".join(parts), detail)
        return {"budget": budget_now, "limits": set_now}

    def _change_budget(self, study: str, budget: Mapping[str, Any]) -> BudgetSpec:
        before = BudgetSpec.model_validate(self._store.studies.budget(study))
        changed = before.changed(budget)
        if changed != before:
            self._store.studies.save(study, changed.model_dump(exclude_none=True))
        return changed

    def _suite_run(self, target: str) -> SuiteRun | None:
        """Returns the suite run that `suite:RUN` names; None for every other target."""
        kind, _, number = target.partition(":")
        if kind != "suite":
            return None
        if not number.isdecimal():
            raise NotFoundError(f"{target!r} is no suite run; give its number, such as suite:3")
        return self._store.suites.find_run(int(number))

    def _analysis(self, target: str) -> AnalysisRecord | None:
        """Returns the analysis that `analysis:NUMBER` names; None for every other target."""
        kind, _, number = target.partition(":")
        if kind != "analysis":
            return None
        if not number.isdecimal():
            raise NotFoundError(f"{target!r} is no analysis; give its number, such as analysis:3")
        return self._store.analyses.find(int(number))

    def _analysis_state(self, record: AnalysisRecord) -> RunState:
        """Returns the state of an analysis; its judges' verdicts are those of its study."""
        run = self._store.suites.find_run(record.run_id)
        study = f"analyze-{run.key[:8]}"
        tags = [row["tag"] for row in self._experiments.find_study(study)]
        judging = [own[-1] for own in self._store.progress.of_tags(tags).values() if own]
        waiting = self._store.progress.why_waiting([record.id]) if not record.ended else {}
        return {
            "tag": f"analysis:{record.id}",
            "run": run.id,
            "series": run.series,
            "status": record.status,
            "in_progress": record.ended is None,
            "targets": {"score": sum(run.targets["score"] for run in judging)},
            "done": {"score": sum(run.done["score"] for run in judging)},
            "not_needed": {},
            "failed": {"score": sum(run.failed["score"] for run in judging)},
            "verdicts": dict(sum((Counter(run.statuses) for run in judging), Counter[str]())),
            "message": record.error or waiting.get(record.id, ""),
            "actor": "",
        }

    def _record(
        self, target: str, kind: Kind, message: str, detail: Mapping[str, Any] | None = None
    ) -> Sequence[str]:
        """Records an event of the unfinished runs of a target, and returns their tags."""
        if (suite_run := self._suite_run(target)) is not None:
            [report] = reports(self._store, [suite_run])
            unfinished = {} if report.ended else {suite_run.payer: target}
        else:
            tags = [row["tag"] for row in self._experiments.find(target)]
            unfinished = {
                run.run_id: run.tag
                for runs in self._store.progress.of_tags(tags).values()
                for run in runs
                if run.status not in FINISHED
            }
        self._store.events.record(unfinished.keys(), kind, message, detail, actor=current_actor())
        return [*unfinished.values()]

    def reparse(self, target: str, *, write: bool = False) -> Reparsed:
        """Reads stored answers with today's parsers and returns what changes; asks nothing."""
        from judge_gym.lab.reparse import reparse

        tags = [row["tag"] for row in self._experiments.find(target)]
        with self._engine.lock() if write else nullcontext():
            return cast(Reparsed, reparse(self._store, tags, write=write).to_json())

    # --- watching --------------------------------------------------------------------------------

    def status(self, target: str | None = None, *, limit: int = 20) -> LabStatus:
        """Returns the progress of runs, active ones first: of a target, or of the newest."""
        suite_run = self._suite_run(target) if target is not None else None
        analysis = self._analysis(target) if target is not None else None
        named = [target] if target is not None else []
        rows = self._experiments.find(*named) if suite_run is None and analysis is None else ()
        all_tags = [row["tag"] for row in rows]
        active = set(self._store.logs.in_progress()) & set(all_tags)
        others = self._store.logs.recent(limit) if target is None else all_tags
        tags = [*sorted(active), *(tag for tag in others if tag not in active)][:limit]
        progress = self._store.progress.of_tags(tags)
        runs = [_run(run) for tag in tags for run in progress[tag]]
        runs += self._suite_states(suite_run) if target is None or suite_run else []
        if target is None or analysis is not None:
            found = [analysis] if analysis is not None else self._store.analyses.unfinished()
            runs += map(self._analysis_state, found)
        status: LabStatus = {
            "version": version(),
            "build": build(),
            "database": self._store.database.engine.dialect.name,
            "profile": self._store.database.read_profile(),
            "active": self._store.progress.has_worker(),
            "experiments": len(all_tags),
            "shown": len(tags),
            "drafts": [row["tag"] for row in rows if row["draft"]][:limit],
            "in_progress": len(active) > limit or any(run["in_progress"] for run in runs),
            "runs": runs,
        }
        if suite_run is not None:
            status["usd"] = self._store.usage.paid(suite_run.payer, 0)[2]
        elif target is not None and analysis is None:
            name = self._experiments.study_name(target)
            spent = self._store.usage.rows(by=["study"], study=name)
            spent = spent or self._store.usage.rows(by=["study"], tag=name)
            status["usd"] = sum(row["usd"] or 0.0 for row in spent)
        return status

    def wait(self, target: str, *, timeout: float = 30) -> LabStatus:
        """Waits until a target has ended, or for some seconds, and returns its progress.

        Args:
            target: a study, a tag, `suite:RUN` or `analysis:NUMBER`.
            timeout: seconds.
        """
        deadline = time.monotonic() + timeout
        while True:
            status = self.status(target)
            left = deadline - time.monotonic()
            if not status["in_progress"] or left <= 0:
                return status
            time.sleep(min(POLL, left))

    def models(self, study: str) -> Sequence[dict[str, Any]]:
        """Returns what each model answered in a study: in all, in the last minute, last error."""
        return self._store.usage.by_model(study)

    def _suite_states(self, run: SuiteRun | None) -> list[RunState]:
        """Returns the state of a suite run, or of all that are in progress."""
        every = [run] if run is not None else self._store.suites.list_runs()
        found = reports(self._store, every) if every else ()
        shown = [report for report in found if run is not None or report.in_progress]
        waiting = [
            report.run.payer
            for report in shown
            if report.event is not None and report.event.kind == "started" and not report.ended
        ]
        reasons = self._store.progress.why_waiting(waiting)
        return [_suite_state(report, reasons.get(report.run.payer)) for report in shown]

    def progress(self, tag: str) -> Sequence[Progress]:
        """Returns the progress of each run of an experiment, oldest first."""
        return self._store.progress.of_tag(tag)

    def logs(self, target: str | None = None) -> Sequence[LogRow]:
        """Returns events of runs, and attempts at calls that failed and why, newest first."""
        return cast(Sequence[LogRow], all_rows(partial(self.page_logs, target)))

    def page_logs(
        self, target: str | None = None, *, after: str | None = None, limit: int = 100
    ) -> Page:
        """Returns a page of the log, after the cursor of the previous page."""
        if target is not None:
            self._experiments.find(target)
        cursor = LogCursor(*read_cursor(after, int, int)) if after is not None else None
        rows, following = self._store.logs.page(target, after=cursor, limit=limit)
        return Page(rows, write_cursor(following))

    def events(self, after: int, run_ids: Collection[int]) -> Sequence[Event]:
        """Returns the events of runs after one of them, oldest first."""
        return self._store.events.since(after, run_ids)

    def study_events(
        self, study: str, limit: int, before: int | None = None
    ) -> Sequence[tuple[Event, str]]:
        """Returns a study's events with their tags, newest first, before one of them."""
        return self._store.events.of_study(study, limit, before)

    def last_event_id(self) -> int:
        """Returns the number of the newest event of any run."""
        return self._store.events.last_id()

    # --- workers ---------------------------------------------------------------------------------

    def work(
        self,
        *,
        until_idle: bool = False,
        on_start: Callable[[str], None] = lambda name: None,
        watch: Callable[[Mapping[int, RunProgress]], None] = lambda progress: None,
    ) -> Mapping[int, RunProgress]:
        """Executes queued runs until interrupted; returns what was done, by run."""
        return self._engine.work(
            until_idle=until_idle, on_start=on_start, watch=watch, analyze=self._analyze
        )

    def adopt(self, *, cancel: bool = False) -> int:
        """Confirms that this copy of a database is used; returns how many runs are queued."""
        return self._engine.adopt(cancel=cancel)

    def is_idle(self) -> bool:
        """Returns whether no queued run waits or is in progress."""
        return self._engine.idle()

    def other_versions(self) -> Sequence[str]:
        """Returns what is queued for another version of judge-gym, which this one leaves alone."""
        return self._engine.other_versions()

    def expect_worker(
        self, coming: Callable[[], bool], failing: Callable[[], bool] = lambda: False
    ) -> None:
        """Sets how this process knows that a worker is about to start, or that workers fail."""
        self._store.progress.expect_worker(coming, failing)

    def start_worker(self, options: Sequence[str] = ()) -> "subprocess.Popen[bytes] | None":
        """Starts a process that executes what is queued; None if one is running."""
        if self._engine.served_elsewhere():
            return None
        try:
            with self._engine.lock():
                pass
        except ConflictError:
            return None
        url = self._store.database.url.render_as_string(hide_password=False)
        self.worker_log().parent.mkdir(parents=True, exist_ok=True)
        with self.worker_log().open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "judge_gym", *options, "worker", "--until-idle"],
                env={**os.environ, DATABASE_URL: url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C belongs to the process that started it
            )

    def worker_log(self) -> Path:
        """Returns the file that such a process writes to."""
        file = self._store.database.file
        beside = file.with_suffix(".worker.log") if file else DEFAULT.with_name("worker.log")
        return Path(os.environ.get(WORKER_LOG) or beside)

    def has_abandoned(self) -> bool:
        """Returns whether runs have begun and not ended, and are queued, perhaps by dead workers.

        It costs little where nothing has begun.
        """
        return self._store.events.any_in_progress() and not self.is_idle()


def _name(target: str | Path | PreparedStudy | None) -> str | None:
    """Returns what a user may name again in a command; None for what has no such name."""
    return str(target) if isinstance(target, str | Path) else None


def _unreadable(study: str, runs: Sequence[Run], result: Result) -> list[str]:
    """Returns warnings about judges many of whose answers could not be read, or were cut off."""
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


def _limits_text(limits: Mapping[str, Any]) -> str:
    """Returns limits by name, those of one run as `run.NAME`."""
    flat = {name: limit for name, limit in limits.items() if name != "run"}
    flat |= {f"run.{name}": limit for name, limit in limits.get("run", {}).items()}
    return ", ".join(f"{name} {limit:g}" for name, limit in flat.items())


def _new_calls(changes: Mapping[str, str], plan: "Plan") -> list[str]:
    """Returns how many calls are new because of each change since the study was last run."""
    counts: Counter[str] = Counter()
    for tag, change in changes.items():
        counts[change] += plan.experiments.get(tag, {}).get("to_pay", 0)
    return [
        f"{count:,} calls are new because {change} changed since the last run"
        for change, count in counts.items()
        if count
    ]


def _suite_state(report: SuiteReport, reason: str | None) -> RunState:
    inconclusive = sum(report.score.inconclusive.values())
    return {
        "tag": f"suite:{report.run.id}",
        "run": report.run.id,
        "series": report.run.series,
        "status": report.status,
        "in_progress": report.in_progress,
        "targets": {"evals": report.run.targets},
        "done": {"evals": len(report.results)},
        "not_needed": {},
        "failed": {"evals": inconclusive},
        "verdicts": {
            "passed": report.score.passed,
            "failed": report.score.failed,
            "inconclusive": inconclusive,
        },
        "message": reason or (report.event.reason if report.event is not None else ""),
        "actor": report.event.actor if report.event is not None else "",
    }


def _run(progress: Progress) -> RunState:
    in_progress = progress.executing or (progress.started and not progress.ended)
    return {"tag": progress.tag, **run_counts(progress), "in_progress": in_progress}
