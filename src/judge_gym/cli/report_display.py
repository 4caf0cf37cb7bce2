"""Prints the judge table, and reports: on one screen, or whole."""

from typing import TYPE_CHECKING, Any

from judge_gym.cli import display
from judge_gym.cli.app import notes
from judge_gym.cli.results import first
from judge_gym.records.numbers import FORMATS, share, with_interval

if TYPE_CHECKING:
    from judge_gym.analysis.report import Report
    from judge_gym.analysis.report.page import Table
    from judge_gym.records.judge_table import JudgeTable

PRINTED_ROWS = 20
"""Longer tables are only in the report's files."""
SUMMARY_ROWS = 10
"""Setups in the summary of a report; `judges` prints all of them."""
FREE = "$0"
SUMMARY_LINES = 3
"""Warnings, and lines on what knobs do, in the summary of a report."""
CHECKS = {
    "hypothesis": ("outcome", "value", "low", "high", "p"),
    "check": ("result", "value", "low", "high", "needs"),
}
"""The tables of a protocol, by their first column, and which other columns a summary has."""


def print_judges(table: "JudgeTable", *, most: int | None = None) -> None:
    """Prints the sentence on which judge to use, and the judge table; `most` limits its rows."""
    if table["simulated"]:
        display.warning(table["simulated"])
    _print_table(table, most)


def _print_table(table: "JudgeTable", most: int | None) -> None:
    from judge_gym.analysis.report.judges import differing_counts, interval_units, text_rows

    display.text(table["sentence"])
    whole, brief = (_filled(text_rows(table, brief=brief)[:most]) for brief in (False, True))
    fits = display.fits(whole)
    below = []
    if most is not None and len(table["rows"]) > most:
        count = len(table["rows"]) - most
        below.append(f"{count} more setup{'s' * (count > 1)}: --full prints them.")
    if people := table["people_with_each_other"]:
        below.append(f"People agree with each other: {share(people)}.")
    if split := table["split"]:
        below.append(
            f"Chosen on {split['train']} items of train, estimated on {split['test']} of test, "
            f"which was used {display.times(split['uses'])} so far."
        )
    quality = table["chosen_quality"]
    if quality is not None and quality["method"] == "cross-fitted":
        expected = with_interval(quality, FORMATS[table["columns"][0]["unit"]])
        below.append(f"To be expected on new items, corrected for the choice: {expected}.")
    others = "" if fits else "; --json has those of the other columns"
    below.append(
        f"Intervals: 95 %, over {interval_units(table)}, for all rows of a column together{others}."
    )
    if counts := differing_counts(table):
        below.append(counts)
    titles = [head["title"] for head in table["columns"] if head["main"]]
    display.table(
        "",
        whole if fits else brief,
        note=" ".join(below),
        one_line=True,
        optional=titles[:0:-1],  # the last ones are left out first on a narrow terminal
    )
    notes(*table["notes"])


def print_summary(report: "Report") -> None:
    """Prints which judge to use, what each knob does, and the checks of a protocol."""
    shown = ("experiments", "evidence items", "samples", "scored")
    counts = [_counted(report.facts[name].split(" (")[0], name) for name in shown]
    cost = report.facts.get("cost", FREE)
    display.text(f"{report.title}: {', '.join([*counts, *([cost] if cost != FREE else [])])}")
    if report.judge_table is not None:
        print_judges(report.judge_table, most=SUMMARY_ROWS)
    for line in report.summary.choices[:SUMMARY_LINES]:
        display.text(line)
    for part in report.sections:
        if any(found.frame.columns[0] in CHECKS for found in part.tables):
            display.text(part.lead)
    for found in report.tables:
        head = str(found.frame.columns[0])
        if head in CHECKS:
            columns = [head, *(name for name in CHECKS[head] if name in found.frame)]
            display.table("", display.records(found.frame[columns]), one_line=True)
    notes(*first(report.warnings, SUMMARY_LINES))


def _counted(count: str, name: str) -> str:
    """Returns a number with what it counts: `1 experiment`."""
    return f"{count} {name[:-1] if count == '1' and name.endswith('s') else name}"


def print_report(report: "Report") -> None:
    """Prints a report whole; the longest tables are only in its files."""
    if report.banner:
        display.warning(report.banner)
    display.facts(report.title, report.facts)
    if report.judge_table is not None:
        _print_table(report.judge_table, None)
    for question in report.questions:
        for section in question.sections:
            repeated = section.title == question.title
            display.heading(question.title if repeated else section.title, section.lead)
            for line in section.lines:
                display.text(f"- {line}")
            for found in section.tables:
                if found.title != "Judges":  # is printed above
                    _print_cells(found)
            for case in section.cases:
                display.text(f"“{case.item}”:")
                for quote in case.quotes:
                    display.text(f"  {quote.setup} says {quote.verdict}")
    notes(*report.warnings)
    if report.banner:
        display.warning(report.banner)


def _print_cells(table: "Table") -> None:
    rows = display.records(table.cells)
    if len(rows) > PRINTED_ROWS:
        display.text(f"{table.title}: {len(rows):,} rows, in the files that --out writes\n")
    else:
        display.table(table.title, rows, note=table.note, compact=True)


def _filled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns rows without the columns that have no value."""
    empty = {name for name in rows[0] if not any(row[name] for row in rows)} if rows else set()
    return [{name: value for name, value in row.items() if name not in empty} for row in rows]
