"""Hashes that give texts and JSON values their identity, and addresses without secrets."""

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit, urlunsplit


def content_hash(text: str) -> str:
    """The identity of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def proper(text: str) -> str:
    """A text that any database takes: half a surrogate becomes `?`, a zero character `\ufffd`."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


def digest(value: Any) -> str:
    """The identity of a JSON value, whatever the order of its keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return content_hash(json.dumps(value, sort_keys=True, separators=(",", ":")))


def bare_endpoint(url: str) -> str:
    """An endpoint without what may be secret: no user, no password, no query.

    >>> bare_endpoint("https://user:key@host:8000/v1?key=secret")
    'https://host:8000/v1'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
