"""How the runs of studies and suites, and analyses of failures, are going."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from judge_gym.errors import NotFoundError
from judge_gym.lab.experiment_summaries import run_counts
from judge_gym.lab.studies import Studies, Target
from judge_gym.lab.suite_reports import SuiteReport, reports
from judge_gym.records import SuiteRun
from judge_gym.records.build import build, version
from judge_gym.records.responses import LabStatus, RunState
from judge_gym.store import AnalysisRecord, Progress, Store

POLL = 0.3
"""Seconds between two looks at what is waited for."""


class RunStates:
    """Reads the progress of what users name: studies, tags, `suite:RUN` and `analysis:NUMBER`."""

    def __init__(self, store: Store, studies: Studies) -> None:
        self._store = store
        self._studies = studies

    def status(self, target: Target | None, *, limit: int = 20) -> LabStatus:
        """Reads the progress of runs, active ones first: of a target, or of the newest."""
        suite_run = find_suite_run(self._store, target) if target is not None else None
        analysis = self._find_analysis(target) if target is not None else None
        name: str | None = None
        rows: Sequence[Mapping[str, Any]] = ()
        if target is None:
            rows = self._studies.find()
        elif suite_run is None and analysis is None:
            name, rows = self._studies.find_named(target)
        all_tags = [row["tag"] for row in rows]
        active = set(self._store.logs.in_progress()) & set(all_tags)
        candidates = self._store.logs.recent(limit) if target is None else all_tags
        tags = [*sorted(active), *(tag for tag in candidates if tag not in active)][:limit]
        progress = self._store.progress.of_tags(tags)
        runs = [_run(run) for tag in tags for run in progress[tag]]
        runs += self._suite_states(suite_run) if target is None or suite_run else []
        if target is None or analysis is not None:
            analyses = [analysis] if analysis is not None else self._store.analyses.unfinished()
            runs += map(self._analysis_state, analyses)
        status: LabStatus = {
            "version": version(),
            "build": build(),
            "database": self._store.database.engine.dialect.name,
            "profile": self._store.database.read_profile(),
            "active": self._store.progress.has_worker(),
            "experiments": len(all_tags),
            "shown": len(tags),
            "drafts": [row["tag"] for row in rows if row["draft"]][:limit],
            "in_progress": len(active) > limit or any(run["in_progress"] for run in runs),
            "runs": runs,
        }
        if suite_run is not None:
            status["usd"] = self._store.usage.paid(suite_run.payer, 0)[2]
        elif name is not None:
            usage = self._store.usage.rows(by=["study"], study=name)
            usage = usage or self._store.usage.rows(by=["study"], tag=name)
            status["usd"] = sum(row["usd"] or 0.0 for row in usage)
        return status

    def wait(self, target: str, *, timeout: float) -> LabStatus:
        """Waits until a target has ended, or for some seconds, and reads its progress."""
        source = self._studies.read(target)
        deadline = time.monotonic() + timeout
        while True:
            status = self.status(source)
            left = deadline - time.monotonic()
            if not status["in_progress"] or left <= 0:
                return status
            time.sleep(min(POLL, left))

    def _suite_states(self, run: SuiteRun | None) -> list[RunState]:
        """Reads the state of a suite run, or of all that are in progress."""
        suite_runs = [run] if run is not None else self._store.suites.list_runs()
        all_reports = reports(self._store, suite_runs) if suite_runs else ()
        wanted = [report for report in all_reports if run is not None or report.in_progress]
        waiting = [
            report.run.payer
            for report in wanted
            if report.event is not None and report.event.kind == "started" and not report.ended
        ]
        reasons = self._store.progress.why_waiting(waiting)
        return [_suite_state(report, reasons.get(report.run.payer)) for report in wanted]

    def _analysis_state(self, record: AnalysisRecord) -> RunState:
        """Reads the state of an analysis, whose verdicts are those of its study."""
        run = self._store.suites.find_run(record.run_id)
        study = f"analyze-{run.key[:8]}"
        tags = [row["tag"] for row in self._studies.find_study(study)]
        judging = [runs[-1] for runs in self._store.progress.of_tags(tags).values() if runs]
        waiting = self._store.progress.why_waiting([record.id]) if not record.ended else {}
        return {
            "tag": f"analysis:{record.id}",
            "run": run.id,
            "series": run.series,
            "status": record.status,
            "in_progress": record.ended is None,
            "targets": {"score": sum(run.targets["score"] for run in judging)},
            "done": {"score": sum(run.done["score"] for run in judging)},
            "not_needed": {},
            "failed": {"score": sum(run.failed["score"] for run in judging)},
            "verdicts": dict(sum((Counter(run.statuses) for run in judging), Counter[str]())),
            "message": record.error or waiting.get(record.id, ""),
            "actor": "",
        }

    def _find_analysis(self, target: Target) -> AnalysisRecord | None:
        """Finds the analysis that `analysis:NUMBER` names, None for another target."""
        kind, _, number = target.partition(":") if isinstance(target, str) else ("", "", "")
        if kind != "analysis":
            return None
        if not number.isdecimal():
            raise NotFoundError(f"{target!r} is no analysis; give its number, such as analysis:3")
        return self._store.analyses.find(int(number))


def _suite_state(report: SuiteReport, reason: str | None) -> RunState:
    inconclusive = sum(report.score.inconclusive.values())
    return {
        "tag": f"suite:{report.run.id}",
        "run": report.run.id,
        "series": report.run.series,
        "status": report.status,
        "in_progress": report.in_progress,
        "targets": {"evals": report.run.targets},
        "done": {"evals": len(report.results)},
        "not_needed": {},
        "failed": {"evals": inconclusive},
        "verdicts": {
            "passed": report.score.passed,
            "failed": report.score.failed,
            "inconclusive": inconclusive,
        },
        "message": reason or (report.event.reason if report.event is not None else ""),
        "actor": report.event.actor if report.event is not None else "",
    }


def _run(progress: Progress) -> RunState:
    in_progress = progress.executing or (progress.started and not progress.ended)
    return {"tag": progress.tag, **run_counts(progress), "in_progress": in_progress}


def find_suite_run(store: Store, target: Target) -> SuiteRun | None:
    """Finds the suite run that `suite:RUN` names, None for another target."""
    kind, _, number = target.partition(":") if isinstance(target, str) else ("", "", "")
    if kind != "suite":
        return None
    if not number.isdecimal():
        raise NotFoundError(f"{target!r} is no suite run; give its number, such as suite:3")
    return store.suites.find_run(int(number))
