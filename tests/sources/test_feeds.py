"""Feeds: entries become articles, and whatever fails is told while the rest is kept."""

import signal
import threading
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window
from judge_gym.sources.articles import extract_article
from judge_gym.sources.feeds import FeedSource
from judge_gym.sources.fetcher import Fetcher
from judge_gym.sources.search import SearchResult
from tables import each_row
from web import RSS, Answer, Asked, Web, page, rss, story

JANUARY = Window("Norway", date(2026, 1, 1), date(2026, 1, 31))
DAY = "Sat, 10 Jan 2026 08:00:00 GMT"


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture
def fetcher() -> Fetcher:
    return Fetcher(allow_private=True, timeout=30.0, backoff=0.01, max_bytes=200_000)


def impatient(answer: Answer) -> Fetcher:
    """One that gives up soon on a late answer; the others have the time of a busy machine."""
    timeout = 1.0 if answer.delay else 30.0
    return Fetcher(allow_private=True, timeout=timeout, backoff=0.01, attempts=2, max_bytes=200_000)


def put(web: Web, *subjects: str, **fields: str) -> list[dict[str, str]]:
    """Pages of these subjects; the items of a feed that lead to them."""
    return [
        {
            "title": subject,
            "link": web.on(f"/{subject}", page(subject, story(subject))),
            "date": DAY,
            **fields,
        }
        for subject in subjects
    ]


def search(
    urls: str | list[str], fetcher: Fetcher, query: str = "", limit: int = 0, **more: Any
) -> SearchResult:
    listed = [urls] if isinstance(urls, str) else urls
    return FeedSource(listed, fetcher, **more).search(JANUARY, query, limit)


def titles(found: SearchResult) -> list[str]:
    return [item.title for item in found.items]


# --- what is found -------------------------------------------------------------------------------


def test_entries_become_articles_in_their_order(web: Web, fetcher: Fetcher) -> None:
    feed = web.on("/feed", rss(*put(web, "budget", "fishery", "harbour"), language="nb-NO"))
    found = search(feed, fetcher)
    assert titles(found) == ["budget", "fishery", "harbour"]
    first = found.items[0]
    assert first.url == f"{web.url}/budget"
    assert story("budget") in first.text
    assert "About us" not in first.text
    assert (first.date, first.source) == ("2026-01-10T08:00:00Z", "The Wire")
    assert first.metadata == {"feed": feed, "country": "NO"}
    assert (found.dropped, found.error, found.interrupted) == ({}, "", False)


def test_atom_is_a_feed_too(web: Web, fetcher: Fetcher) -> None:
    link = web.on("/a", page("Budget", story("budget")))
    atom = (
        '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Wire</title><entry>'
        f'<title>Budget</title><link href="{link}"/><updated>2026-01-05T10:00:00+02:00</updated>'
        "</entry></feed>"
    )
    found = search(web.on("/atom", Answer(atom, type="application/atom+xml")), fetcher)
    assert [(item.title, item.date) for item in found.items] == [("Budget", "2026-01-05T08:00:00Z")]


def test_a_relative_link_starts_at_the_feed(web: Web, fetcher: Fetcher) -> None:
    web.on("/news/a", page("Budget", story("budget")))
    feed = web.on("/news/feed", rss({"title": "Budget", "link": "a", "date": DAY}))
    assert titles(search(feed, fetcher)) == ["Budget"]


def test_pages_outside_the_dates_are_not_fetched(web: Web, fetcher: Fetcher) -> None:
    old, new = put(web, "old", "new")
    old["date"] = "Wed, 31 Dec 2025 23:59:59 GMT"
    found = search(web.on("/feed", rss(old, new)), fetcher)
    assert titles(found) == ["new"]
    assert found.dropped == {"outside the dates": 1}
    assert "/old" not in web.paths()


def test_an_entry_without_a_date_has_the_date_of_its_page(web: Web, fetcher: Fetcher) -> None:
    web.on("/in", page("in", story("in"), date="2026-01-31T23:00:00Z"))
    web.on("/out", page("out", story("out"), date="2026-02-01T01:00:00Z"))
    web.on("/never", page("never", story("never")))
    items = [{"title": name, "link": f"{web.url}/{name}"} for name in ("in", "out", "never")]
    found = search(web.on("/feed", rss(*items)), fetcher)
    assert [(item.title, item.date) for item in found.items] == [("in", "2026-01-31")]
    assert found.dropped == {"outside the dates": 1, "no date": 1}


def test_the_query_is_looked_for_in_title_and_text(web: Web, fetcher: Fetcher) -> None:
    feed = web.on("/feed", rss(*put(web, "budget", "fishery", "harbour")))
    found = search(feed, fetcher, 'fishery OR "session 3 of the harbour"')
    assert titles(found) == ["fishery", "harbour"]
    assert found.dropped == {"not in the query": 1}


def test_articles_about_another_country_are_dropped(web: Web, fetcher: Fetcher) -> None:
    link = web.on("/a", page("Elections", "Voters in Peru went to the polls. " * 10))
    items = [*put(web, "budget"), {"title": "Elections", "link": link, "date": DAY}]
    found = search(web.on("/feed", rss(*items)), fetcher)
    assert titles(found) == ["budget"]
    assert found.dropped == {"another country": 1}


def test_a_language_is_no_country(web: Web, fetcher: Fetcher) -> None:
    """Norwegian is "no", and "sv" is Swedish, not El Salvador."""
    link = web.on("/a", page("Valg", "Valget er i gang, og lokalene er åpne. " * 8))
    item = {"title": "Valg", "link": link, "date": DAY}
    assert search(web.on("/feed", rss(item, language="no")), fetcher).items == ()
    assert len(search(web.on("/feed", rss(item, language="nb_NO")), fetcher).items) == 1


def test_a_limit_ends_the_fetching(web: Web) -> None:
    fetcher = Fetcher(allow_private=True, concurrency=2)
    names = [f"subject{n}" for n in range(12)]
    found = search(web.on("/feed", rss(*put(web, *names))), fetcher, limit=3)
    assert titles(found) == names[:3]
    assert found.dropped == {"beyond the limit": 9}
    assert len(web.paths()) == 1 + 3


def test_what_is_dropped_is_made_up_for(web: Web) -> None:
    fetcher = Fetcher(allow_private=True, concurrency=2)
    items = put(web, "a1", "a2", "a3", "a4", "a5")
    web.on("/a1", Answer("no", 404))
    web.on("/a2", Answer("no", 404))
    found = search(web.on("/feed", rss(*items)), fetcher, limit=3)
    assert titles(found) == ["a3", "a4", "a5"]
    assert found.dropped == {"HTTP 404": 2}


def test_known_pages_are_not_fetched_again(web: Web, fetcher: Fetcher) -> None:
    items = put(web, "budget", "fishery")
    feed = web.on("/feed", rss(*items))
    first = search(feed, fetcher, limit=1)
    items[0]["link"] += "?utm_source=rss#top"
    web.on("/feed", rss(*items))
    second = search(feed, fetcher, known=first.items)
    assert titles(second) == ["fishery"]
    assert second.dropped == {"already there": 1}
    assert web.paths().count("/budget") == 1


def test_a_page_that_moved_is_known_by_both_addresses(web: Web, fetcher: Fetcher) -> None:
    web.on("/short", Answer("", 302, headers={"Location": "/long"}))
    web.on("/long", page("budget", story("budget")))
    feed = web.on("/feed", rss({"title": "budget", "link": f"{web.url}/short", "date": DAY}))
    first = search(feed, fetcher)
    [item] = first.items
    assert (item.url, item.metadata["link"]) == (f"{web.url}/long", f"{web.url}/short")
    assert search(feed, fetcher, known=first.items).dropped == {"already there": 1}
    assert web.paths().count("/long") == 1


def test_article_in_two_feeds_is_kept_once(web: Web, fetcher: Fetcher) -> None:
    items = put(web, "budget")
    again = [{**items[0], "link": items[0]["link"] + "?utm_medium=feed"}]
    found = search([web.on("/one", rss(*items)), web.on("/two", rss(*again))], fetcher)
    assert titles(found) == ["budget"]
    assert found.dropped == {"same address": 1}


def test_progress_is_reported(web: Web, fetcher: Fetcher) -> None:
    told: list[tuple[int, int]] = []
    feed = web.on("/feed", rss(*put(web, "budget", "fishery", "harbour")))
    search(feed, fetcher, on_progress=lambda done, wanted: told.append((done, wanted)))
    assert told == [(1, 3), (2, 3), (3, 3)]


# --- the feed's own text -------------------------------------------------------------------------


def test_full_text_in_the_feed_replaces_a_page_that_fails(web: Web, fetcher: Fetcher) -> None:
    content = f"<p>{story('budget', 12)}</p><script>alert(1)</script>"
    item = {"title": "budget", "link": f"{web.url}/gone", "date": DAY, "content": content}
    found = search(web.on("/feed", rss(item)), fetcher)
    assert [item.text for item in found.items] == [story("budget", 12)]
    assert found.notes == (f"{web.url}/gone: HTTP 404; the text is the feed's own",)
    assert found.items[0].url == f"{web.url}/gone"


def test_a_teaser_does_not(web: Web, fetcher: Fetcher) -> None:
    item = {"title": "budget", "link": f"{web.url}/gone", "date": DAY, "description": story("x", 2)}
    found = search(web.on("/feed", rss(item)), fetcher)
    assert (found.items, found.dropped) == ((), {"HTTP 404": 1})


def test_entries_without_a_link_live_by_their_text(web: Web, fetcher: Fetcher) -> None:
    items = [
        {"title": name, "date": DAY, "content": f"<p>{story(name, 12)}</p>"}
        for name in ("budget", "fishery")
    ]
    assert titles(search(web.on("/feed", rss(*items)), fetcher)) == ["budget", "fishery"]


# --- pages that fail -----------------------------------------------------------------------------

HUGE = Answer(b"<p>" + b"x" * 99_997, repeat=500)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("no", 401), "HTTP 401"),
        (Answer("pay", 402), "HTTP 402"),
        (Answer("no", 403), "HTTP 403"),
        (Answer("no", 404), "HTTP 404"),
        (Answer("no", 500), "HTTP 500"),
        (Answer("slow", 429, headers={"Retry-After": "0"}), "HTTP 429"),
        (Answer("late", delay=9), "timed out after 1 s"),
        (Answer("half", missing=100), "truncated"),
        (HUGE, "larger than 0.2 MB"),
        (Answer(b"%PDF", type="application/pdf"), "not HTML: application/pdf"),
        (Answer("<html><body></body></html>"), "no article text"),
        (Answer("", 302, headers={"Location": "gopher://x/"}), None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_page_that_fails_costs_only_itself(web: Web, answer: Answer, reason: str | None) -> None:
    fetcher = impatient(answer)
    items = put(web, "budget", "fishery", "harbour")
    web.on("/fishery", answer)
    found = search(web.on("/feed", rss(*items)), fetcher)
    assert titles(found) == ["budget", "harbour"]
    [dropped] = found.dropped
    assert dropped == (reason or dropped)
    assert found.notes[-1] == f"{web.url}/fishery: {dropped}"
    assert found.error == ""
    passing = dropped.startswith(("HTTP 5", "HTTP 429", "timed out", "truncated"))
    assert ("1 pages may be available later: search again for them" in found.notes) == passing


def test_a_page_that_recovers_is_kept(web: Web, fetcher: Fetcher) -> None:
    items = put(web, "budget")
    web.on("/budget", Answer("no", 500), Answer("half", missing=9), page("b", story("budget")))
    assert len(search(web.on("/feed", rss(*items)), fetcher).items) == 1


def test_a_host_that_asks_for_an_hour_is_left_alone(fetcher: Fetcher) -> None:
    with Web() as busy, Web() as web:
        items = [*put(busy, "budget", "fishery"), *put(web, "harbour")]
        for name in ("/budget", "/fishery"):
            busy.on(name, Answer("later", 429, headers={"Retry-After": "3600"}))
        found = search(web.on("/feed", rss(*items)), fetcher)
        assert titles(found) == ["harbour"]
        assert found.dropped == {"HTTP 429: the server asks to wait 3600 s": 2}
        assert len(busy.paths()) == 1


# --- feeds that fail -----------------------------------------------------------------------------


@each_row(
    ("answer", "reason"),
    [
        (Answer("no", 401), "HTTP 401"),
        (Answer("pay", 402), "HTTP 402"),
        (Answer("gone", 404), "HTTP 404"),
        (Answer("no", 500), "HTTP 500"),
        (Answer("no", 429, headers={"Retry-After": "3600"}), "HTTP 429: the server asks to wait"),
        (Answer("late", delay=9), "timed out after 1 s"),
        (Answer("<rss>", type=RSS, missing=100), "truncated"),
        (Answer(page("Home", story("home"))), "not a feed but text/html"),
        (Answer("{}", type="application/json"), "not a feed but application/json"),
        (Answer("", type=RSS), "not a feed but application/rss+xml"),
        (HUGE, "larger than 0.2 MB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_feed_that_fails_is_named_and_the_others_are_read(answer: Answer, reason: str) -> None:
    fetcher = impatient(answer)
    with Web() as bad, Web() as good:
        broken = bad.on("/broken", answer)
        feed = good.on("/feed", rss(*put(good, "budget")))
        found = search([broken, feed], fetcher)
    assert titles(found) == ["budget"]
    assert found.error.startswith(f"{broken}: {reason}")
    assert (found.dropped, found.interrupted) == ({}, False)


def test_what_a_cut_feed_still_says_is_used(web: Web, fetcher: Fetcher) -> None:
    whole = rss(*put(web, "budget", "fishery")).body
    assert isinstance(whole, str)
    cut = whole[: whole.index("<item>", whole.index("<item>") + 1) + 9]
    found = search(web.on("/feed", Answer(cut, type=RSS)), fetcher)
    assert titles(found)[:1] == ["budget"]
    assert found.error.endswith("/feed: the feed is cut off: its end is missing")


def test_a_host_that_asks_for_a_long_wait_leaves_the_search_unfinished(web: Web) -> None:
    items = put(web, "budget", "fishery", "harbour")
    for name in ("fishery", "harbour"):
        web.on(f"/{name}", Answer("slow down", 429, headers={"Retry-After": "3600"}))
    fetcher = Fetcher(allow_private=True, backoff=0.01)
    found = search(web.on("/feed", rss(*items)), fetcher)
    assert titles(found) == ["budget"]
    assert "asks to wait 3600 s" in found.error and "2 pages are left" in found.error


def test_a_token_in_the_link_of_an_article_is_not_kept(web: Web, fetcher: Fetcher) -> None:
    [item] = put(web, "budget")
    item["link"] += "?id=7&token=SECRETTOKEN"
    found = search(web.on("/feed", rss(item)), fetcher)
    assert [item.url for item in found.items] == [f"{web.url}/budget?id=7"]
    assert "SECRETTOKEN" not in repr(found)


def test_a_feed_whose_body_is_an_address_opens_nothing(
    web: Web, fetcher: Fetcher, tmp_path: Path
) -> None:
    secret = rss(*put(web, "budget"))
    web.on("/secret", secret)
    (tmp_path / "secret.xml").write_text(str(secret.body))
    for body in (f"{web.url}/secret", str(tmp_path / "secret.xml")):
        found = search(web.on("/feed", Answer(body, type=RSS)), fetcher)
        assert (found.items, found.dropped) == ((), {})
    assert web.paths() == ["/feed", "/feed"]


def test_a_feed_cannot_lead_into_private_space(web: Web, fetcher: Fetcher) -> None:
    """Without leave, neither a private feed nor a private page is read."""
    found = search(web.on("/feed", rss(*put(web, "budget"))), Fetcher(attempts=1))
    assert found.error == f"{web.url}/feed: private address; --allow-private allows it"
    assert web.asked == []


def test_robots_keep_us_from_pages(web: Web, fetcher: Fetcher) -> None:
    web.on("/robots.txt", Answer("User-agent: *\nDisallow: /budget\n", type="text/plain"))
    found = search(web.on("/feed", rss(*put(web, "budget", "fishery"))), fetcher)
    assert titles(found) == ["fishery"]
    assert found.dropped == {"robots.txt forbids it": 1}


def test_secrets_of_a_feed_stay_out_of_every_text(web: Web, fetcher: Fetcher) -> None:
    items = put(web, "budget", "gone")
    items[1]["link"] = f"http://anna:hidden@127.0.0.1:{web.port}/missing"
    web.on("/feed", rss(*items))
    base = f"http://anna:hidden@127.0.0.1:{web.port}"
    found = search([f"{base}/feed?token=hidden", f"{base}/none?token=hidden"], fetcher)
    assert len(found.items) == 1
    assert found.error
    assert "hidden" not in repr(found)


def test_no_feed_at_all_is_refused(fetcher: Fetcher) -> None:
    with pytest.raises(DesignError, match="no feed is named"):
        FeedSource([], fetcher)


# --- Ctrl-C --------------------------------------------------------------------------------------


def interrupt(asked: Asked) -> Answer:
    time.sleep(0.3)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    return Answer("late", delay=60)


def test_ctrl_c_keeps_the_articles_that_were_read(web: Web, fetcher: Fetcher) -> None:
    items = put(web, "budget", "fishery", "harbour", "tunnel")
    web.on("/harbour", interrupt)
    before = time.monotonic()
    found = search(web.on("/feed", rss(*items)), fetcher)
    assert found.interrupted
    assert titles(found) == ["budget", "fishery"]
    assert time.monotonic() - before < 30


def test_ctrl_c_in_the_middle_of_reading_a_page_does_not_lose_it(
    web: Web, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressed: list[str] = []

    def press(html: bytes | str, url: str = "") -> Evidence | None:
        pressed.append(url)
        if len(pressed) == 2:
            raise KeyboardInterrupt
        return extract_article(html, url)

    monkeypatch.setattr("judge_gym.sources.articles.extract_article", press)
    found = search(web.on("/feed", rss(*put(web, "budget", "fishery", "harbour"))), fetcher)
    assert (titles(found), found.interrupted) == (["budget", "fishery"], True)


def test_ctrl_c_while_feeds_are_read_ends_the_search(web: Web, fetcher: Fetcher) -> None:
    found = search(web.on("/feed", interrupt), fetcher)
    assert (found.items, found.interrupted, found.error) == ((), True, "")


def test_the_same_feeds_give_the_same_articles(web: Web) -> None:
    items = put(web, *[f"subject{n}" for n in range(10)])
    feed = web.on("/feed", rss(*items))
    first, second = (search(feed, Fetcher(allow_private=True), limit=7) for _ in range(2))
    assert first == second
    assert isinstance(first.items[0], Evidence)
