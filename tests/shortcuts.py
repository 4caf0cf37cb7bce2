"""Does once what thousands of tests would repeat: compile statements, migrate, build commands.

Each shortcut repeats what the product's own code has done in the same process.
"""

import ssl
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import typer.main
from alembic.config import Config
from alembic.script import ScriptDirectory
from dbos import DBOS
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from judge_gym.cli import load_app


def take_shortcuts() -> None:
    """Takes all of them in this process."""
    _share_compiled_statements()
    _copy_schemas_of_queues()
    _load_migrations_once()
    load_app()  # with every command, since one is loaded when it is used first
    typer.main.get_command = cache(typer.main.get_command)  # Typer builds all commands anew
    # Every client of HTTP reads all certificates of the machine.
    ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]


def _share_compiled_statements() -> None:
    """Lets all engines of a kind of database use one cache of compiled statements.

    Nearly every test opens some engines. SQLAlchemy keeps such a cache for each of them and looks
    up by the dialect's identity; the servers of tests are all of one version.
    """
    compiled = LRUCache[Any, Any](5000)
    create = sa.Engine.__init__
    dialects: tuple[Any, ...] = (SQLiteDialect_pysqlite, PGDialect_psycopg)

    def created(self: sa.Engine, *given: Any, **options: Any) -> None:
        create(self, *given, **options)
        if type(self.dialect) in dialects:
            self._compiled_cache = compiled

    sa.Engine.__init__ = created  # type: ignore[method-assign]
    for dialect in dialects:
        dialect.__eq__ = lambda self, other: type(self) is type(other)
        dialect.__hash__ = lambda self: hash(type(self))


def _copy_schemas_of_queues() -> None:
    """Writes the content of the first new SQLite queue into every later one.

    DBOS creates the schema by all migrations since its first version.
    """
    migrate = DBOS.migrate
    created: list[bytes] = []

    def migrated(url: str) -> None:
        file = Path(url.removeprefix("sqlite:///"))
        new = url.startswith("sqlite:") and not file.stat().st_size
        if new and created:
            file.write_bytes(created[0])
            return
        migrate(url)
        if new:
            created.append(file.read_bytes())

    DBOS.migrate = migrated  # type: ignore[method-assign, assignment]


def _load_migrations_once() -> None:
    """Reads the scripts of the same folders once; Alembic does so for each new database."""
    read = ScriptDirectory.from_config
    known: dict[tuple[str | None, ...], ScriptDirectory] = {}

    def from_config(config: Config) -> ScriptDirectory:
        options = ("script_location", "version_locations")
        folders = tuple(config.get_main_option(option) for option in options)
        if folders not in known:
            known[folders] = read(config)
        return known[folders]

    ScriptDirectory.from_config = from_config  # type: ignore[method-assign]
