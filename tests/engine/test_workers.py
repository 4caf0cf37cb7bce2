"""Workers on one Postgres: when one dies or ends, another continues its work."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import postgres
from commands import (
    IN_FLIGHT,
    Bench,
    Reference,
    ended,
    ready,
    served,
    undisturbed,
    wait,
    write_study,
)

pytestmark = pytest.mark.slow
CHANGES = {"judges": ["lab:balanced", "lab:strict"], "samples": 50, "swap": "none"}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return undisturbed(tmp_path_factory.mktemp("reference"), **CHANGES)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with served("--latency", "0.03", "--jitter", "0.02") as url:
        opened = Bench(tmp_path, postgres.fresh_url(), url)
        yield opened
        opened.close()


def test_another_worker_continues_the_work_of_a_killed_one(
    reference: Reference, bench: Bench
) -> None:
    first, second = ready(bench), ready(bench)
    bench.call("run", "--background", write_study(bench.folder, **CHANGES))
    bench.wait_for(reference.calls // 3, first, second)
    first.kill()
    first.communicate()
    bench.complete(second)
    assert bench.rows() == reference.rows
    stats = bench.stats()
    # What the dead worker had sent may still be committed when the other asks for it already.
    assert 0 <= bench.attempts() - reference.calls == bench.answered_twice() <= IN_FLIGHT
    assert stats["bodies"]["distinct"] == reference.calls
    assert stats["requests"] - reference.calls <= IN_FLIGHT


def test_another_worker_continues_the_work_of_one_that_was_terminated(
    reference: Reference, bench: Bench
) -> None:
    first = ready(bench)
    bench.call("run", "--background", write_study(bench.folder, **CHANGES))
    bench.wait_for(reference.calls // 3, first)
    first.send_signal(signal.SIGTERM)
    assert "worked on 2 runs" in ended(first, 130)
    left = bench.attempts()
    assert left < reference.calls
    time.sleep(0.5)
    assert bench.attempts() == left
    assert not bench.statuses() & {"paused", "failed", "cancelled", "complete"}
    second = ready(bench)
    bench.complete(second)
    assert bench.rows() == reference.rows
    stats = bench.stats()
    assert stats["requests"] == stats["bodies"]["distinct"] == bench.attempts() == reference.calls


def test_workers_share_the_shards_of_a_run(bench: Bench) -> None:
    workers = [ready(bench), ready(bench)]
    shards = 6
    changes = {"judges": ["lab:balanced"], "samples": 42 * shards, "swap": "none", "probe": False}
    bench.call("run", "--background", write_study(bench.folder, **changes))
    taken = sa.text(
        "SELECT executor_id, count(*) FROM dbos.workflow_status "
        "WHERE name = 'shard' AND status = 'PENDING' GROUP BY executor_id"
    )

    def all_taken() -> bool:
        with bench.store.database.read() as connection:
            counts = [count for _, count in connection.execute(taken)]
        return sum(counts) == shards and len(counts) == 2

    wait(all_taken, *workers)


@pytest.mark.parametrize("on", ["sqlite", "postgres"])
def test_a_terminated_run_is_paused_and_resume_completes_it(
    reference: Reference, bench: Bench, on: str
) -> None:
    if on == "sqlite":
        bench.database = f"sqlite:///{bench.folder / 'lab.db'}"
    process = bench.start("run", write_study(bench.folder, **CHANGES))
    bench.wait_for(reference.calls // 3, process)
    process.send_signal(signal.SIGTERM)
    assert "interrupted; continue with: judge-gym run" in ended(process, 130)
    assert bench.statuses() == {"paused"}
    assert bench.attempts() < reference.calls
    assert bench.json("resume", "big")["status"] == "complete"
    assert bench.rows() == reference.rows
    stats = bench.stats()
    assert stats["requests"] == stats["bodies"]["distinct"] == bench.attempts() == reference.calls
