"""Suite runs: the leaderboard, each run with its evals, and each eval with its answer and steps."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.engine.suite_reports import SuiteReport, eval_row
from judge_gym.errors import NotFoundError
from judge_gym.lab import Lab
from judge_gym.triage import result_name
from judge_gym.web.api.parameters import LARGEST, OpenLab
from judge_gym.web.failure_reports import failure_analyses
from judge_gym.web.rendering import render

router = APIRouter()
PAGE = 50
"""Runs per page."""
Number = Annotated[int, Path(ge=1, le=LARGEST)]
Before = Annotated[int | None, Query(ge=1, le=LARGEST)]
KINDS = {"experiment": "condition", "model": "model"}
"""What the first part of a page's path names, by that part."""


@router.get("/suites")
def suites(request: Request, lab: OpenLab, before: Before = None) -> Response:
    """Shows the leaderboard, conditions, models, and the runs, newest first."""
    reports = lab.suites.reports()
    return render(
        request,
        "suites.html.j2",
        boards=_boards(lab.suites.leaderboard()),
        conditions=_counts(reports, "experiment"),
        models=_counts(reports, "model"),
        **_page(reports, before),
    )


@router.get("/experiment/{name:path}/run/{run}/{category}/{eval}")
@router.get("/model/{name:path}/run/{run}/{category}/{eval}")
def one_eval(
    request: Request,
    lab: OpenLab,
    name: str,
    run: Number,
    category: str,
    eval: str,
    replicate: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
) -> Response:
    """Shows an eval of a run: its steps, the model's answer, the reference, and the analysis."""
    of, report = _find(request, lab, name, run)
    key = (category, eval, replicate)
    for row in report.results:
        result = row.result
        if (result.category, result.name, result.replicate) == key:
            known = failure_analyses(lab.folder, report.run)
            return render(
                request,
                "suite_eval.html.j2",
                kind=KINDS[of],
                name=name,
                home=_home(of, name),
                run=run,
                eval=lab.suites.show_eval(row.id),
                analysis=known.get(result_name(result)),
                replicates=range(report.run.replicates),
            )
    raise NotFoundError(f"run {run} has no result of {category}/{eval}, replicate {replicate}")


@router.get("/experiment/{name:path}/run/{run}")
@router.get("/model/{name:path}/run/{run}")
def one_run(request: Request, lab: OpenLab, name: str, run: Number) -> Response:
    """Shows a run: its pass rate, categories, and every eval."""
    of, report = _find(request, lab, name, run)
    known = failure_analyses(lab.folder, report.run)
    rows = [
        {
            **eval_row(row),
            "analysis": known.get(result_name(row.result)),
            "link": _eval_link(of, name, row.run_id, row.result.path, row.result.replicate),
        }
        for row in report.results
    ]
    return render(
        request,
        "suite_run.html.j2",
        kind=KINDS[of],
        name=name,
        home=_home(of, name),
        run=_run_row(report, of),
        evals=rows,
        analysed=sorted({analysis.source for analysis in known.values()}),
    )


@router.get("/experiment/{name:path}")
@router.get("/model/{name:path}")
def group(request: Request, lab: OpenLab, name: str, before: Before = None) -> Response:
    """Shows the runs of a condition or of a model, with their part of the leaderboard."""
    of = _of(request)
    reports = [report for report in lab.suites.reports() if getattr(report.run, KINDS[of]) == name]
    if not reports:
        raise NotFoundError(f"there is no suite run of the {KINDS[of]} {name!r}")
    rows: Sequence[Mapping[str, Any]] = lab.suites.leaderboard()
    return render(
        request,
        "suite_group.html.j2",
        of=of,
        kind=KINDS[of],
        name=name,
        boards=_boards([row for row in rows if row[KINDS[of]] == name]),
        **_page(reports, before, of),
    )


def _of(request: Request) -> str:
    """Returns the first part of a page's path: `experiment` or `model`."""
    return request.url.path.split("/")[1]


def _find(request: Request, lab: Lab, name: str, run: int) -> tuple[str, SuiteReport]:
    of = _of(request)
    report = lab.suites.report(run)
    if getattr(report.run, KINDS[of]) != name:
        raise NotFoundError(f"run {run} does not belong to the {KINDS[of]} {name!r}")
    return of, report


def _home(of: str, name: str) -> str:
    return f"/{of}/{quote(name, safe='')}"


def _eval_link(of: str, name: str, run: int, path: str, replicate: int) -> str:
    parts = "/".join(quote(part, safe="") for part in path.split("/", 1))
    query = f"?replicate={replicate}" if replicate else ""
    return f"{_home(of, name)}/run/{run}/{parts}{query}"


def _page(
    reports: Sequence[SuiteReport], before: int | None, of: str = "experiment"
) -> dict[str, Any]:
    """Returns a page of runs, newest first, and where the next one begins."""
    older = [report for report in reversed(reports) if before is None or report.run.id < before]
    rows = [_run_row(report, of) for report in older[:PAGE]]
    return {"runs": rows, "next": rows[-1]["run"] if len(older) > PAGE else None}


def _run_row(report: SuiteReport, of: str) -> dict[str, Any]:
    run = report.run
    return {
        **report.to_json(),
        "created": run.created,
        "link": f"{_home(of, getattr(run, KINDS[of]))}/run/{run.id}",
        "condition_link": _home("experiment", run.condition),
        "model_link": _home("model", run.model),
    }


def _boards(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns a leaderboard for each set of comparable rows: a suite's version, one condition."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        linked = {**row, "link": _home("model", row["model"])}
        found.setdefault((row["suite"], row["version"], row["condition"]), []).append(linked)
    return [
        {
            "suite": suite,
            "version": version,
            "condition": condition,
            "condition_link": _home("experiment", condition),
            "rows": comparable,
        }
        for (suite, version, condition), comparable in found.items()
    ]


def _counts(reports: Sequence[SuiteReport], of: str) -> list[dict[str, Any]]:
    names = [getattr(report.run, KINDS[of]) for report in reports]
    return [
        {"name": name, "runs": names.count(name), "link": _home(of, name)}
        for name in sorted(set(names))
    ]
