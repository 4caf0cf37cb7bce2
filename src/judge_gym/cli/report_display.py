"""Prints the judge table, and reports: on one screen, or whole."""

from typing import TYPE_CHECKING

from judge_gym.cli import display
from judge_gym.cli.app import notes
from judge_gym.cli.layout import JOINED
from judge_gym.cli.results import first
from judge_gym.records.forest import MARGIN, JudgePlot, judge_plot
from judge_gym.records.judge_table import (
    CORRECTED,
    column_value,
    deciding_column,
    differing_counts,
    interval_units,
    is_corrected,
    people_deciding,
    sentences_on_chosen,
    verdicts_by_label,
)
from judge_gym.records.numbers import FORMATS, percent, with_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judge_gym.analysis.report import Report
    from judge_gym.analysis.report.page import Table
    from judge_gym.records.judge_table import JudgeRow, JudgeTable

PLOTTED_WIDTH, PLOT = 100, 24
"""The columns of a terminal from which on intervals are drawn, and how many they take."""
KEPT = ("usd_per_1000", "consistency")
"""Columns of the judge table that stay longest on a narrow terminal."""
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
    """Prints the sentence on which judge to use, and at most so many rows of the judge table."""
    if table["simulated"]:
        display.warning(table["simulated"])
    _print_table(table, most)


def _print_table(table: "JudgeTable", most: int | None) -> None:
    display.text(table["sentence"])
    print_judge_rows(table, most)


def print_judge_rows(table: "JudgeTable", most: int | None = None) -> None:
    """Prints at most so many rows of the judge table, without a sentence above it."""
    rows = table["rows"][:most]
    plot = judge_plot(table) if display.width() >= PLOTTED_WIDTH else None
    with_intervals = _rows(table, rows, plot, intervals=True)
    fits = display.fits(with_intervals)
    column = deciding_column(table)
    heads = [*([column["title"]] if column else []), *([_scale(plot)] if plot else [])]
    display.table(
        "",
        with_intervals if fits else _rows(table, rows, plot, intervals=False),
        note=" ".join(_below(table, len(rows), fits, plot)),
        one_line=True,
        essential=("setup", *heads),
        optional=[
            head["title"]
            for head in reversed(table["columns"])
            if head["main"] and head is not column and head["name"] not in KEPT
        ],
    )
    notes(*table["notes"])


def _scale(plot: JudgePlot) -> str:
    """Returns the head of the column of intervals: the two ends of their scale."""
    low, high = plot.axis.text(plot.axis.low), plot.axis.text(plot.axis.high)
    return low.replace(" ", JOINED) + high.replace(" ", JOINED).rjust(PLOT - len(low), JOINED)


def _interval(plot: JudgePlot, row: "JudgeRow") -> str:
    """Draws the estimate of a setup, such as `--o--`, beside people and a constant answer."""
    axis, marks = plot.axis, [JOINED] * PLOT

    def place(value: float) -> int:
        return round(axis.place(value, PLOT + 2 * MARGIN - 1) - MARGIN)

    if plot.constant is not None:
        marks[place(plot.constant)] = "|"
    quantity = column_value(row, plot.head["name"])
    if quantity is not None and quantity["low"] is not None and quantity["high"] is not None:
        for at in range(place(quantity["low"]), place(quantity["high"]) + 1):
            marks[at] = "-"
    if plot.people is not None:
        marks[place(plot.people["value"])] = ":"
    if quantity is not None:
        marks[place(quantity["value"])] = "o"
    return "".join(marks)


def _rows(
    table: "JudgeTable", rows: "Sequence[JudgeRow]", plot: JudgePlot | None, *, intervals: bool
) -> list[dict[str, str | None]]:
    """Writes setups with the main columns. The deciding measure always has its interval."""
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
            if plot is not None and head["name"] == plot.head["name"]:
                cells[_scale(plot)] = _interval(plot, row)
            if head is deciding:
                cells["standing"] = row["standing"]
        texts.append(cells)
    return texts


def _below(
    table: "JudgeTable", printed: int, fits: bool, plot: JudgePlot | None
) -> "Iterator[str]":
    """Yields what stands below the table: what decides, how people compare, what intervals are."""
    if printed < len(table["rows"]):
        yield f"{display.plural(len(table['rows']) - printed, 'more setup')}: --full prints all."
    if table["decides"]:
        yield table["decides"]
    if plot is not None:
        marks = ["o the estimate", "- its interval"]
        marks += [": people with each other"] if plot.people is not None else []
        marks += ["| always the same answer"] if plot.constant is not None else []
        yield f"Drawn: {', '.join(marks)}."
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
    heads = [f"“{verdict}”" for verdict in confusion["verdicts"]]
    display.table(
        f"{confusion['setup']}: its verdicts (columns) by {labels} (rows)",
        [
            {"label": label, **dict(zip(heads, map(percent, shares), strict=True))}
            for label, shares in zip(confusion["labels"], verdicts_by_label(confusion), strict=True)
            if shares is not None
        ],
        note=f"Shares of each row; {items}, each counts once.",
        essential=("label", *heads),
    )
    for sentence in sentences_on_chosen(table):
        display.text(sentence)


def print_summary(report: "Report") -> None:
    """Prints which judge to use, what each knob does, and the checks of a protocol."""
    fact_names = ("experiments", "evidence items", "samples", "scored")
    counts = [_count_with_name(report.facts[name].split(" (")[0], name) for name in fact_names]
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


def _count_with_name(count: str, name: str) -> str:
    """Writes a number with what it counts: `1 experiment`."""
    return f"{count} {name[:-1] if count == '1' and name.endswith('s') else name}"


def print_report(report: "Report") -> None:
    """Prints a whole report, but the longest tables only into its files."""
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
