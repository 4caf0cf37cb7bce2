"""Computes scores and a leaderboard from outcomes, without inconclusive ones. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from judge_gym.records.outcomes import EvalResult, Inconclusive
from judge_gym.suites.ablation import counts

if TYPE_CHECKING:
    from judge_gym.analysis.stats.intervals import Estimate

LAST = 10
"""The number of latest complete runs that a leaderboard uses."""


@dataclass(frozen=True, slots=True)
class RunScore:
    """The score of a run, and what a leaderboard needs of it."""

    run: str
    model: str
    condition: str
    version: str
    """Of the benchmark."""
    ended: float
    """Orders the runs; in seconds."""
    complete: bool
    evals: Mapping[str, tuple[int, int]]
    """By eval: passed replicates, and conclusive ones."""
    inconclusive: Mapping[str, int] = field(default_factory=dict)
    """Inconclusive results by reason."""
    usd: float | None = None
    """None where the price of any call is unknown."""
    seconds: float | None = None
    """The mean time of a generation."""

    @property
    def passed(self) -> int:
        """The number of passed results."""
        return sum(passed for passed, _ in self.evals.values())

    @property
    def failed(self) -> int:
        """The number of failed results."""
        return sum(n - passed for passed, n in self.evals.values())

    @property
    def score(self) -> float | None:
        """The share of passed among conclusive results, None without any."""
        concluded = self.passed + self.failed
        return self.passed / concluded if concluded else None

    @property
    def estimate(self) -> "Estimate":
        """The score with its interval over evals: Clopper and Pearson's without replicates."""
        return pool_runs([self])

    def within(self, category: str) -> "RunScore":
        """The score over the evals of a category."""
        prefix = f"{category}/"
        selected = {path: n for path, n in self.evals.items() if path.startswith(prefix)}
        return replace(self, evals=selected)

    def categories(self) -> dict[str, tuple[int, int]]:
        """Counts passed and conclusive results by category."""
        counts: dict[str, tuple[int, int]] = {}
        for path, (passed, n) in sorted(self.evals.items()):
            category = path.partition("/")[0]
            before = counts.get(category, (0, 0))
            counts[category] = (before[0] + passed, before[1] + n)
        return counts


def run_score(
    results: Iterable[EvalResult],
    *,
    run: str,
    model: str,
    condition: str,
    version: str,
    ended: float,
    complete: bool = True,
) -> RunScore:
    """Computes the score of a run from its results, in any order."""
    import numpy as np

    rows = sorted(results, key=lambda row: (row.path, row.replicate))
    reasons = Counter(row.outcome.why for row in rows if isinstance(row.outcome, Inconclusive))
    prices = [row.usd for row in rows]
    known_prices = [usd for usd in prices if usd is not None]
    return RunScore(
        run,
        model,
        condition,
        version,
        ended,
        complete,
        evals=counts(rows),
        inconclusive=dict(sorted(reasons.items())),
        usd=sum(known_prices) if rows and len(known_prices) == len(prices) else None,
        seconds=float(np.mean([row.seconds for row in rows])) if rows else None,
    )


def pool_runs(runs: Iterable[RunScore]) -> "Estimate":
    """Estimates the mean score of runs with an interval clustered by eval.

    The contribution of an eval to the mean, over all runs, is one value; for a single run without
    replicates these are 0 and 1, and the interval is Clopper and Pearson's.
    """
    import numpy as np

    from judge_gym.analysis.stats.intervals import SHARE, estimate, undefined

    scored = [(run, run.score) for run in runs]
    scored_runs = [(run, score) for run, score in scored if score is not None]
    if not scored_runs:
        return undefined()
    added: defaultdict[str, float] = defaultdict(float)
    for run, score in scored_runs:
        weight = len(scored_runs) * (run.passed + run.failed)
        for path, (passed, n) in run.evals.items():
            if n:
                added[path] += (passed - n * score) / weight
    mean = float(np.mean([score for _, score in scored_runs]))
    # Rounded, because 0 and 1 must be 0 and 1 for the exact interval.
    values = np.round([mean + len(added) * added[path] for path in sorted(added)], 12)
    return estimate(values, scale=SHARE)._replace(value=mean)


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """A model under a condition, in one version of a benchmark."""

    model: str
    condition: str
    version: str
    runs: int
    """Runs with a score among the last ten."""
    score: "Estimate"
    sd: float
    """The population standard deviation of the runs' scores."""
    evals: int
    passed: int
    failed: int
    inconclusive: int
    unscored: int
    """Complete runs without a conclusive result."""
    usd: float | None
    """The mean cost of runs whose cost is known."""
    seconds: float | None
    """The mean time of a generation."""


def leaderboard(runs: Iterable[RunScore]) -> tuple[LeaderboardRow, ...]:
    """Ranks models, conditions and versions by their runs, the best first."""
    groups: defaultdict[tuple[str, str, str], list[RunScore]] = defaultdict(list)
    for run in runs:
        if run.complete:
            groups[run.model, run.condition, run.version].append(run)
    rows = [_row(*key, group) for key, group in groups.items()]
    return tuple(sorted(rows, key=_rank))


def _rank(row: LeaderboardRow) -> tuple[str, str, float, str]:
    best = -row.score.value if row.runs else inf
    return row.version, row.condition, best, row.model


def _row(model: str, condition: str, version: str, runs: list[RunScore]) -> LeaderboardRow:
    import numpy as np

    ordered = sorted(runs, key=lambda run: (run.ended, run.run))
    last = [run for run in ordered if run.score is not None][-LAST:]
    since = last[0].ended if last else -inf
    unscored = [run for run in ordered if run.score is None and run.ended >= since]
    scores = [run.score for run in last if run.score is not None]
    prices = [run.usd for run in last if run.usd is not None]
    times = [run.seconds for run in last if run.seconds is not None]
    return LeaderboardRow(
        model,
        condition,
        version,
        runs=len(last),
        score=pool_runs(last),
        sd=float(np.std(scores)) if scores else float("nan"),
        evals=len({path for run in last for path, (_, n) in run.evals.items() if n}),
        passed=sum(run.passed for run in last),
        failed=sum(run.failed for run in last),
        inconclusive=sum(sum(run.inconclusive.values()) for run in [*last, *unscored]),
        unscored=len(unscored),
        usd=float(np.mean(prices)) if prices else None,
        seconds=float(np.mean(times)) if times else None,
    )
