"""How suite runs stand: scores and statuses, from their rows alone."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.suite_runs import SuiteExecution
from judge_gym.errors import JudgeGymError
from judge_gym.records.outcomes import Failed, Inconclusive
from judge_gym.store import Store, SuiteResult, SuiteRun
from judge_gym.suites import RunScore, run_score

TOLERANCE = 0.05
"""The share of inconclusive evals with which a run still counts as carried out."""


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """A suite run as it stands, and what the last command added."""

    run: SuiteRun
    score: RunScore
    results: tuple[SuiteResult, ...]
    whole: bool
    """Whether it is over all evals of its suite; only such runs enter a leaderboard."""
    execution: SuiteExecution | None = None

    @property
    def status(self) -> str:
        """How it stands, from its rows."""
        if len(self.results) < self.run.wanted:
            return "unfinished"
        if self.score.score is None:
            return "inconclusive"
        inconclusive = sum(self.score.inconclusive.values())
        return "complete-with-failures" if inconclusive else "complete"

    @property
    def failed(self) -> bool:
        """Whether it ended, and so much of it is inconclusive that it tells little."""
        lost = sum(self.score.inconclusive.values())
        return self.status != "unfinished" and lost > TOLERANCE * self.run.wanted

    @property
    def isolation(self) -> list[str]:
        """How candidates were kept apart from their host."""
        return sorted({row.result.isolation for row in self.results} - {""})

    @property
    def stopped(self) -> JudgeGymError | None:
        """Why the last command ended early."""
        return self.execution.stopped if self.execution else None

    def narrowed(self, evals: Collection[str], replicates: int) -> "SuiteReport":
        """The same run on some of its evals and replicates: what a comparison rests on."""
        results = tuple(
            row
            for row in self.results
            if row.result.path in evals and row.result.replicate < replicates
        )
        kept = tuple(path for path in self.run.evals if path in evals)
        run = replace(self.run, evals=kept, replicates=min(replicates, self.run.replicates))
        return replace(self, run=run, results=results, score=_score(run, results, self.whole))

    def to_json(self) -> dict[str, Any]:
        """The run as `--json` prints it."""
        estimate = self.score.estimate
        known = self.score.score is not None
        tally = self.execution.tally if self.execution else RunProgress()
        return {
            "run": self.run.id,
            "key": self.run.key[:16],
            "suite": self.run.suite,
            "version": self.run.version,
            "model": self.run.model,
            "experiment": self.run.experiment,
            "series": self.run.series,
            "replicates": self.run.replicates,
            "status": self.status,
            "whole": self.whole,
            "wanted": self.run.wanted,
            "counts": {
                "passed": self.score.passed,
                "failed": self.score.failed,
                "inconclusive": sum(self.score.inconclusive.values()),
            },
            "inconclusive": dict(self.score.inconclusive),
            "score": self.score.score,
            "low": estimate.low if known else None,
            "high": estimate.high if known else None,
            "categories": {k: list(v) for k, v in self.score.categories().items()},
            "cost": self.score.usd,
            "seconds": self.score.seconds,
            "isolation": self.isolation,
            "calls": tally.paid,
            "reused": tally.reused,
            "usd": tally.usd,
        }


def reports(
    store: Store, runs: Sequence[SuiteRun], execution: SuiteExecution | None = None
) -> tuple[SuiteReport, ...]:
    """Runs as they stand; `execution` is what a command just did for them."""
    sizes = store.suites.sizes()
    # Of one run its own rows are read, of many all rows.
    rows = store.suites.results(*(run.id for run in runs if len(runs) == 1))
    made = []
    for run in runs:
        own = tuple(rows.get(run.id, ()))
        whole = len(run.evals) == sizes.get((run.suite, run.version))
        made.append(SuiteReport(run, _score(run, own, whole), own, whole, execution))
    return tuple(made)


def _score(run: SuiteRun, rows: Sequence[SuiteResult], whole: bool) -> RunScore:
    ended = max((row.at for row in rows), default=run.created)
    return run_score(
        (row.result for row in rows),
        run=str(run.id),
        model=run.model,
        experiment=run.experiment,
        version=run.version,
        ended=ended.timestamp(),
        complete=whole and len(rows) >= run.wanted,
    )


def eval_row(row: SuiteResult) -> dict[str, Any]:
    """An eval of a run in one line."""
    outcome = row.result.outcome
    told = outcome if isinstance(outcome, Failed | Inconclusive) else None
    return {
        "eval": row.id,
        "run": row.run_id,
        "path": row.result.path,
        "category": row.result.category,
        "name": row.result.name,
        "replicate": row.result.replicate,
        "outcome": outcome.kind,
        "why": outcome.why if isinstance(outcome, Inconclusive) else None,
        "step": told.step if told else None,
        "reason": told.reason if told else None,
        "call_id": row.result.call_id,
        "seconds": row.result.seconds,
        "usd": row.result.usd,
        "isolation": row.result.isolation,
        "at": row.at,
    }
