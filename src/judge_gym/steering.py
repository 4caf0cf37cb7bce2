"""The verbs over studies: plan, run, start, pause, cancel, retune."""

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge_gym.axes import Design
from judge_gym.engine import (
    FINISHED,
    WORKFLOWS,
    Engine,
    Plan,
    Result,
    RunOptions,
    RunProgress,
    StagePlan,
    Workflow,
    makers,
)
from judge_gym.errors import BudgetError, ConflictError, DesignError
from judge_gym.gathering import Gathered
from judge_gym.inspection import Inspection
from judge_gym.models.cards import Limits
from judge_gym.preparing import STUDY_SUFFIXES, Prepared, read_file, wanted_of
from judge_gym.records import Pool
from judge_gym.sources import Watch
from judge_gym.store import Kind, Run, Store
from judge_gym.studies import BudgetSpec, Experiment

WatchTallies = Callable[[Sequence[RunProgress]], None]


class Steering(Inspection):
    """An archive with an engine, which puts evidence before judges."""

    def __init__(self, store: Store, *, limits: Limits | None = None) -> None:
        super().__init__(store)
        self.engine = Engine(store, self.models, limits=limits)

    def plan(
        self,
        target: str | Path | Prepared,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        samples: int | None = None,
    ) -> tuple[Plan, Prepared]:
        """What a study would ask, what it would cost, and what is in the ledger; writes nothing."""
        prepared = (
            target if isinstance(target, Prepared) else self.prepare(target, overrides=overrides)
        )
        wanted, notes = wanted_of(prepared, self.models, samples=samples)
        planner = self.engine.planner()
        for experiment in prepared.sweep.experiments:
            drawn = series or str(experiment.seed)
            asked = wanted[experiment.tag]
            active = self.store.runs.targets(experiment, drawn)  # the run that would go on
            if active is not None:
                asked = active.raised(asked, exact=samples is not None)
            planner.walk(Run(0, experiment, prepared.study, drawn, *asked))
            try:
                self.engine.refuse_uncallable(experiment.design, asked.rivals, WORKFLOWS)
            except DesignError as fault:
                notes.append(fault.message)
        noted = tuple(dict.fromkeys([*prepared.warnings, *notes]))
        return planner.plan, replace(prepared, warnings=noted)

    def run(
        self,
        target: str | Path | Prepared,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        new_run: bool = False,
        workflows: Collection[Workflow] = WORKFLOWS,
        samples: int | None = None,
        rivals: Sequence[str] = (),
        watch: WatchTallies = lambda tallies: None,
        budget: Mapping[str, Any] | None = None,
        allow_private: bool = False,
        offline: bool = False,
        pause_after: Workflow | None = None,
        only_failed: bool = False,
    ) -> Result:
        """Carry out a study or experiments; what is there already is neither paid nor made again.

        Args:
            target: a study file, a study's name or an experiment's tag, or what was prepared.
            overrides: knobs over those of the study file's base design.
            series: draw scores and probes afresh under this name; by default the study's seed.
            new_run: supersede the active runs; the ledger still answers what was asked before.
            workflows: what may be made.
            samples: replicates per cell, in the place of the study's.
            rivals: authors whose rubrics are to be used beside the study's.
            watch: called with the tallies before the work begins.
            budget: limits in the place of the study's: usd, calls, tokens, minutes, run.usd, ...
            allow_private: evidence may be fetched from the user's own network.
            offline: fetch nothing and open no model; every answer must be in the ledger.
            pause_after: stop when this workflow is done.
            only_failed: ask again for what no attempt brought an answer to, and for nothing else.
        """
        prepared, runs, notes = self._ordered(
            target,
            overrides=overrides,
            series=series,
            new_run=new_run,
            workflows=workflows,
            samples=samples,
            rivals=rivals,
            budget=budget,
            allow_private=allow_private,
            offline=offline,
        )
        execution = self.engine.execute(
            runs,
            RunOptions(
                workflows=tuple(workflows),
                offline=offline,
                pause_after=pause_after,
                only_failed=only_failed,
            ),
            budget=prepared.budget,
            watch=watch,
        )
        left = self._left(runs) if isinstance(execution.stopped, BudgetError) else None
        return execution.result(prepared.study, [*prepared.warnings, *notes], left)

    def start(
        self,
        target: str | Path | Prepared,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        new_run: bool = False,
        workflows: Collection[Workflow] = WORKFLOWS,
        samples: int | None = None,
        rivals: Sequence[str] = (),
        budget: Mapping[str, Any] | None = None,
        pause_after: Workflow | None = None,
        only_failed: bool = False,
    ) -> list[str]:
        """Order what `run` would do and return at once: the tags. A worker carries it out."""
        prepared, runs, _ = self._ordered(
            target,
            overrides=overrides,
            series=series,
            new_run=new_run,
            workflows=workflows,
            samples=samples,
            rivals=rivals,
            budget=budget,
        )
        clashes = self.engine.begin(
            runs,
            RunOptions(
                workflows=tuple(workflows), pause_after=pause_after, only_failed=only_failed
            ),
            budget=prepared.budget,
        )
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
        watch: WatchTallies = lambda tallies: None,
    ) -> Result:
        """Go on with what was paused, interrupted or over its budget, and see it through."""
        return self.run(target, budget=budget, pause_after=pause_after, watch=watch)

    def retry(self, target: str, *, watch: WatchTallies = lambda tallies: None) -> Result:
        """Ask again for what no attempt brought an answer to, and for nothing else."""
        return self.run(target, only_failed=True, watch=watch)

    def pause(self, target: str) -> list[str]:
        """Begin no further call of unfinished runs, wherever they go on; the tags of these."""
        return self._say(target, "paused", "paused by hand")

    def cancel(self, target: str) -> list[str]:
        """The same, for good: only `run` goes on with what was cancelled."""
        return self._say(target, "cancelled", "cancelled by hand")

    def retune(
        self,
        target: str,
        *,
        budget: Mapping[str, Any] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> BudgetSpec:
        """Change the budget of a study, or limits, while its runs go on; the budget as it is now.

        Args:
            target: a study file, a study's name or an experiment's tag.
            budget: limits in the place of the study's.
            limits: rpm, tpm and concurrency, in every process that is at work on it.
        """
        study = str(self._rows([target])[0]["study"])
        changed = BudgetSpec.model_validate(self.store.runs.find_budget(study)).changed(
            budget or {}
        )
        self.store.runs.save_budget(study, changed.model_dump(exclude_none=True))
        self._say(target, "retuned", "", {"limits": dict(limits or {})})
        return changed

    def _say(
        self, target: str, kind: Kind, said: str, detail: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Something happens to the unfinished runs of a target."""
        unfinished = [
            progress
            for row in self._rows([target])
            for progress in self.store.progress.of_tag(row["tag"])
            if progress.status not in FINISHED
        ]
        self.store.events.record([one.run_id for one in unfinished], kind, said, detail)
        return [one.tag for one in unfinished]

    def _ordered(
        self,
        target: str | Path | Prepared,
        *,
        overrides: Mapping[str, Any] | None = None,
        series: str | None = None,
        new_run: bool = False,
        workflows: Collection[Workflow] = WORKFLOWS,
        samples: int | None = None,
        rivals: Sequence[str] = (),
        budget: Mapping[str, Any] | None = None,
        allow_private: bool = False,
        offline: bool = False,
    ) -> tuple[Prepared, list[Run], list[str]]:
        """Runs with their rows and targets, refused here if they cannot be carried out."""
        if not isinstance(target, Prepared):
            missing = {} if offline else self.collect_missing(target, allow_private=allow_private)
            for gathered in missing.values():
                gathered.refuse_fault()
                if gathered.found.interrupted:
                    raise KeyboardInterrupt
            target = self.prepare(target, overrides=overrides)
        prepared = replace(target, budget=target.budget.changed(budget or {}))
        wanted, notes = wanted_of(prepared, self.models, samples=samples, rivals=rivals)
        if set(workflows) == {"swap"} and not any(asked.rivals for asked in wanted.values()):
            raise DesignError("no swap is asked for; set swap: all, or name an author with --from")
        for experiment in prepared.sweep.experiments if not offline else ():
            self.engine.refuse_uncallable(
                experiment.design, wanted[experiment.tag].rivals, workflows
            )
        limits = prepared.budget.model_dump(exclude_none=True)
        if prepared.file is not None:
            self.store.runs.save_study(prepared.study, prepared.file, limits)
        elif budget:
            self.store.runs.save_budget(prepared.study, limits)
        runs = [
            self.store.runs.save_run(
                saved,
                prepared.study,
                series or str(saved.seed),
                wanted[saved.tag],
                makers=makers(saved),
                exact=samples is not None,
                new=new_run,
            )
            for saved in self._saved(prepared)
        ]
        return prepared, runs, notes

    def _left(self, runs: Sequence[Run]) -> StagePlan:
        """What is still to be paid of runs that were begun."""
        planner = self.engine.planner()
        for run in runs:
            planner.walk(run)
        return planner.plan.total()

    def collect_missing(
        self,
        target: str | Path,
        *,
        allow_private: bool = False,
        watch: Watch = lambda done, wanted: None,
    ) -> dict[str, Gathered]:
        """Search for the evidence of a study that was never collected; once, so that it stays.

        What cannot be called is refused before a search is paid for.
        """
        path = Path(target)
        if path.suffix not in STUDY_SUFFIXES or not self.uncollected(path):
            return {}
        study = read_file(path, self.models)
        for judge in study.judges:
            design = Design.of({**study.design, "judge.model": judge})
            self.engine.refuse_uncallable(design, study.rivals(design), WORKFLOWS)
        with self.engine.lock():  # two at once would find different evidence
            return self.collect_study(path, allow_private=allow_private, watch=watch)

    def _saved(self, prepared: Prepared) -> Iterator[Experiment]:
        """Experiments with their rows; a pool that many share is written once."""
        pools: dict[int, Pool] = {}
        for made in prepared.sweep.experiments:
            pool = made.task.pool
            if id(pool) not in pools:
                pools[id(pool)] = self.store.evidence.save_pool(pool)
            task = replace(made.task, pool=pools[id(pool)])
            yield self._save(prepared.study, replace(made, task=task))

    def _save(self, study: str, experiment: Experiment) -> Experiment:
        """Give an experiment and what it stands on their rows."""
        task = experiment.task
        pool = task.pool if task.pool.id else self.store.evidence.save_pool(task.pool)
        rubric = self.store.materials.save_given_rubric(task.rubric) if task.rubric else None
        saved = replace(experiment, task=replace(task, pool=pool, rubric=rubric))
        self.store.runs.save_experiment(saved, study)
        return saved


def begin_worker(lab: Steering, options: Sequence[str] = ()) -> "subprocess.Popen[bytes] | None":
    """A process that carries out what is ordered and ends; None where somebody is at work already.

    Args:
        lab: whose orders they are.
        options: of every verb: `--rpm 100`.
    """
    try:
        with lab.engine.lock():
            pass
    except ConflictError:
        return None
    url = lab.store.database.url.render_as_string(hide_password=False)
    with open(worker_log(lab) or os.devnull, "ab") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "judge_gym", *options, "worker", "--until-idle"],
            env={**os.environ, "JUDGE_GYM_DATABASE_URL": url},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,  # Ctrl-C is that of whoever began it
        )


def worker_log(lab: Steering) -> Path | None:
    """Where such a process writes to, beside a lab on a file."""
    file = lab.store.database.file
    return file.with_suffix(".worker.log") if file else None
