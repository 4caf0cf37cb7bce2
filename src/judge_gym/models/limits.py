"""Keeps calls within a provider's limits: reserve before a call, settle after it.

Waiting costs no attempt. Buckets fill continuously and hold about one second's worth, so that calls
are spread over the minute and the provider's own count is not exceeded. The quota that a provider
reports applies in addition, also where no limit is configured.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from judge_gym.errors import RateLimitError
from judge_gym.models.fair_queue import Slots
from judge_gym.models.model_card import Limits
from judge_gym.models.quota_headers import KINDS, Quota

UNLIMITED = 1_000_000
MARGIN = 0.98
"""The share of a limit that is used: clocks and windows of the provider differ from ours."""
CAUTION = 1.1
LEARNING = 0.05
BURST = 1.0
"""Seconds of a limit that may be used at once."""
LONGEST_WAIT = 120.0
"""Seconds; a longer pause that a provider asks for is an error."""


@dataclass(slots=True)
class Bucket:
    """What may be used now; negative after a call that took more than was reserved."""

    per_second: float
    level: float
    at: float

    def fill(self, now: float) -> None:
        """Adds what has flowed in since the last time."""
        self.level = min(self.capacity, self.level + (now - self.at) * self.per_second)
        self.at = now

    @property
    def capacity(self) -> float:
        """What may be used at once: a second's worth, and at least one request."""
        return max(1.0, self.per_second * BURST)

    def wait(self, amount: float) -> float:
        """Returns the seconds until an amount is available; a larger one needs a full bucket."""
        missing = min(amount, self.capacity) - self.level
        return max(0.0, missing / self.per_second)


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a call may use."""

    input_tokens: int
    output_tokens: int
    taken: Mapping[str, float]
    """The total of all reservations up to this one."""


@dataclass(frozen=True, slots=True)
class _Reported:
    """The rest of a limit that a provider reported, and when it is reset."""

    left: float
    until: float
    taken: float
    """The total of reservations when the call began whose answer reported it."""


@dataclass
class Throttle:
    """The limits of one endpoint or model. Payers take turns, each in the order of its calls."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, Bucket] = field(default_factory=dict)
    _next: Slots = field(default_factory=lambda: Slots(1))
    """Held by the call that is next to begin."""
    slots: Slots = field(init=False)
    """The calls that may be in flight."""
    _taken: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))
    _reported: dict[str, _Reported] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False
    _blocked_until: float = float("-inf")
    _typical: float | None = None
    """The moving average of answers' lengths: reserving the maximum would be too much."""

    def __post_init__(self) -> None:
        now = self.clock()
        allowed = {
            "requests": self.limits.rpm,
            "tokens": self.limits.tpm,
            "input_tokens": self.limits.input_tpm,
            "output_tokens": self.limits.output_tpm,
        }
        for name, limit in allowed.items():
            if limit is not None:
                rate = limit * MARGIN / 60
                self._buckets[name] = Bucket(rate, max(1.0, rate * BURST), now)
        self.slots = Slots(self.limits.concurrency or UNLIMITED)

    async def reserve(self, input_tokens: int, max_tokens: int, payer: str = "") -> Reservation:
        """Waits until a call of the expected size fits within the limits, and reserves it.

        Raises:
            RateLimitError: the provider asks for a wait above `LONGEST_WAIT`.
        """
        if self._buckets or self._reported or self._blocked_until > self.clock():
            async with self._next.hold(payer):
                await self._fit(input_tokens, max_tokens)
        output_tokens = self._expected(max_tokens)
        for name, amount in amounts_of(input_tokens, output_tokens).items():
            self._taken[name] += amount
            if name in self._buckets:
                self._buckets[name].level -= amount
        return Reservation(input_tokens, output_tokens, dict(self._taken))

    def _expected(self, max_tokens: int) -> int:
        """Returns the expected length of an answer; the maximum before the first answer."""
        expected = max_tokens if self._typical is None else self._typical * CAUTION
        return min(max_tokens, int(expected) + 1)

    async def _fit(self, input_tokens: int, max_tokens: int) -> None:
        """Waits until a call may begin; answers that arrive meanwhile may shorten the wait."""
        while not self._ended:
            amounts = amounts_of(input_tokens, self._expected(max_tokens))
            if (wait := self._wait(amounts)) <= 0:
                return
            seconds = max(self._blocked_until - self.clock(), self._reset(amounts))
            if seconds > LONGEST_WAIT:
                raise RateLimitError(f"the provider asks to wait {seconds:.0f} s", wait=seconds)
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), wait)

    def settle(self, reserved: Reservation, input_tokens: int, output_tokens: int) -> None:
        """Returns what was reserved and not used, or takes what was used beyond."""
        if output_tokens:
            typical = output_tokens if self._typical is None else self._typical
            self._typical = typical + LEARNING * (output_tokens - typical)
        if self._buckets:
            before = amounts_of(reserved.input_tokens, reserved.output_tokens)
            after = amounts_of(input_tokens, output_tokens)
            for name, bucket in self._buckets.items():
                if name != "requests":
                    bucket.level += before[name] - after[name]
        self._changed.set()

    def release(self) -> None:
        """Ends all waits: the work is being stopped, and no call will be made."""
        self._ended = True
        self._changed.set()

    def note_quota(self, reserved: Reservation, quota: Quota) -> None:
        """Applies the quota that the provider reported with an answer.

        Answers arrive out of order, so the report to the call that began last applies, less what
        was reserved since it began. If the provider counted that already, too little seems to be
        left until the last answer arrives. Nothing is assumed to come back before the reset: most
        providers fill up steadily, but then all is available at the reset.
        """
        now = self.clock()
        for name, (left, seconds) in quota.items():
            taken = reserved.taken[name]
            if name not in self._reported or taken >= self._reported[name].taken:
                self._reported[name] = _Reported(left, now + seconds, taken)
        self._changed.set()

    def block(self, seconds: float) -> None:
        """Begins no call for some seconds, because the provider asked for a pause."""
        self._blocked_until = max(self._blocked_until, self.clock() + seconds)

    def _wait(self, amounts: Mapping[str, float]) -> float:
        now = self.clock()
        for bucket in self._buckets.values():
            bucket.fill(now)
        waits = [bucket.wait(amounts[name]) for name, bucket in self._buckets.items()]
        return max([self._blocked_until - now, 0.0, self._reset(amounts), *waits])

    def _reset(self, amounts: Mapping[str, float]) -> float:
        """Returns the seconds until every limit too small for a call is reset; 0 if none is."""
        short = [
            reported.until
            for name, reported in self._reported.items()
            if reported.left - (self._taken[name] - reported.taken) < amounts[name]
        ]
        return max([0.0, *(until - self.clock() for until in short)])


def amounts_of(input_tokens: int, output_tokens: int) -> dict[str, float]:
    """Returns what a call takes of each limit."""
    return {
        "requests": 1.0,
        "tokens": float(input_tokens + output_tokens),
        "input_tokens": float(input_tokens),
        "output_tokens": float(output_tokens),
    }
