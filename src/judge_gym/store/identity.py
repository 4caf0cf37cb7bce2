"""Tells a copy of a database from the original, so that a copy pays for nothing unasked."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from judge_gym.errors import ConflictError
from judge_gym.store import tables as t
from judge_gym.store.database import Database

SERVER = sa.text(
    "SELECT CASE WHEN has_function_privilege('pg_control_system()', 'execute') "
    "THEN (SELECT system_identifier FROM pg_control_system()) END AS system, oid, "
    "extract(epoch FROM pg_postmaster_start_time())::text AS started "
    "FROM pg_database WHERE datname = current_database()"
)
LOCAL_HOSTS = ("", "localhost", "127.0.0.1", "::1")
MACHINE = Path("/etc/machine-id")
COPY = (
    "this database is a copy, or was moved, and nothing is paid here until you confirm it: "
    "'judge-gym db adopt' continues what was ordered in the original, 'judge-gym db adopt "
    "--cancel' cancels it; 'judge-gym db status' says what differs"
)


class CopiedDatabase(ConflictError):
    """Nothing is paid in a copy of a database until a user confirms it."""


class Place(NamedTuple):
    """Where a database is; it is in the same place if `data` and one of the others are equal.

    On Postgres, a restored dump has other `data`. A copy of the server's files has the same, but is
    a server of its own, under another address. A restart changes only `instance`, another name for
    the running server only `address`.

    On SQLite, every copied file has other `data`, as has a backup that replaced the original.
    Moving or mounting a file elsewhere changes only `address`, renumbering disks only `instance`.
    """

    data: str
    """Postgres: the numbers of server and database. SQLite: the file's inode, and the machine."""
    instance: str
    """Postgres: when the server was started. SQLite: the number of the disk."""
    address: str
    """Postgres: host and port, and the machine if it is local. SQLite: the path."""

    @property
    def key(self) -> str:
        """A digest of all but the instance."""
        return _digest(f"{self.data} {self.address}")

    def equals(self, other: "Place") -> bool:
        """Returns whether both are the same place."""
        return self.data == other.data and (
            self.instance == other.instance or self.address == other.address
        )


class Identity:
    """Compares where a database is with the places that it remembers.

    It remembers the first place where anything was queued, and those that a user confirmed. A
    database that remembers none is no copy: nothing was ordered in it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_copy(self) -> bool:
        """Returns whether the database was used, and in other places than this one."""
        with self._database.read() as connection:
            return self._is_copy(connection)

    def refuse_copy(self) -> None:
        """Before anything is paid.

        Raises:
            CopiedDatabase: in a copy, until `adopt`.
        """
        if self.is_copy():
            raise CopiedDatabase(COPY)

    def confirm(self) -> None:
        """Before anything is queued: refuses a copy, and remembers where any other database is."""
        self.refuse_copy()
        self.adopt()

    def adopt(self) -> None:
        """Remembers the present place: the database is no copy from now on."""
        with self._database.read() as connection:
            here = self._place(connection)
            stored = connection.execute(sa.select(t.identity)).all()
        if any(Place(**row.traits) == here for row in stored):
            return
        with self._database.begin() as connection:
            connection.execute(t.identity.delete().where(t.identity.c.place == here.key))
            self._database.insert_new(
                connection, t.identity, [{"place": here.key, "traits": here._asdict()}]
            )

    def describe(self) -> dict[str, object]:
        """Returns whether the database is a copy, the present place, and those it remembers."""
        with self._database.read() as connection:
            stored = connection.scalars(sa.select(t.identity.c.traits)).all()
            return {
                "copy": self._is_copy(connection),
                "here": self._place(connection)._asdict(),
                "known": list(stored),
            }

    def _is_copy(self, connection: sa.Connection) -> bool:
        stored = connection.scalars(sa.select(t.identity.c.traits)).all()
        here = self._place(connection)
        return bool(stored) and not any(here.equals(Place(**traits)) for traits in stored)

    def _place(self, connection: sa.Connection) -> Place:
        file = self._database.file
        if file is not None:
            status = file.stat()
            # A disk belongs to a machine; what has no device of its own, such as a network mount,
            # is the same from several.
            machine = _machine() if os.major(status.st_dev) else ""
            data = f"inode {status.st_ino}{machine}"
            return Place(data, f"device {status.st_dev}", str(file.resolve()))
        row = connection.execute(SERVER).one()
        driver = connection.connection.driver_connection
        assert driver is not None
        host, port = driver.info.host, driver.info.port
        machine = _machine() if host in LOCAL_HOSTS or host.startswith("/") else ""
        data = f"server {row.system}, database {row.oid}"
        return Place(data, f"started {row.started}", f"{host}:{port}{machine}")


def _machine() -> str:
    """Returns a name of this machine; nothing where it has none, as in most containers."""
    try:
        id = MACHINE.read_text(encoding="ascii").strip()
    except OSError:
        id = ""
    return f" on machine {_digest(id)[:8]}" if id else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
