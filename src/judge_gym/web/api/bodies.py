"""Checks the bodies of requests in a thread, in small parts, before FastAPI reads them.

FastAPI validates a body on the event loop, all at once: one with 100,000 wrong items kept the whole
server busy for many seconds. What is found wrong here never gets there.
"""

import inspect
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, get_args
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from judge_gym.errors import DesignError
from judge_gym.lab.nouns import canonical
from judge_gym.verbs import VERBS, Verb

BY_TOOL = {verb.tool: verb for verb in VERBS}
MOST_KEYS = 1000
"""Keys of one object."""
PART = 100
"""Items of a list that are validated at once; the first part with an error is reported."""


class CheckedRoute(APIRoute):
    """A verb's route, which accepts the blueprint's names and checks the body in a thread."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns a handler that checks the body before FastAPI's own reads it."""
        handler = super().get_route_handler()
        verb = BY_TOOL[self.name]
        parameter = inspect.signature(self.endpoint).parameters.get("body")
        if parameter is None:

            async def renamed(request: Request) -> Response:
                request.scope["query_string"] = _canonical_query(verb, request.scope)
                return await handler(Request(request.scope, request.receive))

            return renamed
        model: type[BaseModel] = get_args(parameter.annotation)[0]

        async def checked(request: Request) -> Response:
            request = _ParsedRequest(request.scope, request.receive)
            if "json" in request.headers.get("content-type", ""):
                request.parsed = await run_in_threadpool(check, await request.body(), model, verb)
            return await handler(request)

        return checked


def _canonical_query(verb: Verb, scope: Mapping[str, Any]) -> bytes:
    """Returns the query of a request with the verb's names of its parameters."""
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True):
        values.setdefault(name, []).append(value)
    files = {"format": values.pop("format")} if verb.paged and "format" in values else {}
    return urlencode(canonical(verb, values) | files, doseq=True).encode("latin-1")


class _ParsedRequest(Request):
    """A request whose JSON is parsed already."""

    parsed: Any = inspect.Parameter.empty

    async def json(self) -> Any:
        """Returns what the body holds."""
        return await super().json() if self.parsed is inspect.Parameter.empty else self.parsed


def check(body: bytes, model: type[BaseModel], verb: Verb) -> Any:
    """Returns the JSON of a body, by the verb's names of its arguments.

    Raises what is wrong with its first wrong items.
    """
    try:
        value = json.loads(body) if body else inspect.Parameter.empty
    except ValueError:  # FastAPI describes what is no JSON
        return inspect.Parameter.empty
    for part in _objects(value):
        if len(part) > MOST_KEYS:
            raise DesignError(f"an object has at most {MOST_KEYS:,} keys, not {len(part):,}")
    if isinstance(value, dict):
        value = canonical(verb, value)
        for name in model.model_fields:
            items = value.get(name)
            if isinstance(items, list) and len(items) > PART:
                for start in range(0, len(items), PART):
                    _validate(model, value | {name: items[start : start + PART]}, name, start)
    return value


def _validate(model: type[BaseModel], value: Mapping[str, Any], name: str, start: int) -> None:
    """Raises the errors of a body with a part of one list, by their places in the whole list."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        for each in details:
            location = each["loc"]
            if len(location) > 1 and location[0] == name and isinstance(location[1], int):
                each["loc"] = (name, location[1] + start, *location[2:])
        errors = [{**each, "loc": ("body", *each["loc"])} for each in details]
        raise RequestValidationError(errors) from None


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yields every object within a JSON value."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                yield found
                waiting.extend(found.values())
            case list() as found:
                waiting.extend(found)
