"""Signed cookies, with keys that rotate."""

import base64
import binascii
import hashlib
import hmac
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

TOKEN = re.compile(r"([A-Za-z0-9_-]+)\.([0-9]+)\.([A-Za-z0-9_-]+)")
NAME = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+")
VALUE = re.compile(r"[!#-+\--:<-\[\]-~]*")
ATTRIBUTE = re.compile(r"[^;\x00-\x1f\x7f]*")
FUTURE = 60


class BadToken(Exception):
    """A token cannot be trusted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def encode(data: bytes) -> str:
    """Returns URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Signer:
    """Signs values for one purpose."""

    def __init__(
        self,
        keys: Sequence[bytes],
        clock: Callable[[], float],
        *,
        purpose: str,
        max_age: float,
    ) -> None:
        if not keys or not all(keys):
            raise ValueError("at least one key is needed, and none may be empty")
        self._keys = list(keys)
        self._clock = clock
        self._purpose = purpose
        self._max_age = max_age

    def sign(self, value: dict[str, Any]) -> str:
        """Returns a token of a value."""
        text = json.dumps(value, separators=(",", ":"), sort_keys=True)
        signed = f"{encode(text.encode())}.{math.floor(self._clock())}"
        return f"{signed}.{self._signature(self._keys[0], signed)}"

    def read(self, token: str) -> dict[str, Any]:
        """Returns the value of a valid token."""
        return self._check(token)[0]

    def needs_refresh(self, token: str) -> bool:
        """Says whether a valid token should be signed again."""
        _, key, age = self._check(token)
        return key > 0 or age > self._max_age / 2

    def _signature(self, key: bytes, signed: str) -> str:
        message = f"{self._purpose}.{signed}".encode()
        return encode(hmac.new(key, message, hashlib.sha256).digest())

    def _check(self, token: str) -> tuple[dict[str, Any], int, float]:
        parts = TOKEN.fullmatch(token)
        if parts is None:
            raise BadToken("malformed")
        payload, time, signature = parts.groups()
        matches = [
            hmac.compare_digest(self._signature(key, f"{payload}.{time}"), signature)
            for key in self._keys
        ]
        if True not in matches:
            raise BadToken("signature")
        age = self._clock() - int(time)
        if age > self._max_age or age < -FUTURE:
            raise BadToken("expired")
        try:
            text = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode()
            value = json.loads(text)
        except (binascii.Error, ValueError):
            raise BadToken("malformed")
        if not isinstance(value, dict):
            raise BadToken("malformed")
        return value, matches.index(True), age


def set_cookie(
    name: str,
    value: str,
    *,
    max_age: int | None = None,
    path: str = "/",
    domain: str | None = None,
    secure: bool = True,
    http_only: bool = True,
    same_site: str = "Lax",
) -> str:
    """Returns the value of a Set-Cookie header."""
    if not NAME.fullmatch(name) or not VALUE.fullmatch(value):
        raise ValueError(f"not a cookie: {name!r}={value!r}")
    if not ATTRIBUTE.fullmatch(path) or not ATTRIBUTE.fullmatch(domain or ""):
        raise ValueError(f"not a path and a domain: {path!r}, {domain!r}")
    if same_site not in ("Strict", "Lax", "None") or (same_site == "None" and not secure):
        raise ValueError(f"same_site cannot be {same_site!r}")
    if name.startswith(("__Host-", "__Secure-")) and not secure:
        raise ValueError(f"{name} has to be secure")
    if name.startswith("__Host-") and (path != "/" or domain is not None):
        raise ValueError(f"{name} belongs to one host and the path /")
    parts = [f"{name}={value}"]
    if max_age is not None:
        parts.append(f"Max-Age={max_age}")
    parts.append(f"Path={path}")
    if domain is not None:
        parts.append(f"Domain={domain}")
    if secure:
        parts.append("Secure")
    if http_only:
        parts.append("HttpOnly")
    return "; ".join([*parts, f"SameSite={same_site}"])


def read_cookies(header: str | None) -> dict[str, str]:
    """Returns the cookies of a request."""
    cookies: dict[str, str] = {}
    for pair in (header or "").split(";"):
        name, equals, value = pair.partition("=")
        name, value = name.strip(" \t"), value.strip(" \t")
        if not equals or not name:
            continue
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        cookies.setdefault(name, value)
    return cookies
