"""Runs of a study: its experiments with their progress, controls, and the log of events."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.lab import Lab
from judge_gym.records.requests import CallLimits
from judge_gym.studies.file import Caps
from judge_gym.web.api.parameters import Before, Cursor, Name, OpenLab
from judge_gym.web.middleware import Json
from judge_gym.web.pages.items import study_page
from judge_gym.web.pages.usage import totals as usage_totals
from judge_gym.web.rendering import render

router = APIRouter()
ROWS = 25
PATIENCE = 0.1
"""Seconds that a page spends on counting rows; a million samples take longer."""
LOG = 30
"""Events per page of the log."""


@router.get("/studies/{name}/runs")
def runs(
    request: Request,
    lab: OpenLab,
    name: Name,
    after: Cursor = None,
    before: Before = None,
) -> Response:
    """Shows a study with the experiments after a tag, and the log before an event."""
    study_file = lab.experiments.show_study(name)
    page = lab.pages.page_tags(study=name, after=after, limit=ROWS)
    rows = list(_described(lab, [row["tag"] for row in page.rows]))
    complete = after is None and page.next is None and all("runs" in row for row in rows)
    log = lab.pages.study_events(name, LOG + 1, before)
    budget = dict(study_file["budget"])
    return render(
        request,
        "study_runs.html.j2",
        **study_page(name, "runs"),
        file=study_file["text"],
        rows=rows,
        totals=totals(rows) if complete else None,
        first=after is None,
        next=page.next,
        log=log[:LOG],
        newest=lab.pages.last_event_id() if before is not None else log[0][0].id if log else 0,
        older=log[LOG - 1][0].id if len(log) > LOG else None,
        latest=before is None,
        caps={cap: budget.get(cap) for cap in Caps.model_fields},
        limits=list(CallLimits.model_fields),
        experiments=lab.pages.count_by_study().get(name, len(rows)),
        progress=progress,
    )


@router.get("/studies/{name}/paid")
def paid(lab: OpenLab, name: Name) -> Response:
    """Returns a study's calls, its cost in US dollars (null if a price is unknown), its models."""
    sums = usage_totals([row for row in lab.pages.spending(name) if not row["imported"]], None)
    total = sums[0] if sums else {"calls": 0, "usd": 0.0, "unpriced": 0}
    usd = None if total["unpriced"] else total["usd"]
    return Json({"calls": total["calls"], "usd": usd, "models": lab.pages.study_models(name)})


def _described(lab: Lab, tags: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yields experiments with their progress while time allows; live events bring the rest."""
    end = time.monotonic() + PATIENCE
    for row in lab.studies.find_tags(tags):
        if time.monotonic() < end:
            yield lab.experiments.show(row["tag"])
        else:
            yield {**row, "judge": row["design"]["judge.model"], "status": "…"}


def progress(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the progress of an experiment's newest run, in total and by step."""
    empty: dict[str, Any] = {"targets": {}, "done": {}, "failed": {}, "message": ""}
    run = row["runs"][-1] if row.get("runs") else empty
    stages = [
        f"{stage} {run['done'][stage]}/{targets}"
        for stage, targets in run["targets"].items()
        if targets
    ]
    return {
        "targets": sum(run["targets"].values()),
        "done": sum(run["done"].values()),
        "failed": sum(run["failed"].values()),
        "stages": " · ".join(stages),
        "message": run["message"],
        "known": "runs" in row,
    }


def totals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns sums over experiments, and the messages of their runs."""
    runs = [progress(row) for row in rows]
    return {
        "experiments": len(rows),
        "statuses": Counter(row["status"] for row in rows),
        **{name: sum(run[name] for run in runs) for name in ("targets", "done", "failed")},
        "messages": list(dict.fromkeys(run["message"] for run in runs if run["message"])),
    }
