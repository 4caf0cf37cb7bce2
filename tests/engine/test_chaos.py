"""Killed at random points, a run of five stages ends as an undisturbed one; `CHAOS` says how often.

Whatever runs next takes it up: the same command, a worker, the server of a lab. Requests are
counted at the endpoint, which is a process of its own that judges are asked at over HTTP.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from commands import IN_FLIGHT, Bench, Process, Reference, ended, served, undisturbed, write_study

KILLS = int(os.environ.get("CHAOS", "2"))
SEED = int(os.environ.get("CHAOS_SEED", "11"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120 + 40 * KILLS)]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    found = undisturbed(tmp_path_factory.mktemp("reference"))
    assert all(found.rows.values())
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    on_server = request.param == "postgres"
    database = postgres.fresh_url() if on_server else f"sqlite:///{tmp_path / 'lab.db'}"
    with served("--latency", "0.01", "--jitter", "0.02") as url:
        opened = Bench(tmp_path, database, url)
        yield opened
        opened.close()


def landed(bench: Bench) -> int:
    """Requests that the server has counted, once no further one is on its way."""
    found = -1
    while found != (found := bench.stats()["requests"]):
        time.sleep(0.2)
    return found


SUCCESSORS = (("worker", "--until-idle"), ("lab", "--port", "0"), ("run", "study.yaml"))


def kill(process: Process) -> None:
    """Kills a process and the worker that it started, if it serves a lab."""
    process.send_signal(signal.SIGSTOP)  # so that it starts no other
    for children in Path(f"/proc/{process.pid}/task").glob("*/children"):  # of each thread
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
    process.kill()
    process.communicate()


def test_killed_at_random_points_it_ends_with_the_rows_of_an_undisturbed_run(
    reference: Reference, bench: Bench
) -> None:
    study = write_study(bench.folder)
    rng = random.Random(SEED)
    lost = 0
    for number, point in enumerate(sorted(rng.sample(range(reference.calls), KILLS))):
        process = bench.start(*(rng.choice(SUCCESSORS) if number else ("run", study)))
        bench.wait_for(point, process)
        time.sleep(rng.uniform(0, 0.1))
        kill(process)
        before, lost = lost, landed(bench) - bench.attempts()
        assert lost - before <= IN_FLIGHT, f"at {point} of {reference.calls}"
    said = bench.json("run", study)
    assert said["status"] == "complete"
    assert bench.rows() == reference.rows
    assert (bench.attempts(), bench.answered_twice()) == (reference.calls, 0)
    stats = bench.stats()
    assert stats["bodies"]["distinct"] == reference.calls
    assert stats["requests"] - reference.calls == lost <= IN_FLIGHT * KILLS
    assert stats["bodies"]["repeated"] <= lost
    assert ended(bench.start("status", "big")).count("complete") == 3
