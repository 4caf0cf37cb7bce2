"""Checks the arithmetic of a report that `report` wrote, and that a person may have edited.

Every number that follows from others is counted again: from the table that lists the failures,
from their own sections, and from the counts of the run.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from judge_gym.errors import DesignError
from judge_gym.triage.report import ACTIONABLE, failures, failures_by_kind, ratio
from judge_gym.triage.report_reader import (
    Row,
    Section,
    Text,
    class_name,
    is_failure,
    listed_failures,
    read_sections,
    run_table,
)

SECTIONS = (
    "Run",
    "Earlier reports",
    "Failures by step",
    "Classification",
    "Each failure",
    "Patterns",
    "Recommendations",
    "Net impact",
)
"""The sections that every report has."""
_FAILURES = r"(no failure|the only failure|\d+ of \d+ failures)"


class Mismatch(NamedTuple):
    """A number that does not add up."""

    line: int
    what: str
    stated: str
    counted: str

    def __str__(self) -> str:
        """The mismatch as one line of text."""
        return f"line {self.line}: {self.what}: stated {self.stated}, counted {self.counted}"


def lint_report(text: str) -> list[Mismatch]:
    """Returns the numbers of a report that do not add up, in the order of its lines.

    Raises:
        DesignError: the text is not a report that `judge-gym analyze` wrote.
    """
    sections = read_sections(text)
    parts = {part.topic: part for part in reversed(sections) if part.level == 2}
    missing = [name for name in SECTIONS if name not in parts]
    if missing:
        raise DesignError(
            f"this is not a report of judge-gym analyze: it has no section {missing[0]!r}"
        )
    listed = listed_failures(sections)
    details = [part for part in sections if is_failure(part)]
    by_class = Counter(class_name(row["Class"].text) for row in listed)
    found = [
        *_run(parts, run_table(sections), listed, by_class),
        *_steps(parts["Failures by step"], listed, details),
        *_compare_counts(parts["Classification"], "Class", by_class),
        *_details(parts["Each failure"], listed, details),
        *_patterns(parts, len(listed), details),
        *_conflicts(parts.get("Conflict between judges"), len(listed)),
        *_recommendations(sections),
    ]
    return sorted(set(found))


def _compare(cell: Text | None, section: Section, what: str, counted: object) -> Iterator[Mismatch]:
    """Yields a mismatch where a cell does not state what was counted, or is missing."""
    stated = cell.text.strip() if cell else "nothing"
    if stated != str(counted):
        line = cell.line if cell else section.heading.line
        yield Mismatch(line, what, stated, str(counted))


def _compare_phrase(
    section: Section, pattern: str, what: str, counted: object
) -> Iterator[Mismatch]:
    """Yields a mismatch where the group of a pattern, in a section's lines, is not the count."""
    found = section.match(pattern)
    cell = Text(found[0].line, found[1][1], ()) if found else None
    yield from _compare(cell, section, what, counted)


def _compare_counts(
    section: Section, column: str, counted: Mapping[str, int]
) -> Iterator[Mismatch]:
    """Yields what does not add up in a table that counts failures, its total included."""
    stated = {row[column].text: row["Failures"] for row in section.rows(column, "Failures")}
    wanted = {**dict.fromkeys(stated, 0), **counted, "Total": sum(counted.values())}
    for name, count in wanted.items():
        yield from _compare(stated.get(name), section, f"{column.lower()} {name}", count)


# --- the sections --------------------------------------------------------------------------------


def _run(
    parts: Mapping[str, Section],
    run: Mapping[str, Text],
    listed: list[Row],
    by_class: Counter[str],
) -> Iterator[Mismatch]:
    """Checks the counts of the run, and the net impact, which follows from them."""
    passed = int(run["Passed"].text) if "Passed" in run and run["Passed"].text.isdecimal() else 0
    inconclusive = len(parts["Inconclusive"].rows("Eval")) if "Inconclusive" in parts else 0
    conclusive = passed + len(listed)
    counted = {
        "Results" if "Results" in run else "Evals": conclusive + inconclusive,
        "Failed": len(listed),
        "Inconclusive": inconclusive,
        "Pass rate": ratio(passed, conclusive),
    }
    for name, count in counted.items():
        yield from _compare(run.get(name), parts["Run"], name, count)
    impact = parts["Net impact"]
    kinds = failures_by_kind(by_class)
    yield from _compare_counts(impact, "Kind", kinds)
    pattern = r"Pass rate without the actionable failures: (.+)\."
    adjusted = ratio(passed, conclusive - kinds[ACTIONABLE])
    yield from _compare_phrase(impact, pattern, "adjusted pass rate", adjusted)


def _steps(section: Section, listed: list[Row], details: list[Section]) -> Iterator[Mismatch]:
    yield from _compare_counts(section, "Step", Counter(row["Step"].name for row in listed))
    further = sum(part.match("Fails at ") is not None for part in details)
    pattern = rf"Each failure counts at its first failing step; {_FAILURES}"
    counted = failures(further, len(listed))
    yield from _compare_phrase(section, pattern, "failures with a further step", counted)


def _details(section: Section, listed: list[Row], details: list[Section]) -> Iterator[Mismatch]:
    """Checks the section of each failure, by itself and against the failure's row."""
    if len(listed) != len(details):
        line = section.heading.line
        yield Mismatch(line, "failures analysed", str(len(details)), str(len(listed)))
    rows = {row["Eval"].name: row for row in listed}
    for number, part in enumerate(details, 1):
        heading = part.heading
        if not heading.text.startswith(f"{number}. "):
            stated = heading.text.partition(".")[0]
            yield Mismatch(heading.line, "number of the section", stated, str(number))
        yield from _verdicts(part)
        if row := rows.get(heading.name):
            named = class_name(row["Class"].text)
            step = row["Step"].name
            yield from _compare_phrase(part, "Step: (.+)", f"step of {heading.name}", step)
            yield from _compare_phrase(part, r"Class: (\w+)", f"class of {heading.name}", named)
            yield from _share(part, row.get("Share of verdicts"))


def _verdicts(part: Section) -> Iterator[Mismatch]:
    """Checks the sums of a failure's verdicts and of their quotes."""
    for name, pattern in (
        ("verdicts", r"Verdicts: (\d+) asked: (.+)"),
        ("quotes", r"Quotes: (\d+) made, (.+)"),
    ):
        if found := part.match(pattern):
            line, match = found
            counted = sum(map(int, re.findall(r"\d+", match[2])))
            yield from _compare(Text(line.line, match[1], ()), part, name, counted)


def _share(part: Section, cell: Text | None) -> Iterator[Mismatch]:
    """Checks the share of a failure's class against its fraction, its verdicts and its row.

    The numerator has two decimals and the percentages one and none, so each may be rounded.
    """
    found = part.match(r"Class: .*\bby ([\d.]+) % \(([\d.]+)/(\d+)\)")
    if found is None:
        return
    line, (stated, mass, scored) = found[0].line, found[1].groups()
    share = 100 * float(mass) / float(scored) if float(scored) else 0.0
    if abs(share - float(stated)) > 0.051 + 0.5 / max(float(scored), 1):
        yield Mismatch(line, f"share {mass}/{scored}", f"{stated} %", f"{share:.1f} %")
    verdicts = part.match(r"Verdicts: .*\b(\d+) scored")
    counted = verdicts[1][1] if verdicts else "0"
    yield from _compare(Text(line, scored, ()), part, "scored verdicts", counted)
    row_share = re.match(r"(\d+) %", cell.text) if cell else None
    if cell and row_share and abs(int(row_share[1]) - float(stated)) > 0.551:
        what = f"share of the class of {part.heading.name}"
        yield Mismatch(cell.line, what, cell.text, f"{stated} %")


def _patterns(
    parts: Mapping[str, Section], count: int, details: list[Section]
) -> Iterator[Mismatch]:
    section, earlier = parts["Patterns"], parts["Earlier reports"]
    gap = re.compile(r"One is documented that shares words with this error\b")
    gaps = sum(any(gap.search(line.text) for line in part.lines) for part in details)
    again = len({row["Eval"].name for row in earlier.rows("Eval", "Report of")})
    matched, stood = failures(gaps, count), failures(again, count)
    opening = "A known gap matched the error of"
    pattern = rf"{opening} {_FAILURES}"
    yield from _compare_phrase(section, pattern, "failures with a known gap", matched)
    pattern = rf"{opening} .*; {_FAILURES}"
    yield from _compare_phrase(section, pattern, "failures in earlier reports", stood)
    for row in section.rows("In common", "Failures", "Evals"):
        name = row["In common"]
        yield from _compare(row["Failures"], section, name.text, len(row["Evals"].codes))
        if within := re.search(r"\((\d+) of its \d+ conclusive results\)\Z", name.text):
            cell = Text(name.line, within[1], ())
            yield from _compare(cell, section, name.text, len(row["Evals"].codes))


def _conflicts(section: Section | None, count: int) -> Iterator[Mismatch]:
    if section is None:
        return
    differ = sum(row["Differ"].text == "yes" for row in section.rows("Eval") if "Differ" in row)
    pattern = rf"Judges come to different classes on {_FAILURES}"
    counted = failures(differ, count)
    yield from _compare_phrase(section, pattern, "failures on which judges differ", counted)


def _recommendations(sections: list[Section]) -> Iterator[Mismatch]:
    """Checks the counts in the headings of recommendations against their lists."""
    for part in sections:
        headed = re.fullmatch(r"(.*) \((\d+)\)", part.heading.text)
        if headed and part.topic == "Recommendations" and int(headed[2]) != part.items:
            yield Mismatch(part.heading.line, headed[1], headed[2], str(part.items))
