"""A database in use is changed in steps, none of which loses a row or stops whoever works on it."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import postgres
from judge_gym.errors import ConflictError, DesignError
from judge_gym.lab import Lab
from judge_gym.store import database, deployment, tables
from judge_gym.store.database import HEAD, Database, open_database
from judge_gym.store.deployment import DataMigration, Deployment
from stores import later_version

POOLS, LOOSE = 57, "9000"
EXPAND = f"""
import sqlalchemy as sa
from alembic import op
revision, down_revision, only_adds = "9000", "{HEAD}", True
def upgrade():
    op.add_column("pools", sa.Column("size", sa.Integer, nullable=True))
"""
CONTRACT = """
import sqlalchemy as sa
from alembic import op
revision, down_revision, only_adds, serves = "9001", "9000", False, "9000"
audit = "SELECT count(*) FROM pools WHERE size IS NULL"
def upgrade():
    with op.batch_alter_table("pools") as table:
        table.alter_column("size", existing_type=sa.Integer(), nullable=False)
"""
WIDER = sa.Table(
    "pools",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("size", sa.Integer),
)
SIZES = DataMigration(
    "pools-know-their-size",
    "fills in the size of pools that versions before 9000 wrote",
    WIDER,
    WIDER.c.size.is_(None),
    {"size": 1 + WIDER.c.id % 3},
)
NULLS = "SELECT count(*) FROM pools WHERE size IS NULL"


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version of judge-gym, whose pools know their size."""
    for name, value in later_version(tmp_path / "versions", [EXPAND, CONTRACT]).items():
        monkeypatch.setattr(database, name, value)
        if name != "alembic_config":
            monkeypatch.setattr(deployment, name, value)


@pytest.fixture(params=postgres.EACH_DATABASE)
def loose(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database that was expanded while it held pools of unknown size."""
    on_file = request.param == "sqlite"
    opened = open_database(f"sqlite:///{tmp_path / 'lab.db'}" if on_file else postgres.fresh_url())
    _add_pools(opened, range(1, POOLS + 1))
    request.getfixturevalue("later")
    assert opened.upgrade() == (HEAD, LOOSE)
    with opened.begin() as connection:
        connection.execute(sa.text("UPDATE pools SET size = 1 + id % 3 WHERE id % 5 = 0"))
    yield opened
    opened.engine.dispose()


def _add_pools(opened: Database, ids: Iterable[int]) -> None:
    """As the version before does, which knows no size."""
    rows = [{"id": id, "hash": f"{id}", "key": f"{id}", "loaded": datetime.now(UTC)} for id in ids]
    with opened.begin() as connection:
        connection.execute(tables.pools.insert(), rows)


def count(database: Database, query: str) -> int:
    with database.read() as connection:
        return int(connection.execute(sa.text(query)).scalar_one())


def rightly_filled(database: Database) -> bool:
    wrong = "SELECT count(*) FROM pools WHERE size IS NULL OR size != 1 + id % 3"
    return count(database, wrong) == 0 and count(database, "SELECT count(*) FROM pools") >= POOLS


# --- expand, migrate, contract -------------------------------------------------------------------


def test_a_version_that_needs_a_tightened_schema_names_the_commands(loose: Database) -> None:
    with pytest.raises(ConflictError, match="db migrate' and 'judge-gym db contract"):
        loose.prepare()
    assert loose.revision() == LOOSE


def test_a_contract_is_refused_until_its_audit_finds_nothing(loose: Database) -> None:
    left = count(loose, NULLS)
    with pytest.raises(ConflictError, match=rf"9001 does not fit {left} rows.*db migrate"):
        loose.upgrade(contract=True)
    assert loose.revision() == LOOSE
    assert Deployment(loose, (SIZES,)).migrate(size=10) == left
    assert loose.upgrade(contract=True) == (LOOSE, "9001")
    assert rightly_filled(loose)
    [column] = [c for c in sa.inspect(loose.engine).get_columns("pools") if c["name"] == "size"]
    assert not column["nullable"]


@pytest.mark.parametrize("size", [1, 7, POOLS, 1000])
def test_an_interrupted_migration_continues_where_it_stopped(loose: Database, size: int) -> None:
    class Interrupted(Exception):
        pass

    seen: list[int] = []

    def stop_at_the_second(stand: Mapping[str, Any]) -> None:
        seen.append(stand["changed"])
        if len(seen) == 2:
            raise Interrupted

    left = count(loose, NULLS)
    try:
        Deployment(loose, (SIZES,)).migrate(size=size, watch=stop_at_the_second)
    except Interrupted:
        assert seen == [size, 2 * size] and count(loose, NULLS) == left - 2 * size
    Deployment(loose, (SIZES,)).migrate(size=size)
    assert rightly_filled(loose)
    [stand] = Deployment(loose, (SIZES,)).status()["data"]
    assert (stand["status"], stand["changed"], stand["left"]) == ("finished", left, 0)
    assert Deployment(loose, (SIZES,)).migrate(size=size) == 0, "a second time is nothing"


def test_rows_of_an_old_process_are_migrated_later(loose: Database) -> None:
    Deployment(loose, (SIZES,)).migrate()
    _add_pools(loose, [80, 90])
    assert Deployment(loose, (SIZES,)).status()["data"][0]["left"] == 2
    assert Deployment(loose, (SIZES,)).migrate(size=1) == 2
    assert rightly_filled(loose)


def test_concurrent_migrations_take_turns(loose: Database) -> None:
    left = count(loose, NULLS)
    changed: list[int] = []
    threads = [
        threading.Thread(target=lambda: changed.append(Deployment(loose, (SIZES,)).migrate(size=3)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(changed) == left and rightly_filled(loose)


def test_status_shows_pending_steps_and_migrations(loose: Database) -> None:
    found = Deployment(loose, (SIZES,)).status()
    assert (found["revision"], found["newest"], found["profile"]) == (LOOSE, "9001", "dev")
    left = count(loose, NULLS)
    assert found["pending"] == [{"revision": "9001", "phase": "contract", "misfits": left}]
    [data] = found["data"]
    assert (data["name"], data["status"], data["left"]) == (SIZES.name, "pending", left)


def test_opening_production_for_reading_upgrades_nothing(
    production: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("later")
    with pytest.raises(ConflictError, match=f"at schema {HEAD}, this version needs 9001"):
        open_database(production)
    opened = open_database(production, prepare=False)
    assert opened.revision() == HEAD
    opened.engine.dispose()


@pytest.mark.slow
def test_opening_a_database_on_a_server_never_changes_its_schema(
    request: pytest.FixtureRequest,
) -> None:
    url = postgres.fresh_url()
    open_database(url).engine.dispose()
    request.getfixturevalue("later")
    with pytest.raises(ConflictError, match=rf"at schema {HEAD}.*'judge-gym db upgrade'"):
        Lab.open(url)
    opened = open_database(url, prepare=False)
    assert opened.revision() == HEAD
    assert opened.upgrade(contract=True) == (HEAD, "9001")
    opened.engine.dispose()
    with Lab.open(url) as lab:
        assert lab.runs.status()["runs"] == []


def test_an_empty_database_gets_the_tightest_schema_at_once(tmp_path: Path) -> None:
    opened = open_database(f"sqlite:///{tmp_path / 'lab.db'}")
    assert opened.revision() == HEAD
    assert Deployment(opened).status()["pending"] == []
    opened.engine.dispose()


# --- profiles ------------------------------------------------------------------------------------


@pytest.fixture
def production(tmp_path: Path) -> str:
    """A lab that was marked."""
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    opened = open_database(url)
    Deployment(opened).mark("prod")
    opened.engine.dispose()
    return url


def test_production_refuses_writes_of_a_dev_session(
    production: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lab.open(production) as lab:
        with pytest.raises(ConflictError, match=r"is production.*nothing was written.*prod"):
            lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
        assert lab.evidence.list_windows() == [], "reading is free"
    monkeypatch.setenv("JUDGE_GYM_PROFILE", "prod")
    with Lab.open(production) as lab:
        lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
        assert len(lab.evidence.list_windows()) == 1


def test_only_a_production_session_can_change_the_mark(
    production: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConflictError, match="is production"):
        Deployment(open_database(production)).mark("dev")
    monkeypatch.setenv("JUDGE_GYM_PROFILE", "prod")
    Deployment(open_database(production)).mark("dev")
    monkeypatch.delenv("JUDGE_GYM_PROFILE")
    with Lab.open(production) as lab:
        lab.create_window("2026-01-01", "2026-01-31", "Valdoria")


def test_an_unknown_profile_is_named_with_the_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_database(f"sqlite:///{tmp_path / 'lab.db'}")
    with pytest.raises(DesignError, match=r"'staging'.*dev.*prod"):
        Deployment(opened).mark("staging")
    monkeypatch.setenv("JUDGE_GYM_PROFILE", "production")
    with pytest.raises(DesignError, match=r"'production'.*dev.*prod"):
        open_database(f"sqlite:///{tmp_path / 'lab.db'}")


def test_reading_over_the_network_needs_no_profile(
    production: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_GYM_PROFILE", "prod")
    with Lab.open(production) as lab:
        _, secret = lab.store.tokens.create("ada", "read")
    monkeypatch.delenv("JUDGE_GYM_PROFILE")
    with Lab.open(production) as lab:
        found = lab.store.tokens.find(secret)
        assert found is not None and found.name == "ada"
        assert lab.store.tokens.list()[0].used is None, "a use that cannot be noted"
