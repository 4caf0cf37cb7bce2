"""What tests of stores share: rows of tables, a store for every example, saves in any order."""

import lzma
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy as sa
from hypothesis import strategies as st

from judge_gym.engine.queue import RunQueue
from judge_gym.records import Completion, Request
from judge_gym.store import Answer, Attempt, Payer, Store, tables


def blank(file: Path) -> str:
    """The URL of an empty lab in a file; its schemas are copied, which is faster than making them.

    The file of its queue lies beside it, as after a first run.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    for suffix, content in _empty().items():
        file.with_suffix(suffix).write_bytes(content)
    return f"sqlite:///{file}"


@cache
def _empty() -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "lab.db"
        prepare(f"sqlite:///{file}")
        return {suffix: file.with_suffix(suffix).read_bytes() for suffix in (".db", ".dbos.db")}


def prepare(url: str) -> None:
    """Make the schemas of a lab and of its queue."""
    store = Store.open(url)
    RunQueue(store.database).close()
    store.close()


def adopt(url: str) -> None:
    """Makes a copied lab an original, which does not remember where it was copied from."""
    store = Store.open(url)
    with store.database.begin() as connection:
        connection.execute(tables.identity.delete())
    store.identity.adopt()
    store.close()


def old_lab(file: Path) -> None:
    """Writes the database of the old lab to a file, at schema 0009, with its rows."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(_old_lab())


@cache
def _old_lab() -> str:
    return lzma.decompress((Path(__file__).parent / "old_lab" / "lab.sql.xz").read_bytes()).decode()


def create_old_schema(connection: sa.Connection, revision: str) -> None:
    """Creates the tables of the old lab, without rows, on SQLite or Postgres.

    At revision 0008, probes need not name their run.
    """
    old = _old_schema()
    old.tables["probes"].c.run_id.nullable = revision == "0008"
    old.create_all(connection)
    connection.execute(old.tables["alembic_version"].insert().values(version_num=revision))


@cache
def _old_schema() -> sa.MetaData:
    """Reads the tables of the old lab, with types and names that fit SQLite and Postgres."""
    old = sa.MetaData()
    with TemporaryDirectory() as folder:
        old_lab(Path(folder) / "old.db")
        reflected = sa.create_engine(f"sqlite:///{folder}/old.db")
        old.reflect(reflected)
        reflected.dispose()
    for column in (column for table in old.tables.values() for column in table.c):
        if isinstance(column.type, sa.JSON):
            column.type = tables.JSON
        elif isinstance(column.type, sa.DateTime):
            column.type = sa.DateTime(timezone=True)
    for index in (index for table in old.tables.values() for index in table.indexes):
        where = index.dialect_options["sqlite"]["where"]
        index.dialect_options["postgresql"]["where"] = where
    for constraint in (one for table in old.tables.values() for one in table.constraints):
        constraint.name = sa.schema.conv(str(constraint.name))  # Postgres shortens long names
    old.tables["evidence"].c.pair.server_default = sa.DefaultClause(sa.false())
    return old


def recorded(
    store: Store,
    request: Request,
    payer: Payer,
    completion: Completion | None = None,
    error: str | None = None,
    endpoint: str = "",
) -> Answer:
    """One attempt at a request, on record."""
    key = request.key(endpoint)
    [answer] = store.ledger.record([Attempt(key, request, endpoint, payer, 0.5, completion, error)])
    return answer


def rows(store: Store, table: sa.Table) -> list[dict[str, Any]]:
    with store.database.begin() as connection:
        return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


def contents(file: Path) -> dict[str, list[Any]]:
    """Every row of every table, by table; nothing where there is no database yet."""
    if not file.exists():
        return {}
    with closing(sqlite3.connect(file)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
            for (name,) in names
        }


@contextmanager
def fresh(template: Path) -> Iterator[Store]:
    """A store of its own for every example of a property."""
    file = template.with_name("example.db")
    shutil.copy(template, file)
    opened = Store.open(f"sqlite:///{file}")
    try:
        yield opened
    finally:
        opened.close()
        for left in template.parent.glob("example.db*"):
            left.unlink()


def in_any_order(final: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    """Records saved in any order and any number of times, each at least once."""
    return st.tuples(st.permutations(final), st.lists(st.sampled_from(final), max_size=6)).flatmap(
        lambda both: st.permutations([*both[0], *both[1]])
    )
