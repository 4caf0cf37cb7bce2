"""A database in use is changed in steps, none of which loses a row or stops whoever works on it."""

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import postgres
from judge_gym.axes import V1_DEFAULTS
from judge_gym.errors import ConflictError, DesignError
from judge_gym.lab import Lab
from judge_gym.store import tables
from judge_gym.store.database import HEAD, NEEDED, Database, open_database
from judge_gym.store.deployment import DATA_MIGRATIONS, Deployment
from stores import create_old_schema

PROBES = 57
LOOSE = "0008"
NULLS = "SELECT count(*) FROM probes WHERE run_id IS NULL"


@pytest.fixture(params=["sqlite", "postgres"])
def loose(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database as an older version left it: probes that do not name their run."""
    on_file = request.param == "sqlite"
    opened = open_database(
        f"sqlite:///{tmp_path / 'lab.db'}" if on_file else postgres.empty_url(), prepare=False
    )
    with opened.begin() as connection:
        create_old_schema(connection, LOOSE)
    plain = sa.create_engine(opened.url)  # on a file it checks no foreign key
    with plain.begin() as connection:
        if not on_file:
            connection.execute(sa.text("SET session_replication_role = replica"))
        # Only these tables matter here, so what their rows belong to is left out.
        call = {c.name: 1 if isinstance(c.type, sa.Integer) else "x" for c in tables.calls.c}
        connection.execute(tables.calls.insert().values(call))
        for number in range(1, PROBES + 1):
            connection.execute(
                sa.text(
                    "INSERT INTO samples (id, run_id, rubric_id, evidence_id, replicate, flipped, "
                    "is_swap, status, stages, display, call_id) VALUES (:id, :run, 1, 1, :id, :no, "
                    ":no, 'scored', '1', 'A=1', 1)"
                ),
                {"id": number, "run": 1 + number % 3, "no": False},
            )
            connection.execute(
                sa.text(
                    "INSERT INTO probes (id, sample_id, status, call_id, run_id) "
                    "VALUES (:id, :id, 'scored', 1, :run)"
                ),
                {"id": number, "run": 1 + number % 3 if number % 5 == 0 else None},
            )
    plain.dispose()
    yield opened
    opened.engine.dispose()


def count(database: Database, query: str) -> int:
    with database.read() as connection:
        return int(connection.execute(sa.text(query)).scalar_one())


def rightly_filled(database: Database) -> bool:
    wrong = "SELECT count(*) FROM probes WHERE run_id IS NULL OR run_id != 1 + id % 3"
    return count(database, wrong) == 0 and count(database, "SELECT count(*) FROM probes") == PROBES


# --- expand, migrate, contract -------------------------------------------------------------------


def test_a_version_that_needs_a_tightened_schema_names_the_commands(loose: Database) -> None:
    with pytest.raises(ConflictError, match="db migrate' and 'judge-gym db contract"):
        loose.prepare()
    assert loose.revision() == LOOSE


def test_a_contract_is_refused_until_its_audit_finds_nothing(loose: Database) -> None:
    left = count(loose, NULLS)
    with pytest.raises(ConflictError, match=rf"0009 does not fit {left} rows.*db migrate"):
        loose.upgrade(contract=True)
    assert loose.revision() == LOOSE
    assert Deployment(loose).migrate(size=10) == left
    assert loose.upgrade(contract=True) == (LOOSE, HEAD)
    assert rightly_filled(loose)
    [column] = [c for c in sa.inspect(loose.engine).get_columns("probes") if c["name"] == "run_id"]
    assert not column["nullable"]


@pytest.mark.parametrize("size", [1, 7, PROBES, 1000])
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
        Deployment(loose).migrate(size=size, watch=stop_at_the_second)
    except Interrupted:
        assert seen == [size, 2 * size] and count(loose, NULLS) == left - 2 * size
    Deployment(loose).migrate(size=size)
    assert rightly_filled(loose)
    [stand] = Deployment(loose).status()["data"]
    assert (stand["status"], stand["changed"], stand["left"]) == ("finished", left, 0)
    assert Deployment(loose).migrate(size=size) == 0, "a second time is nothing"


def test_rows_of_an_old_process_are_migrated_later(loose: Database) -> None:
    Deployment(loose).migrate()
    with loose.begin() as connection:
        connection.execute(sa.text("UPDATE probes SET run_id = NULL WHERE id IN (3, 40)"))
    assert Deployment(loose).status()["data"][0]["left"] == 2
    assert Deployment(loose).migrate(size=1) == 2
    assert rightly_filled(loose)


def test_concurrent_migrations_take_turns(loose: Database) -> None:
    left = count(loose, NULLS)
    changed: list[int] = []
    threads = [
        threading.Thread(target=lambda: changed.append(Deployment(loose).migrate(size=3)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(changed) == left and rightly_filled(loose)


def test_status_shows_pending_steps_and_migrations(loose: Database) -> None:
    found = Deployment(loose).status()
    assert (found["revision"], found["newest"], found["profile"]) == (LOOSE, HEAD, "dev")
    left = count(loose, NULLS)
    assert found["pending"] == [
        {"revision": "0009", "phase": "contract", "misfits": left},
        *(
            {"revision": f"{number:04}", "phase": "expand", "misfits": 0}
            for number in range(10, int(HEAD) + 1)
        ),
    ]
    [data] = found["data"]
    assert (data["name"], data["status"], data["left"]) == (
        DATA_MIGRATIONS[0].name,
        "pending",
        left,
    )


@pytest.mark.parametrize("on_file", [True, False])
def test_upgrading_writes_out_the_knobs_of_stored_designs(tmp_path: Path, on_file: bool) -> None:
    place = f"sqlite:///{tmp_path / 'lab.db'}" if on_file else postgres.empty_url()
    opened = open_database(place, prepare=False)
    chosen = {"judge.model": "sim:strict", "rubric.scale": 5, "judge.temperature": 0.5}
    row = {"digest": "d", "task_type": "ecc", "concept": "c", "country": "", "seed": 1}
    with opened.begin() as connection:
        create_old_schema(connection, "0009")
        pool = {"hash": "h", "key": "k", "loaded": datetime.now(UTC)}
        connection.execute(tables.pools.insert().values(id=1, **pool))
        stored = tables.experiments.insert().values(pool_id=1, design=chosen, **row)
        connection.execute(stored)
    opened.prepare() if on_file else opened.upgrade()
    assert opened.revision() == HEAD
    with opened.read() as connection:
        [design] = connection.scalars(sa.select(tables.experiments.c.design))
    assert design == {**V1_DEFAULTS, **chosen}
    opened.engine.dispose()


def test_opening_production_for_reading_upgrades_nothing(production: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "lab.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0009'")
        connection.commit()
    with pytest.raises(ConflictError, match=f"at schema 0009, this version needs {NEEDED}"):
        open_database(production)
    opened = open_database(production, prepare=False)
    assert opened.revision() == "0009"
    opened.engine.dispose()


def test_opening_a_database_on_a_server_never_changes_its_schema() -> None:
    url = postgres.empty_url()
    opened = open_database(url, prepare=False)
    with opened.begin() as connection:
        create_old_schema(connection, "0009")
    with pytest.raises(ConflictError, match=r"at schema 0009.*'judge-gym db upgrade'"):
        Lab.open(url)
    assert opened.revision() == "0009"
    assert opened.upgrade() == ("0009", HEAD)
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
