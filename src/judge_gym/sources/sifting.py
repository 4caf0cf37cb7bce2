"""What belongs to a window: each text once, of the window's dates, about its country.

Nothing here reads a file, a clock or a network; the same texts are sifted the same way always.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urlsplit

import numpy as np
from numpy.typing import NDArray

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window, content_hash
from judge_gym.sources.collecting import Collected, Keep
from judge_gym.sources.countries import Country, find_country, names_country, outlet_country

if TYPE_CHECKING:
    from datasketch import MinHash

Hashes = NDArray[np.uint32]

NEARLY = 0.8
"""Texts that share this much of their shingles (Jaccard) are nearly the same."""
SHINGLE_WORDS = 3
SHINGLE_CHARS = 5
MIX = np.uint64(0x9E3779B97F4A7C15)
MOST_COMPARED = 50
BANDS, ROWS = 20, 5
"""LSH finds a pair at `NEARLY` with probability 1 - (1 - 0.8**5)**20, or 0.9996."""
# Han, kana, Hangul, Thai, Lao, Burmese, Khmer: a blank does not end a word there.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
)


def sift(
    found: Iterable[Evidence],
    window: Window | None,
    *,
    searched: bool,
    query: str = "",
    known: Collection[Evidence] = (),
    dated: bool = False,
    limit: int = 0,
) -> Collected:
    """What belongs to a window, in the order found, and how many were dropped for which reason.

    Args:
        found: The candidates.
        window: The country and the dates, both ends inclusive; None asks for neither.
        searched: Whether a search found them. Files were chosen by a person: their near-duplicates
            and undated texts are kept with a note, and no country is looked for in the text.
        query: What the text must match; empty where the service matched it.
        known: What the window holds already.
        dated: Whether the service kept to the dates, so that a text without a date may stay.
        limit: How many to keep; 0 is no limit.
    """
    sieve = Sieve(window, searched=searched, query=query, known=known, dated=dated, limit=limit)
    for item in found:
        sieve.admit(item)
    return sieve.collected()


class Sieve:
    """Sifts one text after the other; the arguments are those of `sift`.

    `keep` is given each text that is kept, at once.
    """

    def __init__(
        self,
        window: Window | None,
        *,
        searched: bool,
        query: str = "",
        known: Collection[Evidence] = (),
        dated: bool = False,
        limit: int = 0,
        keep: Keep | None = None,
    ) -> None:
        self.window = window or Window("")
        self.searched = searched
        self.query = Query(query)
        self.dated = dated
        self.limit = limit
        self.keep = keep
        self.fault = ""
        """Why the search cannot be finished now."""
        self.items: list[Evidence] = []
        self.dropped: Counter[str] = Counter()
        self.notes: list[str] = []
        name = self.window.country
        self._country = (find_country(name) or Country("", (name,))) if name.strip() else None
        self._known = {key for item in known for key in _keys(item)}
        self._kept: set[str] = set()
        self._alike = _Alike()
        for item in known:
            self._alike.add(item)

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return bool(self.limit) and len(self.items) >= self.limit

    def knows(self, url: str) -> bool:
        """Whether the window holds an article of this address already."""
        return f"url {canonical_url(url)}" in self._known

    def misdated(self, when: str) -> str:
        """Why a date keeps a text out; empty where it does not."""
        start, end = self.window.start, self.window.end
        if not start and not end:
            return ""
        span = _span(when)
        if span is None:
            return "no date" if self.searched and not self.dated else ""
        outside = (start and span[1] < start) or (end and span[0] > end)
        return "outside the dates" if outside else ""

    def drop(self, reason: str, count: int = 1) -> None:
        """Count what is left out."""
        if count:
            self.dropped[reason] += count

    def admit(self, item: Evidence) -> bool:
        """Keep a text, or count why not."""
        item = _storable(item)
        twin = None
        reason = self._fault(item)
        if not reason:
            twin = self._alike.find(item)
            if twin and self.searched:
                reason = "nearly the same text"
            elif self.full:
                reason = "beyond the limit"
        if reason:
            self.drop(reason)
            return False
        if twin:
            self.notes.append(f"{_name(item)} is nearly the same as {_name(twin)}")
        if (self.window.start or self.window.end) and _span(item.date) is None:
            odd = f"the date {item.date!r}, which is not understood: write YYYY-MM-DD"
            self.notes.append(f"{_name(item)} has {odd if item.date.strip() else 'no date'}")
        self._kept.update(_keys(item))
        self._alike.add(item)
        self.items.append(item)
        if self.keep:
            self.keep(item)
        return True

    def collected(self, fault: str = "", *, interrupted: bool = False) -> Collected:
        """What was kept, dropped and noted so far."""
        faults = "; ".join(filter(None, [fault, self.fault]))
        return Collected(
            tuple(self.items), dict(self.dropped), tuple(self.notes), faults, interrupted
        )

    def _fault(self, item: Evidence) -> str:
        """Why an item does not belong; the cheapest reasons first."""
        if not item.body.strip():
            return "empty text"
        keys = set(_keys(item))
        if known := keys & self._known:
            same = any(not key.startswith("url") for key in known)
            return "already there" if same or self.searched else "same address, another text"
        if seen := keys & self._kept:
            return "same address" if any(key.startswith("url") for key in seen) else "same text"
        if reason := self.misdated(item.date):
            return reason
        if not self._of_country(item):
            return "another country"
        return "" if self.query.matches(f"{item.title}\n{item.body}") else "not in the query"

    def _of_country(self, item: Evidence) -> bool:
        stated = str(item.metadata.get("country") or "")
        if self._country is None or (not self.searched and not stated):
            return True
        outlet = find_country(stated) or Country("", (stated,))
        if outlet == self._country:
            return True
        if not self.searched:
            return False
        home = self._country.alpha_2
        return bool(home and outlet_country(item.url) == home) or any(
            names_country(text, self._country) for text in (item.title, item.body)
        )


def canonical_url(url: str) -> str:
    """An address without what does not change the article; http and https, with or without www.

    >>> canonical_url("HTTP://www.Example.com:80/a/?utm_source=feed#top")
    'example.com/a'
    """
    from courlan import normalize_url

    try:
        bare = urldefrag(url.strip()).url
        query = urlsplit(bare).query
        plain = normalize_url(bare, trailing_slash=False).partition("://")[2].rpartition("@")[2]
    except ValueError:
        return url.strip()
    # A query without "=" is an article's number; courlan takes it for nothing.
    plain += f"?{query}" if query and "=" not in query else ""
    return plain.removeprefix("www.").removesuffix("/") or url.strip()


def read_date(text: str) -> date | None:
    """The day of an ISO date or time, as written; None where it is none.

    >>> read_date("2026-01-31T23:30:00-05:00"), read_date("last week")
    (datetime.date(2026, 1, 31), None)
    """
    for form in (text.strip(), text.strip()[:10]):
        try:
            return datetime.fromisoformat(form).date()
        except ValueError:
            continue
    return None


def _span(text: str) -> tuple[date, date] | None:
    """The first and the last day that a date may mean: a year or a month has many."""
    if day := read_date(text):
        return day, day
    if match := re.fullmatch(r"\s*(\d{4})(?:-(\d{2}))?\s*", text):
        year, month = int(match[1]), int(match[2] or 0)
        if 1 <= year < 9999 and month <= 12:
            following = date(year + (month in (0, 12)), 1 if month in (0, 12) else month + 1, 1)
            return date(year, month or 1, 1), following - timedelta(days=1)
    return None


# --- queries -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """Words that must all be there, `"phrases"`, `OR` between alternatives, `-` for what must not.

    >>> query = Query('court (ruling OR "new law") -sports')
    >>> query.matches("A NEW law reached the court.")
    True
    >>> query.matches("The courts made a ruling."), query.matches("Court ruling on sports")
    (False, False)
    """

    text: str = ""

    def __post_init__(self) -> None:
        plain = re.sub(r'"[^"]*"?', "phrase", self.text)
        for minus, inner in re.findall(r"(-?)\(([^()]*)\)", plain):
            if minus or any(word != "OR" for word in inner.split()[1::2]):
                raise DesignError(
                    f"parentheses hold alternatives, as in (court OR judge); these hold {inner!r}"
                )

    @property
    def groups(self) -> list[list[str]]:
        """The alternatives of which each text needs one, as they were written."""
        found: list[list[str]] = []
        joined = after_word = False
        for term in self._terms():
            if term == "OR":
                joined = after_word
            elif term.startswith("-"):
                joined = after_word = False
            else:
                if joined:
                    found[-1].append(term)
                else:
                    found.append([term])
                joined, after_word = False, True
        return found

    @property
    def excluded(self) -> list[str]:
        """What no text may hold, without the dash."""
        return [term[1:] for term in self._terms() if term.startswith("-") and term != "-"]

    def matches(self, text: str) -> bool:
        """Whether a text answers the query: whole words, whatever their case."""
        plain = _plain(text)
        return all(any(_holds(plain, term) for term in group) for group in self.groups) and not any(
            _holds(plain, term) for term in self.excluded
        )

    def _terms(self) -> Iterator[str]:
        for term in re.findall(r'-?(?:\w+:)?"[^"]*"?|[^\s()"]+', self.text):
            if term.strip('-"'):
                yield term


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _holds(plain: str, term: str) -> bool:
    words = _plain(term).replace('"', " ").split()
    phrase = r"\s+".join(re.escape(word) for word in words)
    whole = phrase if UNSPACED.search(phrase) else rf"(?<!\w){phrase}(?!\w)"
    return bool(words) and re.search(whole, plain) is not None


# --- sameness ------------------------------------------------------------------------------------


def _keys(item: Evidence) -> Iterator[str]:
    """What makes two items one: an address, or the text whatever its blanks."""
    for url in (item.url, str(item.metadata.get("link") or "")):
        if url:
            yield f"url {canonical_url(url)}"
    yield f"text {content_hash(' '.join(item.body.split()))}"


def _storable(item: Evidence) -> Evidence:
    """An item without half characters and zero bytes, which no database can hold."""
    title, text = (
        part.encode("utf-8", "replace").decode().replace("\0", "")
        for part in (item.title, item.text)
    )
    same = (title, text) == (item.title, item.text)
    return item if same else replace(item, title=title, text=text)


def _name(item: Evidence) -> str:
    return repr(item.title or item.url or item.body[:40])


class _Alike:
    """Finds texts that are nearly the same: MinHash proposes, the exact overlap decides."""

    def __init__(self) -> None:
        from datasketch import MinHash, MinHashLSH

        self._index = MinHashLSH(num_perm=BANDS * ROWS, params=(BANDS, ROWS))
        self._blank = MinHash(num_perm=BANDS * ROWS, hashfunc=int)
        self._texts: list[tuple[Evidence, Hashes, Hashes]] = []
        self._last: tuple[Evidence, Hashes, MinHash] | None = None

    def find(self, item: Evidence) -> Evidence | None:
        """A text that an item nearly repeats."""
        shingles, sketch = self._sketch(item)
        numbers = sorted(self._index.query(sketch))
        if not numbers:
            return None
        # The likeliest first, and no more of them than a template's thousand copies would be.
        signatures = np.array([self._texts[number][2] for number in numbers])
        likeness = (signatures == sketch.hashvalues).sum(axis=1)
        for place in np.argsort(-likeness, kind="stable")[:MOST_COMPARED]:
            other, theirs, _ = self._texts[int(numbers[place])]
            shared = np.intersect1d(shingles, theirs, assume_unique=True).size
            if shared >= NEARLY * (shingles.size + theirs.size - shared):
                return other
        return None

    def add(self, item: Evidence) -> None:
        """Have an item found from now on."""
        shingles, sketch = self._sketch(item)
        self._index.insert(len(self._texts), sketch, check_duplication=False)
        self._texts.append((item, shingles, sketch.hashvalues))

    def _sketch(self, item: Evidence) -> "tuple[Hashes, MinHash]":
        # An item is looked for and then added; its sketch is made once.
        if self._last is None or self._last[0] is not item:
            shingles = _shingles(item.body)
            sketch = self._blank.copy()
            for start in range(0, shingles.size, 50_000):  # a book needs no more memory than this
                sketch.update_batch(shingles[start : start + 50_000].tolist())
            self._last = (item, shingles, sketch)
        return self._last[1], self._last[2]


def _shingles(text: str) -> Hashes:
    """Hashes of the runs of words in a text, or of characters where blanks do not part words."""
    plain = _plain(text)
    words = re.findall(r"\w+", plain) or list(plain)
    letters = "".join(words)
    if len(UNSPACED.findall(letters)) * 2 > len(letters):
        codes = np.frombuffer(letters.encode("utf-32-le", "replace"), np.uint32)
        size = SHINGLE_CHARS
    else:
        codes = np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in words], np.uint32)
        size = SHINGLE_WORDS
    runs = np.zeros(max(1, codes.size - size + 1), np.uint64)
    for place in range(min(size, codes.size)):
        runs = (runs + codes[place : place + runs.size]) * MIX
    return np.unique((runs >> np.uint64(32)).astype(np.uint32))
