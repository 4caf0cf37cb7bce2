"""What is to be done of a run, how it ended, and the faults that end it early."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from judge_gym.engine.calls.ask import EndpointDown, Stopped
from judge_gym.engine.calls.budget import RunOverBudget
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.options import WORKFLOWS, RunOptions, Workflow
from judge_gym.errors import BudgetError, JudgeGymError
from judge_gym.store import Run


class Paused(Stopped):
    """Somebody paused the run; it can be resumed."""


class Cancelled(Stopped):
    """Somebody cancelled the run; only starting it anew goes on."""


class Leaving(JudgeGymError):
    """This process ends: others go on with what it was at."""


class Failed(JudgeGymError):
    """A fault in another process ended the run."""


ENDS: dict[str, type[JudgeGymError]] = {
    "paused": Paused,
    "cancelled": Cancelled,
    "stopped": Stopped,
    "run-over-budget": RunOverBudget,
    "over-budget": BudgetError,
    "waiting": EndpointDown,
    "failed": Failed,
}
"""How a run may end early, the most particular first."""


def end_of(fault: BaseException | None) -> str:
    """The name of an end; `done` where nothing stood in the way."""
    if fault is None:
        return "done"
    return next((name for name, kind in ENDS.items() if isinstance(fault, kind)), "failed")


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """What is to be done of a run; it is kept in the queue, and so holds only names and numbers."""

    run: int
    tag: str
    workflows: tuple[Workflow, ...] = WORKFLOWS
    offline: bool = False
    pause_after: Workflow | None = None
    only_failed: bool = False

    @classmethod
    def of_run(cls, run: Run, options: RunOptions) -> "WorkOrder":
        """What options ask of a run."""
        return cls(
            run.id,
            run.experiment.tag,
            tuple(options.workflows),
            options.offline,
            options.pause_after,
            options.only_failed,
        )

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> "WorkOrder":
        """An order as it was kept."""
        return cls(**{**kept, "workflows": tuple(kept["workflows"])})

    def to_json(self) -> dict[str, Any]:
        """It as it is kept."""
        return {**asdict(self), "workflows": list(self.workflows)}


@dataclass(slots=True)
class Outcome:
    """How a run, or a shard of one, ended, and what it took."""

    end: str = "done"
    said: str = ""
    paid: int = 0
    reused: int = 0
    usd: float = 0.0
    saved: float = 0.0
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, fault: BaseException | None, tally: RunProgress) -> "Outcome":
        """What a tally and a fault come to."""
        said = getattr(fault, "message", None) or (repr(fault) if fault else "")
        counted = (tally.paid, tally.reused, tally.usd, tally.saved)
        return cls(end_of(fault), said, *counted, list(tally.warnings))

    def add(self, part: "Outcome") -> None:
        """Count what a part of the work took."""
        self.paid += part.paid
        self.reused += part.reused
        self.usd += part.usd
        self.saved += part.saved
        self.warnings += [note for note in part.warnings if note not in self.warnings]

    @property
    def fault(self) -> JudgeGymError | None:
        """Why it ended early."""
        return ENDS[self.end](self.said) if self.end != "done" else None
