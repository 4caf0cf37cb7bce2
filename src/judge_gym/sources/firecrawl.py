"""Evidence from Firecrawl, a paid service that searches the web and scrapes what it finds."""

import os
import time
from collections.abc import Collection
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window, bare_endpoint
from judge_gym.sources.collecting import Collected, Watch
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
        timeout: Seconds for a search with its scraping.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        known: Collection[Evidence] = (),
        watch: Watch | None = None,
        timeout: float = 120.0,
    ) -> None:
        try:
            from firecrawl.v2.client import FirecrawlClient  # type: ignore[import-untyped]
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

    def search(self, window: Window | None, query: str, limit: int) -> Collected:
        """What Firecrawl finds, news first; a limit of 0 is 100."""
        if not query.strip():
            raise DesignError("Firecrawl needs a query: what to search for, such as 'court ruling'")
        window = window or Window("")
        sieve = Sieve(window, searched=True, known=self.known, dated=True, limit=limit or MOST)
        if limit > MOST:
            sieve.notes.append(f"Firecrawl gives at most {MOST} results a search")
        try:
            found = self._ask(window, query, min(limit or MOST, MOST))
        except KeyboardInterrupt:
            return sieve.collected(interrupted=True)
        if isinstance(found, str):
            return sieve.collected(self._safe(found))
        results = [*(found.news or ()), *(found.web or ())]
        for number, result in enumerate(results, 1):
            self._take(result, sieve)
            if self.watch:
                self.watch(number, len(results))
        return sieve.collected()

    def _ask(self, window: Window, query: str, limit: int) -> Any:
        """The results, or what went wrong."""
        import requests
        from firecrawl.v2.types import ScrapeOptions  # type: ignore[import-untyped]
        from firecrawl.v2.utils.error_handler import (  # type: ignore[import-untyped]
            FirecrawlError,
        )

        country = find_country(window.country)
        bounds = (("cd_min", window.start), ("cd_max", window.end))
        dates = [f"{name}:{day:%m/%d/%Y}" for name, day in bounds if day]
        asked: dict[str, Any] = {
            "sources": ["news", "web"],
            "limit": limit,
            "tbs": ",".join(["cdr:1", *dates]) if dates else None,
            "location": country.names[0] if country else None,
            "country": country.alpha_2 if country else None,
            "timeout": int(self._timeout * 1000),
            "scrape_options": ScrapeOptions(formats=["markdown"], only_main_content=True),
        }
        for attempt in range(1, self.fetcher.attempts + 1):
            try:
                return self._client.search(query, **asked)
            except FirecrawlError as fault:
                status = fault.status_code or 0
                headers = getattr(fault.response, "headers", {})
                reason = MEANINGS.get(status) or _said(fault)
                if status != 429 and status < 500:
                    return f"HTTP {status}: {reason}"
                wait = self.fetcher.wait(attempt, headers.get("Retry-After", ""))
                if wait > LONGEST_WAIT:
                    return f"HTTP {status}: the server asks to wait {wait:.0f} s"
                if attempt == self.fetcher.attempts:
                    return f"HTTP {status}: {reason}"
                time.sleep(wait)
            except requests.exceptions.JSONDecodeError:
                return "its answer is not JSON"
            except requests.Timeout:
                return f"timed out after {self._timeout:g} s"
            except requests.exceptions.ChunkedEncodingError:
                return "its answer is truncated"
            except requests.ConnectionError:
                return f"cannot connect to {bare_endpoint(self._url)}"
            except (requests.RequestException, ValueError, TypeError, AttributeError) as fault:
                # ValueError and its like: the SDK meets a JSON of another shape.
                return f"its answer cannot be read: {type(fault).__name__}"
        raise AssertionError("the last attempt returns")

    def _safe(self, reason: str) -> str:
        return f"Firecrawl: {reason}".replace(self._key, "...")

    def _take(self, result: Any, sieve: Sieve) -> None:
        text = (getattr(result, "markdown", None) or "").strip()
        if not text:
            sieve.drop("no text from firecrawl")
            return
        if len(text.encode("utf-8", "replace")) > self.fetcher.max_bytes:
            sieve.drop(f"larger than {self.fetcher.max_bytes / 1e6:g} MB")
            return
        known = result.metadata_dict
        url = _first(known, "source_url", "url", "og_url")
        sieve.admit(
            Evidence(
                title=_first(known, "title", "og_title") or url,
                text=text,
                url=url,
                date=_first(known, "published_time", "article:published_time", "dc_date_created"),
                source=_first(known, "og_site_name"),
                metadata={"language": _first(known, "language")},
            )
        )


def _first(metadata: dict[str, Any], *names: str) -> str:
    """The first of some fields that is there; a page that states one twice gives a list."""
    for name in names:
        value = metadata.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if value:
            return str(value)
    return ""


def _said(fault: Exception) -> str:
    return " ".join(str(fault).split())[:200]
