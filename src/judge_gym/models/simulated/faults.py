"""The simulated server's faults and rate limits.

Faults are drawn from a seed, the request and its number of attempts, never from the clock or the
order of arrival, so that a run against them is reproducible.
"""

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from judge_gym.errors import DesignError, unknown

KINDS = ("reset", "stall", "truncated", "html", "empty")
"""Besides statuses: a lost connection, no answer, half of one, a gateway's page, no choices."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Which requests fail, and how."""

    shares: Mapping[str, float] = field(default_factory=dict)
    """The probability of each kind at every attempt."""
    schedule: Mapping[int, str] = field(default_factory=dict)
    """The kind of every request's first, second, ... attempt."""

    @classmethod
    def parse(cls, text: str) -> "Faults":
        """Reads faults: `KIND=SHARE` at random, `KIND@N` at each request's Nth attempt.

        >>> Faults.parse("429=0.05, 500@1")
        Faults(shares={'429': 0.05}, schedule={1: '500'})
        """
        shares: dict[str, float] = {}
        schedule: dict[int, str] = {}
        for entry in filter(None, (word.strip() for word in text.split(","))):
            at = "@" if "@" in entry else "="
            kind, _, value = (part.strip() for part in entry.partition(at))
            if kind not in KINDS and not (kind.isdecimal() and 400 <= int(kind) < 600):
                choices = ("a status from 400 to 599", *KINDS)
                raise DesignError(unknown("fault", kind, choices), choices=choices)
            try:
                if at == "@":
                    schedule[int(value)] = kind
                else:
                    shares[kind] = float(value)
            except ValueError:
                raise DesignError(
                    f"the fault {entry!r} is neither KIND=SHARE nor KIND@ATTEMPT"
                ) from None
        if not all(0 <= share <= 1 for share in shares.values()) or sum(shares.values()) > 1 + 1e-9:
            raise DesignError(f"the shares of {text!r} and their sum must be between 0 and 1")
        if any(attempt < 1 for attempt in schedule):
            raise DesignError(f"the attempts of {text!r} are counted from 1")
        return cls(shares, schedule)

    def draw(self, rng: random.Random, attempt: int) -> str | None:
        """Draws the fault of an attempt; None for none."""
        point = rng.random()
        if attempt in self.schedule:
            return self.schedule[attempt]
        for kind, share in self.shares.items():
            if point < share:
                return kind
            point -= share
        return None


@dataclass
class Allowance:
    """An amount per minute: it starts full, refills steadily, and may go into debt."""

    per_minute: float | None
    """None for no limit."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._level = self.per_minute or 0.0
        self._at = self.clock()

    def wait(self, level: float = 1.0) -> float:
        """Returns the seconds until so much is available."""
        self._refill()
        if self.per_minute is None:
            return 0.0
        return max(0.0, (level - self._level) * 60 / self.per_minute)

    def take(self, amount: float) -> None:
        """Uses some of it."""
        self._refill()
        self._level -= amount

    def headers(self, what: str) -> dict[str, str]:
        """Returns the rate-limit headers; none without a limit."""
        if self.per_minute is None:
            return {}
        reset = self.wait(self.per_minute)
        return {
            f"x-ratelimit-limit-{what}": f"{self.per_minute:g}",
            f"x-ratelimit-remaining-{what}": str(max(0, math.floor(self._level))),
            f"x-ratelimit-reset-{what}": f"{reset:.3f}s",
        }

    def _refill(self) -> None:
        now = self.clock()
        if self.per_minute is not None:
            refilled = self._level + (now - self._at) * self.per_minute / 60
            self._level = min(self.per_minute, refilled)
        self._at = now
