"""One question in SQL by whoever may read: the database itself refuses all that would change it.

Tables of secrets are not among what can be read, and an answer is bounded in rows, size and time.
"""

import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from judge_gym.errors import BusyError, ConflictError, DatabaseGone, DesignError, unknown
from judge_gym.store import suite_tables  # noqa: F401  they can be asked about, too
from judge_gym.store import tables as t
from judge_gym.store.database import Database

SECRET = ("tokens",)
"""What no question reads."""
OPEN = tuple(sorted(name for name in t.metadata.tables if name not in SECRET))
SECONDS = 5.0
"""How long a question may take."""
AT_ONCE = 2
"""So many are answered at a time; the others wait for their turn as long."""
SIZE = 4 * 1024**2
"""Characters of an answer, about."""
LONGEST = 512 * 1024
"""Bytes of one value in SQLite: within one of its functions nobody looks at the clock."""
STEPS = 2000
"""Instructions of SQLite between two looks at the clock."""
BATCH = 5
"""Rows that are taken from a server at once; one may be large."""
READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
SHAPES = ("json_each", "json_tree")
"""Functions that may stand after FROM in SQLite."""
TEDIOUS = ("load_extension", "printf", "format")
"""Functions of SQLite that do more than compute, or compute for any length of time."""
LATE = "57014"
"""What a server says of a statement that took too long."""
# What a server's functions could do beyond the question: change something, read files, or run a
# question of their own, which the check of the plan would not see. A stable function of the
# catalogue does none of that, except where it turns tables into XML.
FORBIDDEN = sa.text(
    "SELECT proname FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace "
    "WHERE proname = ANY(:words) AND proname NOT IN ('random', 'clock_timestamp') AND "
    "(provolatile = 'v' OR nspname <> 'pg_catalog' OR proname LIKE '%\\_to\\_xml%' "
    "OR proname = 'current_setting') LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Rows:
    """What a question brought."""

    columns: tuple[str, ...]
    rows: list[list[Any]]
    more: bool
    """Whether there are rows beyond the limit."""


class ReadOnlySql:
    """Answers SELECT statements that people and programs write themselves."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns = threading.BoundedSemaphore(AT_ONCE)

    def tables(self) -> list[dict[str, Any]]:
        """The tables that can be read, with their columns, keys and rows."""
        with self._database.read() as connection:
            return [
                {
                    "table": name,
                    "rows": connection.scalar(
                        sa.select(sa.func.count()).select_from(t.metadata.tables[name])
                    ),
                    "columns": [_column(column) for column in t.metadata.tables[name].columns],
                }
                for name in OPEN
            ]

    def page(
        self, table: str, *, after: Sequence[Any] | None, limit: int, descending: bool = False
    ) -> tuple[list[dict[str, Any]], list[Any] | None]:
        """Rows of a table in the order of its key, and the key to go on after.

        Args:
            table: one of those that can be read.
            after: the key of the last row of the page before.
            limit: rows at most.
            descending: the newest first.
        """
        if table not in OPEN:
            raise DesignError(unknown("table", table, OPEN), choices=OPEN)
        found = t.metadata.tables[table]
        key = list(found.primary_key)
        query = sa.select(found).limit(limit + 1)
        query = query.order_by(*(one.desc() if descending else one for one in key))
        if after is not None:
            kinds = [column.type.python_type for column in key]
            if [type(one) for one in after] != kinds:
                raise DesignError("that is no cursor of this table; take `next` of the page before")
            place, last = sa.tuple_(*key), sa.tuple_(*after)
            query = query.where(place < last if descending else place > last)
        with self._database.read() as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
        more = [rows[limit - 1][column.name] for column in key] if len(rows) > limit else None
        return rows[:limit], more

    def select(self, sql: str, *, limit: int = 100, seconds: float = SECONDS) -> Rows:
        """Answer one SELECT.

        Args:
            sql: the statement, one alone.
            limit: rows at most.
            seconds: how long it may take.
        """
        if "\0" in sql or not sql.strip():
            raise DesignError("a question is one SELECT statement")
        if not self._turns.acquire(timeout=seconds):
            raise BusyError("other questions are being answered; wait a moment", wait=1)
        try:
            ask = self._ask_server if self._database.file is None else self._ask_file
            return ask(sql, limit, seconds)
        finally:
            self._turns.release()

    def _ask_file(self, sql: str, limit: int, seconds: float) -> Rows:
        """On a connection that cannot write, asks leave at every step and looks at the clock."""
        assert self._database.file is not None
        end = time.monotonic() + seconds
        uri = f"{self._database.file.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=seconds)) as connection:
            connection.execute("PRAGMA query_only=ON")
            for shape in SHAPES:  # they declare themselves on first use, which then is refused
                connection.execute(f"SELECT 1 FROM {shape}('[]')")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            connection.set_authorizer(_permit)
            connection.set_progress_handler(lambda: time.monotonic() > end, STEPS)
            try:
                cursor = connection.execute(sql)
                if cursor.description is None:
                    raise DesignError("a question is one SELECT statement")
                names = [column[0] for column in cursor.description]
                return _taken(names, cursor, limit)
            except sqlite3.OperationalError as fault:
                if "interrupted" in str(fault):
                    raise _late(seconds) from fault
                raise _refused(fault) from fault
            except (sqlite3.Error, sqlite3.Warning) as fault:
                raise _refused(fault) from fault

    def _ask_server(self, sql: str, limit: int, seconds: float) -> Rows:
        """In a transaction that cannot write, after a look at what the server would read for it."""
        with self._reading(seconds) as connection:
            self._refuse_functions(connection, sql)
            driver: Any = connection.connection.driver_connection
            # To prepare it takes the extended protocol, and that one statement and no more.
            plan = driver.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {sql}", prepare=True)
            _refuse_relations(plan.fetchone()[0])
            with driver.cursor(
                "question"
            ) as portal:  # so that rows stay there until they are taken
                portal.itersize = BATCH
                portal.execute(sql.rstrip().rstrip(";"))
                names = [column.name for column in portal.description]
                return _taken(names, _within(portal, seconds), limit)

    @contextmanager
    def _reading(self, seconds: float) -> Iterator[sa.Connection]:
        from psycopg import Error

        with self._database.plainly(), self._database.engine.connect() as connection:
            try:
                connection.execute(sa.text("SET TRANSACTION READ ONLY"))
                connection.execute(sa.text(f"SET LOCAL statement_timeout = {int(1000 * seconds)}"))
                yield connection
            except (sa.exc.DBAPIError, Error) as fault:
                said: Any = getattr(fault, "orig", None) or fault
                if said.sqlstate is None:
                    raise DatabaseGone(f"the database is away: {said}") from fault
                if said.sqlstate == LATE:
                    raise _late(seconds) from fault
                raise _refused(said.diag.message_primary) from fault
            finally:
                connection.rollback()

    def _refuse_functions(self, connection: sa.Connection, sql: str) -> None:
        """Refuse words that name a function which may do more than compute, wherever they stand."""
        words = sorted(set(re.findall(r"\w+", sql.lower())))
        if re.search(r"\bu&", sql.lower()):
            raise DesignError("names are written plainly here, not as U&'...'")
        found = connection.scalar(FORBIDDEN, {"words": words})
        if found is not None:
            raise DesignError(f"the function {found!r} cannot be used in a question")


def _permit(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Whether SQLite may do something for a question."""
    match action:
        case sqlite3.SQLITE_READ:  # without a column where rows are only counted, of a CTE too
            allowed = first in (*OPEN, *SHAPES) or (not second and first not in SECRET)
        case sqlite3.SQLITE_FUNCTION:
            allowed = second not in TEDIOUS
        case _:
            allowed = action in READING
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _refuse_relations(plan: Any) -> None:
    """Refuse a plan that reads anything but the lab's own open tables."""
    for node in _nodes(plan):
        name = node.get("Relation Name")
        if name is not None and (node.get("Schema"), name) not in {("public", one) for one in OPEN}:
            raise DesignError(f"the table {name!r} cannot be read", choices=OPEN)


def _nodes(plan: Any) -> Iterator[dict[str, Any]]:
    if isinstance(plan, dict):
        yield plan
        plan = list(plan.values())
    if isinstance(plan, list):
        for part in plan:
            yield from _nodes(part)


def _within(rows: Iterator[Any], seconds: float) -> Iterator[Any]:
    """Rows, until the time is over: each batch of them is a statement to the server."""
    end = time.monotonic() + seconds
    for row in rows:
        if time.monotonic() > end:
            raise _late(seconds)
        yield row


def _taken(names: Sequence[str], rows: Iterator[Any], limit: int) -> Rows:
    """As many rows as are wanted, unless they grow too large."""
    taken: list[list[Any]] = []
    size = 0
    for row in rows:
        if len(taken) == limit:
            return Rows(tuple(names), taken, more=True)
        taken.append([one.hex() if isinstance(one, bytes) else one for one in row])
        size += sum(len(one) if isinstance(one, str) else 8 for one in taken[-1])
        if size > SIZE:
            raise DesignError("the answer is too large; ask for fewer columns or substr() of them")
    return Rows(tuple(names), taken, more=False)


def _column(column: sa.Column[Any]) -> dict[str, Any]:
    to = next(iter(column.foreign_keys), None)
    described = {"name": column.name, "type": str(column.type), "null": bool(column.nullable)}
    if column.primary_key:
        described["key"] = True
    return {**described, "refers_to": to.target_fullname} if to is not None else described


def _late(seconds: float) -> ConflictError:
    return ConflictError(f"the question took longer than {seconds:g} s; narrow it")


def _refused(fault: object) -> DesignError:
    return DesignError(f"the database refuses the question: {' '.join(str(fault).split())}")
