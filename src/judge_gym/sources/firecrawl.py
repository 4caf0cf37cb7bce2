"""Evidence from Firecrawl, a paid service that searches the web and scrapes what it finds."""

import os
import time
from collections.abc import Collection
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window, bare_endpoint
from judge_gym.sources.collecting import Collected, Keep, Watch
from judge_gym.sources.countries import find_country
from judge_gym.sources.fetching import LONGEST_WAIT, Fetcher
from judge_gym.sources.sifting import Sieve

KEY_VARIABLE = "FIRECRAWL_API_KEY"
URL_VARIABLE = "FIRECRAWL_API_URL"
URL = "https://api.firecrawl.dev"
MOST = 100
"""Results that one search brings at most."""
MEANINGS = {401: "the key is not accepted", 402: "the credits are used up"}


class FirecrawlSource:
    """Searches with Firecrawl. Each search costs credits, so only what cost nothing is repeated.

    Args:
        fetcher: Gives the patience with a failing service and the largest document.
        known: What the window holds already.
        watch: Told of the progress.
        keep: Given every article that is kept, at once.
        timeout: Seconds for a search with its scraping.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        known: Collection[Evidence] = (),
        watch: Watch | None = None,
        keep: Keep | None = None,
        timeout: float = 120.0,
    ) -> None:
        try:
            from firecrawl.v2.client import FirecrawlClient
        except ImportError as fault:
            raise DesignError(
                'Firecrawl needs its package: pip install "judge-gym[firecrawl]"'
            ) from fault
        self._key = os.environ.get(KEY_VARIABLE, "").strip()
        self._url = os.environ.get(URL_VARIABLE, "").strip() or URL
        if not self._key:
            raise DesignError(f"Firecrawl needs a key; set {KEY_VARIABLE}")
        # The SDK would repeat a search that may have been paid for.
        self._client = FirecrawlClient(self._key, self._url, timeout=timeout, max_retries=1)
        self._timeout = timeout
        self.fetcher = fetcher
        self.known = known
        self.watch = watch
        self.keep = keep

    def search(self, window: Window | None, query: str, limit: int) -> Collected:
        """What Firecrawl finds, news first; a limit of 0 is 100."""
        if not query.strip():
            raise DesignError("Firecrawl needs a query: what to search for, such as 'court ruling'")
        window = window or Window("")
        sieve = Sieve(
            window, searched=True, known=self.known, dated=True, limit=limit or MOST, keep=self.keep
        )
        if limit > MOST:
            sieve.notes.append(f"Firecrawl gives at most {MOST} results a search")
        try:
            found = self._ask(window, query, min(limit or MOST, MOST))
        except KeyboardInterrupt:
            return sieve.collected(interrupted=True)
        if isinstance(found, str):
            # The service repeats what it was sent, so the key might stand in its words.
            return sieve.collected(f"Firecrawl: {found}".replace(self._key, "..."))
        for number, result in enumerate(found, 1):
            self._take(result, sieve)
            if self.watch:
                self.watch(number, len(found))
        return sieve.collected()

    def _ask(self, window: Window, query: str, limit: int) -> list[dict[str, Any]] | str:
        """The results, or what went wrong."""
        import requests

        country = find_country(window.country)
        bounds = (("cd_min", window.start), ("cd_max", window.end))
        dates = [f"{name}:{day:%m/%d/%Y}" for name, day in bounds if day]
        asked: dict[str, Any] = {
            "query": query,
            "sources": [{"type": "news"}, {"type": "web"}],
            "limit": limit,
            "timeout": int(self._timeout * 1000),
            "scrapeOptions": {"formats": ["markdown"], "onlyMainContent": True},
        }
        if dates:
            asked["tbs"] = ",".join(["cdr:1", *dates])
        if country:
            asked |= {"country": country.alpha_2, "location": country.names[0]}
        for attempt in range(1, self.fetcher.attempts + 1):
            try:
                # Not the SDK's `search`: where a page states its title twice the service sends a
                # list, and one such page makes the SDK throw away all that was paid for.
                answer = self._client.http_client.post("/v2/search", asked)
            except requests.Timeout:
                return f"timed out after {self._timeout:g} s"
            except requests.exceptions.ChunkedEncodingError:
                return "its answer is truncated"
            except requests.RequestException:
                return f"cannot connect to {bare_endpoint(self._url)}"
            status = answer.status_code
            if status not in (429, 503):  # after another fault it may have been paid for
                break
            wait = self.fetcher.wait(attempt, answer.headers.get("Retry-After", ""))
            if wait > LONGEST_WAIT:
                return f"HTTP {status}: the server asks to wait {wait:.0f} s"
            if attempt < self.fetcher.attempts:
                time.sleep(wait)
        try:
            told = answer.json()
        except requests.exceptions.JSONDecodeError:
            return "its answer is not JSON" if status == 200 else f"HTTP {status}"
        data = told.get("data") if isinstance(told, dict) and told.get("success") else None
        if status == 200 and isinstance(data, dict):
            rows = [*_rows(data.get("news")), *_rows(data.get("web"))]
            return [row for row in rows if isinstance(row, dict)]
        error = str(told.get("error") or "") if isinstance(told, dict) else ""
        meaning = MEANINGS.get(status) or " ".join(error.split())[:200]
        return f"HTTP {status}: {meaning or 'its answer cannot be read'}"

    def _take(self, result: dict[str, Any], sieve: Sieve) -> None:
        text = _first(result, "markdown").strip()
        if not text:
            sieve.drop("no text from firecrawl")
            return
        if len(text.encode("utf-8", "replace")) > self.fetcher.max_bytes:
            sieve.drop(f"larger than {self.fetcher.max_bytes / 1e6:g} MB")
            return
        metadata = result.get("metadata")
        known = {**metadata, **result} if isinstance(metadata, dict) else result
        url = _first(known, "url", "sourceURL")
        language = _first(known, "language")
        sieve.admit(
            Evidence(
                title=_first(known, "title", "ogTitle") or url,
                text=text,
                url=url,
                date=_first(known, "publishedTime", "article:published_time", "date"),
                source=_first(known, "ogSiteName"),
                metadata={"language": language} if language else {},
            )
        )


def _rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(fields: dict[str, Any], *names: str) -> str:
    """The first of some fields that is there; what a page states twice is a list."""
    for name in names:
        value = fields.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if value:
            return str(value)
    return ""
