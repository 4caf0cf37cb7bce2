"""The tools for agents, derived from the table of verbs."""

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types

from judge_gym.axes import Design
from judge_gym.lab.nouns import describe
from judge_gym.verbs import VERBS, Verb

TOOLS: Mapping[str, Verb] = {verb.tool: verb for verb in VERBS if verb.agents}
"""The verbs that agents get, by name; those that only read data go through the tool `read`."""
OWN_TOOL = ("runs", "admin")
"""Nouns whose reading verbs are tools of their own: agents need them in every session."""
KNOBS = ("config", "overrides")
"""Arguments that hold knobs by path."""
PAGE_ARGUMENTS = {
    "cursor": {"type": "string", "description": "`next` of the page before."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
}


def is_tool(verb: Verb) -> bool:
    """Returns whether a verb is a tool of its own."""
    return verb.effect != "reads" or verb.noun in OWN_TOOL


def tool(verb: Verb) -> types.Tool:
    """Returns a verb as a tool with its hints."""
    hints = types.ToolAnnotations(
        read_only_hint=verb.effect == "reads",
        destructive_hint=verb.effect == "destroys",
        idempotent_hint=verb.effect == "reads",
        open_world_hint=verb.effect == "pays",
    )
    return types.Tool(
        name=verb.tool,
        description=f"{describe(verb)} {verb.hint}",
        input_schema=arguments_schema(verb),
        annotations=hints,
    )


def summary(verb: Verb) -> dict[str, Any]:
    """Returns a verb in one line: what it does and takes."""
    fields = verb.request.model_fields
    required = [name for name, field in fields.items() if field.is_required()]
    return {
        "name": verb.tool,
        "tool": verb.tool if is_tool(verb) else "read",
        "description": describe(verb),
        "effect": verb.hint,
        "required": required,
        "optional": [name for name in verb.places() if name not in required],
    }


def arguments_schema(verb: Verb) -> dict[str, Any]:
    """Returns the JSON Schema of a verb's arguments, without titles."""
    schema = _without_titles(verb.request.model_json_schema())
    properties = schema.setdefault("properties", {})
    for name in KNOBS:
        if name in properties:
            properties[name] = _knobs(name)
    if verb.paged:
        properties |= PAGE_ARGUMENTS
    schema.pop("description", None)
    return {"type": "object", **schema}


def _knobs(argument: str) -> dict[str, Any]:
    """Returns the schema of knobs by path, with their levels where an experiment is created."""
    knobs = {path: knob for path, knob in Design.knobs().items() if path != "judge.model"}
    if argument == "overrides":
        text = "Knobs by path, over those of the study's text; see experiments_create for levels."
        return {"type": "object", "description": text, "propertyNames": {"enum": [*knobs]}}
    properties: dict[str, Any] = {}
    for path, knob in knobs.items():
        text = f"{knob.question} Default: {knob.default!r}."
        if knob.open:
            properties[path] = {"description": f"{text} Takes {knob.choices}."}
        else:
            properties[path] = {"enum": [*knob.levels], "description": text}
    text = "Knobs by path, those that are not at their default; the blueprint's names work too."
    return {"type": "object", "description": text, "properties": properties}


def _without_titles(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_titles(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _without_titles(value)
        for key, value in part.items()
        if not (key == "title" and isinstance(value, str))
    }


# --- truncation ----------------------------------------------------------------------------------

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
