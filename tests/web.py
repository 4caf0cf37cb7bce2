"""A web server on loopback that answers as it is told and keeps what it is asked."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

HTML = "text/html; charset=utf-8"
RSS = "application/rss+xml; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """With names in lower case."""
    header_names: tuple[str, ...]
    """In lower case, as often as they came."""
    body: bytes
    at: float
    """When, in seconds of the monotonic clock."""


@dataclass(frozen=True)
class Answer:
    """What the server says."""

    body: str | bytes = ""
    status: int = 200
    type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before anything is said."""
    missing: int = 0
    """Bytes that the header promises and the body does not hold."""
    repeat: int = 1
    """How often the body is sent, so that nobody need hold a page of any size."""


Route = Answer | str | Callable[[Asked], Answer]


class Web:
    """A server with routes; an unknown one is a 404.

    A route's answers are given one after the other, the last one from then on.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._routes: dict[str, list[Route]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web._handle(self)

            do_POST = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "Web":
        serve = self._server.serve_forever
        threading.Thread(target=serve, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def on(self, path: str, *answers: Route) -> str:
        """Have a path answered; its whole address."""
        self._routes[path] = list(answers)
        return self.url + path

    def paths(self) -> list[str]:
        """The paths that were asked for, in order, without robots.txt."""
        return [asked.path for asked in self.asked if asked.path != "/robots.txt"]

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        asked = Asked(
            handler.command,
            parts.path,
            {name: values[-1] for name, values in parse_qs(parts.query).items()},
            {name.lower(): value for name, value in handler.headers.items()},
            tuple(name.lower() for name in handler.headers),
            handler.rfile.read(int(handler.headers.get("Content-Length") or 0)),
            time.monotonic(),
        )
        with self._lock:
            self.asked.append(asked)
            routes = self._routes.get(parts.path, [Answer("nothing here", 404)])
            route = routes.pop(0) if len(routes) > 1 else routes[0]
        answer = route(asked) if callable(route) else route
        answer = Answer(answer) if isinstance(answer, str) else answer
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        self._closing.wait(answer.delay)
        try:
            handler.send_response(answer.status)
            handler.send_header("Content-Type", answer.type)
            handler.send_header("Content-Length", str(len(body) * answer.repeat + answer.missing))
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            handler.end_headers()
            for _ in range(answer.repeat):
                handler.wfile.write(body)
        except ConnectionError:
            pass  # the client has heard enough


def page(title: str, *paragraphs: str, date: str = "", site: str = "The Wire") -> str:
    """A page with an article between what surrounds articles."""
    stated = f'<meta property="article:published_time" content="{date}">' if date else ""
    text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
    return (
        f'<html lang="en"><head><title>{escape(title)}</title>{stated}'
        f'<meta property="og:site_name" content="{escape(site)}"></head><body>'
        '<nav><a href="/">Home</a> <a href="/about">About us</a></nav>'
        f"<article><h1>{escape(title)}</h1>{text}</article>"
        "<footer>All rights reserved</footer></body></html>"
    )


def story(subject: str, sentences: int = 8) -> str:
    """A paragraph that is like no other subject's."""
    return " ".join(
        f"{subject} was debated in session {number} of the {subject} committee of Norway."
        for number in range(1, sentences + 1)
    )


def rss(*items: Mapping[str, str], language: str = "", title: str = "The Wire") -> Answer:
    """An RSS feed; an item has title, link, date (as RFC 822 has it), description, content."""
    names = {"date": "pubDate", "content": "content:encoded"}
    rows = "".join(
        "<item>"
        + "".join(
            f"<{names.get(name, name)}>{escape(value)}</{names.get(name, name)}>"
            for name, value in item.items()
        )
        + "</item>"
        for item in items
    )
    stated = f"<language>{language}</language>" if language else ""
    return Answer(
        '<?xml version="1.0" encoding="utf-8"?>'
        '<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/">'
        f"<channel><title>{escape(title)}</title>{stated}{rows}</channel></rss>",
        type=RSS,
    )
