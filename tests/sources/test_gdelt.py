"""GDELT: what is asked of it, what comes back, and every way in which it fails."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.records import Window
from judge_gym.sources.fetcher import Fetcher
from judge_gym.sources.gdelt import GdeltSource
from judge_gym.sources.search import SearchResult
from web import JSON, Answer, Asked, Web, page, story

JANUARY = Window("Norway", date(2026, 1, 1), date(2026, 1, 31))


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """GDELT, played by a server of its own."""
    with Web() as server:
        monkeypatch.setenv("JUDGE_GYM_GDELT_URL", f"{server.url}/doc")
        yield server


@pytest.fixture
def fetcher() -> Fetcher:
    return Fetcher(allow_private=True, timeout=30.0, backoff=0.01, attempts=2, max_bytes=200_000)


def rows(web: Web, *subjects: str, **fields: str) -> list[dict[str, str]]:
    return [
        {
            "url": web.on(f"/{subject}", page(subject, story(subject))),
            "url_mobile": "",
            "title": f"{subject} - in GDELT's words",
            "seendate": "20260110T031500Z",
            "domain": "wire.example",
            "language": "Norwegian",
            "sourcecountry": "Norway",
            **fields,
        }
        for subject in subjects
    ]


def answer(found: Any) -> Answer:
    return Answer(json.dumps({"articles": found}), type=JSON)


def search(
    fetcher: Fetcher,
    window: Window | None = JANUARY,
    query: str = "court",
    limit: int = 0,
    **more: Any,
) -> SearchResult:
    return GdeltSource(fetcher, **more).search(window, query, limit)


def titles(found: SearchResult) -> list[str]:
    return [item.title for item in found.items]


# --- what is asked -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "country", "asked"),
    [
        ("court", "Norway", "court sourcecountry:norway"),
        ("court", "USA", "court sourcecountry:unitedstates"),
        ("court", "Russia", "court sourcecountry:russia"),
        ("court", "South Korea", "court sourcecountry:southkorea"),
        ("court", "Ivory Coast", "court sourcecountry:IV"),
        ("court", "Valdoria", "court"),
        ("court OR judge", "UK", "(court OR judge) sourcecountry:unitedkingdom"),
        ("(court OR judge) law", "", "(court OR judge) law"),
        ('"supreme court" -sports', "", '"supreme court" -sports'),
        ("theme:PROTEST court", "", "theme:PROTEST court"),
    ],
)
def test_a_query_is_put_in_gdelts_grammar(
    api: Web, fetcher: Fetcher, query: str, country: str, asked: str
) -> None:
    api.on("/doc", answer([]))
    search(fetcher, Window(country), query)
    assert api.asked[0].query == {
        "query": asked,
        "mode": "ArtList",
        "format": "json",
        "maxrecords": "250",
    }


def test_the_dates_are_asked_for_from_the_first_second_to_the_last(
    api: Web, fetcher: Fetcher
) -> None:
    api.on("/doc", answer([]))
    search(fetcher)
    query = api.asked[0].query
    assert (query["startdatetime"], query["enddatetime"]) == ("20260101000000", "20260131235959")


def test_more_than_one_request_can_bring_splits_the_days(api: Web, fetcher: Fetcher) -> None:
    api.on("/doc", answer([]))
    search(fetcher, limit=700)
    spans = [
        (asked.query["startdatetime"][:8], asked.query["enddatetime"][:8]) for asked in api.asked
    ]
    assert spans == [("20260101", "20260110"), ("20260111", "20260120"), ("20260121", "20260131")]


def test_a_day_is_not_split(api: Web, fetcher: Fetcher) -> None:
    api.on("/doc", answer([]))
    search(fetcher, Window("Norway", date(2026, 1, 1), date(2026, 1, 1)), limit=9000)
    assert len(api.asked) == 1


@pytest.mark.parametrize("query", ["", "  ", "-sports", '""', "OR"])
def test_a_query_is_needed(api: Web, fetcher: Fetcher, query: str) -> None:
    with pytest.raises(DesignError, match="GDELT needs a query"):
        search(fetcher, query=query)
    assert api.asked == []


def test_the_endpoint_may_be_private_and_its_articles_not(api: Web, web: Web) -> None:
    api.on("/doc", answer(rows(web, "budget")))
    found = search(Fetcher(attempts=1))
    assert found.dropped == {"private address": 1}
    assert web.asked == []
    assert [asked.path for asked in api.asked] == ["/doc"]


# --- what is found -------------------------------------------------------------------------------


def test_articles_are_read_from_their_pages(api: Web, web: Web, fetcher: Fetcher) -> None:
    api.on("/doc", answer(rows(web, "budget", "fishery")))
    found = search(fetcher)
    assert titles(found) == ["budget", "fishery"]
    first = found.items[0]
    assert story("budget") in first.text
    assert (first.date, first.url) == ("2026-01-10T03:15:00Z", f"{web.url}/budget")
    assert first.metadata == {"country": "NO", "language": "Norwegian"}
    assert (found.dropped, found.error) == ({}, "")


def test_an_outlet_of_the_country_may_write_of_anything(
    api: Web, web: Web, fetcher: Fetcher
) -> None:
    web.on("/a", page("Retten", "Retten avsa dom i går, og saken er avgjort. " * 8))
    api.on("/doc", answer([{"url": f"{web.url}/a", "seendate": "20260110T000000Z",
                            "sourcecountry": "Norway"}]))  # fmt: skip
    assert titles(search(fetcher, query="court ruling")) == ["Retten"]


def test_a_limit_ends_the_fetching(api: Web, web: Web) -> None:
    api.on("/doc", answer(rows(web, *[f"subject{n}" for n in range(9)])))
    found = search(Fetcher(allow_private=True, concurrency=1), limit=2)
    assert len(found.items) == 2
    assert found.dropped == {"beyond the limit": 7}
    assert len(web.paths()) == 2


def test_known_articles_are_not_fetched_again(api: Web, web: Web, fetcher: Fetcher) -> None:
    api.on("/doc", answer(rows(web, "budget", "fishery")))
    first = search(fetcher, limit=1)
    second = search(fetcher, known=first.items)
    assert titles(second) == ["fishery"]
    assert second.dropped == {"already there": 1}


def test_no_hit_is_an_empty_answer(api: Web, fetcher: Fetcher) -> None:
    api.on("/doc", Answer("{}", type=JSON))
    assert search(fetcher) == SearchResult(())


def test_control_characters_in_titles_do_no_harm(api: Web, web: Web, fetcher: Fetcher) -> None:
    text = answer(rows(web, "budget")).body
    assert isinstance(text, str)
    api.on("/doc", Answer(text.replace("in GDELT", "in\x01\t GDELT"), type=JSON))
    assert len(search(fetcher).items) == 1


def test_rows_without_an_address_or_a_date_do_no_harm(api: Web, web: Web, fetcher: Fetcher) -> None:
    api.on("/doc", answer([{}, "row", None, *rows(web, "budget", seendate="yesterday")]))
    found = search(fetcher)
    assert [(item.title, item.date) for item in found.items] == [("budget", "")]


# --- failures ------------------------------------------------------------------------------------

SLOW_DOWN = "Please limit requests to one every 5 seconds or contact the authors."


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (Answer("no", 401), "GDELT: HTTP 401"),
        (Answer("pay", 402), "GDELT: HTTP 402"),
        (Answer("no", 429, headers={"Retry-After": "0"}), "GDELT: HTTP 429"),
        (
            Answer("no", 429, headers={"Retry-After": "900"}),
            "GDELT: HTTP 429: the server asks to wait 900 s",
        ),
        (Answer("no", 500), "GDELT: HTTP 500"),
        (Answer("late", delay=9), "GDELT: timed out after 1 s"),
        (Answer('{"articles": [', type=JSON, missing=50), "GDELT: truncated"),
        (Answer('{"articles": [', type=JSON), "GDELT: it answers '{\"articles\": ['"),
        (Answer(SLOW_DOWN, type="text/html"), f"GDELT: it answers {SLOW_DOWN!r}"),
        (
            Answer("<html><style>p {}</style><body><p>Your query was too short.</p></body></html>"),
            "GDELT: it answers 'Your query was too short.'",
        ),
        (Answer("[1, 2]", type=JSON), "GDELT: it answers '[1, 2]'"),
        (Answer('{"articles": 3}', type=JSON), "GDELT: it answers '{\"articles\": 3}'"),
        (Answer("", type=JSON), "GDELT: its answer is empty"),
        (Answer(b"x" * 100_000, type=JSON, repeat=500), "GDELT: larger than 0.2 MB"),
    ],
    ids=lambda value: value[7:30] if isinstance(value, str) else "",
)
def test_failure_of_gdelt_is_reported_and_earlier_hits_are_kept(
    api: Web, web: Web, bad: Answer, fault: str
) -> None:
    timeout = 1.0 if bad.delay else 30.0
    fetcher = Fetcher(
        allow_private=True, timeout=timeout, backoff=0.01, attempts=2, max_bytes=200_000
    )
    api.on("/doc", answer(rows(web, "budget", "fishery")), bad)
    found = search(fetcher, limit=500)
    assert titles(found) == ["budget", "fishery"]
    assert found.error == fault
    assert not found.interrupted


def test_long_words_of_gdelt_are_shortened(api: Web, fetcher: Fetcher) -> None:
    api.on("/doc", Answer("Sorry. " * 1000))
    assert len(search(fetcher).error) < 250


def test_temporary_failure_is_not_reported(api: Web, web: Web, fetcher: Fetcher) -> None:
    api.on("/doc", Answer("no", 503), answer(rows(web, "budget")))
    found = search(fetcher)
    assert (titles(found), found.error) == (["budget"], "")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Answer("no", 403), "HTTP 403"),
        (Answer("no", 500), "HTTP 500"),
        (Answer("half", missing=9), "truncated"),
        (Answer(b"<p>" + b"x" * 99_997, repeat=500), "larger than 0.2 MB"),
        (Answer("<html></html>"), "no article text"),
    ],
)
def test_a_page_that_fails_costs_only_itself(
    api: Web, web: Web, fetcher: Fetcher, bad: Answer, reason: str
) -> None:
    api.on("/doc", answer(rows(web, "budget", "fishery", "harbour")))
    web.on("/fishery", bad)
    found = search(fetcher)
    assert titles(found) == ["budget", "harbour"]
    assert found.dropped == {reason: 1}


def test_secrets_of_the_endpoint_stay_out_of_every_text(
    api: Web, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.on("/doc", Answer("no", 500))
    url = f"http://anna:hidden@127.0.0.1:{api.port}/doc?key=hidden"
    monkeypatch.setenv("JUDGE_GYM_GDELT_URL", url)
    found = search(fetcher)
    assert found.error == "GDELT: HTTP 500"
    assert api.asked[0].query["key"] == "hidden"


def test_ctrl_c_keeps_the_articles_that_were_read(api: Web, web: Web, fetcher: Fetcher) -> None:
    def interrupt(asked: Asked) -> Answer:
        time.sleep(0.3)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return Answer("late", delay=60)

    api.on("/doc", answer(rows(web, "budget", "fishery", "harbour")))
    web.on("/fishery", interrupt)
    found = search(fetcher)
    assert found.interrupted
    assert titles(found) == ["budget"]
