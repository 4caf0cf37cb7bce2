"""Postgres session locks, which are free as soon as the process that held them has ended."""

import hashlib
import math
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from judge_gym.errors import DatabaseGone
from judge_gym.store.database import Database

SPACE = 0x6A67
"""The first number of the advisory locks of processes."""
PROTOCOLS = 0x6A68
"""The first number of the shared advisory locks of the protocols that workers execute."""
KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
"""How soon a dead TCP connection is noticed, in seconds and attempts."""
TIMEOUT = 10
"""Seconds that the server may take to answer."""
SILENCE = 20.0
"""Seconds without a statement after which the process that holds a lock counts as hung: it checks
its lock every second."""
HELD = sa.text(
    "SELECT objid::bigint AS number, coalesce(application_name, '') AS session, "
    "CASE WHEN pg_has_role(usesysid, 'USAGE') AND state_change IS NOT NULL "
    "THEN extract(epoch FROM clock_timestamp() - state_change)::float ELSE 0 END AS silence "
    "FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND objsubid = 2 AND classid = :space AND granted AND database = "
    "(SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""The locks that are held, by which sessions, and the seconds since the last statement of each; 0
for sessions of other roles, which this one may not end."""
END = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = :session"
)
UNLOCK = sa.text("SELECT pg_advisory_unlock_all()")
HOLDERS = sa.text(
    "SELECT count(DISTINCT pid) FROM pg_locks "
    "WHERE locktype = 'advisory' AND objsubid = 2 AND classid = :space AND granted AND database = "
    "(SELECT oid FROM pg_database WHERE datname = current_database())"
)


class SessionLock:
    """A named lock on its own connection.

    Both ends use TCP keepalive, so that the server frees the lock of a machine that was lost.

    Args:
        database: on the server.
        name: of the lock.
        protocol: that a worker executes; None for other processes.
    """

    def __init__(self, database: Database, name: str, protocol: int | None = None) -> None:
        self.name = name
        self._protocol = protocol
        self.regained = -math.inf
        """The monotonic time when the lock was last regained after its connection was lost."""
        self._database = database
        self._engine = sa.create_engine(
            database.url,
            poolclass=sa.NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args={
                **database.session,
                **KEEPALIVE,
                "connect_timeout": TIMEOUT,
                "tcp_user_timeout": 1000 * TIMEOUT,
            },
        )
        self._connection: sa.Connection | None = None
        self._lost = False

    def acquire(self) -> bool:
        """Takes or regains the lock; returns False if another session holds it."""
        try:
            # It asks the server, not itself: a pooler or a failover may have put another session
            # behind this connection, and advisory locks belong to the session.
            if self._connection is not None and self._is_mine(self._connection):
                return True
        except sa.exc.DatabaseError:
            self._lost = True
            self.release()
        # Never waiting: a process that cannot have the lock has something else to do.
        query = sa.select(sa.func.pg_try_advisory_lock(SPACE, _number(self.name)))
        try:
            self._connection = self._connection or self._connect()
            acquired = bool(self._connection.scalar(query))
        except sa.exc.OperationalError as error:
            self.release()
            raise DatabaseGone(
                f"the database {self._database.display_url} cannot be used: {error.orig}"
            ) from error
        if not acquired:
            self.release()
        elif self._lost:
            self._lost, self.regained = False, time.monotonic()
        return acquired

    def _connect(self) -> sa.Connection:
        connection = self._engine.connect()
        for name, value in KEEPALIVE.items():  # on the server's side; a Unix socket has none
            connection.execute(sa.text(f"SET tcp_{name} = {value}"))
        if self._protocol is not None:
            connection.execute(
                sa.select(sa.func.pg_advisory_lock_shared(PROTOCOLS, self._protocol))
            )
        return connection

    def _is_mine(self, connection: sa.Connection) -> bool:
        return _unsigned(self.name) in set(connection.scalars(HELD, {"space": SPACE}))

    def held(self, names: Collection[str]) -> dict[str, "Holder"]:
        """Returns who holds those of the named locks that any session holds."""
        holders = _holders(self._database, SPACE)
        return {name: holders[_unsigned(name)] for name in names if _unsigned(name) in holders}

    def end(self, holder: "Holder") -> None:
        """Ends all sessions of a process, which frees its locks and stops what it was writing."""
        with self._database.read() as connection:
            connection.execute(END, {"session": holder.session})

    def release(self) -> None:
        """Releases the lock."""
        if self._connection is not None:
            # A server frees what a closed session held a moment later; others look at once.
            if not self._connection.invalidated:  # a lost connection holds nothing
                with suppress(sa.exc.DatabaseError):
                    self._connection.execute(UNLOCK)
            self._connection.close()
            self._connection = None
        self._engine.dispose()


class Holder(NamedTuple):
    """The process that holds a lock."""

    session: str
    silence: float
    """Seconds since it was last heard of."""

    @property
    def hung(self) -> bool:
        """Whether it was not heard of for too long."""
        return self.silence > SILENCE

    def __str__(self) -> str:
        _, host, process, *_ = [*self.session.split(), "?", "?", "?"]
        return f"on {host}, process {process}, silent for {self.silence:.0f} s"


def _holders(database: Database, space: int) -> dict[int, Holder]:
    """Returns who holds each lock; of several the one that was heard of last."""
    with database.read() as connection:
        rows = sorted(connection.execute(HELD, {"space": space}), key=lambda row: -row.silence)
    return {row.number: Holder(row.session, row.silence) for row in rows}


def running_protocols(database: Database) -> dict[int, Holder]:
    """Returns the protocols of the workers on a server; each with the one heard of last."""
    return _holders(database, PROTOCOLS)


def count_workers(database: Database) -> int:
    """Returns how many workers run on a server; each holds the lock of its protocol."""
    with database.read() as connection:
        return int(connection.execute(HOLDERS, {"space": PROTOCOLS}).scalar_one())


def is_free(file: Path) -> bool:
    """Returns whether no process works on a lab in a file; False where that cannot be checked."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        with Path(f"{file}.lock").open("rb") as lock:
            # Shared, so that two that only look do not see each other as working.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big", signed=True)


def _unsigned(name: str) -> int:
    """Returns the number of a lock as pg_locks lists it."""
    return _number(name) & 0xFFFFFFFF
