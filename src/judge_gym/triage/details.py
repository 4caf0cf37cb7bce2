"""The part of a report that takes each failure by itself."""

from collections.abc import Callable, Iterator, Sequence

from judge_gym.outcomes import EvalResult, StepResult
from judge_gym.triage.findings import Finding, Quote, Tally, Voice
from judge_gym.triage.gate import failed_steps, reply_of
from judge_gym.triage.markdown import code, fence, prose
from judge_gym.triage.reading import UNDECIDED
from judge_gym.triage.signs import SHOWN_LINES, error_lines, plain

ERROR_WIDTH, REASONING_WIDTH = 160, 1_500
SNIPPET_LINES, SNIPPET_WIDTH = 40, 300
PARTS = {"candidate": "the candidate's files", "gaps": "the known gaps"}


def ratio(part: float, whole: float) -> str:
    """A share with what it is a share of; there is none of nothing."""
    return f"{percent(part / whole, 1)} ({round(part, 2):g}/{whole:g})" if whole else "none"


def percent(share: float, decimals: int = 0) -> str:
    """A share as a percentage."""
    return f"{100 * share:.{decimals}f} %"


def failures(count: int, whole: int) -> str:
    """So many of the failures, in words where a number would read oddly.

    >>> failures(0, 1), failures(1, 1), failures(2, 6)
    ('no failure', 'the only failure', '2 of 6 failures')
    """
    if count and whole > 1:
        return f"{count} of {whole} failures"
    return "the only failure" if count else "no failure"


def class_cell(one: Finding) -> str:
    """The class of a finding, with the mark of one that nothing on record supports."""
    return one.classification + " (unsupported)" * (one.supported is False)


def each_failure(findings: Sequence[Finding], name: Callable[[EvalResult], str]) -> Iterator[str]:
    """The section on single failures, block by block."""
    yield "## Each failure"
    if not findings:
        yield "Nothing failed."
    for number, one in enumerate(findings, 1):
        first, *further = failed_steps(one.case.result)
        yield f"### {number}. {code(name(one.case.result))}"
        facts = [f"- {sentence}" for sentence in map(prose, one.case.facts.sentences())]
        yield "\n".join(
            [
                f"- **Step:** {code(first.name)}",
                f"- **Error:** {_error(first)}",
                *(f"- **Fails at {code(step.name)} too:** {_error(step)}" for step in further),
                f"- **Class:** {class_cell(one)}{_mass(one.tally)}",
                f"- **Verdicts:** {_statuses(one.tally)}",
                *([_quotes(one)] if one.quotes else []),
                "- **Facts:**",
                *(f"  {fact}" for fact in facts),
            ]
        )
        for step in (first, *further):
            if lines := error_lines(step):
                yield f"From the output of {code(step.name)}:"
                yield fence("\n".join(map(_bounded, lines)))
        if reply := plain(reply_of(one.case.result)).strip():
            yield "The reply begins:"
            yield fence("\n".join(map(_bounded, reply.splitlines()[:SHOWN_LINES])))
        if one.supported is False:
            yield "No known gap of this eval matches the error, so nothing on record supports this."
        for voice in one.voices:
            yield from _voice(voice, alone=len(one.voices) == 1)


def _error(step: StepResult) -> str:
    return code(step.reason, ERROR_WIDTH) or "none given"


def _mass(tally: Tally) -> str:
    if tally.classification == UNDECIDED:
        if not tally.scored:
            return ", because no verdict could be scored"
        tied = [name for name, mass in tally.masses.items() if mass == max(tally.masses.values())]
        return f", because {' and '.join(tied)} have equal shares"
    mass = float(max(tally.masses.values()))
    return f", by {ratio(mass, tally.scored)} of the scored verdicts"


def _statuses(tally: Tally) -> str:
    total = sum(tally.statuses.values())
    listed = ", ".join(f"{count} {status}" for status, count in tally.statuses.items())
    return f"{total} asked: {listed}" if total else "none"


def _quotes(one: Finding) -> str:
    return (
        f"- **Quotes:** {one.quotes} made, {one.quotes - one.missing_quotes} found in the "
        f"evidence, {one.missing_quotes} not in the evidence"
    )


def _voice(voice: Voice, *, alone: bool) -> Iterator[str]:
    verdict = f", for {' or '.join(voice.classes)}" if voice.classes else f" ({voice.status})"
    said = prose(voice.reasoning, REASONING_WIDTH) or "(no reasoning)"
    yield f"Reasoning of {code(voice.judge)}{'' if alone and voice.classes else verdict}:"
    yield f"> {said}"
    if voice.model_code is not None:
        yield from _snippet("The model's code", voice.model_code)
    if voice.expected_code is not None:
        yield from _snippet("What it is held against", voice.expected_code)


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
