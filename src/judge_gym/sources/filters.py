"""Filters evidence by a window's dates and country, by a query, and by repetition. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import lru_cache

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, Window
from judge_gym.sources.countries import Country, find_country, names_country, outlet_country
from judge_gym.sources.deduplication import (
    UNSPACED,
    NearDuplicates,
    Sketch,
    canonical_url,
    fold_text,
    keys,
    sketches,
)
from judge_gym.sources.search import OnItem, SearchResult


@dataclass
class EvidenceFilter:
    """Keeps the items that belong to a window, and counts the others by reason."""

    window: Window | None
    """The country and the dates, both ends inclusive; None accepts all."""
    searched: bool
    """Whether a search found the items. Of files that a person chose, near-duplicates and undated
    texts are kept with a note, and the text need not name the country."""
    query: str = ""
    """What the text must match; empty if the service matched it."""
    known: Collection[Evidence] = ()
    """The items that the window has already."""
    dates_checked: bool = False
    """Whether the service searched by date, so that an undated text is kept."""
    limit: int = 0
    """The number of items to keep; 0 for no limit."""
    on_item: OnItem | None = None
    error: str = field(default="", init=False)
    """Why the search cannot be finished now."""
    items: list[Evidence] = field(default_factory=list, init=False)
    dropped: Counter[str] = field(default_factory=Counter, init=False)
    notes: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        window = self.window or Window("")
        self._start, self._end = window.start, window.end
        name = window.country
        self._country = (find_country(name) or Country("", (name,))) if name.strip() else None
        self._query = Query(self.query)
        self._known = {key for item in self.known for key in keys(item)}
        self._kept: set[str] = set()
        self._near_duplicates = NearDuplicates()
        known_texts = (item.body for item in self.known)
        for item, sketch in zip(self.known, sketches(known_texts), strict=True):
            self._near_duplicates.add(item, sketch)

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return bool(self.limit) and len(self.items) >= self.limit

    def knows(self, url: str) -> bool:
        """Tells whether the window has an article of this address already."""
        return f"url {canonical_url(url)}" in self._known

    def wrong_date(self, text: str) -> str:
        """Says why a date excludes an item, or nothing if it does not."""
        if not self._start and not self._end:
            return ""
        days = _days(text)
        if days is None:
            return "no date" if self.searched and not self.dates_checked else ""
        outside = (self._start and days[1] < self._start) or (self._end and days[0] > self._end)
        return "outside the dates" if outside else ""

    def drop(self, reason: str, count: int = 1) -> None:
        """Counts items that are left out."""
        if count:
            self.dropped[reason] += count

    def add(self, item: Evidence) -> bool:
        """Keeps an item, or counts why not."""
        return self.add_all([item]) == 1

    def add_all(self, items: Iterable[Evidence]) -> int:
        """Keeps items in their order, or counts why not; returns how many are kept.

        One call for many items takes a fraction of the time of many calls.
        """
        storable = [_storable(item) for item in items]
        sketched = zip(storable, sketches(item.body for item in storable), strict=True)
        return sum(self._add(item, sketch) for item, sketch in sketched)

    def _add(self, item: Evidence, sketch: Sketch) -> bool:
        twin = None
        item_keys = set(keys(item))
        reason = self._reason_to_drop(item, item_keys)
        if not reason:
            twin = self._near_duplicates.find(sketch)
            if twin and self.searched:
                reason = "nearly the same text"
            elif self.full:
                reason = "beyond the limit"
        if reason:
            self.drop(reason)
            return False
        if twin:
            self.notes.append(f"{_name(item)} is nearly the same as {_name(twin)}")
        if (self._start or self._end) and _days(item.date) is None:
            odd = f"the date {item.date!r}, which is not understood: write YYYY-MM-DD"
            self.notes.append(f"{_name(item)} has {odd if item.date.strip() else 'no date'}")
        self._kept |= item_keys
        self._near_duplicates.add(item, sketch)
        self.items.append(item)
        if self.on_item:
            self.on_item(item)
        return True

    def result(self, error: str = "", *, interrupted: bool = False) -> SearchResult:
        """Collects what was kept, dropped and noted so far."""
        errors = "; ".join(filter(None, [error, self.error]))
        return SearchResult(
            tuple(self.items), dict(self.dropped), tuple(self.notes), errors, interrupted
        )

    def _reason_to_drop(self, item: Evidence, own: set[str]) -> str:
        """Says why an item does not belong, if so. The cheapest checks come first."""
        if not item.body.strip():
            return "empty text"
        if shared := own & self._known:
            same = any(not key.startswith("url") for key in shared)
            return "already there" if same or self.searched else "same address, another text"
        if seen := own & self._kept:
            return "same address" if any(key.startswith("url") for key in seen) else "same text"
        if reason := self.wrong_date(item.date):
            return reason
        if not self._of_country(item):
            return "another country"
        return "" if self._query.matches(f"{item.title}\n{item.body}") else "not in the query"

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


def read_date(text: str) -> date | None:
    """Reads the day of an ISO date or time, or None if the text is neither.

    >>> read_date("2026-01-31T23:30:00-05:00"), read_date("last week")
    (datetime.date(2026, 1, 31), None)
    """
    for form in (text.strip(), text.strip()[:10]):
        try:
            return datetime.fromisoformat(form).date()
        except ValueError:
            continue
    return None


@lru_cache(1 << 12)  # many items have the same date
def _days(text: str) -> tuple[date, date] | None:
    """The first and the last day that a date of a year, a month or a day may mean."""
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
    """Words that must all occur, `"phrases"`, `OR` between alternatives, `-` for exclusions.

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
        """Groups of alternatives, of each of which a text needs one."""
        groups: list[list[str]] = []
        joined = after_word = False
        for term in self._terms():
            if term == "OR":
                joined = after_word
            elif term.startswith("-"):
                joined = after_word = False
            else:
                if joined:
                    groups[-1].append(term)
                else:
                    groups.append([term])
                joined, after_word = False, True
        return groups

    @property
    def excluded(self) -> list[str]:
        """Excluded terms, without the dash."""
        return [term[1:] for term in self._terms() if term.startswith("-") and term != "-"]

    def matches(self, text: str) -> bool:
        """Tells whether a text matches, in whole words and regardless of case."""
        if not self.text:
            return True
        plain = fold_text(text)
        return all(
            any(_contains(plain, term) for term in group) for group in self.groups
        ) and not any(_contains(plain, term) for term in self.excluded)

    def _terms(self) -> Iterator[str]:
        for term in re.findall(r'-?(?:\w+:)?"[^"]*"?|[^\s()"]+', self.text):
            if term.strip('-"'):
                yield term


def _contains(plain: str, term: str) -> bool:
    words = fold_text(term).replace('"', " ").split()
    phrase = r"\s+".join(re.escape(word) for word in words)
    pattern = phrase if UNSPACED.search(phrase) else rf"(?<!\w){phrase}(?!\w)"
    return bool(words) and re.search(pattern, plain) is not None


def _storable(item: Evidence) -> Evidence:
    """Removes lone surrogates and zero bytes, which no database can store, from an item."""
    title, text = (
        part.encode("utf-8", "replace").decode().replace("\0", "")
        for part in (item.title, item.text)
    )
    same = (title, text) == (item.title, item.text)
    return item if same else replace(item, title=title, text=text)


def _name(item: Evidence) -> str:
    return repr(item.title or item.url or item.body[:40])
