"""Writes the report on a run as Markdown; every count in it is counted here, from rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge_gym.errors import DesignError
from judge_gym.triage.classes import CLASSES, MODEL_FAULT, UNDECIDED
from judge_gym.triage.failure_sections import class_cell, each_failure, failures, percent, ratio
from judge_gym.triage.findings import NO_VERDICT, Finding, VerdictCounts
from judge_gym.triage.markdown import code, path_part, prose, table
from judge_gym.triage.patterns import ADVICE, advice, patterns
from judge_gym.triage.report_reader import PriorReport
from judge_gym.triage.results import ResultsByOutcome, failed_steps, failure_of, result_name

FIX_WIDTH, REASON_WIDTH = 160, 140


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The run that a report is about."""

    id: str
    model: str
    """`provider:name`."""
    condition: str
    suite: str
    version: str
    """The version of the benchmark."""
    date: str
    """The date of the run, as `2026-02-06`."""

    @property
    def short(self) -> str:
        """The first eight characters of the run's id."""
        return self.id[:8]


def report_path(run: RunInfo, date: str) -> str:
    """Returns the path of a report made on a date, relative to the working folder.

    >>> report_path(RunInfo("jn72t14aqq", "anthropic:claude-x", "", "", "", ""), "2026-02-06")
    'reports/anthropic/claude-x/jn72t14a_2026-02-06.md'
    """
    provider, colon, name = run.model.partition(":")
    if not colon:
        provider, name = "", run.model
    folder = f"reports/{path_part(provider)}/{path_part(name)}"
    return f"{folder}/{path_part(run.short)}_{path_part(date)}.md"


def write_report(
    run: RunInfo,
    results: ResultsByOutcome,
    findings: Sequence[Finding],
    *,
    date: str,
    prior: Sequence[PriorReport] = (),
) -> str:
    """Returns the report on a run, made on a date, as Markdown.

    There is one finding for each failed result; `prior` are earlier reports on the model.
    """
    named = [result_name(one.case.result) for one in findings]
    failed = [result_name(result) for result in results.failed]
    if sorted(named) != sorted(failed):
        raise DesignError(f"{len(failed)} results failed, but the findings are on {named}")
    findings = sorted(findings, key=lambda one: result_name(one.case.result))
    parts = [
        f"# Analysis of run {code(run.short)}: {code(run.model)}",
        *_run(run, results, findings, date),
        *_inconclusive(results),
        *_earlier(results, findings, prior),
        *_steps(findings),
        *_classification(results, findings),
        *each_failure(findings, results.name),
        *_patterns(results, findings),
        *_conflicts(results, findings),
        *_recommendations(results, findings),
        *_impact(results, findings),
        "## Actions taken",
        "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _total(count: int) -> tuple[str, str]:
    return "**Total**", f"**{count}**"


# --- the run -------------------------------------------------------------------------------------


def _run(
    run: RunInfo, results: ResultsByOutcome, findings: Sequence[Finding], date: str
) -> Iterator[str]:
    judges = sorted({name for one in findings for name in one.judges})
    simulated = " (all simulated)" * (bool(judges) and all(j.startswith("sim:") for j in judges))
    count = results.conclusive + len(results.inconclusive)
    yield "## Run"
    yield table(
        ("Of the run", "Value"),
        [
            ("Run", code(run.id)),
            ("Model", code(run.model)),
            ("Condition", code(run.condition)),
            ("Suite", code(run.suite)),
            ("Benchmark version", code(run.version)),
            ("Date", run.date),
            ("Report of", date),
            ("Judges", (", ".join(map(code, judges)) or "none") + simulated),
            ("Evals", results.evals),
            *([("Results", count)] if count > results.evals else []),
            ("Passed", len(results.passed)),
            ("Failed", len(results.failed)),
            ("Inconclusive", len(results.inconclusive)),
            ("Pass rate", ratio(len(results.passed), results.conclusive)),
        ],
    )


def _inconclusive(results: ResultsByOutcome) -> Iterator[str]:
    if not results.inconclusive:
        return
    yield "## Inconclusive"
    yield "No judge saw these results, and the pass rate leaves them out."
    rows = []
    for result in results.inconclusive:
        assert result.outcome.kind == "inconclusive"
        outcome = result.outcome
        rows.append(
            (
                code(results.name(result)),
                outcome.why,
                code(outcome.step),
                prose(outcome.reason, REASON_WIDTH),
            )
        )
    yield table(("Eval", "Why", "Step", "Reason"), rows)


def _earlier(
    results: ResultsByOutcome, findings: Sequence[Finding], prior: Sequence[PriorReport]
) -> Iterator[str]:
    yield "## Earlier reports"
    if not prior:
        yield "None on this model."
        return
    known = [(one.case.result.path, e) for one in findings for e in one.case.facts.earlier]
    yield table(
        ("Report", "Date", "Pass rate", "Evals failed", "Of these failing now"),
        [
            (
                code(report.source),
                prose(report.date),
                prose(report.pass_rate),
                len(report.evals),
                len({path for path, earlier in known if earlier.report == report.source}),
            )
            for report in prior
        ],
    )
    again = [
        (
            code(results.name(one.case.result)),
            earlier.date,
            ", ".join(map(code, earlier.steps)),
            prose(earlier.classification),
            ", ".join(code(step.name) for step in failed_steps(one.case.result)),
            one.classification,
            _fix(earlier.fix, earlier.version_changed),
        )
        for one in findings
        for earlier in one.case.facts.earlier
    ]
    if again:
        then, now = ("Step then", "Class then"), ("Step now", "Class now")
        yield table(("Eval", "Report of", *then, *now, "Fix recorded there"), again)
    else:
        yield "No eval that fails now failed in an earlier report."


def _fix(fix: str | None, version_changed: bool) -> str:
    if fix is None:
        return "none"
    since = "the eval still fails" if version_changed else "but the benchmark has not changed since"
    return f"{prose(fix, FIX_WIDTH)} ({since})"


# --- the failures --------------------------------------------------------------------------------


def _steps(findings: Sequence[Finding]) -> Iterator[str]:
    counted = Counter(failure_of(one.case.result).step for one in findings)
    further = sum(len(failed_steps(one.case.result)) > 1 for one in findings)
    yield "## Failures by step"
    yield (
        "Each failure counts at its first failing step; "
        f"{failures(further, len(findings))} had a further one."
    )
    rows = [(code(step), count) for step, count in sorted(counted.items())]
    yield table(("Step", "Failures"), [*rows, _total(counted.total())])


def _classification(results: ResultsByOutcome, findings: Sequence[Finding]) -> Iterator[str]:
    counted = Counter(one.classification for one in findings)
    yield "## Classification"
    names = [*CLASSES, *([UNDECIDED] if counted[UNDECIDED] else [])]
    rows: list[tuple[object, ...]] = [(name, counted[name]) for name in names]
    yield table(("Class", "Failures"), [*rows, _total(counted.total())])
    if findings:
        yield table(
            ("Eval", "Step", "Class", "Share of verdicts", "Reasoning"),
            [
                (
                    code(results.name(one.case.result)),
                    code(failure_of(one.case.result).step),
                    class_cell(one),
                    "none" if one.counts.share is None else percent(one.counts.share),
                    prose(one.explanations[0].reasoning, REASON_WIDTH) if one.explanations else "",
                )
                for one in findings
            ],
        )


# --- conclusions ---------------------------------------------------------------------------------


def _patterns(results: ResultsByOutcome, findings: Sequence[Finding]) -> Iterator[str]:
    yield "## Patterns"
    known = sum(one.case.facts.gap is not None for one in findings)
    again = sum(bool(one.case.facts.earlier) for one in findings)
    yield (
        f"A known gap matched the error of {failures(known, len(findings))}; "
        f"{failures(again, len(findings))} stood in earlier reports."
    )
    found = patterns(findings)
    if not found:
        yield "No step, rule, exception or category is common to two failures."
        return
    held = Counter(result.category for result in (*results.passed, *results.failed))
    rows = []
    for kind, name, shared in found:
        among = f" ({len(shared)} of its {held[name]} conclusive results)" * (kind == "category")
        names = ", ".join(code(results.name(result)) for result in shared)
        rows.append((f"{kind} {code(name)}{among}", len(shared), names))
    yield table(("In common", "Failures", "Evals"), rows)


def _conflicts(results: ResultsByOutcome, findings: Sequence[Finding]) -> Iterator[str]:
    judges = sorted({name for one in findings for name in one.judges})
    if len(judges) < 2:
        return
    yield "## Conflict between judges"
    apart = [one for one in findings if one.disputed]
    yield (
        f"Judges come to different classes on {failures(len(apart), len(findings))}. K is the "
        "mass on which two judges exclude each other; K within is the same of one judge's own "
        "verdicts. The most contested failures come first."
    )
    order = sorted(findings, key=lambda one: (not one.disputed, -(one.conflict or 0)))
    yield table(
        ("Eval", *map(code, judges), "K between", "K within", "Differ"),
        [
            (
                code(results.name(one.case.result)),
                *(_judged(one.judges.get(name)) for name in judges),
                *("none" if k is None else f"{k:.2f}" for k in (one.conflict, one.own_conflict)),
                "**yes**" if one.disputed else "no",
            )
            for one in order
        ],
    )


def _judged(counts: VerdictCounts | None) -> str:
    if counts is None or counts.share is None:
        return NO_VERDICT
    return f"{counts.label} {percent(counts.share)}"


def _recommendations(results: ResultsByOutcome, findings: Sequence[Finding]) -> Iterator[str]:
    yield "## Recommendations"
    undecided = [one for one in findings if one.classification == UNDECIDED]
    if undecided:
        names = ", ".join(code(results.name(one.case.result)) for one in undecided)
        yield f"Undecided, for a person to read: {names}."
    given = [(*advice(one, findings), one) for one in findings if one not in undecided]
    for group in ADVICE:
        items = [(text, one) for name, text, one in given if name == group]
        yield f"### {group} ({len(items)})"
        yield (
            "\n".join(f"- {code(results.name(one.case.result))}: {text}" for text, one in items)
            or "None."
        )


def _impact(results: ResultsByOutcome, findings: Sequence[Finding]) -> Iterator[str]:
    counted = Counter(one.classification for one in findings)
    actionable = counted.total() - counted[MODEL_FAULT] - counted[UNDECIDED]
    yield "## Net impact"
    yield table(
        ("Kind", "Failures"),
        [
            ("Actionable (eval, rules or gap)", actionable),
            ("Genuine model faults", counted[MODEL_FAULT]),
            ("Undecided", counted[UNDECIDED]),
            _total(counted.total()),
        ],
    )
    left = results.conclusive - actionable
    yield f"Pass rate without the actionable failures: {ratio(len(results.passed), left)}."
