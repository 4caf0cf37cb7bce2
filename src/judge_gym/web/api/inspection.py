"""A look into the lab itself: how it stands, its log, its tables, one question in SQL."""

import json
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import StringConstraints
from starlette.responses import Response

from judge_gym.errors import DesignError
from judge_gym.store import Mark
from judge_gym.web import uploads
from judge_gym.web.api.answers import (
    LARGEST,
    PILOT_TAG,
    Cursor,
    Limit,
    Name,
    OpenLab,
    page,
    shows,
    shows_rows,
)
from judge_gym.web.middleware import Json

router = APIRouter(tags=["inspection"])
Target = Annotated[Name | None, Query(description="A study's name or an experiment's tag.")]
RUN = {"tag": PILOT_TAG, "run": 1, "status": "scoring", "going_on": True, "done": {"score": 12}}
EVENT = {"what": "event", "id": 9, "tag": PILOT_TAG, "kind": "paused", "said": "paused by hand"}


@router.get("/status", responses=shows({"going_on": True, "runs": [RUN]}))
def status(
    lab: OpenLab,
    target: Target = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Experiments at most.")] = 20,
) -> Response:
    """How far runs are: those of a study or an experiment, or the newest."""
    return Json(lab.runs.status(uploads.named(target) if target else None, limit=limit))


@router.get("/logs", responses=shows_rows(EVENT))
def logs(
    lab: OpenLab, target: Target = None, cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """What happened to runs, and which attempts at calls failed and why; newest first."""
    below = Mark(*_numbers(cursor, 2)) if cursor is not None else None
    named = uploads.named(target) if target else None
    rows, more = lab.runs.logs(named, below=below, limit=limit)
    return page(rows, json.dumps(more) if more else None)


@router.get("/tables", responses=shows_rows({"table": "samples", "rows": 60, "columns": []}))
def tables(lab: OpenLab) -> Response:
    """The lab's tables with their columns and keys, and how many rows each has."""
    return page(lab.admin.tables())


@router.get("/data", responses=shows_rows({"id": 1, "status": "scored", "stages": "2 3"}))
def data(
    lab: OpenLab,
    table: Annotated[Name, Query(description="One of `tables`.")],
    order: Literal["asc", "desc"] = "asc",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Rows of a table as they are stored, in the order of its key."""
    after = _key(cursor) if cursor is not None else None
    rows, more = lab.admin.page_table(table, after=after, limit=limit, descending=order == "desc")
    return page(rows, json.dumps(more) if more else None)


@router.get(
    "/query", responses=shows({"columns": ["status", "n"], "rows": [["scored", 60]], "more": False})
)
def query(
    lab: OpenLab,
    sql: Annotated[
        str,
        StringConstraints(min_length=1, max_length=10_000),
        Query(description="One SELECT, of SQLite or Postgres as `status` says."),
    ],
    limit: Limit = 100,
) -> Response:
    """The answer to one SELECT of your own, in 5 seconds at most; nothing can be changed by it."""
    found = lab.admin.query(sql, limit=limit)
    return Json({"columns": found.columns, "rows": found.rows, "more": found.more})


@router.get("/environment", responses=shows_rows({"name": "OPENAI_API_KEY", "set": False}))
def environment(lab: OpenLab) -> Response:
    """Which variables the lab looks at, and whether each is set; never what they hold."""
    return page(lab.admin.environment())


def _key(cursor: str) -> list[int | str]:
    try:
        found = json.loads(cursor)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(type(one) in (int, str) for one in found):
        raise DesignError(f"{cursor[:50]!r} is no cursor; take `next` of the page before")
    if any(isinstance(one, int) and not 0 <= one <= LARGEST for one in found):
        raise DesignError(f"{cursor[:50]!r} is no cursor; take `next` of the page before")
    return found


def _numbers(cursor: str, count: int) -> list[int]:
    found = [one for one in _key(cursor) if isinstance(one, int)]
    if len(found) != count:
        raise DesignError(f"{cursor[:50]!r} is no cursor; take `next` of the page before")
    return found
