"""The noun `lab.runs`: plan, run, start, pause, cancel and watch the runs of studies."""

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, TypedDict, Unpack

from judge_gym.engine import (
    FINISHED,
    WORKFLOWS,
    Engine,
    Plan,
    Reparsed,
    Result,
    RunOptions,
    RunProgress,
    StagePlan,
    Workflow,
    makers,
    reparse,
)
from judge_gym.errors import BudgetError, ConflictError, DesignError
from judge_gym.lab.evidence import EvidenceLibrary
from judge_gym.lab.experiments import Experiments
from judge_gym.lab.prepare import PreparedStudy, wanted_of
from judge_gym.models import Registry
from judge_gym.store import Event, Kind, Mark, Progress, Run, Store
from judge_gym.studies import BudgetSpec

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


class Runs:
    """Carries out studies and experiments, and controls and watches their runs.

    Args:
        store: the lab's database.
        models: the model registry.
        engine: carries runs out.
        evidence: collects what a study still has to search for.
        experiments: prepares and stores experiments.
    """

    def __init__(
        self,
        store: Store,
        models: Registry,
        engine: Engine,
        evidence: EvidenceLibrary,
        experiments: Experiments,
    ) -> None:
        self._store = store
        self._models = models
        self._engine = engine
        self._evidence = evidence
        self._experiments = experiments

    # --- carrying out ----------------------------------------------------------------------------

    def plan(
        self,
        target: str | Path | PreparedStudy,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        samples: int | None = None,
    ) -> tuple[Plan, PreparedStudy]:
        """Estimates what a study would ask and cost, and what the ledger holds; writes nothing."""
        prepared = (
            target
            if isinstance(target, PreparedStudy)
            else self._experiments.prepare(target, overrides=overrides)
        )
        wanted, notes = wanted_of(prepared, self._models, samples=samples)
        planner = self._engine.planner()
        for experiment in prepared.sweep.experiments:
            drawn = series or str(experiment.seed)
            asked = wanted[experiment.tag]
            active = self._store.runs.targets(experiment, drawn)  # of the run that would continue
            if active is not None:
                asked = active.raised(asked, exact=samples is not None)
            planner.walk(Run(0, experiment, prepared.study, drawn, *asked))
            try:
                self._engine.refuse_uncallable(experiment.design, asked.rivals, WORKFLOWS)
            except DesignError as error:
                notes.append(error.message)
        noted = tuple(dict.fromkeys([*prepared.warnings, *notes]))
        return planner.plan, replace(prepared, warnings=noted)

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
        prepared, runs, notes = self._stored(target, chosen)
        execution = self._engine.execute(
            runs, chosen, budget=prepared.budget, watch=watch, concurrency=concurrency
        )
        left = self._left(runs) if isinstance(execution.stopped, BudgetError) else None
        return execution.result(prepared.study, [*prepared.warnings, *notes], left)

    def start(
        self, target: str | Path | PreparedStudy, **options: Unpack[RunKeywords]
    ) -> Sequence[str]:
        """Queues what `run` would do for a worker and returns the tags at once."""
        chosen = RunOptions(**options)
        prepared, runs, _ = self._stored(target, chosen)
        clashes = self._engine.begin(runs, chosen, budget=prepared.budget)
        if clashes:
            raise ConflictError(
                f"{' and '.join(clashes[:3])} is being carried out as it was ordered before; "
                "order this when it has ended, or pause it first"
            )
        return [run.experiment.tag for run in runs]

    def resume(
        self,
        target: str,
        *,
        budget: Mapping[str, Any] | None = None,
        pause_after: Workflow | None = None,
    ) -> Sequence[str]:
        """Queues what was paused, interrupted or over its budget, and returns the tags."""
        return self.start(target, budget=budget or {}, pause_after=pause_after)

    def retry(self, target: str) -> Sequence[str]:
        """Queues the failed calls of runs to be asked again, and returns the tags."""
        return self.start(target, only_failed=True)

    def _stored(
        self, target: str | Path | PreparedStudy, options: RunOptions
    ) -> tuple[PreparedStudy, Sequence[Run], Sequence[str]]:
        """Stores runs with their targets; refuses those that cannot be carried out."""
        if not isinstance(target, PreparedStudy):
            if not options.offline:
                self._collect_missing(target, options.allow_private)
            target = self._experiments.prepare(target, overrides=options.overrides)
        prepared = replace(target, budget=target.budget.changed(options.budget))
        wanted, notes = wanted_of(
            prepared, self._models, samples=options.samples, rivals=options.rivals
        )
        swaps_only = set(options.workflows) == {"swap"}
        if swaps_only and not any(asked.rivals for asked in wanted.values()):
            raise DesignError("no swap is asked for; set swap: all, or name an author with --from")
        for experiment in prepared.sweep.experiments if not options.offline else ():
            rivals = wanted[experiment.tag].rivals
            self._engine.refuse_uncallable(experiment.design, rivals, options.workflows)
        limits = prepared.budget.model_dump(exclude_none=True)
        if prepared.file is not None:
            self._store.studies.save(prepared.study, prepared.file, limits)
        elif options.budget:
            self._store.studies.save_budget(prepared.study, limits)
        runs = [
            self._store.runs.save(
                saved,
                prepared.study,
                options.series or str(saved.seed),
                wanted[saved.tag],
                makers=makers(saved),
                exact=options.samples is not None,
                new=options.new_run,
            )
            for saved in self._experiments.save_all(prepared)
        ]
        return prepared, runs, notes

    def _collect_missing(self, target: str | Path, allow_private: bool) -> None:
        collected = self._evidence.collect_missing(target, allow_private=allow_private)
        for result in collected.values():
            result.raise_error()
            if result.found.interrupted:
                raise KeyboardInterrupt

    def _left(self, runs: Sequence[Run]) -> StagePlan:
        """Returns what is still to be paid of runs that were started."""
        planner = self._engine.planner()
        for run in runs:
            planner.walk(run)
        return planner.plan.total()

    # --- controlling -----------------------------------------------------------------------------

    def pause(self, target: str) -> Sequence[str]:
        """Starts no further call of unfinished runs, in any process; returns their tags."""
        return self._record(target, "paused", "paused by hand")

    def cancel(self, target: str) -> Sequence[str]:
        """Stops unfinished runs for good: only `run` continues them; returns their tags."""
        return self._record(target, "cancelled", "cancelled by hand")

    def retune(
        self,
        target: str,
        *,
        budget: Mapping[str, Any] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> BudgetSpec:
        """Changes the budget of a study, or limits, while its runs continue; the new budget.

        Args:
            target: a study file, a study's name or an experiment's tag.
            budget: limits instead of the study's.
            limits: rpm, tpm and concurrency, in every process that works on it.
        """
        study = str(self._experiments.find(target)[0]["study"])
        changed = BudgetSpec.model_validate(self._store.studies.budget(study)).changed(budget or {})
        self._store.studies.save_budget(study, changed.model_dump(exclude_none=True))
        self._record(target, "retuned", "", {"limits": dict(limits or {})})
        return changed

    def _record(
        self, target: str, kind: Kind, message: str, detail: Mapping[str, Any] | None = None
    ) -> Sequence[str]:
        """Records an event of the unfinished runs of a target, and returns their tags."""
        tags = [row["tag"] for row in self._experiments.find(target)]
        unfinished = [
            progress
            for runs in self._store.progress.of_tags(tags).values()
            for progress in runs
            if progress.status not in FINISHED
        ]
        self._store.events.record([run.run_id for run in unfinished], kind, message, detail)
        return [run.tag for run in unfinished]

    def reparse(self, target: str, *, write: bool = False) -> Reparsed:
        """Reads the stored answers of experiments with today's parsers; returns what changes.

        Args:
            target: a study file, a study's name or an experiment's tag.
            write: change the records; without it they are only read.
        """
        tags = [row["tag"] for row in self._experiments.find(target)]
        with self._engine.lock() if write else nullcontext():
            return reparse(self._store, tags, write=write)

    # --- watching --------------------------------------------------------------------------------

    def status(self, target: str | None = None, *, limit: int = 20) -> dict[str, Any]:
        """Returns the progress of runs, active ones first: of a target, or of the newest.

        Args:
            target: the study or tag.
            limit: experiments at most.
        """
        rows = self._experiments.find(*([target] if target is not None else []))
        all_tags = [row["tag"] for row in rows]
        going = set(self._store.logs.in_progress()) & set(all_tags)
        others = self._store.logs.recent(limit) if target is None else all_tags
        tags = [*sorted(going), *(tag for tag in others if tag not in going)][:limit]
        progress = self._store.progress.of_tags(tags)
        runs = [_run(run) for tag in tags for run in progress[tag]]
        status = {
            "version": metadata.version("judge-gym"),
            "database": self._store.database.engine.dialect.name,
            "somebody_is_at_work": self._store.progress.has_worker(),
            "experiments": len(all_tags),
            "shown": len(tags),
            "going_on": len(going) > limit or any(run["going_on"] for run in runs),
            "runs": runs,
        }
        if target is not None:
            name = self._experiments.study_name(target)
            spent = self._store.usage.rows(by=["study"], study=name)
            spent = spent or self._store.usage.rows(by=["study"], tag=name)
            status["usd"] = sum(row["usd"] or 0 for row in spent)
        return status

    def progress(self, experiment_tag: str) -> Sequence[Progress]:
        """Returns the progress of each run of an experiment, oldest first."""
        return self._store.progress.of_tag(experiment_tag)

    def logs(
        self, target: str | None = None, *, below: Mark | None = None, limit: int = 100
    ) -> tuple[Sequence[dict[str, Any]], Mark | None]:
        """Returns events of runs and failed attempts, newest first, and where to continue."""
        if target is not None:
            self._experiments.find(target)
        return self._store.logs.page(target, below=below, limit=limit)

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
        begun: Callable[[str], None] = lambda name: None,
        watch: Callable[[Mapping[int, RunProgress]], None] = lambda progress: None,
    ) -> Mapping[int, RunProgress]:
        """Carries out queued runs until interrupted; returns what was done, by run.

        Args:
            until_idle: end when nothing is queued.
            begun: called with the worker's name when it is ready.
            watch: called once with the progress counters, which change during the work.
        """
        return self._engine.work(until_idle=until_idle, begun=begun, watch=watch)

    def is_idle(self) -> bool:
        """Returns whether no queued run waits or is in progress."""
        return self._engine.idle()

    def other_versions(self) -> Sequence[str]:
        """Returns what is queued for another version of judge-gym, which this one leaves alone."""
        return self._engine.strangers()

    def expect_worker(self, coming: Callable[[], bool]) -> None:
        """Sets how this process knows that a worker is about to start."""
        self._store.progress.worker_coming = coming

    def start_worker(self, options: Sequence[str] = ()) -> "subprocess.Popen[bytes] | None":
        """Starts a process that carries out what is queued; None where one works already.

        Args:
            options: command-line options of the worker: `--rpm 100`.
        """
        try:
            with self._engine.lock():
                pass
        except ConflictError:
            return None
        url = self._store.database.url.render_as_string(hide_password=False)
        with open(self.worker_log() or os.devnull, "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "judge_gym", *options, "worker", "--until-idle"],
                env={**os.environ, "JUDGE_GYM_DATABASE_URL": url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C belongs to the process that started it
            )

    def worker_log(self) -> Path | None:
        """Returns the file that such a process writes to; None on a database server."""
        file = self._store.database.file
        return file.with_suffix(".worker.log") if file else None


def _run(progress: Progress) -> dict[str, Any]:
    event = progress.event
    going = event is not None and event.kind == "started" and not progress.ended
    return {
        "tag": progress.tag,
        "run": progress.run_id,
        "series": progress.series,
        "status": progress.status,
        "going_on": going,
        "wanted": dict(progress.wanted),
        "done": dict(progress.done),
        "failed": dict(progress.failed),
        "verdicts": dict(progress.statuses),
        "said": event.said if event is not None else "",
    }
