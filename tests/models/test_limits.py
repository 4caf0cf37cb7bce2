"""Limits of a provider: what is reserved, settled, waited for."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.errors import RateLimitError
from judge_gym.models.leases import LeaseChange
from judge_gym.models.limits import BURST, MARGIN, Reservation, Throttle
from judge_gym.models.model_card import Limits
from judge_gym.models.quota_headers import Remaining
from judge_gym.models.shared_limits import SharedThrottle
from memory_leases import MemoryLeases
from tables import each_row

T = TypeVar("T")


class Clock:
    """A clock that a test sets forward."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def spent(limits: Limits, calls: list[tuple[int, int]], seconds: float) -> list[float]:
    """When each call was let through, with a clock that only waiting moves."""
    clock = Clock()
    throttle = Throttle(limits, clock)
    began: list[float] = []
    for asked, answered in calls:
        while (wait := throttle._wait(_sizes(asked, answered))) > 0:
            clock.now += wait + 1e-6
        await throttle.reserve(asked, answered)
        began.append(clock.now - 100.0)
        if began[-1] > seconds:
            break
    return began


def _sizes(asked: int, answered: int) -> dict[str, float]:
    return {
        "requests": 1.0,
        "tokens": float(asked + answered),
        "input_tokens": float(asked),
        "output_tokens": float(answered),
    }


def test_without_limits_nothing_waits() -> None:
    began = asyncio.run(spent(Limits(), [(10_000, 10_000)] * 500, 60))
    assert began == [0.0] * 500


@pytest.mark.parametrize(
    ("limits", "size", "each"),
    [
        (Limits(rpm=600), (10, 10), 1),
        (Limits(tpm=60_000), (60, 40), 100),
        (Limits(input_tpm=60_000), (100, 900), 100),
        (Limits(output_tpm=60_000), (900, 100), 100),
    ],
)
def test_a_minute_takes_nearly_all_that_is_allowed_and_no_more(
    limits: Limits, size: tuple[int, int], each: int
) -> None:
    allowed = next(v for v in (limits.rpm, limits.tpm, limits.input_tpm, limits.output_tpm) if v)
    began = asyncio.run(spent(limits, [size] * 2000, 120))
    for start in range(0, 60, 7):
        used = each * sum(start <= at < start + 60 for at in began)
        assert used <= allowed * (MARGIN + BURST / 60) + each
    steady = each * sum(30 <= at < 90 for at in began)
    assert 0.95 * allowed <= steady < allowed


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), min_size=1, max_size=60))
def test_no_order_of_calls_exceeds_the_rate(calls: list[tuple[int, int]]) -> None:
    began = asyncio.run(spent(Limits(tpm=60_000), calls, 600))
    taken = 0.0
    for at, (asked, answered) in zip(began, calls, strict=False):
        taken += asked + answered
        # The bucket may go below zero by one call that is larger than it.
        assert taken <= 1000 * MARGIN * (at + BURST) + 1000 + 1e-6


def test_what_was_reserved_and_not_used_is_given_back() -> None:
    async def both() -> tuple[float, float]:
        clock = Clock()
        throttle = Throttle(Limits(tpm=60_000), clock)
        reserved = await throttle.reserve(100, 800)
        before = throttle._wait(_sizes(100, 400))
        throttle.settle(reserved, 100, 50)
        return before, throttle._wait(_sizes(100, 400))

    before, after = asyncio.run(both())
    assert before > 0 and after == 0


def test_an_answer_of_the_usual_length_is_reserved_once_it_is_known() -> None:
    async def sizes() -> list[int]:
        throttle = Throttle(Limits(tpm=10**9))
        found = []
        for _ in range(3):
            reserved = await throttle.reserve(100, 2048)
            found.append(reserved.output_tokens)
            throttle.settle(reserved, 100, 200)
        return found

    first, second, third = asyncio.run(sizes())
    assert first == 2048
    assert second == third and 200 <= second < 300


def test_a_pause_that_the_provider_asks_for_is_kept() -> None:
    async def waited() -> float:
        throttle = Throttle(Limits())
        throttle.block(0.2)
        started = time.monotonic()
        await throttle.reserve(1, 1)
        return time.monotonic() - started

    assert asyncio.run(waited()) >= 0.2


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    throttle = Throttle(Limits(), Clock())
    throttle.block(30.0)
    throttle.block(5.0)
    assert throttle._wait(_sizes(1, 1)) == 30.0


# --- what the provider says is left --------------------------------------------------------------


def waits(throttle: Throttle, asked: int = 10, answered: int = 10) -> float:
    return throttle._wait(_sizes(asked, answered))


async def begun(throttle: Throttle, calls: int) -> list[Reservation]:
    return [await throttle.reserve(10, 10) for _ in range(calls)]


@each_row("limits", [Limits(), Limits(rpm=6000, tpm=6_000_000)])
@each_row(
    ("kind", "enough", "short"),
    [("requests", 1, 0), ("tokens", 20, 19), ("input_tokens", 10, 9), ("output_tokens", 10, 9)],
)
def test_no_call_begins_before_the_reset_of_what_is_too_little(
    limits: Limits, kind: str, enough: int, short: int
) -> None:
    clock = Clock()
    throttle = Throttle(limits, clock)
    [call] = asyncio.run(begun(throttle, 1))
    clock.now += 1  # the buckets are full again
    throttle.note_quota(call, {kind: Remaining(enough, 30.0)})
    assert waits(throttle) == 0
    throttle.note_quota(call, {kind: Remaining(short, 30.0)})
    assert waits(throttle) == 30.0
    clock.now += 29.9
    assert waits(throttle) == pytest.approx(0.1)
    clock.now += 0.2
    assert waits(throttle) == 0, "all of it is there again"


def test_a_call_larger_than_all_that_there_is_waits_for_the_reset_alone() -> None:
    clock = Clock()
    throttle = Throttle(Limits(), clock)
    [call] = asyncio.run(begun(throttle, 1))
    throttle.note_quota(call, {"tokens": Remaining(1000, 5.0)})
    assert waits(throttle, 5000) == 5.0
    clock.now += 5.1
    assert waits(throttle, 5000) == 0


@given(st.permutations(range(6)))
def test_answers_in_any_order_leave_the_word_of_the_call_that_began_last(order: list[int]) -> None:
    throttle = Throttle(Limits(), Clock())
    calls = asyncio.run(begun(throttle, 6))
    for count, number in enumerate(order, 1):  # each answer knows of the calls up to its own
        throttle.note_quota(calls[number], {"requests": Remaining(6 - number, 30.0)})
        assert throttle._reported["requests"].left == 6 - max(order[:count])
        assert waits(throttle) == 0, "one is left, whoever says so"
    asyncio.run(begun(throttle, 1))
    assert waits(throttle) == 30.0


def test_what_began_after_a_call_is_taken_off_what_its_answer_says() -> None:
    throttle = Throttle(Limits(), Clock())
    calls = asyncio.run(begun(throttle, 5))
    throttle.note_quota(calls[0], {"requests": Remaining(4, 30.0)})
    assert waits(throttle) == 30.0
    throttle.note_quota(calls[0], {"requests": Remaining(5, 30.0)})
    assert waits(throttle) == 0


def test_a_newer_word_ends_a_wait() -> None:
    async def waited() -> float:
        throttle = Throttle(Limits())
        first, second = await begun(throttle, 2)
        throttle.note_quota(first, {"requests": Remaining(0, 60.0)})
        waiting = asyncio.create_task(throttle.reserve(1, 1))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        started = time.monotonic()
        throttle.note_quota(second, {"requests": Remaining(9, 60.0)})
        await waiting
        return time.monotonic() - started

    assert asyncio.run(waited()) < 30


def test_a_reset_that_nobody_waits_for_is_an_error_that_says_how_far_it_is() -> None:
    async def asked() -> None:
        throttle = Throttle(Limits())
        [call] = await begun(throttle, 1)
        throttle.note_quota(call, {"requests": Remaining(0, 3600.0)})
        await throttle.reserve(1, 1)

    with pytest.raises(RateLimitError) as raised:
        asyncio.run(asked())
    assert raised.value.wait == pytest.approx(3600, abs=60)


def test_so_many_calls_are_in_flight_and_no_more() -> None:
    async def most() -> int:
        throttle = Throttle(Limits(concurrency=3))
        flying = found = 0

        async def call() -> None:
            nonlocal flying, found
            async with throttle.slots.hold():
                flying += 1
                found = max(found, flying)
                await asyncio.sleep(0.01)
                flying -= 1

        await asyncio.gather(*(call() for _ in range(12)))
        return found

    assert asyncio.run(most()) == 3


def test_calls_that_wait_reserve_what_the_answers_of_others_have_shown_meanwhile() -> None:
    async def first_then_the_rest() -> tuple[int, int]:
        throttle = Throttle(Limits(tpm=60_000), Clock())  # time stands still
        waiting = [asyncio.ensure_future(throttle.reserve(10, 2000)) for _ in range(20)]
        await asyncio.sleep(0)
        before = sum(one.done() for one in waiting)
        throttle.settle(waiting[0].result(), 10, 10)  # answers are short, it turns out
        await asyncio.wait(waiting, timeout=60)
        return before, sum(one.done() for one in waiting)

    assert asyncio.run(first_then_the_rest()) == (1, 20)


# --- payers take turns ---------------------------------------------------------------------------

MANY, FEW = 40, 4


async def order_of(begin: Callable[[str], Coroutine[Any, Any, object]]) -> list[str]:
    """The order in which calls begin, of which a small study's come after all of a large one."""
    began: list[str] = []

    async def call(payer: str) -> None:
        await begin(payer)
        began.append(payer)

    calls = [asyncio.create_task(call(payer)) for payer in ["large"] * MANY + ["small"] * FEW]
    await asyncio.wait_for(asyncio.gather(*calls), 30)
    return began


def test_a_small_study_takes_turns_with_a_large_one_for_calls_in_flight() -> None:
    async def began() -> list[str]:
        throttle = Throttle(Limits(concurrency=2))

        async def begin(payer: str) -> None:
            async with throttle.slots.hold(payer):
                await asyncio.sleep(0)

        return await order_of(begin)

    assert "small" not in asyncio.run(began())[2 + 2 * FEW :]


def test_a_small_study_takes_turns_with_a_large_one_within_a_rate() -> None:
    async def began() -> list[str]:
        clock = Clock()
        throttle = Throttle(Limits(rpm=60), clock)

        async def pass_time() -> None:
            while True:
                clock.now += 0.1
                throttle._changed.set()
                await asyncio.sleep(0)

        passing = asyncio.create_task(pass_time())
        order = await order_of(lambda payer: throttle.reserve(1, 1, payer))
        passing.cancel()
        return order

    assert "small" not in asyncio.run(began())[2 + 2 * FEW :]


def test_a_small_study_takes_turns_with_a_large_one_within_a_rate_of_all_processes() -> None:
    class Passing(MemoryLeases):
        def change(self, holder: str, how: LeaseChange[T]) -> T:
            self.now += 1.0
            return super().change(holder, how)

    async def began() -> list[str]:
        throttle = SharedThrottle(Limits(rpm=300), Passing().of("p"), "x")
        return await order_of(lambda payer: throttle.reserve(1, 1, payer))

    assert "small" not in asyncio.run(began())[5 + 2 * FEW :]
