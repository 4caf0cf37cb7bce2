"""The counts that a report states: in tables, in headings, in words."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from judge_gym.triage.reading import (
    CLASSES,
    MODEL_FAULT,
    PAST,
    UNDECIDED,
    Section,
    Table,
    Text,
    class_column,
    class_of,
    detailed_failure,
)

ADVICE = re.compile(r"\brecommendation", re.I)
TOTAL = re.compile(r"\W*(?:grand )?total\W*\Z", re.I)
WHOLE = re.compile(r"\W*(\d+)\W*\Z")
HEADED = re.compile(r"\((\d+)(?: failures?| evals?| items?)?\)\s*\Z")
_SUMMARY = re.compile(
    r"\b(summary|overview|run|metadata|results?|impact|classification|breakdown|step)\b", re.I
)
_STEPS = re.compile(r"\bstep", re.I)
_COUNT = re.compile(r"\W*(failures?|failed|count|number|evals?|value|#|n)\W*\Z", re.I)
_OUT_OF = r"(?<![\d.])(\d+)\s*(?:/|of|out of)\s*(?:the\s+)?(\d+)"
_PASSED = re.compile(rf"\bpass(?:ed|\s*rate)?\b[^.;\d]*(?:[\d.]+\s*%\s*\()?{_OUT_OF}", re.I)
_PASSED_AFTER = re.compile(rf"{_OUT_OF}\s*(?:evals?\s*)?(?:\([^)]*\)\s*)?pass(?:ed)?\b", re.I)
_SINGLE = re.compile(r"\W*(?P<label>[^:=\d]+?)\W*[:=]\W*(?P<number>\d+)\W*(?:failures?\W*)?")
_LABELS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("evals", re.compile(r"(?:total )?evals?(?: run| in all| total)?\Z")),
    ("results", re.compile(r"(?:total )?results?\Z")),
    ("passed", re.compile(r"(?:evals? )?passed\Z")),
    ("failures", re.compile(r"(?:evals? )?failed\Z|(?:total )?failures?(?: total)?\Z")),
    ("inconclusive", re.compile(r"inconclusive\b")),
    ("actionable", re.compile(r"actionable\b")),
    (MODEL_FAULT, re.compile(r"(?:genuine|real)\b|model (?:mistake|error)s?\Z")),
)


class Stated(NamedTuple):
    """A count that a report states of something."""

    line: int
    what: str
    number: int


def step_name(text: str) -> str:
    """What a step is counted under, however it is spelt."""
    return "step " + re.sub(r"\s*(?:failures?|errors?|step)\Z", "", text.strip(" *`:").lower())


def _about(label: str, steps: set[str]) -> str | None:
    """What a label counts; None where that is not known."""
    bare = re.sub(r"\s*\(.*\)\s*\Z", "", label).strip(" *`:_").lower()
    if (name := class_of(bare)) is not None:
        return name
    for what, wanted in _LABELS:
        if wanted.match(bare):
            return what
    return step_name(bare) if step_name(bare) in steps else None


def _summarises(part: Section) -> bool:
    titled = part.level < 2 or _SUMMARY.search(part.heading.said) is not None
    aside = part.under(PAST) or part.under(ADVICE) or detailed_failure(part) is not None
    return titled and not aside


def stated_counts(part: Section, steps: set[str]) -> Iterator[Stated]:
    """What a section that sums up states; of others, only how many failures there are in all.

    Args:
        part: the section.
        steps: the steps of the failures that the report lists, as `step_name` gives them.
    """
    if not _summarises(part):
        if not part.under(PAST):
            yield from (one for line in part.lines for one in _of_all(line))
        return
    headed = HEADED.search(part.heading.text)
    if headed and (what := _about(part.heading.text, steps)):
        yield Stated(part.heading.line, what, int(headed[1]))
    for table in part.tables:
        yield from _counts(table, part, steps)
    for line in part.lines:
        yield from _phrases(line, steps)


def _counts(table: Table, part: Section, steps: set[str]) -> Iterator[Stated]:
    """The rows of a table that counts, its total included."""
    column = count_column(table)
    if column is None:
        return
    first = table.header[0].text
    by_class = class_column(table) == 0
    of_steps = not by_class and bool(_STEPS.search(first) or _STEPS.search(part.heading.text))
    abouts = {_about(row[0].text, steps) for row in table.rows}
    divides = by_class or of_steps or "actionable" in abouts
    summed, has_total = 0, False
    for row in table.rows:
        whole = WHOLE.match(row[column].said)
        if whole is None:
            yield from _phrases(_joined(row[0], row[column]), steps)
            continue
        what = step_name(row[0].text) if of_steps else _about(row[0].text, steps)
        if TOTAL.match(row[0].text):
            what, has_total = ("failures" if divides else None), True
        else:
            summed += int(whole[1])
        if what is not None:
            yield Stated(row[column].line, what, int(whole[1]))
    if divides and table.rows and not has_total:
        yield Stated(table.header[0].line, "failures", summed)


def count_column(table: Table) -> int | None:
    """The column of a table that counts; None where it lists failures, or counts nothing."""
    if class_column(table):  # a list of failures, not a count
        return None
    heads = list(enumerate(table.header))[1:]
    return next((place for place, head in heads if _COUNT.match(head.text)), None)


def _joined(label: Text, value: Text) -> Text:
    said = f"{label.said}: {value.said}"
    return Text(value.line, said, said)


def _phrases(line: Text, steps: set[str]) -> Iterator[Stated]:
    """Counts in words: `Failed: 4`, `lint 3, tests 2`, `3 of 5 failures are actionable`."""
    if rate := _PASSED.search(line.said) or _PASSED_AFTER.search(line.said):
        yield Stated(line.line, "passed", int(rate[1]))
        adjusted = "actionable" in line.said.lower()
        yield Stated(line.line, "conclusive" + " without actionable" * adjusted, int(rate[2]))
        return
    yield from _of_all(line)
    single = _SINGLE.fullmatch(line.text)
    if single and (what := _about(single["label"], steps)):
        yield Stated(line.line, what, int(single["number"]))
    else:
        yield from _labelled(line, steps)


def _of_all(line: Text) -> Iterator[Stated]:
    """The whole in `3 of 5 failures`."""
    for match in re.finditer(r"\d+ (?:out )?of (?:the )?(\d+) failures\b", line.said):
        yield Stated(line.line, "failures", int(match[1]))


def _labelled(line: Text, steps: set[str]) -> Iterator[Stated]:
    words = {
        **{name: rf"{name.replace('_', '[_ -]')}s?" for name in CLASSES if name != MODEL_FAULT},
        MODEL_FAULT: r"(?:genuine(?: model)? (?:faults?|mistakes?|failures?)|model[_ -]faults?)",
        UNDECIDED: "undecided",
        "actionable": "actionable",
        "inconclusive": "inconclusive",
        "passed": "passed",
        "failures": r"(?:failed|total failures)",
        **{step: re.escape(step.removeprefix("step ")) for step in steps},
    }
    link = r"(?:\s+(?:of(?: the)? \d+))?(?:\s+(?:failures?|evals?))?(?:\s+(?:are|is|were|was))?\s+"
    for what, word in words.items():
        before = re.search(rf"(?<![\d./])(\d+){link}(?<![\w-]){word}(?![\w-])", line.text, re.I)
        # "tests 3" counts tests, but "failed 3 times" counts nothing.
        gap = r"\s*[:=(]?\s*" if what in steps or what in CLASSES else r"\s*[:=(]\s*"
        after = re.search(
            rf"(?<![\w-]){word}(?: failures?)?[*_`]*{gap}(\d+)\b(?!\s*[/%]|\.\d|\s*of\b)",
            line.text,
            re.I,
        )
        for match in filter(None, [before or after]):
            yield Stated(line.line, what, int(match[1]))
