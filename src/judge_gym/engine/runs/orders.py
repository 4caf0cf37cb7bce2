"""Work orders, the outcomes of runs and shards, and the errors that end them early."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from judge_gym.engine.calls.ask import Stopped
from judge_gym.engine.calls.budget import RunOverBudget
from judge_gym.engine.calls.circuit import EndpointDown, Trial
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.options import WORKFLOWS, RunOptions, Workflow
from judge_gym.errors import BudgetError, JudgeGymError
from judge_gym.records import SuiteRun
from judge_gym.store import Run


class Paused(Stopped):
    """The run was paused; it can be resumed."""


class Cancelled(Stopped):
    """The run was cancelled; only starting it again continues it."""


class ProcessEnding(JudgeGymError):
    """This process ends, and others continue its work."""


class FailedElsewhere(JudgeGymError):
    """An error in another process ended the run."""


ENDS: dict[str, type[JudgeGymError]] = {
    "paused": Paused,
    "cancelled": Cancelled,
    "stopped": Stopped,
    "run-over-budget": RunOverBudget,
    "over-budget": BudgetError,
    "waiting": EndpointDown,
    "failed": FailedElsewhere,
}
"""How a run may end early, subclasses first."""


def end_of(error: BaseException | None) -> str:
    """Returns the name of an end; `done` where there was no error."""
    if error is None:
        return "done"
    return next((name for name, kind in ENDS.items() if isinstance(error, kind)), "failed")


JOBS = 8
EVALS = "evals"
"""The one step of a suite run."""


def study_of(suite: str) -> str:
    """Returns the name under which a suite's calls are paid and its budget is stored."""
    return f"suite {suite}"


@dataclass(frozen=True, slots=True)
class SuiteWork:
    """What a process needs to execute a suite run, beside the run's row."""

    version: str
    """Of the suite, with the tools that grade."""
    folder: str = ""
    """Where the suite was when the run was started; another process may have it elsewhere."""
    jobs: int = JOBS
    """Evals in sandboxes at once, in each process."""
    allow_unisolated: bool = False
    """Run candidates even where no sandbox works."""

    @property
    def queue(self) -> str:
        """The name of the queue that only processes with this suite and a sandbox serve."""
        return f"suite {self.version}{' unisolated' if self.allow_unisolated else ''}"


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """What is to be done for a run. It is stored in the queue, as names and numbers only."""

    run: int
    """The run's number; of a suite run, minus its number, as in the ledger."""
    tag: str
    """The experiment's tag; of a suite run, `suite:NUMBER`."""
    workflows: tuple[Workflow, ...] = WORKFLOWS
    offline: bool = False
    pause_after: Workflow | None = None
    only_failed: bool = False
    suite: SuiteWork | None = None
    """Given for a suite run, which has no workflows but its evals."""
    models: Mapping[str, str] = field(default_factory=dict)
    """The models that it may call, simulated ones aside, and the endpoint of each."""

    @classmethod
    def of_run(cls, run: Run, options: RunOptions, models: Mapping[str, str]) -> "WorkOrder":
        """Returns the order for a run under these options, which calls these models."""
        return cls(
            run.id,
            run.experiment.tag,
            tuple(options.workflows),
            options.offline,
            options.pause_after,
            options.only_failed,
            models=models,
        )

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "WorkOrder":
        """Returns an order as it was stored."""
        suite = SuiteWork(**stored["suite"]) if stored["suite"] else None
        return cls(**{**stored, "workflows": tuple(stored["workflows"]), "suite": suite})

    @classmethod
    def of_suite(cls, run: SuiteRun, work: SuiteWork, models: Mapping[str, str]) -> "WorkOrder":
        """Returns the order for a suite run, which calls these models."""
        return cls(run.payer, f"suite:{run.id}", (), suite=work, models=models)

    @property
    def study(self) -> str:
        """The first part of its tag: workers execute the orders of several studies at once."""
        return self.tag.partition("/")[0]

    @property
    def queues(self) -> tuple[str, str]:
        """The names of the queues of the run and of its shards.

        Only processes that can execute the order serve them: it needs the same providers, at the
        same endpoints, and the same suite as every other order in them.
        """
        prefix = f"{self.suite.queue} " if self.suite else ""
        if self.models:
            places = {(model.partition(":")[0], where) for model, where in self.models.items()}
            names = sorted({provider for provider, _ in places})
            digest = hashlib.sha256(repr(sorted(places)).encode()).hexdigest()[:12]
            prefix += f"{'offline ' if self.offline else ''}{'+'.join(names)} {digest} "
        return f"{prefix}runs", f"{prefix}shards"

    def to_json(self) -> dict[str, Any]:
        """Returns the order as it is stored."""
        return {**asdict(self), "workflows": list(self.workflows)}


@dataclass(slots=True)
class Outcome:
    """How a run, or a shard of one, ended, and what it cost."""

    end: str = "done"
    message: str = ""
    paid: int = 0
    reused: int = 0
    usd: float = 0.0
    saved: float = 0.0
    warnings: list[str] = field(default_factory=list)
    trial: Trial | None = None
    """The endpoint for which it waits, if that may be tried again."""

    @classmethod
    def of(cls, error: BaseException | None, progress: RunProgress) -> "Outcome":
        """Returns the outcome of work that ended with this error, or with None."""
        message = getattr(error, "message", None) or (repr(error) if error else "")
        counts = (progress.paid, progress.reused, progress.usd, progress.saved)
        trial = getattr(error, "trial", None)
        return cls(end_of(error), message, *counts, list(progress.warnings), trial)

    def add_to(self, progress: RunProgress) -> None:
        """Counts a shard in the progress of its run, but not where its process already did."""
        progress.paid += self.paid
        progress.reused += self.reused
        progress.usd += self.usd
        progress.saved += self.saved
        progress.warnings += [note for note in self.warnings if note not in progress.warnings]

    @property
    def error(self) -> JudgeGymError | None:
        """The error that ended it early."""
        if self.end == "waiting":
            return EndpointDown(self.message, self.trial)
        return ENDS[self.end](self.message) if self.end != "done" else None
