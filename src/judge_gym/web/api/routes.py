"""The routes of all verbs, derived from their table."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import BaseModel, create_model
from pydantic.fields import FieldInfo
from starlette.responses import Response

from judge_gym.errors import DesignError
from judge_gym.lab import Lab
from judge_gym.lab.nouns import body_model, describe, request_model, response_type
from judge_gym.verbs import VERBS, Verb
from judge_gym.web import tables
from judge_gym.web.api.bodies import CheckedRoute
from judge_gym.web.api.parameters import Cursor, Limit
from judge_gym.web.middleware import Json
from judge_gym.web.tables import TYPES, Format

FileFormat = Annotated[Format, Query(description="csv and parquet return all rows, json a page.")]
PAGING = {"cursor": (Cursor, None), "limit": (Limit, 100), "format": (FileFormat, "json")}


def verb_routes() -> APIRouter:
    """Returns a router with a route for every verb."""
    router = APIRouter(route_class=CheckedRoute)
    for verb in VERBS:
        router.add_api_route(
            verb.path,
            _endpoint(verb),
            methods=[verb.http_method],
            name=verb.tool,
            tags=[verb.noun],
            description=describe(verb),
            status_code=verb.status,
            response_model=None,
            responses={verb.status: _response(verb)},
        )
    return router


def call(lab: Lab, verb: Verb, method: str, arguments: Mapping[str, Any]) -> Any:
    """Calls a method of a verb's noun."""
    return getattr(getattr(lab, verb.noun), method)(**arguments)


def _endpoint(verb: Verb) -> Callable[..., Response]:
    """Returns the function that answers a verb's route; FastAPI reads its signature."""
    fields = request_model(verb).model_fields
    body = body_model(verb)

    def endpoint(request: Request, **given: Any) -> Response:
        lab: Lab = request.app.state.lab
        paging = {name: given.pop(name) for name in PAGING if verb.paged}
        sent: BaseModel | None = given.pop("body", None)
        arguments = {name: value for name, value in given.items() if value != fields[name].default}
        if sent is not None:
            arguments |= sent.model_dump(exclude_unset=True)
        if verb.paged:
            return _page(lab, verb, arguments, **paging)
        value = call(lab, verb, verb.method, arguments)
        supervisor = request.app.state.supervisor
        queues = verb.effect == "pays" and verb.noun != "evidence"
        if queues and supervisor is not None:
            supervisor.request_worker()
        return Json({verb.result: value} if verb.result else value, verb.status)

    parameters = [_parameter("request", Request)]
    for name, field in fields.items():
        if verb.place(name) != "body":
            parameters.append(_parameter(name, *_taken(verb, name, field)))
    if body is not None:
        parameters.append(_parameter("body", Annotated[body, Body()]))
    if verb.paged:
        parameters += [_parameter(name, *how) for name, how in PAGING.items()]
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return endpoint


def _parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _taken(verb: Verb, name: str, field: FieldInfo) -> tuple[Any, Any]:
    """Returns the annotation and the default of an argument in the path or the query."""
    kind = Path if verb.place(name) == "path" else Query
    marks = (*field.metadata, kind(description=field.description))
    annotation = Annotated[(field.annotation, *marks)]  # type: ignore[name-defined]
    return annotation, inspect.Parameter.empty if field.is_required() else field.default


def _response(verb: Verb) -> dict[str, Any]:
    """Describes the response of a verb."""
    if not verb.result:
        return {"model": response_type(verb), "description": "Done"}
    name = "".join(part.title() for part in verb.tool.split("_"))
    fields: dict[str, Any] = {verb.result: (response_type(verb), ...)}
    if not verb.paged:
        return {"model": create_model(name, **fields), "description": "Done"}
    files = {TYPES["csv"]: {"schema": {"type": "string"}}}
    files |= {TYPES["parquet"]: {"schema": {"type": "string", "format": "binary"}}}
    page = create_model(name, next=(str | None, ...), **fields)
    return {"model": page, "description": "A page, or a file of all rows", "content": files}


def _page(
    lab: Lab,
    verb: Verb,
    arguments: Mapping[str, Any],
    *,
    cursor: str | None,
    limit: int,
    format: Format,
) -> Response:
    """Returns a page of a list, or all of it as a file."""
    if format != "json":
        rows = call(lab, verb, verb.method, arguments)
        return tables.download_rows(rows, format, verb.path.rpartition("/")[2])
    if verb.page:
        page = call(lab, verb, verb.page, {**arguments, "after": cursor, "limit": limit})
        return Json({"items": page.rows, "next": page.next})
    rows = call(lab, verb, verb.method, arguments)
    start = _start(rows, verb.cursor, cursor)
    some = rows[start : start + limit]
    end = start + len(some)
    last = str(some[-1][verb.cursor]) if some and verb.cursor else str(end)
    return Json({"items": some, "next": last if end < len(rows) else None})


def _start(rows: Sequence[Mapping[str, Any]], column: str, cursor: str | None) -> int:
    """Returns the position after the row that a cursor names."""
    if cursor is None:
        return 0
    positions = [n for n, row in enumerate(rows, 1) if str(row[column] if column else n) == cursor]
    if not positions:
        raise DesignError(f"{cursor[:50]!r} is no cursor of this list; start without one")
    return positions[-1]
