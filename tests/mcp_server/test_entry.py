"""Who gets in over HTTP: the tokens, scopes, hosts and limits are those of the web."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import MCPError

import agents
from judge_gym.errors import ConflictError
from judge_gym.lab import Lab
from judge_gym.mcp import over_http
from judge_gym.mcp.tools import TOOLS
from judge_gym.web import serve
from judge_gym.web.middleware import HEADERS, Limits
from lab_server import ServedLab, serve_lab

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "runs_status", "arguments": {}},
}
SENT = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("entered"), run=False, agents=over_http) as opened:
        yield opened


def contents(lab: Lab) -> list[Any]:
    tags = [row["tag"] for row in lab.store.experiments.rows()]
    return [
        tags,
        lab.evidence.list_windows(),
        lab.evidence.list_pools(),
        lab.store.events.last_id(),
    ]


def plain(lab: ServedLab, token: str | None = None, **headers: str) -> httpx.Response:
    """A call as any program could send it."""
    return lab.ask("POST", "/mcp", token, json=CALL, headers={**SENT, **headers})


@pytest.mark.parametrize("token", ["none", "wrong", "revoked"])
def test_connecting_requires_a_valid_token(lab: ServedLab, token: str) -> None:
    secret = {"none": None, "wrong": "jg_" + "x" * 43, "revoked": lab.revoked}[token]
    with pytest.raises((MCPError, httpx2.HTTPError, ExceptionGroup)):
        with agents.over_http(lab.url, secret) as agent:
            agent.do("list_tools")
    said = plain(lab, secret or "")
    assert (said.status_code, said.json()["error"]["kind"]) == (401, "token")
    assert said.headers["WWW-Authenticate"] == "Bearer"


def test_a_reading_token_reads_and_nothing_else(lab: ServedLab) -> None:
    before = contents(lab.lab)
    with agents.over_http(lab.url, lab.read) as agent:
        assert agent.call("runs_status")["runs"] == []
        assert agent.call("admin_query", sql="SELECT count(*) FROM tags")["rows"] == [[3]]
        assert len(agent.call("read", function="evidence_list_windows")["items"]) == 1
        assert agent.call("functions")["items"]
        assert agent.do("list_resources").resources == []
        tools = [tool.name for tool in agent.do("list_tools").tools]
        writing = [name for name in tools if name in TOOLS and TOOLS[name].effect != "reads"]
        assert len(writing) >= 15
        needs = {"window_id": 1, "tag": "pilot"}
        for name in writing:
            schema = agent.call("functions", name=name)["arguments"]["properties"]
            given = {key: value for key, value in needs.items() if key in schema}
            error = agent.refused(name, **given)
            assert (error["kind"], "may only read" in error["message"]) == ("scope", True), name
    assert contents(lab.lab) == before


def test_a_writing_token_writes_until_it_is_revoked(lab: ServedLab) -> None:
    _, secret = lab.lab.store.tokens.create("passing", "write")
    with agents.over_http(lab.url, secret) as agent:
        made = agent.call("evidence_freeze_pool", name="now", window_id=1)
        assert made["items"] == 3
        lab.lab.store.tokens.revoke("passing")
        with pytest.raises(MCPError):
            agent.call("runs_status")
    assert plain(lab, secret).status_code == 401


def test_each_request_counts_by_its_own_token(lab: ServedLab) -> None:
    """Nothing is kept between two: whoever knows of another's session gains nothing by it."""
    opened = lab.ask(
        "POST",
        "/mcp",
        json={
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        headers={"Accept": SENT["Accept"]},
    )
    assert opened.status_code == 200
    assert "mcp-session-id" not in opened.headers
    assert plain(lab, lab.read, **{"Mcp-Session-Id": "a" * 32}).status_code == 200
    body = {**CALL, "params": {"name": "runs_pause", "arguments": {"target": "pilot"}}}
    said = lab.ask("POST", "/mcp", lab.read, json=body, headers=SENT).json()["result"]
    assert said["isError"] and '"kind":"scope"' in said["content"][0]["text"]


def test_a_session_cookie_does_not_authenticate_agents(lab: ServedLab) -> None:
    with httpx.Client(base_url=lab.url, timeout=60) as browser:
        assert browser.get(f"/?token={lab.local}").status_code == 303
        assert browser.get("/api/session").status_code == 200
        csrf = {"X-CSRF-Token": browser.get("/api/session").json()["csrf"]}
        assert browser.post("/mcp", json=CALL, headers={**SENT, **csrf}).status_code == 401
    assert (
        lab.ask("POST", f"/mcp?token={lab.local}", "", json=CALL, headers=SENT).status_code == 401
    )
    assert lab.ask("GET", f"/mcp?token={lab.local}", "", headers=SENT).status_code == 401


def test_a_foreign_host_is_refused_even_with_a_token(lab: ServedLab) -> None:
    said = plain(lab, Host="evil.example")
    assert (said.status_code, said.json()["error"]["kind"]) == (400, "host")


def test_responses_have_the_security_headers(lab: ServedLab) -> None:
    for token in (None, ""):
        said = plain(lab, token)
        assert {name: said.headers.get(name) for name in HEADERS} == HEADERS
        assert said.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"nonsense", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"[" * 100_000]
)
def test_an_invalid_message_is_refused_without_an_internal_error(
    lab: ServedLab, body: bytes
) -> None:
    sent = {**SENT, "Content-Type": "application/json"}
    said = lab.ask("POST", "/mcp", content=body, headers=sent)
    assert 400 <= said.status_code < 500
    assert "Traceback" not in said.text
    assert plain(lab).status_code == 200, "and the next one is answered"


def test_long_messages_and_excessive_rates_are_refused(tmp_path: Path) -> None:
    few = Limits(body=2000, per_second=0.1, burst=6)
    with serve_lab(tmp_path, run=False, agents=over_http, limits=few) as lab:
        long = {**CALL, "params": {"name": "admin_query", "arguments": {"sql": "x" * 5000}}}
        assert lab.ask("POST", "/mcp", json=long, headers=SENT).status_code == 413
        codes = [plain(lab).status_code for _ in range(8)]
        assert codes[0] == 200 and codes[-1] == 429, "a call counts with what it asks in turn"


def test_a_public_address_requires_a_token_in_the_lab(tmp_path: Path) -> None:
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        with pytest.raises(ConflictError, match="judge-gym token create"):
            with serve(lab, "0.0.0.0", 0, work=False, agents=over_http):
                pytest.fail("it was served")
        _, secret = lab.store.tokens.create("agent", "read")
        with serve(lab, "0.0.0.0", 0, work=False, agents=over_http) as at:
            assert at.token is None
            port = at.url.rpartition(":")[2]
            with agents.over_http(f"http://127.0.0.1:{port}", secret) as agent:
                assert agent.call("runs_status")["experiments"] == 0
