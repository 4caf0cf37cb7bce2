"""Searches RSS and Atom feeds for entries of a window's dates, and reads their pages."""

import io
import re
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import struct_time
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window, bare_endpoint
from judge_gym.sources.articles import SearchHit, extract_article, read_articles
from judge_gym.sources.deduplication import UNSPACED
from judge_gym.sources.fetcher import PRIVATE, Fetcher, FetchFailure, Page
from judge_gym.sources.filters import EvidenceFilter
from judge_gym.sources.search import OnItem, OnProgress, SearchResult

CLOSED = re.compile(rb"(?i)</(?:rss|feed|rdf:rdf|\w+:feed)\s*>")
FULL_TEXT_WORDS = 100
"""A feed's text of this length is taken for the article; a shorter one is a teaser."""


@dataclass(frozen=True, slots=True)
class FeedSource:
    """Searches feeds that the user names."""

    urls: Sequence[str]
    fetcher: Fetcher
    known: Collection[Evidence] = ()
    """The items that the window has already; their pages are not fetched again."""
    on_progress: OnProgress | None = None
    on_item: OnItem | None = None

    def __post_init__(self) -> None:
        if not self.urls:
            raise DesignError("no feed is named; give the addresses of RSS or Atom feeds")

    def search(self, window: Window | None, query: str, limit: int) -> SearchResult:
        """Reads articles in the order of feeds and entries. A limit of 0 means no limit."""
        evidence = EvidenceFilter(
            window, searched=True, query=query, known=self.known, limit=limit, on_item=self.on_item
        )
        read: dict[str, Page | FetchFailure] = {}
        try:
            with closing(self.fetcher.fetch(self.urls, html=False)) as results:
                read.update((result.url, result) for result in results)
        except KeyboardInterrupt:
            return evidence.result(interrupted=True)
        hits: list[SearchHit] = []
        errors = []
        for url in dict.fromkeys(self.urls):
            result = read[url]
            if isinstance(result, FetchFailure):
                error = result.reason
            else:
                entries, error = _read_feed(result)
                hits += entries
            if error:
                hint = "; --allow-private allows it" if error == PRIVATE else ""
                errors.append(f"{bare_endpoint(url)}: {error}{hint}")
        complete = read_articles(hits, self.fetcher, evidence, self.on_progress)
        return evidence.result("; ".join(errors), interrupted=not complete)


def _read_feed(page: Page) -> tuple[list[SearchHit], str]:
    """Reads the entries of a feed, with an error if it is broken."""
    import feedparser

    # As a stream, because feedparser would open a text that looks like an address or a path.
    parsed = feedparser.parse(
        io.BytesIO(page.body),
        response_headers={
            "content-type": page.content_type
            + (f"; charset={page.charset}" if page.charset else ""),
            "content-location": page.final_url,
        },
    )
    if not parsed.get("version"):
        return [], "not a feed" + (f" but {page.content_type}" if page.content_type else "")
    cut = "" if CLOSED.search(page.body[-2000:]) else "the feed is cut off: its end is missing"
    # "en-US" names a country; "sv" is a language, not El Salvador.
    _, dash, region = str(parsed.feed.get("language") or "").replace("_", "-").rpartition("-")
    metadata = {"feed": bare_endpoint(page.url)}
    if dash and len(region) == 2:
        metadata["country"] = region.upper()
    hits = [
        SearchHit(
            url=str(entry.get("link") or ""),
            title=str(entry.get("title") or ""),
            date=_iso(entry.get("published_parsed") or entry.get("updated_parsed")),
            source=str(parsed.feed.get("title") or ""),
            text=partial(_own_text, entry),
            metadata=metadata,
        )
        for entry in parsed.entries
    ]
    return [hit for hit in hits if hit.url or not cut], cut


def _iso(when: struct_time | None) -> str:
    if not when:
        return ""
    try:
        return f"{datetime(*when[:6], tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        return ""


def _own_text(entry: Any) -> str:
    """Finds the longest text in an entry, if it is long enough to be the article."""
    parts = [part.get("value") for part in entry.get("content", ())] + [entry.get("summary")]
    html = max((str(part or "") for part in parts), key=len)
    article = (
        extract_article(f"<html><body><article>{html}</article></body></html>") if html else None
    )
    text = article.text if article else ""
    words = len(text.split()) + len(UNSPACED.findall(text)) // 2
    return text if words >= FULL_TEXT_WORDS else ""
