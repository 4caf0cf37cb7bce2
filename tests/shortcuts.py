"""Does once what thousands of tests would repeat: compile statements, migrate, build commands.

Each shortcut repeats what the product's own code has done in the same process.
"""

import sqlite3
from contextlib import closing
from functools import cache
from typing import Any

import sqlalchemy as sa
import typer.main
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from judge_gym.store import database


def take_shortcuts() -> None:
    """Takes all of them in this process."""
    _share_compiled_statements()
    _migrate_once()
    typer.main.get_command = cache(typer.main.get_command)  # Typer builds all commands anew


def _share_compiled_statements() -> None:
    """Lets all SQLite engines use one cache of compiled statements; nearly every test opens some.

    SQLAlchemy keeps such a cache for each engine and looks up by the dialect's identity.
    """
    compiled = LRUCache[Any, Any](5000)
    create = sa.Engine.__init__

    def created(self: sa.Engine, *given: Any, **options: Any) -> None:
        create(self, *given, **options)
        if isinstance(self.dialect, SQLiteDialect_pysqlite):
            self._compiled_cache = compiled

    sa.Engine.__init__ = created  # type: ignore[method-assign]
    SQLiteDialect_pysqlite.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]
    SQLiteDialect_pysqlite.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]


def _migrate_once() -> None:
    """Gives an empty SQLite database what the migrations made of the first one."""
    migrate = database._apply

    @cache
    def migrated(revision: str) -> list[str]:
        with closing(sqlite3.connect(":memory:", check_same_thread=False)) as memory:
            engine = sa.create_engine("sqlite://", creator=lambda: memory, poolclass=sa.StaticPool)
            with engine.begin() as connection:
                migrate(connection, revision)
            return [
                line for line in memory.iterdump() if line not in ("BEGIN TRANSACTION;", "COMMIT;")
            ]

    def apply(connection: sa.Connection, revision: str) -> None:
        empty = connection.dialect.name == "sqlite" and not sa.inspect(connection).get_table_names()
        if not empty:
            return migrate(connection, revision)
        for statement in migrated(revision):
            connection.exec_driver_sql(statement)

    database._apply = apply
