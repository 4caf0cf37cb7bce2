"""Reads the remaining quota from the rate-limit headers of providers.

An adapter reports the headers of each answer; the caller has set a listener around the call, so
that a model need not know who counts.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

KINDS = ("requests", "tokens", "input_tokens", "output_tokens")
"""What is limited."""
STYLES = (  # OpenAI's, which most others have adopted, and Anthropic's
    ("x-ratelimit-remaining-{}", "x-ratelimit-reset-{}"),
    ("anthropic-ratelimit-{}-remaining", "anthropic-ratelimit-{}-reset"),
)
HEADERS = [
    (kind, *(name.format(kind.replace("_", "-")) for name in style))
    for style in STYLES
    for kind in KINDS
]
AMOUNT = re.compile(r"\d+(\.\d+)?")
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms]|$)")
UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "": 1.0}
LONGEST_RESET = 86_400.0
"""Seconds; no limit is over a longer time, so a larger number is not a duration."""


class Remaining(NamedTuple):
    """The rest of a limit, and the seconds until it is reset."""

    amount: float
    seconds: float


Quota = Mapping[str, Remaining]
"""The rest of each limit that the provider reports."""

_listener: ContextVar[Callable[[Quota], None] | None] = ContextVar("listener", default=None)


@contextmanager
def quota_listener(listener: Callable[[Quota], None]) -> Iterator[None]:
    """Passes the quota in the answers to the calls within to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(headers: Mapping[str, str]) -> None:
    """Passes the quota in an answer's headers to the listener, if there is one.

    An answer that asks to wait is left out: its wait may be much shorter than the reset.
    """
    listener = _listener.get()
    if listener is not None and "retry-after" not in headers and (quota := read_quota(headers)):
        listener(quota)


def read_quota(headers: Mapping[str, str]) -> Quota:
    """Returns the quota in headers, without limits that are incomplete or unreadable.

    >>> read_quota({"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "6m0s"})
    {'requests': Remaining(amount=59.0, seconds=360.0)}
    """
    quotas: dict[str, Remaining] = {}
    for kind, remaining, reset in HEADERS:
        amount = headers.get(remaining)
        if amount is None or kind in quotas:
            continue
        seconds = _seconds(headers.get(reset, ""), headers.get("date"))
        if seconds is not None and AMOUNT.fullmatch(amount):
            quotas[kind] = Remaining(float(amount), seconds)
    return quotas


def _seconds(reset: str, date: str | None) -> float | None:
    """Reads a duration such as 1m30s or 120ms, or a date, by the server's own clock."""
    parts = DURATION.findall(reset)
    if parts and "".join(number + unit for number, unit in parts) == reset:
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    else:
        try:
            now = parsedate_to_datetime(date) if date else datetime.now(UTC)
            seconds = max(0.0, (datetime.fromisoformat(reset) - now).total_seconds())
        except (ValueError, TypeError):  # no date, or one of the two without a zone
            return None
    return seconds if seconds <= LONGEST_RESET else None
