"""A budget that processes share: their sum, in any order of rounds, and up to the last call."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.engine.calls import meters
from judge_gym.engine.calls.budget import Account, Meter, Spend
from judge_gym.engine.calls.meters import Paid, SharedAccount
from judge_gym.errors import BudgetError
from judge_gym.records import Completion, Draw, Message, Request
from judge_gym.store import Payer, Store
from judge_gym.studies import BudgetSpec, Caps
from memory_leases import MemoryLeases, ProcessLeases
from stores import recorded

WORST = Spend(1, 100, 0.01)


class Payers:
    """Processes that spend from one budget; each call takes between nothing and its worst case."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.shared = MemoryLeases()
        self.paid, self.flying = Spend(), Spend()

    def account(self, name: str) -> SharedAccount:
        return SharedAccount(
            "the budget",
            self.caps,
            Spend(),
            leases=ProcessLeases(self.shared, name),
            scope="x",
            paid=lambda: Spend(self.paid.calls, self.paid.tokens, self.paid.usd),
            one_round=asyncio.Lock(),
        )

    def meter(self, name: str) -> Meter:
        budget = BudgetSpec(**self.caps.model_dump())
        return Meter(budget, self.account(name), lambda id, caps: Account("", caps, Spend()))

    async def call(self, account: SharedAccount, rng: random.Random) -> bool:
        """One call; whether it was made."""
        try:
            while not account.fits(WORST):
                await account.make_room(WORST)
        except BudgetError:
            return False
        account.reserve(WORST)
        self.flying.add(WORST)
        assert account.exceeded(self.paid, self.flying) is None, "too much is at stake"
        await asyncio.sleep(0.003 * rng.random())
        took = Spend(1, rng.randint(0, 100), 0.0)
        self.flying.add(WORST, -1)
        self.paid.add(took)  # the row is there, and then
        account.settle(WORST, took)
        return True


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10**6),
    st.one_of(
        st.builds(lambda n: Caps(calls=n), st.integers(1, 80)),
        st.builds(lambda n: Caps(tokens=n), st.integers(1, 6000)),
    ),
)
def test_no_order_of_rounds_exceeds_the_budget_and_all_of_it_can_be_used(
    seed: int, caps: Caps
) -> None:
    async def spend() -> tuple[Payers, list[bool]]:
        payers, rng = Payers(caps), random.Random(seed)
        accounts = [payers.account(name) for name in "abc"]
        calls = [payers.call(account, rng) for account in accounts for _ in range(60)]
        return payers, await asyncio.wait_for(asyncio.gather(*calls), 60)

    monkey = pytest.MonkeyPatch()
    with monkey.context() as quick:
        quick.setattr(meters, "GAP", 0.001)
        quick.setattr(meters, "RENEW", 0.02)
        payers, made = asyncio.run(spend())
    assert sum(made) == payers.paid.calls
    if caps.calls is not None:
        assert payers.paid.calls == caps.calls
    elif not all(made):
        assert caps.tokens is not None and caps.tokens - 100 < payers.paid.tokens <= caps.tokens


def test_calls_wait_for_what_another_process_holds() -> None:
    async def calls() -> None:
        payers = Payers(Caps(calls=3))
        dead = payers.account("dead")
        for _ in range(3):
            await dead.make_room(WORST)
            dead.reserve(WORST)
        living = payers.account("living")
        call = asyncio.create_task(payers.call(living, random.Random(1)))
        await asyncio.sleep(0.5)
        assert not call.done(), "it may still come about"
        assert dead._rounds._task is not None
        dead._rounds._task.cancel()
        payers.shared.parts.pop("dead")  # it has lapsed
        assert await asyncio.wait_for(call, 60)

    asyncio.run(calls())


def test_an_idle_process_holds_nothing() -> None:
    async def let_go() -> None:
        payers = Payers(Caps(calls=100))
        account = payers.account("a")
        await asyncio.gather(*(payers.call(account, random.Random(n)) for n in range(20)))
        assert len(payers.shared.parts) == 1
        while payers.shared.parts:
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(let_go(), 60))


def test_without_a_budget_no_lease_is_taken() -> None:
    async def rounds() -> int:
        payers = Payers(Caps())
        account = payers.account("a")
        await asyncio.gather(*(payers.call(account, random.Random(n)) for n in range(50)))
        return payers.shared.rounds

    assert asyncio.run(rounds()) == 0


def test_a_larger_budget_admits_waiting_calls() -> None:
    async def calls() -> None:
        payers = Payers(Caps(calls=1))
        meter = payers.meter("a")
        await meter.reserve(WORST, 7)
        waiting = asyncio.create_task(meter.reserve(WORST, 7))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        meter.change(BudgetSpec(calls=2))
        await asyncio.wait_for(waiting, 60)

    asyncio.run(calls())


def test_paid_sums_include_rows_that_are_committed_late(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meters, "NEWEST", 4)
    paid = Paid(store.usage, "small")
    for number in range(40):
        asked = Request("sim:a", (Message("user", ("hello",)),), Draw("7", number))
        said = Completion("yes", "stop", "a", 10, 5, 0.25)
        payer = Payer(1, "small" if number % 3 else "other", "tag", "scorer")
        recorded(store, asked, payer, said)
        mine = sum(1 for before in range(number + 1) if before % 3)
        assert paid.so_far() == Spend(mine, 15 * mine, 0.25 * mine)
    assert paid._until > 20, "what is old is not read again"
