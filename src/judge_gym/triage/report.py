"""Prints the report on a run as Markdown. Every count in it is counted here, from rows."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from judge_gym.triage.advice import ADVICE
from judge_gym.triage.facts import PriorReport
from judge_gym.triage.findings import NO_VERDICT, Finding, VerdictCounts
from judge_gym.triage.markdown import code, path_part, prose, table
from judge_gym.triage.results import CLASSES, MODEL_FAULT, UNDECIDED, ResultsByOutcome
from judge_gym.triage.rows import FailureRow, ReportRows, RunInfo, dump_rows, report_rows

FIX_WIDTH = 160
ACTIONABLE = "Actionable (eval, rules or gap)"
KINDS = ("rule", "exception", "step", "category")
"""What failures may share, the most specific first."""
EACH_FAILURE = "## Each failure"
ACTIONS = "## Actions taken"
"""The last section, which people write."""
ROWS, ROWS_END = "<!-- rows: ", " -->"
"""The comment that carries a report's rows, on one line."""


def report_path(run: RunInfo, date: str) -> str:
    """The path of a report made on a date, relative to the working folder.

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
    """Writes the report on a run, made on a date, as Markdown that carries its own rows.

    There is one finding for each failed result; `prior` are earlier reports on the model.
    """
    rows = report_rows(run, results, findings, date, prior)
    parts = [*print_rows(rows), f"{ROWS}{dump_rows(rows)}{ROWS_END}", ACTIONS, "None."]
    return "\n\n".join(parts) + "\n"


def print_rows(rows: ReportRows) -> list[str]:
    """Prints rows as the blocks of a report, up to the actions."""
    return [
        f"# Analysis of run {code(rows.run.short)}: {code(rows.run.model)}",
        *_run(rows),
        *_inconclusive(rows),
        *_earlier(rows),
        *_steps(rows.failures),
        *_classification(rows.failures),
        *_each_failure(rows.failures),
        *_patterns(rows),
        *_conflicts(rows),
        *_recommendations(rows.failures),
        *_proposed_fixes(rows.failures),
        *_impact(rows),
    ]


def _counts(column: str, counts: Mapping[str, int]) -> str:
    total = ("**Total**", f"**{sum(counts.values())}**")
    return table((column, "Failures"), [*counts.items(), total])


# --- the run -------------------------------------------------------------------------------------


def _run(rows: ReportRows) -> Iterator[str]:
    run, judges = rows.run, rows.judges
    simulated = " (all simulated)" * (bool(judges) and all(j.startswith("sim:") for j in judges))
    count = rows.conclusive + len(rows.inconclusive)
    passed = sum(rows.passed.values())
    yield "## Run"
    yield table(
        ("Of the run", "Value"),
        [
            ("Run", code(run.id)),
            *([("Lab", code(run.lab))] if run.lab else []),
            ("Model", code(run.model)),
            ("Condition", code(run.condition)),
            ("Suite", code(run.suite)),
            ("Benchmark version", code(run.version)),
            ("Date", run.date),
            ("Report of", rows.date),
            ("Judges", (", ".join(map(code, judges)) or "none") + simulated),
            ("Evals", rows.evals),
            *([("Results", count)] if count > rows.evals else []),
            ("Passed", passed),
            ("Failed", len(rows.failures)),
            ("Inconclusive", len(rows.inconclusive)),
            ("Pass rate", ratio(passed, rows.conclusive)),
        ],
    )


def _inconclusive(rows: ReportRows) -> Iterator[str]:
    if not rows.inconclusive:
        return
    yield "## Inconclusive"
    yield "No judge saw these results, and the pass rate leaves them out."
    yield table(
        ("Eval", "Why", "Step", "Reason"),
        [(code(row.eval), row.why, code(row.step), prose(row.reason)) for row in rows.inconclusive],
    )


def _earlier(rows: ReportRows) -> Iterator[str]:
    yield "## Earlier reports"
    if not rows.earlier:
        yield "None on this model."
        return
    again = [(row, earlier) for row in rows.failures for earlier in row.earlier]
    yield table(
        ("Report", "Date", "Pass rate", "Evals failed", "Of these failing now"),
        [
            (
                code(report.source),
                prose(report.date),
                prose(report.pass_rate),
                report.evals,
                len({row.path for row, earlier in again if earlier.report == report.source}),
            )
            for report in rows.earlier
        ],
    )
    if again:
        then, now = ("Step then", "Class then"), ("Step now", "Class now")
        yield table(
            ("Eval", "Report of", *then, *now, "Fix recorded there"),
            [
                (
                    code(row.eval),
                    earlier.date,
                    ", ".join(map(code, earlier.steps)),
                    prose(earlier.classification),
                    ", ".join(code(step.name) for step in row.steps),
                    row.classification,
                    f"{prose(earlier.fix, FIX_WIDTH)} ({earlier.since.removeprefix('and ')})"
                    if earlier.fix
                    else "none",
                )
                for row, earlier in again
            ],
        )
    else:
        yield "No eval that fails now failed in an earlier report."
    if rows.fixes:
        yield table(
            ("Fix recorded", "Report of", "Benchmark since", "Eval now"),
            [
                (
                    prose(fix.action, FIX_WIDTH),
                    prose(fix.date),
                    "changed" if fix.benchmark_changed else "not changed",
                    prose(fix.now),
                )
                for fix in rows.fixes
            ],
        )


# --- the failures --------------------------------------------------------------------------------


def _steps(rows: Sequence[FailureRow]) -> Iterator[str]:
    by_step = Counter(row.steps[0].name for row in rows)
    further = sum(len(row.steps) > 1 for row in rows)
    yield "## Failures by step"
    yield (
        "Each failure counts at its first failing step; "
        f"{failures(further, len(rows))} had a further one."
    )
    yield _counts("Step", {code(step): count for step, count in sorted(by_step.items())})


def _classification(rows: Sequence[FailureRow]) -> Iterator[str]:
    by_class = Counter(row.classification for row in rows)
    yield "## Classification"
    names = [*CLASSES, *([UNDECIDED] if by_class[UNDECIDED] else [])]
    yield _counts("Class", {name: by_class[name] for name in names})
    if rows:
        yield table(
            ("Eval", "Step", "Class", "Share of verdicts", "Reasoning"),
            [
                (
                    code(row.eval),
                    code(row.steps[0].name),
                    _class_cell(row),
                    "none" if row.counts.share is None else percent(row.counts.share),
                    prose(row.reasoning),
                )
                for row in rows
            ],
        )


def _each_failure(rows: Sequence[FailureRow]) -> Iterator[str]:
    yield EACH_FAILURE
    if not rows:
        yield "Nothing failed."
    for number, row in enumerate(rows, 1):
        first, *further = row.steps
        yield f"### {number}. {code(row.eval)}"
        yield "\n".join(
            [
                f"- **Step:** {code(first.name)}",
                f"- **Error:** {_error(first.error)}",
                *(
                    f"- **Fails at {code(step.name)} too:** {_error(step.error)}"
                    for step in further
                ),
                f"- **Class:** {_class_cell(row)}{_mass(row.counts)}",
                *([f"- **Proposed fix:** {row.fix.file}: {row.fix.change}"] if row.fix else []),
                f"- **Verdicts:** {_statuses(row.counts)}",
                *([_quotes(row)] if row.quotes else []),
                "- **Facts:**",
                *(f"  - {prose(fact)}" for fact in row.facts),
            ]
        )
        yield from row.texts


def _class_cell(row: FailureRow) -> str:
    """Writes the class, marked where no gap on record supports it."""
    return row.classification + " (unsupported)" * (row.supported is False)


def _error(text: str) -> str:
    return code(text) or "none given"


def _mass(counts: VerdictCounts) -> str:
    if counts.classification == UNDECIDED:
        if not counts.scored:
            return ", because no verdict could be scored"
        tied = [name for name, mass in counts.masses.items() if mass == max(counts.masses.values())]
        return f", because {' and '.join(tied)} have equal shares"
    mass = float(max(counts.masses.values()))
    return f", by {ratio(mass, counts.scored)} of the scored verdicts"


def _statuses(counts: VerdictCounts) -> str:
    total = sum(counts.statuses.values())
    listed = ", ".join(f"{count} {status}" for status, count in counts.statuses.items())
    return f"{total} asked: {listed}" if total else "none"


def _quotes(row: FailureRow) -> str:
    return (
        f"- **Quotes:** {row.quotes} made, {row.quotes - row.missing_quotes} found in the "
        f"evidence, {row.missing_quotes} not in the evidence"
    )


# --- conclusions ---------------------------------------------------------------------------------


class Pattern(NamedTuple):
    """Something that two or more failures share."""

    kind: str
    name: str
    evals: tuple[str, ...]


def patterns(rows: Sequence[FailureRow]) -> list[Pattern]:
    """Finds what two or more failures share, the most common first."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        for step in row.steps:
            groups["step", step.name].append(row.eval)
        groups["category", row.category].append(row.eval)
        for signature in row.signatures:
            if signature.kind != "test":  # whose names are an eval's own
                groups[signature.kind, signature.name].append(row.eval)
    shared = [Pattern(*key, tuple(evals)) for key, evals in groups.items() if len(evals) > 1]
    return sorted(
        shared, key=lambda pattern: (-len(pattern.evals), KINDS.index(pattern.kind), pattern.name)
    )


def _patterns(rows: ReportRows) -> Iterator[str]:
    count = len(rows.failures)
    gaps = sum(row.gap for row in rows.failures)
    again = sum(bool(row.earlier) for row in rows.failures)
    yield "## Patterns"
    yield (
        f"A known gap matched the error of {failures(gaps, count)}; "
        f"{failures(again, count)} stood in earlier reports."
    )
    shared = patterns(rows.failures)
    if not shared:
        yield "No step, rule, exception or category is common to two failures."
        return
    conclusive = Counter(rows.passed) + Counter(row.category for row in rows.failures)
    cells = []
    for kind, name, evals in shared:
        share = f" ({len(evals)} of its {conclusive[name]} conclusive results)"
        label = f"{kind} {code(name)}{share * (kind == 'category')}"
        cells.append((label, len(evals), ", ".join(map(code, evals))))
    yield table(("In common", "Failures", "Evals"), cells)


def _conflicts(rows: ReportRows) -> Iterator[str]:
    judges = rows.judges
    if len(judges) < 2:
        return
    yield "## Conflict between judges"
    disputed = sum(row.disputed for row in rows.failures)
    yield (
        f"Judges come to different classes on {failures(disputed, len(rows.failures))}. K is the "
        "mass on which two judges exclude each other; K within is the same of one judge's own "
        "verdicts. The most contested failures come first."
    )
    order = sorted(rows.failures, key=lambda row: (not row.disputed, -(row.conflict or 0)))
    yield table(
        ("Eval", *map(code, judges), "K between", "K within", "Differ"),
        [
            (
                code(row.eval),
                *(_judges_cell(row.judges.get(name)) for name in judges),
                *("none" if k is None else f"{k:.2f}" for k in (row.conflict, row.own_conflict)),
                "**yes**" if row.disputed else "no",
            )
            for row in order
        ],
    )


def _judges_cell(counts: VerdictCounts | None) -> str:
    if counts is None or counts.share is None:
        return NO_VERDICT
    return f"{counts.label} {percent(counts.share)}"


def _recommendations(rows: Sequence[FailureRow]) -> Iterator[str]:
    yield "## Recommendations"
    undecided = [code(row.eval) for row in rows if row.advice is None]
    if undecided:
        yield f"Undecided, for a person to read: {', '.join(undecided)}."
    for group in ADVICE:
        items = [
            f"- {code(row.eval)}: {row.advice[1]}"
            for row in rows
            if row.advice is not None and row.advice[0] == group
        ]
        yield f"### {group} ({len(items)})"
        yield "\n".join(items) or "None."


def _proposed_fixes(rows: Sequence[FailureRow]) -> Iterator[str]:
    cells = [(code(row.eval), row.fix.file, row.fix.change) for row in rows if row.fix]
    yield "## Proposed fixes"
    if not cells:
        yield "None: no failure is the benchmark's."
        return
    yield table(("Eval", "File", "Change"), cells)
    yield (
        "Nothing was changed. When a fix is made, record it under the actions with the name of its "
        "eval: the next report says whether the benchmark has changed since."
    )


def _impact(rows: ReportRows) -> Iterator[str]:
    by_class = Counter(row.classification for row in rows.failures)
    faults, undecided = by_class[MODEL_FAULT], by_class[UNDECIDED]
    actionable = by_class.total() - faults - undecided
    yield "## Net impact"
    yield _counts(
        "Kind",
        {ACTIONABLE: actionable, "Genuine model faults": faults, "Undecided": undecided},
    )
    adjusted = ratio(sum(rows.passed.values()), rows.conclusive - actionable)
    yield f"Pass rate without the actionable failures: {adjusted}."


# --- numbers -------------------------------------------------------------------------------------


def ratio(part: float, whole: float) -> str:
    """Writes a proportion with its fraction, or `none` when the denominator is zero."""
    return f"{percent(part / whole, 1)} ({round(part, 2):g}/{whole:g})" if whole else "none"


def percent(share: float, decimals: int = 0) -> str:
    """Writes a share as a percentage."""
    return f"{100 * share:.{decimals}f} %"


def failures(count: int, whole: int) -> str:
    """Writes a number of failures, in words where a number would read oddly.

    >>> failures(0, 1), failures(1, 1), failures(2, 6)
    ('no failure', 'the only failure', '2 of 6 failures')
    """
    if count and whole > 1:
        return f"{count} of {whole} failures"
    return "the only failure" if count else "no failure"
