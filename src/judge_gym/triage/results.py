"""A run's results, split by their typed outcome: an inconclusive one never reaches a judge."""

from collections.abc import Iterable
from dataclasses import dataclass

from judge_gym.errors import DesignError
from judge_gym.records.outcomes import (
    FILESYSTEM,
    EvalResult,
    Failed,
    Inconclusive,
    Passed,
    StepResult,
)


@dataclass(frozen=True, slots=True)
class ResultsByOutcome:
    """The results of a run, split; every count of a report is a count of these."""

    passed: tuple[EvalResult, ...]
    failed: tuple[EvalResult, ...]
    inconclusive: tuple[EvalResult, ...]

    @property
    def evals(self) -> int:
        """The number of distinct evals: fewer than results where there are replicates."""
        return len({result.path for result in (*self.passed, *self.failed, *self.inconclusive)})

    @property
    def conclusive(self) -> int:
        """The denominator of the pass rate."""
        return len(self.passed) + len(self.failed)

    def name(self, result: EvalResult) -> str:
        """Returns a result's name in a report; among replicates, the first is numbered, too."""
        own = result_name(result)
        alone = self.evals == self.conclusive + len(self.inconclusive)
        return own if alone or result.replicate else f"{own}#0"


def split_results(results: Iterable[EvalResult]) -> ResultsByOutcome:
    """Splits results by outcome, each part sorted by name.

    The type decides, never the words of a reason: a candidate may print "connection refused".
    """
    by_name: dict[str, EvalResult] = {}
    for result in results:
        if result_name(result) in by_name:
            raise DesignError(f"two results of {result_name(result)}; number the replicates")
        by_name[result_name(result)] = result
    ordered = [by_name[name] for name in sorted(by_name)]
    return ResultsByOutcome(
        passed=tuple(one for one in ordered if isinstance(one.outcome, Passed)),
        failed=tuple(one for one in ordered if isinstance(one.outcome, Failed)),
        inconclusive=tuple(one for one in ordered if isinstance(one.outcome, Inconclusive)),
    )


def result_name(result: EvalResult) -> str:
    """Returns the eval's path, with the replicate's number where it is not the first."""
    return f"{result.path}#{result.replicate}" if result.replicate else result.path


def failure_of(result: EvalResult) -> Failed:
    """Returns how a result failed; refuses any other outcome."""
    if not isinstance(result.outcome, Failed):
        raise DesignError(
            f"{result_name(result)} is {result.outcome.kind}; only failed results are judged"
        )
    return result.outcome


def failed_steps(result: EvalResult) -> tuple[StepResult, ...]:
    """Returns every failed step of a failure in order; the first is that of its outcome."""
    outcome = failure_of(result)
    failed = tuple(step for step in result.steps if step.status == "failed")
    if any(step.name == outcome.step for step in failed):
        return failed
    # Its record is gone, or passed: a reference answer fails by the number of its tests.
    return (StepResult(outcome.step, "failed", 0.0, outcome.reason), *failed)


def reply_of(result: EvalResult) -> str:
    """Returns what a model wrote instead of files: the output of the failed step `filesystem`."""
    return "".join(step.output for step in failed_steps(result) if step.name == FILESYSTEM)
