"""Outages: a full disk ends a command, an absent database is awaited, nothing is paid twice."""

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

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

pytestmark = pytest.mark.slow

CHANGES = {"judges": ["lab:balanced", "lab:strict"], "samples": 50, "swap": "none"}
AWAY = 10.0 if "CHAOS" in os.environ else 4.0
"""Seconds that a database is away."""
FULL = """
import os, sqlite3

connect = sqlite3.connect

def small(database, *rest, **options):
    connection = connect(database, *rest, **options)
    if os.path.basename(str(database)) == os.environ["FULL"]:
        connection.execute(f"PRAGMA max_page_count={os.environ['PAGES']}")
    return connection

sqlite3.connect = sqlite3.dbapi2.connect = small
"""
"""A disk with no room for further pages of a file; every Python reads this when it starts."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return undisturbed(tmp_path_factory.mktemp("reference"), **CHANGES)


def pages_of(file: Path) -> int:
    """How many a file has, small ones, so that few further rows take a further page."""
    with closing(sqlite3.connect(file)) as connection:
        for change in ("PRAGMA journal_mode=DELETE", "PRAGMA page_size=512", "VACUUM"):
            connection.execute(change)
        return int(connection.execute("PRAGMA page_count").fetchone()[0])


@pytest.mark.parametrize(
    ("file", "room"),
    [
        ("lab.db", 400),
        pytest.param(
            "lab.dbos.db",
            5,
            marks=pytest.mark.skipif("CHAOS" not in os.environ, reason="long: for CHAOS=N"),
        ),
    ],
)
def test_a_full_disk_ends_the_command_and_with_room_the_same_command_continues(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, room: int
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "sitecustomize.py").write_text(FULL)
    with served("--latency", "0.01") as url:
        bench = Bench(tmp_path, f"sqlite:///{tmp_path / 'lab.db'}", url)
        study = write_study(tmp_path, **CHANGES)
        bench.call("run", study, "--pause-after", "rubric", code=3)
        pages = pages_of(tmp_path / file)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "full"), prepend=":")
        bench.environment = {"FULL": file, "PAGES": str(pages + room)}
        said = ended(bench.start("run", study), 2)
        assert "database or disk is full" in said
        assert bench.statuses() != {"complete"}
        lost = bench.stats()["requests"] - bench.attempts()
        assert 0 <= lost <= IN_FLIGHT
        assert bench.attempts() < reference.calls
        bench.environment = {"FULL": file, "PAGES": "10000000"}
        assert bench.json("run", study)["status"] == "complete"
        assert bench.rows() == reference.rows
        assert bench.attempts() == reference.calls
        assert bench.stats()["requests"] == reference.calls + lost
        bench.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_waits_for_a_database_that_is_away_for_seconds(
    reference: Reference, tmp_path: Path, workers: int
) -> None:
    with served("--latency", "0.05") as url, postgres.stoppable_server() as server:
        bench = Bench(tmp_path, server.url, url)
        study = write_study(tmp_path, **CHANGES)
        if workers:
            going = [ready(bench) for _ in range(workers)]
            bench.call("run", "--background", study)
        else:
            going = [bench.start("run", study, "--json")]
        bench.wait_for(reference.calls // 3, *going)
        server.stop()
        time.sleep(AWAY)
        server.start()
        if workers:
            bench.complete(*going)
        else:
            assert '"status": "complete"' in ended(going[0])
        assert bench.rows() == reference.rows
        assert bench.answered_twice() == 0
        assert bench.attempts() == reference.calls
        assert bench.stats()["requests"] == reference.calls
        bench.close()


class Gate:
    """The way to a server, which can be shut: its connections end, and no new one is made."""

    def __init__(self, listening: socket.socket, port: int) -> None:
        self.port: int = listening.getsockname()[1]
        self.is_open = True
        self._listening = listening
        self._beyond = port
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._admit)]
        self._threads[0].start()

    def _admit(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                if not self.is_open:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._beyond))
                self._ends += [near, far]
                for pair in ((near, far), (far, near)):
                    self._threads.append(threading.Thread(target=self._carry, args=pair))
                    self._threads[-1].start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            _hang_up(end)

    def shut(self) -> None:
        """Until `is_open` is set again."""
        self.is_open = False
        for end in self._ends:
            _hang_up(end)

    def close(self) -> None:
        """For good."""
        self.shut()
        _hang_up(self._listening)
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()


def _hang_up(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextmanager
def gate(port: int) -> Iterator[Gate]:
    with socket.create_server(("127.0.0.1", 0)) as listening, closing(Gate(listening, port)) as one:
        yield one


def test_a_worker_that_is_cut_off_and_declared_dead_repeats_only_calls_in_flight(
    reference: Reference, tmp_path: Path
) -> None:
    with (
        served("--latency", "0.25") as url,
        postgres.stoppable_server() as server,
        gate(int(urlsplit(server.url).port or 0)) as way,
    ):
        bench = Bench(tmp_path, server.url, url)
        study = write_study(tmp_path, **CHANGES)
        bench.database = server.url.replace(str(urlsplit(server.url).port), str(way.port))
        first = ready(bench)
        bench.database = server.url
        bench.call("run", "--background", study)
        bench.wait_for(reference.calls // 8, first)
        second = ready(bench)
        way.shut()
        time.sleep(1.0)  # for calls in flight to land
        cut_off = bench.stats()["requests"]
        wait(lambda: bench.stats()["requests"] > cut_off + 2 * IN_FLIGHT, first, second)
        way.is_open = True
        bench.complete(first, second)
        assert bench.rows() == reference.rows
        stats = bench.stats()
        assert stats["bodies"]["distinct"] == reference.calls
        assert stats["requests"] - reference.calls <= IN_FLIGHT
        bench.close()
