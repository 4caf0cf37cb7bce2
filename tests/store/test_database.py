"""Opening a database: its schema, its refusals, and what survives a crash at the worst moment."""

import ctypes
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import postgres
from forked import open_store_until, open_stores_at_once
from judge_gym.engine.queue import RunQueue
from judge_gym.errors import ConflictError, NotFoundError, StoreError
from judge_gym.lab import Lab
from judge_gym.store import Store, database, tables
from judge_gym.store.database import HEAD, alembic_config, open_database
from stores import contents, create_old_schema, old_lab


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


def structure(engine: sa.Engine) -> dict[str, Any]:
    """All that makes a schema, in comparable form."""
    look = sa.inspect(engine)
    return {
        table: {
            "columns": {
                c["name"]: (str(c["type"]), c["nullable"]) for c in look.get_columns(table)
            },
            "key": look.get_pk_constraint(table)["constrained_columns"],
            "foreign": {
                (*f["constrained_columns"], f["referred_table"], *f["options"].items())
                for f in look.get_foreign_keys(table)
            },
            "unique": {tuple(u["column_names"]) for u in look.get_unique_constraints(table)},
            "indexes": {
                (i["name"], *i["column_names"], i["unique"], *_options(i))
                for i in look.get_indexes(table)
            },
        }
        for table in look.get_table_names()
        if table != "alembic_version"
    }


def _options(index: Any) -> list[str]:
    return [f"{name}={value}" for name, value in index.get("dialect_options", {}).items()]


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
        if not script.module.only_adds and script.revision > "0023":
            serves = getattr(script.module, "serves", "")
            assert "0023" <= serves <= script.revision, "which versions work after a contract"
        assert script.revision == script.revision.zfill(4), "revisions are compared as strings"


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
    assert opened.oldest_served() == "0023", "later steps only add"
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


def _add_a_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_adds: bool) -> None:
    """judge-gym as its next version would be, with one more migration beside the real ones."""
    versions = tmp_path / "versions"
    versions.mkdir()
    (versions / "9000_next.py").write_text(
        f'revision = "9000"\ndown_revision = "{HEAD}"\nonly_adds = {only_adds}\n'
        "from alembic import op\nimport sqlalchemy as sa\n"
        'def upgrade():\n    op.create_table("later", sa.Column("id", sa.Integer))\n'
    )

    def with_one_more() -> Any:
        config = alembic_config()
        shipped = Path(config.get_main_option("script_location")) / "versions"
        config.set_main_option("path_separator", "os")
        config.set_main_option("version_locations", os.pathsep.join(map(str, (shipped, versions))))
        return config

    monkeypatch.setattr(database, "alembic_config", with_one_more)
    monkeypatch.setattr(database, "HEAD", "9000")
    monkeypatch.setattr(database, "NEEDED", "9000")


@pytest.mark.parametrize("statement", [1, 2, 9, 25])
def test_a_database_whose_making_was_killed_can_be_opened(tmp_path: Path, statement: int) -> None:
    file = tmp_path / "lab.db"
    assert open_store_until(url(file), statement) == -signal.SIGKILL
    opened = Store.open(url(file))
    assert set(tables.metadata.tables) <= set(sa.inspect(opened.database.engine).get_table_names())
    opened.close()
    assert stated_revision(file) == HEAD


def test_several_processes_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    file = tmp_path / "lab.db"
    assert open_stores_at_once(url(file), 4) == [0] * 4
    assert stated_revision(file) == HEAD


# --- from an old schema --------------------------------------------------------------------------


@pytest.mark.parametrize("on_file", [True, False])
def test_an_upgraded_old_schema_equals_a_new_one(tmp_path: Path, on_file: bool) -> None:
    old = open_database(
        url(tmp_path / "old.db") if on_file else postgres.empty_url(), prepare=False
    )
    with old.begin() as connection:
        create_old_schema(connection, "0008")
    assert old.upgrade(contract=True) == ("0008", HEAD)
    new = open_database(url(tmp_path / "new.db") if on_file else postgres.fresh_url())
    assert structure(old.engine) == structure(new.engine)
    with old.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []
    for opened in (old, new):
        opened.engine.dispose()


RENAMED = {
    "events": {"said": "message"},
    "collections": {"fault": "error"},
    "suite_runs": {"condition": "settings", "experiment": "condition"},
}


def columns(file: Path) -> dict[str, list[str]]:
    engine = sa.create_engine(url(file))
    look = sa.inspect(engine)
    found = {
        table: [column["name"] for column in look.get_columns(table)]
        for table in look.get_table_names()
    }
    engine.dispose()
    return found


def test_an_upgraded_lab_keeps_the_rows_of_every_table(tmp_path: Path) -> None:
    file = tmp_path / "lab.db"
    old_lab(file)
    before, shape = contents(file), columns(file)
    _upgrade(file, contract=True)
    now, wider = contents(file), columns(file)
    for table in set(shape) - {"alembic_version", "experiments"}:  # designs are completed
        names = [RENAMED.get(table, {}).get(name, name) for name in shape[table]]
        places = [wider[table].index(name) for name in names]
        kept = sorted((tuple(row[place] for place in places) for row in now[table]), key=repr)
        assert kept == before[table], table
    assert before["events"] and before["suite_runs"] and len(now["experiments"]) > 1


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


@pytest.mark.parametrize("attempt", ["open", "upgrade", "status"])
def test_a_schema_that_is_too_old_is_refused_in_words(tmp_path: Path, attempt: str) -> None:
    file = tmp_path / "lab.db"
    Store.open(url(file)).close()
    set_revision(file, "0007")
    with pytest.raises(ConflictError, match=r"lab\.db is at schema 0007.*upgrades from 0008"):
        match attempt:
            case "open":
                Store.open(url(file))
            case "upgrade":
                _upgrade(file)
            case _:
                open_database(url(file), prepare=False).pending()
    assert stated_revision(file) == "0007"


@pytest.mark.parametrize("statement", [1, 4, 30, 31])
def test_a_database_whose_upgrade_was_killed_can_be_opened(tmp_path: Path, statement: int) -> None:
    file = tmp_path / "lab.db"
    old_lab(file)
    before = contents(file)
    assert open_store_until(url(file), statement) == -signal.SIGKILL
    assert contents(file) == before
    Store.open(url(file)).close()
    assert stated_revision(file) == HEAD


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
