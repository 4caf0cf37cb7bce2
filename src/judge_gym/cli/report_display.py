"""Prints the judge table, and reports: on one screen, or whole."""

from typing import TYPE_CHECKING

from judge_gym.cli import display
from judge_gym.cli.app import notes
from judge_gym.cli.results import first
from judge_gym.records.judge_table import (
    CORRECTED,
    column_value,
    deciding_column,
    differing_counts,
    interval_units,
    is_corrected,
    people_deciding,
    sentences_on_chosen,
)
from judge_gym.records.numbers import FORMATS, percent, with_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judge_gym.analysis.report import Report
    from judge_gym.analysis.report.page import Table
    from judge_gym.records.judge_table import JudgeRow, JudgeTable

PRINTED_ROWS = 20
"""Longer tables are only in the report's files."""
SUMMARY_ROWS = 10
"""Setups in the summary of a report; `--full` prints all of them."""
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
    display.text(table["sentence"])
    print_judge_rows(table, most)


def print_judge_rows(table: "JudgeTable", most: int | None = None) -> None:
    """Prints the judge table without a sentence above it; `most` limits its rows."""
    rows = table["rows"][:most]
    whole = _rows(table, rows, intervals=True)
    fits = display.fits(whole)
    column = deciding_column(table)
    display.table(
        "",
        whole if fits else _rows(table, rows, intervals=False),
        note=" ".join(_below(table, len(rows), fits)),
        one_line=True,
        essential=("setup", *([column["title"]] if column else [])),
    )
    notes(*table["notes"])


def _rows(
    table: "JudgeTable", rows: "Sequence[JudgeRow]", *, intervals: bool
) -> list[dict[str, str | None]]:
    """Writes setups with the main columns; the deciding measure always has its interval."""
    heads = [head for head in table["columns"] if head["main"]]
    deciding = deciding_column(table)
    texts: list[dict[str, str | None]] = []
    for row in rows:
        cells: dict[str, str | None] = {"setup": row["setup"]}
        for head in heads:
            quantity = column_value(row, head["name"])
            if quantity is not None and not intervals and head is not deciding:
                quantity = {**quantity, "low": None, "high": None}
            text = with_interval(quantity, FORMATS[head["unit"]])
            cells[head["title"]] = text or ("unknown" if head is deciding else None)
            if head is deciding:
                cells["standing"] = row["standing"]
        texts.append(cells)
    return texts


def _below(table: "JudgeTable", printed: int, fits: bool) -> "Iterator[str]":
    """Yields what stands below the table: what decides, how people compare, what intervals are."""
    if printed < len(table["rows"]):
        yield f"{display.plural(len(table['rows']) - printed, 'more setup')}: --full prints all."
    if table["decides"]:
        yield table["decides"]
    people, column = people_deciding(table), deciding_column(table)
    if people is not None and column is not None:
        yield f"People with each other: {with_interval(people, FORMATS[column['unit']])}."
    if split := table["split"]:
        yield (
            f"Chosen on {split['choice']} items of {split['chosen_on']}, estimated on "
            f"{split['test']} of test, which was used {display.times(split['uses'])} so far."
        )
    if is_corrected(table):
        yield CORRECTED
    other_columns = "" if fits else "; --json has those of the other columns"
    yield f"Intervals: 95 %, over {interval_units(table)}, for all rows of a column{other_columns}."
    if counts := differing_counts(table):
        yield counts


def print_chosen(table: "JudgeTable") -> None:
    """Prints what labels say of the chosen setup, and its verdicts by label in percent."""
    confusion = table["confusion"]
    if confusion is None:
        return
    labels = "people's labels" if table["kind"] == "agreement" else "known answers"
    items = display.plural(confusion["n"], "item")
    display.table(
        f"{confusion['setup']}: verdicts (rows) and {labels} (columns)",
        [
            {
                "verdict": verdict,
                **{
                    f"“{label}”": percent(share)
                    for label, share in zip(confusion["labels"], shares, strict=True)
                },
            }
            for verdict, shares in zip(confusion["verdicts"], confusion["shares"], strict=True)
        ],
        note=f"Shares of {items}; each item counts once.",
        essential=("verdict", *(f"“{label}”" for label in confusion["labels"])),
    )
    for sentence in sentences_on_chosen(table):
        display.text(sentence)


def print_summary(report: "Report") -> None:
    """Prints which judge to use, what each knob does, and the checks of a protocol."""
    fact_names = ("experiments", "evidence items", "samples", "scored")
    counts = [_counted(report.facts[name].split(" (")[0], name) for name in fact_names]
    cost = report.facts.get("cost", FREE)
    display.text(f"{report.title}: {', '.join([*counts, *([cost] if cost != FREE else [])])}")
    if report.judge_table is not None:
        print_judges(report.judge_table, most=SUMMARY_ROWS)
    for line in report.summary.choices[:SUMMARY_LINES]:
        display.text(line)
    for part in report.sections:
        if any(report_table.frame.columns[0] in CHECKS for report_table in part.tables):
            display.text(part.lead)
    for report_table in report.tables:
        head = str(report_table.frame.columns[0])
        if head in CHECKS:
            columns = [head, *(name for name in CHECKS[head] if name in report_table.frame)]
            display.table("", display.records(report_table.frame[columns]), one_line=True)
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
            for report_table in section.tables:
                if report_table.title != "Judges":  # is printed above
                    _print_cells(report_table)
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
