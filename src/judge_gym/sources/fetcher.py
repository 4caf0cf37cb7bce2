"""Fetches pages politely, and only from the public internet unless private addresses are allowed.

Each host gets one request at a time with a pause between them; robots.txt, size limits and timeouts
apply. Every address yields a page or a failure, never an exception.
"""

import asyncio
import ipaddress
import queue
import socket
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from protego import Protego

from judge_gym.errors import retry_after

ROBOT = "judge-gym"
USER_AGENT = f"{ROBOT}/{version(ROBOT)} (research; obeys robots.txt)"
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
HTML_TYPES = ("text/html", "application/xhtml+xml")
MAX_REDIRECTS = 5
LONGEST_WAIT = 60.0
"""Seconds; a server that asks for a longer wait is not asked again."""
LONGEST_CRAWL_DELAY = 30.0
ERRORS: tuple[tuple[type[Exception], str, bool], ...] = (
    (TimeoutError, "timed out after {timeout:g} s", True),
    (aiohttp.ClientPayloadError, "truncated", True),
    (aiohttp.ClientConnectorDNSError, "no such host", True),
    (aiohttp.ClientSSLError, "no secure connection", False),
    (aiohttp.ClientConnectorError, "cannot connect", True),
    (aiohttp.ClientConnectionError, "connection lost", True),
    (OSError, "connection lost", True),
    (ValueError, "not a web address", False),  # aiohttp.InvalidURL is one
    (aiohttp.ClientError, "broken HTTP answer", False),
)
"""Failed requests: what is raised, the reason that is reported, and whether a retry may help."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was fetched."""

    url: str
    """The requested address."""
    final_url: str
    """The address after redirects."""
    body: bytes
    content_type: str = ""
    charset: str = ""

    @property
    def text(self) -> str | bytes:
        """The body as text if the server states a known encoding, otherwise its bytes."""
        try:
            return self.body.decode(self.charset, "replace") if self.charset else self.body
        except (LookupError, ValueError):
            return self.body


@dataclass(frozen=True, slots=True)
class FetchFailure:
    """The reason why a page could not be fetched."""

    url: str
    reason: str
    retry: bool = False
    """Whether the same request may succeed later."""
    status: int = 0
    wait: float = 0.0
    """Seconds to wait before a retry."""


FetchResult = Page | FetchFailure


@dataclass(slots=True)
class _Host:
    """The state of a host."""

    pause: float
    last_request: float = float("-inf")
    """When the last request ended."""
    closed: FetchFailure | None = None
    """Set once the host asks for a wait above `LONGEST_WAIT`."""


@dataclass(slots=True)
class Fetcher:
    """Fetches addresses, and respects pauses and robots.txt of hosts for its whole lifetime."""

    allow_private: bool = False
    """Whether private and loopback addresses may be fetched."""
    concurrency: int = 8
    """The number of hosts that are asked at the same time."""
    pause: float = 1.0
    """Seconds between two requests to a host; 0 for loopback addresses."""
    timeout: float = 20.0
    """Seconds for a request and its body."""
    max_bytes: int = 10_000_000
    """The largest body after decompression."""
    attempts: int = 3
    backoff: float = 1.0
    """Seconds before the second attempt, doubled for each further one."""
    hosts: dict[str, _Host] = field(default_factory=dict, init=False)
    robots: dict[str, Protego | FetchFailure] = field(default_factory=dict, init=False)

    def fetch(
        self, urls: Sequence[str], *, html: bool = True, trusted: bool = False, pause: float = 0.0
    ) -> Generator[FetchResult, None, None]:
        """Yields the result of each address as it arrives.

        The requests run in another thread, so the caller may have a running event loop, and Ctrl-C
        reaches the caller between two results.

        Args:
            urls: the addresses; repeated ones are fetched once.
            html: refuse content types other than HTML.
            trusted: for an endpoint that the user configured: it may be private, robots.txt is
                ignored, and redirects must stay on its host.
            pause: the least pause in seconds between requests to these hosts.
        """
        results: _Results = queue.SimpleQueue()
        job = _FetchJob(self, results, html=html, trusted=trusted, pause=pause)
        thread = threading.Thread(target=job.run, args=(list(dict.fromkeys(urls)),), daemon=True)
        thread.start()
        try:
            while (result := results.get()) is not None:
                if isinstance(result, BaseException):
                    raise result
                job.acknowledge()
                yield result
        finally:
            job.stop()
            thread.join(timeout=5)

    def get(self, url: str, *, trusted: bool = False, pause: float = 0.0) -> FetchResult:
        """Fetches one address of any content type, as `fetch` does."""
        [result] = self.fetch([url], html=False, trusted=trusted, pause=pause)
        return result

    def wait(self, attempt: int, headers: Mapping[str, str] | None = None) -> float:
        """Computes the wait after an attempt in seconds, by a valid Retry-After header.

        >>> Fetcher(backoff=1.0).wait(2), Fetcher().wait(1, {"Retry-After": "7"})
        (2.0, 7.0)
        """
        retry_seconds = retry_after(headers or {})
        return self.backoff * 2.0 ** (attempt - 1) if retry_seconds is None else retry_seconds


_Results = queue.SimpleQueue[FetchResult | BaseException | None]


@dataclass
class _FetchJob:
    """One call of `Fetcher.fetch`: an event loop, a session and the locks that belong to them."""

    fetcher: Fetcher
    results: _Results
    html: bool
    trusted: bool
    pause: float
    session: aiohttp.ClientSession = field(init=False)

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._slots = asyncio.Semaphore(self.fetcher.concurrency)
        self._acknowledged = asyncio.Semaphore(0)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    # --- the thread ---

    def run(self, urls: Sequence[str]) -> None:
        """Fetches all addresses. The job's thread runs this."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._fetch_all(urls))
        except asyncio.CancelledError:
            pass
        except Exception as error:  # raised in the caller's thread
            self.results.put(error)
        finally:
            self.results.put(None)

    def acknowledge(self) -> None:
        """Makes room for another result, because the caller took one."""
        self._call(self._acknowledged.release)

    def stop(self) -> None:
        """Cancels the requests in progress. Called from the caller's thread."""
        self._call(lambda: [task.cancel() for task in asyncio.all_tasks(self._loop)])

    def _call(self, callback: Callable[[], Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed because everything is done
            self._loop.call_soon_threadsafe(callback)

    # --- the requests ---

    async def _fetch_all(self, urls: Sequence[str]) -> None:
        fetcher = self.fetcher
        guarded = not (fetcher.allow_private or self.trusted)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, socket_factory=public_socket if guarded else private_socket
            ),
            headers={"User-Agent": USER_AGENT, "Accept": ACCEPT},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=fetcher.timeout),
            max_field_size=65_536,
            trust_env=False,
        ) as self.session:
            await asyncio.gather(*(self._fetch(url) for url in urls))

    async def _fetch(self, url: str, *, robots_file: bool = False) -> FetchResult:
        """Fetches an address, one redirect at a time, and delivers the result.

        The host's slot is held until the caller takes a page, which limits the pages in memory.
        """
        current = url
        for _ in range(MAX_REDIRECTS + 1):
            refusal = self._invalid_address(url, current)
            if not refusal and not robots_file and not self.trusted:
                refusal = await self._robots_refusal(current)
            if refusal:
                return await self._deliver(replace(refusal, url=url), robots_file)
            async with self._slot(current):
                reply = await self._attempts(current, html=self.html and not robots_file)
                if isinstance(reply, str):
                    current = reply
                    continue
                return await self._deliver(replace(reply, url=url), robots_file)
        failure = FetchFailure(url, f"more than {MAX_REDIRECTS} redirects")
        return await self._deliver(failure, robots_file)

    async def _deliver(self, result: FetchResult, robots_file: bool) -> FetchResult:
        if not robots_file:
            self.results.put(result)
            await self._acknowledged.acquire()
        return result

    def _invalid_address(self, start: str, url: str) -> FetchFailure | None:
        try:
            parts = urlsplit(url)
            host, home = parts.hostname, urlsplit(start).hostname
        except ValueError:
            return FetchFailure(url, "not a web address")
        if parts.scheme not in ("http", "https") or not host:
            return FetchFailure(url, "not a web address: neither http nor https")
        if self.trusted and host != home:
            return FetchFailure(url, "redirects to another host")
        return None

    async def _robots_refusal(self, url: str) -> FetchFailure | None:
        """Checks an address against robots.txt, which is read once per host."""
        robots = self.fetcher.robots
        origin = f"{urlsplit(url).scheme}://{_host_and_port(url)}"
        async with self._locks[f"robots of {origin}"]:
            if origin not in robots:
                robots[origin] = await self._rules(f"{origin}/robots.txt")
        rules = robots[origin]
        if isinstance(rules, FetchFailure):
            return rules
        return None if rules.can_fetch(url, ROBOT) else FetchFailure(url, "robots.txt forbids it")

    async def _rules(self, url: str) -> Protego | FetchFailure:
        """Reads robots.txt by RFC 9309: a missing file allows all, an unreachable one nothing."""
        result = await self._fetch(url, robots_file=True)
        if isinstance(result, Page):
            rules = Protego.parse(result.body.decode("utf-8", "replace"))
            host = self._host(url)
            host.pause = max(host.pause, min(rules.crawl_delay(ROBOT) or 0.0, LONGEST_CRAWL_DELAY))
            return rules
        if 400 <= result.status < 500:
            return Protego.parse("")
        if result.reason == PRIVATE:
            return result
        return replace(result, reason=f"robots.txt cannot be read: {result.reason}")

    def _host(self, url: str) -> _Host:
        loopback = _is_loopback(urlsplit(url).hostname or "")
        pause = 0.0 if loopback else max(self.fetcher.pause, self.pause)
        host = self.fetcher.hosts.setdefault(_host_and_port(url), _Host(pause))
        host.pause = max(host.pause, pause)
        return host

    @asynccontextmanager
    async def _slot(self, url: str) -> AsyncIterator[None]:
        """Allows one request per host at a time, after a pause, and a limited number of hosts."""
        host = self._host(url)
        async with self._locks[_host_and_port(url)]:
            await asyncio.sleep(max(0.0, host.last_request + host.pause - time.monotonic()))
            async with self._slots:
                yield
            host.last_request = time.monotonic()

    async def _attempts(self, url: str, *, html: bool) -> FetchResult | str:
        """Requests an address with retries. A redirect gives the next address."""
        # Not stamina or tenacity: results are values, not exceptions, and a server that asks for
        # too long a wait closes its host for all addresses.
        fetcher, host = self.fetcher, self._host(url)
        if host.closed:
            return host.closed
        for attempt in range(1, fetcher.attempts + 1):
            result = await self._request(url, html, attempt)
            if not isinstance(result, FetchFailure) or not result.retry:
                return result
            if result.wait > LONGEST_WAIT:
                reason = f"{result.reason}: the server asks to wait {result.wait:.0f} s"
                host.closed = replace(result, reason=reason)
                return host.closed
            if attempt < fetcher.attempts:
                await asyncio.sleep(result.wait)
        return result

    async def _request(self, url: str, html: bool, attempt: int) -> FetchResult | str:
        """Makes one request. A redirect gives the next address."""
        try:
            async with self.session.get(url, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308) and "Location" in response.headers:
                    return urljoin(url, response.headers["Location"])
                if response.status != 200:
                    later = response.status in (408, 429) or response.status >= 500
                    wait = self.fetcher.wait(attempt, response.headers)
                    return FetchFailure(
                        url, f"HTTP {response.status}", later, response.status, wait
                    )
                kind = response.content_type if "Content-Type" in response.headers else ""
                if html and kind and kind not in HTML_TYPES:
                    return FetchFailure(url, f"not HTML: {kind}")
                body = bytearray()
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > self.fetcher.max_bytes:
                        return FetchFailure(url, f"larger than {self.fetcher.max_bytes / 1e6:g} MB")
                return Page(url, url, bytes(body), kind, response.charset or "")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(getattr(error, "os_error", None), PrivateAddressError):
                return FetchFailure(url, PRIVATE)
            text, retry = next(
                (text, retry) for kind, text, retry in ERRORS if isinstance(error, kind)
            )
            reason = text.format(timeout=self.fetcher.timeout)
            return FetchFailure(url, reason, retry, wait=self.fetcher.wait(attempt))


def _host_and_port(url: str) -> str:
    """Removes all but host and port from an address."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- which addresses may be reached --------------------------------------------------------------

PRIVATE = "private address"
GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
NAT64 = ipaddress.ip_network("64:ff9b::/96")
METADATA = (ipaddress.ip_address("fd00:ec2::254"), ipaddress.ip_address("100.100.100.200"))
"""Addresses of cloud metadata services, besides the link-local ones."""


class PrivateAddressError(OSError):
    """An address that must not be reached."""


def public_socket(info: tuple[Any, ...]) -> socket.socket:
    """Creates a socket for a resolved address, which must be of the public internet."""
    family, kind, protocol, _, address = info
    if not is_public(address[0]):
        raise PrivateAddressError(PRIVATE)
    return socket.socket(family, kind, protocol)


def private_socket(info: tuple[Any, ...]) -> socket.socket:
    """Creates a socket for any resolved address except those of cloud metadata services."""
    family, kind, protocol, _, address = info
    ip = ipaddress.ip_address(address[0].partition("%")[0])
    if any(
        candidate.is_link_local or candidate in METADATA
        for candidate in (ip, _embedded_ipv4(ip) or ip)
    ):
        raise PrivateAddressError(PRIVATE)
    return socket.socket(family, kind, protocol)


def is_public(address: str) -> bool:
    """Tells whether an IP address, or the IPv4 address embedded in it, is public.

    >>> [is_public(ip) for ip in ("8.8.8.8", "10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1")]
    [True, False, False, False]
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast
    inner = _embedded_ipv4(ip)
    return is_public(str(inner)) if inner else ip in GLOBAL_IPV6 and ip.is_global


def _embedded_ipv4(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | None:
    """Extracts the IPv4 address embedded in an IPv6 address, if any."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour
