"""Checks every request before it reaches a page or the API, and sets headers on every response."""

import json
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode

import anyio
import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judge_gym.errors import BusyError, JudgeGymError, Remedy, TokenError, TooLargeError
from judge_gym.records.actors import act_as
from judge_gym.verbs import VERBS, as_command
from judge_gym.web.rendering import error_page
from judge_gym.web.security import READ_METHODS, Authenticator, RateLimiter

PUBLIC = ("/api/health", "/api/ready", "/api/openapi.json")
STATIC = "/static/"
"""Paths that reveal nothing about the lab and need no token."""
SCORES = ("/suites", "/experiment", "/model", "/api/suites", "/metrics")
"""Paths that need no token under `--public-reads`: suite runs, their scores, metrics."""
READS = {
    ("POST", "/new/plan"),
    *((verb.http_method, f"/api{verb.path}") for verb in VERBS if verb.effect == "reads"),
}
"""Requests that change nothing, such as POST /api/plan: a reading token is enough."""
LABELS = "/label"
"""The pages on which raters label items; all that the token of a rater's link opens."""
AGENTS = "/mcp"
"""The endpoint for agents, which calls the API with the token of each request."""
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
    """Limits on what one client may send."""

    body: int = 16 * 1024**2
    """Bytes of a request's body."""
    body_seconds: float = 30
    """How long the next part of a body may take to arrive."""
    per_second: float = 100
    burst: float = 400
    anonymous_per_second: float = 2
    """Requests without a valid token, per address."""
    anonymous_burst: float = 40


class Json(JSONResponse):
    """JSON in which undefined numbers are null."""

    def render(self, content: Any) -> bytes:
        """Encodes the content; dates become text, NaN and infinity become null."""
        try:
            text = json.dumps(content, ensure_ascii=False, default=_text, allow_nan=False)
        except ValueError:
            text = json.dumps(_without_nan(content), ensure_ascii=False, default=_text)
        return text.encode("utf-8", "replace")


def error_response(
    status: int,
    kind: str,
    message: str,
    choices: Iterable[str] = (),
    wait: float = 0,
    remedy: Remedy | None = None,
) -> Response:
    """Returns an error in the one JSON shape that all errors have."""
    error: dict[str, Any] = {"kind": kind, "message": message, "choices": list(choices)}
    if remedy is not None:
        error["remedy"] = {**remedy._asdict(), "command": as_command(remedy)}
    headers = {"Retry-After": str(math.ceil(wait))} if wait else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Json({"error": error}, status, headers)


def response_to(error: Exception) -> Response:
    """Returns the response to an exception; an unexpected one is logged and not described."""
    match error:
        case JudgeGymError():
            wait = getattr(error, "wait", None) or 0
            return error_response(
                error.status, error.kind, error.message, error.choices, wait, error.remedy
            )
        case HTTPException():
            kind = KINDS.get(error.status_code, "request")
            phrase = HTTPStatus(error.status_code).phrase.lower()
            response = error_response(error.status_code, kind, phrase)
            response.headers.update(error.headers or {})
            return response
        case OverflowError() | RecursionError():
            return error_response(
                422, "design", "a number is too large, or something nested too deeply"
            )
    if not _client_left(error):
        logging.getLogger("judge_gym.web").error("a request failed", exc_info=error)
    return error_response(500, "internal", "the server failed; see its log")


class AccessMiddleware:
    """Checks host, caller, rate and size of a request, and adds security headers."""

    def __init__(
        self, app: ASGIApp, auth: Authenticator, limits: Limits, *, public: bool = False
    ) -> None:
        self._public = public
        self._app = app
        self._auth = auth
        self._limits = limits
        self._known = RateLimiter(limits.per_second, limits.burst)
        self._anonymous = RateLimiter(limits.anonymous_per_second, limits.anonymous_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        started = complete = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started, complete
            complete = message["type"] == "http.response.body" and not message.get("more_body")
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                caching = "no-cache" if scope["path"].startswith(STATIC) else "no-store"
                headers.setdefault("Cache-Control", caching)
            await send(message)

        try:
            app: ASGIApp = await self._check(scope) or self._app
            await app(scope, self._limited(receive), send_with_headers)
        except Exception as error:  # no client ever sees a traceback
            if started and _client_left(error):
                return
            if started and not complete:
                raise  # closes the connection, which tells the client that the body is incomplete
            if not started:
                await error_page(scope, response_to(error))(scope, receive, send_with_headers)

    async def _check(self, scope: Scope) -> Response | None:
        """Identifies the caller; returns a response if the request ends here, else None."""
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        address = (scope.get("client") or ("unknown",))[0]
        host = headers.get("host", "")
        if not self._auth.allows_host(host):
            return error_response(
                400, "host", "the server is not known under this name; --allow-host NAME"
            )
        if path in PUBLIC or path.startswith(STATIC):
            _count(self._known, address)
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        agent = path == AGENTS
        api = path.startswith("/api") or agent
        cookies = headers.get("cookie", "") if not agent else ""  # no browser calls it
        labels = _is_labelling(path)
        authorization = headers.get("authorization", "")
        caller = await anyio.to_thread.run_sync(
            lambda: self._auth.authenticate(authorization, cookies, labels=labels)
        )
        # A client that presents an invalid token may be guessing: it counts as anonymous.
        tokenless = "authorization" not in headers and "token" not in query
        public = self._public and method == "GET" and tokenless and _is_score(path)
        session = None
        log_in = not api and method == "GET" and "token" in query
        if log_in:
            # A valid token counts as known: others behind the same proxy cannot lock its user out.
            session = await anyio.to_thread.run_sync(self._auth.log_in, query["token"])
        if caller is not None or session is not None:
            _count(self._known, caller.name if caller is not None else address)
        elif public:
            _count(self._known, address)
        else:
            _count(self._anonymous, address)
            if headers.get("authorization"):
                raise TokenError("the token is unknown or revoked; see 'judge-gym token list'")
        if session is not None:
            return self._open_session(scope, session, query)
        if log_in:
            raise TokenError("the token is unknown or revoked; 'judge-gym lab' prints one")
        if caller is not None or not public:
            self._auth.authorize(
                caller,
                "GET" if agent else method,
                writes=method not in READ_METHODS and (method, path) not in READS,
                labels=labels,
                csrf=headers.get("x-csrf-token", ""),
                origin=headers.get("origin", ""),
                host=host,
            )
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._limits.body:
            raise TooLargeError(f"a request has at most {self._limits.body:,} bytes")
        scope.setdefault("state", {})["caller"] = caller
        if caller is not None:
            act_as(caller.actor)
        return None

    def _open_session(self, scope: Scope, session: str, query: dict[str, str]) -> Response:
        """Sets the cookie of a session and redirects to the URL without the token."""
        del query["token"]
        # A path that begins with two slashes would lead to another site.
        target = "/" + scope["path"].lstrip("/") + (f"?{urlencode(query)}" if query else "")
        response = RedirectResponse(target, 303)
        # A proxy's header may be forged; that only harms the sender's own session.
        https = "https" in (scope["scheme"], Headers(scope=scope).get("x-forwarded-proto"))
        if _is_labelling(scope["path"]):
            # A rater opens the link in a mail: a strict cookie would not be sent after the
            # redirect. Whatever writes needs the value of X-CSRF-Token all the same.
            response.set_cookie(
                self._auth.label_cookie,
                session,
                path=LABELS,
                httponly=True,
                samesite="lax",
                secure=https,
            )
        else:
            response.set_cookie(
                self._auth.cookie, session, httponly=True, samesite="strict", secure=https
            )
        return response

    def _limited(self, receive: Receive) -> Receive:
        """Returns a `receive` that refuses a body that is too long or stops arriving."""
        size, complete = 0, False

        async def limited() -> Message:
            nonlocal size, complete
            if complete:  # waits for the client to leave
                return await receive()
            with anyio.move_on_after(self._limits.body_seconds):
                message = await receive()
                complete = not message.get("more_body", False)
                size += len(message.get("body", b""))
                if size > self._limits.body:
                    raise HTTPException(413)
                return message
            raise HTTPException(408)

        return limited


def _count(rate: RateLimiter, client: str) -> None:
    wait = rate.acquire(client)
    if wait:
        raise BusyError("too many requests; wait a moment", wait=wait)


def _is_score(path: str) -> bool:
    """Returns whether a path belongs to a page or a resource on suite runs.

    So does `/`, which without a token shows nothing else.
    """
    return path == "/" or any(path == prefix or path.startswith(f"{prefix}/") for prefix in SCORES)


def _is_labelling(path: str) -> bool:
    return path == LABELS or path.startswith(f"{LABELS}/")


def _client_left(error: Exception) -> bool:
    """Returns whether the error only says that the client closed the connection."""
    if isinstance(error, ExceptionGroup):
        return all(map(_client_left, error.exceptions))
    return isinstance(error, anyio.BrokenResourceError)


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def _without_nan(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: _without_nan(item) for name, item in value.items()}
        case list() | tuple():
            return [_without_nan(item) for item in value]
    return value
