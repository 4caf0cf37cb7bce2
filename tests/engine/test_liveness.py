"""Locks of worker processes: which are alive, and what an unconfirmed lock forbids."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

import postgres
from judge_gym.engine import controls, liveness, queue, steps, worker, workflow
from judge_gym.engine.calls import record
from judge_gym.engine.liveness import MISSED, LockTaken, Sweeper, worker_lock
from judge_gym.engine.queue import AT_ONCE, SHARDS
from judge_gym.errors import DatabaseFull, DatabaseGone
from judge_gym.lab import Lab
from judge_gym.records.actors import machine_user
from judge_gym.store import Database, SessionLock, Store
from judge_gym.store import locks as store_locks

WriteStudy = Callable[..., Path]
PATIENCE = 120.0


@pytest.fixture
def database() -> Iterator[Database]:
    store = Store.open(postgres.fresh_url())
    yield store.database
    store.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that a test can wait for."""
    monkeypatch.setattr(liveness, "CHECK_INTERVAL", 0.05)
    monkeypatch.setattr(liveness, "SETTLE", 0.2)
    monkeypatch.setattr(liveness, "AFTER_OUTAGE", 0.4)


def wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def cut(database: Database) -> None:
    """End every session that holds an advisory lock."""
    query = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
    with database.begin() as connection:
        connection.execute(sa.text(query))


@pytest.mark.slow
def test_an_ended_process_is_dead_after_several_checks_and_a_working_one_never(
    database: Database,
) -> None:
    with worker_lock(database, 1) as mine, worker_lock(database, 1) as other:
        with worker_lock(database, 1) as third:
            both = {other.name, third.name}
            for _ in range(2 * MISSED):
                assert mine.dead(both) == set()
        observer = SessionLock(database, "observer")
        wait(lambda: not observer.held({third.name}))  # the server notices the end a little later
        looks = [mine.dead(both) for _ in range(MISSED + 1)]
        assert looks == [set()] * (MISSED - 1) + [{third.name}] * 2


@pytest.mark.slow
def test_a_lost_lock_is_confirmed_only_once_its_work_was_found_unchanged(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "SETTLE", 1000.0)
    with worker_lock(database, 1) as mine:
        assert mine.confirmed()
        cut(database)
        wait(lambda: not mine.confirmed())
        mine.confirm(time.monotonic())  # too soon: another may be about to queue its work
        assert not mine.confirmed()
        mine.confirm(time.monotonic() + liveness.SETTLE)
        wait(mine.confirmed)


@pytest.mark.slow
def test_a_lock_that_cannot_be_checked_is_unconfirmed_before_its_process_is_declared_dead(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert liveness.VALID < MISSED - 1  # looks are a second apart
    monkeypatch.setattr(liveness, "VALID", 0.3)
    with worker_lock(database, 1) as mine:
        monkeypatch.setattr(liveness, "CHECK_INTERVAL", 1000.0)
        wait(lambda: not mine.confirmed())


@pytest.mark.slow
def test_a_process_that_hangs_loses_its_lock_and_is_unconfirmed_when_it_wakes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "SETTLE", 1000.0)
    monkeypatch.setattr(store_locks, "SILENCE", 1.0)
    other_store = Store.open(database.url.render_as_string(hide_password=False))
    with worker_lock(database, 1) as mine, worker_lock(other_store.database, 1) as other:
        for _ in range(2 * MISSED):
            assert mine.end_hung({other.name}) == {}
        assert other.confirmed()
        monkeypatch.setattr(liveness, "CHECK_INTERVAL", 3.0)
        ended: dict[str, float] = {}
        wait(lambda: bool(ended.update(mine.end_hung({other.name})) or ended))
        assert [*ended] == [other.name] and ended[other.name] > 1
        observer = SessionLock(database, "observer")
        wait(lambda: not observer.held({other.name}))
        wait(lambda: bool(observer.held({other.name})))  # it wakes
        other.confirm(time.monotonic())
        assert not other.confirmed()
    other_store.close()


@pytest.mark.slow
def test_an_analysis_of_a_worker_that_hangs_is_queued_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_locks, "SILENCE", -1.0)
    store = Store(database)
    other_store = Store.open(database.url.render_as_string(hide_password=False))
    other = SessionLock(other_store.database, "judge-gym-other", 1)
    other.acquire()
    with closing(queue.RunQueue(database)) as queued, worker_lock(database, 1) as mine:
        queued.add_analysis(3)
        begin = "UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = :process"
        with queued.engine.begin() as connection:
            connection.execute(sa.text(begin), {"process": other.name})
        leases, claims = store.leases(mine.name), store.claims(mine.name)
        sweeper = Sweeper(store, queued, mine, set(), leases, claims)

        def is_queued_again() -> bool:
            sweeper.sweep()
            return not queued.executing()

        wait(is_queued_again)
    other_store.close()


@pytest.mark.slow
def test_no_process_is_declared_dead_right_after_an_outage(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "AFTER_OUTAGE", 1000.0)
    with worker_lock(database, 1) as mine:
        cut(database)
        wait(lambda: not mine.confirmed())
        for _ in range(2 * MISSED):
            assert mine.dead({"gone"}) == set()
        monkeypatch.setattr(liveness, "AFTER_OUTAGE", 0.0)
        wait(lambda: mine.dead({"gone"}) == {"gone"})


def test_the_server_checks_the_connection_of_a_lock() -> None:
    with postgres.stoppable_server() as server:
        store = Store.open(server.url)
        lock = SessionLock(store.database, "anybody")
        assert lock.acquire()
        assert lock._connection is not None
        assert lock._connection.scalar(sa.text("SHOW tcp_keepalives_idle")) == "5"
        assert lock._connection.scalar(sa.text("SHOW tcp_keepalives_count")) == "3"
        lock.release()
        store.close()


def test_only_one_process_works_on_a_file(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'lab.db'}")
    with worker_lock(store.database, 1) as mine:
        assert mine.confirmed() and mine.dead({"other"}) == {"other"}
        with pytest.raises(LockTaken), worker_lock(store.database, 1):
            pass
    store.close()


@pytest.mark.parametrize("on", postgres.EACH_DATABASE)
def test_the_status_of_a_queued_run_says_what_it_waits_for(
    write_study: WriteStudy, tmp_path: Path, on: str
) -> None:
    def said() -> set[str]:
        tags = [row["tag"] for row in lab.list_experiments(study="small")]
        return {run["message"] for tag in tags for run in lab.get_experiment_summary(tag)["runs"]}

    url = postgres.fresh_url() if on == "postgres" else f"sqlite:///{tmp_path / 'lab.db'}"
    with Lab.open(url) as lab:
        lab.runs.start(write_study())
        [waits] = said()
        assert "no worker is running" in waits
        with worker_lock(lab.store.database, int(queue.PROTOCOL)):
            assert said() == {""}
        if on == "postgres":
            with worker_lock(lab.store.database, 7):
                [waits] = said()
                assert f"a worker of protocol {queue.PROTOCOL}" in waits and "protocol 7" in waits
        lab.runs.pause("small")
        assert said() == {f"Paused by {machine_user()}"}
        assert lab.runs.run("small").status == "complete"
        assert said() == {""}


@pytest.mark.slow
def test_a_database_that_stays_away_ends_the_command_and_the_same_command_continues(
    write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, retry: bool = False) -> None:
        raise DatabaseGone("it is away")

    with Lab.open(postgres.fresh_url()) as lab:
        with monkeypatch.context() as outage:
            outage.setattr(record, "time", SimpleNamespace(sleep=lambda seconds: None))
            outage.setattr(lab.store.ledger, "record", away)
            with pytest.raises(DatabaseGone, match="it is away"):
                lab.runs.run(write_study())
        assert {row["status"] for row in lab.list_experiments(study="small")} == {"pending"}
        assert lab.runs.run("small").status == "complete"


def test_a_full_disk_ends_the_command_in_words_and_with_room_the_same_command_continues(
    lab: Lab, write_study: WriteStudy
) -> None:
    room = 0

    def limit(connection: Any, _: object) -> None:
        [pages] = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages + room if room else 1_000_000}")

    study, engine = write_study(samples=20), lab.store.database.engine
    lab.runs.run(study, pause_after="rubric")
    engine.dispose()
    sa.event.listen(engine, "connect", limit)
    room = 1
    with pytest.raises(DatabaseFull, match=r"cannot be written: disk full .* once there is room"):
        lab.runs.run(study)
    room = 0
    engine.dispose()
    assert lab.runs.run(study).status == "complete"


def test_shards_that_begin_during_an_outage_are_performed_after_it(
    lab: Lab, write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_up, away = controls.Controls.take_up, iter(range(2 * AT_ONCE[SHARDS]))

    def take_up_later(self: controls.Controls, run_id: int, *, again: bool) -> None:
        if not again and next(away, None) is not None:
            raise DatabaseGone("the server is away")
        take_up(self, run_id, again=again)

    monkeypatch.setattr(steps, "SHARD", 1)
    monkeypatch.setattr(workflow, "OUTAGE", (0.0,) * 2 * AT_ONCE[SHARDS])
    monkeypatch.setattr(controls.Controls, "take_up", take_up_later)
    result = lab.runs.run(write_study())
    assert result.status == "complete"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "method"),
    [
        *((steps.StudySteps, name) for name in ("announce", "shards", "questions", "finish")),
        (workflow.Workflows, "_record_end"),
    ],
)
def test_runs_and_shards_that_an_outage_ended_are_executed_again(
    write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    present, away = getattr(owner, method), iter(range(AT_ONCE[SHARDS]))

    def absent(*given: object) -> object:
        if next(away, None) is not None:
            raise DatabaseGone("the server is away")
        return present(*given)

    monkeypatch.setattr(workflow, "OUTAGE", ())
    monkeypatch.setattr(queue, "SERVER_POLL", 0.1)
    monkeypatch.setattr(worker, "SWEEP", 0.1)
    monkeypatch.setattr(liveness, "ORPHAN_SWEEPS", 3)
    monkeypatch.setattr(steps, "SHARD", 1)
    monkeypatch.setattr(owner, method, absent)
    with Lab.open(postgres.fresh_url()) as lab:
        result = lab.runs.run(write_study())
        latest = lab.store.events.latest_by_run([run.run for run in result.runs])
    assert result.status == "complete"
    assert {event.kind for event in latest.values()} == {"ended"}
