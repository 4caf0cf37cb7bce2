"""The section of a report on each single failure."""

from collections.abc import Callable, Iterator, Sequence

from judge_gym.records.outcomes import EvalResult, StepResult
from judge_gym.triage.classes import UNDECIDED
from judge_gym.triage.findings import Explanation, Finding, Quote, VerdictCounts
from judge_gym.triage.markdown import code, fence, prose
from judge_gym.triage.results import failed_steps, reply_of
from judge_gym.triage.signatures import SHOWN_LINES, error_lines, plain

ERROR_WIDTH, REASONING_WIDTH = 160, 1_500
SNIPPET_LINES, SNIPPET_WIDTH = 40, 300
PARTS = {"candidate": "the candidate's files", "gaps": "the known gaps"}


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
        yield f"### {number}. {code(name(finding.case.result))}"
        facts = [f"- {sentence}" for sentence in map(prose, finding.case.facts.sentences())]
        yield "\n".join(
            [
                f"- **Step:** {code(first.name)}",
                f"- **Error:** {_error(first)}",
                *(f"- **Fails at {code(step.name)} too:** {_error(step)}" for step in further),
                f"- **Class:** {class_cell(finding)}{_mass(finding.counts)}",
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
