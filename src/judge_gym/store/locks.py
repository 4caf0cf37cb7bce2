"""Locks of a Postgres session: one is free as soon as the process that held it is gone."""

import hashlib
import math
import time
from collections.abc import Collection
from pathlib import Path

import sqlalchemy as sa

from judge_gym.errors import DatabaseGone
from judge_gym.store.database import Database

SPACE = 0x6A67
"""Our part of the server's advisory locks."""
PROTOCOLS = 0x6A68
"""The part in which each who carries out runs holds, with others, the lock of its protocol."""
WATCHFUL = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
"""Seconds and times after which a line that is dead is noticed, though nobody hung up."""
PATIENCE = 10
"""Seconds that a server may take to answer."""
HELD = sa.text(
    "SELECT DISTINCT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 "
    "AND classid = :space AND granted AND database = "
    "(SELECT oid FROM pg_database WHERE datname = current_database())"
)


class SessionLock:
    """A lock by name, on a connection of its own.

    Both ends watch the line: the server lets go of the lock of a machine that was lost.

    Args:
        database: the server's.
        name: the lock's.
        protocol: of one who carries out runs, what it understands.
    """

    def __init__(self, database: Database, name: str, protocol: int | None = None) -> None:
        self.name = name
        self._protocol = protocol
        self.regained = -math.inf
        """When it was last taken anew, after its connection was lost, by the monotonic clock."""
        self._database = database
        self._engine = sa.create_engine(
            database.url,
            poolclass=sa.NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args={
                **WATCHFUL,
                "connect_timeout": PATIENCE,
                "tcp_user_timeout": 1000 * PATIENCE,
            },
        )
        self._connection: sa.Connection | None = None
        self._lost = False

    def acquire(self) -> bool:
        """Take the lock, anew where its connection was lost; False where another session has it."""
        try:
            if self._connection is not None and self._is_mine(self._connection):
                return True
        except sa.exc.DatabaseError:
            self._lost = True
            self.release()
        taking = sa.select(sa.func.pg_try_advisory_lock(SPACE, _number(self.name)))
        try:
            self._connection = self._connection or self._connected()
            taken = bool(self._connection.scalar(taking))
        except sa.exc.OperationalError as fault:
            self.release()
            raise DatabaseGone(
                f"the database {self._database.shown} cannot be used: {fault.orig}"
            ) from fault
        if not taken:
            self.release()
        elif self._lost:
            self._lost, self.regained = False, time.monotonic()
        return taken

    def _connected(self) -> sa.Connection:
        connection = self._engine.connect()
        for name, value in WATCHFUL.items():  # the server's end; a socket of the machine has none
            connection.execute(sa.text(f"SET tcp_{name} = {value}"))
        if self._protocol is not None:
            connection.execute(
                sa.select(sa.func.pg_advisory_lock_shared(PROTOCOLS, self._protocol))
            )
        return connection

    def _is_mine(self, connection: sa.Connection) -> bool:
        return _unsigned(self.name) in set(connection.scalars(HELD, {"space": SPACE}))

    def held(self, names: Collection[str]) -> set[str]:
        """Those of some locks that anybody holds."""
        with self._database.read() as connection:
            numbers = set(connection.scalars(HELD, {"space": SPACE}))
        return {name for name in names if _unsigned(name) in numbers}

    def release(self) -> None:
        """Let it go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._engine.dispose()


def at_work(database: Database) -> set[int]:
    """The protocols of those who carry out runs on a server."""
    with database.read() as connection:
        return set(connection.scalars(HELD, {"space": PROTOCOLS}))


def is_free(file: Path) -> bool:
    """Whether nobody works on a lab in a file; where locks cannot be looked at, somebody may."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        with Path(f"{file}.lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big", signed=True)


def _unsigned(name: str) -> int:
    """A lock's number as the server lists it."""
    return _number(name) & 0xFFFFFFFF
