"""How a study is going: its status, what came of its verdicts, and what to do next."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judge_gym.records.numbers import percent, plural
from judge_gym.store import Progress, Store

StudyStatus = Literal[
    "not-started",
    "running",
    "waiting",
    "failed",
    "over-budget",
    "paused",
    "cancelled",
    "complete-with-failures",
    "complete",
]
STOPPED: tuple[StudyStatus, ...] = ("failed", "over-budget", "paused", "cancelled")
"""The statuses of studies that go on only if somebody continues them, the most urgent first."""
Control = Literal["pause", "resume", "retry", "start", "cancel"]
"""What can be done to the runs of a study."""


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """What came of the verdicts that were asked for."""

    scored: int = 0
    unscored: int = 0
    """Answers without a verdict: abstained, refused, unreadable, cut off."""
    failed: int = 0
    """Calls that brought no answer after all retries."""
    todo: int = 0

    @property
    def total(self) -> int:
        """All verdicts that were asked for."""
        return self.scored + self.unscored + self.failed + self.todo

    @property
    def share(self) -> float:
        """The share that is not to do any more."""
        return 1 - self.todo / self.total if self.total else 0.0

    @classmethod
    def of_run(cls, targets: Mapping[str, int], verdicts: Mapping[str, int]) -> "VerdictCounts":
        """Counts the verdicts of a run, from its targets and its samples by status."""
        wanted = targets.get("score", 0) + targets.get("swap", 0)
        samples = sum(verdicts.values())
        scored, failed = verdicts.get("scored", 0), verdicts.get("provider_error", 0)
        return cls(scored, samples - scored - failed, failed, max(0, wanted - samples))

    @classmethod
    def sum(cls, counts: Iterable["VerdictCounts"]) -> "VerdictCounts":
        """Adds up counts."""
        columns = [(each.scored, each.unscored, each.failed, each.todo) for each in counts]
        return cls(*map(sum, zip(*columns, strict=True)))


@dataclass(frozen=True, slots=True)
class StudyState:
    """How a study is going."""

    status: StudyStatus
    experiments: int
    counts: VerdictCounts
    by_judge: Mapping[str, VerdictCounts]
    cause: str
    """Why it stopped, failed or waits; empty where nothing is wrong."""
    controls: Sequence[Control]
    """What can be done now, the most useful first."""
    calls_left: int
    """Steps of all kinds that are not done."""

    @property
    def unfinished(self) -> str:
        """Says what share of a study findings rest on, and which judges are missing.

        Empty where all verdicts have an outcome.
        """
        counts = self.counts
        if not counts.todo and all(each.total for each in self.by_judge.values()):
            return ""
        shares = {judge: each.share for judge, each in self.by_judge.items()}
        parts = [f"none of {judge}" for judge, share in shares.items() if share == 0]
        parts += [f"{percent(each)} of {judge}" for judge, each in shares.items() if 0 < each < 1]
        done = counts.total - counts.todo
        share = f"{percent(counts.share)} of the verdicts, {done:,} of {counts.total:,}"
        return f"{share}: {', '.join(parts)}" if parts else share


def study_states(store: Store, studies: Collection[str] | None = None) -> dict[str, StudyState]:
    """Reads how studies are going, by name: of some, or of all."""
    some = [*studies] if studies is not None else []
    rows = store.experiments.rows(study=some[0] if len(some) == 1 else None)
    mine: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if studies is None or row["study"] in studies:
            mine.setdefault(str(row["study"]), []).append(row)
    tags = [row["tag"] for rows in mine.values() for row in rows]
    progress = store.progress.of_tags(tags)
    return {study: _state(store, rows, progress) for study, rows in mine.items()}


def _state(
    store: Store, rows: Sequence[Mapping[str, Any]], progress: Mapping[str, Sequence[Progress]]
) -> StudyState:
    by_judge: dict[str, list[VerdictCounts]] = {}
    runs: list[Progress] = []
    for row in rows:
        mine = by_judge.setdefault(str(row["design"]["judge.model"]), [])
        if progress[row["tag"]]:
            run = progress[row["tag"]][-1]
            runs.append(run)
            mine.append(VerdictCounts.of_run(run.targets, run.statuses))
    counts = {judge: VerdictCounts.sum(each) for judge, each in by_judge.items()}
    total = VerdictCounts.sum(counts.values())
    status = _status(runs, len(rows))
    return StudyState(
        status,
        len(rows),
        total,
        counts,
        _cause(store, status, runs, total),
        _controls(status, runs),
        sum(sum(run.targets.values()) - sum(run.done.values()) for run in runs),
    )


def _status(runs: Sequence[Progress], experiments: int) -> StudyStatus:
    statuses = {run.status for run in runs}
    active = [run for run in runs if (run.started and not run.ended) or run.executing]
    if active:
        return "waiting" if all(run.message for run in active) else "running"
    for status in STOPPED:
        if status in statuses:
            return status
    if len(runs) < experiments or not statuses <= {"complete", "complete-with-failures"}:
        return "not-started"
    return "complete-with-failures" if "complete-with-failures" in statuses else "complete"


def _cause(
    store: Store, status: StudyStatus, runs: Sequence[Progress], counts: VerdictCounts
) -> str:
    if status not in ("waiting", *STOPPED):
        return ""
    mine = [run for run in runs if run.status == status or status == "waiting"]
    failures = store.progress.failures([run.run_id for run in mine]) if status == "failed" else {}
    errors = sorted(
        (row for rows in failures.values() for row in rows), key=lambda row: -row["count"]
    )
    if counts.failed and errors:
        of = "all" if counts.failed == counts.total else f"{counts.failed:,} of"
        calls = plural(counts.total, "call")
        return f"{of} {calls} failed: {errors[0]['reason']}"
    return next((run.message for run in mine if run.message), "")


def _controls(status: StudyStatus, runs: Sequence[Progress]) -> Sequence[Control]:
    failed = any(any(run.failed.values()) for run in runs)
    missing = any(run.status == "failed" and not run.failed_share for run in runs)
    controls: dict[StudyStatus, tuple[Control, ...]] = {
        "running": ("pause", "cancel"),
        "waiting": ("pause", "cancel"),
        "failed": ("retry", "resume") if failed and missing else ("retry",),
        "over-budget": ("resume", "cancel"),
        "paused": ("resume", "cancel"),
        "cancelled": ("start",),
        "complete-with-failures": ("retry",),
    }
    return controls.get(status, ())
