"""Reads a report of ours by the rows that it carries, and compares its text with them."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher, get_close_matches
from typing import NamedTuple

from judge_gym.errors import DesignError
from judge_gym.triage.facts import PriorReport, ReportedFailure
from judge_gym.triage.markdown import code
from judge_gym.triage.report import ACTIONS, EACH_FAILURE, ROWS, ROWS_END, print_rows, ratio
from judge_gym.triage.rows import ReportRows, load_rows


class FailureSection(NamedTuple):
    """The section of a report that analyses one failure."""

    eval: str
    classification: str
    text: str
    """Its own Markdown, without the heading."""


class Mismatch(NamedTuple):
    """A line that differs from what the rows of its report say."""

    line: int
    what: str
    stated: str
    counted: str

    def __str__(self) -> str:
        """The mismatch as one line of text."""
        return f"line {self.line}: {self.what}: stated {self.stated}, counted {self.counted}"


class _Line(NamedTuple):
    number: int
    section: str
    heading: str
    """The nearest heading, which makes most lines of a report unique."""
    text: str


def read_report(text: str, source: str) -> PriorReport:
    """Reads an earlier report. `source` is its path.

    Raises:
        DesignError: the text carries no rows, so it is none of our reports.
    """
    rows = _read_rows(text)
    return PriorReport(
        source=source,
        run=rows.run.id,
        date=rows.run.date,
        version=rows.run.version,
        pass_rate=ratio(sum(rows.passed.values()), rows.conclusive),
        failures=tuple(
            ReportedFailure(row.path, row.steps[0].name, row.classification)
            for row in rows.failures
        ),
        actions=tuple(_read_actions(text)),
        model=rows.run.model,
    )


def read_failure_sections(text: str) -> list[FailureSection]:
    """Reads the sections of a report that analyse one failure each."""
    classes = {code(row.eval): row for row in _read_rows(text).failures}
    lines = text.split("\n")
    headings = [line for line in _visible_lines(text) if line.text.startswith("#")]
    ends = [line.number - 1 for line in headings[1:]] + [len(lines)]
    sections = []
    for heading, end in zip(headings, ends, strict=True):
        row = classes.get(re.sub(r"^### \d+\. ", "", heading.text))
        if row is not None and heading.section == EACH_FAILURE:
            words = "\n".join(lines[heading.number : end]).strip()
            sections.append(FailureSection(row.eval, row.classification, words))
    return sections


def without_rows(text: str) -> str:
    """Removes the comment that carries a report's rows, for people who read it."""
    head, comment, tail = text.rpartition(f"\n{ROWS}")
    return f"{head}{tail.partition(ROWS_END)[2].removeprefix(chr(10))}" if comment else text


def lint_report(text: str) -> list[Mismatch]:
    """Compares a report with the one that its rows give, in the order of its lines.

    Lines that a person added are not checked, unless they continue a table of the report.

    Raises:
        DesignError: the text is not a report that `judge-gym analyze` wrote.
    """
    rows = _read_rows(text)
    expected = list(_visible_lines("\n\n".join(print_rows(rows))))
    stated = [line for line in _visible_lines(text) if line.section != ACTIONS]
    ours, theirs = ([line[2:] for line in lines] for lines in (expected, stated))
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    tables = {line.number for line in stated if line.text.startswith("|")}
    mismatches = []
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind == "equal":
            continue
        candidates = stated[first:last]
        for line in expected[start:end]:
            closest = get_close_matches(line.text, [other.text for other in candidates], 1)
            if not closest:
                number = stated[min(first, len(stated) - 1)].number
                mismatches.append(Mismatch(number, _label(line), "nothing", line.text))
                continue
            index = [other.text for other in candidates].index(closest[0])
            edited = candidates.pop(index)
            if edited.text != line.text:  # else only its heading was edited
                words = _difference(edited.text, line.text)
                mismatches.append(Mismatch(edited.number, _label(line), *words))
        tables -= {line.number for line in candidates}  # those that a person added
        mismatches += [
            Mismatch(line.number, _label(line), line.text, "nothing")
            for line in candidates
            if line.text.startswith("|") and line.number - 1 in tables
        ]
    return sorted(mismatches)


def _read_rows(text: str) -> ReportRows:
    carried = [line.text for line in _visible_lines(text) if line.text.startswith(ROWS)]
    if not carried:
        raise DesignError("this is not a report of judge-gym analyze: it carries no rows")
    return load_rows(carried[-1].removeprefix(ROWS).removesuffix(ROWS_END))


def _read_actions(text: str) -> Iterator[str]:
    """Yields the actions that people recorded, one per line."""
    for line in _visible_lines(text):
        if line.section == ACTIONS and not line.text.startswith("#"):
            action = re.sub(r"^([-*+]|\d+[.)]) ", "", line.text).replace("`", "").replace("**", "")
            if not re.fullmatch(r"\W*none\W*", action, re.I):
                yield action


def _visible_lines(text: str) -> Iterator[_Line]:
    """Yields the lines that say something, without quoted and fenced text.

    Spaces count as one and rules of tables as equal, since editors align tables.
    """
    section = heading = fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        words = re.sub(r":?-{3,}:?", "---", " ".join(line.split()))
        if fence:
            fence = "" if words.startswith(fence) and not words.strip("`") else fence
        elif words.startswith("```"):
            fence = words[: len(words) - len(words.lstrip("`"))]
        elif words and not words.startswith(">"):
            section = words if words.startswith("## ") else section
            heading = words if words.startswith("#") else heading
            yield _Line(number, section, heading, words)


def _label(line: _Line) -> str:
    """Names a line by its section and its first cell or words."""
    cells = line.text.strip("|- ").replace("**", "").replace("`", "")
    first = re.split(r" \||:(?: |$)|, ", cells)[0]
    return f"{line.section.strip('# ')}, {first[:60]}"


def _difference(stated: str, counted: str) -> tuple[str, str]:
    """Finds the words in which two lines differ."""
    ours, theirs = stated.split(), counted.split()
    while ours and theirs and ours[0] == theirs[0]:
        ours, theirs = ours[1:], theirs[1:]
    while ours and theirs and ours[-1] == theirs[-1]:
        ours, theirs = ours[:-1], theirs[:-1]
    first, second = (" ".join(words).strip("*`,.;()") or "nothing" for words in (ours, theirs))
    return first, second
