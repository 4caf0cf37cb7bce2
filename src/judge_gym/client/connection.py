"""The way to a remote lab: a token, pages of rows, and refusals as the errors that they are."""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import urllib3

from judge_gym import errors
from judge_gym.errors import DesignError, JudgeGymError, UnavailableError

# Its warnings of every retry are for whoever sets up logging; to others the end is told, in words.
logging.getLogger("urllib3").addHandler(logging.NullHandler())
PAGE = 1000
"""Rows that are asked for at once."""


class Connection:
    """A remote lab that can be asked.

    Args:
        url: where it is: `http://HOST:PORT`, or the address that `judge-gym lab` prints.
        token: what `judge-gym token create` printed; else that of the address, else
            `JUDGE_GYM_TOKEN`.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DesignError(f"{url.partition('?')[0]!r} is no address; it is http://HOST:PORT")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        shown = next(iter(parse_qs(parts.query).get("token", [])), None)
        given = token or shown or os.environ.get("JUDGE_GYM_TOKEN")
        self._headers = {"Authorization": f"Bearer {given}"} if given else {}
        self._pool = urllib3.PoolManager(
            timeout=timeout,
            retries=urllib3.Retry(2, redirect=0, backoff_factor=0.2, raise_on_status=False),
        )

    def close(self) -> None:
        """Release the connections."""
        self._pool.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, path: str, *, paged: bool = True, **query: Any) -> Iterator[dict[str, Any]]:
        """All rows of a table, page by page."""
        if paged:
            query["limit"] = PAGE
        while True:
            page = self._get(path, **query)
            yield from page["items"]
            if page["next"] is None:
                return
            query["cursor"] = page["next"]

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        return dict(self._ask("GET", path, query).json())

    def _post(self, path: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in sent.items() if value is not None}
        return dict(self._ask("POST", path, {}, body=json.dumps(given, default=str)).json())

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        *,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        given = {name: value for name, value in query.items() if value is not None}
        url = f"{self.url}/api/{path}?{urlencode(given, doseq=True)}"
        typed = {"Content-Type": "application/json"} if body is not None else {}
        try:
            answer = self._pool.request(
                method,
                url.rstrip("?"),
                body=body,
                headers={**self._headers, **typed, **(headers or {})},
                preload_content=not stream,
            )
        except urllib3.exceptions.HTTPError as fault:
            raise UnavailableError(
                f"the lab at {self.url} {_lost(fault)} (check the address, and that "
                "'judge-gym lab' runs there)"
            ) from fault
        if answer.status >= 300:
            raise _fault(answer)
        return answer


def fields(stream: urllib3.BaseHTTPResponse) -> Iterator[tuple[str, str]]:
    """The fields of server-sent events, as they come."""
    rest = b""
    for part in stream.stream(decode_content=True):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            name, _, value = line.decode("utf-8").rstrip("\r").partition(":")
            yield name, value.removeprefix(" ")


def _lost(fault: Exception) -> str:
    """How a request ended without an answer, in words that a person can act on."""
    cause: BaseException | None = getattr(fault, "reason", None) or fault
    kinds = urllib3.exceptions
    match cause:
        case kinds.NameResolutionError():
            return "cannot be found: there is no host of that name"
        case kinds.NewConnectionError():  # a kind of the next, whatever the reason
            told = getattr(cause.__cause__, "strerror", None) or "no connection"
            return f"cannot be reached: {str(told).lower()}"
        case kinds.ConnectTimeoutError():
            return "cannot be reached: no connection in time"
        case kinds.ReadTimeoutError():
            return "does not answer in time"
        case kinds.SSLError():
            return "does not speak HTTPS as it should"
    return "broke the connection off"


def _fault(answer: urllib3.BaseHTTPResponse) -> JudgeGymError:
    """What the server refused, as `Lab` would have raised it."""
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, JudgeGymError)
    ]
    try:
        said = json.loads(answer.data)["error"]
        message, choices = str(said["message"]), tuple(map(str, said["choices"]))
    except (ValueError, KeyError, TypeError):
        return UnavailableError(f"no lab answers there: status {answer.status}")
    named = [kind for kind in kinds if kind("").kind == said["kind"]]
    alike = [kind for kind in kinds if kind.status == answer.status]
    fault: JudgeGymError = [*named, *alike, JudgeGymError][0](message)
    fault.choices = choices
    return fault
