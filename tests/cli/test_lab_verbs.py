"""The verbs that serve the lab and say who may use it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from conftest import Call, succeed
from judge_gym.client import Client


def test_a_token_is_created_listed_and_revoked(call: Call) -> None:
    made = succeed(call("token", "create", "ada", "--scope", "write", "--json")).json
    assert (made["name"], made["scope"]) == ("ada", "write")
    listed = succeed(call("token", "list"))
    assert "ada" in listed.out and made["token"] not in listed.out
    assert succeed(call("token", "revoke", "ada", "--json")).json == {"revoked": "ada"}
    [row] = succeed(call("token", "list", "--json")).json
    assert row["revoked"] and "hash" not in row


def test_a_token_may_read_unless_more_is_asked_for(call: Call) -> None:
    said = succeed(call("token", "create", "ada"))
    assert re.fullmatch(r"jg_[\w-]{43}\n", said.out), "the token alone, for a variable of a shell"
    assert "not shown again" in said.err
    assert succeed(call("token", "list", "--json")).json[0]["scope"] == "read"


def test_an_empty_list_of_tokens_says_how_to_create(call: Call) -> None:
    succeed(call("db", "upgrade"))
    assert "judge-gym token create" in succeed(call("token", "list")).out


@pytest.mark.parametrize(
    "words",
    [
        ("token", "create", "ada", "--scope", "admin"),
        ("token", "revoke", "nobody"),
        ("lab", "--host", "0.0.0.0"),
        ("lab", "--host", "no.such.host.invalid"),
    ],
)
def test_invalid_input_is_refused(call: Call, words: tuple[str, ...]) -> None:
    said = call(*words)
    assert said.code == 2
    assert said.err.startswith("judge-gym: ")
    assert "Traceback" not in said.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "end", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_lab_is_served_until_a_signal(tmp_path: Path, end: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "judge_gym", "lab", "--port", "0", "--no-work"],
        cwd=tmp_path,
        env={**os.environ, "JUDGE_GYM_DATABASE_URL": f"sqlite:///{tmp_path / 'lab.db'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    file = tmp_path / ".judge-gym" / "lab.token"
    assert "token" not in url and file.stat().st_mode & 0o777 == 0o600, "its output may be a log"
    address = f"{url}/?token={file.read_text().strip()}"
    with Client(address) as client:
        client.evidence.create_window("2026-01-01", "2026-01-31", "Valdoria")
        assert [row["country"] for row in client.evidence.list_windows()] == ["Valdoria"]
    with httpx.Client(follow_redirects=True, timeout=60) as browser:
        assert browser.get(address).status_code == 200, "as one opens it"
    process.send_signal(end)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (0, "")
    assert err == "note: the token is in .judge-gym/lab.token, since the output is no terminal\n"
