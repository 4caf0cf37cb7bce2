"""Counts a run's progress while it executes."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from judge_gym.engine.calls.circuit_breaker import EndpointDown
from judge_gym.errors import Bill
from judge_gym.records import Completion

MEASURED, LIMITS, TYPICAL = "measured", "limits", "typical"
"""What a duration is estimated from: earlier calls, declared rates, or models in general."""
BASES = (MEASURED, LIMITS, TYPICAL)


class Pace(NamedTuple):
    """The wall time that one more call adds."""

    seconds: float
    basis: str


@dataclass(slots=True)
class ModelProgress:
    """How one model answers."""

    answered: int = 0
    in_flight: int = 0
    error: str = ""
    """Of the last call that failed."""
    started: float = field(default_factory=time.monotonic)
    """When it was first asked."""
    seconds: float = 0.0
    """Of all calls that have ended."""
    begun: float = 0.0
    """The sum of the times at which the calls in flight began."""


@dataclass(slots=True)
class RunProgress:
    """What a run has done since it was started; faces poll it."""

    done: dict[str, int] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)
    paid: int = 0
    reused: int = 0
    usd: float = 0.0
    saved: float = 0.0
    """US dollars that the reused answers once cost."""
    warnings: list[str] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    """The model that each step asks most."""
    models: dict[str, ModelProgress] = field(default_factory=dict)
    """The models that were asked."""
    expected: dict[str, Pace] = field(default_factory=dict)
    """What a call to a model adds, until enough answers of this run are there."""
    endpoints: dict[str, str] = field(default_factory=dict)
    """The endpoint of each model; models at one share its limits."""
    label: str = ""
    """What tells this run from others that are shown beside it; empty for runs of a study."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """The results of a suite run, by outcome."""
    down: EndpointDown | None = None
    """Why calls of a suite run were not made, where their endpoint is to be tried again."""
    ending: bool = False
    """Whether the user stopped it: calls in flight are awaited, and no other begins."""
    whole: "RunProgress | None" = None
    """The progress that this one is a part of, which counts the same."""

    def part(self) -> "RunProgress":
        """Returns the progress of a part of the work, which is counted here as well."""
        return RunProgress(whole=self)

    def advance(self, stage: str, count: int) -> None:
        """Counts targets of a stage as done."""
        self.done[stage] = self.done.get(stage, 0) + count
        if self.whole is not None:
            self.whole.advance(stage, count)

    def count_outcome(self, outcome: str) -> None:
        """Counts the result of an eval."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if self.whole is not None:
            self.whole.count_outcome(outcome)

    def begin_call(self, model: str, at: float) -> None:
        """Counts a call in flight, which began at a time of the monotonic clock."""
        progress = self.models.setdefault(model, ModelProgress(started=at))
        progress.in_flight += 1
        progress.begun += at
        if self.whole is not None:
            self.whole.begin_call(model, at)

    def end_call(self, model: str, begun: float, at: float, error: str | None) -> None:
        """Counts a call that was answered, or failed with an error."""
        progress = self.models[model]
        progress.in_flight -= 1
        progress.begun -= begun
        progress.seconds += at - begun
        progress.answered += error is None
        progress.error = error or progress.error
        if self.whole is not None:
            self.whole.end_call(model, begun, at, error)

    def warn(self, warning: str) -> None:
        """Keeps a warning, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)
        if self.whole is not None:
            self.whole.warn(warning)

    def pay(self, cost: Completion | Bill | None) -> None:
        """Counts an attempt; its cost is None where the provider did not report it."""
        self.paid += 1
        self.usd += (cost.usd or 0.0) if cost else 0.0
        if self.whole is not None:
            self.whole.pay(cost)

    def reuse(self, count: int, saved: float) -> None:
        """Counts answers that were in the ledger, and what they once cost."""
        self.reused += count
        self.saved += saved
        if self.whole is not None:
            self.whole.reuse(count, saved)
