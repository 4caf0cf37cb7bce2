"""Spend: what was paid by day, model and study, and within a study by experiment and step."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.records.palette import judge_colours
from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.rendering import render

router = APIRouter()
SUMS = ("calls", "attempts", "input_tokens", "output_tokens", "usd", "seconds")
ROWS = 100
"""Rows per table, the most expensive first."""
DAYS = 30
"""Days in the picture, the last on which anything was asked."""
Study = Annotated[Name | None, Query(description="Only what this study paid.")]


@router.get("/usage")
def usage(request: Request, lab: OpenLab, study: Study = None) -> Response:
    """Shows sums by day, model and study, whose running totals are kept up cheaply."""
    if study is not None:
        lab.experiments.show_study(study)
    columns = ("model", "study", "day") if study is None else ("model", "stage", "tag", "day")
    rows = lab.pages.spending(study)
    paid = [row for row in rows if not row["imported"]]
    tables = {column: totals(paid, column) for column in columns}
    return render(
        request,
        "usage.html.j2",
        study=study,
        total=next(iter(totals(paid, None)), None),
        imported=sum(row["calls"] for row in rows if row["imported"]),
        chart=spend_chart(paid),
        tables={column: table[:ROWS] for column, table in tables.items()},
        more={column: len(table) - ROWS for column, table in tables.items()},
    )


def spend_chart(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Returns a bar per day with a part per model: of cost, of calls where nothing cost anything.

    None where all of it was paid on one day, which the tables say.
    """
    unit = "usd" if any(row["usd"] for row in rows) else "calls"
    amounts: dict[str, dict[str, float]] = {}
    for row in rows:
        models = amounts.setdefault(str(row["day"]), {})
        models[row["model"]] = models.get(row["model"], 0) + (row[unit] or 0)
    days = sorted(amounts)[-DAYS:]
    if len(days) < 2:
        return None
    colours = judge_colours(row["model"] for row in rows)
    highest = max(sum(amounts[day].values()) for day in days) or 1
    bars = []
    for day in days:
        top = 0.0
        parts = []
        for model, amount in sorted(amounts[day].items()):
            height = 100 * amount / highest
            top += height
            parts.append({"model": model, "amount": amount, "y": 100 - top, "height": height})
        bars.append({"day": day, "total": sum(amounts[day].values()), "parts": parts})
    return {"unit": unit, "bars": bars, "highest": highest, "colours": colours}


def totals(rows: Sequence[Mapping[str, Any]], column: str | None) -> list[dict[str, Any]]:
    """Returns totals by a column, the most expensive first and days newest first."""
    by_name: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = str(row[column] or "") if column is not None else ""
        sums = by_name.setdefault(name, {"name": name, **dict.fromkeys(SUMS, 0), "unpriced": 0})
        for counted in (*SUMS, "unpriced"):
            sums[counted] += row[counted] or 0
    for sums in by_name.values():
        sums["time"] = timedelta(seconds=sums["seconds"])
    if column == "day":
        return sorted(by_name.values(), key=lambda sums: str(sums["name"]), reverse=True)
    return sorted(by_name.values(), key=lambda sums: (-sums["usd"], -sums["calls"], sums["name"]))
