"""The results of executed runs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judge_gym.engine.runs.orders import Outcome
from judge_gym.engine.runs.planner import StagePlan
from judge_gym.errors import JudgeGymError
from judge_gym.records import SuiteRun
from judge_gym.store import Progress, Run

FINISHED = ("complete", "complete-with-failures")


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run."""

    tag: str
    run: int
    status: str
    counts: Mapping[str, int]
    """Samples by verdict status."""
    calls: int
    """Calls that this command paid for."""
    reused: int
    usd: float
    saved: float
    """US dollars that the reused answers once cost."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a study, or of some experiments."""

    study: str
    status: str
    runs: tuple[RunResult, ...]
    warnings: tuple[str, ...]
    stopped: JudgeGymError | None = None
    left: StagePlan | None = None
    """The estimate of what is missing, where a budget was reached."""

    def to_json(self) -> dict[str, Any]:
        """Returns the result as `--json` prints it."""
        return {
            "study": self.study,
            "status": self.status,
            "runs": [asdict(run) for run in self.runs],
            "warnings": list(self.warnings),
            **({"left": self.left.to_json()} if self.left else {}),
        }


def study_result(
    study: str,
    runs: Sequence[Run],
    outcomes: Sequence[Outcome],
    progress: Sequence[Progress],
    stopped: JudgeGymError | None,
) -> Result:
    """Returns the result of runs that were executed together; `stopped` ended them early."""
    results = tuple(
        RunResult(
            tag=run.experiment.tag,
            run=run.id,
            status=reached.status,
            counts=reached.statuses,
            calls=outcome.paid,
            reused=outcome.reused,
            usd=outcome.usd,
            saved=outcome.saved,
        )
        for run, outcome, reached in zip(runs, outcomes, progress, strict=True)
    )
    warnings = dict.fromkeys(warning for outcome in outcomes for warning in outcome.warnings)
    return Result(study, _overall(results), results, tuple(warnings), stopped)


@dataclass(frozen=True, slots=True)
class SuiteExecution:
    """What one command did for a suite run."""

    run: SuiteRun
    outcome: Outcome
    stopped: JudgeGymError | None = None
    """Why it ended early: interrupted, or over budget."""


def _overall(runs: Sequence[RunResult]) -> str:
    """Returns the status of a study: that of its worst run."""
    statuses = {run.status for run in runs}
    if "failed" in statuses:
        return "failed"
    unfinished = [run.status for run in runs if run.status not in FINISHED]
    if unfinished:
        return unfinished[0]
    return "complete-with-failures" if "complete-with-failures" in statuses else "complete"
