"""Whose a request is: tokens in a header, sessions of browsers, and who may not ask so often."""

import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from judge_gym.errors import ScopeError, TokenError
from judge_gym.store.tokens import Scope, Tokens, hash_of, new_secret

LOOPBACK = ("127.0.0.1", "::1", "localhost")
SESSIONS = 1000
"""So many browsers are remembered; the one that came first is forgotten first."""
REMEMBERED = 10_000
"""So many clients are counted, those that asked last."""
READS = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing; every other one needs a token that may write."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    name: str
    scope: Scope
    csrf: str | None = None
    """What a page must repeat in a header to write; None where a token came in a header."""


class Guard:
    """Knows callers by their tokens and sessions.

    Args:
        tokens: those of the lab.
        hosts: the names under which the server may be asked; IP addresses always may, since no
            other site can be reached under one.
        local: whether there is a token for the browser of whoever started the server.
        cookie: the name of the cookie; browsers do not keep ports apart.
    """

    def __init__(
        self, tokens: Tokens, *, hosts: Collection[str], local: bool, cookie: str = "judge-gym"
    ) -> None:
        self.local = new_secret() if local else None
        """A token that lives as long as the server, and may write; None where there is none."""
        self.cookie = cookie
        self._tokens = tokens
        self._hosts = {host.lower() for host in hosts}
        self._sessions: OrderedDict[str, str] = OrderedDict()  # hash of the cookie -> secret
        self._key = new_secret().encode()

    def knows_host(self, header: str) -> bool:
        """Whether a Host header names this server: else a foreign name was made to lead here."""
        name = _host(header)
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._hosts
        return True

    def identify(self, authorization: str, cookies: str) -> Caller | None:
        """Who sent these headers; None where they name nobody."""
        kind, _, secret = authorization.partition(" ")
        if authorization:
            return self._caller(secret.strip()) if kind.lower() in ("bearer", "token") else None
        session = self._session(cookies)
        kept = self._sessions.get(hash_of(session)) if session else None
        return self._caller(kept, csrf=self._csrf(session)) if kept and session else None

    def log_in(self, secret: str) -> str:
        """A session for a browser that has shown a token: the value of its cookie."""
        if self._caller(secret) is None:
            raise TokenError("the token is unknown or revoked; 'judge-gym lab' prints one")
        session = new_secret()
        self._sessions[hash_of(session)] = secret
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def admit(
        self, caller: Caller | None, method: str, *, csrf: str, origin: str, host: str
    ) -> None:
        """Refuse what a caller may not do.

        Args:
            caller: who asks.
            method: that of the request.
            csrf: what the request repeats of its session's secret.
            origin: the site that the request comes from, where a browser says so.
            host: the site that it is sent to.
        """
        if caller is None:
            raise TokenError(
                "a token is needed: Authorization: Bearer TOKEN; see 'judge-gym token'"
            )
        if method in READS:
            return
        if caller.scope != "write":
            raise ScopeError(f"the token {caller.name!r} may only read; this needs one that writes")
        if caller.csrf is None:
            return
        if origin and _host(origin.partition("://")[2], port=True) != _host(host, port=True):
            raise ScopeError("the request comes from another site")
        if not hmac.compare_digest(csrf.encode(), caller.csrf.encode()):
            raise ScopeError("a browser's write repeats what /api/session says in X-CSRF-Token")

    def _caller(self, secret: str, csrf: str | None = None) -> Caller | None:
        if self.local is not None and hmac.compare_digest(secret.encode(), self.local.encode()):
            return Caller("local", "write", csrf)
        found = self._tokens.find(secret)
        return Caller(found.name, found.scope, csrf) if found else None

    def _session(self, cookies: str) -> str | None:
        try:
            found = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return None
        return found.value if found else None

    def _csrf(self, session: str) -> str:
        return hmac.digest(self._key, session.encode(), "sha256").hex()


class Rate:
    """So many requests a second from each, and more at once after a rest."""

    def __init__(
        self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> float:
        """Count a request; the seconds to wait where it is one too many, else 0."""
        now = self._clock()
        left, at = self._left.pop(who, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        taken = left >= 1
        self._left[who] = (left - taken, now)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if taken else (1 - left) / self._per_second


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _host(header: str, *, port: bool = False) -> str:
    """The name in a Host header, without brackets, and without its port unless that is wanted."""
    name = header.strip().lower()
    if port:
        return name
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if name.count(":") == 1 else name
