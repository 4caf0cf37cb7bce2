"""The noun `lab.failures`: explains in a report why evals of a suite run failed.

Facts about each failure are collected first; then judges classify it in an ordinary study.
"""

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from judge_gym import triage
from judge_gym.client import Client
from judge_gym.engine import FINISHED, WORKFLOWS, Engine, Result, RunProgress
from judge_gym.engine.calls.budget import refuse_unpriced
from judge_gym.errors import (
    ConflictError,
    DatabaseFull,
    DatabaseGone,
    DesignError,
    JudgeGymError,
    NotFoundError,
    unknown,
)
from judge_gym.lab.prepare import PreparedStudy, prepare_sweep
from judge_gym.lab.run_sources import RemoteRun, RunSource, StoredRun
from judge_gym.lab.runs import Runs, WatchProgress
from judge_gym.lab.suites import Suites
from judge_gym.lab.texts import refuse_outside
from judge_gym.models import Registry
from judge_gym.records import (
    Display,
    EvalResult,
    Inconclusive,
    Sample,
    SuiteRun,
)
from judge_gym.records.requests import NOTHING, Budget, Id, Knobs, Name
from judge_gym.records.responses import (
    AnalysisDetail,
    AnalysisRow,
    FailureReport,
    FailureReportRow,
)
from judge_gym.store import AnalysisRecord, Store
from judge_gym.suites import Interrupted, check_answers, open_sandbox

REPORTS = Path("reports")
AT_ONCE = 4
"""Calls to judges in flight."""
SIMULATED_JUDGES = ("sim:alarmist", "sim:strict")
"""The default judges of a simulated model; their biases are opposite, so that they differ."""
SHOWN_KEY = 16
POLL = 0.5
"""Seconds between two looks at the runs of the judges."""
LONGEST_REPORT = 4_000_000
QUESTION = (
    "These are my findings. Would you like me to implement any of these recommendations, or would "
    "you like to discuss specific failures in more detail?"
)
"""What an analysis ends with: nothing is changed before the user asks for it."""
_ACTIONS = "\n## Actions taken"


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of an analysis."""

    run: SuiteRun
    results: triage.ResultsByOutcome
    findings: tuple[triage.Finding, ...]
    judging: Result | None
    """The run of the judging study; None if nothing failed."""
    report: Path | None
    """None if nothing failed, or if judging is unfinished."""
    fixes: tuple[triage.RecordedFix, ...]
    """The fixes that earlier reports on this model record."""
    notes: tuple[str, ...]
    lab: str | None
    """The address of the lab that has the run; None for this one."""

    @property
    def verdicts(self) -> Counter[str]:
        """The numbers of verdicts by status."""
        counts = (Counter[str](finding.counts.statuses) for finding in self.findings)
        return sum(counts, Counter[str]())

    def rows(self) -> list[dict[str, Any]]:
        """Flattens the findings to rows."""
        return [_row(self.results.name(finding.case.result), finding) for finding in self.findings]

    def to_json(self) -> dict[str, Any]:
        """Converts the analysis to what `--json` prints."""
        return {
            "run": self.run.id,
            "lab": self.lab,
            "key": self.run.key[:SHOWN_KEY],
            "model": self.run.model,
            "condition": self.run.condition,
            "suite": self.run.suite,
            "version": self.run.version,
            "counts": {
                "passed": len(self.results.passed),
                "failed": len(self.results.failed),
                "inconclusive": len(self.results.inconclusive),
            },
            "verdicts": dict(self.verdicts),
            "findings": self.rows(),
            "judging": self.judging.to_json() if self.judging else None,
            "report": str(self.report) if self.report else None,
            "recorded_fixes": [fix._asdict() for fix in self.fixes],
            "notes": list(self.notes),
        }


def _row(name: str, finding: triage.Finding) -> dict[str, Any]:
    result = finding.case.result
    assert result.outcome.kind == "failed"
    fix = triage.proposed_fix(finding)
    return {
        "eval": name,
        "step": result.outcome.step,
        "class": finding.classification,
        "share": finding.counts.share,
        "verdicts": dict(finding.counts.statuses),
        "judges": {name: counts.label for name, counts in finding.judges.items()},
        "differ": finding.disputed,
        "conflict": finding.conflict,
        "supported": finding.supported,
        "fix": {"file": fix.file, "change": fix.change} if fix else None,
    }


@dataclass(frozen=True, slots=True)
class _Work:
    """An analysis before its judges are asked: what was checked and is known."""

    source: RunSource
    info: triage.RunInfo
    results: triage.ResultsByOutcome
    failed: tuple[EvalResult, ...]
    """The failures with their files."""
    judges: tuple[str, ...]
    samples: int
    overrides: Mapping[str, Any]
    budget: Mapping[str, Any]
    prior: tuple[triage.PriorReport, ...]
    path: Path
    """Where the report goes."""
    date: str
    notes: list[str]

    @property
    def run(self) -> SuiteRun:
        return self.source.run

    @property
    def fixes(self) -> tuple[triage.RecordedFix, ...]:
        return tuple(triage.recorded_fixes(self.results, self.info.version, self.prior))

    def analysis(
        self, findings: Sequence[triage.Finding], judging: Result | None, report: Path | None
    ) -> Analysis:
        """Combines the findings, their judging and the report to a result."""
        return Analysis(
            self.run,
            self.results,
            tuple(findings),
            judging,
            report,
            self.fixes,
            tuple(self.notes),
            self.source.lab,
        )


class Failures:
    """Explains why the evals of a suite run failed."""

    def __init__(
        self,
        store: Store,
        models: Registry,
        engine: Engine,
        runs: Runs,
        suites: Suites,
        folder: Path = Path(),
    ) -> None:
        self._store = store
        self._models = models
        self._engine = engine
        self._runs = runs
        self._suites = suites
        self._folder = folder

    def analyze(
        self,
        run: int | str,
        *,
        judges: Sequence[str] = (),
        samples: int = triage.SAMPLES,
        reports: Path = REPORTS,
        suite: str | Path | None = None,
        overrides: Mapping[str, Any] | None = None,
        budget: Mapping[str, Any] | None = None,
        allow_self: bool = False,
        allow_unisolated: bool = False,
        date: str | None = None,
        concurrency: int = AT_ONCE,
        lab: Client | None = None,
        offline: bool = False,
        watch: WatchProgress = lambda progress: None,
    ) -> Analysis:
        """Classifies the failures of a run and writes a report. Stored verdicts are not paid again.

        Args:
            run: its number, the beginning of its key, or the address of its page.
            judges: models; by default, a simulated model is judged by simulated judges.
            samples: verdicts of each judge on each failure.
            reports: the folder of reports, which also holds earlier ones on this model.
            suite: the folder of the run's suite, if it is not in the working folder.
            overrides: knobs of the judging study.
            budget: what judging may spend: usd, calls, tokens, minutes, run.usd, ...
            allow_self: let a model judge its own failures.
            allow_unisolated: run reference answers even where no sandbox works.
            date: of the report; by default today.
            concurrency: calls to judges in flight at most.
            lab: the lab that has the run, if it is another one. Its failures are read from there
                and judged here; nothing changes there.
            offline: call no judge; every answer must be in the ledger.
            watch: called with the progress counters before the work starts.
        """
        source = self._find_stored_run(run) if lab is None else RemoteRun(lab, str(run))
        work = self._prepare(
            source, judges, samples, overrides, budget, allow_self, reports, date, offline=offline
        )
        if not work.failed:
            return work.analysis((), None, None)
        answers = self._references(
            work.run, work.failed, suite, allow_unisolated, watch, work.notes, threading.Event()
        )
        cases = _cases(source, work.failed, answers, work.prior)
        result = self._runs.run(
            self._study(work, cases),
            budget=work.budget,
            watch=watch,
            concurrency=concurrency,
            offline=offline,
        )
        if result.stopped is not None or result.status not in FINISHED:
            return work.analysis((), result, None)
        findings, report = self._conclude(work, cases, {run.tag: run.run for run in result.runs})
        return work.analysis(findings, result, report)

    def _find_stored_run(self, run: int | str) -> StoredRun:
        return StoredRun(self._store, self._suites.find_run(run))

    def _prepare(
        self,
        source: RunSource,
        judges: Sequence[str],
        samples: int,
        overrides: Mapping[str, Any] | None,
        budget: Mapping[str, Any] | None,
        allow_self: bool,
        reports: Path,
        date: str | None = None,
        *,
        offline: bool = False,
    ) -> _Work:
        """Reads a run and its earlier reports, and refuses what cannot be judged."""
        run, every = source.run, source.results()
        results = triage.split_results(every)
        missing = source.targets - len(every)
        notes = [f"run {run.id} is unfinished: {missing} of {source.targets} missing"]
        notes = notes if missing > 0 else []
        info = triage.RunInfo(
            run.key[:SHOWN_KEY],
            run.model,
            run.condition,
            run.suite,
            run.version,
            run.created.date().isoformat(),
            source.lab,
        )
        today = date or datetime.now(UTC).date().isoformat()
        path = reports / Path(triage.report_path(info, today)).relative_to(REPORTS)
        failed = tuple(map(source.failure, results.failed))
        work = _Work(
            source=source,
            info=info,
            results=results,
            failed=failed,
            judges=tuple(self._judges(run, judges, allow_self, notes)) if failed else (),
            samples=samples,
            overrides=overrides or {},
            budget=budget or {},
            prior=_earlier_reports(source, path.parent, notes),
            path=path,
            date=today,
            notes=notes,
        )
        if failed:
            # Reference answers take minutes, so everything is checked before them.
            cases = _cases(source, failed, {}, work.prior)
            self._refuse(self._study(work, cases), work.budget, reports, offline)
        return work

    def _study(self, work: _Work, cases: Sequence[triage.Case]) -> PreparedStudy:
        """Builds the study in which judges classify the failures."""
        judging = triage.failure_study(
            work.info.short,
            cases,
            work.judges,
            samples=work.samples,
            overrides=work.overrides,
            resolve=self._models.resolve,
        )
        return prepare_sweep(judging.study, judging.text, judging.sweep, self._models)

    def _conclude(
        self, work: _Work, cases: Sequence[triage.Case], runs: Mapping[str, int]
    ) -> tuple[tuple[triage.Finding, ...], Path]:
        """Joins the verdicts of runs, given by tag, into findings and writes the report."""
        verdicts = self._verdicts(runs)
        findings = tuple(triage.make_finding(case, verdicts[case.evidence.hash]) for case in cases)
        text = triage.write_report(
            work.info, work.results, findings, date=work.date, prior=work.prior
        )
        return findings, write_once(work.path, text)

    # --- queued ----------------------------------------------------------------------------------

    def start(
        self,
        run: Annotated[Name, Field(description="A suite run, or its page's URL.")],
        *,
        judges: Annotated[
            Sequence[Name],
            Field(max_length=20, description="Left out: simulated, for a sim: model."),
        ] = (),
        samples: Annotated[
            int, Field(ge=1, le=100, description="Verdicts per judge.")
        ] = triage.SAMPLES,
        overrides: Annotated[Knobs, Field(description="Knobs of the judging.")] = NOTHING,
        budget: Budget = NOTHING,
        allow_self: bool = False,
    ) -> AnalysisRow:
        """Queues an analysis of a suite run's failures for a worker, which writes the report.

        Args:
            run: its number, the beginning of its key, or the address of its page.
            judges: models; by default, a simulated model is judged by simulated judges.
            samples: verdicts of each judge on each failure.
            overrides: knobs of the judging study.
            budget: what judging may spend: usd, calls, tokens, minutes, run.usd, ...
            allow_self: let a model judge its own failures.
        """
        request = {
            "run": run,
            "judges": [*judges],
            "samples": samples,
            "overrides": dict(overrides or {}),
            "budget": dict(budget or {}),
            "allow_self": allow_self,
        }
        self._engine.refuse_copy()
        work = self._prepare(reports=self._folder / REPORTS, **self._read(request))
        number = self._store.analyses.save(work.run.id, {**request, "run": work.run.id})
        if work.failed:
            self._engine.start_analysis(number)
        else:
            self._end(number, work, (), None)
        return self._row(self._store.analyses.find(number))

    def _read(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Converts a stored request to arguments of `_prepare`."""
        arguments = dict(request)
        return {"source": self._find_stored_run(arguments.pop("run")), **arguments}

    def perform(self, number: int, stop: threading.Event) -> None:
        """Performs a queued analysis, and records how it ended.

        Raises:
            Interrupted: the event was set; the analysis has not ended.
            DatabaseFull, DatabaseGone: the same, since nothing can be recorded.
        """
        record = self._store.analyses.find(number)
        if record.ended is not None:
            return
        try:
            work = self._prepare(reports=self._folder / REPORTS, **self._read(record.request))
            answers = self._references(
                work.run, work.failed, None, False, lambda progress: None, work.notes, stop
            )
            cases = _cases(work.source, work.failed, answers, work.prior)
            tags = self._runs.start(self._study(work, cases), budget=work.budget)
            runs = self._await(tags, stop)
            self._end(number, work, *self._conclude(work, cases, runs))
        except (Interrupted, DatabaseFull, DatabaseGone):
            raise
        except JudgeGymError as error:
            self._store.analyses.end(number, None, error.message)
        except Exception as error:  # whatever it is, the analysis has ended
            self._store.analyses.end(number, None, repr(error))

    def _await(self, tags: Sequence[str], stop: threading.Event) -> dict[str, int]:
        """Waits until the runs of judges have ended, and returns them by tag."""
        while True:
            progress = {tag: self._store.progress.of_tag(tag)[-1] for tag in tags}
            if all(run.ended for run in progress.values()):
                break
            if stop.wait(POLL):
                raise Interrupted("the worker has ended; another one continues")
        for tag, run in progress.items():
            if run.status not in FINISHED:
                raise ConflictError(
                    f"the judging of {tag} is {run.status}: {run.message}; the verdicts so far are "
                    "kept, and the next analysis of this run continues"
                )
        return {tag: run.run_id for tag, run in progress.items()}

    def _end(
        self, number: int, work: _Work, findings: Sequence[triage.Finding], report: Path | None
    ) -> None:
        document = work.analysis(findings, None, report).to_json()
        document["report"] = report.relative_to(self._folder).as_posix() if report else None
        self._store.analyses.end(number, document)

    def show(self, analysis: Id) -> AnalysisDetail:
        """Shows the findings of a queued analysis, its report, and the question to end with."""
        record = self._store.analyses.find(analysis)
        result = record.result or {}
        report = self._folder / result["report"] if result.get("report") else None
        return {
            **self._row(record),
            "counts": result.get("counts", {}),
            "verdicts": result.get("verdicts", {}),
            "findings": result.get("findings", []),
            "recorded_fixes": result.get("recorded_fixes", []),
            "notes": result.get("notes", []),
            "bytes": report.stat().st_size if report and report.is_file() else None,
            "ask_user": QUESTION if result.get("findings") else None,
        }

    def _row(self, record: AnalysisRecord) -> AnalysisRow:
        run = self._store.suites.find_run(record.run_id)
        result = record.result or {}
        return {
            "analysis": record.id,
            "target": f"analysis:{record.id}",
            "run": run.id,
            "model": run.model,
            "suite": run.suite,
            "status": record.status,
            "message": record.error,
            "study": f"analyze-{run.key[:8]}",
            "report": result.get("report"),
            "created": record.started,
            "ended": record.ended,
        }

    # --- reports ---------------------------------------------------------------------------------

    def list_reports(self, *, model: Name | None = None) -> Sequence[FailureReportRow]:
        """Lists the reports on failures in the lab's folder by date, of all models or one."""
        rows: list[FailureReportRow] = []
        for file in sorted((self._folder / REPORTS).rglob("*.md")):
            if file.is_symlink() or not file.is_file() or file.stat().st_size > LONGEST_REPORT:
                continue
            text = file.read_text("utf-8", "replace")
            try:
                report = triage.read_report(text, file.relative_to(self._folder).as_posix())
            except DesignError:  # some other text
                continue
            if model in (None, report.model):
                rows.append(
                    {
                        "path": report.source,
                        "model": report.model,
                        "run": report.run,
                        "date": report.date,
                        "version": report.version,
                        "pass_rate": report.pass_rate,
                        "failures": len(report.failures),
                        "classes": dict(
                            Counter(failure.classification for failure in report.failures)
                        ),
                        "actions": [*report.actions],
                        "bytes": len(text.encode()),
                    }
                )
        return sorted(rows, key=lambda row: (row["date"], row["path"]))

    def show_report(
        self,
        path: Annotated[Name, Field(description="As failures_list_reports has it.")],
        *,
        eval: Annotated[Name | None, Field(description="Only the section on this eval.")] = None,
    ) -> FailureReport:
        """Shows a report or its section on one eval, and counts that contradict its rows.

        Args:
            path: as `list_reports` has it.
            eval: an eval's path, `category/name`.
        """
        text = self._report(path).read_text("utf-8", "replace")
        excerpt = triage.without_rows(text)
        if eval is not None:
            parts = triage.read_failure_sections(text)
            named = {part.eval: part.text for part in parts}
            if eval not in named:
                raise NotFoundError(unknown("eval", eval, named, path), choices=named)
            excerpt = named[eval]
        report = triage.read_report(text, path)
        return {
            "path": path,
            "run": report.run,
            "date": report.date,
            "mismatches": [str(mismatch) for mismatch in triage.lint_report(text)],
            "actions": [*report.actions],
            "text": excerpt,
        }

    def record_action(
        self,
        path: Annotated[Name, Field(description="The report.")],
        action: Annotated[
            str,
            Field(
                min_length=1,
                max_length=1000,
                description="The fix and the eval, category/name.",
            ),
        ],
    ) -> FailureReportRow:
        """Records in a report what was done about a failure: the fix, and the eval's name.

        The next analysis of this model then says whether the benchmark has changed since.
        """
        file = self._report(path)
        text = file.read_text("utf-8")
        evals = sorted(triage.read_report(text, path).evals)
        if not any(name.rpartition("/")[2] in action for name in evals):
            raise DesignError(
                f"the action names no eval of {path}; choose {' or '.join(evals)}", choices=evals
            )
        line = f"- {' '.join(action.split())}"
        head, heading, actions = text.rpartition(_ACTIONS)  # a model may have written the words
        if not heading:
            raise ConflictError(f"{path} has no section on actions; is it a report of analyze?")
        recorded = re.sub(r"\A\s*None\.?\s*\Z", "", actions).strip()
        if line not in recorded.splitlines():
            recorded = "\n".join(filter(None, (recorded, line)))
        file.write_text(f"{head}{heading}\n\n{recorded}\n", encoding="utf-8")
        [row] = [row for row in self.list_reports() if row["path"] == path]
        return row

    def _report(self, path: str) -> Path:
        """Finds the file of a report below the folder of reports."""
        refuse_outside(path, self._folder)
        paths = [row["path"] for row in self.list_reports()]
        if path not in paths:
            raise NotFoundError(unknown("report", path, paths), choices=paths)
        return self._folder / path

    # --- facts -----------------------------------------------------------------------------------

    def _judges(
        self, run: SuiteRun, named: Sequence[str], allow_self: bool, notes: list[str]
    ) -> list[str]:
        """Chooses the judges. Without any named, only simulated ones are chosen."""
        if not named and not run.model.startswith("sim:"):
            raise DesignError(
                f"name one or more judges of {run.model}: --judge MODEL; two show where they differ"
            )
        judge_ids = list(dict.fromkeys(map(self._models.resolve, named or SIMULATED_JUDGES)))
        if run.model in judge_ids and not allow_self:
            raise DesignError(
                f"{run.model} would judge its own failures; name another judge, or --allow-self"
            )
        try:
            family = self._models.card(run.model).family
        except JudgeGymError:  # its registry entry was removed
            return judge_ids
        same_family = [judge for judge in judge_ids if self._models.card(judge).family == family]
        notes += [f"the judge {judge} is of the family of {run.model}" for judge in same_family]
        return judge_ids

    def _references(
        self,
        run: SuiteRun,
        failed: Sequence[EvalResult],
        suite: str | Path | None,
        allow_unisolated: bool,
        watch: WatchProgress,
        notes: list[str],
        stop: threading.Event,
    ) -> dict[str, EvalResult]:
        """Runs the reference answers by eval. The result is empty if they cannot be run."""
        paths = {result.path for result in failed}
        try:
            loaded = (
                self._suites.find(suite)
                if suite is not None
                else next((s for s in self._suites.list() if s.version == run.version), None)
            )
            if loaded is None or loaded.version != run.version:
                raise NotFoundError(
                    f"no suite here is {run.suite!r} of version {run.version[:8]}; name its folder "
                    "with --suite"
                )
            sandbox = replace(open_sandbox(allow_unisolated=allow_unisolated), stop=stop)
        except JudgeGymError as error:
            if suite is not None:
                raise
            notes.append(f"reference answers were not tried: {error.message}")
            return {}
        watch([RunProgress(targets={"reference answers": len(paths)})])
        tasks = [task for task in loaded.evals if task.path in paths]
        checks = check_answers(loaded, sandbox, tasks, wrong=False)
        checked = [check.result for check in checks]
        notes += [
            f"the reference answer to {result.path} is inconclusive: {result.outcome.reason}"
            for result in checked
            if isinstance(result.outcome, Inconclusive)
        ]
        return {result.path: result for result in checked}

    # --- judges ----------------------------------------------------------------------------------

    def _refuse(
        self,
        prepared: PreparedStudy,
        budget: Mapping[str, Any] | None,
        reports: Path,
        offline: bool,
    ) -> None:
        """Raises an error for judges, budgets and folders that cannot be used."""
        limits = prepared.budget.changed(budget or {})
        designs = [experiment.design for experiment in prepared.sweep.experiments]
        for design in designs if not offline else ():
            self._engine.refuse_uncallable(design, (), WORKFLOWS)
        refuse_unpriced(limits, [self._models.card(design.judge.model) for design in designs])
        if reports.exists() and not reports.is_dir():
            raise DesignError(f"reports go into a folder, and {reports} is a file; choose another")

    def _verdicts(self, runs: Mapping[str, int]) -> dict[str, list[triage.JudgeVerdict]]:
        """Groups the verdicts of runs by the hash of their evidence, failed calls included."""
        by_evidence: defaultdict[str, list[triage.JudgeVerdict]] = defaultdict(list)
        for run in self._store.runs.active([*runs]):
            if run.id not in runs.values():
                continue
            judge = run.experiment.design.judge.model
            for page in self._store.completed.samples(run):
                for sample, answer in page:
                    verdict = triage.JudgeVerdict(judge, sample, answer.text)
                    by_evidence[sample.evidence.hash].append(verdict)
            items = {item.id: item for item in run.experiment.task.pool.items}
            for id, rubric in self._store.runs.rubrics(run).items():
                keys = self._store.verdicts.sample_keys(run, id, False, 0, run.samples)
                for (item, replicate, _), status in keys.items():
                    if status == "provider_error":
                        failed = Sample(
                            rubric, items[item], replicate, Display((), ()), "provider_error"
                        )
                        by_evidence[failed.evidence.hash].append(
                            triage.JudgeVerdict(judge, failed, "")
                        )
        return by_evidence

    # Defined last, since annotations after it could not name the type.
    def list(self, *, run: Id | None = None) -> Sequence[AnalysisRow]:
        """Lists the queued analyses, or those of a suite run, oldest first."""
        return [self._row(record) for record in self._store.analyses.find_all(run)]


def _earlier_reports(
    source: RunSource, folder: Path, notes: list[str]
) -> tuple[triage.PriorReport, ...]:
    """Finds the newest report on each earlier run of a model, with the fixes of older ones."""
    later = source.keys_from_here()
    by_run: dict[str, list[triage.PriorReport]] = {}
    for file in folder.glob("*.md"):
        try:
            report = triage.read_report(file.read_text(encoding="utf-8"), file.as_posix())
        except (OSError, UnicodeDecodeError, DesignError) as error:
            notes.append(f"the report {file} cannot be read: {error}")
            continue
        # A key may be shortened on either side.
        if not any(key.startswith(report.run) or report.run.startswith(key) for key in later):
            by_run.setdefault(report.run, []).append(report)
    newest = []
    for reports in by_run.values():
        reports.sort(key=lambda report: (report.date, len(report.source), report.source))
        actions = dict.fromkeys(action for report in reports for action in report.actions)
        newest.append(replace(reports[-1], actions=tuple(actions)))
    return tuple(sorted(newest, key=lambda report: report.source))


def _cases(
    source: RunSource,
    failed: Iterable[EvalResult],
    answers: Mapping[str, EvalResult],
    prior: Sequence[triage.PriorReport],
) -> Sequence[triage.Case]:
    """Writes the failures as judges read them."""
    other_results = source.others()
    cases = []
    for result in failed:
        files = source.source(result)
        facts = triage.find_facts(
            result,
            files,
            reference=answers.get(result.path),
            others={model: by_eval[result.path] for model, by_eval in other_results.items()},
            prior=prior,
            version=source.run.version,
            before=source.sources_before(prior, result),
        )
        cases.append(triage.make_case(result, files, facts))
    return cases


def write_once(path: Path, text: str) -> Path:
    """Writes a report without changing existing ones, and returns its path.

    An existing report that differs only in its actions, which people write, is the same report;
    any other report of that name is kept, and the new one gets a number.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        file = path if number == 1 else path.with_stem(f"{path.stem}_{number}")
        try:
            with file.open("x", encoding="utf-8") as out:
                out.write(text)
        except FileExistsError:
            existing = file.read_text(encoding="utf-8", errors="replace")
            if existing.partition(_ACTIONS)[0] != text.partition(_ACTIONS)[0]:
                number += 1
                continue
        return file
