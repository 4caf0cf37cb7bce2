"""Runs one SELECT of a user: the database itself refuses everything that would change it.

Tables with secrets cannot be read, and a result is bounded in rows, size and time. On SQLite a
query runs in a process of its own (`sql_process.py`), on Postgres under a role that may read the
open tables only.
"""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from judge_gym.errors import BusyError, ConflictError, DatabaseGone, DesignError, unknown
from judge_gym.store import sql_process
from judge_gym.store import tables as t
from judge_gym.store.database import READER, Database

SECRET = ("tokens",)
"""Tables that no query reads."""
OPEN = tuple(sorted(name for name in t.metadata.tables if name not in SECRET))
SECONDS = 5.0
"""How long a query may take."""
AT_ONCE = 2
"""Queries that run at a time; another waits for its turn as long as a query may take."""
SIZE = 4 * 1024**2
"""Characters of a result, about."""
GRACE = 1.0
"""Seconds that a process has to start and to end by itself, before it is killed."""
BATCH = 5
"""Rows that are fetched from a server at once; one may be large."""
STATEMENT = "a query is one SELECT statement"
TIMED_OUT = "57014"
"""The code of Postgres for a statement that took too long."""
# What a function of Postgres could do beyond the query: change something, read files, or run a
# query of its own, which the check of the plan would not see. A stable function of the
# catalogue does none of that, except where it turns tables into XML.
FORBIDDEN = sa.text(
    "SELECT proname FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace "
    "WHERE proname = ANY(:words) AND proname NOT IN ('random', 'clock_timestamp') AND "
    "(provolatile = 'v' OR nspname <> 'pg_catalog' OR proname LIKE '%\\_to\\_xml%' "
    "OR proname = 'current_setting') LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: list[list[Any]]
    more: bool
    """Whether there are rows beyond the limit."""


class ReadOnlySql:
    """Runs SELECT statements that users write."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns = threading.BoundedSemaphore(AT_ONCE)

    def tables(self) -> list[dict[str, Any]]:
        """Returns the readable tables with their columns, keys and row counts."""
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
        """Returns rows of a table in the order of its key, and the key of the next page."""
        if table not in OPEN:
            raise DesignError(unknown("table", table, OPEN), choices=OPEN)
        source = t.metadata.tables[table]
        key = list(source.primary_key)
        query = sa.select(source).limit(limit + 1)
        query = query.order_by(*(column.desc() if descending else column for column in key))
        if after is not None:
            if [type(part) for part in after] != [column.type.python_type for column in key]:
                raise DesignError("this is no cursor of the table; use `next` of the previous page")
            current, last = sa.tuple_(*key), sa.tuple_(*after)
            query = query.where(current < last if descending else current > last)
        rows = self._database.rows(query)
        last_key = [rows[limit - 1][column.name] for column in key] if len(rows) > limit else None
        return rows[:limit], last_key

    def select(self, sql: str, *, limit: int = 100, seconds: float = SECONDS) -> Rows:
        """Returns the result of one SELECT, of at most `limit` rows."""
        if "\0" in sql or not sql.strip():
            raise DesignError(STATEMENT)
        if not self._turns.acquire(timeout=seconds):
            raise BusyError("other queries are running; wait a moment", wait=1)
        try:
            run = self._select_on_server if self._database.file is None else self._select_in_file
            return run(sql, limit, seconds)
        finally:
            self._turns.release()

    def _select_in_file(self, sql: str, limit: int, seconds: float) -> Rows:
        """Runs the query in a process of its own, which is killed when its time is over."""
        assert self._database.file is not None
        query = {
            "uri": f"{self._database.file.resolve().as_uri()}?mode=ro",
            "sql": sql,
            "limit": limit,
            "seconds": seconds,
            "tables": OPEN,
            "secret": SECRET,
            "size": SIZE,
        }
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", sql_process.__file__],
                input=json.dumps(query),
                capture_output=True,
                text=True,
                encoding="utf-8",
                env={},
                timeout=seconds + GRACE,
            )
        except subprocess.TimeoutExpired as error:
            raise _late(seconds) from error
        if done.returncode:
            raise _refused("it needs too much memory or disk")
        result = json.loads(done.stdout)
        match result.get("error"):
            case None:
                return Rows(tuple(result["columns"]), result["rows"], result["more"])
            case "time":
                raise _late(seconds)
            case "size":
                raise _too_large()
            case "statement":
                raise DesignError(STATEMENT)
        raise _refused(result["message"])

    def _select_on_server(self, sql: str, limit: int, seconds: float) -> Rows:
        """Runs the query in a read-only transaction, after a check of the server's plan for it."""
        with self._reader(seconds) as connection:
            self._refuse_functions(connection, sql)
            driver: Any = connection.connection.driver_connection
            # To prepare it takes the extended protocol, and that one statement and no more.
            plan = driver.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {sql}", prepare=True)
            _refuse_relations(plan.fetchone()[0])
            with driver.cursor("query") as cursor:  # rows stay on the server until fetched
                cursor.itersize = BATCH
                cursor.execute(sql.rstrip().rstrip(";"))
                names = [column.name for column in cursor.description]
                return _fetch(names, _within(cursor, seconds), limit)

    @contextmanager
    def _reader(self, seconds: float) -> Iterator[sa.Connection]:
        """Opens a read-only transaction under the role that cannot read secrets."""
        from psycopg import Error

        with self._database.plain_errors(), self._database.engine.connect() as connection:
            try:
                member = "SELECT pg_has_role(oid, 'MEMBER') FROM pg_roles WHERE rolname = :role"
                if not connection.scalar(sa.text(member), {"role": READER}):
                    raise ConflictError(
                        f"queries are off on this database: it has no role {READER!r}, which keeps "
                        "secrets out of their reach; run 'judge-gym db upgrade' with a login that "
                        "may create roles"
                    )
                connection.execute(sa.text("SET TRANSACTION READ ONLY"))
                connection.execute(sa.text(f"SET LOCAL statement_timeout = {int(1000 * seconds)}"))
                connection.execute(sa.text(f"SET LOCAL ROLE {READER}"))
                yield connection
            except (sa.exc.DBAPIError, Error) as error:
                cause: Any = getattr(error, "orig", None) or error
                if cause.sqlstate is None:
                    raise DatabaseGone(f"the database is not reachable: {cause}") from error
                if cause.sqlstate == TIMED_OUT:
                    raise _late(seconds) from error
                raise _refused(cause.diag.message_primary) from error
            finally:
                connection.rollback()

    def _refuse_functions(self, connection: sa.Connection, sql: str) -> None:
        """Refuses any word that names a function which may do more than compute."""
        words = sorted(set(re.findall(r"\w+", sql.lower())))
        if re.search(r"\bu&", sql.lower()):
            raise DesignError("names cannot be written as U&'...'")
        function = connection.scalar(FORBIDDEN, {"words": words})
        if function is not None:
            raise DesignError(f"the function {function!r} cannot be used in a query")


def _refuse_relations(plan: Any) -> None:
    """Refuses a plan that reads anything but the lab's own open tables."""
    for node in _nodes(plan):
        name = node.get("Relation Name")
        if name is not None and (node.get("Schema"), name) not in {
            ("public", table) for table in OPEN
        }:
            raise DesignError(f"the table {name!r} cannot be read", choices=OPEN)


def _nodes(plan: Any) -> Iterator[dict[str, Any]]:
    if isinstance(plan, dict):
        yield plan
        plan = list(plan.values())
    if isinstance(plan, list):
        for part in plan:
            yield from _nodes(part)


def _within(rows: Iterator[Any], seconds: float) -> Iterator[Any]:
    """Yields rows until the time is over: each batch is a statement to the server."""
    end = time.monotonic() + seconds
    for row in rows:
        if time.monotonic() > end:
            raise _late(seconds)
        yield row


def _fetch(names: Sequence[str], rows: Iterator[Any], limit: int) -> Rows:
    """Returns the first rows, unless they grow too large."""
    fetched: list[list[Any]] = []
    size = 0
    for row in rows:
        if len(fetched) == limit:
            return Rows(tuple(names), fetched, more=True)
        fetched.append([value.hex() if isinstance(value, bytes) else value for value in row])
        size += sum(len(value) if isinstance(value, str) else 8 for value in fetched[-1])
        if size > SIZE:
            raise _too_large()
    return Rows(tuple(names), fetched, more=False)


def _column(column: sa.Column[Any]) -> dict[str, Any]:
    to = next(iter(column.foreign_keys), None)
    described = {"name": column.name, "type": str(column.type), "null": bool(column.nullable)}
    if column.primary_key:
        described["key"] = True
    return {**described, "refers_to": to.target_fullname} if to is not None else described


def _late(seconds: float) -> ConflictError:
    return ConflictError(f"the query took longer than {seconds:g} s; narrow it")


def _too_large() -> DesignError:
    return DesignError("the result is too large; ask for fewer columns or substr() of them")


def _refused(error: object) -> DesignError:
    return DesignError(f"the database refuses the query: {' '.join(str(error).split())}")
