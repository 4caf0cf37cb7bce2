"""Who did something is recorded: the user of the machine, a token, a browser, an agent."""

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import agents
from conftest import Call
from judge_gym.lab import Lab
from judge_gym.mcp import over_http
from judge_gym.records.actors import current_actor, machine_user
from judge_gym.web import serve


def test_events_tell_commands_tokens_browsers_and_agents_apart(
    tmp_path: Path, write_study: Callable[..., Path], call: Call
) -> None:
    url, me, small = f"sqlite:///{tmp_path / 'lab.db'}", machine_user(), {"target": "small"}
    with Lab.open(url, folder=tmp_path) as lab:
        lab.runs.start(write_study(judges=["sim:strict"]))
        call("--db", url, "pause", "small")
        _, secret = lab.tokens.create("ada", "write")
        with (
            serve(lab, port=0, work=False, agents=over_http) as address,
            httpx.Client(base_url=address.url, timeout=60) as http,
        ):
            token = {"Authorization": f"Bearer {secret}"}

            def log() -> list[Any]:
                return list(http.get("/api/logs", headers=token).json()["items"])

            assert http.post("/api/runs/pause", json=small).status_code == 401
            http.post("/api/runs/resume", json=small, headers=token)
            assert http.get("/api/status", headers=token).json()["runs"][0]["actor"] == (
                "token ada over HTTP"
            )
            http.get(f"/?token={address.token}")  # logs the browser in
            csrf = {"X-CSRF-Token": http.get("/api/session").json()["csrf"]}
            http.post("/api/runs/pause", json=small, headers=csrf)
            shown = http.get("/studies/small/runs").text
            assert f"Paused by {me} in the browser" in shown
            events = http.get("/parts/study/log?study=small").text
            assert "started</span> queued for a worker by token ada over HTTP" in events
            with agents.over_http(address.url, secret) as agent:
                agent.call("runs_cancel", target="small")
            assert [(row["kind"], row["message"], row["actor"]) for row in log()] == [
                (
                    "cancelled",
                    "Cancelled by an agent over MCP (token ada)",
                    "an agent over MCP (token ada)",
                ),
                ("paused", f"Paused by {me} in the browser", f"{me} in the browser"),
                ("started", "queued for a worker", "token ada over HTTP"),
                ("paused", f"Paused by {me}", me),
                ("started", "queued for a worker", me),
            ]
            assert secret not in http.get("/api/logs", headers=token).text
        lab.runs.run(tmp_path / "study.yaml")
        ended = lab.runs.logs("small")[0]
        assert (ended["kind"], ended["actor"]) == ("ended", ""), "no person ended it"


def test_a_machine_that_does_not_know_its_user_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("uid not found: 4711")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert current_actor() == "the user of this machine"
