"""Searches with Firecrawl, a paid service that searches the web and scrapes the results."""

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window, bare_endpoint
from judge_gym.records.installation import install_command
from judge_gym.sources.countries import find_country
from judge_gym.sources.fetcher import LONGEST_WAIT, Fetcher
from judge_gym.sources.filters import EvidenceFilter
from judge_gym.sources.search import OnItem, OnProgress, SearchResult

KEY_VARIABLE = "FIRECRAWL_API_KEY"
URL_VARIABLE = "FIRECRAWL_API_URL"
URL = "https://api.firecrawl.dev"
MOST = 100
"""The most results of one search."""
MEANINGS = {401: "the key is not accepted", 402: "the credits are used up"}


@dataclass(slots=True)
class FirecrawlSource:
    """Searches with Firecrawl. A search costs credits, so only a refused one is repeated."""

    fetcher: Fetcher
    """Its retries and its largest body apply here as well."""
    known: Collection[Evidence] = ()
    """The items that the window has already."""
    on_progress: OnProgress | None = None
    on_item: OnItem | None = None
    timeout: float = 120.0
    """Seconds for a search and its scraping."""
    _key: str = field(init=False, repr=False)
    _url: str = field(init=False, repr=False)
    _client: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            from firecrawl.v2.client import FirecrawlClient
        except ImportError as error:
            raise DesignError(
                f"Firecrawl needs its package: {install_command('firecrawl')}"
            ) from error
        self._key = os.environ.get(KEY_VARIABLE, "").strip()
        self._url = os.environ.get(URL_VARIABLE, "").strip() or URL
        if not self._key:
            raise DesignError(f"Firecrawl needs a key; set {KEY_VARIABLE}")
        # The SDK must not repeat a search that may have been paid for.
        self._client = FirecrawlClient(self._key, self._url, timeout=self.timeout, max_retries=1)

    def search(self, window: Window | None, query: str, limit: int) -> SearchResult:
        """Searches news first, then the web. A limit of 0 means 100."""
        if not query.strip():
            raise DesignError("Firecrawl needs a query: what to search for, such as 'court ruling'")
        window = window or Window("")
        evidence = EvidenceFilter(
            window,
            searched=True,
            known=self.known,
            dates_checked=True,
            limit=limit or MOST,
            on_item=self.on_item,
        )
        if limit > MOST:
            evidence.notes.append(f"Firecrawl gives at most {MOST} results a search")
        try:
            results = self._request(window, query, min(limit or MOST, MOST))
        except KeyboardInterrupt:
            return evidence.result(interrupted=True)
        if isinstance(results, str):  # the service may echo the key
            return evidence.result(f"Firecrawl: {results}".replace(self._key, "..."))
        for number, result in enumerate(results, 1):
            self._add(result, evidence)
            if self.on_progress:
                self.on_progress(number, len(results))
        return evidence.result()

    def _request(self, window: Window, query: str, limit: int) -> list[dict[str, Any]] | str:
        """Requests the results, or says what failed."""
        import requests

        country = find_country(window.country)
        bounds = (("cd_min", window.start), ("cd_max", window.end))
        dates = [f"{name}:{day:%m/%d/%Y}" for name, day in bounds if day]
        body: dict[str, Any] = {
            "query": query,
            "sources": [{"type": "news"}, {"type": "web"}],
            "limit": limit,
            "timeout": int(self.timeout * 1000),
            "scrapeOptions": {"formats": ["markdown"], "onlyMainContent": True},
        }
        if dates:
            body["tbs"] = ",".join(["cdr:1", *dates])
        if country:
            body |= {"country": country.alpha_2, "location": country.names[0]}
        for attempt in range(1, self.fetcher.attempts + 1):
            try:
                # Not the SDK's `search`, which raises for all results if one page has two titles.
                answer = self._client.http_client.post("/v2/search", body)
            except requests.Timeout:
                return f"timed out after {self.timeout:g} s"
            except requests.exceptions.ChunkedEncodingError:
                return "its answer is truncated"
            except requests.RequestException:
                return f"cannot connect to {bare_endpoint(self._url)}"
            status = answer.status_code
            if status not in (429, 503):  # any other failure may have been paid for
                break
            wait = self.fetcher.wait(attempt, answer.headers)
            if wait > LONGEST_WAIT:
                return f"HTTP {status}: the server asks to wait {wait:.0f} s"
            if attempt < self.fetcher.attempts:
                time.sleep(wait)
        try:
            payload = answer.json()
        except requests.exceptions.JSONDecodeError:
            return "its answer is not JSON" if status == 200 else f"HTTP {status}"
        data = payload.get("data") if isinstance(payload, dict) and payload.get("success") else None
        if status == 200 and isinstance(data, dict):
            rows = [*_rows(data.get("news")), *_rows(data.get("web"))]
            return [row for row in rows if isinstance(row, dict)]
        error = str(payload.get("error") or "") if isinstance(payload, dict) else ""
        meaning = MEANINGS.get(status) or " ".join(error.split())[:200]
        return f"HTTP {status}: {meaning or 'its answer cannot be read'}"

    def _add(self, result: dict[str, Any], kept: EvidenceFilter) -> None:
        text = _first(result, "markdown").strip()
        if not text:
            kept.drop("no text from firecrawl")
            return
        if len(text.encode("utf-8", "replace")) > self.fetcher.max_bytes:
            kept.drop(f"larger than {self.fetcher.max_bytes / 1e6:g} MB")
            return
        metadata = result.get("metadata")
        fields = {**metadata, **result} if isinstance(metadata, dict) else result
        url = _first(fields, "url", "sourceURL")
        language = _first(fields, "language")
        kept.add(
            Evidence(
                title=_first(fields, "title", "ogTitle") or url,
                text=text,
                url=url,
                date=_first(fields, "publishedTime", "article:published_time", "date"),
                source=_first(fields, "ogSiteName"),
                metadata={"language": language} if language else {},
            )
        )


def _rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(fields: dict[str, Any], *names: str) -> str:
    """The first field that has a value. A repeated field is a list."""
    for name in names:
        value = fields.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if value:
            return str(value)
    return ""
