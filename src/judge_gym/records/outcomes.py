"""What a suite run passes on: steps, outcomes and results of code-generation evals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from judge_gym.records.searches import Search

InconclusiveReason = Literal["infrastructure", "rate_limit", "judge_error"]
INCONCLUSIVE: tuple[InconclusiveReason, ...] = ("infrastructure", "rate_limit", "judge_error")
FILESYSTEM = "filesystem"
"""The step in which a reply's files are read and written."""
SEARCH = "search"
"""The step that holds what a model searched before it wrote, where it could."""
StepStatus = Literal["passed", "failed", "inconclusive", "skipped"]


@dataclass(frozen=True, slots=True)
class Passed:
    """Every step passed, and every test."""

    kind: Literal["passed"] = "passed"


@dataclass(frozen=True, slots=True)
class Failed:
    """The candidate's own fault, as far as the steps can tell."""

    step: str
    reason: str
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """Nothing was learnt about the candidate; it leaves the denominator and is always shown."""

    why: InconclusiveReason
    reason: str
    step: str = ""
    kind: Literal["inconclusive"] = "inconclusive"


Outcome = Passed | Failed | Inconclusive


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of one eval: how it ended, how long it took, what it printed (up to a cap)."""

    name: str
    status: StepStatus
    seconds: float
    reason: str = ""
    output: str = ""
    # Of a step that runs tests; a result counts only if as many were collected as expected.
    tests_passed: int | None = None
    tests_collected: int | None = None


def search_step(searches: Sequence[Search]) -> StepResult:
    """What a model searched before it wrote, as a step: it decides nothing, and is shown."""
    lines = [
        line
        for search in searches
        for line in (
            f"? {search.query or '(the provider does not say)'}",
            *(f"  {source}" for source in search.sources),
            *([f"  failed: {search.fault}"] if search.fault else []),
        )
    ]
    many = f"{len(searches)} search{'es' * (len(searches) != 1)}" if searches else "no search"
    return StepResult(SEARCH, "passed", 0.0, many, "\n".join(lines))


@dataclass(frozen=True, slots=True)
class EvalResult:
    """One eval of a run: what the model wrote, and what became of it."""

    category: str
    name: str
    outcome: Outcome
    steps: tuple[StepResult, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    replicate: int = 0
    call_id: int | None = None
    # Of the generation alone; steps carry their own.
    seconds: float = 0.0
    usd: float | None = None
    isolation: str = ""

    @property
    def path(self) -> str:
        """Where the eval stands in its suite."""
        return f"{self.category}/{self.name}"

    @property
    def settled(self) -> bool:
        """Whether it stays: where nothing was learnt, the next command tries again.

        An empty reply is an answer: it is not asked for again, and is as empty the next time.
        """
        outcome = self.outcome
        return not isinstance(outcome, Inconclusive) or outcome.step == FILESYSTEM


@dataclass(frozen=True, slots=True)
class EvalSource:
    """The files behind an eval: what was asked, the reference answer, the grader, known gaps."""

    category: str
    name: str
    task: str
    answer: Mapping[str, str]
    grader: Mapping[str, str]
    gaps: str = ""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A model before a suite, under a condition, in a series of draws."""

    id: int
    key: str
    """A hash of what follows, without the targets: the same in every lab."""
    suite: str
    version: str
    """Of the benchmark."""
    model: str
    condition: str
    """The name of the condition."""
    settings: Mapping[str, Any]
    """What the condition changes."""
    series: str
    replicates: int
    evals: tuple[str, ...]
    """Paths of those that it is asked for."""
    created: datetime

    @property
    def wanted(self) -> int:
        """How many results it has when it is complete."""
        return len(self.evals) * self.replicates

    @property
    def payer(self) -> int:
        """The number under which the ledger knows it: minus its own, which no other run has."""
        return -self.id


class SuiteResult(NamedTuple):
    """A result with its row."""

    id: int
    run_id: int
    at: datetime
    result: EvalResult
