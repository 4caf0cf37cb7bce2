"""Attempts are written in groups: all of them, whatever happens to one or to those who wait."""

import asyncio
from collections.abc import Sequence

import pytest
import sqlalchemy as sa

from judge_gym.engine.calls.record import Recorder
from judge_gym.errors import DatabaseGone, StoreError
from judge_gym.records import Completion, Draw, Message, Request
from judge_gym.store import Answer, Attempt, Payer, Store
from judge_gym.store import tables as t

PAYER = Payer(1, "study", "study/tag", "scorer")


def attempt(number: int, said: str | None = "VERDICT: A") -> Attempt:
    request = Request("sim:x", (Message("user", ("the same question",)),), Draw("s", number))
    completion = Completion(said, "stop", "sim:x", 1, 1, 0.0) if said is not None else None
    return Attempt(request.key(), request, "", PAYER, 0.1, completion)


def groups_of(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the groups that are written from now on."""
    record, sizes = store.ledger.record, list[int]()

    def counted(group: Sequence[Attempt], *, retry: bool = False) -> list[Answer]:
        sizes.append(len(group))
        return record(group, retry=retry)

    monkeypatch.setattr(store.ledger, "record", counted)
    return sizes


def written(store: Store) -> int:
    with store.database.read() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(t.attempts)) or 0


async def all_of(recorder: Recorder, attempts: Sequence[Attempt]) -> list[Answer | BaseException]:
    return await asyncio.gather(*map(recorder.record, attempts), return_exceptions=True)


def test_attempts_during_a_write_form_the_next_group(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = groups_of(store, monkeypatch)
    answers = asyncio.run(all_of(Recorder(store.ledger), [attempt(n) for n in range(100)]))
    assert sum(sizes) == 100 and len(sizes) <= 3
    found = store.ledger.find(attempt(n).key for n in range(100))
    assert [found[attempt(n).key] for n in range(100)] == answers, "each has its own answer"


def test_an_answer_is_committed_before_its_caller_continues(store: Store) -> None:
    async def one_by_one() -> None:
        recorder = Recorder(store.ledger)
        for number in range(5):
            await recorder.record(attempt(number))
            assert written(store) == number + 1

    asyncio.run(one_by_one())


def test_the_same_call_twice_in_a_group_is_stored_once(store: Store) -> None:
    twice = [attempt(1, None), attempt(1), attempt(2)]
    first, second, other = asyncio.run(all_of(Recorder(store.ledger), twice))
    assert isinstance(first, Answer) and isinstance(second, Answer) and isinstance(other, Answer)
    assert first.call_id == second.call_id != other.call_id
    assert written(store) == 3


def test_an_attempt_that_cannot_be_written_affects_no_other(store: Store) -> None:
    odd = attempt(2)
    odd = Attempt(odd.key, odd.request, "", PAYER, None, odd.completion)  # type: ignore[arg-type]
    ended = asyncio.run(all_of(Recorder(store.ledger), [attempt(1), odd, attempt(3)]))
    assert [isinstance(one, Answer) for one in ended] == [True, False, True]
    assert written(store) == 2


def test_a_database_error_is_reported_to_all_callers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(group: Sequence[Attempt], *, retry: bool = False) -> list[Answer]:
        raise StoreError("disk full")

    monkeypatch.setattr(store.ledger, "record", full)
    ended = asyncio.run(all_of(Recorder(store.ledger), [attempt(n) for n in range(5)]))
    assert [str(one) for one in ended] == ["disk full"] * 5


def test_an_unconfirmed_commit_is_not_written_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, heard = store.ledger.record, list[bool]()

    def cut_off(group: Sequence[Attempt], *, retry: bool = False) -> list[Answer]:
        answers = record(group, retry=retry)
        if not heard:
            heard.append(False)
            raise DatabaseGone("the server went away")
        return answers

    monkeypatch.setattr(store.ledger, "record", cut_off)
    twice = [attempt(1, None), attempt(1), attempt(2)]
    ended = asyncio.run(all_of(Recorder(store.ledger), twice))
    assert all(isinstance(one, Answer) for one in ended)
    assert written(store) == 3


def test_paid_answers_are_written_even_when_cancelled(store: Store) -> None:
    async def hurried() -> None:
        recorder = Recorder(store.ledger)
        for number in range(50):
            asyncio.ensure_future(recorder.record(attempt(number)))  # noqa: RUF006
        await asyncio.sleep(0)  # the first group may have begun, the loop ends at once

    asyncio.run(hurried())
    assert written(store) == 50
