"""Processes that a test starts, forked from one that has imported the package.

A process that imports the package itself takes more than a second of CPU, which is most of what the
tests that start several of them would take.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier
from typing import Any

import sqlalchemy as sa

from judge_gym.store import Store, database
from stores import later_version

NOTHING: Mapping[str, Any] = {}
IMPORTED = ("judge_gym.lab", "judge_gym.models.http_model", "alembic.command", "psycopg")


def forkserver() -> ForkServerContext:
    """Returns what starts such processes; they share nothing with the process of the tests."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*IMPORTED])
    return context


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Opens so many processes, which are ready to work."""
    with ProcessPoolExecutor(count, mp_context=forkserver()) as pool:
        list(pool.map(time.sleep, [0.5] * count))  # long enough for each of them to do so once
        yield pool


def open_stores_at_once(url: str, count: int) -> list[int | None]:
    """Opens a store in several processes at the same time, and returns how each of them ended."""
    context = forkserver()
    ready = context.Barrier(count)
    openers = [context.Process(target=_open_when_ready, args=(url, ready)) for _ in range(count)]
    return _ends(openers)


def open_store_until(url: str, statement: int, later: Mapping[str, Any] = NOTHING) -> int | None:
    """Opens a store in a process that is killed before its nth statement that writes.

    Args:
        url: the store's.
        statement: the number of the statement, from 1.
        later: the arguments of `stores.later_version`, if that is the version that opens it.
    """
    [end] = _ends([forkserver().Process(target=_open_and_die, args=(url, statement, later))])
    return end


def _ends(started: list[Any]) -> list[int | None]:
    for process in started:
        process.start()
    for process in started:
        process.join()
    return [process.exitcode for process in started]


def _open_when_ready(url: str, ready: Barrier) -> None:
    ready.wait()
    Store.open(url).close()


def _open_and_die(url: str, left: int, later: Mapping[str, Any]) -> None:
    for name, value in (later_version(**later) if later else {}).items():
        setattr(database, name, value)

    @sa.event.listens_for(sa.engine.Engine, "before_cursor_execute")
    def die(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        nonlocal left
        if statement.split()[0] in ("CREATE", "INSERT", "ALTER", "UPDATE"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    Store.open(url)
