"""Work that a dead or hung process has left is taken up by whatever runs next."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

import postgres
from commands import IN_FLIGHT, Bench, ended, ready, served, wait, write_study
from judge_gym.engine import liveness, worker
from judge_gym.engine.liveness import worker_lock
from judge_gym.engine.queue import PROTOCOL, RunQueue
from judge_gym.errors import DatabaseGone
from judge_gym.lab import Lab
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.store import locks as store_locks
from judge_gym.store import tables as t
from stores import blank
from workers import write_entry

WriteStudy = Callable[..., Path]
JUDGES = {
    "judges": ["lab:balanced", "lab:strict"],
    "design": {"evidence.editor": "lab:editor", "rubric.critic": "lab:critic"},
}
LARGE = {"judges": ["lab:balanced", "lab:strict"], "samples": 150, "swap": "none"}


@pytest.fixture(params=postgres.EACH_DATABASE)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    on_server = request.param == "postgres"
    return postgres.fresh_url() if on_server else blank(tmp_path / "lab.db")


def leave_begun(lab: Lab, process: str = "judge-gym-gone") -> None:
    """Leaves what is queued as a process that has begun it leaves it when it is killed."""
    begin = "UPDATE {}workflow_status SET status = 'PENDING', executor_id = :process"
    with closing(RunQueue(lab.store.database)) as queue, queue.engine.begin() as connection:
        schema = "dbos." if lab.store.database.file is None else ""
        connection.execute(sa.text(begin.format(schema)), {"process": process})


def messages(lab: Lab) -> set[str]:
    return {run["message"] for run in lab.runs.status("small")["runs"]}


def test_work_at_a_real_endpoint_that_a_dead_worker_has_begun_is_taken_up(
    url: str, write_study: WriteStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker, "SWEEP", 0.1)
    monkeypatch.setattr(liveness, "MISSED", 2)
    server = SimulatedServer()
    with serve(server) as endpoint:
        write_entry(tmp_path, endpoint)
        with Lab.open(url, folder=tmp_path) as lab:
            lab.runs.start(write_study(**JUDGES))
            leave_begun(lab)
            assert not lab.engine.idle(), "the server of a lab starts a worker for it"
            assert lab.workers.has_abandoned()
            lab.engine.work(until_idle=True)
            assert {run["status"] for run in lab.runs.status("small")["runs"]} == {"complete"}
            assert lab.engine.idle() and not lab.workers.has_abandoned()


def test_a_command_on_a_file_takes_up_what_a_dead_worker_left_of_another_study(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.runs.start(write_study())
    leave_begun(lab)
    assert lab.runs.run(write_study(study="other")).status == "complete"
    assert "paused" not in {run["status"] for run in lab.runs.status("small")["runs"]}
    lab.engine.work(until_idle=True)
    assert {run["status"] for run in lab.runs.status("small")["runs"]} == {"complete"}


@pytest.mark.slow
def test_the_server_of_a_lab_starts_no_worker_where_one_serves_unless_it_hangs_or_refuses(
    write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lab.open(postgres.fresh_url()) as lab:
        assert not lab.engine.served_elsewhere()
        lab.runs.start(write_study())
        with worker_lock(lab.store.database, int(PROTOCOL)):
            assert lab.engine.served_elsewhere()
            assert lab.workers.start() is None
            runs = [run["run"] for run in lab.runs.status("small")["runs"]]
            lab.store.events.record(runs, "waiting", "the worker cannot take it")
            assert not lab.engine.served_elsewhere()
            lab.store.events.record(runs, "started")
            assert messages(lab) == {""}
            monkeypatch.setattr(store_locks, "SILENCE", -1.0)
            assert not lab.engine.served_elsewhere()
            [hung] = messages(lab)
            assert f"process {os.getpid()}" in hung and "hangs; end that process" in hung


def test_the_status_names_a_hung_worker_on_a_file(lab: Lab, write_study: WriteStudy) -> None:
    lab.runs.start(write_study())
    with worker_lock(lab.store.database, int(PROTOCOL)) as lock:
        lab.store.in_flight.report(lock.name, {("small", "lab:balanced"): 3})
        assert messages(lab) == {""}
        long_ago = datetime.now(UTC) - timedelta(seconds=45)
        with lab.store.database.begin() as connection:
            connection.execute(t.in_flight.update().values(at=long_ago))
        [hung] = messages(lab)
        assert lock.name in hung and "silent for 45 s, hangs; end that process" in hung


def test_logs_of_workers_have_a_place(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lab.workers.log_file() == tmp_path / "lab.worker.log"
    monkeypatch.setenv("JUDGE_GYM_WORKER_LOG", str(tmp_path / "elsewhere.log"))
    assert lab.workers.log_file() == tmp_path / "elsewhere.log"


# --- processes -----------------------------------------------------------------------------------


@pytest.fixture
def bench(url: str, tmp_path: Path) -> Iterator[Bench]:
    with served("--latency", "0.1") as endpoint:
        opened = Bench(tmp_path, url, endpoint)
        yield opened
        opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("successor", ["worker", "lab"])
def test_a_successor_completes_what_a_killed_worker_has_begun(
    bench: Bench, tmp_path: Path, successor: str
) -> None:
    worker = ready(bench)
    bench.call("run", "--background", write_study(tmp_path, **LARGE | {"samples": 30}))
    bench.wait_for(100, worker)
    worker.kill()
    worker.communicate()
    if successor == "lab":
        bench.complete(bench.start("lab", "--port", "0"))
    else:
        ended(bench.start("worker", "--until-idle"))
    assert bench.statuses() == {"complete"}
    stats = bench.stats()
    assert stats["requests"] - stats["bodies"]["distinct"] <= IN_FLIGHT


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_work_of_a_stopped_worker_is_taken_up_and_it_repeats_nothing_when_it_wakes(
    bench: Bench, tmp_path: Path
) -> None:
    first = ready(bench)
    bench.call("run", "--background", write_study(tmp_path, **LARGE))
    bench.wait_for(100, first)
    second = ready(bench)
    first.send_signal(signal.SIGSTOP)
    try:
        stopped = time.monotonic()
        said = ""
        while "others take up its work" not in said:
            assert time.monotonic() < stopped + 60, said
            time.sleep(1)
            runs = (run for row in bench.json("status", "big") for run in row["runs"])
            said = " ".join(run["message"] for run in runs)
        assert f"-{first.pid}-" in said
        before = bench.stats()["requests"]
        wait(lambda: bench.stats()["requests"] > before + 2 * IN_FLIGHT, second)
    finally:
        first.send_signal(signal.SIGCONT)
    bench.complete(first, second)
    stats = bench.stats()
    assert stats["requests"] - stats["bodies"]["distinct"] <= IN_FLIGHT
    assert bench.attempts() == stats["requests"]


@pytest.mark.slow
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_an_idle_worker_makes_few_transactions_and_takes_up_new_work(
    bench: Bench, tmp_path: Path
) -> None:
    count = "SELECT xact_commit + xact_rollback FROM pg_stat_database "
    query = sa.text(count + "WHERE datname = current_database()")

    def transactions() -> int:
        with bench.store.database.read() as connection:
            return int(connection.execute(query).scalar_one())

    worker = ready(bench)
    bench.call(
        "run",
        "--background",
        write_study(tmp_path, judges=["lab:balanced"], samples=1, swap="none"),
    )
    bench.complete(worker)
    time.sleep(10)
    before = transactions()
    time.sleep(10)
    assert transactions() - before < 10 * 5
    bench.call("run", "--background", write_study(tmp_path, study="second", samples=1, swap="none"))
    bench.complete(worker)


@pytest.mark.slow
def test_an_idle_worker_ends_when_its_database_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "OUTAGE", (0.5,))
    monkeypatch.setattr(worker, "LOOK", 0.1)
    url = postgres.fresh_url()
    name = url.partition("?")[0].rpartition("/")[2]
    with Lab.open(url) as lab, ThreadPoolExecutor(1) as pool:
        ready_names: list[str] = []
        work = pool.submit(lab.workers.execute, on_start=ready_names.append)
        while not ready_names:
            time.sleep(0.05)
        with psycopg.connect(postgres.server(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        with pytest.raises(DatabaseGone):
            work.result(timeout=60)
