"""Suite runs, and the steps, outcomes and results of their evals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from judge_gym.records.searches import Search

InconclusiveReason = Literal["infrastructure", "rate_limit", "judge_error"]
INCONCLUSIVE: tuple[InconclusiveReason, ...] = get_args(InconclusiveReason)
FILESYSTEM = "filesystem"
"""The step in which a reply's files are read and written."""
IN_PROCESS = "in-process"
"""Marks the isolation of results whose grader imported the candidate's code."""
SEARCH = "search"
"""The step that shows the web searches of a model."""
StepStatus = Literal["passed", "failed", "inconclusive", "skipped"]


@dataclass(frozen=True, slots=True)
class Passed:
    """Every step passed, and every test."""

    kind: Literal["passed"] = "passed"


@dataclass(frozen=True, slots=True)
class Failed:
    """The candidate failed a step."""

    step: str
    reason: str
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """Nothing was learnt about the candidate, so that the eval does not count in the score."""

    why: InconclusiveReason
    reason: str
    step: str = ""
    kind: Literal["inconclusive"] = "inconclusive"


Outcome = Passed | Failed | Inconclusive
_OUTCOMES: Mapping[str, type[Outcome]] = {
    "passed": Passed,
    "failed": Failed,
    "inconclusive": Inconclusive,
}


def read_outcome(fields: Mapping[str, Any]) -> Outcome:
    """Builds an outcome from its kind and its fields."""
    return _OUTCOMES[fields["kind"]](**fields)


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of one eval: its status, its duration and its truncated output."""

    name: str
    status: StepStatus
    seconds: float
    reason: str = ""
    output: str = ""
    tests_passed: int | None = None
    """Of a step that runs tests; it passes only if all expected tests were collected."""
    tests_collected: int | None = None


def search_step(searches: Sequence[Search]) -> StepResult:
    """Records the web searches of a model as a step, which always passes."""
    lines = []
    for search in searches:
        lines.append(f"? {search.query or '(the provider does not say)'}")
        lines += [f"  {source}" for source in search.sources]
        lines += [f"  failed: {search.error}"] if search.error else []
    count = f"{len(searches)} search{'es' * (len(searches) != 1)}" if searches else "no search"
    return StepResult(SEARCH, "passed", 0.0, count, "\n".join(lines))


@dataclass(frozen=True, slots=True)
class EvalResult:
    """The result of one eval of a run, with the files that the model wrote."""

    category: str
    name: str
    outcome: Outcome
    steps: tuple[StepResult, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    replicate: int = 0
    call_id: int | None = None
    seconds: float = 0.0
    """The duration of the generation; steps have their own."""
    usd: float | None = None
    isolation: str = ""

    @property
    def path(self) -> str:
        """The path of the eval in its suite."""
        return f"{self.category}/{self.name}"

    @property
    def settled(self) -> bool:
        """Whether it is final: an inconclusive eval is tried again by the next command.

        An empty reply is final, too, since the ledger would only return it again.
        """
        outcome = self.outcome
        return not isinstance(outcome, Inconclusive) or outcome.step == FILESYSTEM


@dataclass(frozen=True, slots=True)
class EvalSource:
    """The files of an eval: the task, the reference answer, the grader, and known gaps."""

    category: str
    name: str
    task: str
    answer: Mapping[str, str]
    grader: Mapping[str, str]
    gaps: str = ""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A run of a suite with a model, under a condition, in a series of draws."""

    id: int
    key: str
    """A hash of what follows, without the targets; it is the same in every lab."""
    suite: str
    version: str
    """Of the suite."""
    model: str
    condition: str
    """The name of the condition."""
    settings: Mapping[str, Any]
    """What the condition changes."""
    series: str
    replicates_of: Mapping[str, int]
    """How many answers each of its evals needs, by path."""
    created: datetime

    @property
    def evals(self) -> tuple[str, ...]:
        """The paths of its evals."""
        return tuple(self.replicates_of)

    @property
    def replicates(self) -> int:
        """The most answers that any of its evals needs."""
        return max(self.replicates_of.values(), default=0)

    @property
    def targets(self) -> int:
        """The number of results of a complete run."""
        return sum(self.replicates_of.values())

    @property
    def payer(self) -> int:
        """Its number in the ledger and in events: negated, so that no other run has it."""
        return -self.id


class SuiteResult(NamedTuple):
    """A stored result."""

    id: int
    run_id: int
    at: datetime
    result: EvalResult
