"""A disk that is full, a database that is away: a clear end or patience, and nothing paid twice."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

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

CHANGES = {"judges": ["lab:balanced", "lab:strict"], "samples": 50, "swap": "none"}
FULL = """
import os, sqlite3

connect = sqlite3.connect

def small(database, *rest, **options):
    connection = connect(database, *rest, **options)
    if str(database).endswith("lab.db"):
        connection.execute(f"PRAGMA max_page_count={os.environ['PAGES']}")
    return connection

sqlite3.connect = sqlite3.dbapi2.connect = small
"""
"""A disk with no room for further pages of the lab; every Python reads this when it starts."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return undisturbed(tmp_path_factory.mktemp("reference"), **CHANGES)


def test_a_full_disk_is_a_clear_end_and_with_room_the_same_command_goes_on(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "sitecustomize.py").write_text(FULL)
    with served("--latency", "0.01") as url:
        bench = Bench(tmp_path, f"sqlite:///{tmp_path / 'lab.db'}", url)
        study = write_study(tmp_path, **CHANGES)
        bench.call("run", study, "--pause-after", "rubric", code=3)
        with closing(sqlite3.connect(tmp_path / "lab.db")) as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "full"), prepend=":")
        bench.environment = {"PAGES": str(pages + 40)}
        said = ended(bench.start("run", study), 2)
        assert "database or disk is full" in said
        lost = bench.stats()["requests"] - bench.attempts()
        assert 0 <= lost <= IN_FLIGHT
        assert bench.attempts() < reference.calls
        bench.environment = {"PAGES": "1000000"}
        assert bench.json("run", study)["status"] == "complete"
        assert bench.rows() == reference.rows
        assert bench.attempts() == reference.calls
        assert bench.stats()["requests"] == reference.calls + lost
        bench.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_database_that_is_away_for_seconds_is_waited_for(
    reference: Reference, tmp_path: Path, workers: int
) -> None:
    with served("--latency", "0.05") as url, postgres.mortal() as server:
        bench = Bench(tmp_path, server.url, url)
        study = write_study(tmp_path, **CHANGES)
        if workers:
            going = [ready(bench) for _ in range(workers)]
            bench.call("start", study)
        else:
            going = [bench.start("run", study, "--json")]
        bench.wait_for(reference.calls // 3, *going)
        server.stop()
        time.sleep(4.0)
        server.start()
        if workers:
            wait(lambda: bench.statuses() == {"complete"}, *going)
        else:
            assert '"status": "complete"' in ended(going[0])
        assert bench.rows() == reference.rows
        assert bench.answered_twice() == 0
        assert bench.attempts() == reference.calls
        assert bench.stats()["requests"] == reference.calls
        bench.close()
