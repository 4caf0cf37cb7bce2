"""The verbs of a score store: suite runs that other labs made, and all runs side by side."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from judge_gym.errors import DesignError, NotFoundError
from judge_gym.outcomes import EvalResult, EvalSource
from judge_gym.store import SuiteRun
from judge_gym.suiting import Suiting


class Scorekeeping(Suiting):
    """A lab that keeps the scores of others, too."""

    def suite_tasks(self, suite: str, version: str) -> list[str]:
        """The evals of a version of a suite whose files are here, by their paths."""
        return self.store.suites.paths(suite, version)

    def keep_tasks(self, suite: str, version: str, evals: Sequence[EvalSource]) -> list[str]:
        """Keep the files of evals; what is here stays. All that is here then, by their paths."""
        self.store.suites.save_tasks(suite, version, evals)
        return self.suite_tasks(suite, version)

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
    ) -> SuiteRun:
        """Find the run of another lab and raise its targets, or begin it.

        Args:
            suite: its name.
            version: of the benchmark; all its evals are kept before its first run.
            model: an id, which need not be known here.
            experiment: the condition's name.
            condition: what it changes.
            series: of the draws.
            replicates: answers to each task.
            evals: paths.
            created: when it was begun there.
        """
        known = set(self.suite_tasks(suite, version))
        if strange := sorted({*evals} - known):
            raise NotFoundError(
                f"there is no eval {strange[0]!r} in version {version!r} of the suite {suite!r} "
                "here; its files come first"
            )
        return self.store.suites.save_run(
            suite,
            version,
            model,
            experiment,
            condition,
            series,
            replicates=replicates,
            evals=evals,
            created=created,
        )

    def keep_eval(self, run: int, result: EvalResult, at: datetime) -> int:
        """Keep a result that another lab made at a time; its number. Once is as good as twice."""
        found = self.store.suites.find_run(run)
        if result.path not in found.evals or not 0 <= result.replicate < found.replicates:
            raise DesignError(
                f"run {run} asks for no replicate {result.replicate} of {result.path!r}"
            )
        return self.store.suites.take_result(found, result, at)

    def board(self, *, suite: str | None = None) -> list[dict[str, Any]]:
        """The leaderboard as rows: a model, an experiment and a version of a suite each."""
        names = {report.run.version: report.run.suite for report in self.suite_runs(suite=suite)}
        return [
            {
                "suite": names[row.version],
                "version": row.version,
                "experiment": row.experiment,
                "model": row.model,
                "score": _number(row.score.value),
                "low": _number(row.score.low),
                "high": _number(row.score.high),
                "sd": _number(row.sd),
                "runs": row.runs,
                "evals": row.evals,
                "passed": row.passed,
                "failed": row.failed,
                "inconclusive": row.inconclusive,
                "unscored": row.unscored,
                "usd": row.usd,
                "seconds": row.seconds,
            }
            for row in self.leaderboard(suite=suite)
        ]


def _number(value: float) -> float | None:
    """A number, or nothing where it is undefined: NaN is no JSON."""
    return None if value != value else value
