"""Keeping within a provider's limits: reserve before a call, settle after it, wait where asked.

Waiting costs no attempt. Buckets fill continuously and hold about a second's worth, so that calls
are spread over the minute and the provider's own count, however it is made, is not exceeded. What
a provider says is left holds beside them, also where no limit is stated.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field

from judge_gym.errors import RateLimitError
from judge_gym.models.cards import Limits
from judge_gym.models.quotas import KINDS, Quota

UNLIMITED = 1_000_000
MARGIN = 0.98
"""The share of a limit that is used: clocks and a provider's windows are not ours."""
CAUTION = 1.1
LEARNING = 0.05
BURST = 1.0
"""Seconds of a limit that may be spent at once."""
LONGEST_WAIT = 120.0
"""Seconds; a provider that asks for a longer pause is not waited for."""


@dataclass(slots=True)
class Bucket:
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
    taken: Mapping[str, float]
    """What all calls up to this one have reserved since the start."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What a provider said is left, and when all of it will be there again."""

    left: float
    until: float
    taken: float
    """What had been reserved when the call began whose answer says so."""


@dataclass
class Throttle:
    """The limits of one endpoint or model. Callers are served in the order of their coming."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, Bucket] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _slots: asyncio.Semaphore = field(init=False)
    _taken: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))
    _told: dict[str, _Told] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False
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
                self._buckets[name] = Bucket(rate, max(1.0, rate * BURST), now)
        self._slots = asyncio.Semaphore(self.limits.concurrency or UNLIMITED)

    async def reserve(self, input_tokens: int, max_tokens: int) -> Reserved:
        """Wait for one's turn and until a call of the usual size fits, then take it out.

        Raises:
            RateLimitError: where the provider's word is to wait for longer than anybody does.
        """
        if self._buckets or self._told or self._blocked_until > self.clock():
            async with self._turn:
                await self._fit(input_tokens, max_tokens)
        output_tokens = self._usual(max_tokens)
        for name, amount in amounts_of(input_tokens, output_tokens).items():
            self._taken[name] += amount
            if name in self._buckets:
                self._buckets[name].level -= amount
        return Reserved(input_tokens, output_tokens, dict(self._taken))

    def _usual(self, max_tokens: int) -> int:
        """How long an answer is taken to be; its maximum, until one has come."""
        usual = max_tokens if self._typical is None else self._typical * CAUTION
        return min(max_tokens, int(usual) + 1)

    async def _fit(self, input_tokens: int, max_tokens: int) -> None:
        """Wait until a call may begin; what answers tell meanwhile may shorten the wait."""
        while not self._ended:
            amounts = amounts_of(input_tokens, self._usual(max_tokens))
            if (wait := self._wait(amounts)) <= 0:
                return
            asked = max(self._blocked_until - self.clock(), self._reset(amounts))
            if asked > LONGEST_WAIT:
                raise RateLimitError(f"the provider asks to wait {asked:.0f} s", wait=asked)
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), wait)

    def settle(self, reserved: Reserved, input_tokens: int, output_tokens: int) -> None:
        """Give back what was reserved and not taken, or take what was taken beyond."""
        if output_tokens:
            known = output_tokens if self._typical is None else self._typical
            self._typical = known + LEARNING * (output_tokens - known)
        before = amounts_of(reserved.input_tokens, reserved.output_tokens)
        after = amounts_of(input_tokens, output_tokens)
        for name, bucket in self._buckets.items():
            if name != "requests":
                bucket.level += before[name] - after[name]
        self._news.set()

    @property
    def slot(self) -> AbstractAsyncContextManager[None]:
        """One of the calls that may be in flight."""
        return self._slots

    def release(self) -> None:
        """Let everybody go who waits: the work is being ended, and nothing will be asked."""
        self._ended = True
        self._news.set()

    def told(self, reserved: Reserved, quota: Quota) -> None:
        """Take the provider's word for what is left.

        Answers come out of order, so the word of the call that began last holds, and what has been
        reserved since it began is taken off, as if the provider did not know of it. Perhaps it
        does; then too little seems to be left for as long as one call lasts, until the answer to
        the last one comes. Before the reset nothing is taken to have come back: most providers fill
        up steadily, but then all is there at the reset, and no more is asked in the long run.
        """
        now = self.clock()
        for name, (left, seconds) in quota.items():
            taken = reserved.taken[name]
            if name not in self._told or taken >= self._told[name].taken:
                self._told[name] = _Told(left, now + seconds, taken)
        self._news.set()

    def block(self, seconds: float) -> None:
        """Begin no call for so long: the provider asked for it."""
        self._blocked_until = max(self._blocked_until, self.clock() + seconds)

    def _wait(self, amounts: Mapping[str, float]) -> float:
        now = self.clock()
        for bucket in self._buckets.values():
            bucket.fill(now)
        waits = [bucket.wait(amounts[name]) for name, bucket in self._buckets.items()]
        return max([self._blocked_until - now, 0.0, self._reset(amounts), *waits])

    def _reset(self, amounts: Mapping[str, float]) -> float:
        """Seconds until all is there again of what is too little for a call; 0 if nothing is."""
        short = [
            told.until
            for name, told in self._told.items()
            if told.left - (self._taken[name] - told.taken) < amounts[name]
        ]
        return max([0.0, *(until - self.clock() for until in short)])


def amounts_of(input_tokens: int, output_tokens: int) -> dict[str, float]:
    """What a call takes of each limit."""
    return {
        "requests": 1.0,
        "tokens": float(input_tokens + output_tokens),
        "input_tokens": float(input_tokens),
        "output_tokens": float(output_tokens),
    }
