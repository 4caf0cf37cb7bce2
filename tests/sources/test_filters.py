"""Filters: each text once, of the dates and the country of a window, matching the query."""

import re
import unicodedata
from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window
from judge_gym.sources import deduplication
from judge_gym.sources.deduplication import canonical_url
from judge_gym.sources.filters import EvidenceFilter, Query, read_date
from judge_gym.sources.search import SearchResult
from tables import each_row
from web import story

JANUARY = Window("", date(2026, 1, 1), date(2026, 1, 31))
NORWAY = Window("Norway")


def text(subject: str, url: str = "", **fields: Any) -> Evidence:
    return Evidence(subject, story(subject), url, **fields)


def filtered(items: Iterable[Evidence], window: Window | None, **options: Any) -> SearchResult:
    """Returns the result of a filter for all items."""
    kept = EvidenceFilter(window, **options)
    for item in items:
        kept.add(item)
    return kept.result()


def kept(found: SearchResult) -> list[str]:
    return [item.title for item in found.items]


# --- duplicates ----------------------------------------------------------------------------------


@each_row(
    "url",
    [
        "https://example.com/a",
        "http://example.com/a",
        "https://www.example.com/a",
        "HTTPS://Example.COM:443/a/",
        "https://example.com/a#top",
        "https://example.com/a?utm_source=x&utm_medium=y",
        "https://example.com/a?fbclid=123",
        "https://anna:secret@example.com/a",
        " https://example.com/a ",
    ],
)
def test_an_address_is_the_same_however_it_is_decorated(url: str) -> None:
    assert canonical_url(url) == "example.com/a"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("https://example.com/a?id=1", "https://example.com/a?id=2"),
        ("https://example.com/?101", "https://example.com/?102"),
        ("https://example.com/a", "https://example.com/A"),
        ("https://example.com:8080/a", "https://example.com/a"),
        ("https://en.example.com/a", "https://no.example.com/a"),
        ("http://[::1", "http://[::2"),
    ],
)
def test_addresses_of_different_articles_stay_apart(one: str, two: str) -> None:
    assert canonical_url(one) != canonical_url(two)


@given(st.text(max_size=60))
def test_any_address_has_a_canonical_form(url: str) -> None:
    canonical_url(url)
    canonical_url(f"https://{url}")


@pytest.mark.parametrize("searched", [True, False])
def test_an_address_and_a_text_stand_once(searched: bool) -> None:
    found = filtered(
        [
            text("first", "https://x.no/1"),
            text("second", "http://www.x.no/1/?utm_source=feed"),
            Evidence("third", story("first").replace(" ", "\n  ")),
            text("fourth", "https://x.no/4"),
        ],
        None,
        searched=searched,
    )
    assert kept(found) == ["first", "fourth"]
    assert found.dropped == {"same address": 1, "same text": 1}


def test_texts_without_an_address_do_not_share_one() -> None:
    assert len(filtered([text("a"), text("b")], None, searched=True).items) == 2


def test_what_the_window_holds_is_not_taken_again() -> None:
    known = [text("a", "https://x.no/1", metadata={"link": "https://t.co/z"}), text("b")]
    found = filtered(
        [
            Evidence("same address", "Other words.", "https://x.no/1"),
            Evidence("moved address", "Yet other words.", "https://t.co/z"),
            Evidence("same text", story("b"), "https://x.no/2"),
            text("c"),
        ],
        None,
        searched=True,
        known=known,
    )
    assert kept(found) == ["c"]
    assert found.dropped == {"already there": 3}


def test_a_copy_of_what_was_dropped_is_judged_by_itself() -> None:
    old, new = text("a", date="2025-01-01"), text("a", date="2026-01-05")
    found = filtered([old, new], JANUARY, searched=True)
    assert (found.items, found.dropped) == ((new,), {"outside the dates": 1})


@pytest.mark.parametrize("empty", ["", "  ", "\n\t\u00a0"])
def test_a_text_without_words_is_dropped(empty: str) -> None:
    found = filtered([Evidence("x", empty)], None, searched=False)
    assert found.dropped == {"empty text": 1}


def test_what_no_database_can_hold_is_mended() -> None:
    found = filtered(
        [Evidence("Half \ud83d", "A face \ud83d and a zero \0 byte.")], None, searched=True
    )
    assert found.items == (Evidence("Half ?", "A face ? and a zero  byte."),)


def test_pairs_differ_by_their_responses() -> None:
    pairs = [Evidence("p", "Which?", responses=("yes", end)) for end in ("no", "never", "no")]
    found = filtered(pairs, None, searched=False)
    assert (len(found.items), found.dropped) == (2, {"same text": 1})


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a", "http://www.example.com/", "https://example.com/a/../b",
        "https://example.com/./a", "https://example.com/a.b-c_d~e/", "https://example.com/../a",
        "https://xn--bcher-kva.example/a", "https://example.com:443/a", "https://example.com/a//b",
        "https://example.com/a?b=1", "https://www.", "https://example.com/..a/...",
    ],
)  # fmt: skip
def test_plain_addresses_are_the_same_with_and_without_normalisation(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_form = canonical_url(url)
    monkeypatch.setattr(deduplication, "PLAIN_URL", re.compile("(?!)()"))
    assert canonical_url(url) == by_form


# --- near-duplicates -----------------------------------------------------------------------------

LONG = " ".join(f"Sentence {n} tells of matter {n * 7} in the chamber." for n in range(60))
CHINESE = (
    "最高法院周一裁定该法律符合宪法，反对派表示将继续上诉。"
    "政府发言人对此表示欢迎，并说新规定将于下月生效。"
)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (LONG, LONG.replace("Sentence 30 ", "Phrase 30 ")),
        (LONG, LONG + " Updated at noon."),
        (LONG, LONG.upper()),
        ("The court ruled, again.", "the court ruled again"),
        ("Rain.", "RAIN!"),
        (CHINESE * 3, (CHINESE * 3).replace("下月", "明年", 1)),
        (CHINESE, CHINESE + "（记者）"),
    ],
    ids=["a word", "a line more", "capitals", "short", "one word", "Chinese", "Chinese end"],
)
def test_near_copies_are_dropped_from_searches_and_noted_for_files(one: str, two: str) -> None:
    items = [Evidence("one", one), Evidence("two", two)]
    searched = filtered(items, None, searched=True)
    assert (kept(searched), searched.dropped) == (["one"], {"nearly the same text": 1})
    files = filtered(items, None, searched=False)
    assert (kept(files), files.dropped) == (["one", "two"], {})
    assert files.notes == ("'two' is nearly the same as 'one'",)
    again = filtered(items[1:], None, searched=True, known=items[:1])
    assert again.dropped == {"nearly the same text": 1}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (LONG, " ".join(f"Verse {n} sings of town {n * 3} by the sea." for n in range(60))),
        (LONG, LONG[: len(LONG) // 2]),
        ("The court ruled.", "The court adjourned."),
        ("Rain.", "Snow."),
        ("!!!", "???"),
        (
            CHINESE,
            "昨天的足球比赛吸引了五万名观众，主队以三比一获胜。教练赛后说球员们表现出色，下一场将在客场进行。",
        ),
    ],
    ids=["long", "half", "short", "one word", "no word", "Chinese"],
)
def test_different_texts_are_kept(one: str, two: str) -> None:
    found = filtered([Evidence("one", one), Evidence("two", two)], None, searched=True)
    assert (kept(found), found.notes) == (["one", "two"], ())


def test_texts_in_one_call_are_filtered_as_one_by_one() -> None:
    """Of several lengths and scripts, so that texts that are sketched together differ in kind."""
    texts = [
        LONG * 40,
        CHINESE,
        "Rain.",
        LONG,
        "RAIN!",
        "!!!",
        CHINESE + "（记者）",
        "a b",
        "a B",
        "",
    ]
    items = [Evidence(str(number), text) for number, text in enumerate(texts)]
    together = EvidenceFilter(None, searched=True)
    assert together.add_all(items) == 5
    assert together.result() == filtered(items, None, searched=True)


# --- dates ---------------------------------------------------------------------------------------


@each_row(
    ("when", "inside"),
    [
        ("2026-01-01", True),
        ("2026-01-31", True),
        ("2026-01-31T23:59:59Z", True),
        ("2026-01-31T23:30:00-05:00", True),
        ("20260105T031500Z", True),
        ("2026-01-05 10:00 CET", True),
        ("2025-12-31", False),
        ("2026-02-01T00:00:00Z", False),
    ],
)
@each_row("searched", [True, False])
def test_both_ends_of_the_dates_belong_to_them(when: str, inside: bool, searched: bool) -> None:
    found = filtered([text("a", date=when)], JANUARY, searched=searched)
    assert found.dropped == ({} if inside else {"outside the dates": 1})


def test_dates_may_be_open_at_one_end() -> None:
    items = [text("old", date="2020-01-01"), text("new", date="2030-01-01")]
    assert kept(filtered(items, Window("", start=date(2026, 1, 1)), searched=True)) == ["new"]
    assert kept(filtered(items, Window("", end=date(2026, 1, 1)), searched=True)) == ["old"]


@pytest.mark.parametrize("when", ["", "last week", "2026-13-45", "Jan 5, 2026"])
def test_without_a_date_a_search_drops_and_a_file_is_kept_with_a_note(when: str) -> None:
    items = [text("a", date=when)]
    assert filtered(items, JANUARY, searched=True).dropped == {"no date": 1}
    for found in (
        filtered(items, JANUARY, searched=False),
        filtered(items, JANUARY, searched=True, dates_checked=True),
    ):
        odd = f"the date {when!r}, which is not understood: write YYYY-MM-DD"
        assert (found.dropped, found.notes) == ({}, (f"'a' has {odd if when else 'no date'}",))


@pytest.mark.parametrize(
    ("when", "inside"),
    [("2026", True), ("2026-01", True), ("2025", False), ("2025-12", False), ("2026-02", False)],
)
def test_a_year_or_a_month_belongs_to_the_window_if_a_day_of_it_does(
    when: str, inside: bool
) -> None:
    found = filtered([text("a", date=when)], JANUARY, searched=False)
    assert (found.dropped, found.notes) == ({} if inside else {"outside the dates": 1}, ())


def test_callback_gets_each_item_as_soon_as_it_is_kept() -> None:
    given: list[Evidence] = []
    kept = EvidenceFilter(JANUARY, searched=False, on_item=given.append)
    for title in ("a", "b"):
        kept.add(text(title, date="2026-01-05"))
        assert given[-1].title == title
    kept.add(text("c", date="2027-01-05"))
    assert [item.title for item in given] == ["a", "b"]


def test_another_text_under_a_known_address_is_reported() -> None:
    known = [text("a", url="https://x.example/1", date="2026-01-05")]
    later = text("b", url="https://x.example/1", date="2026-01-05")
    found = filtered([later], JANUARY, searched=False, known=known)
    assert found.dropped == {"same address, another text": 1}


def test_without_dates_in_the_window_none_are_asked_for() -> None:
    assert filtered([text("a")], Window(""), searched=True) == SearchResult((text("a"),))


@given(st.dates(), st.times())
def test_a_date_is_read_as_it_is_written(day: date, time: Any) -> None:
    assert read_date(day.isoformat()) == day
    assert read_date(f"{day.isoformat()}T{time.isoformat()}") == day


# --- countries -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [
        Evidence("Norway votes", "The polls opened."),
        Evidence("Vote", "The polls of Norway opened."),
        Evidence("Valg", "Valget er i gang.", "https://www.nrk.no/1"),
        Evidence("Valg", "Valget er i gang.", "https://x.com/1", metadata={"country": "NO"}),
        Evidence("Norway", "A Swedish outlet.", "https://x.se/1", metadata={"country": "SE"}),
    ],
)
def test_an_article_belongs_by_outlet_or_by_name(item: Evidence) -> None:
    assert filtered([item], NORWAY, searched=True).items == (item,)


@pytest.mark.parametrize(
    "item",
    [
        Evidence("Vote", "The polls opened.", "https://x.com/1"),
        Evidence("Vote", "The polls opened.", "https://x.se/1"),
        Evidence("Vote", "The polls of Norwaystan opened.", metadata={"country": "SE"}),
    ],
)
def test_others_are_dropped_from_searches(item: Evidence) -> None:
    assert filtered([item], NORWAY, searched=True).dropped == {"another country": 1}


def test_files_are_of_the_country_unless_they_say_otherwise() -> None:
    silent = Evidence("Vote", "The polls opened.")
    same = Evidence("Vote", "The polls closed.", metadata={"country": "norway"})
    other = Evidence("Vote", "Norway held a vote.", metadata={"country": "Sweden"})
    found = filtered([silent, same, other], NORWAY, searched=False)
    assert (found.items, found.dropped) == ((silent, same), {"another country": 1})


def test_an_invented_country_is_looked_for_as_written() -> None:
    items = [Evidence("a", "Judges of Valdoria met."), Evidence("b", "Judges of Norvessa met.")]
    assert kept(filtered(items, Window("Valdoria"), searched=True)) == ["a"]
    stated = [Evidence("a", "x", metadata={"country": "Valdoria"}), Evidence("b", "y")]
    assert len(filtered(stated, Window("Valdoria"), searched=False).items) == 2


# --- queries -------------------------------------------------------------------------------------


@each_row(
    ("query", "yes", "no"),
    [
        ("court", "The COURT met.", "The courts met."),
        ("court ruling", "a ruling of the court", "a ruling"),
        ('"supreme court"', "The Supreme\nCourt", "supreme was the court"),
        ("court OR judge", "a judge", "a jury"),
        ("court OR judge law", "a judge of law", "a judge"),
        ("(court OR judge) law", "law in court", "court"),
        ("law (court OR judge OR jury)", "law: jury", "law"),
        ('"new law" OR "old law"', "the old law", "law, old"),
        ("court -sports", "the court", "the court of sports"),
        ('court -"tennis court"', "a court", "a tennis court"),
        ("café", "CAFÉ", "cafe"),
        ("straße", "STRASSE", "stras"),
        ("far-right", "a far-right party", "far from right"),
        ("U.S.", "the U.S. court", "the US court"),
        ("法院", "最高法院周一裁定", "议会周一"),
        ("법원", "대법원은 오늘", "국회는 오늘"),
        ("or", "this or that", "this and that"),
        ('"unclosed phrase', "an unclosed phrase", "a phrase unclosed"),
    ],
)
def test_a_query_says_what_a_text_must_hold(query: str, yes: str, no: str) -> None:
    assert Query(query).matches(yes)
    assert not Query(query).matches(no)


@pytest.mark.parametrize(
    ("query", "groups", "excluded"),
    [
        ("a -b OR c", [["a"], ["c"]], ["b"]),
        ("a OR -b c", [["a"], ["c"]], ["b"]),
        ("a OR OR b", [["a", "b"]], []),
        ("OR a OR", [["a"]], []),
        ("(a OR b) OR c", [["a", "b", "c"]], []),
        ('"a (b c)" d', [['"a (b c)"'], ["d"]], []),
    ],
)
def test_an_or_joins_its_neighbours(
    query: str, groups: list[list[str]], excluded: list[str]
) -> None:
    assert (Query(query).groups, Query(query).excluded) == (groups, excluded)


@pytest.mark.parametrize("query", ["(court ruling) OR law", "-(court OR law)", "((a b) OR c)"])
def test_parentheses_that_would_be_misread_are_refused(query: str) -> None:
    with pytest.raises(DesignError, match="parentheses hold alternatives"):
        Query(query)


@pytest.mark.parametrize("query", ["", "  ", "OR", "()", '""', "-", "OR OR"])
def test_a_query_without_words_asks_for_nothing(query: str) -> None:
    assert Query(query).matches("anything")
    assert Query(query).matches("")


def test_a_query_is_looked_for_in_title_and_text() -> None:
    found = filtered(
        [Evidence("Court", "It met."), Evidence("Vote", "A court met."), Evidence("Vote", "No.")],
        None,
        searched=False,
        query="court",
    )
    assert (len(found.items), found.dropped) == (2, {"not in the query": 1})


WORDS = st.text(st.sampled_from("abcdeäø"), min_size=2, max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=4), WORDS)
def test_words_must_all_be_there_and_alternatives_once(words: list[str], other: str) -> None:
    held = f"Start, {'; '.join(words)}."
    assert Query(" ".join(words)).matches(held)
    assert Query(" OR ".join([other, *words])).matches(held)
    assert Query('"' + " ".join(words) + '"').matches(" ".join(words))
    assert Query(f"{words[0]} {other}").matches(held) == (other in words)
    assert Query(f"{words[0]} -{other}").matches(held) == (other not in words)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_case_and_composition_do_not_matter(words: list[str]) -> None:
    spelled = unicodedata.normalize("NFD", " ".join(words).upper())
    assert Query(" ".join(words)).matches(spelled)
    assert Query(spelled).matches(" ".join(words))


@given(st.text(max_size=30), st.text(max_size=60))
def test_any_query_can_be_asked_of_any_text(query: str, held: str) -> None:
    asked = Query(query.replace("(", "").replace(")", ""))
    assert asked.matches(held) in (True, False)


# --- the whole -----------------------------------------------------------------------------------

PIECES = [story(subject, 3) for subject in ("budget", "fishery", "harbour")] + [
    "",
    " ",
    "Rain.",
    "rain",
]
ITEMS = st.builds(
    Evidence,
    st.sampled_from(["a", "b", "Norway"]),
    st.sampled_from(PIECES)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    st.sampled_from(["", "https://x.no/1", "http://www.x.no/1/", "https://x.com/2", "junk"]),
    st.sampled_from(["", "2026-01-05", "2026-01-31T10:00:00Z", "2025-12-31", "soon"]),
    metadata=st.sampled_from([{}, {"country": "NO"}, {"country": "SE"}]),
)
WINDOWS = st.sampled_from([None, JANUARY, NORWAY, Window("Norway", date(2026, 1, 1)), Window("X")])


@given(st.lists(ITEMS, max_size=8), WINDOWS, st.booleans(), st.sampled_from([0, 1, 3]))
def test_what_is_found_is_kept_in_order_or_counted(
    items: list[Evidence], window: Window | None, searched: bool, limit: int
) -> None:
    found = filtered(items, window, searched=searched, query="", limit=limit)
    assert len(found.items) + sum(found.dropped.values()) == len(items)
    assert not limit or len(found.items) <= limit
    places = iter(items)
    assert all(any(item is place for place in places) for item in found.items)
    assert found == filtered(items, window, searched=searched, limit=limit)


@given(st.lists(ITEMS, max_size=8), WINDOWS, st.booleans())
def test_filtering_again_adds_nothing(
    items: list[Evidence], window: Window | None, searched: bool
) -> None:
    first = filtered(items, window, searched=searched)
    assert filtered(first.items, window, searched=searched).items == first.items
    again = filtered(first.items, window, searched=searched, known=first.items)
    assert again.items == ()
    assert sum(again.dropped.values()) == len(first.items)
    assert set(again.dropped) <= {"already there"}
