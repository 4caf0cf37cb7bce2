"""The verb that explains a suite run: why its evals failed, as a report that adds up.

Failures are read from rows, facts are gathered first, judges are asked by an ordinary study, and
nothing but a report is written.
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
from judge_gym.suites import bench, check_answers

REPORTS = Path("reports")
AT_ONCE = 4
"""Calls to judges in flight."""
SIMULATED_JUDGES = ("sim:alarmist", "sim:strict")
"""They judge a simulated model where nobody is named; of opposite bias, so that they differ."""
SHOWN_KEY = 16
_ACTIONS = "\n## Actions taken"


@dataclass(frozen=True, slots=True)
class Analysis:
    """What came of an analysis."""

    run: SuiteRun
    gated: triage.ResultsByOutcome
    findings: tuple[triage.Finding, ...]
    judging: Result | None
    """What judges were asked; None where nothing failed."""
    report: Path | None
    """None where nothing failed, and where judging is not done."""
    notes: tuple[str, ...]

    @property
    def verdicts(self) -> Counter[str]:
        """How the verdicts that were asked for ended."""
        return sum((Counter[str](one.counts.statuses) for one in self.findings), Counter[str]())

    def rows(self) -> list[dict[str, Any]]:
        """The findings, each in one line."""
        return [_row(self.gated.name(one.case.result), one) for one in self.findings]

    def to_json(self) -> dict[str, Any]:
        """The analysis as `--json` prints it."""
        return {
            "run": self.run.id,
            "key": self.run.key[:SHOWN_KEY],
            "model": self.run.model,
            "experiment": self.run.experiment,
            "suite": self.run.suite,
            "version": self.run.version,
            "counts": {
                "passed": len(self.gated.passed),
                "failed": len(self.gated.failed),
                "inconclusive": len(self.gated.inconclusive),
            },
            "verdicts": dict(self.verdicts),
            "findings": self.rows(),
            "judging": self.judging.to_json() if self.judging else None,
            "report": str(self.report) if self.report else None,
            "notes": list(self.notes),
        }


def _row(name: str, one: triage.Finding) -> dict[str, Any]:
    result = one.case.result
    assert result.outcome.kind == "failed"
    return {
        "eval": name,
        "step": result.outcome.step,
        "class": one.classification,
        "share": one.counts.share,
        "verdicts": dict(one.counts.statuses),
        "judges": {name: counts.label for name, counts in one.judges.items()},
        "differ": one.disputed,
        "conflict": one.conflict,
        "supported": one.supported,
    }


class Failures:
    """Explains why the evals of a suite run failed.

    Args:
        store: the lab's database.
        models: the model registry.
        engine: refuses judges that cannot be called.
        runs: runs the study that judges the failures.
        suites: finds the run and its suite.
    """

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
        """Classify the failures of a run and write a report; what was judged is not paid again.

        Args:
            run: its number, the beginning of its key, or the address of its page.
            judges: models; simulated ones judge a simulated model where none is named.
            samples: verdicts of each judge on each failure.
            reports: the folder of reports; earlier ones on this model are read there.
            suite: where the run's suite is, if not in a folder here.
            overrides: knobs of the judging study.
            budget: what judging may spend: usd, calls, tokens, minutes, run.usd, ...
            allow_self: a model may judge its own failures.
            allow_unisolated: try reference answers even where no sandbox works.
            date: of the report; by default today.
            concurrency: calls to judges in flight at most.
            watch: called with the tallies before work begins.
        """
        found = self._suites.find_run(run)
        rows = self._store.suites.results(found.id).get(found.id, [])
        gated = triage.split_results(row.result for row in rows)
        notes = self._unfinished(found, len(rows))
        if not gated.failed:
            return Analysis(found, gated, (), None, None, tuple(notes))
        asked = self._judges(found, judges, allow_self, notes)
        whole = {triage.result_name(row.result): row.id for row in rows}
        failed = [
            self._store.suites.find_result(whole[triage.result_name(one)]).result
            for one in gated.failed
        ]
        head = triage.RunInfo(
            found.key[:SHOWN_KEY],
            found.model,
            found.experiment,
            found.suite,
            found.version,
            found.created.date().isoformat(),
        )
        today = date or datetime.now(UTC).date().isoformat()
        path = reports / Path(triage.report_path(head, today)).relative_to(REPORTS)
        prior = self._earlier(found, path.parent, notes)

        def prepared(cases: Sequence[triage.Case]) -> PreparedStudy:
            judging = triage.failure_study(
                head.short,
                cases,
                asked,
                samples=samples,
                overrides=overrides,
                resolve=self._models.resolve,
            )
            return prepare_sweep(judging.study, judging.text, judging.sweep, self._models)

        # Reference answers take minutes: what would be refused after them is refused before.
        self._refuse(prepared(self._cases(found, failed, {}, prior)), budget, reports)
        answers = self._references(found, failed, suite, allow_unisolated, watch, notes)
        cases = self._cases(found, failed, answers, prior)
        result = self._runs.run(
            prepared(cases), budget=budget or {}, watch=watch, concurrency=concurrency
        )
        if result.stopped is not None or result.status not in FINISHED:
            return Analysis(found, gated, (), result, None, tuple(notes))
        opinions = self._opinions(result)
        findings = tuple(triage.make_finding(one, opinions[one.evidence.hash]) for one in cases)
        text = triage.write_report(head, gated, findings, date=today, prior=prior)
        return Analysis(found, gated, findings, result, write_once(path, text), tuple(notes))

    # --- what is known before judges are asked ---------------------------------------------------

    def _unfinished(self, run: SuiteRun, there: int) -> list[str]:
        missing = run.wanted - there
        return [f"run {run.id} is unfinished: {missing} of {run.wanted} missing"] * (missing > 0)

    def _judges(
        self, run: SuiteRun, named: Sequence[str], allow_self: bool, notes: list[str]
    ) -> list[str]:
        """Who judges; nobody is chosen who would have to be paid."""
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
        except JudgeGymError:  # its entry is gone; its run is not
            return found
        kin = [judge for judge in found if self._models.card(judge).family == family]
        notes += [f"the judge {judge} is of the family of {run.model}" for judge in kin]
        return found

    def _earlier(
        self, run: SuiteRun, folder: Path, notes: list[str]
    ) -> tuple[triage.PriorReport, ...]:
        """The earlier reports on a model; none on this run, nor on a later one."""
        own = self._store.suites.list_runs(suite=run.suite, model=run.model)
        passed_over = [one.key for one in own if one.id >= run.id]
        found = []
        for file in sorted(folder.glob("*.md")):
            try:
                one = triage.read_report(file.read_text(encoding="utf-8"), file.as_posix())
            except (OSError, UnicodeDecodeError) as fault:
                notes.append(f"the report {file} cannot be read: {fault}")
                continue
            if not (one.run and any(key.startswith(one.run) for key in passed_over)):
                found.append(one)
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
        """What becomes of the reference answers, by eval, as far as that can be found out."""
        paths = {one.path for one in failed}
        try:
            loaded = (
                self._suites.find(suite)
                if suite is not None
                else next((one for one in self._suites.list() if one.version == run.version), None)
            )
            if loaded is None or loaded.version != run.version:
                raise NotFoundError(
                    f"no suite here is {run.suite!r} of version {run.version[:8]}; name its folder "
                    "with --suite"
                )
            on = bench(allow_unisolated=allow_unisolated)
        except JudgeGymError as fault:
            if suite is not None:
                raise
            notes.append(f"reference answers were not tried: {fault.message}")
            return {}
        tally = RunProgress()
        tally.wanted = {"reference answers": len(paths)}
        watch([tally])
        tasks = [task for task in loaded.evals if task.path in paths]
        checked = check_answers(loaded, on, tasks)
        notes += [
            f"the reference answer to {one.path} is inconclusive: {one.outcome.reason}"
            for one in checked
            if isinstance(one.outcome, Inconclusive)
        ]
        return {one.path: one for one in checked}

    def _cases(
        self,
        run: SuiteRun,
        failed: Iterable[EvalResult],
        answers: Mapping[str, EvalResult],
        prior: Sequence[triage.PriorReport],
    ) -> list[triage.Case]:
        """The failures as judges read them."""
        others = self._others(run)
        made = []
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
            made.append(triage.make_case(result, source, facts))
        return made

    def _others(self, run: SuiteRun) -> dict[str, defaultdict[str, list[Outcome]]]:
        """By other model and eval, the replicates of its last run that learnt something of it.

        Only runs under the same version and experiment count, and none by which models are checked.
        """
        like = [
            one
            for one in self._store.suites.list_runs(suite=run.suite)
            if (one.version, one.experiment) == (run.version, run.experiment)
            and one.model != run.model
            and one.series != CHECK
        ]
        rows = self._store.suites.results(*(one.id for one in like)) if like else {}
        found: dict[str, defaultdict[str, list[Outcome]]] = {}
        for one in like:
            own: defaultdict[str, list[Outcome]] = defaultdict(list)
            for row in rows.get(one.id, ()):
                if not isinstance(row.result.outcome, Inconclusive):
                    own[row.result.path].append(row.result.outcome)
            found.setdefault(one.model, defaultdict(list)).update(own)
        return found

    # --- judges ----------------------------------------------------------------------------------

    def _refuse(self, made: PreparedStudy, budget: Mapping[str, Any] | None, reports: Path) -> None:
        """Complain about what could not be judged, paid for or written."""
        limits = made.budget.changed(budget or {})
        designs = [one.design for one in made.sweep.experiments]
        for design in designs:
            self._engine.refuse_uncallable(design, (), WORKFLOWS)
        refuse_unpriced(limits, [self._models.card(design.judge.model) for design in designs])
        if reports.exists() and not reports.is_dir():
            raise DesignError(f"reports go into a folder, and {reports} is a file; choose another")

    def _opinions(self, result: Result) -> dict[str, list[triage.JudgeVerdict]]:
        """Every verdict by the evidence that it is on, those without an answer too."""
        numbers = {run.run for run in result.runs}
        found: defaultdict[str, list[triage.JudgeVerdict]] = defaultdict(list)
        for run in self._store.runs.active([run.tag for run in result.runs]):
            if run.id not in numbers:
                continue
            judge = run.experiment.design.judge.model
            for page in self._store.completed.samples(run):
                for sample, said in page:
                    opinion = triage.JudgeVerdict(judge, sample, said.text)
                    found[sample.evidence.hash].append(opinion)
            items = {item.id: item for item in run.experiment.task.pool.items}
            for id, rubric in self._store.runs.rubrics(run).items():
                keys = self._store.verdicts.sample_keys(run, id, False, 0, run.samples)
                for (item, replicate, _), status in keys.items():
                    if status == "provider_error":
                        lost = Sample(
                            rubric, items[item], replicate, Display((), ()), "provider_error"
                        )
                        found[lost.evidence.hash].append(triage.JudgeVerdict(judge, lost, ""))
        return found


def write_once(path: Path, text: str) -> Path:
    """Write a report beside those that are there, none of which is changed; where it is.

    One that differs in its actions alone, which people write, is the same report; any other of
    that name stays, and the new one is numbered.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        file = path if number == 1 else path.with_stem(f"{path.stem}_{number}")
        try:
            with file.open("x", encoding="utf-8") as out:
                out.write(text)
        except FileExistsError:
            there = file.read_text(encoding="utf-8", errors="replace")
            if there.partition(_ACTIONS)[0] != text.partition(_ACTIONS)[0]:
                number += 1
                continue
        return file
