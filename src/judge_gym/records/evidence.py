"""Evidence: windows, items, views and pools.

`id` is the id of a record in the store, or 0 before it is stored; everything else is content.
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
    """The country and dates of evidence, and the search that found it."""

    country: str
    start: date | None = None
    end: date | None = None
    search: str = ""
    """Source and query as text; empty for loaded files. Each search has its own window."""


@dataclass(frozen=True)
class Evidence:
    """One text to judge. Truth, cluster and metadata are for analysis and appear in no prompt.

    A pair is a task with two responses, which a judge compares.
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

    @property
    def body(self) -> str:
        """Everything that a judge can read, as one text; a pair is a JSON list."""
        if not self.responses:
            return self.text
        return json.dumps([self.text, *self.responses], ensure_ascii=False)

    @cached_property
    def hash(self) -> str:
        """The hash of the raw text, which does not depend on the view."""
        return content_hash(self.body)


@dataclass(frozen=True, slots=True)
class View:
    """A text that an editor made from evidence; `text` is None if that failed."""

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
