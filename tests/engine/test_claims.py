"""Two processes on one server that need the same call at the same moment pay for it once."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from unittest.mock import Mock

import pytest

import postgres
from conftest import Scripted
from judge_gym.engine.calls import claims
from judge_gym.engine.calls.ask import Asker
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.stopped import Stopped
from judge_gym.errors import DatabaseGone, RejectedError, UnavailableError
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import Completion, Request
from judge_gym.store import Answer, Payer, Store
from workers import questions

pytestmark = pytest.mark.slow

CALLS = 5


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(claims, "POLL", 0.01)
    opened = Store.open(postgres.fresh_url())
    yield opened
    opened.close()


class Slow(Scripted):
    """Simulated judges that answer later, and may reject the first attempt at each call."""

    def __init__(self) -> None:
        super().__init__(lambda request: "")
        self.called: Counter[str] = Counter()
        self.may_answer = asyncio.Event()
        self.rejected: Exception | None = None

    async def complete(self, request: Request) -> Completion:
        self.called[request.key()] += 1
        is_first = self.called[request.key()] == 1
        await self.may_answer.wait()
        if self.rejected is not None and is_first:
            raise self.rejected
        return await SimulatedModel("sim:balanced").complete(request)

    async def all_called(self, times: int = 1) -> None:
        async with asyncio.timeout(60):
            while self.called.total() < times * CALLS:
                await asyncio.sleep(0.01)


def process(store: Store, models: Slow, name: str) -> tuple[Asker, asyncio.Task[RunProgress]]:
    """A process that asks the same as every other, for a study of its own."""
    asker = Asker(store.ledger, models, Meters(store), claims=store.claims(name))

    async def ask() -> RunProgress:
        progress = RunProgress()
        payer = Payer(len(name), name, "tag", "scorer")
        await asker.ask(questions("same", CALLS), payer, progress)
        return progress

    return asker, asyncio.create_task(ask())


def test_the_second_process_waits_for_the_answers_of_the_first(store: Store) -> None:
    async def scenario() -> None:
        models = Slow()
        _, first = process(store, models, "a")
        await models.all_called()
        _, second = process(store, models, "bb")
        await asyncio.sleep(0.1)
        models.may_answer.set()
        paid, reused = await asyncio.gather(first, second)
        assert set(models.called.values()) == {1}
        assert (paid.paid, paid.reused, reused.paid, reused.reused) == (CALLS, 0, 0, CALLS)

    asyncio.run(scenario())
    anybody = store.claims("anybody")
    assert anybody is not None and anybody.holders() == set()


def test_a_process_makes_the_calls_that_it_claimed_when_an_outage_began(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, outage = store.ledger.find, iter([False, True])

    def find_later(keys: Collection[str]) -> dict[str, Answer]:
        if next(outage, False):
            raise DatabaseGone("the server is away")
        return find(keys)

    async def scenario() -> None:
        models = Slow()
        models.may_answer.set()
        _, first = process(store, models, "a")
        assert (await asyncio.wait_for(first, 60)).paid == CALLS

    monkeypatch.setattr(store.ledger, "find", find_later)
    asyncio.run(scenario())


def test_claims_that_an_outage_kept_are_released_after_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = store.claims("a"), store.claims("bb")
    assert first is not None and second is not None
    assert first.take(["one", "two"]) == {"one", "two"}
    with monkeypatch.context() as outage:
        outage.setattr(first, "_delete", Mock(side_effect=DatabaseGone("the server is away")))
        with pytest.raises(DatabaseGone):
            first.release(["one"])
    assert second.take(["one"]) == set()
    first.release()
    assert second.take(["one", "two"]) == {"one"}


@pytest.mark.parametrize("end", ["stopped", "failed", "dead"])
def test_the_second_process_asks_what_the_first_did_not_get(store: Store, end: str) -> None:
    async def scenario() -> None:
        models = Slow()
        asker, first = process(store, models, "a")
        await models.all_called()
        _, second = process(store, models, "bb")
        if end == "dead":
            survivor = store.claims("bb")
            assert survivor is not None
            survivor.release_all(["a"])
            await models.all_called(times=2)  # else the one that counts as dead may answer first
        elif end == "stopped":
            asker.stop(Stopped("interrupted"))
            models.rejected = UnavailableError("HTTP 503")
            models.may_answer.set()
            with pytest.raises(Stopped):
                await first
        else:
            models.rejected = RejectedError("HTTP 400")
            models.may_answer.set()
            await first
        models.may_answer.set()
        progress = await asyncio.wait_for(second, 60)
        assert progress.paid == CALLS
        await asyncio.gather(first, return_exceptions=True)

    asyncio.run(scenario())
