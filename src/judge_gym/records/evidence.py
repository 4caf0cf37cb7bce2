"""Evidence: windows, items, views and pools.

`id` is the id of a record in the store, or 0 before it is stored; everything else is content.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Literal

from judge_gym.errors import DesignError
from judge_gym.records.hashes import content_hash, digest
from judge_gym.records.verdicts import Status

TaskType = Literal["ecc", "control", "benchmark"]
FIELD_NAMES = ("input", "messages", "context", "output", "reference")
"""The named parts that an item may have instead of one text, in the order in which they appear."""


@dataclass(frozen=True, slots=True)
class Window:
    """The country and dates of evidence, and the search that found it."""

    country: str
    start: date | None = None
    end: date | None = None
    search: str = ""
    """Source and query as text; empty for loaded files. Each search has its own window."""


@dataclass(frozen=True)
class Evidence:
    """One text to judge. Truth, cluster and metadata are for analysis and appear in no prompt.

    A pair is a task with two responses, which a judge compares. An item of named parts has their
    rendering as its text.
    """

    title: str
    text: str
    """For a pair, the task."""
    url: str = ""
    date: str = ""
    source: str = ""
    truth: int | str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    responses: tuple[str, ...] = ()
    """Two for a pair, otherwise none."""
    cluster: str = ""
    """What makes items dependent (an outlet, a conversation, an event); empty: nothing does."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The named parts, such as input and output, in the order of `FIELD_NAMES`; empty for a text
    or a pair."""

    @property
    def body(self) -> str:
        """Everything that a judge can read as one text, which is a JSON list for a pair."""
        if not self.responses:
            return self.text
        return json.dumps([self.text, *self.responses], ensure_ascii=False)

    @cached_property
    def hash(self) -> str:
        """The hash of the raw text, which does not depend on the view."""
        return content_hash(self.body)


@dataclass(frozen=True, slots=True)
class View:
    """A text that an editor made from evidence. Its `text` is None if that failed."""

    evidence: Evidence
    text: str | None
    status: Status
    call_id: int | None = None
    checks: Mapping[str, Any] | None = None
    """Comparisons with its source; None if there is no text."""


@dataclass(frozen=True)
class Pool:
    """A frozen, ordered set of evidence."""

    items: tuple[Evidence, ...]
    window: Window | None = None
    id: int = 0

    @cached_property
    def hash(self) -> str:
        """The hash of the texts in their order."""
        return digest([item.hash for item in self.items])

    @cached_property
    def paired(self) -> bool:
        """Whether its items are pairs."""
        return any(item.responses for item in self.items)

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """The named parts that any of its items has."""
        return tuple(name for name in FIELD_NAMES if any(name in it.fields for it in self.items))


def render_fields(fields: Mapping[str, str]) -> str:
    r"""Joins named parts to one text, which is an item's for hashes, views and pages.

    >>> render_fields({"input": "2 + 2?", "output": "4"})
    'INPUT\n2 + 2?\n\nOUTPUT\n4'
    """
    return "\n\n".join(f"{name.upper()}\n{text}" for name, text in fields.items())


def render_messages(messages: Sequence[Any]) -> str:
    r"""Writes a transcript with a line per speaker, whose words are indented below.

    Messages have the form of OpenAI's, Anthropic's or Inspect's APIs: `role` and `content`, a text
    or a list of blocks, with `tool_calls`. The indentation keeps words of a message from posing
    as another speaker.

    >>> print(render_messages([{"role": "user", "content": "Hi"}]))
    user:
      Hi
    """
    parts: list[str] = []
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise DesignError(f"a message is an object with role and content, not {message!r:.60}")
        name = message.get("name") or message.get("function")
        speaker = message["role"] + (f" {name}" if isinstance(name, str) else "")
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        lines = [*map(_block, blocks), *map(_tool_call, message.get("tool_calls") or ())]
        said = "\n".join(line for line in lines if line)
        parts.append("\n".join([f"{speaker}:", *(f"  {line}" for line in said.splitlines())]))
    return "\n".join(parts)


def _block(block: Any) -> str:
    """Writes a part of a message's content: its text, a tool call or a tool's result."""
    if not isinstance(block, Mapping):
        return "" if block is None else str(block)
    match block.get("type"):
        case "tool_use":
            return _call_text(block.get("name"), block.get("input"))
        case "tool_result":
            content = block.get("content")
            inner = content if isinstance(content, list) else [content]
            return "\n".join(["result:", *map(_block, inner)])
        case _ if isinstance(block.get("text"), str):
            return str(block["text"])
        case kind:
            return f"({kind or 'unknown'} content)"


def _tool_call(call: Any) -> str:
    """Writes a tool call in the form of OpenAI's or Inspect's API."""
    if not isinstance(call, Mapping):
        return _call_text(None, call)
    function = call.get("function")
    if isinstance(function, Mapping):
        return _call_text(function.get("name"), function.get("arguments"))
    return _call_text(function or call.get("name"), call.get("arguments"))


def _call_text(name: Any, arguments: Any) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"calls {name or 'a tool'}({text})"
