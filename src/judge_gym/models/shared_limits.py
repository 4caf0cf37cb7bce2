"""Limits that several processes share: a provider counts the calls of all of them.

Their buckets are common. Calls that wait start in rounds, as many as fit, so that no round is held
for a single call, and nothing is reserved for a process that does not need it.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from judge_gym.models.cards import Limits
from judge_gym.models.leases import GAP, RENEW, LeaseChange, LeaseRounds, Leases, Pause
from judge_gym.models.limits import Bucket, Reservation, Throttle, amounts_of


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
        self._waiting: deque[_Waiting] = deque()
        self._returned = dict.fromkeys(self._rates, 0.0)
        self._pause_requested = 0.0
        self._in_flight = self._share = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        """Calls that wait for one in flight to end."""

    async def reserve(self, input_tokens: int, max_tokens: int) -> Reservation:
        """Waits as the provider asks, then until the common limits leave room for a call."""
        reserved = await super().reserve(input_tokens, max_tokens)
        if self._rates and not self._ended:
            started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._waiting.append(_Waiting(input_tokens, max_tokens, started))
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
        self._fill_slots()

    # --- calls in flight -------------------------------------------------------------------------

    @property
    def slot(self) -> AbstractAsyncContextManager[None]:
        """A slot among the calls that may be in flight in all processes together."""
        return self._counted() if self.limits.concurrency else super().slot

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        if self._in_flight < self._share or self._ended:
            self._in_flight += 1
        else:
            await self._queued()
        try:
            yield
        finally:
            self._in_flight -= 1
            self._fill_slots()

    async def _queued(self) -> None:
        slot = asyncio.get_running_loop().create_future()
        self._queue.append(slot)
        self._rounds.wake()
        try:
            await slot
        except asyncio.CancelledError:
            if slot in self._queue:
                self._queue.remove(slot)
            elif not slot.cancelled():  # it was free already
                self._in_flight -= 1
                self._fill_slots()
            raise

    def _fill_slots(self) -> None:
        while self._queue and (self._in_flight < self._share or self._ended):
            slot = self._queue.popleft()
            if not slot.done():  # otherwise the call was cancelled
                self._in_flight += 1
                slot.set_result(None)

    # --- rounds ----------------------------------------------------------------------------------

    def _busy(self) -> bool:
        return bool(self._waiting or self._queue or self._in_flight) and not self._ended

    def _fail(self, error: Exception) -> None:
        slots: list[asyncio.Future[Any]] = [call.started for call in self._waiting]
        for slot in slots + list(self._queue):
            if not slot.done():
                slot.set_exception(error)
        self._waiting.clear()
        self._queue.clear()

    async def _hold_round(self) -> Pause:
        asked = [(call, self._expected(call.max_tokens)) for call in self._waiting]
        sizes = [amounts_of(call.input_tokens, expected) for call, expected in asked]
        change = self._round(sizes)
        result = await asyncio.to_thread(self._leases.change, self._scope, change)
        for (call, expected), size in zip(asked[: result.started], sizes, strict=False):
            if self._waiting:  # otherwise all waits were ended meanwhile
                self._waiting.popleft()
            if not call.started.done():
                call.started.set_result(expected)
            else:  # the call was cancelled
                for name in self._rates:
                    self._returned[name] += size[name]
        self._share = result.share
        self._fill_slots()
        least = GAP * result.processes
        if result.started < len(asked):
            return Pause(max(least, min(result.wait, RENEW)), 0.0)
        return Pause(least, max(4 * GAP, least) if self._queue else RENEW)

    def _round(self, waiting: Sequence[Mapping[str, float]]) -> LeaseChange[_RoundResult]:
        """Returns the change of one round, which runs in another thread, from the present state."""
        returned, self._returned = self._returned, dict.fromkeys(self._rates, 0.0)
        pause, self._pause_requested = self._pause_requested, 0.0
        in_flight, wanted, here = self._in_flight, self._in_flight + len(self._queue), self._busy()
        self._share = min(self._share, in_flight)  # until then none starts beyond these

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
    kept = [max(other["holds"], min(math.floor(even), other["wants"])) for other in others]
    crowded = any(other["wants"] > other["holds"] for other in others)
    left: int = whole - sum(kept)
    return max(0, min(wanted, left, math.ceil(even) if crowded else whole))
