"""Suite runs: scores side by side, a run with all its evals, and everything about one eval."""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.engine.suite_reports import SuiteReport, eval_row
from judge_gym.errors import NotFoundError
from judge_gym.lab import Lab
from judge_gym.triage import result_name
from judge_gym.web.analyses import analyses
from judge_gym.web.api.answers import LARGEST, OpenLab
from judge_gym.web.api.suites import Number
from judge_gym.web.rendering import shown

router = APIRouter()
PAGE = 50
"""Runs of a page."""
Before = Annotated[int | None, Query(ge=1, le=LARGEST)]


@router.get("/suites")
def suites(request: Request, lab: OpenLab, before: Before = None) -> Response:
    """The leaderboard, experiments, models, and the runs, newest first."""
    reports = lab.suite_runs()
    return shown(
        request,
        "suites.html.j2",
        boards=_boards(lab.board()),
        experiments=_counts(reports, "experiment"),
        models=_counts(reports, "model"),
        **_some(reports, before),
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
    """Steps with durations and reasons, output files, task, answer, grader, and its analysis."""
    of, report = _found(request, lab, name, run)
    wanted = (category, eval, replicate)
    for row in report.results:
        result = row.result
        if (result.category, result.name, result.replicate) == wanted:
            known = analyses(request.app.state.folder, report.run)
            return shown(
                request,
                "suite_eval.html.j2",
                of=of,
                name=name,
                home=_home(of, name),
                report=report,
                eval=lab.eval_debug(row.id),
                analysis=known.get(result_name(result)),
                replicates=range(report.run.replicates),
            )
    raise NotFoundError(f"run {run} has no result of {category}/{eval}, replicate {replicate}")


@router.get("/experiment/{name:path}/run/{run}")
@router.get("/model/{name:path}/run/{run}")
def one_run(request: Request, lab: OpenLab, name: str, run: Number) -> Response:
    """Pass rate, categories, and every eval."""
    of, report = _found(request, lab, name, run)
    known = analyses(request.app.state.folder, report.run)
    rows = [
        {
            **eval_row(row),
            "analysis": known.get(result_name(row.result)),
            "link": _eval_link(of, name, row.run_id, row.result.path, row.result.replicate),
        }
        for row in report.results
    ]
    return shown(
        request,
        "suite_run.html.j2",
        of=of,
        name=name,
        home=_home(of, name),
        report=report,
        told=report.to_json(),
        evals=rows,
        analysed=sorted({one.source for one in known.values()}),
    )


@router.get("/experiment/{name:path}")
@router.get("/model/{name:path}")
def group(request: Request, lab: OpenLab, name: str, before: Before = None) -> Response:
    """The runs of an experiment or of a model, with their part of the leaderboard."""
    of = _of(request)
    reports = [report for report in lab.suite_runs() if getattr(report.run, of) == name]
    if not reports:
        raise NotFoundError(f"there is no suite run of the {of} {name!r}")
    return shown(
        request,
        "suite_group.html.j2",
        of=of,
        name=name,
        boards=_boards([row for row in lab.board() if row[of] == name]),
        **_some(reports, before, of),
    )


def _of(request: Request) -> str:
    """Under what a page stands: experiment or model."""
    return request.url.path.split("/")[1]


def _found(request: Request, lab: Lab, name: str, run: int) -> tuple[str, SuiteReport]:
    of = _of(request)
    report = lab.suite_run(run)
    if getattr(report.run, of) != name:
        raise NotFoundError(f"run {run} is not of the {of} {name!r}")
    return of, report


def _home(of: str, name: str) -> str:
    return f"/{of}/{quote(name, safe='')}"


def _eval_link(of: str, name: str, run: int, path: str, replicate: int) -> str:
    parts = "/".join(quote(part, safe="") for part in path.split("/", 1))
    query = f"?replicate={replicate}" if replicate else ""
    return f"{_home(of, name)}/run/{run}/{parts}{query}"


def _some(
    reports: Sequence[SuiteReport], before: int | None, of: str = "experiment"
) -> dict[str, Any]:
    """A page of runs, the newest first, and where the next one begins."""
    older = [report for report in reversed(reports) if before is None or report.run.id < before]
    rows = [
        {
            **report.to_json(),
            "created": report.run.created,
            "link": f"{_home(of, getattr(report.run, of))}/run/{report.run.id}",
            "experiment_link": _home("experiment", report.run.experiment),
            "model_link": _home("model", report.run.model),
        }
        for report in older[:PAGE]
    ]
    return {"runs": rows, "next": rows[-1]["run"] if len(older) > PAGE else None}


def _boards(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The leaderboard by what may be compared: a version of a suite, under one experiment."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        linked = {**row, "link": _home("model", row["model"])}
        found.setdefault((row["suite"], row["version"], row["experiment"]), []).append(linked)
    return [
        {
            "suite": suite,
            "version": version,
            "experiment": experiment,
            "experiment_link": _home("experiment", experiment),
            "rows": some,
        }
        for (suite, version, experiment), some in found.items()
    ]


def _counts(reports: Sequence[SuiteReport], of: str) -> list[dict[str, Any]]:
    names = [getattr(report.run, of) for report in reports]
    return [
        {"name": name, "runs": names.count(name), "link": _home(of, name)}
        for name in sorted(set(names))
    ]
