"""The scores and statuses of suite runs, from their rows and events alone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from judge_gym.engine.orders import Outcome, SuiteExecution
from judge_gym.errors import JudgeGymError
from judge_gym.records.outcomes import IN_PROCESS, Failed, Inconclusive
from judge_gym.store import Event, Store, SuiteResult, SuiteRun
from judge_gym.store.progress import STOPS

if TYPE_CHECKING:
    from judge_gym.suites import RunScore

TOLERANCE = 0.05
"""The share of inconclusive evals that a run may have without counting as failed."""

MANY = 500
"""The number of runs above which their rows are not selected by run."""


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """A suite run with its score, and what the last command did for it."""

    run: SuiteRun
    score: "RunScore"
    results: tuple[SuiteResult, ...]
    size: int
    """The number of evals of its suite."""
    event: Event | None = None
    """The last event of its execution; None where it was posted."""
    execution: SuiteExecution | None = None
    executing: bool = False
    """Whether it was stopped, and calls in flight are still awaited."""
    enough: Mapping[str, float] = field(default_factory=dict)
    """The limits that would be enough, where a budget was reached."""

    @property
    def status(self) -> str:
        """The status: from its rows, and from its last event where results are missing."""
        if not self.ended:
            stopped = self.event is not None and self.event.kind in STOPS
            return STOPS[self.event.kind] if self.event and stopped else "unfinished"
        if self.score.score is None:
            return "inconclusive"
        inconclusive = sum(self.score.inconclusive.values())
        return "complete-with-failures" if inconclusive else "complete"

    @property
    def whole(self) -> bool:
        """Whether it covers all evals of its suite, as a leaderboard requires."""
        return len(self.run.evals) == self.size

    @property
    def label(self) -> str:
        """The status for readers, never plainly complete for a part of the suite."""
        if self.whole:
            return self.status
        part = f"{len(self.run.evals)} of {self.size} evals"
        return part if self.status == "complete" else f"{self.status}, {part}"

    @property
    def ended(self) -> bool:
        """Whether every eval has a result, and no inconclusive one is about to be tried again."""
        active = self.event is not None and (
            self.event.kind == "started" or "retry_at" in self.event.detail
        )
        again = active and not all(row.result.settled for row in self.results)
        return len(self.results) >= self.run.targets and not again

    @property
    def in_progress(self) -> bool:
        """Whether it was started and has not ended. It may be waiting."""
        started = self.event is not None and self.event.kind in ("started", "waiting")
        return (started or self.executing) and not self.ended

    @property
    def failed(self) -> bool:
        """Whether it ended with more inconclusive evals than is tolerated."""
        lost = sum(self.score.inconclusive.values())
        return self.ended and lost > TOLERANCE * self.run.targets

    @property
    def isolation(self) -> list[str]:
        """The kinds of isolation that its candidates ran in."""
        return sorted({row.result.isolation for row in self.results} - {""})

    @property
    def in_process(self) -> bool:
        """Whether a grader imported candidate code, so that the score can be forged."""
        return any(IN_PROCESS in isolation for isolation in self.isolation)

    @property
    def stopped(self) -> JudgeGymError | None:
        """Why the last command ended early, or None."""
        return self.execution.stopped if self.execution else None

    def narrowed(self, evals: Collection[str], replicates: int) -> "SuiteReport":
        """The report of some of its evals and replicates, for a comparison."""
        results = tuple(
            row
            for row in self.results
            if row.result.path in evals and row.result.replicate < replicates
        )
        targets = self.run.replicates_of.items()
        run = replace(
            self.run,
            replicates_of={path: min(n, replicates) for path, n in targets if path in evals},
        )
        return replace(self, run=run, results=results, score=_score(run, results, self.whole))

    def balanced(self) -> "SuiteReport":
        """The report of the replicates that every eval has.

        Runs are compared by it: evals that were chosen to be asked more often weigh no more.
        """
        return self.narrowed(self.run.evals, min(self.run.replicates_of.values(), default=0))

    def to_json(self) -> dict[str, Any]:
        """Converts the run to what `--json` prints."""
        estimate = self.score.estimate
        scored = self.score.score is not None
        outcome = self.execution.outcome if self.execution else Outcome()
        return {
            "run": self.run.id,
            "key": self.run.key[:16],
            "suite": self.run.suite,
            "version": self.run.version,
            "model": self.run.model,
            "condition": self.run.condition,
            "series": self.run.series,
            "replicates": self.run.replicates,
            "status": self.status,
            "label": self.label,
            "whole": self.whole,
            "suite_evals": self.size,
            "targets": self.run.targets,
            "counts": {
                "passed": self.score.passed,
                "failed": self.score.failed,
                "inconclusive": sum(self.score.inconclusive.values()),
            },
            "inconclusive": dict(self.score.inconclusive),
            "score": self.score.score,
            "low": estimate.low if scored else None,
            "high": estimate.high if scored else None,
            "categories": {k: list(v) for k, v in self.score.categories().items()},
            "cost": self.score.usd,
            "seconds": self.score.seconds,
            "isolation": self.isolation,
            "in_process": self.in_process,
            "calls": outcome.paid,
            "reused": outcome.reused,
            "usd": outcome.usd,
        }


def reports(
    store: Store, runs: Sequence[SuiteRun], execution: SuiteExecution | None = None
) -> tuple[SuiteReport, ...]:
    """Builds the reports of runs. `execution` is what a command just did for them."""
    sizes = store.suites.sizes()
    events = store.events.latest_by_run([run.payer for run in runs])
    # Of some runs their own rows are read, of many all rows.
    rows = store.suites.results(*(run.id for run in runs if len(runs) <= MANY))
    stopped = [id for id, event in events.items() if event.kind in STOPS]
    executing = store.progress.executing(stopped)
    results = []
    for run in runs:
        run_results = tuple(rows.get(run.id, ()))
        size = sizes[run.suite, run.version]
        score, event = _score(run, run_results, len(run.evals) == size), events.get(run.payer)
        awaited = run.payer in executing
        results.append(SuiteReport(run, score, run_results, size, event, execution, awaited))
    return tuple(results)


def _score(run: SuiteRun, rows: Sequence[SuiteResult], whole: bool) -> "RunScore":
    from judge_gym.suites import run_score

    ended = max((row.at for row in rows), default=run.created)
    return run_score(
        (row.result for row in rows),
        run=str(run.id),
        model=run.model,
        condition=run.condition,
        version=run.version,
        ended=ended.timestamp(),
        complete=whole and len(rows) >= run.targets,
    )


def eval_row(row: SuiteResult) -> dict[str, Any]:
    """Flattens an eval's result to a row."""
    outcome = row.result.outcome
    problem = outcome if isinstance(outcome, Failed | Inconclusive) else None
    return {
        "eval": row.id,
        "run": row.run_id,
        "path": row.result.path,
        "category": row.result.category,
        "name": row.result.name,
        "replicate": row.result.replicate,
        "outcome": outcome.kind,
        "why": outcome.why if isinstance(outcome, Inconclusive) else None,
        "step": problem.step if problem else None,
        "reason": problem.reason if problem else None,
        "call_id": row.result.call_id,
        "seconds": row.result.seconds,
        "usd": row.result.usd,
        "isolation": row.result.isolation,
        "at": row.at,
    }
