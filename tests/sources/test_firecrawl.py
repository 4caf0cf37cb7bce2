"""Firecrawl: what is asked and paid for, what comes back, and every way in which it fails."""

import builtins
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.records import Window
from judge_gym.sources.fetcher import Fetcher
from judge_gym.sources.firecrawl import FirecrawlSource
from judge_gym.sources.search import SearchResult
from web import JSON, Answer, Asked, Web, story

KEY = "fc-very-secret-key"
JANUARY = Window("Norway", date(2026, 1, 1), date(2026, 1, 31))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with Web() as server:
        monkeypatch.setenv("FIRECRAWL_API_KEY", KEY)
        monkeypatch.setenv("FIRECRAWL_API_URL", server.url)
        yield server


@pytest.fixture
def fetcher() -> Fetcher:
    return Fetcher(backoff=0.01, attempts=2, max_bytes=200_000)


def document(subject: str, text: str | None = None, **metadata: Any) -> dict[str, Any]:
    url = f"https://wire.example/{subject}"
    return {
        "url": url,
        "title": subject,
        "markdown": story(subject) if text is None else text,
        "metadata": {"title": subject, "sourceURL": url, "statusCode": 200, **metadata},
    }


def bare(subject: str) -> dict[str, Any]:
    return {"url": f"https://wire.example/{subject}", "title": subject, "snippet": "..."}


def answer(news: list[Any] | None = None, web: list[Any] | None = None) -> Answer:
    data: Mapping[str, Any] = {"news": news or [], "web": web or []}
    return Answer(json.dumps({"success": True, "data": data}), type=JSON)


def search(
    fetcher: Fetcher,
    window: Window | None = JANUARY,
    query: str = "court",
    limit: int = 0,
    **more: Any,
) -> SearchResult:
    return FirecrawlSource(fetcher, **more).search(window, query, limit)


def titles(found: SearchResult) -> list[str]:
    return [item.title for item in found.items]


# --- what is asked -------------------------------------------------------------------------------


def test_a_search_names_dates_country_and_what_to_scrape(api: Web, fetcher: Fetcher) -> None:
    api.on("/v2/search", answer())
    assert search(fetcher, limit=20) == SearchResult(())
    [asked] = api.asked
    sent = json.loads(asked.body)
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert sent["query"] == "court"
    assert [source["type"] for source in sent["sources"]] == ["news", "web"]
    assert (sent["limit"], sent["country"], sent["location"]) == (20, "NO", "Norway")
    assert sent["tbs"] == "cdr:1,cd_min:01/01/2026,cd_max:01/31/2026"
    assert sent["scrapeOptions"]["formats"] == ["markdown"]


def test_an_invented_country_and_open_dates_are_not_asked_for(api: Web, fetcher: Fetcher) -> None:
    api.on("/v2/search", answer())
    search(fetcher, Window("Valdoria"))
    assert not {"tbs", "country", "location"} & set(json.loads(api.asked[0].body))


def test_one_search_brings_a_hundred_at_most(api: Web, fetcher: Fetcher) -> None:
    api.on("/v2/search", answer())
    found = search(fetcher, limit=300)
    assert json.loads(api.asked[0].body)["limit"] == 100
    assert found.notes == ("Firecrawl gives at most 100 results a search",)


@pytest.mark.parametrize("query", ["", "  "])
def test_a_query_is_needed(api: Web, fetcher: Fetcher, query: str) -> None:
    with pytest.raises(DesignError, match="Firecrawl needs a query"):
        search(fetcher, query=query)
    assert api.asked == []


@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_key_is_needed(
    api: Web, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.delenv("FIRECRAWL_API_KEY")
    if key is not None:
        monkeypatch.setenv("FIRECRAWL_API_KEY", key)
    with pytest.raises(DesignError, match="set FIRECRAWL_API_KEY"):
        FirecrawlSource(fetcher)


def test_the_package_is_needed(api: Web, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("firecrawl"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(DesignError, match=r" install .*\[firecrawl\]"):
        FirecrawlSource(fetcher)


# --- what is found -------------------------------------------------------------------------------


def test_documents_become_articles_news_first(api: Web, fetcher: Fetcher) -> None:
    news = document(
        "budget", publishedTime="2026-01-05T10:00:00Z", ogSiteName="Wire", language="en"
    )
    api.on("/v2/search", answer([news], [document("fishery")]))
    found = search(fetcher)
    assert titles(found) == ["budget", "fishery"]
    first, second = found.items
    assert (first.text, first.url) == (story("budget"), "https://wire.example/budget")
    assert (first.date, first.source) == ("2026-01-05T10:00:00Z", "Wire")
    assert second.date == ""
    assert found.notes == ("'fishery' has no date",)


def test_results_that_were_not_scraped_are_counted(api: Web, fetcher: Fetcher) -> None:
    empty = document("empty", text="  ")
    api.on("/v2/search", answer([bare("one"), document("budget")], [bare("two"), empty]))
    found = search(fetcher)
    assert titles(found) == ["budget"]
    assert found.dropped == {"no text from firecrawl": 3}


def test_an_enormous_document_is_counted(api: Web, fetcher: Fetcher) -> None:
    api.on("/v2/search", answer([document("huge", text="Norway " * 50_000), document("budget")]))
    found = search(fetcher)
    assert titles(found) == ["budget"]
    assert found.dropped == {"larger than 0.2 MB": 1}


def test_what_does_not_belong_is_counted(api: Web, fetcher: Fetcher) -> None:
    api.on(
        "/v2/search",
        answer(
            [
                document("old", publishedTime="2025-12-01"),
                document("peru", text="Voters in Peru went to the polls."),
                document("budget"),
                document("budget"),
            ]
        ),
    )
    found = search(fetcher)
    assert titles(found) == ["budget"]
    assert found.dropped == {"outside the dates": 1, "another country": 1, "same address": 1}


def test_metadata_of_any_shape_does_no_harm(api: Web, fetcher: Fetcher) -> None:
    """A page that states its title twice has a list of them."""
    twice = document("budget", title=["Budget", "Budget"], ogSiteName=["Wire", "Wire again"])
    del twice["title"]
    none = {"markdown": story("fishery"), "metadata": None}
    api.on("/v2/search", answer([twice, none, 3, None]))
    found = search(fetcher)
    assert [item.text for item in found.items] == [story("budget"), story("fishery")]
    assert (found.items[0].title, found.items[0].source) == ("Budget", "Wire")


def test_a_limit_is_kept(api: Web, fetcher: Fetcher) -> None:
    api.on("/v2/search", answer([document(f"subject{n}") for n in range(5)]))
    found = search(fetcher, limit=2)
    assert titles(found) == ["subject0", "subject1"]
    assert found.dropped == {"beyond the limit": 3}


def test_known_articles_are_recognised(api: Web, fetcher: Fetcher) -> None:
    api.on("/v2/search", answer([document("budget"), document("fishery")]))
    first = search(fetcher, limit=1)
    second = search(fetcher, known=first.items)
    assert (titles(second), second.dropped) == (["fishery"], {"already there": 1})


def test_progress_is_reported(api: Web, fetcher: Fetcher) -> None:
    told: list[tuple[int, int]] = []
    api.on("/v2/search", answer([document("budget")], [bare("x")]))
    search(fetcher, on_progress=lambda done, wanted: told.append((done, wanted)))
    assert told == [(1, 2), (2, 2)]


# --- failures ------------------------------------------------------------------------------------


def failed(status: int, says: str = "", **headers: str) -> Answer:
    told = says or f"it went wrong with {KEY}"
    return Answer(json.dumps({"success": False, "error": told}), status, JSON, headers=headers)


@pytest.mark.parametrize(
    ("bad", "fault", "asked"),
    [
        (failed(400, "bad tbs"), "Firecrawl: HTTP 400: bad tbs", 1),
        (failed(401), "Firecrawl: HTTP 401: the key is not accepted", 1),
        (failed(402), "Firecrawl: HTTP 402: the credits are used up", 1),
        (failed(429, **{"Retry-After": "0"}), "Firecrawl: HTTP 429: it went wrong with ...", 2),
        (
            failed(429, **{"Retry-After": "900"}),
            "Firecrawl: HTTP 429: the server asks to wait 900 s",
            1,
        ),
        (failed(500), "Firecrawl: HTTP 500: it went wrong", 1),
        (failed(502), "Firecrawl: HTTP 502: ", 1),
        (Answer("<html>busy</html>", 503), "Firecrawl: HTTP 503", 2),
        (failed(200, "no such thing"), "Firecrawl: HTTP 200: no such thing", 1),
        (Answer("x", delay=9), "Firecrawl: timed out after 1.5 s", 1),
        (Answer('{"success"', type=JSON, missing=99), "Firecrawl: its answer is truncated", 1),
        (Answer("<html>Welcome</html>"), "Firecrawl: its answer is not JSON", 1),
        (Answer("[]", type=JSON), "Firecrawl: HTTP 200: its answer cannot be read", 1),
    ],
    ids=lambda value: value[11:40] if isinstance(value, str) else "",
)
def test_failure_is_reported_without_the_key_and_retried_only_if_it_was_free(
    api: Web, fetcher: Fetcher, bad: Answer, fault: str, asked: int
) -> None:
    api.on("/v2/search", bad)
    found = search(fetcher, timeout=1.5 if bad.delay else 30)
    assert found.items == ()
    assert found.error.startswith(fault)
    assert len(api.asked) == asked
    assert KEY not in repr(found)


@pytest.mark.parametrize("bad", [failed(429), failed(503)], ids=["429", "503"])
def test_temporary_failure_is_not_reported(api: Web, fetcher: Fetcher, bad: Answer) -> None:
    api.on("/v2/search", bad, answer([document("budget")]))
    found = search(fetcher)
    assert (titles(found), found.error) == (["budget"], "")


def test_a_short_wait_that_the_server_asks_for_is_kept(api: Web) -> None:
    api.on("/v2/search", failed(429, **{"Retry-After": "1"}), answer([document("budget")]))
    assert len(search(Fetcher(backoff=30)).items) == 1
    first, second = (asked.at for asked in api.asked)
    assert 0.9 < second - first < 5


def test_unreachable_service_is_reported(
    api: Web, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("FIRECRAWL_API_URL", f"http://anna:hidden@127.0.0.1:{port}")
    found = search(fetcher)
    assert found.error == f"Firecrawl: cannot connect to http://127.0.0.1:{port}"


def test_ctrl_c_ends_the_search(api: Web, fetcher: Fetcher) -> None:
    def interrupt(asked: Asked) -> Answer:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return Answer("late", delay=60)

    api.on("/v2/search", interrupt)
    before = time.monotonic()
    found = search(fetcher)
    assert (found.items, found.interrupted, found.error) == ((), True, "")
    assert time.monotonic() - before < 30
