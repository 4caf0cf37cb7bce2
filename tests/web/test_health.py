"""Health over HTTP, and a server on a production database without its profile."""

from collections.abc import Callable
from pathlib import Path

import httpx
import psycopg
import pytest
import sqlalchemy as sa

import postgres
from judge_gym.engine.liveness import worker_lock
from judge_gym.lab import Lab
from judge_gym.store.deployment import Deployment
from judge_gym.web import serve

pytestmark = pytest.mark.slow


def test_health_is_503_while_the_database_is_away_and_names_no_server() -> None:
    url = postgres.fresh_url()
    with Lab.open(url) as lab, serve(lab, port=0, work=False) as address:
        health = f"{address.url}/api/health"
        assert httpx.get(health, timeout=60).json()["status"] == "ok"
        name = str(lab.store.database.url.database)
        with psycopg.connect(postgres.server(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        answer = httpx.get(health, timeout=60)
        assert answer.status_code == 503
        assert answer.json()["error"]["message"] == "the database does not answer"
        assert name not in answer.text


def test_a_server_without_the_profile_shows_production_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = postgres.fresh_url()
    monkeypatch.setenv("JUDGE_GYM_PROFILE", "prod")
    with Lab.open(url) as lab:
        Deployment(lab.store.database).mark("prod")
    monkeypatch.delenv("JUDGE_GYM_PROFILE")
    window = {"start_date": "2026-01-01", "end_date": "2026-01-31", "country": "Valdoria"}
    with Lab.open(url) as lab, serve(lab, port=0) as address:
        token = {"Authorization": f"Bearer {address.token}"}
        with httpx.Client(base_url=address.url, headers=token, timeout=60) as client:
            assert client.get("/api/windows").status_code == 200
            refused = client.post("/api/windows", json=window)
            assert refused.status_code == 409 and "is production" in refused.text


def ready(url: str) -> tuple[int, str]:
    """The status of readiness, and the worker or why the server is not ready."""
    answer = httpx.get(f"{url}/api/ready", timeout=60)
    body = answer.json()
    return answer.status_code, body["worker"] if answer.is_success else body["error"]["message"]


def test_a_server_is_ready_where_what_is_queued_is_executed(
    write_study: Callable[..., Path],
) -> None:
    url = postgres.fresh_url()
    with Lab.open(url) as lab, serve(lab, port=0, work=False) as address:
        assert ready(address.url) == (200, "not needed")
        lab.runs.start(write_study())
        status, reason = ready(address.url)
        assert status == 503 and "no worker is running" in reason
        with worker_lock(lab.store.database, 7):
            assert ready(address.url) == (200, "running")
        lab.workers.expect(lambda: True)
        assert ready(address.url) == (200, "starting")
        lab.engine.work(until_idle=True)
        assert ready(address.url) == (200, "not needed")
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(postgres.server(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name}".encode())
    with (
        Lab.open(url.replace(name, f"{name}_copy")) as lab,
        serve(lab, port=0, work=False) as address,
    ):
        status, reason = ready(address.url)
        assert status == 503 and "is a copy" in reason
        lab.workers.adopt()
        assert ready(address.url) == (200, "not needed")
        with lab.store.database.begin() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        assert ready(address.url) == (200, "not needed"), "a newer schema that serves this version"
        with lab.store.database.begin() as connection:
            connection.execute(sa.text("UPDATE compatibility SET oldest = '9999'"))
        status, reason = ready(address.url)
        assert status == 503 and "does not fit this version" in reason
        with psycopg.connect(postgres.server(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name}_copy WITH (FORCE)".encode())
        assert ready(address.url) == (503, "the database does not answer")
