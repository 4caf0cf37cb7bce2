"""Runs of a study: what came of its calls, what to do next, its experiments, and the log."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.lab import Lab
from judge_gym.lab.study_states import VerdictCounts
from judge_gym.records.requests import CallLimits
from judge_gym.studies.file import Caps
from judge_gym.web.api.parameters import Before, Cursor, Name, OpenLab
from judge_gym.web.pages.items import study_page
from judge_gym.web.pages.usage import totals as usage_totals
from judge_gym.web.rendering import render

router = APIRouter()
ROWS = 25
"""Experiments per page."""
LOG = 30
"""Events per page of the log."""
SILENT = {"answered": 0, "in_flight": 0, "last_minute": 0, "last_error": None}
"""What is known of a judge that was never asked."""
Study = Annotated[Name, Query()]


@router.get("/studies/{name}/runs")
def runs(request: Request, lab: OpenLab, name: Name, after: Cursor = None) -> Response:
    """Shows a study's runs, with the experiments after a tag."""
    study_file = lab.experiments.show_study(name)
    budget = dict(study_file["budget"])
    return render(
        request,
        "study_runs.html.j2",
        **study_page(name, "runs"),
        **_live(lab, name, after),
        file=study_file["text"],
        caps={cap: budget.get(cap) for cap in Caps.model_fields},
        limits=list(CallLimits.model_fields),
    )


@router.get("/parts/study/runs")
def live_part(request: Request, lab: OpenLab, study: Study, after: Cursor = None) -> Response:
    """Returns the part of the page that changes while runs are in progress."""
    page = study_page(study, "runs")
    return render(request, "_study_runs.html.j2", **page, **_live(lab, study, after))


@router.get("/parts/study/log")
def log_part(request: Request, lab: OpenLab, study: Study, before: Before = None) -> Response:
    """Returns a part of the page: what happened, the newest first, before an event."""
    events = lab.pages.study_events(study, LOG + 1, before)
    older = events[LOG - 1][0].id if len(events) > LOG else None
    return render(
        request, "_study_log.html.j2", study=study, log=events[:LOG], older=older, before=before
    )


def _live(lab: Lab, study: str, after: str | None) -> dict[str, Any]:
    state = lab.pages.study_state(study)
    page = lab.experiments.page(study=study, after=after, limit=ROWS, reasons=False)
    paid = usage_totals([row for row in lab.pages.spending(study) if not row["imported"]], None)
    models = [*lab.pages.study_models(study)]
    named = {model["model"] for model in models}
    models += [{**SILENT, "model": judge} for judge in state.by_judge if judge not in named]
    rate = sum(model["last_minute"] for model in models)
    rows = [{**row, **progress(row)} for row in page.rows]
    return {
        "state": state,
        "rows": rows,
        "after": after,
        "next": page.next,
        "models": models,
        "paid": paid[0] if paid else {"calls": 0, "usd": 0.0, "unpriced": 0},
        "budget": dict(lab.experiments.show_study(study)["budget"]),
        "rate": rate,
        "left": timedelta(minutes=state.calls_left / rate) if rate else None,
    }


def progress(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the progress of an experiment's newest run: what came of its verdicts, by step."""
    empty: dict[str, Any] = {"targets": {}, "done": {}, "failed": {}, "verdicts": {}, "message": ""}
    run = row["runs"][-1] if row["runs"] else empty
    steps = [
        f"{step} {run['done'][step]:,} of {targets:,}"
        for step, targets in run["targets"].items()
        if targets and step not in ("score", "swap")
    ]
    return {
        "counts": VerdictCounts.of_run(run["targets"], run["verdicts"]),
        "failed": sum(run["failed"].values()),
        "steps": ", ".join(steps),
        "message": run["message"],
    }
