"""The gate: a run's results by typed outcome. What is inconclusive never reaches a judge."""

from collections.abc import Iterable
from dataclasses import dataclass

from judge_gym.errors import DesignError
from judge_gym.outcomes import (
    FILESYSTEM,
    EvalResult,
    Failed,
    Inconclusive,
    Passed,
    StepResult,
)


@dataclass(frozen=True, slots=True)
class Gated:
    """The results of a run, split; every count of a report is a count of these."""

    passed: tuple[EvalResult, ...]
    failed: tuple[EvalResult, ...]
    inconclusive: tuple[EvalResult, ...]

    @property
    def evals(self) -> int:
        """How many evals the results are of; fewer than results where there are replicates."""
        return len({one.path for one in (*self.passed, *self.failed, *self.inconclusive)})

    def name(self, result: EvalResult) -> str:
        """What a report calls a result: among replicates the first has its number, too."""
        own = result_name(result)
        alone = self.evals == self.conclusive + len(self.inconclusive)
        return own if alone or result.replicate else f"{own}#0"

    @property
    def conclusive(self) -> int:
        """The denominator of the pass rate."""
        return len(self.passed) + len(self.failed)


def gate(results: Iterable[EvalResult]) -> Gated:
    """Split results by their outcome, each part in the order of names.

    The type decides, never the words of a reason: a candidate may print "connection refused".
    """
    found: dict[str, EvalResult] = {}
    for result in results:
        if result_name(result) in found:
            raise DesignError(f"two results of {result_name(result)}; number the replicates")
        found[result_name(result)] = result
    ordered = [found[name] for name in sorted(found)]
    return Gated(
        passed=tuple(one for one in ordered if isinstance(one.outcome, Passed)),
        failed=tuple(one for one in ordered if isinstance(one.outcome, Failed)),
        inconclusive=tuple(one for one in ordered if isinstance(one.outcome, Inconclusive)),
    )


def result_name(result: EvalResult) -> str:
    """What a result is called: its eval, and which replicate where it is not the first."""
    return f"{result.path}#{result.replicate}" if result.replicate else result.path


def failure_of(result: EvalResult) -> Failed:
    """How a result failed; anything but a failure is refused."""
    if not isinstance(result.outcome, Failed):
        raise DesignError(
            f"{result_name(result)} is {result.outcome.kind}; only what failed is judged"
        )
    return result.outcome


def failed_steps(result: EvalResult) -> tuple[StepResult, ...]:
    """Every step that a result failed at, in their order; the first is that of its outcome."""
    outcome = failure_of(result)
    found = tuple(step for step in result.steps if step.status == "failed")
    if any(step.name == outcome.step for step in found):
        return found
    # Its record is gone, or passed: a reference answer fails by the number of its tests.
    return (StepResult(outcome.step, "failed", 0.0, outcome.reason), *found)


def reply_of(result: EvalResult) -> str:
    """What a model wrote in the place of files, which is what the step `filesystem` printed."""
    return "".join(step.output for step in failed_steps(result) if step.name == FILESYSTEM)
