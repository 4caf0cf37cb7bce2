"""Keeps results short enough for an agent, with a note on what was left out."""

import json
from typing import Any

MAX_SIZE = 40_000
"""Characters of a result as JSON."""
CUTS = ((4000, None), (1000, 200), (300, 50), (100, 10), (50, 3))
"""Maximum lengths of texts and lists, tried in this order until the result is short enough."""


def size(value: Any) -> int:
    """Returns the number of characters of a value as JSON."""
    return len(compact_json(value))


def compact_json(value: Any) -> str:
    """Returns a value as JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def truncate(value: dict[str, Any]) -> dict[str, Any]:
    """Returns a value with long texts and lists cut if needed, and a note if any were."""
    if size(value) <= MAX_SIZE:
        return value
    for text, entries in CUTS:
        lists = f" and lists after {entries} entries" if entries else ""
        note = f"too long to show whole: texts are cut after {text} characters{lists}"
        cut: dict[str, Any] = {"cut": note, **_cut(value, text, entries)}
        if size(cut) <= MAX_SIZE:
            return cut
    return {"cut": "too long to show; ask for less of it"}


def _cut(value: Any, text: int, entries: int | None) -> Any:
    match value:
        case str() if len(value) > text:
            return f"{value[:text]}… ({len(value) - text} more characters)"
        case list():
            shown = [_cut(item, text, entries) for item in value[:entries]]
            left = len(value) - len(shown)
            return [*shown, f"… ({left} more entries)"] if left else shown
        case dict():
            return {name: _cut(item, text, entries) for name, item in value.items()}
    return value
