"""Filling windows: what is new is kept, what was left out is on record, no searches mix."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError, NotFoundError, SourceError
from judge_gym.lab.collection import CollectionResult, collect, collected_window, window_of
from judge_gym.records import Evidence, Window
from judge_gym.store import Store
from judge_gym.studies import PoolSpec, WindowSpec
from web import JSON, Answer, Asked, Web, page, rss, story

JANUARY = WindowSpec(country="Norway", start=date(2026, 1, 1), end=date(2026, 1, 31))
DAY = "Sat, 10 Jan 2026 08:00:00 GMT"
NEWS = """\
{"title": "Budget", "text": "The budget was adopted in full.", "date": "2026-01-05"}
{"title": "Fishery", "text": "The fishery bill is under review.", "date": "2026-01-06"}
{"title": "Again", "text": "The budget was adopted in full."}
{"title": "Old", "text": "A harbour was opened.", "date": "2025-12-31"}
"""


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture
def news(tmp_path: Path) -> PoolSpec:
    """A file of two items that belong to January, and two that do not."""
    (tmp_path / "news.jsonl").write_text(NEWS)
    return PoolSpec(files="news.jsonl", window=JANUARY)


def feed(web: Web, *subjects: str, path: str = "/feed", **more: Any) -> PoolSpec:
    """A feed of articles on these subjects, and what searches it."""
    items = [
        {"title": s, "link": web.on(f"/{s}", page(s, story(s))), "date": DAY} for s in subjects
    ]
    return PoolSpec(feeds=web.on(path, rss(*items)), window=JANUARY, **more)


def fill(store: Store, spec: PoolSpec, folder: Path = Path(), **more: Any) -> CollectionResult:
    options = {"allow_private": True, "watch": lambda done, wanted: None, **more}
    return collect(store, spec, folder, **options)


def held(store: Store, window_id: int) -> list[str]:
    return [item.title for item in store.evidence.window_items(window_id)]


# --- which window --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "search"),
    [
        ({}, ""),
        ({"files": "x.jsonl"}, ""),
        ({"gdelt": "court ruling"}, "gdelt: court ruling"),
        ({"firecrawl": "court"}, "firecrawl: court"),
        ({"feeds": "https://x/feed"}, "feeds https://x/feed"),
        ({"feeds": ["https://x/a", "https://x/b"]}, "feeds https://x/a https://x/b"),
        ({"feeds": "https://x/feed", "query": "court"}, "feeds https://x/feed: court"),
    ],
)
def test_a_window_that_a_search_fills_knows_the_search(origin: Any, search: str) -> None:
    assert window_of(PoolSpec(**origin, window=JANUARY)) == Window(
        "Norway", date(2026, 1, 1), date(2026, 1, 31), search
    )


def test_how_much_is_kept_is_no_part_of_a_search() -> None:
    few, many = (PoolSpec(gdelt="court", window=JANUARY, limit=n) for n in (1, 100))
    assert window_of(few) == window_of(many)


def test_evidence_without_a_window_has_none() -> None:
    assert window_of(PoolSpec(files="x.jsonl")) is None


def test_a_windows_search_holds_no_secret_and_still_tells_addresses_apart() -> None:
    addresses = [
        "https://x/feed",
        *(f"https://ann:hunter2@x/feed?key=abc&page={n}" for n in (1, 2)),
    ]
    windows = [window_of(PoolSpec(feeds=address, window=JANUARY)) for address in addresses]
    searches = [window.search for window in windows if window]
    assert len(set(searches)) == 3
    assert not any(secret in search for secret in ("hunter2", "abc") for search in searches)
    assert all(search.startswith("feeds https://x/feed") for search in searches)


# --- files ---------------------------------------------------------------------------------------


def test_files_fill_their_window_and_what_was_left_out_is_on_record(
    store: Store, news: PoolSpec, tmp_path: Path
) -> None:
    made = fill(store, news, tmp_path)
    assert (made.source, made.added, made.held) == ("files", 2, 2)
    assert store.evidence.find_window(made.window_id) == window_of(news)
    assert held(store, made.window_id) == ["Budget", "Fishery"]
    [record] = store.evidence.collections(made.window_id)
    assert (record["source"], record["added"], record["error"]) == ("files", 2, "")
    assert record["dropped"] == {"same text": 1, "outside the dates": 1}
    made.raise_error()


def test_the_same_files_again_add_nothing_and_bring_nothing_back(
    store: Store, news: PoolSpec, tmp_path: Path
) -> None:
    first = fill(store, news, tmp_path)
    [budget, _] = store.evidence.window_items(first.window_id)
    store.evidence.drop(first.window_id, [budget.id])
    again = fill(store, news, tmp_path)
    assert (again.window_id, again.added, again.held) == (first.window_id, 0, 1)
    assert held(store, first.window_id) == ["Fishery"]
    assert again.found.dropped["already there"] == 3, "two and a repeat"
    assert [row["added"] for row in store.evidence.collections(first.window_id)] == [2, 0]


def test_a_limit_is_for_searches_not_for_files(
    store: Store, news: PoolSpec, tmp_path: Path
) -> None:
    assert fill(store, news.model_copy(update={"limit": 1}), tmp_path).added == 2


def test_a_window_may_be_named_by_its_number(store: Store, news: PoolSpec, tmp_path: Path) -> None:
    window_id = store.evidence.save_window(Window("Norway", search="gdelt: court"))
    made = fill(store, PoolSpec(files="news.jsonl"), tmp_path, window_id=window_id)
    assert (made.window_id, made.held) == (window_id, 3)
    with pytest.raises(NotFoundError, match="99"):
        fill(store, PoolSpec(files="news.jsonl"), tmp_path, window_id=99)
    assert len(store.evidence.list_windows()) == 1


def test_files_that_cannot_be_read_make_no_window(store: Store, tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text('{"text": "x"}\n{')
    for name in ("missing.jsonl", "broken.jsonl"):
        with pytest.raises(DesignError, match=name):
            fill(store, PoolSpec(files=name, window=JANUARY), tmp_path)
    assert store.evidence.list_windows() == []


# --- searches ------------------------------------------------------------------------------------


def test_a_search_fills_a_window_up_to_its_limit_and_tells_how_far_it_is(
    store: Store, web: Web
) -> None:
    seen: list[tuple[int, int]] = []
    spec = feed(web, "budget", "fishery", "harbour", limit=2)
    made = fill(store, spec, watch=lambda done, wanted: seen.append((done, wanted)))
    assert held(store, made.window_id) == ["budget", "fishery"]
    assert seen
    assert all(done <= wanted for done, wanted in seen)


def test_two_searches_never_mix(store: Store, web: Web) -> None:
    one = fill(store, feed(web, "budget", path="/one"))
    two = fill(store, feed(web, "fishery", path="/two"))
    narrow = fill(store, feed(web, "budget", path="/one", query="budget"))
    assert len({one.window_id, two.window_id, narrow.window_id}) == 3
    assert held(store, one.window_id) == held(store, narrow.window_id) == ["budget"]
    assert held(store, two.window_id) == ["fishery"]


def test_searching_again_reads_no_page_twice_and_adds_what_is_new(store: Store, web: Web) -> None:
    first = fill(store, feed(web, "budget", "fishery"))
    again = fill(store, feed(web, "fishery", "harbour"))
    assert (again.window_id, again.added, again.held) == (first.window_id, 1, 3)
    assert held(store, first.window_id) == ["budget", "fishery", "harbour"]
    assert web.paths().count("/fishery") == 1


def test_what_was_dropped_is_neither_read_nor_added_again(store: Store, web: Web) -> None:
    spec = feed(web, "budget", "fishery")
    made = fill(store, spec)
    [budget, _] = store.evidence.window_items(made.window_id)
    store.evidence.drop(made.window_id, [budget.id])
    assert fill(store, spec).added == 0
    assert held(store, made.window_id) == ["fishery"]
    assert web.paths().count("/budget") == 1


def test_a_search_that_failed_is_on_record_and_has_still_to_be_made(store: Store, web: Web) -> None:
    spec = feed(web, "budget")
    window = window_of(spec)
    assert window is not None
    assert collected_window(store, window) is None
    web.on("/feed", Answer("gone", 410))
    made = fill(store, spec)
    with pytest.raises(SourceError, match=r"HTTP 410$"):
        made.raise_error()
    [record] = store.evidence.collections(made.window_id)
    assert "HTTP 410" in record["error"]
    assert collected_window(store, window) is None
    feed(web, "budget")
    fill(store, spec).raise_error()
    assert collected_window(store, window) == made.window_id
    web.on("/feed", Answer("gone", 410))
    fill(store, spec)
    assert collected_window(store, window) == made.window_id, "it came to its end once"


def test_what_came_before_a_fault_is_kept(store: Store, web: Web) -> None:
    whole = feed(web, "budget")
    broken = web.on("/broken", Answer("no feed"))
    spec = whole.model_copy(update={"feeds": [*whole.addresses, broken]})
    made = fill(store, spec)
    assert made.found.error
    assert held(store, made.window_id) == ["budget"]
    with pytest.raises(SourceError, match=rf"1 items.*window {made.window_id}.*same command"):
        made.raise_error()


def test_a_search_that_finds_nothing_has_been_made(store: Store, web: Web) -> None:
    spec = feed(web)
    made = fill(store, spec)
    made.raise_error()
    window = window_of(spec)
    assert window is not None
    assert collected_window(store, window) == made.window_id
    assert held(store, made.window_id) == []


def test_an_interrupted_search_keeps_what_it_read_and_goes_on(store: Store, web: Web) -> None:
    def interrupt(asked: Asked) -> Answer:
        time.sleep(0.2)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return Answer("late", delay=5)

    spec = feed(web, "budget", "fishery")
    web.on("/fishery", interrupt)
    made = fill(store, spec)
    assert made.found.interrupted
    assert held(store, made.window_id) == ["budget"]
    [record] = store.evidence.collections(made.window_id)
    assert record["error"] == "interrupted"
    window = window_of(spec)
    assert window is not None
    assert collected_window(store, window) is None
    feed(web, "budget", "fishery")
    again = fill(store, spec)
    assert (again.added, held(store, made.window_id)) == (1, ["budget", "fishery"])
    assert web.paths().count("/budget") == 1


def test_gdelt_is_asked_for_the_query_in_the_windows_dates(
    store: Store, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    article = {"url": web.on("/a", page("budget", story("budget"))), "title": "budget",
               "seendate": "20260110T080000Z", "sourcecountry": "Norway"}  # fmt: skip
    answer = Answer(json.dumps({"articles": [article]}), type=JSON)
    monkeypatch.setenv("JUDGE_GYM_GDELT_URL", web.on("/gdelt", answer))
    made = fill(store, PoolSpec(gdelt="court", window=JANUARY))
    assert (made.source, held(store, made.window_id)) == ("gdelt", ["budget"])
    [asked] = [asked for asked in web.asked if asked.path == "/gdelt"]
    assert asked.query["query"].split()[0] == "court"
    assert asked.query["startdatetime"].startswith("20260101")
    assert asked.query["enddatetime"].startswith("20260131")
    assert store.evidence.find_window(made.window_id).search == "gdelt: court"


# --- odd cases -----------------------------------------------------------------------------------


def test_a_search_has_a_window_of_its_own(store: Store, news: PoolSpec, tmp_path: Path) -> None:
    id = store.evidence.save_window(Window("Norway"))
    with pytest.raises(DesignError, match="a search has its own window"):
        fill(store, PoolSpec(feeds="https://x.example/feed"), tmp_path, window_id=id)


def test_what_an_unfinished_search_found_counts_towards_its_limit(
    store: Store, web: Web, tmp_path: Path
) -> None:
    subjects = [f"subject{n}" for n in range(6)]
    items = [
        {"title": s, "link": web.on(f"/{s}", page(s, story(s))), "date": DAY} for s in subjects
    ]
    spec = PoolSpec(
        feeds=web.on("/feed", rss(*items, language="en-NO")),
        window=WindowSpec(country="Norway"),
        limit=3,
    )
    window = window_of(spec)
    assert window is not None
    id = store.evidence.save_window(window)
    store.evidence.add_to_window(id, [Evidence("kept", "Kept before the process was killed.")])
    assert fill(store, spec, tmp_path).held == 3
    assert fill(store, spec, tmp_path).held == 6, "a finished search may look for more"


def test_pages_that_cannot_be_had_for_the_most_part_leave_the_search_unfinished(
    store: Store, web: Web, tmp_path: Path
) -> None:
    items = [
        {"title": "t", "link": web.on(f"/{n}", Answer("", 503)), "date": DAY} for n in range(3)
    ]
    spec = PoolSpec(
        feeds=web.on("/feed", rss(*items, language="en-NO")), window=WindowSpec(country="Norway")
    )
    made = fill(store, spec, tmp_path)
    assert "3 of 3 pages cannot be fetched now: 3 HTTP 503" in made.found.error
    window = window_of(spec)
    assert window is not None and collected_window(store, window) is None


def test_there_is_no_window_zero(store: Store, news: PoolSpec, tmp_path: Path) -> None:
    for spec in (PoolSpec(files="news.jsonl"), news):
        with pytest.raises(NotFoundError, match="no window 0"):
            fill(store, spec, tmp_path, window_id=0)
    assert store.evidence.list_windows() == []
