"""Health over HTTP, and a server on a production database without its profile."""

import httpx
import psycopg
import pytest

import postgres
from judge_gym.lab import Lab
from judge_gym.store.deployment import Deployment
from judge_gym.web import serve


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
