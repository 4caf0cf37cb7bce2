"""Questions in SQL: what they may read, and that nothing whatever can be changed by one."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from judge_gym.errors import BusyError, ConflictError, DesignError
from judge_gym.store import Store
from judge_gym.store import sql as module
from judge_gym.store import tables as t
from judge_gym.store.database import READER
from judge_gym.store.sql import OPEN, SIZE

pytestmark = pytest.mark.postgres
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT {} FROM r"


@pytest.fixture
def filled(store: Store) -> Iterator[tuple[Store, str]]:
    """A store with a few rows, and the secret of a token."""
    with store.database.begin() as connection:
        rows = [{"hash": f"{n:064}", "body": f"text {n}"} for n in range(7)]
        connection.execute(t.texts.insert(), rows)
        connection.execute(t.leases.insert(), {"scope": "here", "state": {"a": [1, 2]}})
    _, secret = store.tokens.create("ada", "write")
    yield store, secret


def contents(store: Store) -> dict[str, list[Any]]:
    """Every row of every table, read beside what is tested."""
    with store.database.read() as connection:
        return {
            name: list(connection.execute(sa.select(table)))
            for name, table in t.metadata.tables.items()
        }


def test_a_select_returns_columns_and_rows(filled: tuple[Store, str]) -> None:
    found = filled[0].sql.select("SELECT body AS text, 1 + 1 AS two FROM texts ORDER BY hash;")
    assert found.columns == ("text", "two")
    assert found.rows == [[f"text {n}", 2] for n in range(7)]
    assert not found.more


def test_rows_beyond_the_limit_are_reported_and_not_fetched(filled: tuple[Store, str]) -> None:
    found = filled[0].sql.select(ENDLESS.format("n"), limit=3)
    assert (found.rows, found.more) == ([[1], [2], [3]], True)
    exact = filled[0].sql.select("SELECT hash FROM texts", limit=7)
    assert (len(exact.rows), exact.more) == (7, False)


READINGS = [
    "WITH x AS (SELECT body FROM texts) SELECT count(*) FROM x",
    "SELECT count(*) FROM (SELECT 1 AS one) AS q",
    "SELECT 1 WHERE 'abc' LIKE '%b%'",
    "SELECT '%s %(x)s'",
    "SELECT 'tokens'",
    "WITH tokens AS (SELECT 1 AS hash) SELECT hash FROM tokens",
    "VALUES (1)",
    "-- why\nSELECT /* not */ 1",
]
# One store for all of a kind: to make one takes longer than to ask it.


def test_read_only_statements_are_allowed(filled: tuple[Store, str]) -> None:
    for sql in READINGS:
        assert len(filled[0].sql.select(sql).rows) == 1, sql


def test_every_open_table_and_column_can_be_named(filled: tuple[Store, str]) -> None:
    for table in OPEN:
        columns = ", ".join(f'"{column.name}"' for column in t.metadata.tables[table].columns)
        filled[0].sql.select(f"SELECT {columns} FROM {table}")


ATTACKS = [
    "INSERT INTO leases (scope, state) VALUES ('x', '{}')",
    "UPDATE texts SET body = 'x'",
    "DELETE FROM texts",
    "DROP TABLE texts",
    "CREATE TABLE x (y int)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "REPLACE INTO leases VALUES ('x', '{}')",
    "WITH x AS (DELETE FROM texts RETURNING *) SELECT * FROM x",
    "WITH x AS (SELECT 'a' AS a) INSERT INTO leases SELECT a, '{}' FROM x",
    "SELECT 1; DROP TABLE texts",
    "SELECT 1; SELECT 2",
    "COMMIT; DELETE FROM texts",
    "BEGIN",
    "VACUUM",
    "REINDEX",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA table_info(texts)",
    "SELECT * FROM pragma_table_info('tokens')",
    "ATTACH DATABASE '/tmp/x.db' AS x",
    "VACUUM INTO '/tmp/x.db'",
    "SELECT load_extension('/tmp/x')",
    "SELECT writefile('/tmp/x', 'y')",
    "COPY texts TO '/tmp/x'",
    "COPY texts TO PROGRAM 'touch /tmp/x'",
    "DO $$ BEGIN DELETE FROM texts; END $$",
    "SET ROLE postgres",
    "SET TRANSACTION READ WRITE",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SELECT body INTO x FROM texts",
    "SELECT * FROM texts FOR UPDATE",
    "SELECT nextval('tokens_id_seq')",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_terminate_backend(1)",
    "SELECT lo_create(0)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_sleep(60)",
    "CALL x()",
    "LISTEN x",
    "EXPLAIN ANALYZE DELETE FROM texts",
    "SELECT fts3_tokenizer('simple')",
    "SELECT sqlite_compileoption_get(1)",
    "SELECT randomblob(10)",
    "",
    "  ;",
    "\0",
    "SELECT \0 1",
    "nonsense",
]


def test_statements_with_side_effects_are_refused(filled: tuple[Store, str]) -> None:
    before = contents(filled[0])
    for sql in ATTACKS:
        with pytest.raises(DesignError):
            found = filled[0].sql.select(sql, seconds=20)
            pytest.fail(f"{sql!r} was answered with {found}")
        assert contents(filled[0]) == before, sql


THEFTS = [
    "SELECT * FROM tokens",
    "SELECT hash FROM main.tokens",
    "SELECT hash FROM public.tokens",
    'SELECT "hash" FROM "tokens"',
    "SELECT rowid FROM tokens",
    "SELECT count(*) FROM tokens",
    "SELECT (SELECT hash FROM tokens)",
    "SELECT EXISTS (SELECT 1 FROM tokens)",
    "WITH x AS (SELECT * FROM tokens) SELECT count(*) FROM x",
    "SELECT 1 FROM texts WHERE hash = (SELECT max(hash) FROM tokens)",
    "SELECT x.hash FROM texts LEFT JOIN tokens AS x ON true",
    "SELECT 1 LIMIT (SELECT length(hash) FROM tokens)",
    "SELECT 1 UNION SELECT id FROM tokens",
    "TABLE tokens",
    "SELECT query_to_xml('SELECT * FROM tokens', true, true, '')",
    "SELECT \"query_to_xml\"('SELECT * FROM tokens', true, true, '')",
    "SELECT U&\"query\\005fto\\005fxml\"('SELECT * FROM tokens', true, true, '')",
    "SELECT 1 LIMIT length(table_to_xml('tokens', true, true, '')::text)",
    "SELECT database_to_xml(true, true, '')",
    "SELECT * FROM ts_stat('SELECT to_tsvector(hash) FROM tokens')",
    "SELECT most_common_vals FROM pg_stats WHERE tablename = 'tokens'",
    "SELECT * FROM pg_authid",
    "SELECT sql FROM sqlite_master",
    "SELECT current_setting('data_directory')",
]


def test_tokens_and_system_tables_cannot_be_read(filled: tuple[Store, str]) -> None:
    with filled[0].database.read() as connection:
        [hashed] = connection.scalars(sa.select(t.tokens.c.hash))
    for sql in THEFTS:
        with pytest.raises(DesignError) as refused:
            found = filled[0].sql.select(sql)
            pytest.fail(f"{sql!r} was answered with {found}")
        assert hashed not in str(refused.value), sql


def test_a_slow_query_is_stopped(filled: tuple[Store, str]) -> None:
    begun = time.monotonic()
    with pytest.raises(ConflictError, match=r"took longer than 0\.3 s"):
        filled[0].sql.select(ENDLESS.format("count(*)"), seconds=0.3)
    assert time.monotonic() - begun < 30, "and not when it likes"
    assert filled[0].sql.select("SELECT 1").rows == [[1]], "the next one is answered"


def test_a_slow_function_is_stopped(filled: tuple[Store, str]) -> None:
    if filled[0].database.file is None:
        pytest.skip("a server looks at its clock within functions")
    with filled[0].database.begin() as connection:
        connection.execute(t.texts.insert(), {"hash": "long", "body": "a" * 500_000})
    search = "SELECT sum(instr(a.body, substr(a.body, 1, 250000) || 'b')) FROM texts AS a, texts"
    begun = time.monotonic()
    with pytest.raises(ConflictError, match="took longer"):
        filled[0].sql.select(search, seconds=0.1)
    assert time.monotonic() - begun < 30
    for operator, wild in (("LIKE", "%"), ("GLOB", "*")):
        with pytest.raises(DesignError, match="too complex"):
            filled[0].sql.select(f"SELECT body {operator} '{wild}{'a' * 20_000}b' FROM texts")


def test_queries_on_a_server_run_under_a_role_that_cannot_read_secrets(store: Store) -> None:
    if store.database.file is not None:
        pytest.skip("SQLite has no roles; its authorizer keeps secrets out of reach")
    with store.database.engine.connect() as connection:
        connection.execute(sa.text(f"SET LOCAL ROLE {READER}"))
        assert connection.scalar(sa.text("SELECT count(*) FROM texts")) == 0
        with pytest.raises(sa.exc.ProgrammingError, match="permission denied"):
            connection.execute(sa.text("SELECT * FROM tokens"))


def test_queries_are_off_where_the_reading_role_is_missing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store.database.file is not None:
        pytest.skip("SQLite has no roles")
    monkeypatch.setattr(module, "READER", "judge_gym_nobody")
    with pytest.raises(ConflictError, match=r"queries are off .* 'judge-gym db upgrade'"):
        store.sql.select("SELECT 1")


def test_a_result_that_is_too_large_is_refused(filled: tuple[Store, str]) -> None:
    store = filled[0]
    with store.database.begin() as connection:
        connection.execute(t.texts.insert(), {"hash": "long", "body": "x" * 400_000})
    many = "SELECT a.body FROM texts AS a, texts AS b, texts AS c WHERE a.hash = 'long'"
    with pytest.raises(DesignError, match="too large"):
        store.sql.select(many, limit=1000)
    assert SIZE // 400_000 < 64, "all of it would be more"


def test_a_huge_computed_value_is_refused(filled: tuple[Store, str]) -> None:
    for sql in ("SELECT zeroblob(1000000000)", "SELECT printf('%.*c', 1000000000, 'x')"):
        with pytest.raises(DesignError):
            filled[0].sql.select(sql)


def test_the_number_of_concurrent_queries_is_limited(filled: tuple[Store, str]) -> None:
    questions = filled[0].sql
    turns = [questions._turns.acquire(blocking=False) for _ in range(3)]
    assert turns == [True, True, False]
    with pytest.raises(BusyError):
        questions.select("SELECT 1", seconds=0.01)
    questions._turns.release(2)
    assert questions.select("SELECT 1").rows == [[1]]


def test_tables_are_listed_without_secrets(filled: tuple[Store, str]) -> None:
    found = {row["table"]: row for row in filled[0].sql.tables()}
    assert set(found) == set(t.metadata.tables) - {"tokens"}
    assert found["texts"]["rows"] == 7
    assert found["samples"]["columns"][1] == {
        "name": "run_id",
        "type": "INTEGER",
        "null": False,
        "refers_to": "runs.id",
    }


def test_pages_of_a_table_hold_every_row_once(filled: tuple[Store, str]) -> None:
    for limit, descending in itertools.product((1, 3, 7, 100), (False, True)):
        seen: list[str] = []
        after: list[Any] | None = None
        while True:
            rows, after = filled[0].sql.page(
                "texts", after=after, limit=limit, descending=descending
            )
            assert len(rows) <= limit
            seen += [row["body"] for row in rows]
            if after is None:
                break
        assert seen == sorted((f"text {n}" for n in range(7)), reverse=descending)


def test_an_unknown_table_or_cursor_is_refused(filled: tuple[Store, str]) -> None:
    for table, after in (("tokens", None), ("x", None), ("texts", [1]), ("texts", ["a", "b"])):
        with pytest.raises(DesignError):
            filled[0].sql.page(table, after=after, limit=3)
