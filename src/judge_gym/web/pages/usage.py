"""Usage: what was paid by day, model and study, and within a study by experiment and step."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.rendering import render

router = APIRouter()
SUMS = ("calls", "attempts", "input_tokens", "output_tokens", "usd", "seconds")
ROWS = 100
"""Rows per table, the most expensive first."""
Study = Annotated[Name | None, Query(description="Only what this study paid.")]


@router.get("/usage")
def usage(request: Request, lab: OpenLab, study: Study = None) -> Response:
    """Shows the page; the totals, which may take a while, are loaded after it."""
    if study is not None:
        lab.experiments.show_study(study)
    return render(request, "usage.html.j2", study=study)


@router.get("/usage/totals")
def usage_totals(request: Request, lab: OpenLab, study: Study = None) -> Response:
    """Returns a part of the page: a table of totals by each of several columns."""
    columns = ("day", "model", "study") if study is None else ("day", "model", "stage", "tag")
    rows = lab.pages.spending(study)
    paid = [row for row in rows if not row["imported"]]
    tables = {column: totals(paid, column) for column in columns}
    return render(
        request,
        "_usage_totals.html.j2",
        total=next(iter(totals(paid, None)), None),
        imported=sum(row["calls"] for row in rows if row["imported"]),
        tables={column: table[:ROWS] for column, table in tables.items()},
        more={column: len(table) - ROWS for column, table in tables.items()},
    )


@router.get("/usage/figure.svg")
def usage_figure(lab: OpenLab, study: Study = None) -> Response:
    """Returns a figure of cost by day and model, of calls if none cost anything, or nothing."""
    import pandas as pd

    from judge_gym.analysis.figures import spend_figure, svg

    rows = [row for row in lab.pages.spending(study) if not row["imported"]]
    free = not any(row["usd"] for row in rows)
    column, unit = ("calls", "calls") if free else ("usd", "US $")
    spend = pd.DataFrame(rows, columns=["day", "model", column]).groupby(["day", "model"])
    amounts = spend[column].sum(min_count=1).rename("amount").reset_index()
    chart = spend_figure(amounts, unit=unit)
    return Response(svg(chart) if chart is not None else "", media_type="image/svg+xml")


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
