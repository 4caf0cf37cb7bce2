"""Prints the judge table, and reports: on one screen, or whole."""

from typing import TYPE_CHECKING, Any

from judge_gym.cli import display
from judge_gym.cli.app import notes
from judge_gym.cli.results import first
from judge_gym.records.numbers import number

if TYPE_CHECKING:
    from judge_gym.analysis.report import Report
    from judge_gym.records.judge_table import JudgeRow, JudgeTable, Quantity

PRINTED_ROWS = 20
"""Longer tables are only in the report's files."""
SUMMARY_ROWS = 10
"""Setups in the summary of a report; `judges` prints all of them."""
FREE = "0.0000 USD"
SUMMARY_LINES = 3
"""Warnings, and lines on what knobs do, in the summary of a report."""
SHARES = ("consistency", "position_bias", "abstained", "unreadable")
OPTIONAL = ("seconds", "unreadable", "position_bias", "abstained")
"""Columns that are left out first on a narrow terminal."""
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
    rows = table["rows"][:most]
    whole = [_row(row, table["kind"], intervals=True) for row in rows]
    brief = [_row(row, table["kind"], intervals=False) for row in rows]
    fits = display.fits(whole)
    below = []
    if len(rows) < len(table["rows"]):
        below.append(f"{len(table['rows']) - len(rows)} more: judge-gym judges.")
    if people := table["people_with_each_other"]:
        below.append(f"People agree with each other: {_share(people, intervals=True)}.")
    if split := table["split"]:
        below.append(
            f"Chosen on {split['train']} items of train, estimated on {split['test']} of test, "
            f"which was used {display.times(split['uses'])} so far."
        )
    quality = table["chosen_quality"]
    if quality is not None and quality["method"] == "cross-fitted":
        below.append("The sentence's number is corrected for the choice, its differences are not.")
    others = "" if fits else "; --json has those of the other columns"
    below.append(f"Intervals: 95 %, over items, for all rows of a column together{others}.")
    display.table(
        "",
        _filled(whole if fits else brief),
        note=" ".join(below),
        one_line=True,
        optional=OPTIONAL,
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
    from judge_gym.analysis.report.judges import TITLE

    if report.banner:
        display.warning(report.banner)
    display.facts(report.title, report.facts)
    if report.judge_table is not None:
        _print_table(report.judge_table, None)
    for section in report.sections:
        if section.title == TITLE:
            continue
        display.heading(section.title, section.lead)
        for found in section.tables:
            if found.title == "Judges":  # is printed above
                continue
            rows = display.records(found.frame)
            if len(rows) > PRINTED_ROWS:
                display.text(f"{found.title}: {len(rows):,} rows, in the files that --out writes\n")
            else:
                display.table(found.title, rows, note=found.note, compact=True)
    notes(*report.warnings)
    if report.banner:
        display.warning(report.banner)


def _row(row: "JudgeRow", kind: str | None, *, intervals: bool) -> dict[str, Any]:
    """Returns a setup as printed; its quality always has its interval."""
    price, seconds = row["usd_per_1000"], row["seconds"]
    return {
        "setup": row["setup"],
        kind or "accuracy": _share(row["truth"], intervals=True) or "unknown",
        "standing": row["standing"],
        "$ per 1,000": None if price is None else _amount(price, intervals=intervals),
        "consistency": _share(row["consistency"], intervals=intervals),
        "position_bias": _share(row["position_bias"], intervals=intervals),
        "abstained": _share(row["abstained"], intervals=intervals),
        "unreadable": _share(row["unreadable"], intervals=intervals),
        "seconds": None if seconds is None else _amount(seconds, intervals=intervals),
    }


def _filled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns rows without the columns that have no value."""
    empty = {name for name in rows[0] if all(row[name] is None for row in rows)}
    return [{name: value for name, value in row.items() if name not in empty} for row in rows]


def _share(quantity: "Quantity | None", *, intervals: bool) -> str | None:
    """Returns a proportion in percent, with its interval."""
    if quantity is None:
        return None
    value, low, high = quantity["value"], quantity["low"], quantity["high"]
    if low is None or high is None or not intervals:
        return f"{round(100 * value)} %"
    return f"{round(100 * value)} % [{round(100 * low)}, {round(100 * high)}]"


def _amount(quantity: "Quantity", *, intervals: bool) -> str:
    """Returns dollars or seconds, with their interval."""
    value, low, high = quantity["value"], quantity["low"], quantity["high"]
    if low is None or high is None or not intervals:
        return _two_digits(value)
    return f"{_two_digits(value)} [{_two_digits(low)}, {_two_digits(high)}]"


def _two_digits(value: float) -> str:
    if value >= 100 or value == 0:
        return number(value)
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
