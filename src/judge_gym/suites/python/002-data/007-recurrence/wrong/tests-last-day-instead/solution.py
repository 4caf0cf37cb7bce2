"""Appointments that repeat in the local time of a zone."""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice

YEARS = 50
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
RULE = re.compile(r"every ([1-9][0-9]{0,2}) (days|weeks|months)(?: on ([a-z0-9, ]+))?")
DAY = re.compile(r"[1-9]|[12][0-9]|3[01]")
NTH = re.compile(r"(1st|2nd|3rd|4th|5th|last) (mon|tue|wed|thu|fri|sat|sun)")


@dataclass(frozen=True)
class Zone:
    """Offsets from UTC in minutes: one until the first change, others from each change on."""

    first: int
    changes: tuple[tuple[datetime, int], ...] = ()


def to_local(moment: datetime, zone: Zone) -> datetime:
    """The local time at a moment."""
    offset = zone.first
    for change, later in zone.changes:
        if moment >= change:
            offset = later
    return moment + timedelta(minutes=offset)


def to_utc(local: datetime, zone: Zone) -> datetime:
    """The moment of a local time."""
    before = zone.first
    for change, later in zone.changes:
        # The old offset counts for all that clocks showed before the change, and in a gap.
        if local < change + timedelta(minutes=max(before, later)):
            break
        before = later
    return local - timedelta(minutes=before)


def occurrences(
    start: datetime, rule: str, zone: Zone, count: int
) -> list[tuple[datetime, datetime]]:
    """The first appointments."""
    if count < 0:
        raise ValueError(f"{count} appointments cannot be given")
    last = start.date().replace(year=start.year + YEARS)
    found = []
    for day in islice(_days(start.date(), rule, last), count):
        moment = to_utc(datetime.combine(day, start.time()), zone)
        found.append((to_local(moment, zone), moment))
    return found


def _days(first: date, rule: str, last: date) -> Iterator[date]:
    match = RULE.fullmatch(rule)
    if not match:
        raise ValueError(f"no such rule: {rule!r}")
    step, unit, on = int(match[1]), match[2], match[3]
    if unit == "days":
        if on is not None:
            raise ValueError(f"no such rule: {rule!r}")
        return _within(first, last, lambda n: [first + timedelta(days=n * step)])
    if on is None:
        raise ValueError(f"no such rule: {rule!r}")
    if unit == "weeks":
        names = on.split(",")
        if len(set(names)) < len(names) or not set(names) <= set(WEEKDAYS):
            raise ValueError(f"no such weekdays: {on!r}")
        monday = first - timedelta(days=first.weekday())
        numbers = sorted(WEEKDAYS.index(name) for name in names)
        return _within(
            first, last, lambda n: [monday + timedelta(days=n * step * 7 + day) for day in numbers]
        )
    choose = _day_of_month(on)

    def month(n: int) -> list[date]:
        years, index = divmod(first.month - 1 + n * step, 12)
        found = choose(first.year + years, index + 1)
        return [] if found is None else [date(first.year + years, index + 1, found)]

    return _within(first, last, month)


def _within(first: date, last: date, period: Callable[[int], list[date]]) -> Iterator[date]:
    """The days of one period after the other, from the first day to the last."""
    for n in range((last - first).days + 2):
        try:
            days = period(n)
        except (OverflowError, ValueError):  # beyond the last year that dates know
            return
        if days and days[0] > last:
            return
        yield from (day for day in days if first <= day <= last)


def _day_of_month(on: str) -> Callable[[int, int], int | None]:
    if on == "last":
        return lambda year, month: monthrange(year, month)[1]
    if DAY.fullmatch(on):
        number = int(on)
        return lambda year, month: min(number, monthrange(year, month)[1])
    match = NTH.fullmatch(on)
    if not match:
        raise ValueError(f"no such day: {on!r}")
    weekday = WEEKDAYS.index(match[2])

    def nth(year: int, month: int) -> int | None:
        first, length = monthrange(year, month)
        days = range(1 + (weekday - first) % 7, length + 1, 7)
        if match[1] == "last":
            return days[-1]
        number = int(match[1][0])
        return days[number - 1] if number <= len(days) else None

    return nth
