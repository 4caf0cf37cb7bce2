"""Limits that several processes keep together: a provider counts the calls of all of them.

Their buckets are common. Calls that wait are let through in rounds, as many as fit, so that no
round is made for a single one, and nothing is set aside for a process that does not need it.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from judge_gym.models.cards import Limits
from judge_gym.models.limits import Bucket, Reserved, Throttle, amounts_of
from judge_gym.models.rounds import GAP, RENEW, How, Leases, Pause, Rounds


class _Waiting(NamedTuple):
    """A call that waits for room within the limits."""

    input_tokens: int
    max_tokens: int
    begun: asyncio.Future[int]
    """Gets how long its answer is taken to be."""


class _Agreed(NamedTuple):
    """What came of a round."""

    begun: int
    """How many of the calls that waited may begin."""
    wait: float
    """Seconds until the next of them may."""
    part: int
    """How many calls of this process may be in flight."""
    processes: int


class SharedThrottle(Throttle):
    """The limits of one endpoint or model, for this process among others."""

    def __init__(self, limits: Limits, leases: Leases, scope: str) -> None:
        super().__init__(limits)
        self._rates = {name: bucket.per_second for name, bucket in self._buckets.items()}
        self._buckets = {}  # they are common
        self._leases = leases
        self._scope = scope
        self._rounds = Rounds(self._meet, self._busy, self._fail)
        self._waiting: deque[_Waiting] = deque()
        self._given_back = dict.fromkeys(self._rates, 0.0)
        self._pause_asked = 0.0
        self._flying = self._part = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        """Calls that wait until one of those in flight has ended."""

    async def reserve(self, input_tokens: int, max_tokens: int) -> Reserved:
        """Wait as the provider asks, then until the common limits leave room for a call."""
        reserved = await super().reserve(input_tokens, max_tokens)
        if self._rates and not self._ended:
            begun: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._waiting.append(_Waiting(input_tokens, max_tokens, begun))
            self._rounds.wake()
            # Answers that came meanwhile may have shown what is usual.
            reserved = replace(reserved, output_tokens=await begun)
        return reserved

    def settle(self, reserved: Reserved, input_tokens: int, output_tokens: int) -> None:
        """Give back what was reserved and not taken; all hear of it in the next round."""
        super().settle(reserved, input_tokens, output_tokens)
        before = amounts_of(reserved.input_tokens, reserved.output_tokens)
        after = amounts_of(input_tokens, output_tokens)
        for name in self._rates:
            if name != "requests":
                self._given_back[name] += before[name] - after[name]

    def block(self, seconds: float) -> None:
        """Begin no call for so long, and let the others begin none."""
        super().block(seconds)
        self._pause_asked = max(self._pause_asked, seconds)
        self._rounds.wake()

    def release(self) -> None:
        """Let everybody go who waits."""
        super().release()
        while self._waiting:
            call = self._waiting.popleft()
            if not call.begun.done():
                call.begun.set_result(self._usual(call.max_tokens))
        self._fill_slots()

    # --- calls in flight -------------------------------------------------------------------------

    @property
    def slot(self) -> AbstractAsyncContextManager[None]:
        """One of the calls that may be in flight, in all processes together."""
        return self._counted() if self.limits.concurrency else super().slot

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        if self._flying < self._part or self._ended:
            self._flying += 1
        else:
            await self._queued()
        try:
            yield
        finally:
            self._flying -= 1
            self._fill_slots()

    async def _queued(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        self._rounds.wake()
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._queue:
                self._queue.remove(turn)
            elif not turn.cancelled():  # its turn had come
                self._flying -= 1
                self._fill_slots()
            raise

    def _fill_slots(self) -> None:
        while self._queue and (self._flying < self._part or self._ended):
            turn = self._queue.popleft()
            if not turn.done():  # else whoever waited has left
                self._flying += 1
                turn.set_result(None)

    # --- rounds ----------------------------------------------------------------------------------

    def _busy(self) -> bool:
        return bool(self._waiting or self._queue or self._flying) and not self._ended

    def _fail(self, fault: Exception) -> None:
        turns: list[asyncio.Future[Any]] = [call.begun for call in self._waiting]
        for turn in turns + list(self._queue):
            if not turn.done():
                turn.set_exception(fault)
        self._waiting.clear()
        self._queue.clear()

    async def _meet(self) -> Pause:
        asked = [(call, self._usual(call.max_tokens)) for call in self._waiting]
        sizes = [amounts_of(call.input_tokens, usual) for call, usual in asked]
        change = self._round(sizes)
        agreed = await asyncio.to_thread(self._leases.change, self._scope, change)
        for (call, usual), size in zip(asked[: agreed.begun], sizes, strict=False):
            if self._waiting:  # else all were let go meanwhile
                self._waiting.popleft()
            if not call.begun.done():
                call.begun.set_result(usual)
            else:  # whoever waited has left
                for name in self._rates:
                    self._given_back[name] += size[name]
        self._part = agreed.part
        self._fill_slots()
        least = GAP * agreed.processes
        if agreed.begun < len(asked):
            return Pause(max(least, min(agreed.wait, RENEW)), 0.0)
        return Pause(least, max(4 * GAP, least) if self._queue else RENEW)

    def _round(self, waiting: Sequence[Mapping[str, float]]) -> How[_Agreed]:
        """One round, with all that is to be said as it is now: it is held in another thread."""
        given_back, self._given_back = self._given_back, dict.fromkeys(self._rates, 0.0)
        pause, self._pause_asked = self._pause_asked, 0.0
        flying, wanted, here = self._flying, self._flying + len(self._queue), self._busy()
        self._part = min(self._part, flying)  # meanwhile none is begun beyond those in flight

        def change(
            common: dict[str, Any],
            mine: dict[str, Any],
            others: Sequence[dict[str, Any]],
            now: float,
        ) -> _Agreed:
            blocked = common["blocked"] = max(common.get("blocked", 0.0), now + pause)
            buckets = {name: _bucket(common, name, rate, now) for name, rate in self._rates.items()}
            for name, bucket in buckets.items():
                bucket.level += given_back[name]
            begun, wait = 0, 0.0
            for size in waiting:
                waits = [bucket.wait(size[name]) for name, bucket in buckets.items()]
                wait = max(blocked - now, *waits)
                if wait > 0:
                    break
                begun += 1
                for name, bucket in buckets.items():
                    bucket.level -= size[name]
            common.update({name: [bucket.level, now] for name, bucket in buckets.items()})
            part = part_of(self.limits.concurrency or 0, wanted, others)
            mine.clear()
            if here:
                mine.update(holds=max(flying, part), wants=wanted)
            return _Agreed(begun, wait, part, len(others) + 1)

        return change


def _bucket(common: Mapping[str, Any], name: str, rate: float, now: float) -> Bucket:
    """A common bucket as it is now; a new one is full."""
    level, at = common.get(name, (math.inf, now))
    bucket = Bucket(rate, level, at)
    bucket.fill(max(now, at))
    return bucket


def part_of(whole: int, wanted: int, others: Sequence[Mapping[str, Any]]) -> int:
    """How many calls in flight a process may have: what others leave; in a crowd an even part.

    >>> part_of(8, 64, []), part_of(8, 64, [{"holds": 3, "wants": 3}])
    (8, 5)
    >>> part_of(8, 64, [{"holds": 0, "wants": 9}]), part_of(8, 64, [{"holds": 8, "wants": 9}])
    (4, 0)
    """
    even = whole / (len(others) + 1)
    kept = [max(other["holds"], min(math.floor(even), other["wants"])) for other in others]
    crowded = any(other["wants"] > other["holds"] for other in others)
    left: int = whole - sum(kept)
    return max(0, min(wanted, left, math.ceil(even) if crowded else whole))
