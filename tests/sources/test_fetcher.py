"""Fetching: politeness, limits, patience, and the walls around private addresses."""

import asyncio
import gzip
import signal
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.sources.fetcher import Fetcher, FetchFailure, Page, is_public, private_socket
from tables import each_row
from web import Answer, Asked, Web


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture
def fetcher() -> Fetcher:
    """One that may reach the server, and loses no time."""
    return Fetcher(allow_private=True, timeout=30.0, backoff=0.01, max_bytes=100_000)


def reason(outcome: Page | FetchFailure) -> str:
    return outcome.reason if isinstance(outcome, FetchFailure) else "a page"


# --- pages ---------------------------------------------------------------------------------------


def test_a_page_comes_with_its_body_type_and_encoding(web: Web, fetcher: Fetcher) -> None:
    url = web.on(
        "/a", Answer("<p>smørbrød</p>".encode("latin-1"), type="text/html; charset=latin-1")
    )
    [outcome] = fetcher.fetch([url])
    assert isinstance(outcome, Page)
    assert (outcome.url, outcome.final_url, outcome.content_type) == (url, url, "text/html")
    assert outcome.text == "<p>smørbrød</p>"


def test_an_encoding_that_nobody_knows_leaves_the_bytes(web: Web, fetcher: Fetcher) -> None:
    url = web.on("/a", Answer("<p>x</p>", type="text/html; charset=klingon"))
    [outcome] = fetcher.fetch([url])
    assert isinstance(outcome, Page)
    assert outcome.text == b"<p>x</p>"


def test_each_address_has_one_outcome(web: Web, fetcher: Fetcher) -> None:
    urls = [web.on(f"/{n}", "x") for n in range(20)] + [f"{web.url}/gone", "ftp://x/y", "junk"]
    outcomes = list(fetcher.fetch([*urls, urls[0]]))
    assert sorted(outcome.url for outcome in outcomes) == sorted(urls)
    assert sum(isinstance(outcome, Page) for outcome in outcomes) == 20


def test_we_say_who_we_are_and_send_no_cookies(web: Web, fetcher: Fetcher) -> None:
    url = web.on("/a", Answer("x", headers={"Set-Cookie": "id=1"}))
    fetcher.get(url)
    fetcher.get(url)
    assert all(asked.headers["user-agent"].startswith("judge-gym/") for asked in web.asked)
    assert not any("cookie" in asked.headers for asked in web.asked)


def test_a_proxy_of_the_environment_is_not_used(
    web: Web, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert isinstance(fetcher.get(web.on("/a", "x")), Page)


NO_ADDRESSES = """junk ftp://host/x file:///etc/passwd http:// http://[::1 javascript:alert(1)
http://x:99999/ http://a..b/"""


@pytest.mark.parametrize("url", ["", *NO_ADDRESSES.split()])
def test_what_is_no_web_address_is_refused(fetcher: Fetcher, url: str) -> None:
    assert reason(fetcher.get(url)).startswith(("not a web address", "robots.txt cannot be read"))


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 410, 451])
def test_a_refusal_of_the_server_is_final(web: Web, fetcher: Fetcher, status: int) -> None:
    outcome = fetcher.get(web.on("/a", Answer("no", status)))
    assert outcome == FetchFailure(
        f"{web.url}/a", f"HTTP {status}", retry=False, status=status, wait=0.01
    )
    assert web.paths() == ["/a"]


@pytest.mark.parametrize(
    "first",
    [
        Answer("no", 500),
        Answer("no", 503),
        Answer("half", missing=9),
        Answer("late", delay=30),
    ],
    ids=["500", "503", "cut", "late"],
)
def test_what_may_pass_is_tried_again(web: Web, first: Answer) -> None:
    fetcher = Fetcher(allow_private=True, timeout=2.0 if first.delay else 30.0, backoff=0.01)
    assert isinstance(fetcher.get(web.on("/a", first, "fine")), Page)
    assert web.paths() == ["/a", "/a"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer("no", 500), "HTTP 500"),
        (Answer("half", missing=9), "truncated"),
        (Answer("late", delay=5), "timed out after 0.6 s"),
    ],
)
def test_patience_ends_after_some_attempts(web: Web, answer: Answer, says: str) -> None:
    timeout = 0.6 if answer.delay else 30.0
    fetcher = Fetcher(allow_private=True, timeout=timeout, backoff=0.01, attempts=3)
    outcome = fetcher.get(web.on("/a", answer))
    assert isinstance(outcome, FetchFailure)
    assert (outcome.reason, outcome.retry, web.paths()) == (says, True, ["/a"] * 3)


def test_a_body_that_trickles_ends_with_the_time(web: Web) -> None:
    """The limit is for the whole request, not for each piece of it."""
    fetcher = Fetcher(allow_private=True, timeout=1.0, attempts=1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def trickle() -> None:
            for _ in range(2):
                line, _ = server.accept()
                asked = line.recv(1000)
                if b"/robots.txt HTTP" in asked:
                    line.sendall(
                        b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    )
                    line.close()
                    continue
                line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                try:
                    for _ in range(1200):
                        line.sendall(b"x")
                        time.sleep(0.05)
                except OSError:
                    line.close()

        threading.Thread(target=trickle, daemon=True).start()
        before = time.monotonic()
        assert reason(fetcher.get(f"http://127.0.0.1:{port}/a")) == "timed out after 1 s"
        assert time.monotonic() - before < 30


def test_a_page_of_50_mb_ends_at_the_limit_and_needs_little_memory(web: Web) -> None:
    url = web.on("/huge", Answer(b"x" * 100_000, repeat=500))
    fetcher = Fetcher(allow_private=True, max_bytes=1_000_000)
    tracemalloc.start()
    try:
        outcome = fetcher.get(url)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome == FetchFailure(url, "larger than 1 MB")
    assert peak < 10_000_000
    assert web.paths() == ["/huge"]


def test_a_small_body_that_unpacks_to_50_mb_ends_at_the_limit(web: Web) -> None:
    packed = gzip.compress(b"x" * 50_000_000)
    url = web.on("/bomb", Answer(packed, headers={"Content-Encoding": "gzip"}))
    fetcher = Fetcher(allow_private=True, max_bytes=1_000_000)
    tracemalloc.start()
    try:
        outcome = fetcher.get(url)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome == FetchFailure(url, "larger than 1 MB")
    assert peak < 10_000_000


def test_a_packed_page_is_unpacked(web: Web, fetcher: Fetcher) -> None:
    url = web.on("/a", Answer(gzip.compress(b"fine"), headers={"Content-Encoding": "gzip"}))
    outcome = fetcher.get(url)
    assert isinstance(outcome, Page)
    assert outcome.body == b"fine"


def test_broken_packing_is_a_record(web: Web, fetcher: Fetcher) -> None:
    url = web.on("/a", Answer(b"not gzip", headers={"Content-Encoding": "gzip"}))
    assert reason(fetcher.get(url)) == "truncated"


def test_only_html_is_an_article(web: Web, fetcher: Fetcher) -> None:
    url = web.on("/a.pdf", Answer(b"%PDF", type="application/pdf"))
    assert [reason(outcome) for outcome in fetcher.fetch([url])] == ["not HTML: application/pdf"]
    assert isinstance(fetcher.get(url), Page)


def test_a_server_that_is_not_there_is_a_record(fetcher: Fetcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    said = reason(fetcher.get(f"http://127.0.0.1:{port}/a"))
    assert said == "robots.txt cannot be read: cannot connect"


def test_a_server_without_encryption_is_a_record(web: Web, fetcher: Fetcher) -> None:
    said = reason(fetcher.get(f"https://127.0.0.1:{web.port}/a"))
    assert said == "robots.txt cannot be read: no secure connection"


def test_what_is_not_http_is_a_record(fetcher: Fetcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def babble() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                line.recv(1000)
                line.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                line.close()

        threading.Thread(target=babble, daemon=True).start()
        said = reason(fetcher.get(f"http://127.0.0.1:{server.getsockname()[1]}/a"))
    assert said == "robots.txt cannot be read: broken HTTP answer"


# --- waiting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_a_short_wait_that_the_server_asks_for_is_kept(web: Web, status: int) -> None:
    fetcher = Fetcher(allow_private=True, backoff=30.0)
    url = web.on("/a", Answer("later", status, headers={"Retry-After": "1"}), "fine")
    assert isinstance(fetcher.get(url), Page)
    first, second = (asked.at for asked in web.asked if asked.path == "/a")
    assert 0.9 < second - first < 3


@pytest.mark.parametrize("status", [429, 503])
def test_long_wait_is_reported_and_closes_the_host(web: Web, status: int) -> None:
    fetcher = Fetcher(allow_private=True)
    web.on("/a", Answer("later", status, headers={"Retry-After": "3600"}))
    urls = [f"{web.url}/a", web.on("/b", "fine")]
    first, second = (fetcher.get(url) for url in urls)
    says = f"HTTP {status}: the server asks to wait 3600 s"
    assert (reason(first), reason(second)) == (says, says)
    assert web.paths() == ["/a"]


def test_a_server_may_name_a_moment() -> None:
    fetcher = Fetcher(backoff=2.0)
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 90 < fetcher.wait(1, {"Retry-After": soon}) <= 100
    assert fetcher.wait(1, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert [fetcher.wait(n, {"Retry-After": "soon"}) for n in (1, 2, 3)] == [2, 4, 8]


def test_a_host_is_asked_one_thing_at_a_time(web: Web, fetcher: Fetcher) -> None:
    now, most = 0, 0
    lock = threading.Lock()

    def slow(asked: Asked) -> Answer:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.03)
        with lock:
            now -= 1
        return Answer("x")

    list(fetcher.fetch([web.on(f"/{n}", slow) for n in range(6)]))
    assert most == 1


def test_hosts_are_asked_at_the_same_time(fetcher: Fetcher) -> None:
    meeting = threading.Barrier(3, timeout=60)

    def wait(asked: Asked) -> Answer:
        meeting.wait()
        return Answer("x")

    with Web() as one, Web() as two, Web() as three:
        outcomes = list(
            Fetcher(allow_private=True, timeout=60).fetch(
                [web.on("/a", wait) for web in (one, two, three)]
            )
        )
    assert all(isinstance(outcome, Page) for outcome in outcomes)


def test_a_host_that_is_not_ours_gets_a_pause(web: Web, named: None) -> None:
    fetcher = Fetcher(allow_private=True, pause=0.2)
    web.on("/a", "x"), web.on("/b", "x")
    list(fetcher.fetch([f"http://news.example:{web.port}/{name}" for name in "ab"]))
    times = [asked.at for asked in web.asked]
    assert web.asked[0].path == "/robots.txt"
    assert all(later - earlier >= 0.19 for earlier, later in pairwise(times))


def test_a_pause_holds_from_one_call_to_the_next(web: Web, named: None) -> None:
    fetcher = Fetcher(allow_private=True, pause=0.2)
    for name in "ab":
        web.on(f"/{name}", "x")
        fetcher.get(f"http://news.example:{web.port}/{name}")
    [robots, first, second] = web.asked
    assert robots.path == "/robots.txt"
    assert second.at - first.at >= 0.19


def test_pages_do_not_pile_up_while_the_reader_is_busy() -> None:
    servers = [Web() for _ in range(6)]
    fetcher = Fetcher(allow_private=True, concurrency=2)
    outcomes = fetcher.fetch([server.__enter__().on("/a", "x") for server in servers])
    try:
        next(outcomes)
        time.sleep(0.3)
        assert sum(len(server.paths()) for server in servers) <= 4
        assert len(list(outcomes)) == 5
    finally:
        for server in servers:
            server.__exit__()


# --- robots.txt ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1", "fd00:ec2::254"],
)
def test_the_addresses_of_a_clouds_secrets_are_refused_even_with_leave(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pytest.raises(OSError, match="private address"):
        private_socket((family, socket.SOCK_STREAM, 0, "", (address, 80)))


@pytest.mark.parametrize("charset", ["idna", "undefined", "punycode", "no-such"])
def test_unknown_charset_does_not_fail_the_page(charset: str) -> None:
    assert Page("u", "u", b"caf\xe9", charset=charset).text == b"caf\xe9"


def test_a_date_beyond_all_dates_is_no_wait() -> None:
    far = "Mon, 05 Jan 99999999999999999999 00:00:00 GMT"
    assert Fetcher(backoff=1.0).wait(1, {"Retry-After": far}) == 1.0


def test_robots_are_obeyed_and_asked_for_once(web: Web, fetcher: Fetcher) -> None:
    web.on("/robots.txt", Answer("User-agent: judge-gym\nDisallow: /private\n", type="text/plain"))
    urls = [web.on("/open", "x"), web.on("/private/a", "x"), web.on("/open2", "x")]
    found = {outcome.url: reason(outcome) for outcome in fetcher.fetch(urls)}
    fetcher.get(urls[0])
    assert [found[url] for url in urls] == ["a page", "robots.txt forbids it", "a page"]
    assert [asked.path for asked in web.asked].count("/robots.txt") == 1
    assert "/private/a" not in web.paths()


def test_rules_for_other_robots_are_not_for_us(web: Web, fetcher: Fetcher) -> None:
    web.on("/robots.txt", Answer("User-agent: otherbot\nDisallow: /\n", type="text/plain"))
    assert isinstance(fetcher.get(web.on("/a", "x")), Page)


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_without_robots_all_is_allowed(web: Web, fetcher: Fetcher, status: int) -> None:
    web.on("/robots.txt", Answer("no", status))
    assert isinstance(fetcher.get(web.on("/a", "x")), Page)


@pytest.mark.parametrize("answer", [Answer("no", 500), Answer("x", delay=5)], ids=["500", "late"])
def test_robots_that_cannot_be_read_forbid_all(web: Web, answer: Answer) -> None:
    fetcher = Fetcher(allow_private=True, timeout=0.6, attempts=1)
    web.on("/robots.txt", answer)
    url = web.on("/a", "x")
    assert reason(fetcher.get(url)).startswith("robots.txt cannot be read: ")
    assert reason(fetcher.get(url)).startswith("robots.txt cannot be read: ")
    assert [asked.path for asked in web.asked] == ["/robots.txt"]


def test_robots_may_stand_elsewhere(web: Web, fetcher: Fetcher) -> None:
    web.on("/robots.txt", Answer("", 301, headers={"Location": "/rules.txt"}))
    web.on("/rules.txt", Answer("User-agent: *\nDisallow: /a\n", type="text/plain"))
    assert reason(fetcher.get(web.on("/a", "x"))) == "robots.txt forbids it"


def test_a_delay_that_robots_ask_for_is_kept(web: Web, fetcher: Fetcher) -> None:
    web.on("/robots.txt", Answer("User-agent: *\nCrawl-delay: 0.2\n", type="text/plain"))
    list(fetcher.fetch([web.on("/a", "x"), web.on("/b", "x")]))
    times = [asked.at for asked in web.asked]
    assert all(later - earlier >= 0.19 for earlier, later in pairwise(times))


# --- redirects -----------------------------------------------------------------------------------


def test_redirects_are_followed_to_where_they_lead(web: Web, fetcher: Fetcher) -> None:
    url = web.on("/a", Answer("", 302, headers={"Location": "/b?x=1"}))
    web.on("/b", "there")
    outcome = fetcher.get(url)
    assert isinstance(outcome, Page)
    assert (outcome.url, outcome.final_url) == (url, f"{web.url}/b?x=1")


def test_a_circle_ends(web: Web, fetcher: Fetcher) -> None:
    url = web.on("/a", Answer("", 302, headers={"Location": "/a"}))
    assert reason(fetcher.get(url)) == "more than 5 redirects"
    assert len(web.paths()) == 6


def test_robots_are_asked_at_each_hop(web: Web, fetcher: Fetcher) -> None:
    with Web() as other:
        other.on("/robots.txt", Answer("User-agent: *\nDisallow: /\n", type="text/plain"))
        url = web.on("/a", Answer("", 302, headers={"Location": other.on("/b", "x")}))
        assert reason(fetcher.get(url)) == "robots.txt forbids it"
        assert other.paths() == []


@pytest.mark.parametrize("target", ["ftp://x/y", "file:///etc/passwd", "data:text/html,x"])
def test_a_redirect_stays_on_the_web(web: Web, fetcher: Fetcher, target: str) -> None:
    url = web.on("/a", Answer("", 302, headers={"Location": target}))
    assert reason(fetcher.get(url)).startswith("not a web address")


# --- private addresses ---------------------------------------------------------------------------


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of a domain lead to this machine, as those of a hostile one might."""
    resolve = socket.getaddrinfo

    def fake(host: Any, *args: Any, **kwargs: Any) -> Any:
        return resolve("127.0.0.1" if str(host).endswith(".example") else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", fake)


SPELLINGS = """127.0.0.1 localhost [::1] [::ffff:127.0.0.1] 0x7f.1 0x7f000001 2130706433 127.1 0
017700000001 0.0.0.0 169.254.169.254 10.0.0.1 192.168.1.1 [64:ff9b::7f00:1] [2002:7f00:1::]
[fe80::1] [fd00::1] news.example"""


@pytest.mark.parametrize("host", SPELLINGS.split())
def test_private_addresses_are_refused_however_they_are_spelled(
    web: Web, named: None, host: str
) -> None:
    web.on("/a", "secret")
    outcome = Fetcher(attempts=1).get(f"http://{host}:{web.port}/a")
    assert reason(outcome).removeprefix("robots.txt cannot be read: ") in {
        "private address",
        "not a web address",
    }
    assert web.asked == []


def test_a_redirect_into_private_space_is_refused_at_the_socket(
    web: Web, named: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public server, played by a name that the guard lets pass, sends us to a private one."""
    monkeypatch.setattr(
        "judge_gym.sources.fetcher.is_public", lambda address: address == "127.0.0.1"
    )
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as inner:
        port = inner.getsockname()[1]
        url = web.on("/a", Answer("", 302, headers={"Location": f"http://[::1]:{port}/admin"}))
        assert reason(Fetcher(attempts=1).get(url)) == "private address"
        inner.settimeout(0.05)
        with pytest.raises(TimeoutError):
            inner.accept()


def test_a_trusted_endpoint_may_be_private_and_is_not_asked_for_robots(web: Web) -> None:
    url = web.on("/api", Answer("{}", type="application/json"))
    assert isinstance(Fetcher().get(url, trusted=True), Page)
    assert [asked.path for asked in web.asked] == ["/api"]


def test_a_trusted_endpoint_cannot_send_us_elsewhere(web: Web) -> None:
    url = web.on("/api", Answer("", 302, headers={"Location": f"http://localhost:{web.port}/b"}))
    assert reason(Fetcher().get(url, trusted=True)) == "redirects to another host"


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"],
)
def test_the_public_internet_is_public(address: str) -> None:
    assert is_public(address)


NOT_PUBLIC = """127.0.0.1 10.1.2.3 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 0.0.0.0
255.255.255.255 224.0.0.1 240.0.0.1 192.0.2.1 198.18.0.1 :: ::1 ::7f00:1 fe80::1 fe80::1%eth0
fec0::1 fc00::1 ff02::1 2001:db8::1 2001::1 2002:a00:1:: 64:ff9b::a00:1 64:ff9b:1::1
::ffff:10.0.0.1 ::ffff:0:10.0.0.1 100::1 localhost"""


@each_row("address", ["", *NOT_PUBLIC.split()])
def test_the_rest_is_not(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_as_itself(address: Any) -> None:
    inside = [f"::ffff:{address}", f"64:ff9b::{int(address) >> 16:x}:{int(address) & 0xFFFF:x}"]
    assert {is_public(text) for text in inside} == {is_public(str(address))}


# --- the caller ----------------------------------------------------------------------------------


def test_it_works_where_a_loop_is_running(web: Web, fetcher: Fetcher) -> None:
    url = web.on("/a", "x")

    async def cell() -> Page | FetchFailure:
        return fetcher.get(url)

    assert isinstance(asyncio.run(cell()), Page)


def test_what_came_before_ctrl_c_is_kept(web: Web) -> None:
    first_came = threading.Event()
    interrupted = []

    def interrupt(asked: Asked) -> Answer:
        first_came.wait(60)
        interrupted.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return Answer("late", delay=60)

    urls = [web.on("/a", "x"), web.on("/b", interrupt), web.on("/c", "x")]
    came = []
    with pytest.raises(KeyboardInterrupt):
        for outcome in Fetcher(allow_private=True).fetch(urls):
            came.append(outcome.url)
            first_came.set()
    assert came == urls[:1]
    assert time.monotonic() - interrupted[0] < 30
    assert "/c" not in web.paths()


def test_a_reader_that_stops_ends_the_work(web: Web, fetcher: Fetcher) -> None:
    threads = threading.active_count()
    outcomes = fetcher.fetch([web.on(f"/{n}", "x") for n in range(50)])
    next(outcomes)
    outcomes.close()
    assert len(web.paths()) < 10
    assert threading.active_count() <= threads + 2


def test_user_and_password_are_sent_and_never_shown(web: Web, fetcher: Fetcher) -> None:
    host = f"anna:secret@127.0.0.1:{web.port}"
    web.on("/a", "x")
    fetcher.get(f"http://{host}/a")
    assert web.asked[-1].headers["authorization"].startswith("Basic ")
    assert "secret" not in reason(fetcher.get(f"http://{host}/gone"))
    assert not any("secret" in origin for origin in [*fetcher.robots, *fetcher.hosts])
