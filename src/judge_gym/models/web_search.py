"""Reads the web searches in a reply of pydantic-ai: queries, URLs, and the number charged."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge_gym.records.searches import Search

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponsePart

TOOL = "web_search"
ADDRESSES = ("url", "uri")
"""The providers' names for the URL of a result."""
COUNTING = ("openai", "anthropic", "google")
"""Providers whose replies report how many searches are charged; opening a page is none."""
SETTINGS: dict[str, dict[str, bool]] = {
    "openai": {"openai_include_web_search_sources": True},
    "xai": {"xai_include_web_search_output": True},
}
"""Settings without which a reply does not include what was found."""


def searches_of(response: "ModelResponse") -> tuple[Search, ...]:
    """Returns the searches behind a reply in order, as the provider reports them."""
    from pydantic_ai.messages import NativeToolCallPart, NativeToolReturnPart

    calls = [p for p in response.parts if isinstance(p, NativeToolCallPart) and p.tool_name == TOOL]
    returns = {
        part.tool_call_id: part.content
        for part in response.parts
        if isinstance(part, NativeToolReturnPart) and part.tool_name == TOOL
    }
    searches = [
        Search(_query(call.args), _addresses(got := returns.get(call.tool_call_id)), _error(got))
        for call in calls
    ]
    # A router reports the sources of the answer, and no query.
    cited = _addresses((response.provider_details or {}).get("annotations"))
    return (Search(sources=cited),) if cited and not searches else tuple(searches)


def charged_searches(provider: str, response: "ModelResponse") -> int:
    """Returns how many searches are charged; where that is not reported, those that are listed."""
    usage, details = response.usage, response.provider_details or {}
    reported = details.get("server_tool_use")
    counts = (
        getattr(usage, "web_searches", None),
        reported.get("web_search_requests") if isinstance(reported, Mapping) else None,
        usage.details.get(f"server_side_tools_{TOOL}"),
        0 if provider in COUNTING else None,
    )
    return next((n for n in counts if isinstance(n, int)), len(searches_of(response)))


def joined_text(parts: "Sequence[ModelResponsePart]") -> str:
    """Returns the text of a reply, with a paragraph break at each search.

    Citations cut a sentence into fragments, which are joined as they are.
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
    """Returns the query; for a page that was opened, its URL."""
    query = args
    if isinstance(args, str):
        try:
            query = json.loads(args)
        except ValueError:
            return args
    if not isinstance(query, Mapping):
        return ""
    queries = query.get("query") or query.get("queries") or query.get("pattern") or query.get("url")
    return "; ".join(map(str, queries)) if isinstance(queries, list) else str(queries or "")


def _addresses(content: Any) -> tuple[str, ...]:
    """Returns every URL in a search's results, each once."""
    return tuple(dict.fromkeys(_values(content, ADDRESSES)))


def _error(content: Any) -> str:
    return next(_values(content, ("error_code",)), "")


def _values(content: Any, names: Sequence[str]) -> Iterator[str]:
    """Yields the texts under some keys at any depth: each provider nests them differently."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            if name in names and isinstance(value, str):
                yield value
            else:
                yield from _values(value, names)
    elif isinstance(content, Sequence) and not isinstance(content, str):
        for value in content:
            yield from _values(value, names)
