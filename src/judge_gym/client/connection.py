"""The connection to a remote lab: sends verbs, reads all pages, and raises what is refused."""

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints
from urllib.parse import parse_qs, urlencode, urlsplit

import urllib3
from pydantic import TypeAdapter, ValidationError

from judge_gym import errors
from judge_gym.errors import DesignError, JudgeGymError, Remedy, UnavailableError
from judge_gym.records.environment import TOKEN
from judge_gym.verbs import BY_NAME, Verb

# Warnings about every retry are for those who set up logging; others get the final error.
logging.getLogger("urllib3").addHandler(logging.NullHandler())
PAGE = 1000
"""Rows of a page."""


class Connection:
    """A connection to a remote lab, with the arguments of `Client`."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DesignError(f"{url.partition('?')[0]!r} is no address; it is http://HOST:PORT")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        in_address = next(iter(parse_qs(parts.query).get("token", [])), None)
        secret = token or in_address or os.environ.get(TOKEN)
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._pool = urllib3.PoolManager(
            timeout=timeout,
            retries=urllib3.Retry(2, redirect=0, backoff_factor=0.2, raise_on_status=False),
        )

    def close(self) -> None:
        """Closes the connections."""
        self._pool.clear()

    def call(self, name: str, given: Mapping[str, Any]) -> Any:
        """Calls a verb by its name and returns what `Lab` would return.

        Args:
            name: of the verb.
            given: the arguments of the method of a noun that calls it, with the noun itself.
        """
        verb = BY_NAME[name]
        method = getattr(type(given["self"]), verb.method)
        arguments = {key: value for key, value in given.items() if key != "self"}
        if not verb.paged:
            answer = self._send(verb, arguments)
            return self._read(verb, method, answer[verb.result] if verb.result else answer)
        rows: list[Any] = []
        paging: dict[str, Any] = {"limit": PAGE}
        while True:
            page = self._send(verb, {**arguments, **paging})
            rows += page["items"]
            if page["next"] is None:
                return self._read(verb, method, rows)
            paging["cursor"] = page["next"]

    def _read(self, verb: Verb, method: Callable[..., Any], value: Any) -> Any:
        try:
            return _reader(method).validate_python(value)
        except ValidationError as error:
            raise UnavailableError(
                f"the lab at {self.url} answers {verb.name} in another format; it may run another "
                f"version: {error.errors()[0]['msg']}"
            ) from error

    def _send(self, verb: Verb, arguments: Mapping[str, Any]) -> dict[str, Any]:
        request = verb.http_request(arguments)
        body = json.dumps(request.body, default=str) if request.body is not None else None
        return dict(self.ask(request.method, request.path, request.query, body=body).json())

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        *,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        """Sends a request and returns the response, or raises the error that refuses it."""
        parameters = {name: value for name, value in query.items() if value is not None}
        url = f"{self.url}{path}?{urlencode(parameters, doseq=True)}"
        typed = {"Content-Type": "application/json"} if body is not None else {}
        try:
            answer = self._pool.request(
                method,
                url.rstrip("?"),
                body=body,
                headers={**self._headers, **typed, **(headers or {})},
                preload_content=not stream,
            )
        except urllib3.exceptions.HTTPError as error:
            raise UnavailableError(
                f"the lab at {self.url} {_describe_loss(error)} (check the address, and that "
                "'judge-gym lab' runs there)"
            ) from error
        if answer.status >= 300:
            raise _refusal(answer)
        return answer


class Noun:
    """A part of a remote lab, whose methods call verbs."""

    def __init__(self, connection: Connection) -> None:
        self._call = connection.call


@cache
def _reader(method: Callable[..., Any]) -> TypeAdapter[Any]:
    """Builds the parser of a method's response from its annotated result."""
    return TypeAdapter(get_type_hints(method)["return"])


def fields(stream: urllib3.BaseHTTPResponse) -> Iterator[tuple[str, str]]:
    """Yields the fields of server-sent events as they arrive."""
    rest = b""
    for part in stream.stream(decode_content=True):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            name, _, value = line.decode("utf-8").rstrip("\r").partition(":")
            yield name, value.removeprefix(" ")


def _describe_loss(error: Exception) -> str:
    """Says how a request ended without an answer, in words that a person can act on."""
    cause: BaseException | None = getattr(error, "reason", None) or error
    kinds = urllib3.exceptions
    match cause:
        case kinds.NameResolutionError():
            return "cannot be found: there is no host of that name"
        case kinds.NewConnectionError():  # a kind of the next, whatever the reason
            reason = getattr(cause.__cause__, "strerror", None) or "no connection"
            return f"cannot be reached: {str(reason).lower()}"
        case kinds.ConnectTimeoutError():
            return "cannot be reached: no connection in time"
        case kinds.ReadTimeoutError():
            return "does not answer in time"
        case kinds.SSLError():
            return "does not speak HTTPS as it should"
    return "closed the connection"


def _refusal(answer: urllib3.BaseHTTPResponse) -> JudgeGymError:
    """Converts a server's refusal to the error that `Lab` would have raised."""
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, JudgeGymError)
    ]
    try:
        detail = json.loads(answer.data)["error"]
        message, choices = str(detail["message"]), tuple(map(str, detail["choices"]))
    except (ValueError, KeyError, TypeError):
        return UnavailableError(f"no lab answers there: status {answer.status}")
    named = [kind for kind in kinds if kind("").kind == detail["kind"]]
    alike = [kind for kind in kinds if kind.status == answer.status]
    error: JudgeGymError = [*named, *alike, JudgeGymError][0](message)
    error.choices = choices
    if remedy := detail.get("remedy"):
        error.remedy = Remedy(remedy["verb"], remedy["arguments"])
    return error
