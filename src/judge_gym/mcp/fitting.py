"""Keeps answers short enough for an agent: what is left out is said, never silently dropped."""

import json
from typing import Any

MOST = 40_000
"""Characters of an answer at most, as JSON."""
CUTS = ((4000, None), (1000, 200), (300, 50), (100, 10), (50, 3))
"""How long texts and lists may be, tried one after the other until the answer fits."""


def size(value: Any) -> int:
    """Characters of a value as JSON."""
    return len(written(value))


def written(value: Any) -> str:
    """A value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fitted(value: dict[str, Any]) -> dict[str, Any]:
    """The value, with long texts and lists cut as far as needed, and a note that they are."""
    if size(value) <= MOST:
        return value
    for text, entries in CUTS:
        lists = f" and lists after {entries} entries" if entries else ""
        note = f"too long to show whole: texts are cut after {text} characters{lists}"
        cut: dict[str, Any] = {"cut": note, **_cut(value, text, entries)}
        if size(cut) <= MOST:
            return cut
    return {"cut": "too long to show; ask for less of it"}


def _cut(value: Any, text: int, entries: int | None) -> Any:
    match value:
        case str() if len(value) > text:
            return f"{value[:text]}… ({len(value) - text} more characters)"
        case list():
            shown = [_cut(one, text, entries) for one in value[:entries]]
            left = len(value) - len(shown)
            return [*shown, f"… ({left} more entries)"] if left else shown
        case dict():
            return {name: _cut(one, text, entries) for name, one in value.items()}
    return value
