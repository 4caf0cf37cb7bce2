"""Removes the database file of a command that was refused before it stored anything."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

SCHEMA_TABLES = {"alembic_version", "compatibility"}
"""Tables that have rows in an empty lab, too: what its schema is, and whom it serves."""


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keeps other processes from opening a database in a folder, or removing one, meanwhile."""
    try:
        import fcntl

        opened = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # another system, or the folder does not exist
        yield
        return
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def discard_unused(file: Path) -> None:
    """Removes a database that has no row and no other connection, and its folder if that is empty.

    SQLite leaves the WAL mode only for a sole connection, and processes connect under the lock: so
    nobody else can have opened the file.
    """
    with folder_lock(file.parent):
        try:
            with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
                query = "SELECT name FROM sqlite_master WHERE type = 'table'"
                tables = {name for (name,) in connection.execute(query)} - SCHEMA_TABLES
                if any(
                    connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()
                    for name in tables
                ):
                    return
                [mode] = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
                if mode != "delete":
                    return
                file.unlink()
        except (sqlite3.Error, OSError):  # others use it, or it cannot be removed: it stays
            return
    if file.parent.name == ".judge-gym" and not any(file.parent.iterdir()):
        file.parent.rmdir()
