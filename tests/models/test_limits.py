"""Limits of a provider: what is reserved, settled, waited for."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.models.cards import Limits
from judge_gym.models.limits import BURST, MARGIN, Throttle


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
    assert steady >= 0.95 * allowed


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


def test_so_many_calls_are_in_flight_and_no_more() -> None:
    async def most() -> int:
        throttle = Throttle(Limits(concurrency=3))
        flying = found = 0

        async def call() -> None:
            nonlocal flying, found
            async with throttle.slot:
                flying += 1
                found = max(found, flying)
                await asyncio.sleep(0.01)
                flying -= 1

        await asyncio.gather(*(call() for _ in range(12)))
        return found

    assert asyncio.run(most()) == 3
