"""What sources pass on: what a search found, dropped and stumbled over, what became of a page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from judge_gym.records import Evidence, Window

Watch = Callable[[int, int], None]
"""Told how many articles are done, and of how many."""

Keep = Callable[[Evidence], None]
"""Given every article at once, so that a search that is killed loses none that it found."""


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


# --- pages ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was fetched."""

    url: str
    """The address that was asked for."""
    final_url: str
    """Where redirects led."""
    body: bytes
    content_type: str = ""
    charset: str = ""

    @property
    def text(self) -> str | bytes:
        """The body as text where the server states its encoding; its bytes where it does not."""
        try:
            return self.body.decode(self.charset, "replace") if self.charset else self.body
        except (LookupError, ValueError):
            return self.body


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a page could not be had, in a few words."""

    url: str
    reason: str
    retry: bool = False
    """Whether the same request may succeed later."""
    status: int = 0
    wait: float = 0.0
    """Seconds to wait before that, where it may."""


Outcome = Page | Refusal
