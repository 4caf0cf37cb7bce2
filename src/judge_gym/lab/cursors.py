"""Cursors: the key of the last row of a page, as text."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.records.inputs import LARGEST
from judge_gym.store import Page


def all_rows(page: Callable[..., Page]) -> list[Mapping[str, Any]]:
    """Collects the rows of all pages of a function that reads a page by cursor and size."""
    listed = page(after=None, limit=1000)
    rows = [*listed.rows]
    while listed.next is not None:
        listed = page(after=listed.next, limit=1000)
        rows += listed.rows
    return rows


def write_cursor(key: Sequence[int | str] | None) -> str | None:
    """Encodes the key of a page's last row. None stands for the last page."""
    return json.dumps([*key]) if key is not None else None


def read_cursor(cursor: str, *types: type) -> list[Any]:
    """Decodes a cursor to the key of a row, which is numbers and texts.

    Args:
        cursor: what `write_cursor` returned.
        types: the type of each part; without, any number of parts of either type.
    """
    try:
        key = json.loads(cursor)
    except (ValueError, RecursionError):
        key = None
    parts = key if isinstance(key, list) else [None]
    fits = all(type(part) in (int, str) for part in parts)
    small = all(0 <= part <= LARGEST for part in parts if isinstance(part, int))
    if not (fits and small) or (types and [type(part) for part in parts] != [*types]):
        raise DesignError(f"{cursor[:50]!r} is no cursor; use `next` of the previous page")
    return parts


def read_row(cursor: str | None) -> int | None:
    """Decodes a cursor that holds the number of a row."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit()) or not 0 < int(cursor) <= LARGEST:
        raise DesignError(f"{cursor[:50]!r} is no cursor; use `next` of the previous page")
    return int(cursor)
