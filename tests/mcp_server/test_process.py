"""`judge-gym mcp` as a process: the protocol on standard output and nothing else, and its ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import agents
from conftest import Call

pytestmark = pytest.mark.slow

PATIENCE = 240
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
TEXTS = [
    {"title": "calm", "text": "The budget was adopted unanimously and published in full."},
    {"title": "harsh", "text": "Judges were dismissed by decree and a newspaper was banned."},
]


@contextmanager
def started(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """The command as a process; it is gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "judge_gym", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "JUDGE_GYM_DATABASE_URL": f"sqlite:///{folder / 'lab.db'}"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def say(process: "subprocess.Popen[str]", *messages: Any) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


def hear(process: "subprocess.Popen[str]") -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def ask(id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


@pytest.mark.slow
def test_an_agent_takes_an_experiment_from_evidence_to_report(tmp_path: Path) -> None:
    with agents.over_stdio(tmp_path) as agent:
        window = agent.call(
            "evidence_create_window",
            start_date="2026-01-01",
            end_date="2026-01-31",
            country="Valdoria",
        )["window_id"]
        agent.call("evidence_load", window_id=window, items=TEXTS)
        agent.call(
            "experiments_create",
            tag="pilot",
            window_id=window,
            model_id="sim:balanced",
            task_type="ecc",
            concept="fascism",
            config={"evidence.editor": "sim:editor", "rubric.critic": "sim:critic"},
        )
        plan = agent.call("runs_plan", target="pilot", samples=3)["stages"]["scorer"]
        assert agent.call("runs_start", target="pilot", samples=3) == {"started": ["pilot"]}
        [run] = agent.settled("pilot")["runs"]
        assert (run["status"], run["done"]["score"]) == ("complete", plan["calls"])
        assert plan["calls"] == 3 * len(TEXTS)
        [report] = agent.do("read_resource", "judge-gym://reports/pilot").contents
        assert "pilot" in report.text
        assert agent.refused("runs_start", target="none")["kind"] == "notfound"
    assert (tmp_path / ".judge-gym" / "lab.db").exists(), "the lab of the folder"


@pytest.mark.parametrize(
    "end",
    [
        "input",
        pytest.param("SIGINT", marks=pytest.mark.slow),
        pytest.param("SIGTERM", marks=pytest.mark.slow),
    ],
)
def test_standard_output_has_only_the_protocol_and_the_server_ends_cleanly(
    tmp_path: Path, end: str
) -> None:
    with started(tmp_path, "mcp") as process:
        say(process, HELLO)
        assert hear(process)["result"]["serverInfo"]["name"] == "judge-gym"
        say(process, READY, ask(2, "runs_status"), ask(3, "nothing"))
        answers = {said["id"]: said["result"] for said in (hear(process), hear(process))}
        assert not answers[2]["isError"] and answers[3]["isError"]
        assert process.stdin is not None
        if end == "input":
            process.stdin.close()
            process.stdin = None
        else:
            process.send_signal(getattr(signal, end))
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.slow
def test_an_invalid_message_does_not_end_the_server(tmp_path: Path) -> None:
    with started(tmp_path, "mcp", "--no-work") as process:
        assert process.stdin is not None
        process.stdin.write('nonsense\n\n{}\n[1, 2]\n{"jsonrpc": "2.0"}\n')
        say(process, HELLO, READY, ask(2, "admin_tables"))
        heard: list[Any] = []
        while not any(said.get("id") == 2 for said in heard):
            heard.append(hear(process))
        assert all(said["jsonrpc"] == "2.0" for said in heard)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "") and "Traceback" not in err


@pytest.mark.slow
def test_serving_over_http_prints_the_address_and_keeps_the_token_in_a_private_file(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "mcp", "--http", "--port", "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:") and url.endswith("/mcp")
        assert process.stderr is not None and "lab.token" in process.stderr.readline()
        token = (tmp_path / ".judge-gym" / "lab.token").read_text().strip()
        with agents.over_http(url.removesuffix("/mcp"), token) as agent:
            assert agent.call("runs_status")["experiments"] == 0
            assert agent.call(
                "evidence_create_window",
                start_date="2026-01-01",
                end_date="2026-01-31",
                country="Valdoria",
            )
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "", "")


def test_invalid_options_are_refused(call: Call) -> None:
    said = call("mcp", "--http", "--host", "0.0.0.0", "--port", "0")
    assert (said.code, said.out) == (2, "") and "judge-gym token create" in said.err
    said = call("mcp", "--port", "99")
    assert (said.code, said.out) == (2, "") and "--http" in said.err
