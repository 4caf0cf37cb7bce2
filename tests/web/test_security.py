"""Who gets in: tokens, browsers, hosts, limits; and what nobody gets to see."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from judge_gym.errors import ConflictError
from judge_gym.lab import Lab
from judge_gym.verbs import VERBS
from judge_gym.web import connections, security, serve
from judge_gym.web.middleware import HEADERS, Limits
from judge_gym.web.security import Authenticator, RateLimiter, is_loopback
from lab_server import ServedLab, serve_lab
from tables import each_row

PUBLIC = {"/api/health", "/api/ready", "/api/openapi.json"}
LABEL = {"item": "calm", "rater": "r", "stage": "1"}
READS_BY_POST = {
    f"/api{verb.path}" for verb in VERBS if verb.route.startswith("POST") and verb.effect == "reads"
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("secured"), run=False) as opened:
        yield opened


def resources(lab: ServedLab) -> list[tuple[str, str]]:
    """Every method and path of the API, with something in the place of each parameter."""
    paths = httpx.get(f"{lab.url}/api/openapi.json", timeout=60).json()["paths"]
    return [
        (method.upper(), re.sub(r"\{[^}]*\}", "1", path))
        for path, item in paths.items()
        for method in item
    ]


def contents(lab: Lab) -> list[Any]:
    tags = [row["tag"] for row in lab.store.experiments.rows()]
    return [
        tags,
        lab.evidence.list_windows(),
        lab.evidence.list_pools(),
        lab.labels.list(),
        lab.store.events.last_id(),
    ]


# --- tokens --------------------------------------------------------------------------------------


def test_every_write_needs_a_token_that_may_write(lab: ServedLab) -> None:
    before = contents(lab.lab)
    writes = [(method, path) for method, path in resources(lab) if method != "GET"]
    assert len(writes) >= 15 and READS_BY_POST == {
        "/api/plan",
        "/api/report/power",
        "/api/suites/plan",
    }
    for method, path in writes:
        for token, status, kind in (
            ("", 401, "token"),
            ("jg_" + "x" * 43, 401, "token"),
            (lab.revoked, 401, "token"),
            (lab.read, 403, "scope"),
        ):
            if token == lab.read and path in READS_BY_POST:
                continue
            said = lab.ask(method, path, token, json={})
            assert (said.status_code, said.json()["error"]["kind"]) == (status, kind), path
    assert contents(lab.lab) == before


def test_every_read_needs_a_token_too(lab: ServedLab) -> None:
    reads = [(method, path) for method, path in resources(lab) if method == "GET"]
    for method, path in reads:
        if path in PUBLIC:
            assert lab.ask(method, path, "").status_code == 200
            continue
        for token in ("", "wrong", lab.revoked):
            assert lab.ask(method, path, token).status_code == 401, path


def test_a_reading_token_reads(lab: ServedLab) -> None:
    assert lab.ask("GET", "/api/experiments", lab.read).status_code == 200


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Basic eDp5", "Bearer é", "Bearer x y", "bearer\tx"]
)
def test_an_odd_header_is_nobody(lab: ServedLab, header: str) -> None:
    said = httpx.get(
        f"{lab.url}/api/windows", headers={b"Authorization": header.encode("latin-1")}, timeout=60
    )
    assert said.status_code == 401
    assert said.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_in_an_address_of_the_api_counts_for_nothing(lab: ServedLab) -> None:
    """It would stand in logs and histories."""
    assert lab.ask("GET", f"/api/windows?token={lab.local}", "").status_code == 401


def test_a_token_that_is_revoked_ends_at_once(lab: ServedLab) -> None:
    _, secret = lab.lab.store.tokens.create("passing", "read")
    assert lab.ask("GET", "/api/windows", secret).status_code == 200
    lab.lab.store.tokens.revoke("passing")
    assert lab.ask("GET", "/api/windows", secret).status_code == 401


def test_what_others_reach_needs_a_token_in_the_lab(tmp_path: Path) -> None:
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        with pytest.raises(ConflictError, match="judge-gym token create"):
            with serve(lab, "0.0.0.0", 0, work=False):
                pytest.fail("it was served")
        lab.store.tokens.create("ada", "read")
        with serve(lab, "0.0.0.0", 0, work=False) as at:
            assert at.token is None, "nobody is local there"


def test_an_address_that_is_taken_is_said(lab: ServedLab) -> None:
    port = int(lab.url.rpartition(":")[2])
    with pytest.raises(ConflictError, match="cannot listen"):
        with serve(lab.lab, port=port, work=False):
            pytest.fail("it was served")


# --- browsers ------------------------------------------------------------------------------------


@pytest.fixture
def browser(lab: ServedLab) -> Iterator[httpx.Client]:
    """A browser that has opened the address which the server prints."""
    with httpx.Client(base_url=lab.url, timeout=60) as client:
        said = client.get(f"/?token={lab.local}")
        assert said.status_code == 303
        yield client


def test_a_browser_gets_a_cookie_for_the_token_in_its_address(lab: ServedLab) -> None:
    said = httpx.get(f"{lab.url}/some/page?a=1&token={lab.local}&b=2", timeout=60)
    assert (said.status_code, said.headers["location"]) == (303, "/some/page?a=1&b=2")
    cookie = said.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert lab.local not in cookie, "the token itself stays out of it"


def test_a_wrong_token_in_an_address_gets_no_cookie(lab: ServedLab) -> None:
    said = httpx.get(f"{lab.url}/?token=wrong", timeout=60)
    assert said.status_code == 401
    assert "set-cookie" not in said.headers


def test_an_address_leads_to_no_other_site(lab: ServedLab) -> None:
    port = int(lab.url.rpartition(":")[2])
    with httpx.Client(timeout=60) as client:
        url = httpx.URL(f"http://127.0.0.1:{port}").copy_with(
            raw_path=f"//evil.example/x?token={lab.local}".encode()
        )
        said = client.get(url)
    assert said.headers["location"] == "/evil.example/x"


def test_a_browser_reads_with_its_cookie(browser: httpx.Client) -> None:
    assert browser.get("/api/windows").status_code == 200
    assert browser.get("/").status_code == 200


def test_a_browser_writes_only_with_what_its_own_pages_know(
    lab: ServedLab, browser: httpx.Client
) -> None:
    body = {"start_date": "2026-02-01", "end_date": "2026-02-02", "country": "Norvessa"}
    csrf = browser.get("/api/session").json()["csrf"]
    assert browser.post("/api/windows", json=body).status_code == 403
    for wrong in ("", "x", csrf[:-1], "é"):
        sent = {b"X-CSRF-Token": wrong.encode("latin-1")}
        assert browser.post("/api/windows", json=body, headers=sent).status_code == 403
    known = {"X-CSRF-Token": csrf}
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        said = browser.post("/api/windows", json=body, headers={**known, "Origin": origin})
        assert said.status_code == 403, origin
    own = {**known, "Origin": lab.url}
    assert browser.post("/api/windows", json=body, headers=own).status_code == 201


def test_the_secret_of_one_session_is_of_no_use_in_another(lab: ServedLab) -> None:
    with (
        httpx.Client(base_url=lab.url, timeout=60) as one,
        httpx.Client(base_url=lab.url, timeout=60) as other,
    ):
        for client in (one, other):
            client.get(f"/?token={lab.local}")
        stolen = {"X-CSRF-Token": one.get("/api/session").json()["csrf"]}
        assert other.post("/api/pools", json={}, headers=stolen).status_code == 403


def test_a_session_ends_with_its_token(lab: ServedLab) -> None:
    _, secret = lab.lab.store.tokens.create("visitor", "write")
    with httpx.Client(base_url=lab.url, timeout=60) as client:
        client.get(f"/?token={secret}")
        assert client.get("/api/session").json()["name"] == "visitor"
        lab.lab.store.tokens.revoke("visitor")
        assert client.get("/api/windows").status_code == 401


@pytest.mark.parametrize("cookie", ["", ";", "judge-gym=", "a=b; \x01=2", "{name}=jg_unknown"])
def test_an_odd_cookie_is_nobody(lab: ServedLab, cookie: str) -> None:
    name = f"judge-gym-{lab.url.rpartition(':')[2]}"
    headers = {"Cookie": cookie.replace("{name}", name)}
    assert lab.ask("GET", "/api/windows", "", headers=headers).status_code == 401


def test_old_sessions_are_forgotten_first(lab: ServedLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "MAX_SESSIONS", 2)
    auth = Authenticator(lab.lab.tokens.find, hosts=[], local=True)
    assert auth.local is not None
    sessions = [auth.log_in(auth.local) for _ in range(3)]
    known = [auth.authenticate("", f"judge-gym={session}") is not None for session in sessions]
    assert known == [False, True, True]


def test_requests_without_a_token_do_not_keep_others_of_their_address_from_logging_in(
    tmp_path: Path,
) -> None:
    with serve_lab(tmp_path, run=False, limits=Limits(anonymous_per_second=0.001)) as lab:
        for _ in range(50):
            refused = lab.ask("GET", "/", "")
        assert refused.status_code == 429
        assert lab.ask("GET", "/?token=wrong", "").status_code == 429
        assert lab.ask("GET", f"/?token={lab.read}", "").status_code == 303


def test_a_cookie_is_sent_over_tls_only_where_the_page_is(lab: ServedLab) -> None:
    for headers, secure in (({}, False), ({"X-Forwarded-Proto": "https"}, True)):
        said = lab.ask("GET", f"/?token={lab.read}", "", headers=headers)
        assert ("Secure" in said.headers["set-cookie"]) is secure


# --- connections and bodies ----------------------------------------------------------------------


def test_a_connection_without_a_whole_request_is_closed(
    lab: ServedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    host, port = lab.url.removeprefix("http://").split(":")
    answered = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for sent in (b"", b"GET / HTTP/1.1\r\nHost: ", answered + b"GET /"):
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(sent)
            while client.recv(65536):
                pass  # ends when the server closes the connection


def test_a_body_that_stops_arriving_ends_its_request(tmp_path: Path) -> None:
    with serve_lab(tmp_path, run=False, limits=Limits(body_seconds=0.2)) as lab:
        host, port = lab.url.removeprefix("http://").split(":")
        head = f"POST /api/plan HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {lab.read}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(head.encode())
            received = b""
            while part := client.recv(65536):
                received += part
        assert b" 408 " in received.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/api/labels", {"labels": [{"a": 1}] * 50_000}, "body.labels.0.item: Field required"),
        ("/api/labels", {"labels": [*[LABEL] * 5_000, {}]}, "body.labels.5000.item"),
        ("/api/plan", {str(n): 1 for n in range(100_000)}, "at most 1,000 keys, not 100,000"),
    ],
)
def test_a_body_with_many_errors_is_refused_by_its_first_ones(
    lab: ServedLab, path: str, body: dict[str, Any], message: str
) -> None:
    said = lab.ask("POST", path, json=body)
    assert said.status_code == 422
    assert message in said.json()["error"]["message"] and len(said.text) < 2000


# --- hosts and headers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:8642", True),
        ("localhost:8642", True),
        ("LOCALHOST", True),
        ("[::1]:8642", True),
        ("10.1.2.3:80", True),
        ("lab.example:8642", True),
        ("evil.example", False),
        ("evil.example:8642", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("lab.example@evil.example", False),
        ("", False),
        ("[", False),
        (":", False),
    ],
)
def test_a_server_answers_to_its_own_names(lab: ServedLab, host: str, known: bool) -> None:
    """Any site may have its name lead to 127.0.0.1, and then its pages speak to this server."""
    auth = Authenticator(lab.lab.tokens.find, hosts=["localhost", "lab.example"], local=True)
    assert auth.allows_host(host) is known


def test_a_foreign_host_is_refused_even_with_a_token(lab: ServedLab) -> None:
    said = lab.ask("GET", "/api/windows", headers={"Host": "evil.example"})
    assert (said.status_code, said.json()["error"]["kind"]) == (400, "host")


@pytest.mark.parametrize("path", ["/", "/api/health", "/api/windows", "/api/nothing", "/nothing"])
@pytest.mark.parametrize("token", [None, ""])
def test_every_answer_carries_the_headers(lab: ServedLab, path: str, token: str | None) -> None:
    said = lab.ask("GET", path, token)
    assert {name: said.headers.get(name) for name in HEADERS} == HEADERS
    assert said.headers["Cache-Control"] == "no-store"
    assert "server" not in said.headers
    policy = said.headers["Content-Security-Policy"]
    assert "unsafe" not in policy and "http" not in policy and "default-src 'none'" in policy


def test_other_sites_are_given_nothing_to_read(lab: ServedLab) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for method in ("GET", "OPTIONS"):
        said = lab.ask(method, "/api/windows", headers=asked)
        assert not [name for name in said.headers if name.startswith("access-control")]


def test_an_unknown_path_and_method_are_errors_in_the_same_shape(lab: ServedLab) -> None:
    for method, path, status in (("GET", "/api/nothing", 404), ("PUT", "/api/windows", 405)):
        said = lab.ask(method, path)
        assert said.status_code == status
        assert set(said.json()["error"]) == {"kind", "message", "choices"}
    assert "GET" in lab.ask("PUT", "/api/windows").headers["allow"]


def test_a_fault_of_ours_tells_nothing_of_itself(
    lab: ServedLab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(lab.lab.evidence, "list_windows", fail)
    said = lab.ask("GET", "/api/windows")
    assert said.status_code == 500
    assert said.json()["error"] == {
        "kind": "internal",
        "message": "the server failed; see its log",
        "choices": [],
    }
    assert "the secret of the house" in caplog.text, "the log says why"


# --- limits --------------------------------------------------------------------------------------


def test_a_long_body_is_refused_before_and_while_it_is_read(tmp_path: Path) -> None:
    with serve_lab(tmp_path, run=False, limits=Limits(body=1000)) as lab:
        long = b'{"country": "' + b"x" * 2000 + b'"}'
        sent = {"Content-Type": "application/json"}
        told = lab.ask("POST", "/api/windows", content=long, headers=sent)
        untold = lab.ask("POST", "/api/windows", content=iter([long]), headers=sent)
        for said in (told, untold):
            assert (said.status_code, said.json()["error"]["kind"]) == (413, "toolarge")
        assert lab.ask("POST", "/api/windows", json={}).status_code == 422


def test_who_asks_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    rare = Limits(per_second=0.1, burst=3, anonymous_per_second=0.1, anonymous_burst=2)
    with serve_lab(tmp_path, run=False, limits=rare) as lab:
        for token, allowed, status in (("", 2, 401), (None, 3, 200), (lab.read, 3, 200)):
            said = [lab.ask("GET", "/api/session", token) for _ in range(allowed + 1)]
            assert [one.status_code for one in said] == [status] * allowed + [429]
            assert 1 <= int(said[-1].headers["Retry-After"]) <= 10
        wrong = lab.ask("GET", "/api/session", "wrong")
        assert wrong.status_code == 429, "guessing is counted with its address"


def test_a_rate_fills_up_again_to_its_burst() -> None:
    now = 100.0
    rate = RateLimiter(per_second=2, burst=3, clock=lambda: now)
    assert [rate.acquire("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert rate.acquire("b") == 0, "each for itself"
    now += 0.5
    assert [rate.acquire("a") for _ in range(2)] == [0, 0.5]
    now += 1000
    assert [rate.acquire("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_a_rate_remembers_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "MAX_CLIENTS", 10)
    rate = RateLimiter(per_second=1, burst=1)
    for number in range(1000):
        rate.acquire(str(number))
    assert len(rate._left) == 10


@each_row(
    ("host", "local"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "lab.example")),
    ],
)
def test_loopback_is_known(host: str, local: bool) -> None:
    assert is_loopback(host) is local
