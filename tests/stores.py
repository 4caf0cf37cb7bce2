"""What tests of stores share: rows of tables, a store for every example, saves in any order."""

import os
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
from judge_gym.store.database import alembic_config


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


def later_version(folder: Path, migrations: Sequence[str]) -> dict[str, Any]:
    """Returns what replaces names of `store.database` in a version with more migrations.

    Args:
        folder: an empty one, for the migrations.
        migrations: the source of each: revisions from 9000 on.
    """
    folder.mkdir()
    for number, migration in enumerate(migrations, 9000):
        (folder / f"{number}.py").write_text(migration)

    def with_more() -> Any:
        config = alembic_config()
        shipped = Path(config.get_main_option("script_location")) / "versions"
        config.set_main_option("path_separator", "os")
        config.set_main_option("version_locations", os.pathsep.join(map(str, (shipped, folder))))
        return config

    newest = f"{8999 + len(migrations)}"
    return {"alembic_config": with_more, "HEAD": newest, "NEEDED": newest}


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
