"""Who is alive: the locks of processes that execute runs, and what becomes of a dead one's work.

One process works on a file, any number on a server. A lock shows that its process is alive, and is
free as soon as that process has ended in whatever way. A process that cannot confirm its lock
begins no call: others may have declared it dead and taken over its work.

DBOS finds the work of a dead process when a process of the same name starts, or when its hosted
service says so. Our names are never used twice, and nobody else watches, so that every process
looks each second for work whose process has lost its lock, and queues it again.
"""

import math
import os
import platform
import threading
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from judge_gym.engine.orders import ProcessEnding, run_number
from judge_gym.errors import ConflictError, DatabaseGone
from judge_gym.store import Claims, Database, Leases, SessionLock, Store
from judge_gym.store.database import database_full

if TYPE_CHECKING:
    from judge_gym.engine.queue import RunQueue

EXCLUSIVE = "judge-gym-alone"
"""The name of the server lock for what two processes must not do at once, such as an import."""
CHECK_INTERVAL = 1.0
"""Seconds between the checks that a process makes of its own lock."""
VALID = 3.0
"""Seconds for which such a check is valid: nobody declares a process dead within them."""
MISSED = 5
"""Consecutive checks, a second apart, that must find a process without its lock before it is
declared dead: more time than `VALID` allows it to begin calls."""
SETTLE = 2.0
"""Seconds after a lock was regained in which another process may still queue this one's work."""
CHECK_TIME = 0.1
"""Seconds for which a process that only checks a file's lock may hold it."""
AFTER_OUTAGE = 30.0
"""Seconds after an outage in which nobody is declared dead: every process has lost its lock, and
some are slow to regain it."""
ORPHAN_SWEEPS = 10
"""Sweeps in a row that must find a workflow which this process started and does not execute."""


class DeclaredDead(ProcessEnding):
    """Others declared this process dead and took over its work: it begins anew under a new name."""


class LockTaken(ConflictError):
    """Another process works on the lab."""


class FileWorkerLock:
    """The lock of the only process that works on a file."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The name of the process, which is never used twice."""

    def confirmed(self) -> bool:
        """Returns True: the lock of a file is never lost."""
        return True

    def confirm(self, looked: float) -> None:
        """Does nothing: the lock is always confirmed."""

    def dead(self, processes: Collection[str]) -> set[str]:
        """Returns all of them: no other process can hold the lock."""
        return set(processes)

    def end_hung(self, processes: Collection[str]) -> dict[str, float]:
        """Returns nothing: while another process hangs, this one does not get the lock."""
        return {}


class ServerWorkerLock:
    """The lock of one of the processes that work on a server; a thread checks and regains it."""

    def __init__(self, lock: SessionLock) -> None:
        self.name = lock.name
        self._lock = lock
        self._checked = time.monotonic()
        self._confirmed = -math.inf
        self._missed: dict[str, int] = {}
        self._silent: dict[str, int] = {}
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="worker lock", daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        while not self._ended.wait(CHECK_INTERVAL):
            began = time.monotonic()
            with suppress(DatabaseGone):
                # Where another session holds it, that is an older session of this process whose
                # end the server has not noticed yet: no other process uses this name.
                self._lock.acquire()
                self._checked = began

    def end(self) -> None:
        """Stops checking the lock."""
        self._ended.set()
        self._keeper.join()

    def confirmed(self) -> bool:
        """Returns whether no other process can have taken over the work of this one.

        The last check of the lock must be recent, and the lock not lost since `confirm`.
        """
        settled = self._confirmed >= self._lock.regained + SETTLE
        return settled and time.monotonic() < self._checked + VALID

    def confirm(self, looked: float) -> None:
        """Notes that the work of this process was its own at a time of the monotonic clock."""
        self._confirmed = looked

    def dead(self, processes: Collection[str]) -> set[str]:
        """Returns those whose lock was free in several checks in a row."""
        free = set(processes) - self._lock.held(processes).keys()
        # This process lost its own lock, so that the server was away: the others lost theirs, too.
        if time.monotonic() < self._lock.regained + AFTER_OUTAGE:
            free = set()
        # Those that hold their lock again are no longer in it: the checks must be in a row.
        self._missed = {name: self._missed.get(name, 0) + 1 for name in free}
        return {name for name, times in self._missed.items() if times >= MISSED}

    def end_hung(self, processes: Collection[str]) -> dict[str, float]:
        """Ends the sessions of those that hang; returns for how many seconds they did.

        Their locks are free from then on, so that they are dead soon. If one wakes up, it finds its
        lock lost, as after any lost connection, and begins no call.
        """
        holders = self._lock.held(processes)
        # In several checks in a row: after the server itself has stood still, all are silent.
        hung = [name for name, holder in holders.items() if holder.hung]
        self._silent = {name: self._silent.get(name, 0) + 1 for name in hung}
        ended = [name for name in hung if self._silent[name] >= MISSED]
        for name in ended:
            self._lock.end(holders[name])
        return {name: holders[name].silence for name in ended}


WorkerLock = FileWorkerLock | ServerWorkerLock
"""The right of a process to execute runs."""


@contextmanager
def worker_lock(database: Database, protocol: int) -> Iterator[WorkerLock]:
    """Holds the right to execute runs.

    Raises:
        LockTaken: at once, where another process works on the same file.
    """
    name = f"judge-gym-{platform.node()[:24]}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    if database.file is not None:
        with lab_lock(database):
            yield FileWorkerLock(name)
        return
    session = SessionLock(database, name, protocol)
    session.acquire()
    lock = ServerWorkerLock(session)
    try:
        yield lock
    finally:
        lock.end()
        session.release()


def lab_lock(database: Database, name: str = EXCLUSIVE) -> AbstractContextManager[None]:
    """Holds the lock for what no two processes may do at once.

    Args:
        database: on a file, only one process works, whatever it does.
        name: of the lock on a server.

    Raises:
        LockTaken: at once, where another process holds it.
    """
    return _file_lock(database) if database.file is not None else _server_lock(database, name)


def _lock_taken(database: Database) -> LockTaken:
    return LockTaken(
        f"another judge-gym is working on {database.display_url}; wait for it or stop it"
    )


@contextmanager
def _file_lock(database: Database) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(f"{database.file}.lock")
    try:
        # Not at once: a process that watches the file holds it for a moment at each check.
        lock.acquire(timeout=CHECK_TIME, poll_interval=CHECK_TIME / 4)
    except Timeout:
        raise _lock_taken(database) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _server_lock(database: Database, name: str) -> Iterator[None]:
    lock = SessionLock(database, name)
    if not lock.acquire():
        raise _lock_taken(database)
    try:
        yield
    finally:
        lock.release()


class Sweeper:
    """Queues again the work of dead processes, and work that an outage left behind.

    Args:
        store: of the lab.
        queue: where the work is.
        lock: of this process.
        running: the workflows that this process executes, which change while it looks.
        leases: of this process, on limits and budgets; None on a file.
        claims: of this process, on calls; None on a file.
    """

    def __init__(
        self,
        store: Store,
        queue: "RunQueue",
        lock: WorkerLock,
        running: set[str],
        leases: Leases | None,
        claims: Claims | None,
    ) -> None:
        self._store = store
        self._queue = queue
        self._lock = lock
        self._running = running
        self._leases = leases
        self._claims = claims
        self._orphan_sweeps: dict[str, int] = {}

    def sweep(self) -> None:
        """Confirms this process's lock, and takes over from processes that are dead or hang.

        Raises:
            DeclaredDead: others execute what this process does.
            DatabaseFull: there is no room to record the end of workflows.
        """
        # A copy: the loop adds and removes workflows while this thread looks.
        looked, running = time.monotonic(), set(self._running)
        rows = self._queue.executing()
        mine = [row for row in rows if row.executor_id == self._lock.name]
        # What runs here both before and after the query did so when it was made. If it is active
        # under another name, others have taken it over.
        missing = running & self._running - {row.workflow_id for row in mine}
        if self._queue.any_active(missing):
            raise DeclaredDead("others declared this process dead and continue its work")
        # As of before the query: only from then on is it known that nobody had taken over.
        self._lock.confirm(looked)
        processes = {row.executor_id or "" for row in rows}
        if self._leases is not None and self._claims is not None:
            self._claims.release()
            processes |= self._leases.holders() | self._claims.holders()
        processes.discard(self._lock.name)
        # Ending its session only frees its lock: that it is dead is decided below, by the same rule
        # as for any other, in a later sweep.
        for name, seconds in self._lock.end_hung(processes).items():
            begun = [row for row in rows if row.executor_id == name and row.name != "analysis"]
            runs = {run_number(row.workflow_id) for row in begun}
            message = f"the worker {name} was silent for {seconds:.0f} s: others take up its work"
            self._store.events.record(runs, "taken-over", message)
        # What it holds of limits and budgets is free at once; its work is queued in the same sweep.
        dead = self._lock.dead(processes)
        if self._leases is not None and self._claims is not None:
            self._leases.dead = dead
            if dead:
                self._claims.release_all(dead)
        lost = [row for row in rows if row.executor_id in dead]
        # DBOS counts a workflow as this process's whose end could not be recorded during an outage,
        # and would find it at the next start only. One that has just started or ended looks like
        # this, too, but not for long.
        self._orphan_sweeps = {
            row.workflow_id: self._orphan_sweeps.get(row.workflow_id, 0) + 1
            for row in mine
            if row.workflow_id not in self._running
        }
        orphans = [
            row for row in mine if self._orphan_sweeps.get(row.workflow_id, 0) > ORPHAN_SWEEPS
        ]
        if orphans and self._store.database.file is not None:  # its end was not recorded
            queue = self._queue.engine.url.render_as_string(hide_password=True)
            raise database_full(queue, "the end of its work cannot be recorded")
        self._queue.requeue(lost + orphans)
