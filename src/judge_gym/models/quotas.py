"""How much may still be asked, as providers say it in the headers of their answers.

An adapter tells what it reads; who made the call has set a listener around it. So a model need not
know who counts, and one that is told nothing tells nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

KINDS = ("requests", "tokens", "input_tokens", "output_tokens")
"""What is counted; the limits have the same names."""
STYLES = (  # OpenAI's, which most others have taken over, and Anthropic's
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
"""Seconds; nobody counts over a longer time, so a larger number is no duration."""


class Left(NamedTuple):
    """What is left of a limit, and in how many seconds all of it will be there again."""

    amount: float
    seconds: float


Quota = Mapping[str, Left]
"""What is left by kind; a kind that the provider does not tell of is not in it."""

_listener: ContextVar[Callable[[Quota], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[Quota], None]) -> Iterator[None]:
    """Hear of the quota in the answers to calls that are made within."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(headers: Mapping[str, str]) -> None:
    """Tell whoever listens what the headers of an answer say.

    One that asks to wait has said itself when to come again, which may be long before the reset.
    """
    listener = _listener.get()
    if listener is not None and "retry-after" not in headers and (quota := read(headers)):
        listener(quota)


def read(headers: Mapping[str, str]) -> Quota:
    """What is left; what is not told in full, or cannot be read, is left out.

    >>> read({"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "6m0s"})
    {'requests': Left(amount=59.0, seconds=360.0)}
    """
    found: dict[str, Left] = {}
    for kind, remaining, reset in HEADERS:
        told = headers.get(remaining)
        if told is None or kind in found:
            continue
        seconds = _seconds(headers.get(reset, ""), headers.get("date"))
        if seconds is not None and AMOUNT.fullmatch(told):
            found[kind] = Left(float(told), seconds)
    return found


def _seconds(told: str, date: str | None) -> float | None:
    """A duration such as 1m30s or 120ms, or the time until a date by the server's own clock."""
    parts = DURATION.findall(told)
    if parts and "".join(number + unit for number, unit in parts) == told:
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    else:
        try:
            now = parsedate_to_datetime(date) if date else datetime.now(UTC)
            seconds = max(0.0, (datetime.fromisoformat(told) - now).total_seconds())
        except (ValueError, TypeError):  # no date, or one of the two without a zone
            return None
    return seconds if seconds <= LONGEST_RESET else None
