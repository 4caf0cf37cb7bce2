"""What was spent: by day, by model, by study; of one study by experiment and stage too."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.lab import Lab
from judge_gym.web.api.answers import Name, OpenLab
from judge_gym.web.rendering import shown

router = APIRouter()
SUMS = ("calls", "attempts", "input_tokens", "output_tokens", "usd", "seconds")
ROWS = 100
"""Rows of a table; those that cost most."""
Study = Annotated[Name | None, Query(description="Only what this study paid.")]


@router.get("/usage")
def usage(request: Request, lab: OpenLab, study: Study = None) -> Response:
    """The page; the sums, which may take a while, come after it."""
    if study is not None:
        lab.find_study(study)
    return shown(request, "usage.html.j2", study=study)


@router.get("/usage/sums")
def usage_sums(request: Request, lab: OpenLab, study: Study = None) -> Response:
    """A part of the page: a table for each way to add up."""
    ways = ("day", "model", "study") if study is None else ("day", "model", "stage", "tag")
    rows = spent(lab, study)
    paid = [row for row in rows if not row["imported"]]
    tables = {way: added_up(paid, way) for way in ways}
    return shown(
        request,
        "sums.html.j2",
        total=next(iter(added_up(paid, None)), None),
        imported=sum(row["calls"] for row in rows if row["imported"]),
        tables={way: found[:ROWS] for way, found in tables.items()},
        more={way: len(found) - ROWS for way, found in tables.items()},
    )


@router.get("/usage/figure.svg")
def usage_figure(lab: OpenLab, study: Study = None) -> Response:
    """Money by day and model, or calls where none cost any; empty where there is none."""
    import pandas as pd

    from judge_gym.analysis.figures import spend_figure, svg

    rows = [row for row in spent(lab, study) if not row["imported"]]
    free = not any(row["usd"] for row in rows)
    column, unit = ("calls", "calls") if free else ("usd", "US $")
    spend = pd.DataFrame(rows, columns=["day", "model", column]).groupby(["day", "model"])
    amounts = spend[column].sum(min_count=1).rename("amount").reset_index()
    chart = spend_figure(amounts, unit=unit)
    return Response(svg(chart) if chart is not None else "", media_type="image/svg+xml")


def added_up(rows: Sequence[Mapping[str, Any]], way: str | None) -> list[dict[str, Any]]:
    """Sums by one column, the dearest first; days the newest first. None adds up everything.

    A sum of prices is unknown where one of them is; calls that failed have none.
    """
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = str(row[way] or "") if way is not None else ""
        sums = found.setdefault(name, {"name": name, **dict.fromkeys(SUMS, 0), "unpriced": 0})
        for column in (*SUMS, "unpriced"):
            sums[column] += row[column] or 0
    if way == "day":
        return sorted(found.values(), key=lambda sums: str(sums["name"]), reverse=True)
    return sorted(found.values(), key=lambda sums: (-sums["usd"], -sums["calls"], sums["name"]))


def spent(lab: Lab, study: str | None) -> list[dict[str, Any]]:
    """What a study paid, or everything, as finely as it is known."""
    return [row for row in lab.store.sums.rows() if study is None or row["study"] == study]
