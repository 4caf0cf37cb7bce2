"""Writes the report on a run as Markdown; every count in it is counted here, from rows."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judge_gym.errors import DesignError
from judge_gym.records.outcomes import EvalResult, Inconclusive, StepResult
from judge_gym.triage.facts import names_eval
from judge_gym.triage.findings import NO_VERDICT, Explanation, Finding, Quote, VerdictCounts
from judge_gym.triage.markdown import code, fence, path_part, prose, table
from judge_gym.triage.report_reader import PriorReport
from judge_gym.triage.results import (
    CLASSES,
    MODEL_FAULT,
    SHOWN_LINES,
    UNDECIDED,
    ResultsByOutcome,
    error_lines,
    failed_steps,
    failure_of,
    plain,
    reply_of,
    result_name,
    signatures,
)

FIX_WIDTH, REASON_WIDTH = 160, 140
ERROR_WIDTH, REASONING_WIDTH, QUOTE_WIDTH = 160, 1_500, 120
SNIPPET_LINES, SNIPPET_WIDTH = 40, 300
PARTS = {"candidate": "the candidate's files", "gaps": "the known gaps"}
EVALS, CONFIG, MODEL, NO_ACTION = ADVICE = (
    "Eval improvements",
    "Lint and configuration",
    "Model-specific notes",
    "No action needed",
)
ACTIONABLE = "Actionable (eval, rules or gap)"
KINDS = ("rule", "exception", "step", "category")
"""What failures may share, the most specific first."""
CHECKING_STEPS = frozenset({"lint", "types", "ruff", "mypy", "pyright", "eslint", "tsc"})
"""Steps that check code against rules, where strictness is a matter of configuration."""


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
    lab: str | None = None
    """The address of the lab that has the run, if it is not the one where it was analyzed."""

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
        *_earlier(results, findings, run.version, prior),
        *_steps(findings),
        *_classification(results, findings),
        *each_failure(findings, results.name),
        *_patterns(results, findings),
        *_conflicts(results, findings),
        *_recommendations(results, findings),
        *_proposed_fixes(results, findings),
        *_impact(results, findings),
        "## Actions taken",
        "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _counts(column: str, counts: Mapping[str, int]) -> str:
    total = ("**Total**", f"**{sum(counts.values())}**")
    return table((column, "Failures"), [*counts.items(), total])


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
            *([("Lab", code(run.lab))] if run.lab else []),
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
    yield table(
        ("Eval", "Why", "Step", "Reason"),
        [
            (
                code(results.name(result)),
                outcome.why,
                code(outcome.step),
                prose(outcome.reason, REASON_WIDTH),
            )
            for result in results.inconclusive
            if isinstance(outcome := result.outcome, Inconclusive)
        ],
    )


def _earlier(
    results: ResultsByOutcome,
    findings: Sequence[Finding],
    version: str,
    prior: Sequence[PriorReport],
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
            f"{prose(earlier.fix, FIX_WIDTH)} ({earlier.since.removeprefix('and ')})"
            if earlier.fix
            else "none",
        )
        for one in findings
        for earlier in one.case.facts.earlier
    ]
    if again:
        then, now = ("Step then", "Class then"), ("Step now", "Class now")
        yield table(("Eval", "Report of", *then, *now, "Fix recorded there"), again)
    else:
        yield "No eval that fails now failed in an earlier report."
    if fixes := recorded_fixes(results, version, prior):
        yield table(
            ("Fix recorded", "Report of", "Benchmark since", "Eval now"),
            [
                (
                    prose(fix.action, FIX_WIDTH),
                    prose(fix.date),
                    "changed" if fix.benchmark_changed else "not changed",
                    prose(fix.now),
                )
                for fix in fixes
            ],
        )


class RecordedFix(NamedTuple):
    """A fix that an earlier report records."""

    action: str
    report: str
    date: str
    benchmark_changed: bool
    """Whether the benchmark's version has changed since that report."""
    now: str
    """How the evals end now that it names."""


def recorded_fixes(
    results: ResultsByOutcome, version: str, prior: Sequence[PriorReport]
) -> list[RecordedFix]:
    """Returns the fixes that earlier reports record, with what has become of each."""
    every = (*results.passed, *results.failed, *results.inconclusive)
    fixes = []
    for report in prior:
        for action in report.actions:
            named = [result for result in every if names_eval(action, result)]
            now = ", ".join(f"{result_name(result)} {result.outcome.kind}" for result in named)
            changed = report.version != version
            fixes.append(
                RecordedFix(
                    action, report.source, report.date, changed, now or "names none of this run"
                )
            )
    return fixes


# --- the failures --------------------------------------------------------------------------------


def _steps(findings: Sequence[Finding]) -> Iterator[str]:
    counted = Counter(failure_of(one.case.result).step for one in findings)
    further = sum(len(failed_steps(one.case.result)) > 1 for one in findings)
    yield "## Failures by step"
    yield (
        "Each failure counts at its first failing step; "
        f"{failures(further, len(findings))} had a further one."
    )
    yield _counts("Step", {code(step): count for step, count in sorted(counted.items())})


def _classification(results: ResultsByOutcome, findings: Sequence[Finding]) -> Iterator[str]:
    counted = Counter(one.classification for one in findings)
    yield "## Classification"
    names = [*CLASSES, *([UNDECIDED] if counted[UNDECIDED] else [])]
    yield _counts("Class", {name: counted[name] for name in names})
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
    given = [
        (one, *(_benchmark_fault(one) or _model_fault(one, findings))[:2])
        for one in findings
        if one not in undecided
    ]
    for group in ADVICE:
        items = [(one, text) for one, name, text in given if name == group]
        yield f"### {group} ({len(items)})"
        yield (
            "\n".join(f"- {code(results.name(one.case.result))}: {text}" for one, text in items)
            or "None."
        )


def _proposed_fixes(results: ResultsByOutcome, findings: Sequence[Finding]) -> Iterator[str]:
    rows = [
        (code(results.name(one.case.result)), fix.file, fix.change)
        for one in findings
        if (fix := proposed_fix(one)) is not None
    ]
    yield "## Proposed fixes"
    if not rows:
        yield "None: no failure is the benchmark's."
        return
    yield table(("Eval", "File", "Change"), rows)
    yield (
        "Nothing was changed. When a fix is made, record it under the actions with the name of its "
        "eval: the next report says whether the benchmark has changed since."
    )


def _impact(results: ResultsByOutcome, findings: Sequence[Finding]) -> Iterator[str]:
    kinds = failures_by_kind(Counter(one.classification for one in findings))
    yield "## Net impact"
    yield _counts("Kind", kinds)
    left = results.conclusive - kinds[ACTIONABLE]
    yield f"Pass rate without the actionable failures: {ratio(len(results.passed), left)}."


def failures_by_kind(by_class: Counter[str]) -> dict[str, int]:
    """Returns the numbers of failures that are actionable, the model's own, and undecided."""
    faults, undecided = by_class[MODEL_FAULT], by_class[UNDECIDED]
    return {
        ACTIONABLE: by_class.total() - faults - undecided,
        "Genuine model faults": faults,
        "Undecided": undecided,
    }


# --- single failures -----------------------------------------------------------------------------


def ratio(part: float, whole: float) -> str:
    """Returns a proportion with its fraction, or `none` when the denominator is zero."""
    return f"{percent(part / whole, 1)} ({round(part, 2):g}/{whole:g})" if whole else "none"


def percent(share: float, decimals: int = 0) -> str:
    """Returns a share as a percentage."""
    return f"{100 * share:.{decimals}f} %"


def failures(count: int, whole: int) -> str:
    """Returns a number of failures, in words where a number would read oddly.

    >>> failures(0, 1), failures(1, 1), failures(2, 6)
    ('no failure', 'the only failure', '2 of 6 failures')
    """
    if count and whole > 1:
        return f"{count} of {whole} failures"
    return "the only failure" if count else "no failure"


def class_cell(finding: Finding) -> str:
    """Returns the class of a finding, marked where no gap on record supports it."""
    return finding.classification + " (unsupported)" * (finding.supported is False)


def each_failure(findings: Sequence[Finding], name: Callable[[EvalResult], str]) -> Iterator[str]:
    """Yields the section on single failures, block by block."""
    yield "## Each failure"
    if not findings:
        yield "Nothing failed."
    for number, finding in enumerate(findings, 1):
        first, *further = failed_steps(finding.case.result)
        fix = proposed_fix(finding)
        yield f"### {number}. {code(name(finding.case.result))}"
        facts = [f"- {sentence}" for sentence in map(prose, finding.case.facts.sentences())]
        yield "\n".join(
            [
                f"- **Step:** {code(first.name)}",
                f"- **Error:** {_error(first)}",
                *(f"- **Fails at {code(step.name)} too:** {_error(step)}" for step in further),
                f"- **Class:** {class_cell(finding)}{_mass(finding.counts)}",
                *([f"- **Proposed fix:** {fix.file}: {fix.change}"] if fix else []),
                f"- **Verdicts:** {_statuses(finding.counts)}",
                *([_quotes(finding)] if finding.quotes else []),
                "- **Facts:**",
                *(f"  {fact}" for fact in facts),
            ]
        )
        for step in (first, *further):
            if lines := error_lines(step):
                yield f"From the output of {code(step.name)}:"
                yield fence("\n".join(map(_bounded, lines)))
        if reply := plain(reply_of(finding.case.result)).strip():
            yield "The reply begins:"
            yield fence("\n".join(map(_bounded, reply.splitlines()[:SHOWN_LINES])))
        if finding.supported is False:
            yield "No known gap of this eval matches the error, so nothing on record supports this."
        for explanation in finding.explanations:
            yield from _explanation(explanation, alone=len(finding.explanations) == 1)


def _error(step: StepResult) -> str:
    return code(step.reason, ERROR_WIDTH) or "none given"


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


def _quotes(finding: Finding) -> str:
    quotes, missing = finding.quotes, finding.missing_quotes
    return (
        f"- **Quotes:** {quotes} made, {quotes - missing} found in the evidence, "
        f"{missing} not in the evidence"
    )


def _explanation(explanation: Explanation, *, alone: bool) -> Iterator[str]:
    classes = explanation.classes
    verdict = f", for {' or '.join(classes)}" if classes else f" ({explanation.status})"
    yield f"Reasoning of {code(explanation.judge)}{'' if alone and classes else verdict}:"
    yield f"> {prose(explanation.reasoning, REASONING_WIDTH) or '(no reasoning)'}"
    if explanation.model_code is not None:
        yield from _snippet("The model's code", explanation.model_code)
    if explanation.expected_code is not None:
        yield from _snippet("Expected code", explanation.expected_code)


def _snippet(title: str, quote: Quote) -> Iterator[str]:
    where = "**not in the evidence**"
    if quote.part is not None:
        where = f"from {PARTS.get(quote.part, f'the {quote.part}')}"
    yield f"{title} ({where}):"
    lines = quote.text.splitlines()
    cut = [f"[{len(lines) - SNIPPET_LINES} lines left out]"] * (len(lines) > SNIPPET_LINES)
    yield fence("\n".join([*map(_bounded, lines[:SNIPPET_LINES]), *cut]))


def _bounded(line: str) -> str:
    return line if len(line) <= SNIPPET_WIDTH else f"{line[: SNIPPET_WIDTH - 1]}…"


# --- patterns and advice -------------------------------------------------------------------------


class Pattern(NamedTuple):
    """Something that two or more failures share."""

    kind: str
    name: str
    results: tuple[EvalResult, ...]


def patterns(findings: Sequence[Finding]) -> list[Pattern]:
    """Returns what two or more failures share, the most common first."""
    groups: dict[tuple[str, str], list[EvalResult]] = defaultdict(list)
    for result in (finding.case.result for finding in findings):
        for step in failed_steps(result):
            groups["step", step.name].append(result)
        groups["category", result.category].append(result)
        for signature in signatures(result):
            if signature.kind != "test":  # whose names are an eval's own
                groups[signature.kind, signature.name].append(result)
    found = [Pattern(*key, tuple(results)) for key, results in groups.items() if len(results) > 1]
    return sorted(found, key=lambda one: (-len(one.results), KINDS.index(one.kind), one.name))


class Fix(NamedTuple):
    """A change of the benchmark that would resolve a failure, as Markdown."""

    file: str
    change: str


def proposed_fix(finding: Finding) -> Fix | None:
    """Returns the fix for a failure that is the benchmark's; None for any other."""
    fault = _benchmark_fault(finding)
    return fault[2] if fault else None


def _benchmark_fault(finding: Finding) -> tuple[str, str, Fix] | None:
    """Returns group and text of the recommendation where the benchmark is at fault, and the fix."""
    facts, result = finding.case.facts, finding.case.result
    if facts.reference_failed:
        where = " and ".join(map(code, facts.reference_failed))
        text = f"the reference answer fails this grader at {where}; repair the eval first."
        fix = Fix("`answer/` or the grader", f"make the reference answer pass {where}.")
        return EVALS, text, fix
    steps = [step.name for step in failed_steps(result)]
    at = " and ".join(map(code, steps))
    rules = [one.name for one in signatures(result) if one.kind == "rule"]
    tests = [one.name for one in signatures(result) if one.kind == "test"]
    checks = f"state what {', '.join(map(code, tests)) or at} requires"
    quote = next(
        (
            f", as in {code(one.expected_code.text, QUOTE_WIDTH)}"
            for one in finding.explanations
            if finding.classification in one.classes
            and one.expected_code is not None
            and one.expected_code.part in ("grader", "task")
        ),
        "",
    )
    match finding.classification:
        case "OVERLY_STRICT" if CHECKING_STEPS.issuperset(steps):
            named = f" ({', '.join(map(code, sorted(rules)))})" if rules else ""
            text = f"relax what is required at {at}{named}, or state it in the task."
            dropped = ", ".join(map(code, rules)) or "the requirement"
            fix = Fix(
                f"the configuration of {at}, or `TASK.md`",
                f"drop {dropped}, or state it in the task.",
            )
            return CONFIG, text, fix
        case "OVERLY_STRICT":
            text = f"relax {at} to what the task says, or state it in the task."
            fix = Fix(
                "`grader/`, or `TASK.md`", f"accept what the task allows, or {checks}{quote}."
            )
            return EVALS, text, fix
        case "AMBIGUOUS_TASK":
            fix = Fix("`TASK.md`", f"{checks}{quote}.")
            return EVALS, "state in the task what the grader assumes.", fix
        case "KNOWN_GAP":
            fix = Fix("`GAPS.md`", "document the gap that the judges mean, or reject the class.")
            if facts.gap is not None:
                entry = code(facts.gap.entry, QUOTE_WIDTH)
                fix = Fix("`TASK.md` or `grader/`", f"close the known gap {entry}, then remove it.")
            other = ", or document the one that was meant" * (finding.supported is False)
            return EVALS, f"close the known gap{other}.", fix
    return None


def _model_fault(finding: Finding, findings: Sequence[Finding]) -> tuple[str, str]:
    """Notes a model's fault where it repeats within the run, or where other models pass."""
    own = {one for one in signatures(finding.case.result) if one.kind == "rule"}
    repeated = sorted(
        {
            signature.name
            for other in findings
            if other is not finding and other.classification == finding.classification
            for signature in own.intersection(signatures(other.case.result))
        }
    )
    facts = finding.case.facts
    if repeated:
        return MODEL, f"the same rule is broken elsewhere too: {', '.join(map(code, repeated))}."
    if facts.earlier:
        return MODEL, f"a repeated fault; number of earlier reports with it: {len(facts.earlier)}."
    if facts.others and 2 * len(facts.others_failed) < facts.others:
        others = f"only {len(facts.others_failed)} of {facts.others} other models fail"
        if not facts.others_failed:
            others = f"none of {facts.others} other models fails"
            others = "the one other model does not fail" if facts.others == 1 else others
        return MODEL, f"{others} here."
    return NO_ACTION, "the model's own fault."
