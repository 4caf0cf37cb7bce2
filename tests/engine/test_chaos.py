"""Killed at random points, a run of five stages ends as an undisturbed one; `CHAOS` says how often.

Requests are counted at the server, by a process of its own.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from commands import IN_FLIGHT, Bench, Reference, ended, served, undisturbed, write_study

KILLS = int(os.environ.get("CHAOS", "2"))
SEED = int(os.environ.get("CHAOS_SEED", "11"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120 + 20 * KILLS)]


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


def test_killed_at_random_points_it_ends_with_the_rows_of_an_undisturbed_run(
    reference: Reference, bench: Bench
) -> None:
    study = write_study(bench.folder)
    rng = random.Random(SEED)
    lost = 0
    for point in sorted(rng.sample(range(reference.calls), KILLS)):
        process = bench.start("run", study)
        bench.wait_for(point, process)
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.communicate()
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
