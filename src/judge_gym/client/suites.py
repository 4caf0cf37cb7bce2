"""Suite runs of a remote lab: reading them as `Lab` does, and posting those that were made here."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from judge_gym.client.connection import Connection
from judge_gym.records.outcomes import EvalResult


class Suites(Connection):
    """A remote lab that keeps the scores of suite runs."""

    # --- reading ---------------------------------------------------------------------------------

    def suite_runs(
        self, *, suite: str | None = None, model: str | None = None
    ) -> list[dict[str, Any]]:
        """All runs, or those of a suite or a model, oldest first."""
        return list(self._rows("suites/runs", suite=suite, model=model))

    def suite_run(self, run: int) -> dict[str, Any]:
        """A run by its number, with all its evals."""
        return self._get(f"suites/runs/{run}")

    def leaderboard(self, *, suite: str | None = None) -> list[dict[str, Any]]:
        """The last complete runs of each model, experiment and version."""
        return list(self._rows("suites/leaderboard", paged=False, suite=suite))

    def failed_evals(self, run: int) -> list[dict[str, Any]]:
        """The evals of a run that did not pass, with the step and the reason."""
        return list(self._rows(f"suites/runs/{run}/failed"))

    def eval_debug(self, eval: int) -> dict[str, Any]:
        """The task, steps, output files, answer, grader and gaps of one eval of a run."""
        return self._get(f"suites/evals/{eval}")

    def schedule(
        self, suite: str = "python", *, models: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """When each model is due for another run of the suite of a name, as the remote lab sees it.

        Args:
            suite: its name.
            models: only these ids; by default those that the remote lab knows.
        """
        return list(self._rows("suites/schedule", paged=False, suite=suite, model=list(models)))

    # --- posting ---------------------------------------------------------------------------------

    def suite_tasks(self, suite: str, version: str) -> list[str]:
        """The evals of a version of a suite whose files are there, by their paths."""
        return list(self._get("suites/tasks", suite=suite, version=version)["evals"])

    def keep_tasks(self, suite: str, version: str, evals: Sequence[Mapping[str, Any]]) -> list[str]:
        """Post the files of evals: category, name, task, answer, grader, gaps."""
        sent = {"suite": suite, "version": version, "evals": list(evals)}
        return list(self._post("suites/tasks", sent)["evals"])

    def keep_run(
        self,
        suite: str,
        version: str,
        model: str,
        experiment: str,
        condition: Mapping[str, Any],
        series: str,
        *,
        replicates: int,
        evals: Sequence[str],
        created: datetime | None = None,
    ) -> dict[str, Any]:
        """Post a run, or find the one that is there and raise its targets."""
        sent = {
            "suite": suite,
            "version": version,
            "model": model,
            "experiment": experiment,
            "condition": dict(condition),
            "series": series,
            "replicates": replicates,
            "evals": list(evals),
            "created": created,
        }
        return self._post("suites/runs", sent)

    def keep_eval(self, run: int, result: EvalResult, at: datetime) -> int:
        """Post a result that was made at a time; its number there. Once is as good as twice."""
        sent = {name: value for name, value in asdict(result).items() if name != "call_id"}
        return int(self._post(f"suites/runs/{run}/evals", {**sent, "at": at})["eval"])
