"""Pauses, cancels and retunes runs, and refuses to resume what would stop at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from judge_gym.engine import FINISHED, study_of
from judge_gym.errors import BudgetError, NotFoundError, Remedy, unknown
from judge_gym.lab.run_states import find_suite_run
from judge_gym.lab.studies import Studies, Target
from judge_gym.lab.suite_reports import reports
from judge_gym.records.actors import current_actor
from judge_gym.records.responses import Retuned
from judge_gym.store import Event, Kind, Store
from judge_gym.studies import BudgetSpec


class RunControls:
    """Records what users want of runs, which whoever executes them obeys."""

    def __init__(self, store: Store, studies: Studies) -> None:
        self._store = store
        self._studies = studies

    def retune(
        self,
        target: str,
        *,
        budget: Mapping[str, Any] | None = None,
        limits: Mapping[str, int | None] | None = None,
    ) -> Retuned:
        """Changes the budget of a study, or limits on calls, while its runs continue."""
        source = self._studies.read(target)
        suite_run = find_suite_run(self._store, source)
        if suite_run is not None:
            study = study_of(suite_run.suite)
        else:
            study = str(self._studies.find(source)[0]["study"])
        new_budget = self.change_budget(study, budget or {}).model_dump(exclude_none=True)
        new_limits = {name: limit for name, limit in (limits or {}).items() if limit is not None}
        detail = {"budget": new_budget, "limits": new_limits}
        parts = (f"{name}: {_limits_text(caps)}" for name, caps in detail.items() if caps)
        self.record(source, "retuned", "; ".join(parts), detail)
        return {"budget": new_budget, "limits": new_limits}

    def change_budget(self, study: str, budget: Mapping[str, Any]) -> BudgetSpec:
        """Changes the limits of a study that are named, and leaves its other limits."""
        before = BudgetSpec.model_validate(self._store.studies.budget(study))
        changed = before.changed(budget)
        if changed != before:
            self._store.studies.save(study, changed.model_dump(exclude_none=True))
        return changed

    def record(
        self, target: Target, kind: Kind, message: str, detail: Mapping[str, Any] | None = None
    ) -> Sequence[str]:
        """Records an event of the unfinished runs of a target, and returns their tags."""
        if (suite_run := find_suite_run(self._store, target)) is not None:
            [report] = reports(self._store, [suite_run])
            unfinished = {} if report.ended else {suite_run.payer: str(target)}
        else:
            tags = [row["tag"] for row in self._studies.find(target)]
            unfinished = {
                run.run_id: run.tag
                for runs in self._store.progress.of_tags(tags).values()
                for run in runs
                if run.status not in FINISHED
            }
        self._store.events.record(unfinished.keys(), kind, message, detail, actor=current_actor())
        return [*unfinished.values()]

    def refuse_unknown_series(self, target: Target, series: str) -> None:
        """Raises an error where no run of a target has this series: there is nothing to resume."""
        if (suite_run := find_suite_run(self._store, target)) is not None:
            all_series = {suite_run.series}
        else:
            tags = [row["tag"] for row in self._studies.find(target)]
            progress = self._store.progress.of_tags(tags)
            all_series = {run.series for runs in progress.values() for run in runs}
        if series not in all_series:
            choices = sorted(all_series)
            raise NotFoundError(unknown("series", series, choices), choices=choices)

    def refuse_exhausted(
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
                f"{exhausted[0].message}: nothing was started; raise it",
                remedy=Remedy("runs.resume", {"target": target, "budget": {name: "LIMIT"}}),
            )


def _limits_text(limits: Mapping[str, Any]) -> str:
    """Writes limits by name, those of one run as `run.NAME`."""
    flat = {name: limit for name, limit in limits.items() if name != "run"}
    flat |= {f"run.{name}": limit for name, limit in limits.get("run", {}).items()}
    return ", ".join(f"{name} {limit:g}" for name, limit in flat.items())
