"""Opens a database, SQLite in WAL mode by default, and brings its schema up to date."""

import logging
import os
import platform
import re
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from judge_gym.errors import (
    ConflictError,
    DatabaseFull,
    DatabaseGone,
    DesignError,
    NotFoundError,
    ReadOnlyDatabase,
    StoreError,
    unknown,
)
from judge_gym.records.environment import DATABASE_URL, PROFILE
from judge_gym.store import tables as t
from judge_gym.store.unused_file import folder_lock

HEAD = "0027"
"""The newest schema revision, as a test checks."""
NEEDED = "0027"
"""The oldest schema revision that this version works with."""
OLDEST = "0027"
"""The oldest schema revision that can be upgraded; those before it were never released."""
SERVES = OLDEST
"""The oldest schema revision whose version works with a new database, as a test checks."""
REVISION = re.compile(r"\d{4}")
"""What a revision looks like; another application's migrations name theirs differently."""
READ_ONLY = re.compile("read-?only (transaction|database)")
"""What SQLite and Postgres say of a write that they refuse."""
PROFILES = ("dev", "prod")
SCHEMA_LOCK = 7105_001
"""The Postgres advisory lock that is held while the schema changes."""
READER = "judge_gym_reader"
"""The role of Postgres under which queries of users run: it can read all tables but secrets."""
DEFAULT = Path(".judge-gym") / "lab.db"
FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
"""The errors of SQLite where a file cannot grow."""
FILES = ("sqlite", "sqlite+pysqlite")
SERVERS = ("postgresql", "postgres", "postgresql+psycopg")


class Database:
    """A database and how statements are run on it."""

    def __init__(self, url: sa.URL) -> None:
        self.url = url
        host, end = platform.node()[:24], uuid.uuid4().hex[:6]
        self.session = {"application_name": f"judge-gym {host} {os.getpid()} {end}"}
        """The name on a server of all sessions of this process, by which others can end them."""
        if url.get_backend_name() == "sqlite":
            self.engine = sa.create_engine(url)
            self.insert: Any = sqlite.insert
            """The dialect's INSERT, which has ON CONFLICT."""
            sa.event.listen(self.engine, "connect", _tune_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)
        else:
            from sqlalchemy.dialects import postgresql  # slow to import

            # It warns of errors that were raised already.
            logging.getLogger("psycopg").setLevel(logging.ERROR)
            # Dates are in UTC; connections that a restarted server has lost are replaced.
            arguments = {"options": "-c timezone=utc", **self.session}
            self.engine = sa.create_engine(url, pool_pre_ping=True, connect_args=arguments)
            self.insert = postgresql.insert
        self._writer = self.engine.execution_options(begin="BEGIN IMMEDIATE")
        self._statements: dict[str, Any] = {}
        self._prepared: dict[tuple[Any, tuple[str, ...]], _Prepared] = {}
        self._shared: ContextVar[sa.Connection | None] = ContextVar("shared", default=None)
        self.profile = _session_profile()
        """The profile of this session, `dev` or `prod`."""
        self._marked: str | None = None
        self.created = False
        """Whether its file was created when it was opened here."""

    @property
    def marked_profile(self) -> str:
        """The profile that the database was marked with; `dev` by default."""
        if self._marked is None:
            self._marked = self.read_profile()
        return self._marked

    def read_profile(self) -> str:
        """Returns the profile that the database is marked with by now."""
        with self.read() as connection:
            exists = sa.inspect(connection).has_table("deployment")
            query = sa.text("SELECT profile FROM deployment")
            row = connection.execute(query).first() if exists else None
        return str(row[0]) if row else "dev"

    @property
    def may_write(self) -> bool:
        """Whether this session may write: a `prod` database needs a session of that profile."""
        return self.marked_profile != "prod" or self.profile == "prod"

    def refuse_empty(self) -> None:
        """Raises where the database holds no lab that this version can use or upgrade."""
        self._lab_revision()

    def refuse_unfit(self) -> None:
        """Raises where the schema does not fit this version; changes nothing."""
        self._refuse_too_old(self._lab_revision())

    def _lab_revision(self) -> str:
        with self.read() as connection:
            revision = self._usable_revision(connection)
        if revision is None:
            raise _no_lab(self)
        return revision

    def reload_profile(self) -> None:
        """Reads the marked profile again when it is next needed."""
        self._marked = None

    @cached_property
    def file(self) -> Path | None:
        """The SQLite file; None on a server."""
        return (
            Path(self.engine.url.database or "") if self.engine.dialect.name == "sqlite" else None
        )

    def sibling_engine(self, name: str) -> sa.Engine:
        """Returns an engine for another library's tables, in a sibling file or on the server."""
        if self.file is None:
            return sa.create_engine(
                self.url,
                pool_pre_ping=True,
                pool_size=8,
                max_overflow=0,
                connect_args=self.session,
            )
        url = self.url.set(database=str(self.file.with_suffix(f".{name}{self.file.suffix}")))
        engine = sa.create_engine(url, pool_size=8, max_overflow=0)

        def tune(connection: Any, _: Any) -> None:
            # As for our own file: a transaction of DBOS that reads and then writes must not fail.
            connection.isolation_level = "IMMEDIATE"
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000"):
                connection.execute(f"PRAGMA {pragma}")

        sa.event.listen(engine, "connect", tune)
        return engine

    @contextmanager
    def together(self) -> Iterator[None]:
        """Makes one transaction of everything that this thread reads and writes within."""
        with self.begin() as connection:
            before = self._shared.set(connection)
            try:
                yield
            finally:
                self._shared.reset(before)

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """Opens a transaction that writes; it takes the write lock when it begins."""
        # Within `together`, which is one transaction: SQLite would wait for itself in a second one.
        if (shared := self._shared.get()) is not None:
            yield shared
            return
        self.refuse_other_profile()
        # With its lock from the beginning: a transaction that reads first and then writes fails at
        # once where another one wrote in between, without waiting for it.
        with self.plain_errors(), self._writer.begin() as connection:
            yield connection

    def refuse_other_profile(self) -> None:
        """Raises where this session may not write."""
        if not self.may_write:
            raise ConflictError(
                f"the database {self.display_url} is production, and this session is "
                f"{self.profile}: nothing was written; to write to it, use --profile prod or "
                f"{PROFILE}=prod"
            )

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Opens a transaction that only reads, and never waits for a lock."""
        if (shared := self._shared.get()) is not None:
            yield shared
            return
        with self.plain_errors(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def plain_errors(self, sibling: sa.Engine | None = None) -> Iterator[None]:
        """Turns database errors, also those on a sibling engine, into errors of the store."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise  # a bug in our code, not a problem of the database
        except sa.exc.DatabaseError as error:
            message = " ".join(str(error.orig).split())
            if READ_ONLY.search(message):
                raise ReadOnlyDatabase(
                    f"the database {self.display_url} is read-only here, and nothing was written: "
                    "the file or its folder may not be written by this user, or the server is a "
                    "replica or refuses writes"
                ) from error
            operational = isinstance(error, sa.exc.OperationalError)
            kind = DatabaseGone if self.file is None and operational else StoreError
            name, hint = self.display_url, ""
            if sibling is not None and self.file is not None:
                name = sibling.url.render_as_string(hide_password=True)
                if not operational:  # the file is damaged
                    hint = "; it holds the queue alone: move it away, then resume the runs"
            if _is_full(error.orig):
                raise database_full(name, message) from error
            raise kind(f"the database {name} cannot be used: {message}{hint}") from error

    def rows(self, query: Any, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Returns the rows of a query as dictionaries."""
        with self.read() as connection:
            return [dict(row) for row in connection.execute(query, parameters or {}).mappings()]

    def first(self, query: Any) -> Any:
        """Returns the first row of a query, or None."""
        with self.read() as connection:
            return connection.execute(query).first()

    def scalar(self, query: Any) -> Any:
        """Returns the first column of the first row of a query, or None."""
        with self.read() as connection:
            return connection.scalar(query)

    def scalars(self, query: Any) -> list[Any]:
        """Returns the first column of the rows of a query."""
        with self.read() as connection:
            return list(connection.scalars(query))

    def pairs(self, query: Any) -> dict[Any, Any]:
        """Returns the rows of a query of two columns as a dictionary."""
        with self.read() as connection:
            return {key: value for key, value in connection.execute(query)}

    def insert_or_find(
        self, connection: sa.Connection, table: sa.Table, row: Mapping[str, Any], key: str
    ) -> int:
        """Inserts a row unless its key exists, and returns the id of the row with that key."""
        self.insert_rows(connection, self._ignoring(table), [row])
        query = sa.select(table.c.id).where(table.c[key] == row[key])
        return int(connection.execute(query).scalar_one())

    def insert_new(
        self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Inserts the rows whose key does not exist yet."""
        self.insert_rows(connection, self._ignoring(table), rows)

    def insert_or_replace(
        self,
        connection: sa.Connection,
        table: sa.Table,
        rows: Sequence[Mapping[str, Any]],
        *,
        key: tuple[str, ...],
        statuses: tuple[str, ...],
    ) -> None:
        """Inserts rows; an existing row is replaced only if it has one of these statuses."""
        self.insert_rows(connection, self._replacing(table, key, statuses), rows)

    def insert_rows(
        self, connection: sa.Connection, insert: Any, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Executes an INSERT, which must be the same object each time, with rows alike in columns.

        SQLite writes a row in less time than SQLAlchemy takes to arrange its parameters and its
        result, so that in a file the statement is compiled once and given to the driver.
        """
        if not rows:
            return
        if self.file is None:
            connection.execute(insert, rows)
            return
        columns = tuple(rows[0])
        if (insert, columns) not in self._prepared:
            self._prepared[insert, columns] = _Prepared.of(insert, columns, self.engine.dialect)
        prepared = self._prepared[insert, columns]
        with driver_cursor(connection, prepared.sql) as cursor:
            cursor.executemany(prepared.sql, [prepared.parameters(row) for row in rows])

    # Statements are built once: building one takes longer than running it.

    def _ignoring(self, table: sa.Table) -> Any:
        if table.name not in self._statements:
            self._statements[table.name] = self.insert(table).on_conflict_do_nothing()
        return self._statements[table.name]

    def _replacing(self, table: sa.Table, key: tuple[str, ...], statuses: tuple[str, ...]) -> Any:
        name = f"{table.name} replacing {statuses}"
        if name not in self._statements:
            insert = self.insert(table)
            self._statements[name] = insert.on_conflict_do_update(
                index_elements=key,
                set_={c.name: insert.excluded[c.name] for c in table.c if c.name != "id"},
                where=sa.or_(*(table.c.status == status for status in statuses)),
            )
        return self._statements[name]

    @property
    def display_url(self) -> str:
        """The URL without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    def revision(self) -> str | None:
        """Returns the schema revision of the database, or None if it is empty."""
        with self.read() as connection:
            return _revision(connection)

    def upgrade(self, *, contract: bool = False) -> tuple[str | None, str]:
        """Brings the schema up to date; returns the revisions before and after.

        Args:
            contract: also apply steps that tighten the schema, each if its audit query counts no
                row that violates it. A new database gets all steps.
        """
        with self.begin() as connection:  # another process may upgrade at the same time
            if self.file is None:
                connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})"))
            before = self._usable_revision(connection)
            if before is not None and before > HEAD:  # a newer version's, which serves this one
                return before, before
            after = before or HEAD
            if before is None:
                t.metadata.create_all(connection, checkfirst=False)
                _stamp(connection)
            for step in _pending(after):
                if not (step.only_adds or contract):
                    break
                if step.audit:
                    self._refuse_misfits(connection, step)
                _alembic("upgrade", connection, step.revision)
                after = step.revision
            if before is None:
                _record_oldest(connection, SERVES)
            elif after != before:
                _record_oldest_served(connection, after)
            if self.file is None:
                _grant_reader(connection)
        return before, after

    def pending(self) -> list["Step"]:
        """Returns the steps from the database's revision to the newest."""
        with self.read() as connection:
            return _pending(self._usable_revision(connection))

    def oldest_served(self) -> str | None:
        """Returns the oldest schema whose version works with the present one, if it is recorded."""
        with self.read() as connection:
            return _oldest_served(connection)

    def prepare(self) -> None:
        """Creates the schema, or upgrades a file by steps that only add; refuses what is unusable.

        An existing schema on a server, which others use, changes by `judge-gym db upgrade` alone.
        """
        with self.read() as connection:
            revision = self._usable_revision(connection)
        if revision is None:
            self.upgrade()
        elif self.file is not None and revision < HEAD and self.may_write:
            if _pending(revision)[0].only_adds:
                revision = self.upgrade()[1]
        self._refuse_too_old(revision)

    def _refuse_too_old(self, revision: str | None) -> None:
        if revision is not None and revision < NEEDED:
            raise ConflictError(
                f"the database {self.display_url} is at schema {revision}, this version needs "
                f"{NEEDED}: back it up and run 'judge-gym db upgrade'; if that does not reach it, "
                "'judge-gym db migrate' and 'judge-gym db contract'"
            )

    def _refuse_misfits(self, connection: sa.Connection, step: "Step") -> None:
        rows = int(connection.execute(sa.text(step.audit)).scalar_one())
        if rows:
            raise ConflictError(
                f"schema {step.revision} does not fit {rows:,} rows yet ({step.audit}): "
                "run 'judge-gym db migrate' first"
            )

    def _usable_revision(self, connection: sa.Connection) -> str | None:
        """Returns the schema revision, None for an empty database.

        Refuses a newer schema that does not serve this version, one that is too old to be upgraded,
        and the database of another application.
        """
        tables = sa.inspect(connection).get_table_names()  # first: another process may create them
        revision = _revision(connection) if "alembic_version" in tables else None
        at = f"the database {self.display_url} is at schema {revision}"
        other = f"or name another database in {DATABASE_URL}"
        if tables and not REVISION.fullmatch(revision or ""):
            raise ConflictError(
                f"the database {self.display_url} belongs to another application (it has the table "
                f"{min(tables)}), and nothing was changed; name another one with --db or in "
                f"{DATABASE_URL}"
            )
        if revision is not None and revision > HEAD:
            oldest = _oldest_served(connection) or revision
            if oldest > HEAD:
                raise ConflictError(
                    f"{at} of a newer judge-gym, which serves versions from schema {oldest} on; "
                    f"this one knows {HEAD}: upgrade judge-gym, {other}"
                )
        if revision is not None and revision < OLDEST:
            raise ConflictError(
                f"{at}, from before the first release, and nothing was changed; start a "
                f"new lab with --db or in {DATABASE_URL}: 'judge-gym ledger export' of the commit "
                "that made it and 'judge-gym ledger import' bring its answers along"
            )
        return revision


def database_full(name: str, message: str) -> DatabaseFull:
    """Returns the error for a database without room, and what to do about it."""
    return DatabaseFull(
        f"the database {name} cannot be written: disk full ({message}); "
        "once there is room, the same command continues"
    )


def _is_full(error: BaseException | None) -> bool:
    """Returns whether a database driver's error says that there is no room."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in FULL
    # A server that cannot even accept a connection gives no code.
    return getattr(error, "sqlstate", None) == "53100" or "No space left on device" in str(error)


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    row = connection.execute(sa.text("SELECT version_num FROM alembic_version")).first()
    return str(row[0]) if row else None


def _oldest_served(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(t.compatibility.name):
        return None
    return connection.scalar(sa.select(t.compatibility.c.oldest))


def _record_oldest_served(connection: sa.Connection, revision: str) -> None:
    """Records which versions a schema serves, for those that do not know its migrations."""
    steps = [step for step in _pending(None) if step.revision <= revision]
    oldest = max((step.serves for step in steps), default="")
    if oldest:
        _record_oldest(connection, oldest)


def _record_oldest(connection: sa.Connection, oldest: str) -> None:
    connection.execute(t.compatibility.delete())
    connection.execute(t.compatibility.insert().values(oldest=oldest))


def _stamp(connection: sa.Connection) -> None:
    """Records the newest revision in a new database as Alembic does, which is slow to import."""
    column = sa.Column("version_num", sa.String(32), nullable=False)
    key = sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc")
    table = sa.Table("alembic_version", sa.MetaData(), column, key)
    table.create(connection)
    connection.execute(table.insert().values(version_num=HEAD))


@contextmanager
def driver_cursor(connection: sa.Connection, sql: str) -> Iterator[sqlite3.Cursor]:
    """Opens a cursor of SQLite's driver in a transaction, for a statement that is executed often.

    Errors are those that SQLAlchemy would raise.
    """
    driver: Any = connection.connection.driver_connection
    cursor = driver.cursor()
    try:
        yield cursor
    except sqlite3.Error as error:
        raise sa.exc.DBAPIError.instance(sql, None, error, sqlite3.Error) from error
    finally:
        cursor.close()


class _Prepared(NamedTuple):
    """An INSERT for SQLite, compiled for rows of certain columns."""

    sql: str
    converters: tuple[tuple[str, Callable[[Any], Any] | None], ...]
    """The column of each parameter, and what makes a value of it what SQLite stores."""
    constants: Mapping[str, Any]
    """The values of further parameters, which are the same for all rows."""

    @classmethod
    def of(cls, insert: Any, columns: Sequence[str], dialect: sa.Dialect) -> "_Prepared":
        """Compiles a statement for rows of these columns."""
        compiled = insert.compile(dialect=dialect, column_keys=columns)
        names = compiled.positiontup
        kinds = [compiled.binds[name].type.dialect_impl(dialect) for name in names]
        converters = zip(names, (kind.bind_processor(dialect) for kind in kinds), strict=True)
        constants = {name: compiled.binds[name].value for name in names if name not in columns}
        return cls(str(compiled), tuple(converters), constants)

    def parameters(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """Returns the parameters of a row in their order."""
        values = {**row, **self.constants} if self.constants else row
        return tuple(
            [
                values[name] if convert is None else convert(values[name])
                for name, convert in self.converters
            ]
        )


class Step(NamedTuple):
    """One step of the schema's history."""

    revision: str
    only_adds: bool
    """Whether it only adds to the schema, so that the previous version works with it, too."""
    audit: str
    """For a step that tightens the schema, a query that counts the rows that violate it."""
    serves: str
    """The oldest schema whose version works after this step; empty for a step that only adds."""


def _pending(revision: str | None) -> list[Step]:
    """Returns the steps after a revision, in order."""
    if revision is not None and revision >= HEAD:
        return []
    from alembic.script import ScriptDirectory  # slow to import

    scripts = ScriptDirectory.from_config(alembic_config()).walk_revisions(revision or "base", HEAD)
    steps = [
        Step(
            script.revision,
            script.module.only_adds,
            getattr(script.module, "audit", ""),
            getattr(script.module, "serves", ""),
        )
        for script in scripts
        if script.revision != revision
    ]
    return steps[::-1]


def _alembic(command: str, connection: sa.Connection, revision: str) -> None:
    """Runs a command of Alembic, `upgrade` or `stamp`, in a transaction."""
    import alembic.command

    config = alembic_config()
    config.attributes["connection"] = connection
    getattr(alembic.command, command)(config, revision)


def _grant_reader(connection: sa.Connection) -> None:
    """Creates the role for users' queries and lets it read; leaves it where the login may not."""
    from judge_gym.store.sql import OPEN

    role = connection.scalar(sa.text("SELECT 1 FROM pg_roles WHERE rolname = :r"), {"r": READER})
    tables = ", ".join(f"public.{name}" for name in OPEN)
    for statement in (
        *(() if role else (f"CREATE ROLE {READER} NOLOGIN",)),
        f"GRANT {READER} TO CURRENT_USER",
        f"GRANT USAGE ON SCHEMA public TO {READER}",
        f"GRANT SELECT ON {tables} TO {READER}",
    ):
        try:  # another database of the server may be creating the role at the same time
            with connection.begin_nested():
                connection.execute(sa.text(statement))
        except (sa.exc.ProgrammingError, sa.exc.IntegrityError, sa.exc.InternalError):
            continue


def _session_profile() -> str:
    profile = os.environ.get(PROFILE) or "dev"
    if profile not in PROFILES:
        raise DesignError(unknown("profile", profile, PROFILES), choices=PROFILES)
    return profile


def alembic_config() -> Any:
    """Returns Alembic's settings; the migrations are beside this file."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def open_database(url: str | None = None, *, prepare: bool = True, create: bool = True) -> Database:
    """Opens the database of a URL, of the environment, or of the working folder.

    With `prepare`, its schema is upgraded by the steps that only add to it.
    """
    database = Database(database_url(url))
    if (file := database.file) is not None:
        if create:
            _make_folder(file.parent)
        # Two first commands in one folder would both see an empty file and create its tables.
        with folder_lock(file.parent):
            if create:
                database.created = create_private(file)
            elif not file.exists():
                raise _no_lab(database)
            return _connected(database, prepare, create)
    return _connected(database, prepare, create)


def _connected(database: Database, prepare: bool, create: bool) -> Database:
    if prepare:
        try:
            if not create:
                database.refuse_empty()
            database.prepare()
        except BaseException:
            database.engine.dispose()
            raise
    return database


def _no_lab(database: Database) -> NotFoundError:
    return NotFoundError(
        f"there is no lab at {database.display_url}; name another with --db or in {DATABASE_URL}, "
        "or create one: 'judge-gym init' writes a study, 'judge-gym run STUDY' runs it; "
        "'judge-gym db upgrade' creates an empty one"
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {folder} cannot be created: {error.strerror}") from error


def create_private(file: Path) -> bool:
    """Creates a database file that only its owner can read, and returns whether it was missing."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError as error:
        raise StoreError(f"the file {file} cannot be created: {error.strerror}") from error
    return True


def database_url(given: str | None = None) -> sa.URL:
    """Returns the URL that is given, set in the environment or the default, after a check."""
    given = given or os.environ.get(DATABASE_URL)
    try:
        url = sa.make_url(given) if given else sa.make_url(f"sqlite:///{DEFAULT}")
    except sa.exc.ArgumentError:
        raise StoreError(
            f"{DATABASE_URL} or --db is not a database URL; it looks like sqlite:///lab.db or "
            "postgresql://USER:PASSWORD@HOST/NAME"
        ) from None
    if url.drivername in SERVERS:
        if not url.database:
            raise StoreError("the URL names no database: postgresql://USER:PASSWORD@HOST/NAME")
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in FILES or url.host or url.username:
        kind = f"{url.drivername} with a host" if url.host else url.drivername
        raise StoreError(
            f"{kind} is not supported; choose sqlite:///FILE or postgresql://HOST/NAME"
        )
    if url.database in (None, "", ":memory:"):
        raise StoreError("a lab needs a file: sqlite:///FILE")
    return url


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


def _tune_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # we begin transactions, so that they cover schema changes
    for pragma in ("busy_timeout=30000", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    for _ in range(100):  # the switch to WAL does not wait for another process
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            time.sleep(0.05)
