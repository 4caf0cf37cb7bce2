"""The tools for agents, derived from the table of verbs.

Agents read the list of tools in every session, so it is short: a tool says what it does, and
`functions` returns the whole schema of its arguments.
"""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any

import mcp_types as types

from judge_gym.axes import Design
from judge_gym.errors import DesignError
from judge_gym.lab.nouns import argument_names, describe, request_model
from judge_gym.verbs import VERBS, Verb

TOOLS: Mapping[str, Verb] = {verb.tool: verb for verb in VERBS if verb.agents}
"""The verbs that agents get, by name."""
LISTED_READS = ("runs_status", "runs_wait", "runs_plan", "reports_show", "admin_query")
"""Verbs that only read and are tools of their own: agents need them in every session."""
HINTS = {
    "reads": "",
    "pays": " Pays for calls.",
    "writes": "",
    "destroys": " May delete or overwrite: ask the user first.",
}
"""What tools cost and change, as far as their descriptions do not say it."""
KNOBS = ("config", "overrides")
"""Arguments that hold knobs by path."""
EXPLAINED = ("target", "tag", "budget", "series", "overrides")
"""Arguments that the instructions of the server explain once."""
PAGE_ARGUMENTS = {
    "cursor": {"type": "string", "description": "`next` of the page before."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    "columns": {
        "type": "array",
        "items": {"type": "string"},
        "description": 'Names of columns, or ["all"]; by default the main ones.',
    },
}
FUNCTIONS = (
    "Lists all functions, those of a noun (`suites`), or the JSON Schema of one by its name."
)
SIMILAR = 0.7
"""The similarity from which a name is suggested: that of its letters, and 1 per shared word."""
READ = (
    "Calls a function that only reads. Lists have pages: `next` is the `cursor` of the next one, "
    "`columns` chooses columns."
)


def is_tool(verb: Verb) -> bool:
    """Whether a verb is a tool of its own."""
    return verb.effect != "reads" or verb.tool in LISTED_READS


def list_tools() -> list[types.Tool]:
    """Lists a tool for each verb that has one, and two that find and read the others."""
    readable = sorted(verb.tool for verb in TOOLS.values() if not is_tool(verb))
    name = {"name": {"type": "string"}}
    call = {"function": {"enum": readable}, "arguments": {"type": "object"}}
    hints = _hints("reads")
    return [
        types.Tool(
            name="functions",
            description=FUNCTIONS,
            input_schema={"type": "object", "properties": name},
            annotations=hints,
        ),
        types.Tool(
            name="read",
            description=READ,
            input_schema={"type": "object", "properties": call, "required": ["function"]},
            annotations=hints,
        ),
        *(_tool(verb) for verb in TOOLS.values() if is_tool(verb)),
    ]


def _tool(verb: Verb) -> types.Tool:
    """Describes a verb as a tool with its hints."""
    return types.Tool(
        name=verb.tool,
        description=f"{describe(verb)} {verb.note}".strip() + HINTS[verb.effect],
        input_schema=_brief_schema(verb),
        annotations=_hints(verb.effect),
    )


def _hints(effect: str) -> types.ToolAnnotations:
    return types.ToolAnnotations(
        read_only_hint=effect == "reads",
        destructive_hint=effect == "destroys",
        idempotent_hint=effect == "reads",
        open_world_hint=effect == "pays",
    )


def summaries(noun: str | None = None) -> dict[str, Any]:
    """Lists all functions in one row each, or those of a noun."""
    rows = [
        [verb.tool, verb.tool if is_tool(verb) else "read", _arguments(verb), describe(verb)]
        for verb in TOOLS.values()
        if noun in (None, verb.noun)
    ]
    return {"columns": ["name", "tool", "arguments", "description"], "rows": rows, "next": None}


def _arguments(verb: Verb) -> str:
    """Names a verb's arguments, with a question mark after those that may be left out."""
    required = {
        name for name, field in request_model(verb).model_fields.items() if field.is_required()
    }
    names = [*argument_names(verb), *(["columns"] if verb.paged else [])]
    return ", ".join(name if name in required else f"{name}?" for name in names)


def not_found(what: str, name: object, names: Iterable[str]) -> DesignError:
    """Builds the error for an unknown tool or function, with those of similar names."""

    def words(text: str) -> set[str]:
        return {word.rstrip("s") for word in text.lower().replace(".", "_").split("_")}

    def similarity(candidate: str) -> float:
        shared = len(words(str(name)) & words(candidate))
        return shared + SequenceMatcher(None, str(name), candidate).ratio()

    near = sorted({*names}, key=lambda candidate: (-similarity(candidate), candidate))[:4]
    near = [candidate for candidate in near if similarity(candidate) > SIMILAR]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "`functions` lists all"
    return DesignError(f"unknown {what} {name!r}; {hint}", choices=near)


# --- schemas -------------------------------------------------------------------------------------


def arguments_schema(verb: Verb) -> dict[str, Any]:
    """Builds the JSON Schema of a verb's arguments, without titles."""
    schema = _without_titles(request_model(verb).model_json_schema())
    properties = schema.setdefault("properties", {})
    for name in KNOBS:
        if name in properties:
            properties[name] = _knobs_schema()
    if verb.paged:
        properties |= PAGE_ARGUMENTS
    schema.pop("description", None)
    return {"type": "object", **schema}


def _knobs_schema() -> dict[str, Any]:
    """Builds the schema of knobs by path, with their levels and questions."""
    properties: dict[str, Any] = {}
    for path, knob in Design.knobs().items():
        if path == "judge.model":
            continue
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


def _brief_schema(verb: Verb) -> dict[str, Any]:
    """Builds a verb's schema of arguments without defaults, limits and inner schemas."""
    model_schema = request_model(verb).model_json_schema()
    properties = {
        name: _brief(part, model_schema.get("$defs", {}))
        for name, part in model_schema.get("properties", {}).items()
    }
    for name in {*EXPLAINED} & {*properties}:
        properties[name].pop("description", None)
    schema = {"type": "object", "properties": properties}
    return schema | ({"required": model_schema["required"]} if model_schema.get("required") else {})


def _brief(part: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Shortens a part of a schema. A record is described by the names of its fields."""
    if "$ref" in part:
        record = known[part["$ref"].rpartition("/")[2]]
        required = record.get("required", ())
        names = [name if name in required else f"{name}?" for name in record.get("properties", {})]
        return {"type": "object", "description": ", ".join(names)}
    kinds = [kind for kind in part.get("anyOf", ()) if kind.get("type") != "null"]
    brief = _brief(kinds[0], known) if len(kinds) == 1 else {}
    brief |= {name: part[name] for name in ("type", "enum", "description") if name in part}
    if "items" in part:
        brief["items"] = _brief(part["items"], known)
    return brief
