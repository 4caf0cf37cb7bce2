"""Authenticates requests by token or browser session, and limits how often a client may ask."""

import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from starlette.requests import cookie_parser

from judge_gym.errors import ScopeError, TokenError
from judge_gym.records.actors import by_agent, machine_user
from judge_gym.store.tokens import Scope, Token, hash_of, new_secret

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MAX_SESSIONS = 1000
"""Browser sessions that are kept; the oldest is dropped first."""
MAX_CLIENTS = 10_000
"""Clients whose request rate is tracked; the least recent is dropped first."""
READ_METHODS = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing; every other one needs a token with the scope `write`."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated sender of a request."""

    name: str
    scope: Scope
    csrf: str | None = None
    """What a page must repeat in a header to write; None where a token came in a header."""

    user: str = ""
    """The token's name in words; of the server's own token, who started the server."""
    queue: int | None = None
    """The queue that a rater labels, whose token can do nothing else."""
    rater: str | None = None

    @property
    def actor(self) -> str:
        """Who asks and how, in words for the log."""
        if by_agent():
            return f"an agent over MCP ({self.user})"
        return f"{self.user} {'in the browser' if self.csrf is not None else 'over HTTP'}"


class Authenticator:
    """Authenticates callers by token or session, and says what each may do.

    Sessions are kept here rather than by Starlette's SessionMiddleware, which stores the session's
    content in the cookie, where a browser can read it: here a cookie is a random key, and the
    session ends when its token is revoked.

    Args:
        find_token: returns the valid token of a secret.
        hosts: the names by which clients may address the server; IP addresses are always allowed.
        local: whether to create a token for the browser of the person who started the server.
        cookie: the session cookie's name; browsers do not separate cookies by port.
    """

    def __init__(
        self,
        find_token: Callable[[str], Token | None],
        *,
        hosts: Collection[str],
        local: bool,
        cookie: str = "judge-gym",
    ) -> None:
        self.local = new_secret() if local else None
        """A token with the scope `write` that is valid while the server runs, or None."""
        self.cookie = cookie
        self._find_token = find_token
        self._hosts = {host.lower() for host in hosts}
        self._sessions: OrderedDict[str, str] = OrderedDict()  # hash of the cookie -> secret
        self._key = new_secret().encode()

    def allows_host(self, header: str) -> bool:
        """Returns whether a Host header names this server, which stops DNS rebinding.

        Starlette's TrustedHostMiddleware takes a list of names only; this also allows every IP
        address, since no other site can be reached under one.
        """
        name = _host(header)
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._hosts
        return True

    @property
    def label_cookie(self) -> str:
        """The cookie of a rater's session, beside which the user's own stays."""
        return f"{self.cookie}-label"

    def authenticate(
        self, authorization: str, cookies: str, *, labels: bool = False
    ) -> Caller | None:
        """Returns the caller that the headers name, or None if they name none.

        Args:
            authorization: the header.
            cookies: the header.
            labels: whether a page is asked for on which raters label items.
        """
        kind, _, secret = authorization.partition(" ")
        if authorization:
            return self._caller(secret.strip()) if kind.lower() in ("bearer", "token") else None
        session = cookie_parser(cookies).get(self.label_cookie if labels else self.cookie)
        kept = self._sessions.get(hash_of(session)) if session else None
        return self._caller(kept, csrf=self._csrf(session)) if kept and session else None

    def log_in(self, secret: str) -> str | None:
        """Starts a session for a valid token; returns the cookie's value, or None."""
        if self._caller(secret) is None:
            return None
        session = new_secret()
        self._sessions[hash_of(session)] = secret
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def authorize(
        self,
        caller: Caller | None,
        method: str,
        *,
        writes: bool,
        labels: bool,
        csrf: str,
        origin: str,
        host: str,
    ) -> None:
        """Raises an error if the caller may not make this request.

        Args:
            caller: who asks.
            method: of the request.
            writes: whether it changes something.
            labels: whether it belongs to the pages on which raters label items.
            csrf: the header that a page must send to write.
            origin: the header that names the site of the page.
            host: the header that names this server.
        """
        if caller is None:
            raise TokenError(
                "a token is needed: Authorization: Bearer TOKEN; see 'judge-gym token'"
            )
        if caller.scope == "label" and not labels:
            raise ScopeError("this link is for labelling items, and opens nothing else")
        if method in READ_METHODS:
            return
        if writes and caller.scope != ("label" if labels else "write"):
            raise ScopeError(
                f"the token {caller.name!r} may only read; this request needs one that may write"
            )
        if caller.csrf is None:
            return
        if origin and origin.lower().partition("://")[2].strip() != host.lower().strip():
            raise ScopeError("the request comes from another site")
        if not hmac.compare_digest(csrf.encode(), caller.csrf.encode()):
            raise ScopeError(
                "a browser that writes must send the value 'csrf' of /api/session as X-CSRF-Token"
            )

    def _caller(self, secret: str, csrf: str | None = None) -> Caller | None:
        if self.local is not None and hmac.compare_digest(secret.encode(), self.local.encode()):
            return Caller("local", "write", csrf, machine_user())
        token = self._find_token(secret)
        if token is None:
            return None
        user = f"token {token.name}"
        return Caller(token.name, token.scope, csrf, user, token.queue, token.rater)

    def _csrf(self, session: str) -> str:
        return hmac.digest(self._key, session.encode(), "sha256").hex()


class RateLimiter:
    """Limits each client to a rate of requests, with bursts after a pause (a token bucket).

    Neither `limits` (windows; keeps every client it has seen) nor `aiolimiter` (one bucket, no
    keys, waits instead of refusing) gives a burst, a bounded number of clients and the time for
    Retry-After.
    """

    def __init__(
        self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def acquire(self, client: str) -> float:
        """Counts a request; returns 0, or the seconds to wait if the rate is exceeded."""
        now = self._clock()
        left, at = self._left.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        allowed = left >= 1
        self._left[client] = (left - allowed, now)
        if len(self._left) > MAX_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._per_second


def is_loopback(host: str) -> bool:
    """Returns whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _host(header: str) -> str:
    """Returns the name in a Host header without brackets and without its port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if name.count(":") == 1 else name
