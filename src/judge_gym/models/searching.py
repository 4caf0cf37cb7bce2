"""What a reply of pydantic-ai says of web searches: queries, addresses, how many are paid for."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge_gym.records.searches import Search

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponsePart

TOOL = "web_search"
ADDRESSES = ("url", "uri")
"""What providers call where something was found."""
COUNTING = ("openai", "anthropic", "google")
"""Whose replies say how many searches are charged for: a page that is opened is none."""
SETTINGS: dict[str, dict[str, bool]] = {
    "openai": {"openai_include_web_search_sources": True},
    "xai": {"xai_include_web_search_output": True},
}
"""What must be asked for by name, or the reply does not hold what was found."""


def searches_of(response: "ModelResponse") -> tuple[Search, ...]:
    """The searches behind a reply, in their order, as far as the provider tells of them."""
    from pydantic_ai.messages import NativeToolCallPart, NativeToolReturnPart

    calls = [p for p in response.parts if isinstance(p, NativeToolCallPart) and p.tool_name == TOOL]
    found = {
        part.tool_call_id: part.content
        for part in response.parts
        if isinstance(part, NativeToolReturnPart) and part.tool_name == TOOL
    }
    made = [
        Search(
            _query(call.args), _addresses(got := found.get(call.tool_call_id)), _first_fault(got)
        )
        for call in calls
    ]
    # A router names what the answer rests on, and no query.
    cited = _addresses((response.provider_details or {}).get("annotations"))
    return (*made, Search(sources=cited)) if cited and not made else tuple(made)


def paid_for(provider: str, response: "ModelResponse") -> int:
    """How many searches a provider charges for; where it does not count them, those it shows."""
    usage, details = response.usage, response.provider_details or {}
    told = details.get("server_tool_use")
    counts = (
        getattr(usage, "web_searches", None),
        told.get("web_search_requests") if isinstance(told, Mapping) else None,
        usage.details.get(f"server_side_tools_{TOOL}"),
        0 if provider in COUNTING else None,
    )
    return next((n for n in counts if isinstance(n, int)), len(searches_of(response)))


def joined(parts: "Sequence[ModelResponsePart]") -> str:
    """The words of a reply: fragments as they are, with a paragraph's break where it searched.

    Citations cut a sentence into fragments; a search stands between what was said before and after.
    """
    from pydantic_ai.messages import NativeToolCallPart, NativeToolReturnPart, TextPart

    paragraphs = [""]
    for part in parts:
        if isinstance(part, TextPart):
            paragraphs[-1] += part.content
        elif isinstance(part, NativeToolCallPart | NativeToolReturnPart) and paragraphs[-1]:
            paragraphs.append("")
    return "\n\n".join(text for text in paragraphs if text)


def _query(args: Any) -> str:
    """What was looked for; a page that was opened is named by its address."""
    given = args
    if isinstance(args, str):
        try:
            given = json.loads(args)
        except ValueError:
            return args
    if not isinstance(given, Mapping):
        return ""
    queries = given.get("query") or given.get("queries") or given.get("pattern") or given.get("url")
    return "; ".join(map(str, queries)) if isinstance(queries, list) else str(queries or "")


def _addresses(content: Any) -> tuple[str, ...]:
    """Every address in what a search brought, each once."""
    return tuple(dict.fromkeys(_values(content, ADDRESSES)))


def _first_fault(content: Any) -> str:
    return next(_values(content, ("error_code",)), "")


def _values(content: Any, names: Sequence[str]) -> Iterator[str]:
    """The texts under some names, at whatever depth: each provider nests them its own way."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            if name in names and isinstance(value, str):
                yield value
            else:
                yield from _values(value, names)
    elif isinstance(content, Sequence) and not isinstance(content, str):
        for value in content:
            yield from _values(value, names)
