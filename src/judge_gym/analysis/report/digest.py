"""A report as programs read it: whole with every number, or in short.

The digest is for readers who pay for each word: whole tables are read one by one.
"""

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from judge_gym.analysis.report.page import Report, Table, slug
from judge_gym.records.judge_table import JudgeTable, column_value

SIZE = 2_600
"""Characters of a digest as JSON, before a reader marks what is from others."""
EFFECTS = ("Choices and quality", "Choices and verdicts", "Differences between judges")
NAMES = ("task", "at", "judge", "other", "knob", "level", "base", "endpoint")
NUMBERS = ("value", "low", "high", "items", "n", "q")
FACTS = ("experiments", "judges", "varied", "evidence items", "samples", "scored", "cost")
MOSTLY_SCORED = 90
"""The percentage of scored verdicts below which a digest warns."""
MOST_ROWS, MOST_WARNINGS, LONGEST_WARNING = 12, 5, 200


def as_json(report: Report, *, further: bool = False) -> dict[str, Any]:
    """Writes a report with every number of its page; undefined ones are null.

    Args:
        report: the report.
        further: whether the tables that are not on the page are computed and written, too.
    """
    table = report.judge_table
    question_of_table = {
        entry.title: question.title
        for question in report.questions
        for part in question.sections
        for entry in part.tables
    }
    return {
        "title": report.title,
        "banner": report.banner,
        "sentence": report.summary.sentence,
        "outcomes": report.summary.outcomes,
        "choice": None if table is None else choice(table),
        "differences": [] if table is None else differences(table),
        "effects": [] if table is None else table["effects"],
        "facts": report.facts,
        "warnings": [*report.warnings],
        "questions": [
            {
                "question": question.title,
                "answers": [
                    {
                        "title": part.title,
                        "answer": part.lead,
                        "lines": [*part.lines],
                        "disputed": [
                            {
                                "item": case.item,
                                "evidence": case.evidence,
                                "verdicts": [
                                    {"setup": q.setup, "verdict": q.verdict, "text": q.text}
                                    for q in case.quotes
                                ],
                            }
                            for case in part.cases
                        ],
                    }
                    for part in question.sections
                ],
            }
            for question in report.questions
        ],
        "tables": [
            {
                "name": slug(entry.title),
                "title": entry.title,
                "question": question_of_table.get(entry.title, ""),
                "note": entry.note,
                "rows": records(entry.frame),
            }
            for entry in (report.every_table() if further else report.tables)
        ],
        "further_tables": [slug(title) for title in report.further_tables],
    }


def choice(table: JudgeTable) -> dict[str, Any]:
    """Returns the setup that the sentence recommends, with the measure that decided."""
    return {
        "setup": table["chosen"],
        "measure": table["measure"],
        "kind": table["kind"],
        "quality": table["chosen_quality"],
    }


def differences(table: JudgeTable) -> list[dict[str, Any]]:
    """Lists how far each setup is from the one with the best estimate, which has no difference."""
    names = ("setup", "standing", "difference", "at_most_worse")
    return [{name: row[name] for name in names} for row in table["rows"]]  # type: ignore[literal-required]


def digest(report: Report) -> dict[str, Any]:
    """Returns a report in short; of its two main tables as many rows as there is room for."""
    table, effects = report.judge_table, _table_titled(report, EFFECTS)
    scored, warnings = report.facts.get("scored", "100 %"), [*report.warnings]
    if float(scored.rstrip(" %")) < MOSTLY_SCORED:
        warnings.insert(0, f"only {scored} of the verdicts have a score; see the table statuses")
    for rows in range(MOST_ROWS, 0, -1):
        summary = {
            "title": report.title,
            "sentence": " ".join(filter(None, (report.summary.sentence, report.summary.outcomes))),
            "simulated": report.banner,
            "choice": table and _short_choice(table),
            "facts": {name: report.facts[name] for name in FACTS if name in report.facts},
            "judges": table and _judge_rows(table, rows),
            "effects": effects and _table(effects, rows),
            "warnings": [text[:LONGEST_WARNING] for text in warnings[:MOST_WARNINGS]],
            "tables": {slug(entry.title): len(entry.frame) for entry in report.tables},
            "further_tables": [slug(title) for title in report.further_tables],
        }
        if len(json.dumps(summary)) <= SIZE:
            break
    return summary


def _short_choice(table: JudgeTable) -> dict[str, Any]:
    quality = table["chosen_quality"]
    ends = ("value", "low", "high", "n")
    numbers = {end: _rounded(quality[end]) for end in ends} if quality else None  # type: ignore[literal-required]
    return {**choice(table), "quality": numbers}


def _judge_rows(table: JudgeTable, rows: int) -> dict[str, Any]:
    """Returns the first setups with their differences and the columns that the page shows."""
    heads = [head for head in table["columns"] if head["main"]]
    columns = ["setup", "standing", "difference", "low", "high", *(head["name"] for head in heads)]
    cells = []
    for row in table["rows"][:rows]:
        gap = row["difference"]
        ends = [gap[end] for end in ("value", "low", "high")] if gap else [None] * 3
        values = [column_value(row, head["name"]) for head in heads]
        numbers = [*ends, *(None if quantity is None else quantity["value"] for quantity in values)]
        cells.append([row["setup"], row["standing"], *map(_rounded, numbers)])
    return {"table": "judges", "columns": columns, "rows": cells, "of": len(table["rows"])}


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns the rows of a table, with undefined numbers as None."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]


def _table_titled(report: Report, titles: Sequence[str]) -> Table | None:
    by_title = {table.title: table for table in report.tables}
    return next((by_title[title] for title in titles if title in by_title), None)


def _table(table: Table, rows: int) -> dict[str, Any]:
    """Returns the first rows of a table: names that differ, estimates and intervals."""
    frame = table.frame
    if "endpoint" in frame and (frame["endpoint"] == "stage").any():
        frame = frame[frame["endpoint"] == "stage"]
    named = [name for name in NAMES if name in frame]
    columns = [name for name in named if frame[name].nunique() > 1 or name in ("knob", "level")]
    columns += [name for name in NUMBERS if name in frame]
    return _rows(frame, slug(table.title), columns, rows)


def _rows(frame: pd.DataFrame, name: str, columns: list[str], rows: int) -> dict[str, Any]:
    first_rows = records(frame[columns].head(rows))
    cells = [[_rounded(row[column]) for column in columns] for row in first_rows]
    return {"table": name, "columns": columns, "rows": cells, "of": len(frame)}


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
