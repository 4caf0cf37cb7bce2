"""Limits that processes share: their sum, whoever asks when, and how they are let go."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.models.limits import BURST, MARGIN, amounts_of
from judge_gym.models.model_card import Limits
from judge_gym.models.shared_limits import SharedThrottle, fair_share
from memory_leases import MemoryLeases


def throttles(shared: MemoryLeases, limits: Limits, count: int) -> list[SharedThrottle]:
    return [SharedThrottle(limits, shared.of(f"p{n}"), "x") for n in range(count)]


steps = st.tuples(
    st.integers(0, 2),  # who holds a round
    st.floats(0, 3),  # seconds later
    st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), max_size=8),
)


@given(st.lists(steps, max_size=40))
def test_no_order_of_rounds_lets_more_through_than_the_limit(
    rounds: list[tuple[int, float, list[tuple[int, int]]]],
) -> None:
    shared = MemoryLeases()
    three = throttles(shared, Limits(rpm=120, tpm=60_000), 3)
    waiting: list[list[dict[str, float]]] = [[], [], []]
    taken = {"requests": 0.0, "tokens": 0.0}
    for who, later, calls in rounds:
        shared.now += later
        waiting[who] += [amounts_of(*call) for call in calls]
        said = shared.of(f"p{who}").change("x", three[who]._round(waiting[who]))
        started, waiting[who] = waiting[who][: said.started], waiting[who][said.started :]
        assert (said.wait > 0) == bool(waiting[who])
        for kind, rate, largest in (("requests", 2, 0), ("tokens", 1000, 1000)):
            taken[kind] += sum(size[kind] for size in started)
            assert taken[kind] <= rate * MARGIN * (shared.now - 1_000 + BURST) + largest + 1e-6


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), min_size=8, max_size=60),
)
def test_no_order_of_rounds_lets_more_fly_than_may(
    whole: int, rounds: list[tuple[int, int]]
) -> None:
    flying = [0] * 4
    held: dict[int, dict[str, int]] = {}
    for who, wanted in rounds:
        flying[who] = min(flying[who], wanted)  # some have ended
        others = [part for other, part in held.items() if other != who]
        part = fair_share(whole, wanted, others)
        held[who] = {"holds": max(flying[who], part), "wants": wanted}
        flying[who] = max(flying[who], min(part, wanted))
        assert sum(flying) <= sum(part["holds"] for part in held.values()) <= whole


@pytest.mark.parametrize(("whole", "parts"), [(64, [16] * 4), (6, [1, 1, 2, 2]), (3, [0, 1, 1, 1])])
def test_a_crowd_shares_evenly_after_a_few_rounds(whole: int, parts: list[int]) -> None:
    held = [{"holds": 0, "wants": 99} for _ in parts]
    for _ in range(3):
        for who, mine in enumerate(held):
            mine["holds"] = fair_share(whole, 99, held[:who] + held[who + 1 :])
    assert sorted(mine["holds"] for mine in held) == parts


def test_a_pause_that_one_is_asked_for_reaches_the_others() -> None:
    async def waited() -> tuple[bool, bool]:
        shared = MemoryLeases()
        first, second = throttles(shared, Limits(rpm=6000), 2)
        await second.reserve(1, 1)
        first.block(30.0)
        await asyncio.sleep(0.2)
        call = asyncio.create_task(second.reserve(1, 1))
        await asyncio.sleep(0.3)
        before = call.done()
        shared.now += 31
        await asyncio.wait_for(call, 60)
        return before, call.done()

    assert asyncio.run(waited()) == (False, True)


def test_what_was_reserved_and_not_used_comes_back_to_all() -> None:
    async def begun() -> None:
        first, second = throttles(MemoryLeases(), Limits(tpm=60_000), 2)
        reserved = await first.reserve(100, 800)
        call = asyncio.create_task(second.reserve(100, 700))
        await asyncio.sleep(0.2)
        assert not call.done(), "the clock stands still"
        first.settle(reserved, 100, 1)
        await first.reserve(1, 1)  # which makes it hold a round
        await asyncio.wait_for(call, 60)

    asyncio.run(begun())


def test_simultaneous_calls_take_one_round_and_an_idle_process_none() -> None:
    async def rounds() -> int:
        shared = MemoryLeases()
        [throttle] = throttles(shared, Limits(rpm=60_000), 1)
        await asyncio.gather(*(throttle.reserve(1, 1) for _ in range(500)))
        made = shared.rounds
        while shared.parts:
            await asyncio.sleep(0.05)
        assert shared.rounds <= made + 2
        return made

    assert asyncio.run(asyncio.wait_for(rounds(), 60)) <= 2


@pytest.mark.parametrize("limits", [Limits(rpm=1), Limits(concurrency=1)])
def test_who_waits_is_let_go_when_the_work_ends(limits: Limits) -> None:
    async def calls() -> None:
        [throttle] = throttles(MemoryLeases(), limits, 1)

        async def call() -> None:
            async with throttle.slots.hold():
                await throttle.reserve(1, 1)
                await asyncio.sleep(0.3)

        some = [asyncio.create_task(call()) for _ in range(3)]
        await asyncio.sleep(0.1)
        throttle.release()
        await asyncio.wait_for(asyncio.gather(*some), 30)

    asyncio.run(calls())


@pytest.mark.parametrize("limits", [Limits(rpm=1), Limits(concurrency=1)])
def test_a_round_that_cannot_be_held_fails_those_who_wait_and_the_next_goes_on(
    limits: Limits,
) -> None:
    async def calls() -> None:
        shared = MemoryLeases()
        shared.fault = ConnectionError("gone")
        [throttle] = throttles(shared, limits, 1)

        async def call() -> None:
            async with throttle.slots.hold():
                await throttle.reserve(1, 1)

        with pytest.raises(ConnectionError):
            await call()
        shared.fault = None
        await asyncio.wait_for(call(), 60)

    asyncio.run(calls())


def test_who_gives_up_waiting_takes_nothing_with_it() -> None:
    async def calls() -> None:
        [throttle] = throttles(MemoryLeases(), Limits(concurrency=2), 1)
        flying = 0

        async def call(check: Callable[[int], bool]) -> None:
            nonlocal flying
            async with throttle.slots.hold():
                flying += 1
                assert check(flying)
                await asyncio.sleep(0.01)
                flying -= 1

        some = [asyncio.create_task(call(lambda n: n <= 2)) for _ in range(20)]
        await asyncio.sleep(0.02)
        for task in some[5:15]:
            task.cancel()
        await asyncio.wait_for(asyncio.gather(*some, return_exceptions=True), 60)
        await asyncio.wait_for(asyncio.gather(*(call(lambda n: n <= 2) for _ in range(4))), 60)
        assert throttle.slots.in_flight == 0

    asyncio.run(calls())
