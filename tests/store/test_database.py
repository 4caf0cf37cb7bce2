"""Opening a database: its schema, its refusals, and what survives a crash at the worst moment."""

import ctypes
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import alembic.command
import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable

import postgres
from conftest import Call
from forked import open_store_until, open_stores_at_once
from judge_gym.engine.queue import RunQueue
from judge_gym.errors import ConflictError, NotFoundError, StoreError
from judge_gym.lab import Lab
from judge_gym.records import content_hash
from judge_gym.store import Store, database, tables
from judge_gym.store.database import HEAD, OLDEST, SERVES, alembic_config, open_database
from stores import contents, later_version


def url(file: Path) -> str:
    return f"sqlite:///{file}"


def set_revision(file: Path, revision: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    connection.close()


def stated_revision(file: Path) -> str:
    connection = sqlite3.connect(file)
    [(revision,)] = connection.execute("SELECT version_num FROM alembic_version")
    connection.close()
    return str(revision)


# --- the schema ----------------------------------------------------------------------------------


def test_a_new_file_gets_the_schema_at_its_head(tmp_path: Path) -> None:
    Store.open(url(tmp_path / "deep" / "er" / "lab.db")).close()
    file = tmp_path / "deep" / "er" / "lab.db"
    assert stated_revision(file) == HEAD
    connection = sqlite3.connect(file)
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    assert set(tables.metadata.tables) <= found


def test_head_is_the_newest_script_and_there_is_one_line_of_them() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_heads() == [HEAD]


def test_every_migration_says_whether_it_only_adds() -> None:
    scripts = list(ScriptDirectory.from_config(alembic_config()).walk_revisions())
    assert scripts
    for script in scripts:
        assert isinstance(getattr(script.module, "only_adds", None), bool), script.revision
        if not script.module.only_adds or script.revision == OLDEST:
            serves = getattr(script.module, "serves", "")
            assert OLDEST <= serves <= script.revision, "which versions work after a contract"
        assert script.revision == script.revision.zfill(4), "revisions are compared as strings"
    assert max(getattr(script.module, "serves", "") for script in scripts) == SERVES


def test_a_new_database_is_stamped_as_alembic_would(tmp_path: Path) -> None:
    Store.open(url(tmp_path / "lab.db")).close()
    engine = sa.create_engine(url(tmp_path / "alembic.db"))
    with engine.begin() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        alembic.command.stamp(config, HEAD)
    engine.dispose()
    stamps = [_stamp(tmp_path / name) for name in ("lab.db", "alembic.db")]
    assert stamps[0] == stamps[1]


def _stamp(file: Path) -> tuple[str, str]:
    connection = sqlite3.connect(file)
    [(sql,)] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'alembic_version'")
    connection.close()
    return " ".join(sql.split()), stated_revision(file)


@pytest.mark.postgres
def test_the_file_is_in_wal_mode_and_foreign_keys_are_enforced(store: Store) -> None:
    if store.database.file is not None:
        other = sqlite3.connect(store.database.file)
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        other.close()
    with pytest.raises(sa.exc.IntegrityError), store.database.begin() as connection:
        connection.execute(tables.evidence.insert().values(_evidence_row("no such text")))


def _evidence_row(text: str) -> dict[str, Any]:
    empty = dict.fromkeys(("title", "url", "date", "source"), "")
    return {**empty, "text": text, "metadata": {}}


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "lab.db"
    Store.open(url(file)).close()
    before = file.read_bytes()
    Store.open(url(file)).close()
    assert file.read_bytes() == before


@pytest.mark.parametrize("variable", [True, False])
def test_the_url_is_that_of_the_environment_or_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JUDGE_GYM_DATABASE_URL", raising=False)
    if variable:
        monkeypatch.setenv("JUDGE_GYM_DATABASE_URL", url(tmp_path / "named.db"))
    Store.open().close()
    expected = tmp_path / ("named.db" if variable else ".judge-gym/lab.db")
    assert stated_revision(expected) == HEAD


def test_opening_for_reading_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no lab at"):
        Store.open(url(tmp_path / "deep" / "lab.db"), create=False)
    assert list(tmp_path.iterdir()) == []
    Store.open(url(tmp_path / "lab.db")).close()
    Store.open(url(tmp_path / "lab.db"), create=False).close()


@pytest.mark.slow
def test_an_empty_server_database_cannot_be_opened_for_reading() -> None:
    empty = postgres.empty_url()
    with pytest.raises(NotFoundError, match="there is no lab at"):
        Store.open(empty, create=False)
    there = open_database(empty, prepare=False)
    assert there.revision() is None
    there.engine.dispose()


# --- upgrades ------------------------------------------------------------------------------------


def _set_oldest_served(file: Path, revision: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE compatibility SET oldest = ?", [revision])
        connection.commit()


def test_an_expanded_schema_of_a_newer_version_serves_this_one(tmp_path: Path) -> None:
    file = tmp_path / "lab.db"
    Store.open(url(file)).close()
    set_revision(file, "9999")
    Store.open(url(file)).close()
    assert _upgrade(file, contract=True) == ("9999", "9999")
    opened = open_database(url(file), prepare=False)
    assert opened.pending() == []
    assert opened.oldest_served() == OLDEST, "later steps only add"
    opened.engine.dispose()


def test_a_contracted_database_of_a_newer_version_is_refused_and_left_alone(
    tmp_path: Path,
) -> None:
    file = tmp_path / "lab.db"
    Store.open(url(file)).close()
    set_revision(file, "9999")
    _set_oldest_served(file, "9998")
    for attempt in (lambda: Store.open(url(file)), lambda: _upgrade(file)):
        with pytest.raises(ConflictError) as refusal:
            attempt()
        assert "9999" in refusal.value.message
        assert "serves versions from schema 9998 on" in refusal.value.message
        assert HEAD in refusal.value.message
    assert stated_revision(file) == "9999"


def _upgrade(file: Path, *, contract: bool = False) -> tuple[str | None, str]:
    opened = open_database(url(file), prepare=False)
    try:
        return opened.upgrade(contract=contract)
    finally:
        opened.engine.dispose()


@pytest.mark.parametrize("only_adds", [True, False])
def test_opening_applies_only_steps_that_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_adds: bool
) -> None:
    file = tmp_path / "lab.db"
    Store.open(url(file)).close()
    _add_a_migration(tmp_path, monkeypatch, only_adds)
    if only_adds:
        Store.open(url(file)).close()
    else:
        with pytest.raises(ConflictError, match=rf"{HEAD}.*9000.*judge-gym db contract"):
            Store.open(url(file))
        assert stated_revision(file) == HEAD
        assert _upgrade(file) == (HEAD, HEAD)
        assert _upgrade(file, contract=True) == (HEAD, "9000")
    assert stated_revision(file) == "9000"
    Store.open(url(file)).close()


@pytest.mark.slow
@pytest.mark.parametrize("statement", [1, 2, 3])
def test_a_database_whose_upgrade_was_killed_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: int
) -> None:
    file = tmp_path / "lab.db"
    Store.open(url(file)).close()
    before = contents(file)
    later = {"folder": tmp_path / "killed", "migrations": [_next(only_adds=True)]}
    assert open_store_until(url(file), statement, later) == -signal.SIGKILL
    assert contents(file) == before
    _add_a_migration(tmp_path, monkeypatch, only_adds=True)
    Store.open(url(file)).close()
    assert stated_revision(file) == "9000"


def _add_a_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_adds: bool) -> None:
    """judge-gym as its next version would be, with one more migration beside the real ones."""
    for name, value in later_version(tmp_path / "versions", [_next(only_adds)]).items():
        monkeypatch.setattr(database, name, value)


def _next(only_adds: bool) -> str:
    return (
        f'revision = "9000"\ndown_revision = "{HEAD}"\nonly_adds = {only_adds}\n'
        "from alembic import op\nimport sqlalchemy as sa\n"
        'def upgrade():\n    op.create_table("later", sa.Column("id", sa.Integer))\n'
        '    op.execute("INSERT INTO later VALUES (1)")\n'
    )


@pytest.mark.slow
@pytest.mark.parametrize("statement", [1, 2, 9, 25])
def test_a_database_whose_making_was_killed_can_be_opened(tmp_path: Path, statement: int) -> None:
    file = tmp_path / "lab.db"
    assert open_store_until(url(file), statement) == -signal.SIGKILL
    opened = Store.open(url(file))
    assert set(tables.metadata.tables) <= set(sa.inspect(opened.database.engine).get_table_names())
    opened.close()
    assert stated_revision(file) == HEAD


@pytest.mark.slow
def test_several_processes_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    file = tmp_path / "lab.db"
    assert open_stores_at_once(url(file), 4) == [0] * 4
    assert stated_revision(file) == HEAD


# --- other databases -----------------------------------------------------------------------------


def test_the_baseline_is_counted_up_with_the_schema() -> None:
    """Before the first release nothing is migrated, so every schema needs a number of its own."""
    statements = [
        str(CreateTable(table).compile(dialect=sqlite.dialect()))
        for table in tables.metadata.sorted_tables
    ]
    assert (HEAD, content_hash("\n".join(statements))[:8]) == ("0027", "93ded685"), (
        "rename the baseline to the next number, and change HEAD, NEEDED, OLDEST and this line"
    )


@pytest.mark.parametrize("mark", ["CREATE TABLE customers (id int)", "foreign migrations"])
def test_the_database_of_another_application_is_refused_and_left_alone(
    tmp_path: Path, mark: str
) -> None:
    file = tmp_path / "lab.db"
    with closing(sqlite3.connect(file)) as connection:
        if mark.startswith("CREATE"):
            connection.execute(mark)
        else:
            connection.execute("CREATE TABLE alembic_version (version_num text)")
            connection.execute("INSERT INTO alembic_version VALUES ('a1b2c3d4e5f6')")
        connection.commit()
    before = contents(file)
    for attempt in (lambda: Store.open(url(file)), lambda: _upgrade(file)):
        with pytest.raises(ConflictError, match="belongs to another application"):
            attempt()
    assert contents(file) == before


@pytest.mark.parametrize("attempt", ["open", "upgrade", "status", "command"])
@pytest.mark.parametrize("revision", ["0008", "0024"])
def test_a_lab_of_an_unreleased_version_is_refused_in_one_message_and_left_alone(
    tmp_path: Path, attempt: str, revision: str, call: Call
) -> None:
    file = tmp_path / "lab.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL);"
            f"INSERT INTO alembic_version VALUES ('{revision}');"
            "CREATE TABLE experiments (digest VARCHAR PRIMARY KEY, design JSON NOT NULL);"
            "INSERT INTO experiments VALUES ('d', '{\"judge.model\": \"sim:strict\"}');"
        )
    before = contents(file)
    message = rf"lab\.db is at schema {revision}, from before the first release"
    if attempt == "command":
        refused = call("--db", url(file), "status")
        assert refused.code == 2 and len(refused.err.splitlines()) == 1
        assert re.search(message, refused.err)
    else:
        with pytest.raises(ConflictError, match=message):
            match attempt:
                case "open":
                    Store.open(url(file))
                case "upgrade":
                    _upgrade(file)
                case _:
                    open_database(url(file), prepare=False).pending()
    assert contents(file) == before


def test_nobody_but_the_owner_can_read_the_files_of_a_lab(tmp_path: Path) -> None:
    with Lab.open(url(tmp_path / "lab.db")) as lab:
        RunQueue(lab.store.database).close()
    files = [file for file in tmp_path.iterdir() if file.suffix == ".db"]
    assert {file.name for file in files} == {"lab.db", "lab.dbos.db"}
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 2


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("attempt", ["open", "upgrade"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, attempt: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(b"Dear diary, " * 400)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        Store.open(url(file)) if attempt == "open" else _upgrade(file)
    assert file.read_bytes() == b"Dear diary, " * 400


def test_a_damaged_queue_is_named_and_not_the_lab(tmp_path: Path) -> None:
    with Lab.open(url(tmp_path / "lab.db")) as lab:
        (tmp_path / "lab.dbos.db").write_bytes(b"Dear diary, " * 400)
        with pytest.raises(StoreError, match=r"lab\.dbos\.db cannot be used.*move it away"):
            RunQueue(lab.store.database)


def test_a_folder_that_is_a_file_and_a_file_that_is_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "lab.db", tmp_path / "file" / "in" / "lab.db", tmp_path):
        with pytest.raises(StoreError, match=str(tmp_path)):
            Store.open(url(place))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("postgresql://ann:hunter2@db.example/lab", "postgresql"),
        ("postgresql+psycopg://ann:hunter2@db.example/lab", "postgresql"),
        ("mysql://ann:hunter2@db.example/lab", "mysql"),
        ("sqlite://ann:hunter2@db.example/lab.db", "sqlite"),
        ("sqlite+nosuchdriver://ann:hunter2@/lab.db", "sqlite"),
        ("ann:hunter2 is my password", "sqlite:///"),
        ("sqlite://", "sqlite:///FILE"),
        ("sqlite:///:memory:", "sqlite:///FILE"),
    ],
)
def test_urls_that_cannot_be_served_are_refused_without_the_password(
    given: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError) as refusal:
        Store.open(given)
    assert says in refusal.value.message
    assert "hunter2" not in refusal.value.message
    assert "\n" not in refusal.value.message


def powerless() -> None:
    """In a child of root: permissions of files hold for it as for anybody else."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")


OPEN = """
import sys
from judge_gym.errors import StoreError
from judge_gym.store import Store
for place in sys.argv[1:]:
    try:
        Store.open(place)
    except StoreError as fault:
        print(fault.message)
"""


def test_a_read_only_folder_is_refused_and_says_which(tmp_path: Path) -> None:
    empty, used = tmp_path / "empty", tmp_path / "used"
    places = [folder / name for folder in (empty, used) for name in ("lab.db", "new/lab.db")]
    for folder in (empty, used):
        folder.mkdir()
    Store.open(url(used / "lab.db")).close()
    (used / "lab.db").chmod(0o444)
    before = [[*folder.iterdir()] for folder in (empty, used)]
    for folder in (empty, used):
        folder.chmod(0o555)
    try:
        tried = subprocess.run(
            [sys.executable, "-c", OPEN, *map(url, places)],
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=powerless,
        )
    finally:
        for folder in (empty, used):
            folder.chmod(0o755)
    said = tried.stdout.splitlines()
    assert len(said) == 4
    assert all(str(place.parent) in words for place, words in zip(places, said, strict=True))
    assert [[*folder.iterdir()] for folder in (empty, used)] == before
