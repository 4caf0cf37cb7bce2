"""Estimates what runs will ask and cost, before they are started and when a budget ends them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from typing import TYPE_CHECKING

from judge_gym.engine import WORKFLOWS, Engine, RunOptions, Spend, enough
from judge_gym.errors import DesignError
from judge_gym.lab.prepare import PreparedStudy, targets_of
from judge_gym.models import Registry
from judge_gym.store import Run, Store
from judge_gym.studies import BudgetSpec, Caps

if TYPE_CHECKING:
    from judge_gym.engine.planner import Plan, StagePlan


class Estimates:
    """Plans the calls of prepared studies against what the ledger holds."""

    def __init__(self, store: Store, models: Registry, engine: Engine) -> None:
        self._store = store
        self._models = models
        self._engine = engine

    def estimate(
        self,
        prepared: PreparedStudy,
        *,
        series: str | None = None,
        samples: int | None = None,
    ) -> "tuple[Plan, PreparedStudy]":
        """Plans a study, and returns it with the warnings that planning adds."""
        targets, notes = targets_of(prepared, self._models, samples=samples)
        planner = self._engine.planner()
        for experiment in prepared.sweep.experiments:
            run_series = series or str(experiment.seed)
            run_targets = targets[experiment.tag]
            active = self._store.runs.targets(experiment, prepared.study, run_series)
            if active is not None:
                run_targets = active.raised(run_targets, exact=samples is not None)
            planner.add(Run(0, experiment, prepared.study, run_series, *run_targets))
        notes += self.uncallable(prepared)
        for study, calls in planner.payers().items():
            if study != prepared.study:
                payer = f"study {study!r}" if study else "experiments without a study"
                notes.append(f"{calls} calls are shared with {payer}, which paid for them")
        notes += self._shared_experiments(prepared, series)
        notes += _new_calls(self._changes(prepared), planner.plan)
        warnings = tuple(dict.fromkeys([*prepared.warnings, *notes]))
        return planner.plan, replace(prepared, warnings=warnings)

    def uncallable(self, prepared: PreparedStudy) -> list[str]:
        """Lists why models of a study cannot be called, such as a key that is not set."""
        reasons: dict[str, None] = {}
        for experiment in prepared.sweep.experiments:
            rivals = prepared.targets[experiment.tag].rivals
            try:
                self._engine.refuse_uncallable(experiment.design, rivals, WORKFLOWS)
            except DesignError as error:
                reasons[error.message] = None
        return [*reasons]

    def _shared_experiments(self, prepared: PreparedStudy, series: str | None) -> list[str]:
        """Notes unfinished runs of other studies that ask the same."""
        notes = []
        for tag, shared in self._store.runs.others(
            {each.digest: series or str(each.seed) for each in prepared.sweep.experiments},
            prepared.study,
        ).items():
            [progress] = [run for run in self._store.progress.of_tag(tag) if run.run_id == shared]
            if not progress.complete:
                notes.append(
                    f"{tag} is unfinished and asks the same: the study that asks first pays, and "
                    "each keeps its own samples, status and budget"
                )
        return notes

    def note_new_calls(self, prepared: PreparedStudy, options: RunOptions) -> list[str]:
        """Notes calls that are new because the study changed since it was last run."""
        changes = {} if options.offline else self._changes(prepared)
        if not changes:
            return []
        plan, _ = self.estimate(prepared, series=options.series, samples=options.samples)
        return _new_calls(changes, plan)

    def _changes(self, prepared: PreparedStudy) -> dict[str, str]:
        """Finds what has changed in experiments since they were last run, by tag."""
        stored = {
            row["tag"]: row["digest"] for row in self._store.experiments.rows(study=prepared.study)
        }
        changes = {}
        for new in prepared.sweep.experiments:
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

    def remaining(self, runs: Sequence[Run]) -> "StagePlan":
        """Plans what is still to be paid of runs that were started."""
        planner = self._engine.planner()
        for run in runs:
            planner.add(run)
        return planner.plan.total()

    def sufficient_budget(
        self, study: str, runs: Sequence[Run], left: "StagePlan"
    ) -> dict[str, float]:
        """Computes the limits that would be enough to end a study's runs."""
        budget = BudgetSpec.model_validate(self._store.studies.budget(study))
        total = self._spend(study, left)
        most = Spend()
        for run in runs if budget.run != Caps() else ():
            spend = self._spend(run.id, self.remaining([run]))
            most = Spend(*map(max, astuple(most), astuple(spend)))
        return enough(budget, total, most, left.seconds / 60)

    def _spend(self, payer: str | int, left: "StagePlan") -> Spend:
        """Adds what is left to pay to what a study or a run has paid."""
        calls, tokens, usd, _ = self._store.usage.paid(payer, 0)
        ahead = left.input_tokens + left.output_tokens
        return Spend(calls + left.to_pay, tokens + ahead, usd + (left.usd or 0.0))


def _new_calls(changes: Mapping[str, str], plan: "Plan") -> list[str]:
    """Counts the calls that are new because of each change since the study was last run."""
    counts: Counter[str] = Counter()
    for tag, change in changes.items():
        counts[change] += plan.experiments.get(tag, {}).get("to_pay", 0)
    return [
        f"{count:,} calls are new because {change} changed since the last run"
        for change, count in counts.items()
        if count
    ]
