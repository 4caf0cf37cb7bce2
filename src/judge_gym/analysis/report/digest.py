"""The digest of a report: the main sentence, judges or effects with intervals, and what there is.

It is for readers who pay for each word: whole tables are read one by one.
"""

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from judge_gym.analysis.report.page import Report, Table, slug

SIZE = 2_600
"""Characters of a digest as JSON, before a reader marks what is from others."""
EFFECTS = ("Effects of the axes", "Differences between judges")
NAMES = ("task", "variant", "judge", "judge.model", "knob", "level", "base", "endpoint", "measure")
NUMBERS = ("mean", "value", "accuracy", "error", "low", "high", "items", "q")
FACTS = ("experiments", "judges", "varied", "evidence items", "samples", "scored", "cost")
MOSTLY_SCORED = 90
"""The percentage of scored verdicts below which a digest warns."""
MOST_ROWS, MOST_WARNINGS, LONGEST_WARNING = 12, 5, 200


def digest(report: Report) -> dict[str, Any]:
    """Returns a report in short; of its two main tables as many rows as there is room for."""
    judges, effects = report.summary.judges, _chosen(report, EFFECTS)
    scored, warnings = report.facts.get("scored", "100%"), [*report.warnings]
    if float(scored.rstrip("%")) < MOSTLY_SCORED:
        warnings.insert(0, f"only {scored} of the verdicts have a score; see the table statuses")
    for rows in range(MOST_ROWS, 0, -1):
        made = {
            "title": report.title,
            "sentence": " ".join(filter(None, (report.summary.sentence, report.summary.outcomes))),
            "simulated": report.banner,
            "facts": {name: report.facts[name] for name in FACTS if name in report.facts},
            "judges": judges and _rows(judges.frame, slug(judges.title), [*judges.frame], rows),
            "effects": effects and _table(effects, rows),
            "warnings": [text[:LONGEST_WARNING] for text in warnings[:MOST_WARNINGS]],
            "tables": {slug(table.title): len(table.frame) for table in report.tables},
        }
        if len(json.dumps(made)) <= SIZE:
            break
    return made


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns the rows of a table, with undefined numbers as None."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]


def _chosen(report: Report, titles: Sequence[str]) -> Table | None:
    by_title = {table.title: table for table in report.tables}
    return next((by_title[title] for title in titles if title in by_title), None)


def _table(table: Table, rows: int) -> dict[str, Any]:
    """Returns the first rows of a table: names that differ, estimates and intervals."""
    frame = table.frame
    if "endpoint" in frame and (frame["endpoint"] == "stage").any():
        frame = frame[frame["endpoint"] == "stage"]
    varying = [name for name in NAMES if name in frame and frame[name].nunique() > 1]
    named = ("knob", "level", "base") if "knob" in frame else ("judge.model", "judge")
    columns = varying or [name for name in named if name in frame]
    columns += [name for name in NUMBERS if name in frame]
    return _rows(frame, slug(table.title), columns, rows)


def _rows(frame: pd.DataFrame, name: str, columns: list[str], rows: int) -> dict[str, Any]:
    shown = records(frame[columns].head(rows))
    cells = [[_rounded(row[column]) for column in columns] for row in shown]
    return {"table": name, "columns": columns, "rows": cells, "of": len(frame)}


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
