"""Who works on a lab: on a file one process at a time; on a server any number, each known by name.

A lock says who is alive. It is free as soon as its process is gone, however that ended.
"""

import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from filelock import FileLock, Timeout

from judge_gym.errors import ConflictError
from judge_gym.store import Database, SessionLock

ALONE = "judge-gym-alone"
"""The lock on a server of what two must not do at once, such as an import."""
MISSED = 3
"""How often in a row a process is found without its lock before it is taken to be dead."""
SETTLING = 30.0
"""Seconds after an outage in which nobody is taken to be dead: all have lost their locks, and some
are slow to take them anew."""


class Taken(ConflictError):
    """Another process is at work."""


class Turn(Protocol):
    """The right of a process to carry out runs."""

    def dead(self, executors: Collection[str]) -> set[str]:
        """Those who are at work no more."""
        ...


class Alone:
    """The only one to work on a file."""

    def dead(self, executors: Collection[str]) -> set[str]:
        """Everybody else."""
        return set(executors)


class Among:
    """One of the workers on a server."""

    def __init__(self, lock: SessionLock) -> None:
        self._lock = lock
        self._missed: dict[str, int] = {}

    def dead(self, executors: Collection[str]) -> set[str]:
        """Those whose lock stays free; one's own is taken anew if its connection was lost."""
        self._lock.acquire()
        if time.monotonic() < self._lock.regained + SETTLING:
            return set()
        free = set(executors) - self._lock.held(executors)
        self._missed = {name: self._missed.get(name, 0) + 1 for name in free}
        return {name for name, times in self._missed.items() if times >= MISSED}


@contextmanager
def turn(database: Database, executor: str) -> Iterator[Turn]:
    """Carry out runs; refused at once on a file where another process does."""
    if database.file is not None:
        with lab_lock(database):
            yield Alone()
        return
    lock = SessionLock(database, executor)
    lock.acquire()
    try:
        yield Among(lock)
    finally:
        lock.release()


def lab_lock(database: Database) -> AbstractContextManager[None]:
    """Do what no two may do at once; refused at once where another process does."""
    return _file_lock(database) if database.file is not None else _server_lock(database)


def _taken(database: Database) -> Taken:
    return Taken(f"another judge-gym is at work on {database.shown}; wait for it or stop it")


@contextmanager
def _file_lock(database: Database) -> Iterator[None]:
    lock = FileLock(f"{database.file}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise _taken(database) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _server_lock(database: Database) -> Iterator[None]:
    lock = SessionLock(database, ALONE)
    if not lock.acquire():
        raise _taken(database)
    try:
        yield
    finally:
        lock.release()
