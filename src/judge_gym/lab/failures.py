"""The noun `lab.failures`: explains in a report why evals of a suite run failed.

Facts about each failure are collected first; then judges classify it in an ordinary study.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judge_gym import triage
from judge_gym.engine import FINISHED, WORKFLOWS, Engine, Result, RunProgress
from judge_gym.engine.calls.budget import refuse_unpriced
from judge_gym.errors import DesignError, JudgeGymError, NotFoundError
from judge_gym.lab.prepare import PreparedStudy, prepare_sweep
from judge_gym.lab.runs import Runs, WatchProgress
from judge_gym.lab.suites import CHECK, Suites
from judge_gym.models import Registry
from judge_gym.records import Display, EvalResult, Inconclusive, Outcome, Sample, SuiteRun
from judge_gym.store import Store
from judge_gym.suites import check_answers, open_sandbox

REPORTS = Path("reports")
AT_ONCE = 4
"""Calls to judges in flight."""
SIMULATED_JUDGES = ("sim:alarmist", "sim:strict")
"""The default judges of a simulated model; their biases are opposite, so that they differ."""
SHOWN_KEY = 16
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
    notes: tuple[str, ...]

    @property
    def verdicts(self) -> Counter[str]:
        """The numbers of verdicts by status."""
        counts = (Counter[str](finding.counts.statuses) for finding in self.findings)
        return sum(counts, Counter[str]())

    def rows(self) -> list[dict[str, Any]]:
        """Returns the findings as flat rows."""
        return [_row(self.results.name(found.case.result), found) for found in self.findings]

    def to_json(self) -> dict[str, Any]:
        """Returns the analysis as `--json` prints it."""
        return {
            "run": self.run.id,
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
            "notes": list(self.notes),
        }


def _row(name: str, finding: triage.Finding) -> dict[str, Any]:
    result = finding.case.result
    assert result.outcome.kind == "failed"
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
    }


class Failures:
    """Explains why the evals of a suite run failed."""

    def __init__(
        self, store: Store, models: Registry, engine: Engine, runs: Runs, suites: Suites
    ) -> None:
        self._store = store
        self._models = models
        self._engine = engine
        self._runs = runs
        self._suites = suites

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
        watch: WatchProgress = lambda progress: None,
    ) -> Analysis:
        """Classifies the failures of a run and writes a report; stored verdicts are not paid again.

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
            watch: called with the progress counters before the work starts.
        """
        found = self._suites.find_run(run)
        rows = self._store.suites.results(found.id).get(found.id, [])
        results = triage.split_results(row.result for row in rows)
        missing = found.targets - len(rows)
        notes = [f"run {found.id} is unfinished: {missing} of {found.targets} missing"]
        notes = notes if missing > 0 else []
        if not results.failed:
            return Analysis(found, results, (), None, None, tuple(notes))
        asked = self._judges(found, judges, allow_self, notes)
        ids = {triage.result_name(row.result): row.id for row in rows}
        failed = [
            self._store.suites.find_result(ids[triage.result_name(result)]).result
            for result in results.failed
        ]
        run_info = triage.RunInfo(
            found.key[:SHOWN_KEY],
            found.model,
            found.condition,
            found.suite,
            found.version,
            found.created.date().isoformat(),
        )
        today = date or datetime.now(UTC).date().isoformat()
        path = reports / Path(triage.report_path(run_info, today)).relative_to(REPORTS)
        prior = self._earlier(found, path.parent, notes)

        def prepared(cases: Sequence[triage.Case]) -> PreparedStudy:
            judging = triage.failure_study(
                run_info.short,
                cases,
                asked,
                samples=samples,
                overrides=overrides,
                resolve=self._models.resolve,
            )
            return prepare_sweep(judging.study, judging.text, judging.sweep, self._models)

        # Reference answers take minutes, so everything is checked before them.
        self._refuse(prepared(self._cases(found, failed, {}, prior)), budget, reports)
        answers = self._references(found, failed, suite, allow_unisolated, watch, notes)
        cases = self._cases(found, failed, answers, prior)
        result = self._runs.run(
            prepared(cases), budget=budget or {}, watch=watch, concurrency=concurrency
        )
        if result.stopped is not None or result.status not in FINISHED:
            return Analysis(found, results, (), result, None, tuple(notes))
        verdicts = self._verdicts(result)
        findings = tuple(triage.make_finding(case, verdicts[case.evidence.hash]) for case in cases)
        text = triage.write_report(run_info, results, findings, date=today, prior=prior)
        return Analysis(found, results, findings, result, write_once(path, text), tuple(notes))

    # --- facts -----------------------------------------------------------------------------------

    def _judges(
        self, run: SuiteRun, named: Sequence[str], allow_self: bool, notes: list[str]
    ) -> list[str]:
        """Returns the judges; only simulated ones are chosen by default."""
        if not named and not run.model.startswith("sim:"):
            raise DesignError(
                f"name one or more judges of {run.model}: --judge MODEL; two show where they differ"
            )
        found = list(dict.fromkeys(map(self._models.resolve, named or SIMULATED_JUDGES)))
        if run.model in found and not allow_self:
            raise DesignError(
                f"{run.model} would judge its own failures; name another judge, or --allow-self"
            )
        try:
            family = self._models.card(run.model).family
        except JudgeGymError:  # its registry entry was removed
            return found
        same_family = [judge for judge in found if self._models.card(judge).family == family]
        notes += [f"the judge {judge} is of the family of {run.model}" for judge in same_family]
        return found

    def _earlier(
        self, run: SuiteRun, folder: Path, notes: list[str]
    ) -> tuple[triage.PriorReport, ...]:
        """Returns the reports on earlier runs of a model."""
        own = self._store.suites.list_runs(suite=run.suite, model=run.model)
        excluded = [other.key for other in own if other.id >= run.id]
        found = []
        for file in sorted(folder.glob("*.md")):
            try:
                report = triage.read_report(file.read_text(encoding="utf-8"), file.as_posix())
            except (OSError, UnicodeDecodeError) as error:
                notes.append(f"the report {file} cannot be read: {error}")
                continue
            if not (report.run and any(key.startswith(report.run) for key in excluded)):
                found.append(report)
        return tuple(found)

    def _references(
        self,
        run: SuiteRun,
        failed: Sequence[EvalResult],
        suite: str | Path | None,
        allow_unisolated: bool,
        watch: WatchProgress,
        notes: list[str],
    ) -> dict[str, EvalResult]:
        """Returns the results of the reference answers by eval; none if they cannot be run."""
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
            sandbox = open_sandbox(allow_unisolated=allow_unisolated)
        except JudgeGymError as error:
            if suite is not None:
                raise
            notes.append(f"reference answers were not tried: {error.message}")
            return {}
        watch([RunProgress(targets={"reference answers": len(paths)})])
        tasks = [task for task in loaded.evals if task.path in paths]
        checked = check_answers(loaded, sandbox, tasks)
        notes += [
            f"the reference answer to {result.path} is inconclusive: {result.outcome.reason}"
            for result in checked
            if isinstance(result.outcome, Inconclusive)
        ]
        return {result.path: result for result in checked}

    def _cases(
        self,
        run: SuiteRun,
        failed: Iterable[EvalResult],
        answers: Mapping[str, EvalResult],
        prior: Sequence[triage.PriorReport],
    ) -> list[triage.Case]:
        """Returns the failures as judges read them."""
        others = self._others(run)
        cases = []
        for result in failed:
            source = self._store.suites.source(run, result.category, result.name)
            facts = triage.find_facts(
                result,
                source,
                reference=answers.get(result.path),
                others={model: by_eval[result.path] for model, by_eval in others.items()},
                prior=prior,
                version=run.version,
            )
            cases.append(triage.make_case(result, source, facts))
        return cases

    def _others(self, run: SuiteRun) -> dict[str, defaultdict[str, list[Outcome]]]:
        """Returns conclusive outcomes of other models' last runs, by model and eval.

        Only runs of the same version and condition count, and none of `models check`.
        """
        similar = [
            other
            for other in self._store.suites.list_runs(suite=run.suite)
            if (other.version, other.condition) == (run.version, run.condition)
            and other.model != run.model
            and other.series != CHECK
        ]
        rows = self._store.suites.results(*(other.id for other in similar)) if similar else {}
        found: dict[str, defaultdict[str, list[Outcome]]] = {}
        for other in similar:
            outcomes: defaultdict[str, list[Outcome]] = defaultdict(list)
            for row in rows.get(other.id, ()):
                if not isinstance(row.result.outcome, Inconclusive):
                    outcomes[row.result.path].append(row.result.outcome)
            found.setdefault(other.model, defaultdict(list)).update(outcomes)
        return found

    # --- judges ----------------------------------------------------------------------------------

    def _refuse(
        self, prepared: PreparedStudy, budget: Mapping[str, Any] | None, reports: Path
    ) -> None:
        """Raises an error for judges, budgets and folders that cannot be used."""
        limits = prepared.budget.changed(budget or {})
        designs = [experiment.design for experiment in prepared.sweep.experiments]
        for design in designs:
            self._engine.refuse_uncallable(design, (), WORKFLOWS)
        refuse_unpriced(limits, [self._models.card(design.judge.model) for design in designs])
        if reports.exists() and not reports.is_dir():
            raise DesignError(f"reports go into a folder, and {reports} is a file; choose another")

    def _verdicts(self, result: Result) -> dict[str, list[triage.JudgeVerdict]]:
        """Returns the verdicts by the hash of their evidence, failed calls included."""
        numbers = {run.run for run in result.runs}
        found: defaultdict[str, list[triage.JudgeVerdict]] = defaultdict(list)
        for run in self._store.runs.active([run.tag for run in result.runs]):
            if run.id not in numbers:
                continue
            judge = run.experiment.design.judge.model
            for page in self._store.completed.samples(run):
                for sample, answer in page:
                    verdict = triage.JudgeVerdict(judge, sample, answer.text)
                    found[sample.evidence.hash].append(verdict)
            items = {item.id: item for item in run.experiment.task.pool.items}
            for id, rubric in self._store.runs.rubrics(run).items():
                keys = self._store.verdicts.sample_keys(run, id, False, 0, run.samples)
                for (item, replicate, _), status in keys.items():
                    if status == "provider_error":
                        failed = Sample(
                            rubric, items[item], replicate, Display((), ()), "provider_error"
                        )
                        found[failed.evidence.hash].append(triage.JudgeVerdict(judge, failed, ""))
        return found


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
