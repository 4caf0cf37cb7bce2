"""Locks of a Postgres session: one is free as soon as the process that held it is gone."""

import hashlib
from collections.abc import Collection

import sqlalchemy as sa

from judge_gym.store.database import Database

SPACE = 0x6A67
"""Our part of the server's advisory locks."""


class SessionLock:
    """A lock by name, on a connection of its own.

    The connection sends signs of life, so that a server notices a machine that was lost.
    """

    def __init__(self, database: Database, name: str) -> None:
        self.name = name
        alive = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
        self._engine = sa.create_engine(
            database.url,
            poolclass=sa.NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args=alive,
        )
        self._connection: sa.Connection | None = None

    def acquire(self) -> bool:
        """Take the lock, anew where its connection was lost; False where somebody else has it."""
        try:
            if self._connection is not None and self.name in self.held([self.name]):
                return True
        except sa.exc.DatabaseError:
            self.release()
        self._connection = self._connection or self._engine.connect()
        taking = sa.select(sa.func.pg_try_advisory_lock(SPACE, _number(self.name)))
        taken = bool(self._connection.scalar(taking))
        if not taken:
            self.release()
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
