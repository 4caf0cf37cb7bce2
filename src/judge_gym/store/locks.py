"""Locks of a Postgres session: one is free as soon as the process that held it is gone."""

import hashlib
import math
import time
from collections.abc import Collection

import sqlalchemy as sa

from judge_gym.errors import DatabaseGone
from judge_gym.store.database import Database

SPACE = 0x6A67
"""Our part of the server's advisory locks."""


class SessionLock:
    """A lock by name, on a connection of its own.

    The connection sends signs of life, so that a server notices a machine that was lost.
    """

    def __init__(self, database: Database, name: str) -> None:
        self.name = name
        self.regained = -math.inf
        """When it was last taken anew, after its connection was lost, by the monotonic clock."""
        self._shown = database.shown
        alive = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
        self._engine = sa.create_engine(
            database.url,
            poolclass=sa.NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args=alive,
        )
        self._connection: sa.Connection | None = None
        self._lost = False

    def acquire(self) -> bool:
        """Take the lock, anew where its connection was lost; False where somebody else has it."""
        try:
            if self._connection is not None and self.name in self.held([self.name]):
                return True
        except sa.exc.DatabaseError:
            self._lost = True
            self.release()
        taking = sa.select(sa.func.pg_try_advisory_lock(SPACE, _number(self.name)))
        try:
            self._connection = self._connection or self._engine.connect()
            taken = bool(self._connection.scalar(taking))
        except sa.exc.OperationalError as fault:
            self.release()
            raise DatabaseGone(
                f"the database {self._shown} cannot be used: {fault.orig}"
            ) from fault
        if not taken:
            self.release()
        elif self._lost:
            self._lost, self.regained = False, time.monotonic()
        return taken

    def held(self, names: Collection[str]) -> set[str]:
        """Those of some locks that anybody holds."""
        if self._connection is None:
            return set()
        query = sa.text(
            "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 "
            "AND classid = :space AND granted AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        numbers = set(self._connection.scalars(query, {"space": SPACE}))
        return {name for name in names if _number(name) & 0xFFFFFFFF in numbers}

    def release(self) -> None:
        """Let it go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._engine.dispose()


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big", signed=True)
