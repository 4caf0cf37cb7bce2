"""Who works on a lab: on a file one process at a time; on a server any number, each known by name.

A lock says who is alive. It is free as soon as its process is gone, however that ended. A process
that cannot be sure of its lock begins no call: others may take it for dead, and do its work.
"""

import math
import threading
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol

from filelock import FileLock, Timeout

from judge_gym.errors import ConflictError, DatabaseGone
from judge_gym.store import Database, SessionLock

ALONE = "judge-gym-alone"
"""The lock on a server of what two must not do at once, such as an import."""
BEAT = 0.5
"""Seconds between looks at one's own lock."""
SURE = 2.0
"""Seconds after such a look in which nobody can have taken this process for dead."""
MISSED = 5
"""How often in a row, a second apart, a process is found without its lock before it is taken to be
dead: later than it has ceased to be sure."""
CALM = 2.0
"""Seconds after a lock was taken anew in which another may still queue this process's work."""
GLANCE = 0.1
"""Seconds in which a file's lock may be held by one who only looks whether it is free."""
SETTLING = 30.0
"""Seconds after an outage in which nobody is taken to be dead: all have lost their locks, and some
are slow to take them anew."""


class LockTaken(ConflictError):
    """Another process is at work."""


class WorkerLock(Protocol):
    """The right of a process to carry out runs."""

    @property
    def name(self) -> str:
        """The name of the process, which no other has or had."""
        ...

    def sure(self) -> bool:
        """Whether what this process is at is its own: nobody can have taken it for dead."""
        ...

    def settle(self, looked: float) -> None:
        """All that this process is at was its own at a time by the monotonic clock."""
        ...

    def dead(self, executors: Collection[str]) -> set[str]:
        """Those who are at work no more."""
        ...


class Alone:
    """The only one to work on a file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def sure(self) -> bool:
        """Always: a file's lock is not lost."""
        return True

    def settle(self, looked: float) -> None:
        """It always was."""

    def dead(self, executors: Collection[str]) -> set[str]:
        """Everybody else."""
        return set(executors)


class Among:
    """One of the workers on a server; a thread keeps its lock."""

    def __init__(self, lock: SessionLock) -> None:
        self.name = lock.name
        self._lock = lock
        self._kept = time.monotonic()
        self._settled = -math.inf
        self._missed: dict[str, int] = {}
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeper of the lock", daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        while not self._over.wait(BEAT):
            began = time.monotonic()
            with suppress(DatabaseGone):
                # Where another session has it, that is one of this process that the server has not
                # yet seen end: nobody else takes this name.
                self._lock.acquire()
                self._kept = began

    def end(self) -> None:
        """Keep the lock no longer."""
        self._over.set()
        self._keeper.join()

    def sure(self) -> bool:
        """Not for long after the last look at the lock, nor soon after it was lost."""
        settled = self._settled >= self._lock.regained + CALM
        return settled and time.monotonic() < self._kept + SURE

    def settle(self, looked: float) -> None:
        """Trust the lock again, if it was not lost since."""
        self._settled = looked

    def dead(self, executors: Collection[str]) -> set[str]:
        """Those whose lock stays free."""
        free = set(executors) - self._lock.held(executors)
        if time.monotonic() < self._lock.regained + SETTLING:
            free = set()
        self._missed = {name: self._missed.get(name, 0) + 1 for name in free}
        return {name for name, times in self._missed.items() if times >= MISSED}


@contextmanager
def turn(database: Database, protocol: int) -> Iterator[WorkerLock]:
    """Carry out runs; refused at once on a file where another process does."""
    name = f"judge-gym-{uuid.uuid4().hex[:12]}"
    if database.file is not None:
        with lab_lock(database):
            yield Alone(name)
        return
    lock = SessionLock(database, name, protocol)
    lock.acquire()
    mine = Among(lock)
    try:
        yield mine
    finally:
        mine.end()
        lock.release()


def lab_lock(database: Database, name: str = ALONE) -> AbstractContextManager[None]:
    """Do what no two may do at once; refused at once where another process does.

    Args:
        database: on a file, only one process is at work, whatever it does.
        name: what it is, on a server.
    """
    return _file_lock(database) if database.file is not None else _server_lock(database, name)


def _taken(database: Database) -> LockTaken:
    return LockTaken(f"another judge-gym is at work on {database.shown}; wait for it or stop it")


@contextmanager
def _file_lock(database: Database) -> Iterator[None]:
    lock = FileLock(f"{database.file}.lock")
    try:
        lock.acquire(timeout=GLANCE, poll_interval=GLANCE / 4)
    except Timeout:
        raise _taken(database) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _server_lock(database: Database, name: str) -> Iterator[None]:
    lock = SessionLock(database, name)
    if not lock.acquire():
        raise _taken(database)
    try:
        yield
    finally:
        lock.release()
