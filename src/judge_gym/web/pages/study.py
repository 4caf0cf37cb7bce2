"""A study: its experiments, how far they are, what they wait for, and what can be done to them."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.lab import Lab
from judge_gym.studies.file import Caps
from judge_gym.web.api.answers import LARGEST, Cursor, Name, OpenLab
from judge_gym.web.api.runs import Limits
from judge_gym.web.middleware import Json
from judge_gym.web.pages.usage import added_up, spent
from judge_gym.web.rendering import shown

router = APIRouter()
ROWS = 25
PATIENCE = 0.1
"""Seconds in which rows are counted before the page is sent: a million samples take longer."""
LOG = 30
"""Events of the log at once."""


@router.get("/studies/{name}")
def study(
    request: Request,
    lab: OpenLab,
    name: Name,
    after: Cursor = None,
    before: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """A study.

    Args:
        request: of whoever looks.
        lab: what is served.
        name: the study.
        after: the last tag of the page of experiments before.
        before: the oldest event of the page of the log before.
    """
    found = lab.find_study(name)
    page = lab.store.queries.tags_page(study=name, after=after, limit=ROWS)
    rows = list(_described(lab, [row["tag"] for row in page.rows]))
    whole = after is None and page.next is None and all("runs" in row for row in rows)
    log = lab.store.events.of_study(name, LOG + 1, before)
    budget = dict(found["budget"])
    return shown(
        request,
        "study.html.j2",
        study=found,
        rows=rows,
        totals=totals(rows) if whole else None,
        first=after is None,
        next=page.next,
        log=log[:LOG],
        newest=lab.store.events.last_id() if before is not None else log[0][0].id if log else 0,
        older=log[LOG - 1][0].id if len(log) > LOG else None,
        latest=before is None,
        caps={cap: budget.get(cap) for cap in Caps.model_fields},
        limits=list(Limits.model_fields),
        progress=progress,
    )


@router.get("/studies/{name}/paid")
def paid(lab: OpenLab, name: Name) -> Response:
    """What a study paid so far: calls, and US dollars, null where a price is not known."""
    sums = added_up([row for row in spent(lab, name) if not row["imported"]], None)
    total = sums[0] if sums else {"calls": 0, "usd": 0.0, "unpriced": 0}
    return Json({"calls": total["calls"], "usd": None if total["unpriced"] else total["usd"]})


def _described(lab: Lab, tags: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Experiments with how far they are, if that is counted in time; events tell the rest."""
    end = time.monotonic() + PATIENCE
    for row in lab.store.queries.tags(tags=tags):
        if time.monotonic() < end:
            yield lab.get_experiment_summary(row["tag"])
        else:
            yield {**row, "judge": row["design"]["judge.model"], "status": "…"}


def progress(row: dict[str, Any]) -> dict[str, Any]:
    """How far the newest run of an experiment is; nothing is wanted where there is none."""
    none: dict[str, Any] = {"wanted": {}, "done": {}, "failed": {}, "said": ""}
    run = row["runs"][-1] if row.get("runs") else none
    stages = [
        f"{stage} {run['done'][stage]}/{wanted}"
        for stage, wanted in run["wanted"].items()
        if wanted
    ]
    return {
        "wanted": sum(run["wanted"].values()),
        "done": sum(run["done"].values()),
        "failed": sum(run["failed"].values()),
        "stages": " · ".join(stages),
        "said": run["said"],
    }


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The sums over experiments, and what any of them waits for."""
    each = [progress(row) for row in rows]
    statuses: dict[str, int] = {}
    for row in rows:
        statuses[row["status"]] = statuses.get(row["status"], 0) + 1
    return {
        "experiments": len(rows),
        "statuses": statuses,
        **{name: sum(one[name] for one in each) for name in ("wanted", "done", "failed")},
        "said": list(dict.fromkeys(one["said"] for one in each if one["said"])),
    }
