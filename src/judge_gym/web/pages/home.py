"""What is in the lab: studies and experiments, how far they are, what they cost."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.records import TaskType
from judge_gym.web.api.answers import Name, OpenLab
from judge_gym.web.middleware import Json
from judge_gym.web.pages import usage
from judge_gym.web.pages.filters import Text, given
from judge_gym.web.rendering import shown, usd

router = APIRouter()
PAGE = 25
"""Experiments of a page."""
STUDIES = 60
"""Studies that have a card; the others are found by their filter."""
NOTHING = usd(0.0)
TASK_TYPES = ("ecc", "control", "benchmark")


@router.get("/")
def home(
    request: Request,
    lab: OpenLab,
    study: Annotated[str | None, Query(max_length=500, pattern=r"^[^\x00]*$")] = None,
    task_type: Annotated[TaskType | None, BeforeValidator(given)] = None,
    judge: Text = None,
    after: Text = None,
    before: Text = None,
) -> Response:
    """Studies and experiments."""
    chosen = {"study": study or None, "task_type": task_type, "judge": judge}
    found = lab.page_experiments(**chosen, after=after, before=before, limit=PAGE, reasons=False)
    asked = {name: value for name, value in chosen.items() if value is not None}

    def place(**where: str | None) -> str | None:
        return f"/?{urlencode({**asked, **where})}" if all(where.values()) else None

    studies = lab.store.queries.studies()
    named = {name: count for name, count in studies.items() if name}
    return shown(
        request,
        "home.html.j2",
        rows=[{**row, **standing(row)} for row in found.rows],
        studies=dict(list(named.items())[:STUDIES]),
        all_studies=list(named),
        total=sum(studies.values()),
        judges=sorted(lab.store.queries.judges()),
        task_types=TASK_TYPES,
        chosen=chosen,
        first=place() if after or before else None,
        previous=place(before=found.previous),
        next=place(after=found.next),
    )


def standing(row: Mapping[str, Any]) -> dict[str, Any]:
    """How far the newest run of an experiment is, and what failed in it."""
    run = row["runs"][-1] if row["runs"] else None
    if run is None:
        return {"wanted": 0, "done": 0, "failed": 0, "unscored": 0, "said": ""}
    statuses = run["statuses"]
    return {
        "wanted": sum(run["wanted"].values()),
        "done": sum(run["done"].values()),
        "failed": sum(run["failed"].values()),
        "unscored": sum(statuses.values())
        - sum(statuses.get(name, 0) for name in ("scored", "abstained")),
        "said": run["said"],
    }


@router.get("/parts/spent")
def spent(
    lab: OpenLab,
    tag: Annotated[list[Name], Query(max_length=PAGE)] = [],  # noqa: B006
) -> Response:
    """What studies cost so far, and some experiments; a page asks for it once it is shown."""
    paid = [row for row in usage.spent(lab, None) if not row["imported"]]
    tags = {row["name"]: told(row) for row in usage.added_up(paid, "tag")}
    studies = {row["name"]: told(row) for row in usage.added_up(paid, "study")}
    return Json(
        {
            "studies": {name: said for name, said in studies.items() if name},
            "tags": {name: tags.get(name, NOTHING) for name in tag},
            "all": next(map(told, usage.added_up(paid, None)), NOTHING),
        }
    )


def told(paid: Mapping[str, Any]) -> str:
    """An amount, and that it is not all where prices are unknown."""
    if paid["unpriced"] and not paid["usd"]:
        return "no price known"
    return f"at least {usd(paid['usd'])}" if paid["unpriced"] else usd(paid["usd"])
