"""A copy of a database pays for nothing until a user says so; a moved one is mostly recognised."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest

import postgres
from conftest import Call
from judge_gym.lab import Lab
from judge_gym.store import identity
from judge_gym.store.identity import CopiedDatabase, Place
from judge_gym.web import serve
from stores import contents
from suite_folders import known_by, write_suite

WriteStudy = Callable[..., Path]
IS_COPY = r"is a copy.*judge-gym db adopt"


def copied(url: str, folder: Path) -> str:
    """Copies a database as a restored dump, or a copied folder, would."""
    if url.startswith("sqlite"):
        folder.mkdir()
        for file in Path(url.removeprefix("sqlite:///")).parent.glob("lab.*"):
            if file.is_file():
                shutil.copy(file, folder)
        return f"sqlite:///{folder / 'lab.db'}"
    base, _, options = url.partition("?")
    server, _, name = base.rpartition("/")
    copy = f"{name}_{folder.name}"
    with psycopg.connect(postgres.server(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {copy} TEMPLATE {name}".encode())
    return f"{server}/{copy}?{options}" if options else f"{server}/{copy}"


def backed_up(url: str, file: Path) -> str:
    """Copies a database as SQLite's own backup does: without the file of the queue."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as original:
        with closing(sqlite3.connect(file)) as copy:
            original.backup(copy)
    return f"sqlite:///{file}"


def statuses(lab: Lab) -> set[str]:
    return {row["status"] for row in lab.list_experiments(study="small")}


def refuses_to_pay(url: str, study: Path) -> bool:
    """Whether the lab can be read, and pays neither for a worker nor for a command."""
    with Lab.open(url) as lab:
        assert lab.engine.idle(), "the server of a lab starts no worker for it"
        for refused in (
            lambda: lab.engine.work(until_idle=True),
            lambda: lab.runs.start(study),
            lambda: lab.runs.run(study),
        ):
            with pytest.raises(CopiedDatabase, match=IS_COPY):
                refused()
        assert {run["message"][:26] for run in lab.runs.status()["runs"]} == {
            "this database is a copy, o"
        }
        return lab.reports.usage("small") == []


@pytest.mark.parametrize("on", postgres.EACH_DATABASE)
def test_a_copy_waits_until_its_queued_orders_are_confirmed_or_cancelled(
    on: str, write_study: WriteStudy, tmp_path: Path, call: Call
) -> None:
    url = postgres.fresh_url() if on == "postgres" else f"sqlite:///{tmp_path / 'lab.db'}"
    study = write_study()
    with Lab.open(url) as lab:
        lab.runs.start(study)
    first, second = copied(url, tmp_path / "first"), copied(url, tmp_path / "second")
    assert refuses_to_pay(first, study)
    assert "2 queued runs will be continued" in call("--db", first, "db", "adopt").out
    with Lab.open(first) as lab:
        lab.engine.work(until_idle=True)
        assert statuses(lab) == {"complete"}
    assert "2 queued runs cancelled" in call("--db", second, "db", "adopt", "--cancel").out
    with Lab.open(second) as lab:
        lab.engine.work(until_idle=True)
        assert statuses(lab) == {"cancelled"} and lab.reports.usage("small") == []
    with Lab.open(url) as lab:
        lab.engine.work(until_idle=True)
        assert statuses(lab) == {"complete"}, "the original needs no confirmation"
        assert not lab.store.identity.is_copy()
    third = copied(url, tmp_path / "third")
    with Lab.open(third) as lab, pytest.raises(CopiedDatabase):
        lab.runs.run(write_study(samples=3))
    assert "0 queued runs" in call("--db", third, "db", "adopt").out
    for _ in range(2):  # the word is remembered
        with Lab.open(third) as lab:
            assert lab.runs.run(write_study(samples=3)).status == "complete"


def test_a_backup_of_a_file_waits_and_so_does_one_that_replaced_its_original(
    write_study: WriteStudy, tmp_path: Path, call: Call
) -> None:
    url, study = f"sqlite:///{tmp_path / 'lab.db'}", write_study()
    with Lab.open(url) as lab:
        lab.runs.start(study)
    backup = backed_up(url, tmp_path / "backup.db")
    assert refuses_to_pay(backup, study)
    shown = call("--db", backup, "db", "status").out
    assert "is a copy, or was moved" in shown
    assert str(tmp_path / "backup.db") in shown and str(tmp_path / "lab.db") in shown
    os.replace(tmp_path / "backup.db", tmp_path / "lab.db")
    for left in ("lab.db-wal", "lab.db-shm"):
        (tmp_path / left).unlink(missing_ok=True)
    assert refuses_to_pay(url, study)
    assert "2 queued runs will be continued" in call("--db", url, "db", "adopt").out
    assert "is a copy" not in call("--db", url, "db", "status").out


def test_a_moved_file_and_one_that_is_reached_by_another_path_are_the_original(
    write_study: WriteStudy, tmp_path: Path
) -> None:
    url, study = f"sqlite:///{tmp_path / 'lab.db'}", write_study()
    with Lab.open(url) as lab:
        lab.runs.start(study)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "lab.db").rename(tmp_path / "elsewhere" / "renamed.db")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in ("elsewhere/renamed.db", "link/renamed.db"):
        with Lab.open(f"sqlite:///{tmp_path / path}") as lab:
            assert not lab.store.identity.is_copy()
            assert lab.runs.run(study).status == "complete"


@pytest.mark.slow
def test_a_copy_of_a_servers_files_waits_and_the_restarted_server_does_not(
    write_study: WriteStudy, call: Call
) -> None:
    study = write_study()
    with postgres.stoppable_server() as server:
        with Lab.open(server.url) as lab:
            lab.runs.start(study)
        with server.copied() as clone:
            assert refuses_to_pay(clone.url, study)
            assert clone.url.rpartition(":")[2].partition("/")[0] in (
                call("--db", clone.url, "db", "status").out
            ), "it says where the copy is"
            with Lab.open(server.url) as lab:  # it was restarted
                assert not lab.store.identity.is_copy()
            # Another name for the running server, which is then remembered.
            alias = server.url.replace("127.0.0.1", "localhost")
            with Lab.open(server.url) as lab:
                lab.runs.start(study)
            with Lab.open(alias) as lab:
                lab.engine.work(until_idle=True)
                assert statuses(lab) == {"complete"}
            server.stop()
            server.start()
            with Lab.open(alias) as lab:
                assert not lab.store.identity.is_copy()
            assert "2 queued runs" in call("--db", clone.url, "db", "adopt").out
            with Lab.open(clone.url) as lab:
                lab.engine.work(until_idle=True)
                assert statuses(lab) == {"complete"}


@pytest.mark.slow
def test_suites_analyses_searches_and_requests_wait_in_a_copy(
    write_study: WriteStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = write_suite(tmp_path / "tiny", 1)
    writer = f"sim:{known_by(suite, 'coder-strong', logic=1, lint=0)}"
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    with Lab.open(url) as lab:
        lab.runs.run(write_study())
        report = lab.suites.run(suite, writer)
    monkeypatch.setenv("FIRECRAWL_API_KEY", "no such key")
    with Lab.open(copied(url, tmp_path / "copy")) as lab:
        before = contents(tmp_path / "copy" / "lab.db")
        for refused in (
            lambda: lab.suites.run(suite, writer, series="2"),
            lambda: lab.failures.start(str(report.run.id)),
            lambda: lab.evidence.collect(
                "2026-01-01", "2026-01-31", "USA", origin="firecrawl", query="decree"
            ),
        ):
            with pytest.raises(CopiedDatabase, match=IS_COPY):
                refused()
        assert lab.suites.estimate(suite, [writer])["runs"], "planning is free"
        assert lab.runs.plan("small")
        with serve(lab, port=0) as address:
            token = {"Authorization": f"Bearer {address.token}"}
            with httpx.Client(base_url=address.url, headers=token, timeout=60) as client:
                assert contents(tmp_path / "copy" / "lab.db") == before, "nothing was stored"
                started = client.post("/api/runs", json={"target": "small", "samples": 3})
                assert started.status_code == 409
                assert started.json()["error"]["message"] == identity.COPY
                assert client.get("/api/report?target=small").status_code == 200


HERE = Place("server 7, database 5", "started 1", "db:5432")


@pytest.mark.parametrize(
    ("there", "same"),
    [
        (HERE, True),
        (HERE._replace(instance="started 2"), True),
        (HERE._replace(address="localhost:5432"), True),
        (HERE._replace(instance="started 2", address="localhost:5433"), False),
        (HERE._replace(data="server 7, database 6"), False),
    ],
)
def test_a_place_is_the_same_by_its_data_and_its_instance_or_address(
    there: Place, same: bool
) -> None:
    assert HERE.equals(there) is same
