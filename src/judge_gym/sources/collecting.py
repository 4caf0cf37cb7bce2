"""What every source does: it searches, and says what it found, dropped and stumbled over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from judge_gym.records import Evidence, Window

Watch = Callable[[int, int], None]
"""Told how many articles are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a search brought."""

    items: tuple[Evidence, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many were left out, by reason."""
    notes: tuple[str, ...] = ()
    """What a reader should know of single items, kept or not."""
    fault: str = ""
    """Why the search as a whole ended early; what came before it is in `items`."""
    interrupted: bool = False


class Source(Protocol):
    """Where evidence is searched."""

    def search(self, window: Window | None, query: str, limit: int) -> Collected:
        """Evidence of a window that answers a query, at most `limit` items."""
        ...
