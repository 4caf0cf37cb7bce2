"""Keeping within a provider's limits: reserve before a call, settle after it, wait where asked.

Waiting costs no attempt. Buckets fill continuously and hold about a second's worth, so that calls
are spread over the minute and the provider's own count, however it is made, is not exceeded.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field

from judge_gym.models.cards import Limits

UNLIMITED = 1_000_000
MARGIN = 0.98
"""The share of a limit that is used: clocks and a provider's windows are not ours."""
CAUTION = 1.1
LEARNING = 0.05
BURST = 1.0
"""Seconds of a limit that may be spent at once."""


@dataclass(slots=True)
class _Bucket:
    """What may be spent now; it may go below zero when a call took more than was reserved."""

    per_second: float
    level: float
    at: float

    def fill(self, now: float) -> None:
        """Let time pass."""
        self.level = min(self.capacity, self.level + (now - self.at) * self.per_second)
        self.at = now

    @property
    def capacity(self) -> float:
        """What may be spent at once: a second's worth, and one request at the least."""
        return max(1.0, self.per_second * BURST)

    def wait(self, amount: float) -> float:
        """Seconds until so much may be spent; a larger call waits for a full bucket."""
        missing = min(amount, self.capacity) - self.level
        return max(0.0, missing / self.per_second)


@dataclass(frozen=True, slots=True)
class Reserved:
    """What a call was allowed to take."""

    input_tokens: int
    output_tokens: int


@dataclass
class Throttle:
    """The limits of one endpoint or model. Callers are served in the order of their coming."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _slots: asyncio.Semaphore = field(init=False)
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _blocked_until: float = float("-inf")
    _typical: float | None = None
    """The usual length of an answer, so that a reservation is not its mere maximum."""

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
                self._buckets[name] = _Bucket(rate, max(1.0, rate * BURST), now)
        self._slots = asyncio.Semaphore(self.limits.concurrency or UNLIMITED)

    async def reserve(self, input_tokens: int, max_tokens: int) -> Reserved:
        """Wait for one's turn and until a call of the usual size fits, then take it out."""
        if not self._buckets and self._blocked_until <= self.clock():
            return Reserved(input_tokens, max_tokens)
        usual = max_tokens if self._typical is None else self._typical * CAUTION
        output_tokens = min(max_tokens, int(usual) + 1)
        amounts = _amounts(input_tokens, output_tokens)
        async with self._turn:
            while (wait := self._wait(amounts)) > 0 and not self._released.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._released.wait(), wait)
            for name, bucket in self._buckets.items():
                bucket.level -= amounts[name]
        return Reserved(input_tokens, output_tokens)

    def settle(self, reserved: Reserved, input_tokens: int, output_tokens: int) -> None:
        """Give back what was reserved and not taken, or take what was taken beyond."""
        if output_tokens:
            known = output_tokens if self._typical is None else self._typical
            self._typical = known + LEARNING * (output_tokens - known)
        before = _amounts(reserved.input_tokens, reserved.output_tokens)
        after = _amounts(input_tokens, output_tokens)
        for name, bucket in self._buckets.items():
            if name != "requests":
                bucket.level += before[name] - after[name]

    @property
    def slot(self) -> AbstractAsyncContextManager[None]:
        """One of the calls that may be in flight."""
        return self._slots

    def release(self) -> None:
        """Let everybody go who waits: the work is being ended, and nothing will be asked."""
        self._released.set()

    def block(self, seconds: float) -> None:
        """Begin no call for so long: the provider asked for it."""
        self._blocked_until = max(self._blocked_until, self.clock() + seconds)

    def _wait(self, amounts: dict[str, float]) -> float:
        now = self.clock()
        for bucket in self._buckets.values():
            bucket.fill(now)
        waits = [bucket.wait(amounts[name]) for name, bucket in self._buckets.items()]
        return max([self._blocked_until - now, 0.0, *waits])


def _amounts(input_tokens: int, output_tokens: int) -> dict[str, float]:
    return {
        "requests": 1.0,
        "tokens": float(input_tokens + output_tokens),
        "input_tokens": float(input_tokens),
        "output_tokens": float(output_tokens),
    }
