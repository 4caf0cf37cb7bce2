"""Evidence: windows, items, views and pools.

`id` is the row of a record in the store, 0 until it has one; everything else is content.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Literal

from judge_gym.records.hashes import content_hash, digest
from judge_gym.records.verdicts import Status

TaskType = Literal["ecc", "control", "benchmark"]


@dataclass(frozen=True, slots=True)
class Window:
    """Where and when evidence comes from, and the search that filled it."""

    country: str
    start: date | None = None
    end: date | None = None
    search: str = ""
    """Source and query in words; empty where files were loaded. Searches never mix."""


@dataclass(frozen=True)
class Evidence:
    """One text to judge. Truth and metadata are for analysis; no prompt ever holds them.

    A pair is a task with two responses to it, which a judge compares.
    """

    title: str
    text: str
    """Of a pair, the task that both responses answer."""
    url: str = ""
    date: str = ""
    source: str = ""
    truth: int | str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    responses: tuple[str, ...] = ()
    """Two for a pair, none otherwise."""

    @property
    def body(self) -> str:
        """All that a judge can read of it, as one text; a pair is a JSON list."""
        if not self.responses:
            return self.text
        return json.dumps([self.text, *self.responses], ensure_ascii=False)

    @cached_property
    def hash(self) -> str:
        """The identity of the raw text, whatever the view."""
        return content_hash(self.body)


@dataclass(frozen=True, slots=True)
class View:
    """A text derived from evidence for judges to read; `text` is None where making it failed."""

    evidence: Evidence
    text: str | None
    status: Status
    call_id: int | None = None
    checks: Mapping[str, Any] | None = None
    """How far it keeps to its source; None where there is no text."""


@dataclass(frozen=True)
class Pool:
    """A frozen, ordered set of evidence."""

    items: tuple[Evidence, ...]
    window: Window | None = None
    id: int = 0

    @cached_property
    def hash(self) -> str:
        """The identity of the texts in their order."""
        return digest([item.hash for item in self.items])

    @cached_property
    def paired(self) -> bool:
        """Whether its items are pairs."""
        return any(item.responses for item in self.items)
