"""How runs are ordered and how they end: options, work orders, outcomes and results."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from judge_gym.engine.calls.budget import RunOverBudget
from judge_gym.engine.calls.circuit_breaker import EndpointDown, Trial
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.stopped import Stopped
from judge_gym.errors import BudgetError, JudgeGymError
from judge_gym.records import SuiteRun
from judge_gym.records.inputs import WORKFLOWS, Workflow
from judge_gym.store import Progress, Run

if TYPE_CHECKING:
    from judge_gym.engine.planner import StagePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a study or experiments are run. The defaults run a study as its file says."""

    workflows: Sequence[Workflow] = WORKFLOWS
    """The workflows that may be executed; what is missing of the others is an error."""
    samples: int | None = None
    """Replicates per cell, instead of the study's."""
    series: str | None = None
    """The name under which scores and probes are drawn afresh; by default the study's seed."""
    new_run: bool = False
    """Supersede the active runs; the ledger still answers what was asked before."""
    rivals: Sequence[str] = ()
    """Authors whose rubrics are used beside those that the study names."""
    budget: Mapping[str, Any] = field(default_factory=dict)
    """Limits instead of the study's: usd, calls, tokens, minutes, run.usd, ..."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Knobs over those of the study file's base design."""
    offline: bool = False
    """Fetch nothing and call no model; every answer must be in the ledger."""
    pause_after: Workflow | None = None
    """Pause when this workflow is done."""
    only_failed: bool = False
    """Repeat failed calls and nothing else."""
    allow_private: bool = False
    """Allow evidence to be fetched from private network addresses."""


class Paused(Stopped):
    """The run was paused; it can be resumed."""


class PausedAsOrdered(Paused):
    """The run has done the workflow after which its order pauses it."""


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
ANALYSES = "analyses"
"""The queue of the analyses of suite runs."""
EVALS = "evals"
"""The one step of a suite run."""
GENERATION = "generation"
"""The step of a result whose model gave no answer, and the stage of a suite's calls."""
CODE_TOKENS = 2_000
"""The tokens of a typical answer to a coding task, reasoning included, until a run measured it."""


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
    selection: Mapping[str, int] | None = None
    """The only evals to ask for, by path, with the replicates of each; None for all of the run."""

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
        cause = error or progress.down
        message = getattr(cause, "message", None) or (repr(cause) if cause else "")
        counts = (progress.paid, progress.reused, progress.usd, progress.saved)
        trial = getattr(cause, "trial", None)
        return cls(end_of(error), message, *counts, list(progress.warnings), trial)

    def add_to(self, progress: RunProgress) -> None:
        """Counts a shard in the progress of its run, but not where its process already did."""
        progress.paid += self.paid
        progress.reused += self.reused
        progress.usd += self.usd
        progress.saved += self.saved
        if self.trial is not None:
            progress.down = EndpointDown(self.message, self.trial)
        progress.warnings += [note for note in self.warnings if note not in progress.warnings]

    @property
    def error(self) -> JudgeGymError | None:
        """The error that ended it early."""
        if self.end == "waiting":
            return EndpointDown(self.message, self.trial)
        return ENDS[self.end](self.message) if self.end != "done" else None


def parent(id: str) -> str:
    """Returns the workflow id of the run that a shard belongs to.

    >>> parent("7.1/score/3"), parent("7.1")
    ('7.1', '7.1')
    """
    return id.partition("/")[0]


def run_number(id: str) -> int:
    """Returns the number of the run that a workflow belongs to.

    >>> run_number("7.1/score/3"), run_number("-2.1")
    (7, -2)
    """
    return int(id.partition(".")[0])


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
    left: "StagePlan | None" = None
    """The estimate of what is missing, where a budget was reached."""
    enough: Mapping[str, float] = field(default_factory=dict)
    """The limits that would be enough, where a budget was reached."""

    def to_json(self) -> dict[str, Any]:
        """Returns the result as `--json` prints it."""
        return {
            "study": self.study,
            "status": self.status,
            "runs": [asdict(run) for run in self.runs],
            "warnings": list(self.warnings),
            **({"left": self.left.to_json()} if self.left else {}),
            **({"enough": dict(self.enough)} if self.enough else {}),
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
