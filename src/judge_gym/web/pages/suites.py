"""Suites: the leaderboard, scores over time, and the runs of a condition or a model."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.errors import NotFoundError, unknown
from judge_gym.lab import Lab
from judge_gym.lab.suite_reports import SuiteReport
from judge_gym.lab.suite_scores import leaderboard_rows, score_rows
from judge_gym.records.responses import LeaderboardRow
from judge_gym.web.analysis_cache import INKS
from judge_gym.web.api.parameters import Before, Name, OpenLab
from judge_gym.web.pages.filters import Text
from judge_gym.web.pages.suite_paths import KINDS, Place, SuitePlace
from judge_gym.web.rendering import render

router = APIRouter()
PAGE = 50
"""Runs per page."""
Point = tuple[str, datetime, float, float, float]
"""A name, and the time, score and interval of a run."""


@router.get("/suites")
def suites(
    request: Request,
    lab: OpenLab,
    before: Before = None,
    version: Text = None,
    category: Text = None,
) -> Response:
    """Shows the leaderboard, scores over time, conditions, models, and the runs, newest first."""
    reports = lab.suites.reports()
    newest = {report.run.condition: report for report in reports}
    condition = "default" if "default" in newest else next(reversed(newest), None)
    return render(
        request,
        "suites.html.j2",
        boards=_boards(leaderboard_rows(reports)),
        history=history(lab, reports, version, category, condition=condition),
        conditions=_counts(reports, "experiment"),
        models=_counts(reports, "model"),
        **_page(reports, before, version=version, category=category),
    )


@router.get("/suites/history.svg")
def history_image(
    lab: OpenLab,
    suite: Name,
    version: Name,
    model: Text = None,
    condition: Text = None,
    category: Text = None,
    theme: Literal["light", "dark"] = "light",
) -> Response:
    """Returns scores over time as an image; a colour is a model, or a condition of one model."""
    rows = lab.suites.history(suite, version, model=model, condition=condition, category=category)
    by: Literal["model", "condition"] = "condition" if model is not None else "model"
    points = tuple((row[by], row["at"], row["score"], row["low"], row["high"]) for row in rows)
    if not points:
        raise NotFoundError(f"no complete run of version {version!r} of the suite {suite!r}")
    title = f"Pass rate over time, {category or 'all evals'} of {suite}"
    svg = _drawn(points, title).replace("currentColor", INKS[theme])
    return Response(svg, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})


@lru_cache(maxsize=64)
def _drawn(points: tuple[Point, ...], title: str) -> str:
    import pandas as pd

    from judge_gym.analysis import figures

    frame = pd.DataFrame(points, columns=["name", "at", "score", "low", "high"])
    return figures.svg(figures.history_figure(frame, title))


def history(
    lab: Lab,
    reports: Sequence[SuiteReport],
    version: str | None,
    category: str | None,
    *,
    model: str | None = None,
    condition: str | None = None,
) -> dict[str, Any] | None:
    """Returns what a page shows of scores over time, in one version of a suite; None without runs.

    Args:
        lab: the lab.
        reports: of the runs whose versions can be chosen.
        version: the chosen one; by default that of the newest run.
        category: only the evals of this category.
        model: only runs of this model; their conditions are compared.
        condition: only runs under this condition.
    """
    if not reports:
        return None
    by_version = {report.run.version: report.run for report in reports}
    if version is not None and version not in by_version:
        raise NotFoundError(unknown("version", version, by_version), choices=by_version)
    newest = by_version[version or reports[-1].run.version]
    same_version = [
        report
        for report in reports
        if model in (None, report.run.model) and condition in (None, report.run.condition)
    ]
    evals = lab.suites.list_tasks(newest.suite, newest.version)
    rows = score_rows(same_version, newest.version, evals, category)
    criteria = {"model": model, "condition": condition, "category": category}
    return {
        "suite": newest.suite,
        "version": newest.version,
        "versions": [(run.suite, run.version) for run in reversed(by_version.values())],
        "category": category,
        "categories": categories(evals),
        "condition": condition,
        "query": {
            "suite": newest.suite,
            "version": newest.version,
            **{name: value for name, value in criteria.items() if value is not None},
        },
        "by": "model" if model is None else "condition",
        "rows": [
            {**row, "link": SuitePlace("model", row["model"]).run(row["run"])}
            for row in reversed(rows)
        ],
    }


def categories(evals: Iterable[str]) -> list[str]:
    """Returns the categories of evals by their paths."""
    return sorted({path.partition("/")[0] for path in evals})


@router.get("/experiment/{name:path}")
@router.get("/model/{name:path}")
def group(
    request: Request,
    lab: OpenLab,
    place: Place,
    before: Before = None,
    version: Text = None,
    category: Text = None,
) -> Response:
    """Shows the runs of a condition or of a model, with their scores over time."""
    reports = place.reports(lab)
    if not reports:
        raise NotFoundError(f"there is no suite run of the {place.kind} {place.title!r}")
    return render(
        request,
        "suite_group.html.j2",
        of=place.of,
        kind=place.kind,
        name=place.title,
        boards=_boards(leaderboard_rows(reports)),
        history=history(lab, reports, version, category, **place.filters),
        **_page(reports, before, place, version=version, category=category),
    )


def _page(
    reports: Sequence[SuiteReport],
    before: int | None,
    place: SuitePlace | None = None,
    **filters: str | None,
) -> dict[str, Any]:
    """Returns a page of runs, newest first, and the query of the next one, which keeps filters."""
    older = [report for report in reversed(reports) if before is None or report.run.id < before]
    rows = [run_row(report, place or "experiment") for report in older[:PAGE]]
    parameters = {name: value for name, value in filters.items() if value is not None}
    more = len(older) > PAGE
    return {
        "runs": rows,
        "next": urlencode({**parameters, "before": rows[-1]["run"]}) if more else None,
    }


def run_row(report: SuiteReport, of: str | SuitePlace) -> dict[str, Any]:
    """Returns a run as the tables of runs show it, with its address under a place."""
    run = report.run
    suite_place = of if isinstance(of, SuitePlace) else SuitePlace.of_run(of, run)
    running = report.in_progress and report.status == "unfinished"
    label = report.label.replace("complete-with-failures", "some inconclusive")
    return {
        **report.to_json(),
        "label": label.replace("unfinished", "running") if running else label,
        "state": "running" if running else report.status,
        "created": run.created,
        "link": suite_place.run(run.id),
        "condition_link": SuitePlace.of_run("experiment", run).home,
        "model_link": SuitePlace.of_run("model", run).home,
    }


def _boards(rows: Sequence[LeaderboardRow]) -> list[dict[str, Any]]:
    """Returns a leaderboard for each set of comparable rows: a suite's version, one condition."""
    boards: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        linked = {**row, "link": SuitePlace("model", row["model"]).home}
        boards.setdefault((row["suite"], row["version"], row["condition"]), []).append(linked)
    return [
        {
            "suite": suite,
            "version": version,
            "condition": condition,
            "condition_link": SuitePlace("experiment", condition).home,
            "rows": comparable,
        }
        for (suite, version, condition), comparable in boards.items()
    ]


def _counts(reports: Sequence[SuiteReport], of: str) -> list[dict[str, Any]]:
    names = [getattr(report.run, KINDS[of]) for report in reports]
    return [
        {"name": name, "runs": names.count(name), "link": SuitePlace(of, name).home}
        for name in sorted(set(names))
    ]
