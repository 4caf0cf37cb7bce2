"""Fetches pages politely, and only from the public internet.

One request at a time and a pause for each host, robots.txt, limits of size and time, and a short
patience with servers that fail. What became of an address is a record, never an exception.
"""

import asyncio
import ipaddress
import queue
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from protego import Protego

from judge_gym.sources.addresses import PRIVATE, PrivateAddressError, near_socket, public_socket
from judge_gym.sources.collecting import Outcome, Page, Refusal

ROBOT = "judge-gym"
USER_AGENT = f"{ROBOT}/{version(ROBOT)} (research; obeys robots.txt)"
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
HTML_TYPES = ("text/html", "application/xhtml+xml")
MAX_REDIRECTS = 5
LONGEST_WAIT = 60.0
"""A server that asks for a longer pause than this, in seconds, is not waited for."""
LONGEST_CRAWL_DELAY = 30.0


@dataclass(slots=True)
class _Host:
    """What is remembered of a host while the fetcher lives."""

    pause: float
    last: float = float("-inf")
    """When the last request ended."""
    closed: Refusal | None = None
    """Set once it asks for a longer wait than we have patience for."""


class Fetcher:
    """Fetches addresses. Politeness is kept for as long as the fetcher lives.

    Args:
        allow_private: Whether private and loopback addresses may be reached.
        concurrency: How many hosts are asked at once.
        pause: Seconds between two requests to a host; one's own machine needs none.
        timeout: Seconds for one request with its body.
        max_bytes: The largest body, after decompression.
        attempts: How often a request is tried at most.
        backoff: Seconds before the second attempt; each later wait is twice as long.
    """

    def __init__(
        self,
        *,
        allow_private: bool = False,
        concurrency: int = 8,
        pause: float = 1.0,
        timeout: float = 20.0,
        max_bytes: int = 10_000_000,
        attempts: int = 3,
        backoff: float = 1.0,
    ) -> None:
        self.allow_private = allow_private
        self.concurrency = concurrency
        self.pause = pause
        self.timeout = timeout
        self.max_bytes = max_bytes
        self.attempts = attempts
        self.backoff = backoff
        self.hosts: dict[str, _Host] = {}
        self.robots: dict[str, Protego | Refusal] = {}

    def fetch(
        self, urls: Sequence[str], *, html: bool = True, trusted: bool = False, pause: float = 0.0
    ) -> Generator[Outcome, None, None]:
        """What becomes of each address, as it becomes known.

        The work runs in a thread of its own: it does not matter whether the caller's thread has a
        running event loop, and Ctrl-C reaches the caller between two outcomes.

        Args:
            urls: The addresses, each once.
            html: Whether anything but HTML is refused.
            trusted: For an endpoint that the user set: it may be private, and robots.txt is not
                asked. Redirects must stay on its host.
            pause: Seconds between requests that these hosts are known to ask for.
        """
        inbox: queue.SimpleQueue[Outcome | BaseException | None] = queue.SimpleQueue()
        visits = _Round(self, inbox, html=html, trusted=trusted, pause=pause)
        thread = threading.Thread(target=visits.run, args=(list(dict.fromkeys(urls)),), daemon=True)
        thread.start()
        try:
            while (outcome := inbox.get()) is not None:
                if isinstance(outcome, BaseException):
                    raise outcome
                visits.taken()
                yield outcome
        finally:
            visits.stop()
            thread.join(timeout=5)

    def get(self, url: str, *, trusted: bool = False, pause: float = 0.0) -> Outcome:
        """What becomes of one address, whatever its type."""
        [outcome] = self.fetch([url], html=False, trusted=trusted, pause=pause)
        return outcome

    def wait(self, attempt: int, retry_after: str = "") -> float:
        """Seconds before the attempt after this one; a server's Retry-After goes first.

        >>> Fetcher(backoff=1.0).wait(2), Fetcher().wait(1, "7")
        (2.0, 7.0)
        """
        asked = retry_after.strip()
        if asked.isdecimal():
            return float(asked)
        try:
            until = parsedate_to_datetime(asked)
        except (ValueError, OverflowError):
            return self.backoff * 2.0 ** (attempt - 1)
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return max(0.0, (until - datetime.now(UTC)).total_seconds())


class _Round:
    """One call of `fetch`: a loop, a session and the locks that belong to them."""

    def __init__(
        self,
        fetcher: Fetcher,
        inbox: "queue.SimpleQueue[Outcome | BaseException | None]",
        *,
        html: bool,
        trusted: bool,
        pause: float,
    ) -> None:
        self._fetcher = fetcher
        self._inbox = inbox
        self._html = html
        self._trusted = trusted
        self._pause = pause
        self._loop = asyncio.new_event_loop()
        self._slots = asyncio.Semaphore(fetcher.concurrency)
        self._taken = asyncio.Semaphore(0)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._session: aiohttp.ClientSession

    # --- the thread ---

    def run(self, urls: Sequence[str]) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._visit_all(urls))
        except asyncio.CancelledError:
            pass
        except Exception as fault:  # whatever it is, the reader's thread raises it
            self._inbox.put(fault)
        finally:
            self._inbox.put(None)

    def taken(self) -> None:
        """The reader took an outcome; there is room for another."""
        self._call(self._taken.release)

    def stop(self) -> None:
        """End what is under way; called from the reader's thread."""
        self._call(lambda: [task.cancel() for task in asyncio.all_tasks(self._loop)])

    def _call(self, callback: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: everything is done
            self._loop.call_soon_threadsafe(callback)

    # --- the visits ---

    async def _visit_all(self, urls: Sequence[str]) -> None:
        fetcher = self._fetcher
        guarded = not (fetcher.allow_private or self._trusted)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, socket_factory=public_socket if guarded else near_socket
            ),
            headers={"User-Agent": USER_AGENT, "Accept": ACCEPT},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=fetcher.timeout),
            max_field_size=65_536,
            trust_env=False,
        ) as self._session:
            await asyncio.gather(*(self._visit(url) for url in urls))

    async def _visit(self, url: str, *, robots_file: bool = False) -> Outcome:
        """Fetch an address, hop by hop, and hand the outcome over.

        The turn is kept until the reader takes a page, so that pages do not pile up in memory.
        """
        outcome: Outcome = Refusal(url, f"more than {MAX_REDIRECTS} redirects")
        current = url
        for _ in range(MAX_REDIRECTS + 1):
            refusal = self._misaddressed(url, current)
            if not refusal and not robots_file and not self._trusted:
                refusal = await self._forbidden(current)
            if refusal:
                outcome = replace(refusal, url=url)
                break
            async with self._turn(current):
                found = await self._try(current, html=self._html and not robots_file)
                if isinstance(found, str):
                    current = found
                    continue
                outcome = replace(found, url=url)
                if not robots_file:
                    await self._deliver(outcome)
                return outcome
        if not robots_file:
            await self._deliver(outcome)
        return outcome

    async def _deliver(self, outcome: Outcome) -> None:
        self._inbox.put(outcome)
        await self._taken.acquire()

    def _misaddressed(self, start: str, url: str) -> Refusal | None:
        try:
            parts = urlsplit(url)
            host, home = parts.hostname, urlsplit(start).hostname
        except ValueError:
            return Refusal(url, "not a web address")
        if parts.scheme not in ("http", "https") or not host:
            return Refusal(url, "not a web address: neither http nor https")
        if self._trusted and host != home:
            return Refusal(url, "redirects to another host")
        return None

    async def _forbidden(self, url: str) -> Refusal | None:
        """Why robots.txt keeps us out; it is asked for once a host."""
        robots = self._fetcher.robots
        origin = f"{urlsplit(url).scheme}://{_host_name(url)}"
        async with self._locks[f"robots of {origin}"]:
            if origin not in robots:
                robots[origin] = await self._rules(f"{origin}/robots.txt")
        rules = robots[origin]
        if isinstance(rules, Refusal):
            return rules
        return None if rules.can_fetch(url, ROBOT) else Refusal(url, "robots.txt forbids it")

    async def _rules(self, url: str) -> Protego | Refusal:
        """A host's robots.txt as RFC 9309 reads it: absent allows, unreachable forbids."""
        outcome = await self._visit(url, robots_file=True)
        if isinstance(outcome, Page):
            rules = Protego.parse(outcome.body.decode("utf-8", "replace"))
            host = self._host(url)
            host.pause = max(host.pause, min(rules.crawl_delay(ROBOT) or 0.0, LONGEST_CRAWL_DELAY))
            return rules
        if 400 <= outcome.status < 500:
            return Protego.parse("")
        if outcome.reason == PRIVATE:
            return outcome
        return replace(outcome, reason=f"robots.txt cannot be read: {outcome.reason}")

    def _host(self, url: str) -> _Host:
        own = _own_machine(urlsplit(url).hostname or "")
        pause = 0.0 if own else max(self._fetcher.pause, self._pause)
        host = self._fetcher.hosts.setdefault(_host_name(url), _Host(pause))
        host.pause = max(host.pause, pause)
        return host

    @asynccontextmanager
    async def _turn(self, url: str) -> AsyncIterator[None]:
        """One request at a time and a pause for each host, some hosts at once."""
        host = self._host(url)
        async with self._locks[_host_name(url)]:
            await asyncio.sleep(max(0.0, host.last + host.pause - time.monotonic()))
            async with self._slots:
                yield
            host.last = time.monotonic()

    async def _try(self, url: str, *, html: bool) -> Outcome | str:
        """Fetch until it works, cannot work, or patience ends; a redirect is the next address."""
        # Not stamina or tenacity: outcomes are values, not exceptions, and a server that asks for
        # too long a wait closes its host for all addresses.
        fetcher, host = self._fetcher, self._host(url)
        if host.closed:
            return host.closed
        for attempt in range(1, fetcher.attempts + 1):
            outcome = await self._request(url, html, attempt)
            if not isinstance(outcome, Refusal) or not outcome.retry:
                return outcome
            if outcome.wait > LONGEST_WAIT:
                asked = f"{outcome.reason}: the server asks to wait {outcome.wait:.0f} s"
                host.closed = replace(outcome, reason=asked)
                return host.closed
            if attempt < fetcher.attempts:
                await asyncio.sleep(outcome.wait)
        return outcome

    async def _request(self, url: str, html: bool, attempt: int) -> Outcome | str:
        backoff = self._fetcher.wait(attempt)
        try:
            async with self._session.get(url, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308) and "Location" in answer.headers:
                    return urljoin(url, answer.headers["Location"])
                if answer.status != 200:
                    later = answer.status in (408, 429) or answer.status >= 500
                    wait = self._fetcher.wait(attempt, answer.headers.get("Retry-After", ""))
                    return Refusal(url, f"HTTP {answer.status}", later, answer.status, wait)
                kind = answer.content_type if "Content-Type" in answer.headers else ""
                if html and kind and kind not in HTML_TYPES:
                    return Refusal(url, f"not HTML: {kind}")
                body = bytearray()
                async for piece in answer.content.iter_any():
                    body += piece
                    if len(body) > self._fetcher.max_bytes:
                        return Refusal(url, f"larger than {self._fetcher.max_bytes / 1e6:g} MB")
                return Page(url, url, bytes(body), kind, answer.charset or "")
        except TimeoutError:
            reason = f"timed out after {self._fetcher.timeout:g} s"
            return Refusal(url, reason, True, wait=backoff)
        except aiohttp.ClientPayloadError:
            return Refusal(url, "truncated", True, wait=backoff)
        except aiohttp.ClientConnectorDNSError:
            return Refusal(url, "no such host", True, wait=backoff)
        except aiohttp.ClientSSLError:
            return Refusal(url, "no secure connection")
        except aiohttp.ClientConnectorError as fault:
            if isinstance(fault.os_error, PrivateAddressError):
                return Refusal(url, PRIVATE)
            return Refusal(url, "cannot connect", True, wait=backoff)
        except (aiohttp.ClientConnectionError, OSError):
            return Refusal(url, "connection lost", True, wait=backoff)
        except (aiohttp.InvalidURL, ValueError):
            return Refusal(url, "not a web address")
        except aiohttp.ClientError:
            return Refusal(url, "broken HTTP answer")


def _host_name(url: str) -> str:
    """Host and port, without user and password."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def _own_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
