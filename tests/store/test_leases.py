"""What processes share on Postgres: nobody changes it at the same time, the dead hold nothing."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import postgres
from judge_gym.records import Completion, Draw, Message, Request
from judge_gym.store import Leases, Payer, Store
from judge_gym.store import leases as leasing
from stores import recorded

pytestmark = pytest.mark.postgres
Held = dict[str, Any]


@pytest.fixture
def shared() -> Iterator[Store]:
    opened = Store.open(postgres.fresh_url())
    yield opened
    opened.close()


def leases(store: Store, holder: str) -> Leases:
    found = store.leases(holder)
    assert found is not None
    return found


def hold(number: int) -> Any:
    def change(common: Held, mine: Held, others: Sequence[Held], now: float) -> list[int]:
        mine["number"] = number
        return sorted(other["number"] for other in others)

    return change


def look(common: Held, mine: Held, others: Sequence[Held], now: float) -> list[int]:
    return sorted(other["number"] for other in others)


def test_a_lab_in_a_file_has_no_leases(tmp_path: Any) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'lab.db'}")
    assert store.leases("a") is None
    store.close()


@pytest.mark.slow
def test_a_process_sees_what_others_hold_until_they_release_it(shared: Store) -> None:
    first, second, third = (leases(shared, name) for name in ("first", "second", "third"))
    assert first.change("x", hold(1)) == []
    assert second.change("x", hold(2)) == [1]
    assert first.change("x", hold(3)) == [2]
    assert third.change("x", look) == [2, 3]
    assert third.change("y", look) == []
    assert third.change("x", look) == [2, 3], "who only looks holds nothing"
    second.release()
    assert third.change("x", look) == [3]


@pytest.mark.slow
def test_a_process_that_stops_renewing_holds_nothing(
    shared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases(shared, "dead").change("x", hold(1))
    other = leases(shared, "other")
    assert other.change("x", look) == [1]
    monkeypatch.setattr(leasing, "LAPSE", 0.0)
    assert other.change("x", look) == []


@pytest.mark.slow
def test_a_dead_process_holds_nothing_at_once(shared: Store) -> None:
    leases(shared, "dead").change("x", hold(1))
    other = leases(shared, "other")
    assert other.holders() == {"dead"}
    other.dead = {"dead"}
    assert other.change("x", look) == []
    assert other.holders() == set()


@pytest.mark.slow
def test_a_failed_change_of_leases_changes_nothing(shared: Store) -> None:
    def fail(common: Held, mine: Held, others: Sequence[Held], now: float) -> None:
        common["broken"] = mine["number"] = 1
        raise RuntimeError

    with pytest.raises(RuntimeError):
        leases(shared, "a").change("x", fail)
    assert leases(shared, "b").change("x", lambda common, *rest: dict(common)) == {}
    assert leases(shared, "b").change("x", look) == []


@pytest.mark.slow
def test_concurrent_changes_of_leases_are_not_lost(shared: Store) -> None:
    def count(common: Held, mine: Held, others: Sequence[Held], now: float) -> float:
        common["count"] = common.get("count", 0) + 1
        mine["count"] = mine.get("count", 0) + 1
        late: float = now - common.get("last", now)
        common["last"] = now
        return late

    def work(name: str) -> list[float]:
        mine = leases(shared, name)
        return [mine.change("x", count) for _ in range(40)]

    with ThreadPoolExecutor(6) as threads:
        late = [each for all in threads.map(work, "abcdef") for each in all]
    assert min(late) >= 0

    def sums(common: Held, mine: Held, others: Sequence[Held], now: float) -> tuple[int, int]:
        return common["count"], sum(other["count"] for other in others)

    assert leases(shared, "g").change("x", sums) == (240, 240)


def test_what_was_paid_is_added_up_by_study_and_by_run(store: Store) -> None:
    for number in range(5):
        payer = Payer(1 + number % 2, "study", "tag", "scorer")
        asked = Request("sim:a", (Message("user", ("hello",)),), Draw("7", number))
        said = Completion("yes", "stop", "a", 10, 5, 0.25) if number else None
        recorded(store, asked, payer, said, None if number else "down")
    assert store.usage.paid("study", 0) == (5, 60, 1.0, 5)
    assert store.usage.paid(1, 0) == (3, 30, 0.5, 5)
    assert store.usage.paid("study", 2) == (3, 45, 0.75, 5)
    assert store.usage.paid("study", 2, 4) == (2, 30, 0.5, 4)
    assert store.usage.paid("other", 7) == (0, 0, 0.0, 7)
