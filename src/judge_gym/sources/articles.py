"""Extracts articles from pages, and reads the pages behind the hits of a search."""

import logging
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from judge_gym.records import Evidence, bare_endpoint
from judge_gym.sources.deduplication import UNSPACED, canonical_url
from judge_gym.sources.fetcher import Fetcher, FetchFailure, FetchResult
from judge_gym.sources.filters import EvidenceFilter
from judge_gym.sources.search import OnProgress

FEW_WORDS = 30
"""A shorter text may be a teaser; it is kept with a note."""
MOST_TAGS = 40_000
"""More than any article has; the time of extraction grows with their square."""
SECRET = re.compile(
    r"(?i)(?:^|[^a-z])(?:token|key|apikey|secret|password|passwd|pwd|pass|sig|signature|auth|jwt|"
    r"session|credential|accesstoken)(?:[^a-z]|$)"
)
for _name in ("trafilatura", "htmldate", "courlan"):  # pages without text are recorded, not logged
    logging.getLogger(_name).addHandler(logging.NullHandler())


def extract_article(html: bytes | str, url: str = "") -> Evidence | None:
    """Extracts text, title, date and outlet of a page, or None if it has no text.

    The title may be empty. Without a `url`, the page's own is taken.
    """
    document = _extraction()(
        html,
        url=url or None,
        include_comments=False,
        with_metadata=True,
        prune_xpath=["//nav", "//footer"],  # otherwise a page without an article yields its menu
        # Only dates that the page states, and a limit that does not move with today.
        date_extraction_params={
            "extensive_search": False,
            "original_date": True,
            "max_date": "2100-01-01",
        },
    )
    text = (getattr(document, "text", "") or "").strip()
    if not text:
        return None
    url = url or getattr(document, "url", "") or ""
    return Evidence(
        title=getattr(document, "title", "") or "",
        text=text,
        url=url,
        date=getattr(document, "date", "") or "",
        source=getattr(document, "sitename", "") or urlsplit(url).hostname or "",
    )


@cache
def _extraction() -> Callable[..., Any]:
    with warnings.catch_warnings():  # about a kind of proxy that is not used
        warnings.simplefilter("ignore")
        from trafilatura import bare_extraction
    return bare_extraction


@dataclass(frozen=True, slots=True)
class SearchHit:
    """What a search reports about an article before its page is read."""

    url: str
    title: str = ""
    date: str = ""
    source: str = ""
    text: Callable[[], str] = str
    """Returns the search's own copy of the article, for a page that cannot be fetched."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_articles(
    hits: Sequence[SearchHit],
    fetcher: Fetcher,
    kept: EvidenceFilter,
    on_progress: OnProgress | None = None,
) -> bool:
    """Reads the pages of hits into a filter, in their order, until it is full.

    Pages are fetched in batches, so that the items kept do not depend on the order of arrival.

    Returns:
        False after Ctrl-C; the articles read until then are in the filter.
    """
    waiting = _new_hits(hits, kept)
    postponed: dict[str, FetchFailure] = {}
    done = 0
    while waiting and not kept.full:
        missing = kept.limit - len(kept.items) if kept.limit else len(waiting)
        # Small batches, so that little is lost if the process is killed.
        size = min(max(missing, fetcher.concurrency), 2 * fetcher.concurrency)
        batch, waiting = waiting[:size], waiting[size:]
        planned = done + len(batch) + len(waiting)
        read: dict[str, Evidence | str] = {}
        result: FetchResult | None = None
        complete = True
        try:
            with closing(fetcher.fetch([hit.url for hit in batch])) as results:
                for result in results:
                    if isinstance(result, FetchFailure) and result.retry:
                        postponed[result.url] = result
                    read[result.url] = _extract(result)
                    done += 1
                    if on_progress:
                        on_progress(done, planned)
        except KeyboardInterrupt:
            complete = False
            if result and result.url not in read:  # interrupted while this page was being read
                read[result.url] = _extract(result)
        for hit in batch:
            if hit.url in read:
                _add(hit, read[hit.url], kept)
        if not complete:
            return False
    kept.drop("beyond the limit", len(waiting))
    _report_postponed(list(postponed.values()), done or 1, kept)
    return True


def _report_postponed(failures: Sequence[FetchFailure], tried: int, kept: EvidenceFilter) -> None:
    """Reports pages that may be available later: an error if hosts or most pages are affected."""
    closed = {urlsplit(f.url).netloc.rpartition("@")[2]: f.reason for f in failures if f.wait > 60}
    if closed:
        hosts = "; ".join(f"{host}: {reason}" for host, reason in closed.items())
        kept.error = f"{hosts}, {len(failures)} pages are left for then"
    elif len(failures) > tried / 2:
        reasons = Counter(failure.reason for failure in failures)
        why = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        kept.error = f"{len(failures)} of {tried} pages cannot be fetched now: {why}"
    elif failures:
        kept.notes.insert(0, f"{len(failures)} pages may be available later: search again for them")


def _new_hits(hits: Sequence[SearchHit], kept: EvidenceFilter) -> list[SearchHit]:
    """Selects one hit per article, without those that address or date rule out."""
    new: dict[str, SearchHit] = {}
    for hit in hits:
        key = canonical_url(hit.url) or f"{hit.title} {hit.date}"
        if kept.knows(hit.url):
            kept.drop("already there")
        elif hit.date and (reason := kept.wrong_date(hit.date)):
            kept.drop(reason)
        elif key in new:
            kept.drop("same address")
        else:
            new[key] = hit
    return list(new.values())


def _extract(result: FetchResult) -> Evidence | str:
    """Extracts the article of a page, or says why there is none."""
    if isinstance(result, FetchFailure):
        return result.reason
    if result.body.count(b"<") > MOST_TAGS:
        return "too many tags"
    try:
        return extract_article(result.text, _without_secrets(result.final_url)) or "no article text"
    except Exception as error:  # a page must not end the search for the others
        return f"cannot be read ({type(error).__name__})"


def _add(hit: SearchHit, result: Evidence | str, kept: EvidenceFilter) -> None:
    """Adds an article to a filter, completed with what the hit reports about it."""
    if isinstance(result, str):
        name = bare_endpoint(hit.url) or repr(hit.title)
        text = hit.text()
        if not text:
            kept.drop(result)
            kept.notes.append(f"{name}: {result}")
            return
        kept.notes.append(f"{name}: {result}; the text is the feed's own")
        result = Evidence(hit.title, text, _without_secrets(hit.url), source=hit.source)
    moved = canonical_url(result.url) != canonical_url(hit.url)
    link = {"link": _without_secrets(hit.url)} if moved else {}
    added = kept.add(
        replace(
            result,
            title=result.title or hit.title or result.url,
            date=hit.date or result.date,
            source=result.source or hit.source,
            metadata={**hit.metadata, **link},
        )
    )
    words = len(result.text.split())
    if added and words < FEW_WORDS and not UNSPACED.search(result.text):
        kept.notes.append(f"{result.title or result.url!r} has only {words} words")


def _without_secrets(url: str) -> str:
    """Removes user, password and tokens from an address.

    >>> _without_secrets("https://me:pass@host/a?id=7&token=abc")
    'https://host/a?id=7'
    """
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    public = [(name, value) for name, value in pairs if not SECRET.search(name)]
    query = parts.query if len(public) == len(pairs) else urlencode(public)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=host, query=query, fragment=""))
