"""Opening a database: SQLite in WAL mode by default, its schema checked and brought up to date."""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite as sqlite_dialect

from judge_gym.errors import (
    ConflictError,
    DatabaseGone,
    DesignError,
    NotFoundError,
    StoreError,
    unknown,
)

HEAD = "0011"
"""The newest revision that this version knows; a test keeps it true."""
NEEDED = "0008"
"""The oldest revision that it works with."""
PROFILE = "JUDGE_GYM_PROFILE"
PROFILES = ("dev", "prod")
ENVIRONMENT = "JUDGE_GYM_DATABASE_URL"
SCHEMA_LOCK = 7105_001
"""Postgres's number for the lock of whoever changes the schema."""
READER = "judge_gym_reader"
"""The role of Postgres under which queries of users run: it can read all tables but secrets."""
DEFAULT = Path(".judge-gym") / "lab.db"
FILES = ("sqlite", "sqlite+pysqlite")
SERVERS = ("postgresql", "postgres", "postgresql+psycopg")


class Database:
    """A connection factory that knows its dialect."""

    def __init__(self, url: sa.URL) -> None:
        self.url = url
        if url.get_backend_name() == "sqlite":
            self.engine = sa.create_engine(url)
            sa.event.listen(self.engine, "connect", _tune_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)
        else:
            # Days are days of UTC; a connection that a restarted server has lost is replaced.
            utc = {"options": "-c timezone=utc"}
            self.engine = sa.create_engine(url, pool_pre_ping=True, connect_args=utc)
        self.insert: Any = {"sqlite": sqlite_dialect.insert, "postgresql": postgresql.insert}[
            self.engine.dialect.name
        ]
        """An INSERT that can say what happens on conflict."""
        self._statements: dict[str, Any] = {}
        self.profile = _session_profile()
        """What this session says that it works on."""
        self._marked: str | None = None

    @property
    def marked(self) -> str:
        """What the database is for: `prod` if it was marked so, else `dev`."""
        if self._marked is None:
            with self.read() as connection:
                there = sa.inspect(connection).has_table("deployment")
                query = sa.text("SELECT profile FROM deployment")
                row = connection.execute(query).first() if there else None
            self._marked = str(row[0]) if row else "dev"
        return self._marked

    @property
    def may_write(self) -> bool:
        """Whether this session may change it: production wants to hear that it is meant."""
        return self.marked != "prod" or self.profile == "prod"

    def forget_mark(self) -> None:
        """Look again what the database is for: it was marked."""
        self._marked = None

    @property
    def file(self) -> Path | None:
        """The SQLite file; None on a server."""
        return (
            Path(self.engine.url.database or "") if self.engine.dialect.name == "sqlite" else None
        )

    def beside(self, name: str) -> sa.Engine:
        """An engine for another library's tables: in a file beside the lab's, or on its server."""
        if self.file is None:
            return sa.create_engine(self.url, pool_pre_ping=True, pool_size=8, max_overflow=0)
        url = self.url.set(database=str(self.file.with_suffix(f".{name}{self.file.suffix}")))
        engine = sa.create_engine(url, pool_size=8, max_overflow=0)

        def tune(connection: Any, _: Any) -> None:
            connection.isolation_level = "IMMEDIATE"
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000"):
                connection.execute(f"PRAGMA {pragma}")

        sa.event.listen(engine, "connect", tune)
        return engine

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """A transaction that writes: it waits for its turn when it begins, not halfway."""
        if not self.may_write:
            raise ConflictError(
                f"the database {self.shown} is production, and this session is {self.profile}: "
                f"nothing was written; --profile prod or {PROFILE}=prod says that it is meant"
            )
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that only reads; it waits for nobody."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sa.Connection]:
        with self.plainly(), self.engine.execution_options(begin=begin).begin() as connection:
            yield connection

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Raise what a database says, that of another library's too, as a fault of the store."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise  # a fault of ours, not of the database
        except sa.exc.DatabaseError as fault:
            said = " ".join(str(fault.orig).split())
            gone = self.file is None and isinstance(fault, sa.exc.OperationalError)
            kind = DatabaseGone if gone else StoreError
            raise kind(f"the database {self.shown} cannot be used: {said}") from fault

    def once(
        self, connection: sa.Connection, table: sa.Table, row: Mapping[str, Any], key: str
    ) -> int:
        """Insert a row unless its key is there; the id of the one that is."""
        connection.execute(self._ignoring(table), row)
        query = sa.select(table.c.id).where(table.c[key] == row[key])
        return int(connection.execute(query).scalar_one())

    def add(
        self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Insert rows; one whose key is there already stays as it is."""
        if rows:
            connection.execute(self._ignoring(table), rows)

    def better(
        self,
        connection: sa.Connection,
        table: sa.Table,
        rows: Sequence[Mapping[str, Any]],
        *,
        key: tuple[str, ...],
        over: tuple[str, ...],
    ) -> None:
        """Insert rows; one that is there gives way only if its status is among `over`."""
        if rows:
            connection.execute(self._replacing(table, key, over), rows)

    # Statements are built once and take their values as parameters: building one costs more than
    # running it.

    def _ignoring(self, table: sa.Table) -> Any:
        if table.name not in self._statements:
            self._statements[table.name] = self.insert(table).on_conflict_do_nothing()
        return self._statements[table.name]

    def _replacing(self, table: sa.Table, key: tuple[str, ...], over: tuple[str, ...]) -> Any:
        name = f"{table.name} over {over}"
        if name not in self._statements:
            insert = self.insert(table)
            self._statements[name] = insert.on_conflict_do_update(
                index_elements=key,
                set_={c.name: insert.excluded[c.name] for c in table.c if c.name != "id"},
                where=sa.or_(*(table.c.status == status for status in over)),
            )
        return self._statements[name]

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    def revision(self) -> str | None:
        """The revision that the database is at; None for an empty one."""
        with self.read() as connection:
            return _revision(connection)

    def upgrade(self, *, contract: bool = False) -> tuple[str | None, str]:
        """Bring the schema up to date; where it was and where it is.

        Args:
            contract: also what tightens the schema, each step if its audit finds no row that it
                would not fit. A new database has none, and gets all.
        """
        with self.begin() as connection:  # another process may be at it too
            if self.file is None:
                connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})"))
            before = _revision(connection)
            self._refuse_newer(before)
            after = before or HEAD
            if before is None:  # no rows to audit: all steps at once, which is much faster
                _apply(connection, HEAD)
            for step in _pending(after):
                if not (step.only_adds or contract):
                    break
                if step.audit:
                    self._refuse_misfits(connection, step)
                _apply(connection, step.revision)
                after = step.revision
            if self.file is None:
                _grant_reader(connection)
        return before, after

    def pending(self) -> list["Step"]:
        """The steps from where the database is to this version's newest schema."""
        return _pending(self.revision())

    def prepare(self) -> None:
        """Creates the schema, or applies the steps that only add; refuses one that is newer."""
        revision = self.revision()
        self._refuse_newer(revision)
        if revision is None:
            self.upgrade()
        elif revision < HEAD and self.may_write and _pending(revision)[0].only_adds:
            revision = self.upgrade()[1]
        if revision is not None and revision < NEEDED:
            raise ConflictError(
                f"the database {self.shown} is at schema {revision}, this version needs {NEEDED}: "
                "back it up and run 'judge-gym db migrate' and 'judge-gym db contract'"
            )

    def _refuse_misfits(self, connection: sa.Connection, step: "Step") -> None:
        rows = int(connection.execute(sa.text(step.audit)).scalar_one())
        if rows:
            raise ConflictError(
                f"schema {step.revision} does not fit {rows:,} rows yet ({step.audit}): "
                "run 'judge-gym db migrate' first"
            )

    def _refuse_newer(self, revision: str | None) -> None:
        if revision is not None and revision > HEAD:
            raise ConflictError(
                f"the database {self.shown} is at schema {revision} of a newer judge-gym, this one "
                f"knows {HEAD}: upgrade judge-gym, or name another database in {ENVIRONMENT}"
            )


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    row = connection.execute(sa.text("SELECT version_num FROM alembic_version")).first()
    return str(row[0]) if row else None


class Step(NamedTuple):
    """A revision of the schema."""

    revision: str
    only_adds: bool
    """Whether it leaves all that is there as it is, and so both versions work with it."""
    audit: str
    """Of one that tightens: counts the rows that it would not fit."""


def _pending(revision: str | None) -> list[Step]:
    """The steps after a revision, in their order."""
    from alembic.script import ScriptDirectory

    found = ScriptDirectory.from_config(alembic_config()).walk_revisions(revision or "base", HEAD)
    steps = [
        Step(one.revision, one.module.only_adds, getattr(one.module, "audit", ""))
        for one in found
        if one.revision != revision
    ]
    return steps[::-1]


def _apply(connection: sa.Connection, revision: str) -> None:
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _grant_reader(connection: sa.Connection) -> None:
    """Creates the role for users' queries and lets it read; leaves it where the login may not."""
    from judge_gym.store.sql import OPEN

    role = connection.scalar(sa.text("SELECT 1 FROM pg_roles WHERE rolname = :r"), {"r": READER})
    there = ", ".join(f"public.{name}" for name in OPEN)
    for statement in (
        *(() if role else (f"CREATE ROLE {READER} NOLOGIN",)),
        f"GRANT {READER} TO CURRENT_USER",
        f"GRANT USAGE ON SCHEMA public TO {READER}",
        f"GRANT SELECT ON {there} TO {READER}",
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
    """Alembic's settings; the migrations lie beside this file."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def open_database(url: str | None = None, *, prepare: bool = True, create: bool = True) -> Database:
    """The database of a URL, of the environment, or of the working folder.

    Args:
        url: which.
        prepare: bring its schema up to date, where that only adds.
        create: make it where there is none; without, that is refused, and nothing is made.
    """
    database = Database(database_url(url))
    if (file := database.file) is not None:
        if create:
            _make_folder(file.parent)
            create_private(file)
        elif not file.exists():
            raise _no_lab(database)
    if prepare:
        if not create and database.revision() is None:
            database.engine.dispose()
            raise _no_lab(database)
        database.prepare()
    return database


def _no_lab(database: Database) -> NotFoundError:
    return NotFoundError(
        f"there is no lab at {database.shown}; name another with --db or in {ENVIRONMENT}, or "
        "begin one: 'judge-gym init' writes a study, 'judge-gym run STUDY' runs it"
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise StoreError(f"the folder {folder} cannot be made: {fault.strerror}") from fault


def create_private(file: Path) -> None:
    """Creates a database file that only its owner can read; leaves one that is there as it is."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreError(f"the file {file} cannot be created: {error.strerror}") from error


def database_url(given: str | None = None) -> sa.URL:
    """A URL, that of the environment, or that of the working folder, checked."""
    given = given or os.environ.get(ENVIRONMENT)
    try:
        url = sa.make_url(given) if given else sa.make_url(f"sqlite:///{DEFAULT}")
    except sa.exc.ArgumentError:
        raise StoreError(
            f"{ENVIRONMENT} or --db is not a database URL; it looks like sqlite:///lab.db or "
            "postgresql://USER:PASSWORD@HOST/NAME"
        ) from None
    if url.drivername in SERVERS:
        if not url.database:
            raise StoreError("the URL names no database: postgresql://USER:PASSWORD@HOST/NAME")
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in FILES or url.host or url.username:
        what = f"{url.drivername} with a host" if url.host else url.drivername
        raise StoreError(
            f"{what} is not supported; choose sqlite:///FILE or postgresql://HOST/NAME"
        )
    if url.database in (None, "", ":memory:"):
        raise StoreError("a lab lives in a file: sqlite:///FILE")
    return url


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


def _tune_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by us, so that they hold schema too
    for pragma in ("busy_timeout=30000", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    for _ in range(100):  # the switch to WAL does not wait for another process that makes it
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as fault:
            if "locked" not in str(fault):
                raise
            time.sleep(0.05)
