"""Searches GDELT, an index of the world's news that needs no key, by its DOC 2.0 API."""

import json
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window
from judge_gym.sources.articles import SearchHit, read_articles
from judge_gym.sources.countries import find_country
from judge_gym.sources.fetcher import Fetcher, FetchFailure
from judge_gym.sources.filters import EvidenceFilter, Query
from judge_gym.sources.search import OnItem, OnProgress, SearchResult

URL = "https://api.gdeltproject.org/api/v2/doc/doc"
URL_VARIABLE = "JUDGE_GYM_GDELT_URL"
MOST = 250
"""The most articles that one request returns."""
PAUSE = 5.0
"""Seconds between two requests, as GDELT asks."""
# GDELT's codes for countries that it does not know by their usual English name.
CODES = {"CD": "CG", "CG": "CF", "CI": "IV", "CZ": "EZ"}


@dataclass(frozen=True, slots=True)
class GdeltSource:
    """Searches GDELT, and reads the pages that it lists."""

    fetcher: Fetcher
    known: Collection[Evidence] = ()
    """The items that the window has already; their pages are not fetched again."""
    on_progress: OnProgress | None = None
    on_item: OnItem | None = None

    def search(self, window: Window | None, query: str, limit: int) -> SearchResult:
        """Lists the articles in GDELT's order. A limit of 0 means 250.

        A window without dates means GDELT's own default, the last three months.
        """
        if not Query(query).groups:
            raise DesignError("GDELT needs a query: words of the articles, such as 'court'")
        window = window or Window("")
        # GDELT matches query and dates; its index is translated, so the words need not occur.
        evidence = EvidenceFilter(
            window,
            searched=True,
            known=self.known,
            dates_checked=True,
            limit=limit or MOST,
            on_item=self.on_item,
        )
        words = _gdelt_query(query, window.country)
        hits: list[SearchHit] = []
        error = ""
        try:
            for start, end in _parts(window, -(-evidence.limit // MOST)):
                articles = self._request(words, start, end)
                if isinstance(articles, str):
                    error = f"GDELT: {articles}"
                    break
                hits += articles
        except KeyboardInterrupt:
            return evidence.result(interrupted=True)
        complete = read_articles(hits, self.fetcher, evidence, self.on_progress)
        return evidence.result(error, interrupted=not complete)

    def _request(self, words: str, start: date | None, end: date | None) -> list[SearchHit] | str:
        """Requests hits once, or says what failed."""
        parameters = {"query": words, "mode": "ArtList", "format": "json", "maxrecords": str(MOST)}
        if start:
            parameters["startdatetime"] = f"{start:%Y%m%d}000000"
        if end:
            parameters["enddatetime"] = f"{end:%Y%m%d}235959"
        url = os.environ.get(URL_VARIABLE) or URL
        address = f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"
        result = self.fetcher.get(address, trusted=True, pause=PAUSE)
        if isinstance(result, FetchFailure):
            return result.reason
        text = result.body.decode("utf-8", "replace")
        try:
            answer = json.loads(text, strict=False)  # titles may have control characters
        except json.JSONDecodeError:
            return _shorten(text)
        articles = answer.get("articles", []) if isinstance(answer, dict) else None
        if not isinstance(articles, list):
            return _shorten(text)
        return [_hit(row) for row in articles if isinstance(row, dict) and row.get("url")]


def _gdelt_query(query: str, country: str) -> str:
    """Writes a query in GDELT's syntax, with alternatives in parentheses.

    >>> _gdelt_query("court ruling OR protest -sports", "USA")
    'court (ruling OR protest) -sports sourcecountry:unitedstates'
    """
    parsed, outlet = Query(query), find_country(country)
    terms = [group[0] if len(group) == 1 else f"({' OR '.join(group)})" for group in parsed.groups]
    terms += [f"-{term}" for term in parsed.excluded]
    if outlet:
        plain = re.sub(r"[^a-z]", "", outlet.names[0].lower())
        terms.append(f"sourcecountry:{CODES.get(outlet.alpha_2, plain)}")
    return " ".join(terms)


def _parts(window: Window, count: int) -> Iterator[tuple[date | None, date | None]]:
    """Splits a window's days into parts of equal length, or a day longer."""
    start, end = window.start, window.end
    if not start or not end or count < 2:
        yield start, end
        return
    days = (end - start).days + 1
    count = min(count, days)
    edges = [start + timedelta(days=days * part // count) for part in range(count + 1)]
    for first, following in pairwise(edges):
        yield first, following - timedelta(days=1)


def _hit(row: dict[str, Any]) -> SearchHit:
    try:
        seen = datetime.strptime(str(row.get("seendate")), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        when = f"{seen:%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        when = ""
    outlet = find_country(str(row.get("sourcecountry") or ""))
    metadata = {"language": str(row.get("language") or "")}
    if outlet:
        metadata["country"] = outlet.alpha_2
    return SearchHit(
        url=str(row["url"]),
        title=str(row.get("title") or ""),
        date=when,
        source=str(row.get("domain") or ""),
        metadata=metadata,
    )


def _shorten(text: str) -> str:
    """Shortens GDELT's message, which is plain text or HTML with status 200."""
    words = " ".join(re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", text[:5000]).split())
    return f"it answers {words[:200]!r}" if words else "its answer is empty"
