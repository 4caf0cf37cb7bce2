"""A copy of a database pays for no order that was given in the original, until a user says so."""

import shutil
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

import postgres
from conftest import Call
from judge_gym.lab import Lab
from judge_gym.store.deployment import CopiedDatabase

WriteStudy = Callable[..., Path]


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


def statuses(lab: Lab) -> set[str]:
    return {row["status"] for row in lab.list_experiments(study="small")}


@pytest.mark.parametrize("on", ["sqlite", "postgres"])
def test_a_copy_waits_until_its_queued_orders_are_confirmed_or_cancelled(
    on: str, write_study: WriteStudy, tmp_path: Path, call: Call
) -> None:
    url = postgres.fresh_url() if on == "postgres" else f"sqlite:///{tmp_path / 'lab.db'}"
    study = write_study()
    with Lab.open(url) as lab:
        lab.runs.start(study)
    first, second = copied(url, tmp_path / "first"), copied(url, tmp_path / "second")
    with Lab.open(first) as lab:
        assert lab.engine.idle(), "the server of a lab starts no worker for it"
        for refused in (
            lambda: lab.engine.work(until_idle=True),
            lambda: lab.runs.start(study),
            lambda: lab.runs.run(study),
        ):
            with pytest.raises(CopiedDatabase, match=r"is a copy.*judge-gym db adopt"):
                refused()
        assert {run["message"][:26] for run in lab.runs.status()["runs"]} == {
            "this database is a copy, a"
        }
        assert lab.reports.usage("small") == []
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
    with Lab.open(copied(url, tmp_path / "third")) as lab:
        assert lab.store.identity.is_copy()
        assert lab.runs.run(write_study(samples=3)).status == "complete", "nothing was queued"
