"""Four processes keep a provider's limits and a study's budget together, on a real Postgres."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

import postgres
from forked import processes
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.store import Store
from judge_gym.store import tables as t
from workers import Work, all_work, write_entry

pytestmark = pytest.mark.slow

RPM = 1200
PRICES = "prices = {input = 1.0, output = 10.0}"


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with processes(4) as opened:
        yield opened


@contextmanager
def serving(folder: Path, entry: str, **options: Any) -> Iterator[tuple[SimulatedServer, Store]]:
    server = SimulatedServer(**options)
    with serve(server) as url:
        write_entry(folder, url, entry)
        store = Store.open(postgres.fresh_url())
        yield server, store
        store.close()


def works(
    store: Store, folder: Path, calls: list[int], seconds: float = 60.0, runs: int = 4
) -> list[Work]:
    url = store.database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    begin = time.time() + 0.2
    return [
        Work(f"worker {number}", url, folder, number % runs, wanted, seconds, begin)
        for number, wanted in enumerate(calls)
    ]


class FinishedCall(NamedTuple):
    """A call of the ledger."""

    began: float
    ended: float
    run: int


def finished_calls(store: Store) -> list[FinishedCall]:
    a = t.attempts.c
    with store.database.read() as connection:
        rows = connection.execute(sa.select(a.at, a.seconds, a.run_id)).all()
    return sorted(
        FinishedCall(at.timestamp() - took, at.timestamp(), run) for at, took, run in rows
    )


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [[500] * 4, [500, 3, 3, 3]], ids=["all busy", "one busy"])
def test_processes_keep_a_shared_limit_and_each_gets_its_share(
    pool: ProcessPoolExecutor, tmp_path: Path, wanted: list[int]
) -> None:
    with serving(tmp_path, f"rpm = {RPM}", rpm=RPM, latency=0.2) as (server, store):
        server._requests.take(RPM - RPM / 60)  # so that it refuses any excess
        all_work(pool, works(store, tmp_path, wanted, 8.0))  # so that a late one has its turn
        calls = finished_calls(store)
        assert server._outcomes["429"] == 0
    began = [call.began for call in calls]
    for number, first in enumerate(began):
        for count, last in enumerate(began[number:], 1):
            assert count <= (last - first + 1.2) * RPM / 60 + 1
    paid = Counter(call.run for call in calls)
    assert all(paid[run] >= min(3, wanted[run]) for run in range(4)), paid


@pytest.mark.slow
def test_calls_in_flight_are_counted_in_all_processes(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    with serving(tmp_path, "concurrency = 6", latency=0.1) as (_, store):
        all_work(pool, works(store, tmp_path, [200] * 4, 4.0))
        calls = finished_calls(store)
    changes = sorted([(c.began, 1) for c in calls] + [(c.ended, -1) for c in calls])
    flying = most = 0
    for _, change in changes:
        flying += change
        most = max(most, flying)
    assert 4 <= most <= 6
    paid = Counter(call.run for call in calls)
    assert min(paid[run] for run in range(4)) >= 0.3 * max(paid.values()), paid


# --- budgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "kind", "runs"),
    [
        ({"calls": 301}, "calls", 4),
        pytest.param({"tokens": 60_000}, "tokens", 4, marks=pytest.mark.slow),
        pytest.param({"usd": 0.1}, "usd", 4, marks=pytest.mark.slow),
        pytest.param({"run": {"calls": 150}}, "calls", 2, marks=pytest.mark.slow),
    ],
    ids=["calls", "tokens", "usd", "of a run"],
)
def test_processes_use_a_shared_budget_fully_and_never_exceed_it(
    pool: ProcessPoolExecutor, tmp_path: Path, budget: dict[str, Any], kind: str, runs: int
) -> None:
    with serving(tmp_path, PRICES, latency=0.05, jitter=0.1) as (_, store):
        store.studies.save("small", budget)
        ends = all_work(pool, works(store, tmp_path, [400] * 4, runs=runs))
        calls, tokens, usd, _ = store.usage.paid("small", 0)
        limit = budget[kind] if "run" not in budget else 2 * budget["run"][kind]
        paid = {"calls": calls, "tokens": tokens, "usd": usd}
        worst = {"calls": 1, "tokens": 600, "usd": 600 * 10 / 1e6}
        assert all("is reached" in end for end in ends), ends
        assert limit - worst[kind] < paid[kind] <= limit
