"""Results that other labs made: taken once, and never in the place of one that stays."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest

from judge_gym.errors import ConflictError
from judge_gym.records.outcomes import EvalResult, EvalSource, Failed, Inconclusive, Passed
from judge_gym.store import Store, SuiteRun

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
LOST = EvalResult("a", "b", Inconclusive("rate_limit", "busy", "generation"))
EMPTY = EvalResult("a", "b", Inconclusive("infrastructure", "the reply is empty", "filesystem"))
GOOD, BAD = EvalResult("a", "b", Passed()), EvalResult("a", "b", Failed("tests", "1 of 2"))


def begun(store: Store) -> SuiteRun:
    store.suites.save_tasks("s", "v", [EvalSource("a", "b", "Do it.", {}, {})])
    return store.suites.save_run(
        "s", "v", "m:x", "default", {}, "0", replicates=2, evals=["a/b"], created=AT
    )


def test_a_suite_run_keeps_its_creation_time(store: Store) -> None:
    run = begun(store)
    assert run.created == AT
    later = store.suites.save_run("s", "v", "m:x", "default", {}, "0", replicates=3, evals=["a/b"])
    assert (later.id, later.created, later.replicates) == (run.id, AT, 3)
    assert store.suites.paths("s", "v") == ["a/b"]
    assert store.suites.paths("s", "w") == []


@pytest.mark.postgres
def test_a_posted_result_is_stored_once_in_any_time_zone(store: Store) -> None:
    run = begun(store)
    first = store.suites.save_posted_result(run, BAD, AT)
    elsewhere = AT.astimezone(timezone(timedelta(hours=5)))
    assert store.suites.save_posted_result(run, BAD, elsewhere) == first
    [row] = store.suites.results(run.id)[run.id]
    assert (row.id, row.at, row.result.outcome) == (first, AT, BAD.outcome)


@pytest.mark.parametrize("settled", [GOOD, BAD, EMPTY], ids=["passed", "failed", "empty"])
def test_a_settled_result_is_not_replaced(store: Store, settled: EvalResult) -> None:
    run = begun(store)
    store.suites.save_posted_result(run, settled, AT)
    with pytest.raises(ConflictError, match="from elsewhere"):
        store.suites.save_posted_result(run, GOOD, AT + timedelta(microseconds=1))


def test_an_inconclusive_result_is_replaced(store: Store) -> None:
    run = begun(store)
    store.suites.save_posted_result(run, LOST, AT)
    last = store.suites.save_posted_result(run, GOOD, AT + timedelta(microseconds=1))
    assert store.suites.save_posted_result(run, LOST, AT) < last, "which is there already"
    assert [row.id for row in store.suites.results(run.id)[run.id]] == [last]


@pytest.mark.postgres
def test_one_of_many_concurrent_results_is_stored(store: Store) -> None:
    run = begun(store)

    def take(number: int) -> int | None:
        try:
            return store.suites.save_posted_result(run, GOOD, AT + timedelta(seconds=number % 2))
        except ConflictError:
            return None

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(take, range(16)))
    assert len({id for id in taken if id is not None}) == 1
    assert taken.count(None) == 8
