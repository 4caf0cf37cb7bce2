"""The report on a run: Markdown whose every count is counted here, from rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge_gym.errors import DesignError
from judge_gym.triage.details import class_cell, each_failure, failures, percent, ratio
from judge_gym.triage.findings import NO_VERDICT, Finding, Tally
from judge_gym.triage.gate import Gated, failed_steps, failure_of, result_name
from judge_gym.triage.markdown import code, path_part, prose, table
from judge_gym.triage.patterns import ADVICE, advice, patterns
from judge_gym.triage.reading import CLASSES, MODEL_FAULT, UNDECIDED, PriorReport

FIX_WIDTH, REASON_WIDTH = 160, 140


@dataclass(frozen=True, slots=True)
class RunHead:
    """What a run is, for the head of its report."""

    id: str
    model: str
    """`provider:name`."""
    experiment: str
    suite: str
    version: str
    """Of the benchmark."""
    date: str
    """Of the run, as `2026-02-06`."""

    @property
    def short(self) -> str:
        """The first eight characters of the run's id."""
        return self.id[:8]


def report_path(run: RunHead, date: str) -> str:
    """Where a report made on a date belongs, from the working folder.

    >>> report_path(RunHead("jn72t14aqq", "anthropic:claude-x", "", "", "", ""), "2026-02-06")
    'reports/anthropic/claude-x/jn72t14a_2026-02-06.md'
    """
    provider, colon, name = run.model.partition(":")
    if not colon:
        provider, name = "", run.model
    folder = f"reports/{path_part(provider)}/{path_part(name)}"
    return f"{folder}/{path_part(run.short)}_{path_part(date)}.md"


def write_report(
    run: RunHead,
    gated: Gated,
    findings: Sequence[Finding],
    *,
    date: str,
    prior: Sequence[PriorReport] = (),
) -> str:
    """The whole report as Markdown.

    Args:
        run: what was run.
        gated: its results.
        findings: one for each that failed.
        date: the day of the report.
        prior: earlier reports on this model.
    """
    named = [result_name(one.case.result) for one in findings]
    failed = [result_name(result) for result in gated.failed]
    if sorted(named) != sorted(failed):
        raise DesignError(f"{len(failed)} results failed, but the findings are on {named}")
    findings = sorted(findings, key=lambda one: result_name(one.case.result))
    parts = [
        f"# Analysis of run {code(run.short)}: {code(run.model)}",
        *_run(run, gated, findings, date),
        *_inconclusive(gated),
        *_earlier(gated, findings, prior),
        *_steps(findings),
        *_classification(gated, findings),
        *each_failure(findings, gated.name),
        *_patterns(gated, findings),
        *_conflicts(gated, findings),
        *_recommendations(gated, findings),
        *_impact(gated, findings),
        "## Actions taken",
        "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _total(count: int) -> tuple[str, str]:
    return "**Total**", f"**{count}**"


# --- the run -------------------------------------------------------------------------------------


def _run(run: RunHead, gated: Gated, findings: Sequence[Finding], date: str) -> Iterator[str]:
    judges = sorted({name for one in findings for name in one.judges})
    simulated = " (all simulated)" * (bool(judges) and all(j.startswith("sim:") for j in judges))
    results = gated.conclusive + len(gated.inconclusive)
    yield "## Run"
    yield table(
        ("Of the run", "Value"),
        [
            ("Run", code(run.id)),
            ("Model", code(run.model)),
            ("Experiment", code(run.experiment)),
            ("Suite", code(run.suite)),
            ("Benchmark version", code(run.version)),
            ("Date", run.date),
            ("Report of", date),
            ("Judges", (", ".join(map(code, judges)) or "none") + simulated),
            ("Evals", gated.evals),
            *([("Results", results)] if results > gated.evals else []),
            ("Passed", len(gated.passed)),
            ("Failed", len(gated.failed)),
            ("Inconclusive", len(gated.inconclusive)),
            ("Pass rate", ratio(len(gated.passed), gated.conclusive)),
        ],
    )


def _inconclusive(gated: Gated) -> Iterator[str]:
    if not gated.inconclusive:
        return
    yield "## Inconclusive"
    yield "Nothing was learnt from these; no judge saw them, and the pass rate leaves them out."
    rows = []
    for result in gated.inconclusive:
        assert result.outcome.kind == "inconclusive"
        outcome = result.outcome
        rows.append(
            (
                code(gated.name(result)),
                outcome.why,
                code(outcome.step),
                prose(outcome.reason, REASON_WIDTH),
            )
        )
    yield table(("Eval", "Why", "Step", "Reason"), rows)


def _earlier(
    gated: Gated, findings: Sequence[Finding], prior: Sequence[PriorReport]
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
            code(gated.name(one.case.result)),
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


def _fix(fix: str | None, changed: bool | None) -> str:
    if fix is None:
        return "none"
    resolved = (
        "but the benchmark has not changed since" if changed is False else "the eval still fails"
    )
    return f"{prose(fix, FIX_WIDTH)} ({resolved})"


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


def _classification(gated: Gated, findings: Sequence[Finding]) -> Iterator[str]:
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
                    code(gated.name(one.case.result)),
                    code(failure_of(one.case.result).step),
                    class_cell(one),
                    "none" if one.tally.share is None else percent(one.tally.share),
                    prose(one.voices[0].reasoning, REASON_WIDTH) if one.voices else "",
                )
                for one in findings
            ],
        )


# --- what follows --------------------------------------------------------------------------------


def _patterns(gated: Gated, findings: Sequence[Finding]) -> Iterator[str]:
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
    held = Counter(result.category for result in (*gated.passed, *gated.failed))
    rows = []
    for kind, name, those in found:
        among = f" ({len(those)} of its {held[name]} conclusive results)" * (kind == "category")
        names = ", ".join(code(gated.name(result)) for result in those)
        rows.append((f"{kind} {code(name)}{among}", len(those), names))
    yield table(("In common", "Failures", "Evals"), rows)


def _conflicts(gated: Gated, findings: Sequence[Finding]) -> Iterator[str]:
    judges = sorted({name for one in findings for name in one.judges})
    if len(judges) < 2:
        return
    yield "## Conflict between judges"
    apart = [one for one in findings if one.disputed]
    yield (
        f"Judges come to different classes on {failures(len(apart), len(findings))}. K is the "
        "mass on which two judges exclude each other; within a judge, how torn it is by itself. "
        "The most contested come first."
    )
    order = sorted(findings, key=lambda one: (not one.disputed, -(one.conflict or 0)))
    yield table(
        ("Eval", *map(code, judges), "K between", "K within", "Differ"),
        [
            (
                code(gated.name(one.case.result)),
                *(_judged(one.judges.get(name)) for name in judges),
                *("none" if k is None else f"{k:.2f}" for k in (one.conflict, one.own_conflict)),
                "**yes**" if one.disputed else "no",
            )
            for one in order
        ],
    )


def _judged(tally: Tally | None) -> str:
    if tally is None or tally.share is None:
        return NO_VERDICT
    return f"{tally.said} {percent(tally.share)}"


def _recommendations(gated: Gated, findings: Sequence[Finding]) -> Iterator[str]:
    yield "## Recommendations"
    undecided = [one for one in findings if one.classification == UNDECIDED]
    if undecided:
        names = ", ".join(code(gated.name(one.case.result)) for one in undecided)
        yield f"Undecided, for a person to read: {names}."
    given = [(*advice(one, findings), one) for one in findings if one not in undecided]
    for group in ADVICE:
        mine = [(text, one) for name, text, one in given if name == group]
        yield f"### {group} ({len(mine)})"
        yield (
            "\n".join(f"- {code(gated.name(one.case.result))}: {text}" for text, one in mine)
            or "None."
        )


def _impact(gated: Gated, findings: Sequence[Finding]) -> Iterator[str]:
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
    left = gated.conclusive - actionable
    yield f"Pass rate without the actionable failures: {ratio(len(gated.passed), left)}."
