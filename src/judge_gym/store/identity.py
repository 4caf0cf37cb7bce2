"""Tells a copy of a database from the original, so that a copy does not pay for queued orders.

The database holds a digest of its place. On Postgres that is the server's system identifier and the
number of the database, which a dump that is restored, under whatever name, does not share, while a
renamed database or a promoted standby does. On SQLite it is the path of the file.
"""

import hashlib

import sqlalchemy as sa

from judge_gym.errors import ConflictError
from judge_gym.store import tables as t
from judge_gym.store.database import Database

PLACE = sa.text(
    "SELECT CASE WHEN has_function_privilege('pg_control_system()', 'execute') "
    "THEN (SELECT system_identifier FROM pg_control_system()) END, oid "
    "FROM pg_database WHERE datname = current_database()"
)
COPY = (
    "this database is a copy, and its queued orders were given in the original: continue them with "
    "'judge-gym db adopt', or cancel them with 'judge-gym db adopt --cancel'"
)


class CopiedDatabase(ConflictError):
    """The orders in a copy of a database are not executed until a user confirms them."""


class Identity:
    """Where a database was last used, and whether it is still there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_copy(self) -> bool:
        """Returns whether the database was last used in another place."""
        return self._is_here() is False

    def adopt(self) -> None:
        """Stores the present place, if it is not stored: the database is no copy from now on."""
        if self._is_here():
            return
        with self._database.begin() as connection:
            place = self._place(connection)
            connection.execute(t.identity.delete().where(t.identity.c.place != place))
            self._database.insert_new(connection, t.identity, [{"place": place}])

    def _is_here(self) -> bool | None:
        """Returns whether the stored place is the present one; None where none is stored."""
        with self._database.read() as connection:
            stored = connection.scalar(sa.select(t.identity.c.place))
            return None if stored is None else bool(stored == self._place(connection))

    def _place(self, connection: sa.Connection) -> str:
        file = self._database.file
        place = file.resolve() if file is not None else tuple(connection.execute(PLACE).one())
        return hashlib.sha256(str(place).encode()).hexdigest()
