"""Computes when a model is due for another run: new and cheap models more often. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

SHORTEST, SPAN, HALF_AGE = 1.0, 59.0, 365.0
"""Days: the interval of a new model, the most that age adds, and the age that adds half of it."""
CHEAP, DEAR, DEAR_DAYS = 5.0, 50.0, 14.0
"""USD per run where the cost floor starts and ends to rise, and the floor at the end in days."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """When a model was first seen and last run, and what a run costs."""

    model: str
    first_seen: datetime
    last: datetime | None = None
    """The latest attempt under any benchmark version; failed ones count."""
    usd: float | None = None
    """The cost of a run; None where it is unknown."""


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a model is due, and since when."""

    model: str
    interval: timedelta
    due_from: datetime | None
    """When it became or becomes due; None before its first attempt."""
    due: bool


def interval(age: timedelta, usd: float | None = None) -> timedelta:
    """The time between two runs of a model.

    >>> interval(timedelta(0)).days, interval(timedelta(days=365)).days
    (1, 30)
    >>> interval(timedelta(0), usd=50).days
    14
    """
    days = max(0.0, age / timedelta(days=1))
    return timedelta(days=max(SHORTEST + SPAN * days / (days + HALF_AGE), cost_floor(usd)))


def cost_floor(usd: float | None) -> float:
    """The least days between runs given their cost, 0 below 5 USD or if it is unknown."""
    if usd is None or usd < CHEAP:
        return 0.0
    share = min(1.0, (usd - CHEAP) / (DEAR - CHEAP))
    return SHORTEST + share * (DEAR_DAYS - SHORTEST)


def due(attempts: Iterable[Attempt], now: datetime) -> tuple[Due, ...]:
    """Orders models: those never tried first, then as they are due."""
    rows = []
    for attempt in attempts:
        apart = interval(now - attempt.first_seen, attempt.usd)
        due_from = None if attempt.last is None else attempt.last + apart
        rows.append(Due(attempt.model, apart, due_from, due_from is None or due_from <= now))
    return tuple(sorted(rows, key=lambda d: (d.due_from is not None, d.due_from or now, d.model)))
