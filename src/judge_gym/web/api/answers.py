"""What the resources share: arguments, the shape of pages and errors, examples."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.responses import Response

from judge_gym.errors import DesignError
from judge_gym.lab import Lab
from judge_gym.web import tables
from judge_gym.web.middleware import Json
from judge_gym.web.tables import TYPES, Format

LARGEST = 2**31 - 1
"""The largest number of a row."""
TEXT = StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00]+$")
Name = Annotated[str, TEXT]
Wanted = Annotated[Format, Query(description="CSV and Parquet hold all rows, JSON a page.")]
Cursor = Annotated[
    str | None,
    Query(max_length=500, pattern=r"^[^\x00]*$", description="`next` of the page before."),
]
Limit = Annotated[int, Query(ge=1, le=1000, description="Rows of a page at most.")]


class Body(BaseModel):
    """What is sent; it refuses what it does not know."""

    model_config = ConfigDict(extra="forbid")


class Fault(BaseModel):
    """What went wrong."""

    kind: str
    message: str
    choices: list[str]


PILOT = "contested-pilot"
PILOT_TAG = f"{PILOT}/democracy-quality/norvessa/sim:balanced"
"""The names in examples: what `judge-gym init` writes has them, too."""


class Error(BaseModel):
    """The one shape of all errors."""

    error: Fault
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "error": {
                    "kind": "notfound",
                    "message": "there is no study 'contested'; did you mean 'contested-pilot'?",
                    "choices": [PILOT],
                }
            }
        }
    )


class Rows(BaseModel):
    """A page of a table."""

    items: list[dict[str, Any]]
    next: str | None
    """The cursor of the next page; null on the last."""


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": said}
    for status, said in {
        400: "The request cannot be read, or names another host",
        401: "No token, or one that is unknown or revoked",
        402: "A budget is reached",
        403: "The token does not allow it",
        404: "Something named that is not there",
        405: "The resource has no such method",
        409: "Something that is there stands in the way",
        413: "The request is too long",
        422: "A value that is refused; the choices say which are not",
        429: "Too many requests; Retry-After says when",
        500: "A fault of the server",
        502: "A provider or a source did not answer",
        503: "The database is away",
    }.items()
}
STREAM_ERRORS: dict[int | str, dict[str, Any]] = {  # which would be described as events
    status: {
        "description": said["description"],
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    for status, said in ERRORS.items()
}


def shows(example: Any, *others: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Documents an answer by an example, and the other types that it may have."""
    content: dict[str, Any] = {other: {"schema": {"type": "string"}} for other in others}
    content["application/json"] = {"schema": {"type": "object"}, "example": example}
    return {status: {"description": "Done", "content": content}}


def shows_rows(row: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """Documents a table by one of its rows."""
    content: dict[str, Any] = {"application/json": {"example": {"items": [row], "next": None}}}
    content |= {TYPES["csv"]: {"schema": {"type": "string"}}}
    content |= {TYPES["parquet"]: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"model": Rows, "description": "A table", "content": content}}


def the_lab(request: Request) -> Lab:
    """The lab that is served."""
    lab: Lab = request.app.state.lab
    return lab


OpenLab = Annotated[Lab, Depends(the_lab)]


def page(rows: Sequence[Mapping[str, Any]], next: str | None = None) -> Json:
    """A page as it is sent."""
    return Json({"items": list(rows), "next": next})


def table(
    rows: Sequence[Mapping[str, Any]],
    format: Format,
    name: str,
    *,
    key: str,
    cursor: str | None,
    limit: int,
) -> Response:
    """A table that is held whole, in the wanted format; in JSON the rows after a cursor.

    Args:
        rows: all of them, in the order of the key.
        format: how they are sent.
        name: of the file.
        key: the column whose value is the cursor.
        cursor: the key of the last row that was seen.
        limit: rows of a page.
    """
    if format != "json":
        return tables.of_rows(rows, format, name)
    begin = 0
    if cursor is not None:
        places = [number for number, row in enumerate(rows) if str(row[key]) == cursor]
        if not places:
            raise DesignError(f"there is no row {cursor!r} to go on after; begin anew")
        begin = places[-1] + 1
    some = rows[begin : begin + limit]
    more = begin + limit < len(rows)
    return page(some, str(some[-1][key]) if more else None)


def number(cursor: str | None) -> int | None:
    """A cursor that is a number."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit()) or not 0 < int(cursor) <= LARGEST:
        raise DesignError(f"{cursor[:50]!r} is no cursor; take `next` of the page before")
    return int(cursor)
