"""From a page to an article: its text without what surrounds it, and what it says of itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.sources.articles import extract_article
from tables import each_row
from web import page, story


def test_an_article_has_text_title_date_and_outlet() -> None:
    found = extract_article(
        page("Court upholds law", story("court"), date="2026-01-04T10:00:00Z"), "https://x.no/1"
    )
    assert found is not None
    assert (found.title, found.date, found.source) == (
        "Court upholds law",
        "2026-01-04",
        "The Wire",
    )
    assert found.url == "https://x.no/1"
    assert story("court") in found.text
    assert "About us" not in found.text
    assert "All rights reserved" not in found.text


def test_comments_of_readers_are_no_evidence() -> None:
    html = page("Court", story("court")).replace(
        "<footer>", '<div class="comments"><p>What a disgrace, said a reader.</p></div><footer>'
    )
    found = extract_article(html)
    assert found is not None
    assert "disgrace" not in found.text


def test_an_outlet_without_a_name_is_known_by_its_host() -> None:
    html = page("Court", story("court")).replace('property="og:site_name"', 'property="x"')
    found = extract_article(html, "https://news.example.no/a")
    assert found is not None
    assert "example.no" in found.source.lower()


def test_a_page_without_title_and_date_has_neither() -> None:
    found = extract_article(f"<html><body><article><p>{story('court')}</p></article></body></html>")
    assert found is not None
    assert (found.title, found.date, found.url) == ("", "", "")


def test_a_page_may_state_its_address() -> None:
    stated = '<head><link rel="canonical" href="https://gazette.example/court">'
    html = page("Court", story("court")).replace("<head>", stated)
    addresses = [
        found.url
        for found in (extract_article(html), extract_article(html, "https://y.no/1"))
        if found
    ]
    assert addresses == ["https://gazette.example/court", "https://y.no/1"]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_bytes_are_read_in_their_encoding(encoding: str) -> None:
    text = "Smørbrød på Grünerløkka, sa statsråden i går kveld. " * 10
    html = page("Mat", text).replace("<head>", f'<head><meta charset="{encoding}">')
    found = extract_article(html.encode(encoding))
    assert found is not None
    assert text.strip() in found.text


@each_row(
    "html",
    [
        b"",
        b"   ",
        b"<html></html>",
        b"\x00\x01\x02",
        "plain words",
        b"{}",
        b"<html><body><nav>Menu</nav><footer>All rights reserved</footer></body></html>",
        b"<html><body><script>let x = 1</script></body></html>",
    ],
)
def test_a_page_without_text_is_no_article(html: bytes | str) -> None:
    assert extract_article(html) is None


def test_the_same_page_gives_the_same_article() -> None:
    html = page("Court", story("court"), date="2026-01-04")
    assert len({repr(extract_article(html, "https://x.no/1")) for _ in range(3)}) == 1


@given(st.binary(max_size=400) | st.text(max_size=400))
@settings(deadline=None, max_examples=60)
def test_any_bytes_do_no_harm(html: bytes | str) -> None:
    found = extract_article(html)
    assert found is None or found.text.strip()
