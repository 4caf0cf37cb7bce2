"""Articles: from HTML to evidence, and from the leads that a search gives to the articles."""

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
from judge_gym.sources.collecting import Outcome, Refusal, Watch
from judge_gym.sources.fetching import Fetcher
from judge_gym.sources.sifting import UNSPACED, Sieve, canonical_url

FEW_WORDS = 30
"""A shorter text may be a teaser; it is kept and noted."""
MOST_TAGS = 40_000
"""Beyond any article; the time of extraction grows with their square."""
SECRET = re.compile(
    r"(?i)(?:^|[^a-z])(?:token|key|apikey|secret|password|passwd|pwd|pass|sig|signature|auth|jwt|"
    r"session|credential|accesstoken)(?:[^a-z]|$)"
)
# A page without text is a record here; it is no news for the terminal.
for _name in ("trafilatura", "htmldate", "courlan"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


def article(html: bytes | str, url: str = "") -> Evidence | None:
    """The article of a page: its text without menus and comments, title, day and outlet.

    None where the page holds no text. The title may be empty. Without a `url`, the one that the
    page states of itself is taken.
    """
    found = _extraction()(
        html,
        url=url or None,
        include_comments=False,
        with_metadata=True,
        # What is left of a page without an article is its menu, which is none.
        prune_xpath=["//nav", "//footer"],
        # Only dates that the page states, and a limit that does not move with today.
        date_extraction_params={
            "extensive_search": False,
            "original_date": True,
            "max_date": "2100-01-01",
        },
    )
    text = (getattr(found, "text", "") or "").strip()
    if not text:
        return None
    url = url or getattr(found, "url", "") or ""
    return Evidence(
        title=getattr(found, "title", "") or "",
        text=text,
        url=url,
        date=getattr(found, "date", "") or "",
        source=getattr(found, "sitename", "") or urlsplit(url).hostname or "",
    )


@cache
def _extraction() -> Callable[..., Any]:
    with warnings.catch_warnings():  # of a kind of proxy that nobody asked for
        warnings.simplefilter("ignore")
        from trafilatura import bare_extraction
    return bare_extraction


@dataclass(frozen=True, slots=True)
class Lead:
    """What a search says of an article before its page is read."""

    url: str
    title: str = ""
    date: str = ""
    source: str = ""
    text: Callable[[], str] = str
    """The article as the search itself holds it, asked for when the page cannot be had."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def follow(
    leads: Sequence[Lead], fetcher: Fetcher, sieve: Sieve, watch: Watch | None = None
) -> bool:
    """Read the pages of leads into a sieve, in their order, until it is full.

    Pages are fetched a batch at a time, so that what is kept depends on what the pages say and not
    on which of them came first.

    Returns:
        Whether it came to its end; after Ctrl-C, what was read is in the sieve.
    """
    waiting = _unread(leads, sieve)
    later: dict[str, Refusal] = {}
    done = planned = 0
    while waiting and not sieve.full:
        missing = sieve.limit - len(sieve.items) if sieve.limit else len(waiting)
        # Small enough that little is lost if it is killed.
        size = min(max(missing, fetcher.concurrency), 2 * fetcher.concurrency)
        batch, waiting = waiting[:size], waiting[size:]
        planned = done + len(batch) + len(waiting)
        read: dict[str, Evidence | str] = {}
        outcome: Outcome | None = None
        complete = True
        try:
            with closing(fetcher.fetch([lead.url for lead in batch])) as outcomes:
                for outcome in outcomes:
                    if isinstance(outcome, Refusal) and outcome.retry:
                        later[outcome.url] = outcome
                    read[outcome.url] = _read(outcome)
                    done += 1
                    if watch:
                        watch(done, planned)
        except KeyboardInterrupt:
            complete = False
            if outcome and outcome.url not in read:  # it came while this page was being read
                read[outcome.url] = _read(outcome)
        for lead in batch:
            if lead.url in read:
                _take(lead, read[lead.url], sieve)
        if not complete:
            return False
    sieve.drop("beyond the limit", len(waiting))
    tried = done or 1
    closed = {urlsplit(r.url).netloc.rpartition("@")[2]: r for r in later.values() if r.wait > 60}
    if closed:
        told = (f"{host}: {refusal.reason}" for host, refusal in closed.items())
        sieve.fault = f"{'; '.join(told)}, {len(later)} pages are left for then"
    elif len(later) > tried / 2:  # not these pages, but the way to them
        reasons = Counter(refusal.reason for refusal in later.values())
        why = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        sieve.fault = f"{len(later)} of {tried} pages cannot be had now: {why}"
    elif later:
        sieve.notes.insert(0, f"{len(later)} pages may be had later: search again for them")
    return True


def _unread(leads: Sequence[Lead], sieve: Sieve) -> list[Lead]:
    """Leads to an article each, without those that a look at address and date rules out."""
    fresh: dict[str, Lead] = {}
    for lead in leads:
        key = canonical_url(lead.url) or f"{lead.title} {lead.date}"
        if sieve.knows(lead.url):
            sieve.drop("already there")
        elif lead.date and (reason := sieve.misdated(lead.date)):
            sieve.drop(reason)
        elif key in fresh:
            sieve.drop("same address")
        else:
            fresh[key] = lead
    return list(fresh.values())


def _read(outcome: Outcome) -> Evidence | str:
    """The article of a page, or why there is none; no page ends the search for the others."""
    if isinstance(outcome, Refusal):
        return outcome.reason
    if outcome.body.count(b"<") > MOST_TAGS:
        return "too many tags"
    try:
        return article(outcome.text, _without_secrets(outcome.final_url)) or "no article text"
    except Exception as fault:  # whatever a page does to the parsers
        return f"cannot be read ({type(fault).__name__})"


def _take(lead: Lead, found: Evidence | str, sieve: Sieve) -> None:
    """Give an article to the sieve, with what the lead says of it."""
    if isinstance(found, str):
        shown = bare_endpoint(lead.url) or repr(lead.title)
        own = lead.text()
        if not own:
            sieve.drop(found)
            sieve.notes.append(f"{shown}: {found}")
            return
        sieve.notes.append(f"{shown}: {found}; the text is the feed's own")
        found = Evidence(lead.title, own, _without_secrets(lead.url), source=lead.source)
    moved = canonical_url(found.url) != canonical_url(lead.url)
    link = {"link": _without_secrets(lead.url)} if moved else {}
    admitted = sieve.admit(
        replace(
            found,
            title=found.title or lead.title or found.url,
            date=lead.date or found.date,
            source=found.source or lead.source,
            metadata={**lead.metadata, **link},
        )
    )
    words = len(found.text.split())
    if admitted and words < FEW_WORDS and not UNSPACED.search(found.text):
        sieve.notes.append(f"{found.title or found.url!r} has only {words} words")


def _without_secrets(url: str) -> str:
    """An address as it may be kept: no user, no password, no token.

    >>> _without_secrets("https://me:pass@host/a?id=7&token=abc")
    'https://host/a?id=7'
    """
    parts = urlsplit(url)
    asked = parse_qsl(parts.query, keep_blank_values=True)
    open_ = [(name, value) for name, value in asked if not SECRET.search(name)]
    query = parts.query if len(open_) == len(asked) else urlencode(open_)
    bare = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=bare, query=query, fragment=""))
