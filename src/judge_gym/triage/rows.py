"""The rows that a report is printed from, and carries as JSON so that it can be read back."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from judge_gym.errors import DesignError
from judge_gym.records.outcomes import Inconclusive, InconclusiveReason, StepResult
from judge_gym.triage.advice import Fix, proposed_fix, recommend
from judge_gym.triage.facts import EarlierFailure, PriorReport, names_eval
from judge_gym.triage.findings import Explanation, Finding, Quote, VerdictCounts
from judge_gym.triage.markdown import code, fence, one_line, prose
from judge_gym.triage.results import (
    SHOWN_LINES,
    ResultsByOutcome,
    Signature,
    error_lines,
    failed_steps,
    plain,
    reply_of,
    result_name,
    signatures,
)

REASON_WIDTH, ERROR_WIDTH, REASONING_WIDTH = 140, 160, 1_500
SNIPPET_LINES, SNIPPET_WIDTH = 40, 300
PARTS = {"candidate": "the candidate's files", "gaps": "the known gaps"}


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


class InconclusiveRow(NamedTuple):
    """A result from which nothing was learnt."""

    eval: str
    why: InconclusiveReason
    step: str
    reason: str


class FailedStep(NamedTuple):
    """A step that a candidate failed at, and its error in one line."""

    name: str
    error: str


class EarlierReport(NamedTuple):
    """An earlier report on the model."""

    source: str
    date: str
    pass_rate: str
    evals: int
    """The number of evals that failed there."""


class RecordedFix(NamedTuple):
    """A fix that an earlier report records."""

    action: str
    report: str
    date: str
    benchmark_changed: bool
    """Whether the benchmark's version has changed since that report."""
    now: str
    """How the evals end now that it names."""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A finding as a report lists it."""

    eval: str
    """The eval's path, with the replicate's number where there are several."""
    path: str
    category: str
    classification: str
    counts: VerdictCounts
    judges: Mapping[str, VerdictCounts]
    disputed: bool
    conflict: float | None
    own_conflict: float | None
    supported: bool | None
    quotes: int
    missing_quotes: int
    steps: tuple[FailedStep, ...]
    signatures: tuple[Signature, ...]
    facts: tuple[str, ...]
    gap: bool
    """Whether a known gap matches the error."""
    earlier: tuple[EarlierFailure, ...]
    reasoning: str
    """What the shown judge concludes, in one line."""
    advice: tuple[str, str] | None
    """Group and Markdown of the recommendation; None where the class is undecided."""
    fix: Fix | None
    texts: tuple[str, ...] = ()
    """Markdown blocks of output, code and reasoning; the only part that a report's JSON lacks."""


@dataclass(frozen=True, slots=True)
class ReportRows:
    """Everything that a report states, and what its numbers are counted from."""

    run: RunInfo
    date: str
    """The date of the report."""
    evals: int
    passed: Mapping[str, int]
    """The number of passed results by category."""
    inconclusive: tuple[InconclusiveRow, ...]
    earlier: tuple[EarlierReport, ...]
    fixes: tuple[RecordedFix, ...]
    failures: tuple[FailureRow, ...]

    @property
    def conclusive(self) -> int:
        """The denominator of the pass rate."""
        return sum(self.passed.values()) + len(self.failures)

    @property
    def judges(self) -> list[str]:
        """The judges of any failure."""
        return sorted({name for row in self.failures for name in row.judges})


def report_rows(
    run: RunInfo,
    results: ResultsByOutcome,
    findings: Sequence[Finding],
    date: str,
    prior: Sequence[PriorReport],
) -> ReportRows:
    """Collects the rows of a report on a run, with one finding for each failed result."""
    named = [result_name(finding.case.result) for finding in findings]
    failed = [result_name(result) for result in results.failed]
    if sorted(named) != sorted(failed):
        raise DesignError(f"{len(failed)} results failed, but the findings are on {named}")
    findings = sorted(findings, key=lambda finding: result_name(finding.case.result))
    inconclusive = (
        InconclusiveRow(
            results.name(result),
            outcome.why,
            outcome.step,
            one_line(outcome.reason, REASON_WIDTH),
        )
        for result in results.inconclusive
        if isinstance(outcome := result.outcome, Inconclusive)
    )
    earlier = (
        EarlierReport(report.source, report.date, report.pass_rate, len(report.evals))
        for report in prior
    )
    return ReportRows(
        run=run,
        date=date,
        evals=results.evals,
        passed=Counter(result.category for result in results.passed),
        inconclusive=tuple(inconclusive),
        earlier=tuple(earlier),
        fixes=tuple(recorded_fixes(results, run.version, prior)),
        failures=tuple(_failure_row(results, finding, findings) for finding in findings),
    )


def recorded_fixes(
    results: ResultsByOutcome, version: str, prior: Sequence[PriorReport]
) -> list[RecordedFix]:
    """Lists the fixes that earlier reports record, with what has become of each."""
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


def _failure_row(
    results: ResultsByOutcome, finding: Finding, findings: Sequence[Finding]
) -> FailureRow:
    result, facts = finding.case.result, finding.case.facts
    steps = failed_steps(result)
    reasoning = finding.explanations[0].reasoning if finding.explanations else ""
    return FailureRow(
        eval=results.name(result),
        path=result.path,
        category=result.category,
        classification=finding.classification,
        counts=finding.counts,
        judges=finding.judges,
        disputed=finding.disputed,
        conflict=finding.conflict,
        own_conflict=finding.own_conflict,
        supported=finding.supported,
        quotes=finding.quotes,
        missing_quotes=finding.missing_quotes,
        steps=tuple(FailedStep(step.name, one_line(step.reason, ERROR_WIDTH)) for step in steps),
        signatures=signatures(result),
        facts=tuple(facts.sentences()),
        gap=facts.gap is not None,
        earlier=facts.earlier,
        reasoning=one_line(reasoning, REASON_WIDTH),
        advice=recommend(finding, findings),
        fix=proposed_fix(finding),
        texts=tuple(_texts(finding, steps)),
    )


# --- texts ---------------------------------------------------------------------------------------


def _texts(finding: Finding, steps: Sequence[StepResult]) -> Iterator[str]:
    """Yields what the tools printed, and what the model and its judges wrote."""
    for step in steps:
        if lines := error_lines(step):
            yield f"From the output of {code(step.name)}:"
            yield fence("\n".join(map(_cut_line, lines)))
    if reply := plain(reply_of(finding.case.result)).strip():
        yield "The reply begins:"
        yield fence("\n".join(map(_cut_line, reply.splitlines()[:SHOWN_LINES])))
    if finding.supported is False:
        yield "No known gap of this eval matches the error, so nothing on record supports this."
    for explanation in finding.explanations:
        yield from _explanation(explanation, alone=len(finding.explanations) == 1)


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
    yield fence("\n".join([*map(_cut_line, lines[:SNIPPET_LINES]), *cut]))


def _cut_line(line: str) -> str:
    return line if len(line) <= SNIPPET_WIDTH else f"{line[: SNIPPET_WIDTH - 1]}…"


# --- JSON ----------------------------------------------------------------------------------------


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(ReportRows)


def dump_rows(rows: ReportRows) -> str:
    """Writes rows as JSON on one line, without their texts and in ASCII.

    Neither `<` nor `>` occurs in it, so that it can stand in a comment of Markdown.
    """
    brief = replace(rows, failures=tuple(replace(row, texts=()) for row in rows.failures))
    text = json.dumps(_adapter().dump_python(brief, mode="json"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def load_rows(text: str) -> ReportRows:
    """Reads the rows that `dump_rows` wrote.

    Raises:
        DesignError: the JSON is of another form.
    """
    from pydantic import ValidationError

    try:
        rows: ReportRows = _adapter().validate_json(text)
    except ValidationError as error:
        raise DesignError(f"its rows cannot be read: {error.errors()[0]['msg']}") from error
    return rows
