"""Where the results of a suite run that is analyzed come from: this lab, or another one."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from judge_gym import triage
from judge_gym.client import Client
from judge_gym.client.pages import find_remote_run
from judge_gym.errors import NotFoundError
from judge_gym.lab.suite_schedule import CHECK
from judge_gym.records import EvalResult, EvalSource, Inconclusive, Outcome, StepResult, SuiteRun
from judge_gym.records.outcomes import read_outcome
from judge_gym.records.responses import EvalRow
from judge_gym.store import Store

OutcomesByEval = defaultdict[str, list[Outcome]]
NO_FILES: Mapping[str, str] = {}


class RunSource(Protocol):
    """A suite run, its failures and what they are compared with."""

    @property
    def lab(self) -> str | None:
        """The address of the lab that has the run, None for this lab."""

    @property
    def run(self) -> SuiteRun:
        """The run. Of one in another lab only the beginning of its key is known."""

    @property
    def targets(self) -> int:
        """The number of results of the run when it is complete."""

    def results(self) -> list[EvalResult]:
        """Reads the results of the run, without files."""

    def failure(self, result: EvalResult) -> EvalResult:
        """Reads a result with its steps and files."""

    def source(self, result: EvalResult) -> EvalSource:
        """Reads the files behind the eval of a result."""

    def others(self) -> dict[str, OutcomesByEval]:
        """Reads conclusive outcomes of other models' last runs, by model and eval.

        Only runs of the same version and condition count, and none of `models check`.
        """

    def keys_from_here(self) -> list[str]:
        """Lists the keys of the run and of later ones of its model, or how they begin."""

    def sources_before(
        self, prior: Sequence[triage.PriorReport], result: EvalResult
    ) -> dict[str, EvalSource]:
        """Reads the files behind an eval at the time of each earlier report, by report."""


@dataclass(frozen=True)
class StoredRun:
    """A run of this lab."""

    store: Store
    run: SuiteRun
    lab: None = None

    @property
    def targets(self) -> int:
        """The number of results of the run when it is complete."""
        return self.run.targets

    @cached_property
    def _numbers(self) -> dict[str, int]:
        rows = self.store.suites.results(self.run.id).get(self.run.id, [])
        return {triage.result_name(row.result): row.id for row in rows}

    def results(self) -> list[EvalResult]:
        """Reads the results of the run, without files."""
        return [row.result for row in self.store.suites.results(self.run.id).get(self.run.id, [])]

    def failure(self, result: EvalResult) -> EvalResult:
        """Reads a result with its steps and files."""
        return self.store.suites.find_result(self._numbers[triage.result_name(result)]).result

    def source(self, result: EvalResult) -> EvalSource:
        """Reads the files behind the eval of a result."""
        return self.store.suites.source(self.run, result.category, result.name)

    def others(self) -> dict[str, OutcomesByEval]:
        """Reads conclusive outcomes of other models' last runs, by model and eval."""
        run = self.run
        similar = [
            other
            for other in self.store.suites.list_runs(suite=run.suite)
            if (other.version, other.condition) == (run.version, run.condition)
            and other.model != run.model
            and other.series != CHECK
        ]
        rows = self.store.suites.results(*(other.id for other in similar)) if similar else {}
        return _by_model(
            (other.model, [row.result for row in rows.get(other.id, ())]) for other in similar
        )

    def keys_from_here(self) -> list[str]:
        """Lists the keys of the run and of later ones of its model."""
        runs = self.store.suites.list_runs(suite=self.run.suite, model=self.run.model)
        return [other.key for other in runs if other.id >= self.run.id]

    def sources_before(
        self, prior: Sequence[triage.PriorReport], result: EvalResult
    ) -> dict[str, EvalSource]:
        """Reads the files behind an eval at the time of each earlier report, by report."""
        sources = {}
        all_runs = self.store.suites.list_runs() if any(report.actions for report in prior) else ()
        for report in prior:
            runs = [run for run in all_runs if report.run and run.key.startswith(report.run)]
            if runs and report.actions:
                try:
                    source = self.store.suites.source(runs[0], result.category, result.name)
                except NotFoundError:  # it is a new eval
                    continue
                sources[report.source] = source
        return sources


class RemoteRun:
    """A run of another lab, which is read with a token and changed in nothing.

    Args:
        client: the other lab.
        name: the run's number there, the beginning of its key, or the address of its page.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._suites = client.suites
        self._detail = client.suites.show_run(find_remote_run(client, name))
        self._rows = {triage.result_name(_result(row)): row for row in self._detail["evals"]}
        self._sources: dict[str, EvalSource] = {}
        self.lab: str | None = client.url
        self.targets = self._detail["targets"]

    @cached_property
    def run(self) -> SuiteRun:
        """The run. Its key is the beginning that the other lab shows."""
        detail = self._detail
        replicates: defaultdict[str, int] = defaultdict(int)
        for row in detail["evals"]:
            replicates[row["path"]] = max(replicates[row["path"]], row["replicate"] + 1)
        return SuiteRun(
            detail["run"],
            detail["key"],
            detail["suite"],
            detail["version"],
            detail["model"],
            detail["condition"],
            {},
            detail["series"],
            replicates,
            detail["created"],
        )

    def results(self) -> list[EvalResult]:
        """Reads the results of the run, without files."""
        return [_result(row) for row in self._detail["evals"]]

    def failure(self, result: EvalResult) -> EvalResult:
        """Reads a result with its steps and files."""
        detail = self._suites.show_eval(self._rows[triage.result_name(result)]["eval"])
        self._sources[result.path] = EvalSource(
            result.category,
            result.name,
            detail["task"],
            detail["answer"],
            detail["grader"],
            detail["gaps"],
        )
        steps = tuple(StepResult(**step) for step in detail["steps"])
        return _result(detail, steps, detail["files"])

    def source(self, result: EvalResult) -> EvalSource:
        """Reads the files behind the eval of a result."""
        if result.path not in self._sources:
            self.failure(result)
        return self._sources[result.path]

    def others(self) -> dict[str, OutcomesByEval]:
        """Reads conclusive outcomes of other models' last runs, by model and eval."""
        run = self._detail
        similar = [
            other
            for other in self._suites.list_runs(suite=run["suite"])
            if (other["version"], other["condition"]) == (run["version"], run["condition"])
            and other["model"] != run["model"]
            and other["series"] != CHECK
        ]
        details = (self._suites.show_run(other["run"]) for other in similar)
        return _by_model((each["model"], list(map(_result, each["evals"]))) for each in details)

    def keys_from_here(self) -> list[str]:
        """Lists how the keys of the run and of later ones of its model begin."""
        run = self._detail
        runs = self._suites.list_runs(suite=run["suite"], model=run["model"])
        return [other["key"] for other in runs if other["run"] >= run["run"]]

    def sources_before(
        self, prior: Sequence[triage.PriorReport], result: EvalResult
    ) -> dict[str, EvalSource]:
        """Reads nothing: another lab does not say what an eval was before."""
        return {}


def _by_model(
    outcomes: Iterable[tuple[str, Sequence[EvalResult]]],
) -> dict[str, OutcomesByEval]:
    """Groups conclusive outcomes by model and eval. The last run of a model counts."""
    models: dict[str, OutcomesByEval] = {}
    for model, results in outcomes:
        by_eval: OutcomesByEval = defaultdict(list)
        for result in results:
            if not isinstance(result.outcome, Inconclusive):
                by_eval[result.path].append(result.outcome)
        models.setdefault(model, defaultdict(list)).update(by_eval)
    return models


def _result(
    row: EvalRow, steps: tuple[StepResult, ...] = (), files: Mapping[str, str] = NO_FILES
) -> EvalResult:
    fields = {name: row[name] for name in ("why", "step", "reason") if row[name] is not None}
    return EvalResult(
        row["category"],
        row["name"],
        read_outcome({"kind": row["outcome"], **fields}),
        steps=steps,
        files=files,
        replicate=row["replicate"],
        seconds=row["seconds"],
        usd=row["usd"],
        isolation=row["isolation"],
    )
