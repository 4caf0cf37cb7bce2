"""Cursors say where a page ended, and cannot be made up."""

import hashlib
import hmac
import re

CURSOR = re.compile(r"([1-9][0-9]*)-([0-9a-f]{64})")


class BadCursor(ValueError):
    """A cursor was not made here, or for another list."""


def _signature(secret: bytes, last: int, tag: str | None) -> str:
    scope = "all" if tag is None else f"tag:{tag}"
    return hmac.new(secret, f"{last}:{scope}".encode(), hashlib.sha256).hexdigest()


def make_cursor(secret: bytes, last: int, tag: str | None) -> str:
    """Returns the cursor of a page that ended with a note."""
    return f"{last}-{_signature(secret, last, tag)}"


def read_cursor(secret: bytes, cursor: str, tag: str | None) -> int:
    """Returns the note with which the page before ended."""
    match = CURSOR.fullmatch(cursor)
    if match is None or not hmac.compare_digest(match[2], _signature(secret, int(match[1]), tag)):
        raise BadCursor("the cursor is not valid here")
    return int(match[1])
