"""Evidence from GDELT, an index of the world's news that needs no key: its DOC 2.0 API."""

import json
import os
import re
from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window
from judge_gym.sources.articles import Lead, follow
from judge_gym.sources.collecting import Collected, Keep, Refusal, Watch
from judge_gym.sources.countries import find_country
from judge_gym.sources.fetching import Fetcher
from judge_gym.sources.sifting import Query, Sieve

URL = "https://api.gdeltproject.org/api/v2/doc/doc"
URL_VARIABLE = "JUDGE_GYM_GDELT_URL"
MOST = 250
"""Articles that one request brings at most."""
PAUSE = 5.0
"""Seconds that GDELT asks for between two requests."""
# GDELT's own codes for the countries that it does not know by their usual English name.
CODES = {"CD": "CG", "CG": "CF", "CI": "IV", "CZ": "EZ"}


class GdeltSource:
    """Searches GDELT, and reads the pages that it names.

    Args:
        fetcher: Asks GDELT, and fetches the pages.
        known: What the window holds already; its pages are not fetched again.
        url: Another endpoint of the same form; by default JUDGE_GYM_GDELT_URL, or GDELT's own.
        watch: Told of the progress.
        keep: Given every article that is kept, at once.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        known: Collection[Evidence] = (),
        url: str = "",
        watch: Watch | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.fetcher = fetcher
        self.known = known
        self.url = url or os.environ.get(URL_VARIABLE) or URL
        self.watch = watch
        self.keep = keep

    def search(self, window: Window | None, query: str, limit: int) -> Collected:
        """The articles that GDELT names, in its order; a limit of 0 is 250.

        A window without dates means GDELT's own default, the last three months.
        """
        if not Query(query).groups:
            raise DesignError("GDELT needs a query: words that the articles hold, such as 'court'")
        window = window or Window("")
        # GDELT matched query and dates; its index is translated, so the words need not be there.
        sieve = Sieve(
            window, searched=True, known=self.known, dated=True, limit=limit or MOST, keep=self.keep
        )
        words = _asked(query, window.country)
        leads: list[Lead] = []
        fault = ""
        try:
            for start, end in _spans(window, -(-sieve.limit // MOST)):
                found = self._ask(words, start, end)
                if isinstance(found, str):
                    fault = f"GDELT: {found}"
                    break
                leads += found
        except KeyboardInterrupt:
            return sieve.collected(interrupted=True)
        complete = follow(leads, self.fetcher, sieve, self.watch)
        return sieve.collected(fault, interrupted=not complete)

    def _ask(self, words: str, start: date | None, end: date | None) -> list[Lead] | str:
        """The leads of one request, or what went wrong."""
        asked = {"query": words, "mode": "ArtList", "format": "json", "maxrecords": str(MOST)}
        if start:
            asked["startdatetime"] = f"{start:%Y%m%d}000000"
        if end:
            asked["enddatetime"] = f"{end:%Y%m%d}235959"
        join = "&" if "?" in self.url else "?"
        address = f"{self.url}{join}{urlencode(asked)}"
        outcome = self.fetcher.get(address, trusted=True, pause=PAUSE)
        if isinstance(outcome, Refusal):
            return outcome.reason
        text = outcome.body.decode("utf-8", "replace")
        try:
            # GDELT leaves control characters in titles.
            answer = json.loads(text, strict=False)
        except json.JSONDecodeError:
            return _shortened(text)
        articles = answer.get("articles", []) if isinstance(answer, dict) else None
        if not isinstance(articles, list):
            return _shortened(text)
        return [_lead(row) for row in articles if isinstance(row, dict) and row.get("url")]


def _asked(query: str, country: str) -> str:
    """A query in GDELT's grammar, where alternatives stand in parentheses.

    >>> _asked("court ruling OR protest -sports", "USA")
    'court (ruling OR protest) -sports sourcecountry:unitedstates'
    """
    parsed, outlet = Query(query), find_country(country)
    terms = [group[0] if len(group) == 1 else f"({' OR '.join(group)})" for group in parsed.groups]
    terms += [f"-{term}" for term in parsed.excluded]
    if outlet:
        plain = re.sub(r"[^a-z]", "", outlet.names[0].lower())
        terms.append(f"sourcecountry:{CODES.get(outlet.alpha_2, plain)}")
    return " ".join(terms)


def _spans(window: Window, parts: int) -> Iterator[tuple[date | None, date | None]]:
    """The window's days in so many parts, each as long as the others or a day longer."""
    start, end = window.start, window.end
    if not start or not end or parts < 2:
        yield start, end
        return
    days = (end - start).days + 1
    parts = min(parts, days)
    edges = [start + timedelta(days=days * part // parts) for part in range(parts + 1)]
    for first, following in pairwise(edges):
        yield first, following - timedelta(days=1)


def _lead(row: dict[str, Any]) -> Lead:
    try:
        seen = datetime.strptime(str(row.get("seendate")), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        when = f"{seen:%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        when = ""
    outlet = find_country(str(row.get("sourcecountry") or ""))
    metadata = {"language": str(row.get("language") or "")}
    if outlet:
        metadata["country"] = outlet.alpha_2
    return Lead(
        url=str(row["url"]),
        title=str(row.get("title") or ""),
        date=when,
        source=str(row.get("domain") or ""),
        metadata=metadata,
    )


def _shortened(text: str) -> str:
    """GDELT's own words: it states errors as plain text or HTML with status 200."""
    words = " ".join(re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", text[:5000]).split())
    return f"it answers {words[:200]!r}" if words else "its answer is empty"
