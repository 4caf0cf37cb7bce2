"""Summaries of experiments: their design, and the progress of their runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from judge_gym.axes import Design
from judge_gym.engine import FINISHED
from judge_gym.records.responses import (
    ExperimentSummary,
    FailureReason,
    RunCounts,
    RunSummary,
    as_records,
)
from judge_gym.store import Progress, Store


def summarize_experiments(
    store: Store, rows: Sequence[Mapping[str, Any]], *, reasons: bool = True
) -> Sequence[ExperimentSummary]:
    """Summarizes experiments, by as many statements for many as for one."""
    progress = store.progress.of_tags([row["tag"] for row in rows])
    failed = [run.run_id for runs in progress.values() for run in runs if any(run.failed.values())]
    failures = store.progress.failures(failed) if reasons and failed else {}
    return [
        _summary(
            row,
            [_run(run, failures.get(run.run_id, ())) for run in progress[row["tag"]]],
            collected=not row["draft"] or _benchmark_is_loaded(store, row),
        )
        for row in rows
    ]


def _benchmark_is_loaded(store: Store, draft: Mapping[str, Any]) -> bool:
    """Whether a draft is a benchmark whose window holds its items by now."""
    if draft["task_type"] != "benchmark" or draft["window_id"] is None:
        return False
    return bool(store.evidence.window_items(draft["window_id"]))


def _summary(
    row: Mapping[str, Any], runs: list[RunSummary], *, collected: bool
) -> ExperimentSummary:
    design = Design.of(row["design"])
    cleaned_up = row["cleaned_up"] if not runs else None
    viewed = "pending" if design.evidence.resolve().editor else "evidence-done"
    waiting = "draft" if not collected else "cleaned-up" if cleaned_up else viewed
    return {
        "tag": row["tag"],
        "study": row["study"],
        "protocol": row["protocol"],
        "task_type": row["task_type"],
        "concept": row["concept"],
        "country": row["country"],
        "window_id": row["window_id"],
        "dose": row["dose"],
        "truth": row["truth"],
        "digest": None if row["draft"] else row["digest"],
        "judge": design.judge.model,
        "design": design.chosen(row["protocol"]),
        "status": runs[-1]["status"] if runs else waiting,
        "cleaned_up": cleaned_up,
        "runs": runs,
    }


def run_counts(progress: Progress) -> RunCounts:
    """Converts the progress of a run to the form of responses."""
    return {
        "run": progress.run_id,
        "series": progress.series,
        "status": progress.status,
        "targets": dict(progress.targets),
        "done": dict(progress.done),
        "not_needed": dict(progress.not_needed),
        "failed": dict(progress.failed),
        "verdicts": dict(progress.statuses),
        "message": progress.message,
        "actor": progress.event.actor if progress.event is not None else "",
    }


def _run(progress: Progress, failures: Sequence[Mapping[str, Any]]) -> RunSummary:
    summary: RunSummary = {**run_counts(progress), "failures": as_records(FailureReason, failures)}
    if progress.status in FINISHED:
        summary["message"] = ""
    return summary
