"""Searches are declared once; an unknown one is refused, and outside packages add theirs."""

from collections.abc import Iterator
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.lab.collection import collect
from judge_gym.records import Evidence, Origin, Window, search_origins
from judge_gym.sources import SearchResult, Source, open_search
from judge_gym.store import Store
from judge_gym.studies import PoolSpec, WindowSpec, check_pool

JANUARY = WindowSpec(country="Valdoria")


class Wiki:
    """A search of an outside package, which finds what it is asked for."""

    def __init__(self, fetcher: Any, known: Any, on_progress: Any, on_item: Any) -> None:
        self.known = known

    def search(self, window: Window | None, query: str, limit: int) -> SearchResult:
        return SearchResult((Evidence(query, f"A page about {query}."),))


WIKI = Origin("wiki", "query", "a wiki", f"{__name__}:Wiki")


@pytest.fixture
def with_wiki(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if a package that declares the search were installed."""
    entry = EntryPoint("wiki", f"{__name__}:WIKI", "judge_gym.sources")
    found = {"judge_gym.sources": [entry]}
    monkeypatch.setattr(metadata, "entry_points", lambda group: found.get(group, []))
    search_origins.cache_clear()
    yield
    search_origins.cache_clear()


@pytest.mark.parametrize("name", search_origins())
def test_every_declared_search_opens_its_own_class(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRECRAWL_API_KEY", "any")
    addresses = ["https://x.example/feed"]
    nothing: dict[str, Any] = {
        "known": (),
        "on_progress": lambda *_: None,
        "on_item": lambda _: None,
    }
    opened: Source = open_search(name, addresses, allow_private=False, **nothing)
    assert type(opened).__name__.casefold() == f"{name.removesuffix('s')}source"


def test_an_unknown_search_is_refused_with_the_choices_and_opens_nothing() -> None:
    nothing: dict[str, Any] = {
        "known": (),
        "on_progress": lambda *_: None,
        "on_item": lambda _: None,
    }
    with pytest.raises(DesignError, match="unknown search 'wiki'") as refused:
        open_search("wiki", [], allow_private=False, **nothing)
    assert refused.value.choices == tuple(search_origins())
    with pytest.raises(DesignError, match=r"unknown key 'wiki' for evidence\.here") as refused:
        check_pool(PoolSpec(wiki="courts", window=JANUARY), ("evidence", "here"))
    assert {*search_origins(), "files"} <= set(refused.value.choices)


def test_an_outside_package_adds_a_search(with_wiki: None, store: Store, tmp_path: Path) -> None:
    spec = PoolSpec(wiki="courts", window=JANUARY)
    check_pool(spec, ("evidence", "here"))
    result = collect(store, spec, tmp_path, allow_private=False, watch=lambda *_: None)
    assert (result.source, result.added) == ("wiki", 1)
    assert store.evidence.find_window(result.window_id).search == "wiki: courts"
    [item] = store.evidence.window_items(result.window_id)
    assert item.text == "A page about courts."
