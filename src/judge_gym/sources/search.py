"""The interface of a source of evidence: a search and its result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from judge_gym.records import Evidence, Window

OnProgress = Callable[[int, int], None]
"""Called with the number of articles read so far and the number to read."""

OnItem = Callable[[Evidence], None]
"""Called with each article as soon as it is kept, so that a killed search loses none."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The items that a search kept, and what happened to the others."""

    items: tuple[Evidence, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    """The number of items left out, by reason."""
    notes: tuple[str, ...] = ()
    """Remarks about single items, kept or not."""
    error: str = ""
    """Why the whole search ended early; `items` has what came before."""
    interrupted: bool = False


class Source(Protocol):
    """Searches for evidence."""

    def search(self, window: Window | None, query: str, limit: int) -> SearchResult:
        """Finds at most `limit` items of a window that match a query."""
        ...
