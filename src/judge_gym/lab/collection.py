"""Collects evidence into windows and records what was added and what was left out."""

import os
from dataclasses import dataclass
from pathlib import Path

from judge_gym.errors import DesignError, Remedy, SourceError
from judge_gym.records import Evidence, Window, bare_endpoint, content_hash, find_origin
from judge_gym.records.environment import SEARCH
from judge_gym.sources import FileSource, OnItem, OnProgress, SearchResult, Source, open_search
from judge_gym.store import Store
from judge_gym.studies import PoolSpec, WindowSpec

DEFAULT_SEARCH = "gdelt"
ALLOW_PRIVATE = "--allow-private"


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What a search added to a window."""

    window_id: int
    source: str
    found: SearchResult
    added: int
    held: int
    """Items in the window afterwards."""

    def raise_error(self) -> None:
        """Raises the error that ended the search early, if any. Items found before it are kept."""
        if not self.found.error:
            return
        id = self.window_id
        if not self.held:
            raise SourceError(self.found.error)
        raise SourceError(
            f"{self.found.error}; {self.held} items are kept in window {id}: the same command "
            "continues; or freeze them, and name the pool in the study (pool: NAME)",
            remedy=Remedy("evidence.freeze_pool", {"name": "NAME", "window_id": id}),
        )


@dataclass(frozen=True, slots=True)
class LabSearch:
    """The source that a lab searches for the evidence of drafts."""

    origin: str
    addresses: tuple[str, ...]
    allow_private: bool
    """Whether loopback and private addresses may be fetched."""

    @classmethod
    def from_setting(cls) -> "LabSearch":
        """Opens the source that the lab's setting names."""
        words = os.environ.get(SEARCH, "").split() or [DEFAULT_SEARCH]
        origin, *addresses = [word for word in words if word != ALLOW_PRIVATE]
        try:
            find_origin(origin)
        except DesignError as error:
            raise DesignError(f"{SEARCH}: {error.message}", choices=error.choices) from None
        return cls(origin, tuple(addresses), ALLOW_PRIVATE in words)

    def spec(self, concept: str, window: Window, limit: int) -> PoolSpec:
        """Describes the search for a concept in a window. Each concept is searched on its own."""
        dates = WindowSpec(country=window.country, start=window.start, end=window.end)
        return PoolSpec.for_search(self.origin, concept, self.addresses, limit=limit, window=dates)


def window_of(spec: PoolSpec) -> Window | None:
    """The window of a pool. That of a search includes the search, so that searches never mix."""
    if spec.window is None:
        return None
    search = ""
    if spec.searched:
        search = " ".join([str(spec.origin), *map(redact_address, spec.addresses)])
        search += f": {spec.search_query}" if spec.search_query else ""
    return Window(spec.window.country, spec.window.start, spec.window.end, search)


def redact_address(url: str) -> str:
    """Removes secrets from an address, which still differs from other addresses.

    >>> redact_address("https://user:key@host/feed?token=abc")
    'https://host/feed?~3c3c640d'
    >>> redact_address("https://host/feed")
    'https://host/feed'
    """
    bare = bare_endpoint(url)
    return bare if bare == url else f"{bare}?~{content_hash(url)[:8]}"


def collect(
    store: Store,
    spec: PoolSpec,
    folder: Path,
    *,
    window_id: int | None = None,
    allow_private: bool,
    watch: OnProgress,
) -> CollectionResult:
    """Searches as a pool's specification says and keeps what is new."""
    if window_id is not None and spec.searched:
        raise DesignError("a search has its own window; one is named for files")
    window = window_of(spec) if window_id is None else store.evidence.find_window(window_id)
    assert window is not None, "checked with the specification"
    id = store.evidence.window_id(window) if window_id is None else window_id
    earlier_items = store.evidence.window_items(id, dropped=True) if id else ()
    added = 0

    def keep(item: Evidence) -> None:  # at once: a search that is killed loses nothing
        nonlocal added
        added += store.evidence.add_to_window(store.evidence.save_window(window), [item])

    if spec.searched and find_origin(str(spec.origin)).paid:
        store.identity.refuse_copy()
    source = _source(spec, folder, earlier_items, allow_private, watch, keep)
    searched = spec.searched
    limit = spec.limit if searched else 0  # of files, everything
    if searched and collected_window(store, window) is None:
        limit -= len(earlier_items)  # what an unfinished search found counts
    full = searched and limit <= 0
    result = SearchResult(()) if full else source.search(window, spec.search_query, limit)
    id = store.evidence.save_window(window)
    added += store.evidence.add_to_window(id, result.items)
    error = result.error or ("interrupted" if result.interrupted else "")
    name = str(spec.origin)
    store.evidence.record_collection(id, name, added, result.dropped, error)
    return CollectionResult(id, name, result, added, len(store.evidence.window_items(id)))


def collected_window(store: Store, window: Window) -> int | None:
    """Finds the window of a finished search. None means that it has not finished."""
    id = store.evidence.window_id(window)
    origin = window.search.partition(" ")[0].rstrip(":")
    rows = store.evidence.collections(id) if id else []
    finished = any(row["source"] == origin and not row["error"] for row in rows)
    return id if finished else None


def _source(
    spec: PoolSpec,
    folder: Path,
    known: tuple[Evidence, ...],
    allow_private: bool,
    watch: OnProgress,
    keep: OnItem,
) -> Source:
    if not spec.searched:
        files = [spec.files] if isinstance(spec.files, str) else spec.files or []
        return FileSource(files, folder, known)
    return open_search(
        str(spec.origin),
        spec.addresses,
        known=known,
        allow_private=allow_private,
        on_progress=watch,
        on_item=keep,
    )
