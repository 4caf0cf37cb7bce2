"""Limits that several processes share: a provider counts the calls of all of them.

Their buckets are common. Calls that wait start in rounds, as many as fit, so that no round is held
for a single call, and nothing is reserved for a process that does not need it.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from judge_gym.models.fair_queue import FairQueue, Slots
from judge_gym.models.leases import GAP, RENEW, LeaseChange, LeaseRounds, Leases, Pause
from judge_gym.models.limits import UNLIMITED, Bucket, Reservation, Throttle, amounts_of
from judge_gym.models.model_card import Limits


class _Waiting(NamedTuple):
    """A call that waits for room within the limits."""

    input_tokens: int
    max_tokens: int
    started: asyncio.Future[int]
    """Receives the expected length of its answer."""


class _RoundResult(NamedTuple):
    """The result of a round."""

    started: int
    """How many of the calls that waited may start."""
    wait: float
    """Seconds until the next of them may start."""
    share: int
    """How many calls of this process may be in flight."""
    processes: int


class SharedThrottle(Throttle):
    """The limits of one endpoint or model, shared with other processes."""

    def __init__(self, limits: Limits, leases: Leases, scope: str) -> None:
        super().__init__(limits)
        self._rates = {name: bucket.per_second for name, bucket in self._buckets.items()}
        self._buckets = {}  # they are common
        self._leases = leases
        self._scope = scope
        self._rounds = LeaseRounds(self._hold_round, self._busy, self._fail)
        self._waiting: FairQueue[_Waiting] = FairQueue()
        self._returned = dict.fromkeys(self._rates, 0.0)
        self._pause_requested = 0.0
        self._gap = 0.0
        """Seconds between rounds that do not change the share of this process."""
        if limits.concurrency:  # of which a round gives this process its share
            self.slots = Slots(0, on_wait=self._rounds.wake)

    async def reserve(self, input_tokens: int, max_tokens: int, payer: str = "") -> Reservation:
        """Waits as the provider asks, then until the common limits leave room for a call."""
        reserved = await super().reserve(input_tokens, max_tokens, payer)
        if self._rates and not self._ended:
            started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._waiting.append(payer, _Waiting(input_tokens, max_tokens, started))
            self._rounds.wake()
            # Answers that came meanwhile may have changed the expected length.
            reserved = replace(reserved, output_tokens=await started)
        return reserved

    def settle(self, reserved: Reservation, input_tokens: int, output_tokens: int) -> None:
        """Returns what was reserved and not used; the others learn of it in the next round."""
        super().settle(reserved, input_tokens, output_tokens)
        before = amounts_of(reserved.input_tokens, reserved.output_tokens)
        after = amounts_of(input_tokens, output_tokens)
        for name in self._rates:
            if name != "requests":
                self._returned[name] += before[name] - after[name]

    def block(self, seconds: float) -> None:
        """Begins no call for some seconds, in any process."""
        super().block(seconds)
        self._pause_requested = max(self._pause_requested, seconds)
        self._rounds.wake()

    def release(self) -> None:
        """Ends all waits."""
        super().release()
        while self._waiting:
            call = self._waiting.popleft()
            if not call.started.done():
                call.started.set_result(self._expected(call.max_tokens))
        self.slots.limit = UNLIMITED
        self.slots.fill()

    # --- rounds ----------------------------------------------------------------------------------

    def _busy(self) -> bool:
        in_flight = self.limits.concurrency and (self.slots.waiting or self.slots.in_flight)
        return bool(self._waiting or in_flight) and not self._ended

    def _fail(self, error: Exception) -> None:
        while self._waiting:
            call = self._waiting.popleft()
            if not call.started.done():
                call.started.set_exception(error)
        self.slots.fail(error)

    async def _hold_round(self) -> Pause:
        before = self.slots.limit
        waiting = [(call, self._expected(call.max_tokens)) for call in self._waiting]
        sizes = [amounts_of(call.input_tokens, expected) for call, expected in waiting]
        change = self._round(sizes)
        result = await asyncio.to_thread(self._leases.change, self._scope, change)
        for (call, expected), size in zip(waiting[: result.started], sizes, strict=False):
            if call in self._waiting:  # otherwise all waits were ended meanwhile
                self._waiting.remove(call)
            if not call.started.done():
                call.started.set_result(expected)
            else:  # the call was cancelled
                for name in self._rates:
                    self._returned[name] += size[name]
        if self.limits.concurrency and not self._ended:
            self.slots.limit = result.share
            self.slots.fill()
        least = GAP * result.processes
        if result.started < len(waiting):
            return Pause(max(least, min(result.wait, RENEW)), 0.0)
        if not self.slots.waiting:
            return Pause(least, RENEW)
        even = (self.limits.concurrency or 0) // result.processes
        steady = result.share == before and result.share >= even
        self._gap = min(RENEW, 2 * self._gap) if steady else 4 * GAP
        return Pause(least, max(least, self._gap))

    def _round(self, waiting: Sequence[Mapping[str, float]]) -> LeaseChange[_RoundResult]:
        """Returns the change of one round, which runs in another thread, from the present state."""
        returned, self._returned = self._returned, dict.fromkeys(self._rates, 0.0)
        pause, self._pause_requested = self._pause_requested, 0.0
        here, in_flight = self._busy(), self.slots.in_flight
        wanted = in_flight + len(self.slots.waiting)
        if self.limits.concurrency and not self._ended:
            # Until the round has ended, none starts beyond what the others know of.
            self.slots.limit = min(self.slots.limit, wanted)
            in_flight = max(in_flight, self.slots.limit)

        def change(
            common: dict[str, Any],
            mine: dict[str, Any],
            others: Sequence[dict[str, Any]],
            now: float,
        ) -> _RoundResult:
            blocked = common["blocked"] = max(common.get("blocked", 0.0), now + pause)
            buckets = {name: _bucket(common, name, rate, now) for name, rate in self._rates.items()}
            for name, bucket in buckets.items():
                bucket.level += returned[name]
            started, wait = 0, 0.0
            for size in waiting:
                waits = [bucket.wait(size[name]) for name, bucket in buckets.items()]
                wait = max(blocked - now, *waits)
                if wait > 0:
                    break
                started += 1
                for name, bucket in buckets.items():
                    bucket.level -= size[name]
            common.update({name: [bucket.level, now] for name, bucket in buckets.items()})
            share = fair_share(self.limits.concurrency or 0, wanted, others)
            mine.clear()
            if here:
                mine.update(holds=max(in_flight, share), wants=wanted)
            return _RoundResult(started, wait, share, len(others) + 1)

        return change


def _bucket(common: Mapping[str, Any], name: str, rate: float, now: float) -> Bucket:
    """Returns a common bucket as it is now; a new one is full."""
    level, at = common.get(name, (math.inf, now))
    bucket = Bucket(rate, level, at)
    bucket.fill(max(now, at))
    return bucket


def fair_share(whole: int, wanted: int, others: Sequence[Mapping[str, Any]]) -> int:
    """Returns how many calls a process may have in flight: what the others leave.

    While others want more, it is at most an even share.

    >>> fair_share(8, 64, []), fair_share(8, 64, [{"holds": 3, "wants": 3}])
    (8, 5)
    >>> fair_share(8, 64, [{"holds": 0, "wants": 9}]), fair_share(8, 64, [{"holds": 8, "wants": 9}])
    (4, 0)
    """
    even = whole / (len(others) + 1)
    held_by_others = [
        max(other["holds"], min(math.floor(even), other["wants"])) for other in others
    ]
    crowded = any(other["wants"] > other["holds"] for other in others)
    left: int = whole - sum(held_by_others)
    return max(0, min(wanted, left, math.ceil(even) if crowded else whole))
