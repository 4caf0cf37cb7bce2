"""Hashes of texts and JSON values, and addresses without secrets."""

import hashlib
import json
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def content_hash(text: str) -> str:
    """Computes the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def storable(text: str) -> str:
    """Replaces what databases refuse in a text: lone surrogates by `?`, NUL by `�`."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


def digest(value: Any) -> str:
    """Hashes a JSON value, whatever the order of its keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return content_hash(_ENCODER.encode(value))


@lru_cache(256)
def bare_endpoint(url: str) -> str:
    """Removes user, password and query, which may be secret, from an endpoint.

    >>> bare_endpoint("https://user:key@host:8000/v1?key=secret")
    'https://host:8000/v1'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
