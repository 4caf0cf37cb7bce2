"""Reads what judges write besides their verdicts: reasoning, and the code that they quote."""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple


class Remarks(NamedTuple):
    """The reasoning and quotes of a judge's reply; empty where it has none."""

    reasoning: str
    model_code: str
    expected_code: str


_LABEL = re.compile(
    r"[\s*#_>`-]*(?:(?:my|the|final)\s+)*(?P<label>reasoning|model code|expected code|verdict)"
    r"[*_` ]*:[*_ ]*(?P<rest>.*)",
    re.I,
)
# Some judges fence their verdict.
_CLOSING = re.compile(r"\s*(?:```|~~~)\w*\s*\W*verdict\W*:[^\n]*\s*(?:```|~~~)\s*\Z", re.I)
_NOTHING = re.compile(r"\W*(?:none|n/a|nothing)\W*", re.I)
_FENCE = re.compile(r"\s{0,3}(?P<ticks>`{3,}|~{3,})(?P<info>[^`]*)\Z")


def read_remarks(reply: str) -> Remarks:
    """Reads reasoning and quotes from a judge's reply, which is free text or JSON.

    Labels within fences are part of what is quoted. Without labels all that comes before the
    verdict is the reasoning.
    """
    parts: dict[str, list[str]] = {"": []}
    label, open_fence = "", ""
    for line in _CLOSING.sub("", _free_text(reply)).splitlines():
        mark = _FENCE.match(line)
        if open_fence:
            closes = mark and mark["ticks"].startswith(open_fence) and not mark["info"].strip()
            open_fence = "" if closes else open_fence
        elif mark:
            open_fence = mark["ticks"]
        elif found := _LABEL.match(line):
            label, line = found["label"].lower(), found["rest"]
            parts[label] = []  # the last of its kind counts, as with verdicts
            opens = _FENCE.match(line)
            open_fence = opens["ticks"] if opens else ""
        parts[label].append(line)
    reasoning = parts.get("reasoning") or parts[""]
    return Remarks(
        "\n".join(reasoning).strip(),
        _quoted(parts.get("model code", [])),
        _quoted(parts.get("expected code", [])),
    )


def _free_text(reply: str) -> str:
    """Returns the reply, or the reasoning of a reply that is a JSON object."""
    try:
        value = json.loads(reply[reply.index("{") : reply.rindex("}") + 1], strict=False)
    except (ValueError, RecursionError):
        return reply
    given = value.get("reasoning") if isinstance(value, dict) and "verdict" in value else None
    return given if isinstance(given, str) else reply


def _quoted(lines: Sequence[str]) -> str:
    """Returns what a part quotes: its first fenced block, or all of it; empty for `NONE`."""
    if _NOTHING.fullmatch(next((line for line in lines if line.strip()), "")):
        return ""
    marks = [place for place, line in enumerate(lines) if _FENCE.match(line)]
    if marks:
        ticks = _FENCE.match(lines[marks[0]])
        assert ticks is not None
        ends = [n for n in marks[1:] if lines[n].strip().startswith(ticks["ticks"])]
        lines = lines[marks[0] + 1 : ends[0] if ends else len(lines)]
    text = "\n".join(lines).strip("\n")
    return "" if re.fullmatch(rf"\W*|{_NOTHING.pattern}", text, re.I) else text
