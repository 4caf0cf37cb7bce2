"""Evidence from RSS and Atom feeds: entries of the window's dates, and the pages behind them."""

import io
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from time import struct_time
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window, bare_endpoint
from judge_gym.sources.addresses import PRIVATE
from judge_gym.sources.articles import Lead, article, follow
from judge_gym.sources.collecting import Collected, Keep, Page, Refusal, Watch
from judge_gym.sources.fetching import Fetcher
from judge_gym.sources.sifting import UNSPACED, Sieve

CLOSED = re.compile(rb"(?i)</(?:rss|feed|rdf:rdf|\w+:feed)\s*>")
FULL_TEXT_WORDS = 100
"""A feed's own text of this length is taken for the article; a shorter one is a teaser."""


class FeedSource:
    """Searches feeds that the user names.

    Args:
        urls: The addresses of the feeds.
        fetcher: Fetches feeds and pages.
        known: What the window holds already; its pages are not fetched again.
        watch: Told of the progress.
        keep: Given every article that is kept, at once.
    """

    def __init__(
        self,
        urls: Sequence[str],
        fetcher: Fetcher,
        known: Collection[Evidence] = (),
        watch: Watch | None = None,
        keep: Keep | None = None,
    ) -> None:
        if not urls:
            raise DesignError("no feed is named; give the addresses of RSS or Atom feeds")
        self.urls = tuple(urls)
        self.fetcher = fetcher
        self.known = known
        self.watch = watch
        self.keep = keep

    def search(self, window: Window | None, query: str, limit: int) -> Collected:
        """The articles of the feeds in the order of feeds and entries; a limit of 0 is none."""
        sieve = Sieve(
            window, searched=True, query=query, known=self.known, limit=limit, keep=self.keep
        )
        read: dict[str, Page | Refusal] = {}
        try:
            with closing(self.fetcher.fetch(self.urls, html=False)) as outcomes:
                read.update((outcome.url, outcome) for outcome in outcomes)
        except KeyboardInterrupt:
            return sieve.collected(interrupted=True)
        leads: list[Lead] = []
        faults = []
        for url in dict.fromkeys(self.urls):
            outcome = read[url]
            if isinstance(outcome, Refusal):
                fault = outcome.reason
            else:
                found, fault = _entries(outcome)
                leads += found
            if fault:
                way = "; --allow-private allows it" if fault == PRIVATE else ""
                faults.append(f"{bare_endpoint(url)}: {fault}{way}")
        complete = follow(leads, self.fetcher, sieve, self.watch)
        return sieve.collected("; ".join(faults), interrupted=not complete)


def _entries(page: Page) -> tuple[list[Lead], str]:
    """The entries of a feed, and what is wrong with it."""
    import feedparser

    # As a stream: feedparser opens a text that looks like an address or a path.
    parsed = feedparser.parse(
        io.BytesIO(page.body),
        response_headers={
            "content-type": f"{page.content_type}; charset={page.charset}".removesuffix(
                "; charset="
            ),
            "content-location": page.final_url,
        },
    )
    if not parsed.get("version"):
        return [], "not a feed" + (f" but {page.content_type}" if page.content_type else "")
    cut = "" if CLOSED.search(page.body[-2000:]) else "the feed is cut off: its end is missing"
    # "en-US" names a country; "sv" is a language, and El Salvador only by its letters.
    _, dash, region = str(parsed.feed.get("language") or "").replace("_", "-").rpartition("-")
    metadata = {"feed": bare_endpoint(page.url)}
    if dash and len(region) == 2:
        metadata["country"] = region.upper()
    leads = _leads(parsed.entries, str(parsed.feed.get("title") or ""), metadata)
    return [lead for lead in leads if lead.url or not cut], cut


def _leads(entries: Sequence[Any], outlet: str, metadata: dict[str, str]) -> Iterator[Lead]:
    for entry in entries:
        yield Lead(
            url=str(entry.get("link") or ""),
            title=str(entry.get("title") or ""),
            date=_iso(entry.get("published_parsed") or entry.get("updated_parsed")),
            source=outlet,
            text=partial(_own_text, entry),
            metadata=metadata,
        )


def _iso(when: struct_time | None) -> str:
    if not when:
        return ""
    try:
        return f"{datetime(*when[:6], tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        return ""


def _own_text(entry: Any) -> str:
    """The longest text in an entry, where it is long enough to be the article."""
    parts = [part.get("value") for part in entry.get("content", ())] + [entry.get("summary")]
    html = max((str(part or "") for part in parts), key=len)
    found = article(f"<html><body><article>{html}</article></body></html>") if html else None
    text = found.text if found else ""
    words = len(text.split()) + len(UNSPACED.findall(text)) // 2
    return text if words >= FULL_TEXT_WORDS else ""
