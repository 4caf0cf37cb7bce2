"""The gate before every page and resource: host, caller, limits, and headers on the way out."""

import json
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode

import anyio
import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judge_gym.errors import BusyError, JudgeGymError, TokenError, TooLargeError
from judge_gym.web.rendering import as_page
from judge_gym.web.security import Guard, Rate

PUBLIC = ("/api/health", "/api/openapi.json")
STATIC = "/static/"
"""What tells nothing of the lab."""
SCORES = ("/suites", "/experiment", "/model", "/api/suites")
"""What a lab shows to everybody, if it was started so: suite runs and their scores."""
AGENTS = "/mcp"
"""Where a face for agents stands: it asks the API in turn, with the token of each request."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
KINDS = {400: "request", 404: "notfound", 405: "method", 413: "toolarge"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may ask of the server."""

    body: int = 16 * 1024**2
    """Bytes of a request."""
    per_second: float = 100
    burst: float = 400
    strangers_per_second: float = 2
    """Of requests without a valid token, from one address."""
    strangers_burst: float = 40


class Json(JSONResponse):
    """JSON in which what is undefined is null."""

    def render(self, content: Any) -> bytes:
        """The content; dates become text, and what is no number becomes null."""
        try:
            text = json.dumps(content, ensure_ascii=False, default=str, allow_nan=False)
        except ValueError:
            text = json.dumps(_defined(content), ensure_ascii=False, default=str)
        return text.encode("utf-8", "replace")


def refusal(
    status: int, kind: str, message: str, choices: Iterable[str] = (), wait: float = 0
) -> Response:
    """An error in the one shape that all have."""
    error = {"kind": kind, "message": message, "choices": list(choices)}
    headers = {"Retry-After": str(math.ceil(wait))} if wait else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Json({"error": error}, status, headers)


def of_fault(fault: Exception) -> Response:
    """The answer to a fault; of one that is ours it says only that there was one."""
    match fault:
        case JudgeGymError():
            wait = getattr(fault, "wait", None) or 0
            return refusal(fault.status, fault.kind, fault.message, fault.choices, wait)
        case HTTPException():
            kind = KINDS.get(fault.status_code, "request")
            made = refusal(fault.status_code, kind, HTTPStatus(fault.status_code).phrase.lower())
            made.headers.update(fault.headers or {})
            return made
        case OverflowError() | RecursionError():
            return refusal(422, "design", "a number is too large, or something nested too deeply")
    if not _is_gone(fault):
        logging.getLogger("judge_gym.web").error("a request failed", exc_info=fault)
    return refusal(500, "internal", "the server failed; its log says why")


class Gate:
    """Lets requests through that may be made.

    Args:
        app: what is behind it.
        guard: knows callers.
        limits: what one client may ask.
        public: whether scores may be read without a token.
    """

    def __init__(self, app: ASGIApp, guard: Guard, limits: Limits, *, public: bool = False) -> None:
        self._public = public
        self._app = app
        self._guard = guard
        self._limits = limits
        self._callers = Rate(limits.per_second, limits.burst)
        self._strangers = Rate(limits.strangers_per_second, limits.strangers_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        started = whole = False

        async def guarded(message: Message) -> None:
            nonlocal started, whole
            whole = message["type"] == "http.response.body" and not message.get("more_body")
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                fresh = "no-cache" if scope["path"].startswith(STATIC) else "no-store"
                headers.setdefault("Cache-Control", fresh)
            await send(message)

        try:
            answer = await self._checked(scope)
            behind: ASGIApp = answer or self._app
            await behind(scope, self._counted(receive), guarded)
        except Exception as fault:  # whatever it is: no client sees a traceback
            if started and _is_gone(fault):
                return  # a client that leaves its stream is no fault
            if started and not whole:
                raise  # the connection breaks off, and so the client knows
            if not started:
                await as_page(scope, of_fault(fault))(scope, receive, guarded)

    async def _checked(self, scope: Scope) -> Response | None:
        """Find out who asks; an answer where it need go no further."""
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        address = (scope.get("client") or ("unknown",))[0]
        if not self._guard.knows_host(headers.get("host", "")):
            return refusal(
                400, "host", "the server is not known under this name; --allow-host NAME"
            )
        if path in PUBLIC or path.startswith(STATIC):
            self._count(self._callers, address)
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        agent = path == AGENTS
        api = path.startswith("/api") or agent
        cookies = headers.get("cookie", "") if not agent else ""  # no browser asks there
        caller = await anyio.to_thread.run_sync(
            self._guard.identify, headers.get("authorization", ""), cookies
        )
        # Whoever shows a token that is none is guessing, and is counted as a stranger.
        bare = "authorization" not in headers and "token" not in query
        shown = self._public and method == "GET" and bare and _is_score(path)
        if caller is not None:
            self._count(self._callers, caller.name)
        elif shown:
            self._count(self._callers, address)
        else:
            self._count(self._strangers, address)
            if headers.get("authorization"):
                raise TokenError("the token is unknown or revoked; see 'judge-gym token list'")
        if not api and method == "GET" and "token" in query:
            return await self._log_in(path, query)
        site = {"origin": headers.get("origin", ""), "host": headers.get("host", "")}
        csrf = headers.get("x-csrf-token", "")
        if caller is not None or not shown:
            self._guard.admit(caller, "GET" if agent else method, csrf=csrf, **site)
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._limits.body:
            raise self._too_large()
        scope.setdefault("state", {})["caller"] = caller
        return None

    async def _log_in(self, path: str, query: dict[str, str]) -> Response:
        """Exchange a token in an address for a cookie, and an address without it."""
        secret = query.pop("token")
        session = await anyio.to_thread.run_sync(self._guard.log_in, secret)
        # A path that begins with two slashes would lead to another site.
        to = "/" + path.lstrip("/") + (f"?{urlencode(query)}" if query else "")
        answer = RedirectResponse(to, 303)
        answer.set_cookie(self._guard.cookie, session, httponly=True, samesite="strict")
        return answer

    def _count(self, rate: Rate, who: str) -> None:
        wait = rate.take(who)
        if wait:
            raise BusyError("too many requests; wait a moment", wait=wait)

    def _counted(self, receive: Receive) -> Receive:
        """What is read of a request, up to the limit."""
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._limits.body:
                raise HTTPException(413)
            return message

        return counted

    def _too_large(self) -> TooLargeError:
        return TooLargeError(f"a request has at most {self._limits.body:,} bytes")


def _is_score(path: str) -> bool:
    """Whether a path is that of a page or a resource on suite runs."""
    return any(path == place or path.startswith(f"{place}/") for place in SCORES)


def _is_gone(fault: Exception) -> bool:
    """Whether nobody reads any more what is sent."""
    if isinstance(fault, ExceptionGroup):
        return all(map(_is_gone, fault.exceptions))
    return isinstance(fault, anyio.BrokenResourceError)


def _defined(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: _defined(one) for name, one in value.items()}
        case list() | tuple():
            return [_defined(one) for one in value]
    return value
