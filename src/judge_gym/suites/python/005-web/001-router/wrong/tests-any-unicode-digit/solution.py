"""A WSGI application that calls handlers by the path."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIEnvironment

CONVERTERS = {"int": r"\d+", "": "[^/]+", "path": ".+"}
RANKS = {"literal": 0, "int": 1, "": 2, "path": 3}
SEGMENT = re.compile(r"<(?:(int|path):)?(\w+)>")


@dataclass
class Route:
    """A pattern with the handlers of its methods."""

    segments: list[tuple[str, str]]  # the kind, and the name or the literal text
    handlers: dict[str, Callable[..., str]] = field(default_factory=dict)

    @property
    def rank(self) -> list[int]:
        """Sorts more specific patterns first."""
        return [RANKS[kind] for kind, _ in self.segments]

    @property
    def allowed(self) -> str:
        """The methods that it answers."""
        methods = {*self.handlers, "OPTIONS"}
        if "GET" in methods:
            methods.add("HEAD")
        return ", ".join(sorted(methods))

    def match(self, path: str) -> dict[str, Any] | None:
        """Returns the values of a path, if it matches."""
        parts = [
            re.escape(name) if kind == "literal" else f"(?P<{name}>{CONVERTERS[kind]})"
            for kind, name in self.segments
        ]
        match = re.fullmatch("/" + "/".join(parts), path, re.DOTALL)
        if match is None:
            return None
        kinds = {name: kind for kind, name in self.segments if kind != "literal"}
        texts = match.groupdict()
        return {name: int(texts[name]) if kinds[name] == "int" else texts[name] for name in kinds}


def parse(pattern: str) -> list[tuple[str, str]]:
    """Returns the segments of a pattern."""
    if not pattern.startswith("/"):
        raise ValueError(f"a pattern begins with /: {pattern!r}")
    segments: list[tuple[str, str]] = []
    for text in pattern[1:].split("/"):
        match = SEGMENT.fullmatch(text)
        if match is not None and match[2].isidentifier():
            segments.append((match[1] or "", match[2]))
        elif "<" in text or ">" in text:
            raise ValueError(f"not a converter: {text!r}")
        else:
            segments.append(("literal", text))
    kinds = [kind for kind, _ in segments]
    names = [name for kind, name in segments if kind != "literal"]
    if "path" in kinds[:-1]:
        raise ValueError(f"a path has to be last: {pattern!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"a name stands twice in {pattern!r}")
    return segments


class Router:
    """Handlers by method and pattern."""

    def __init__(self) -> None:
        self._routes: dict[str, Route] = {}

    def add(self, method: str, pattern: str, handler: Callable[..., str]) -> None:
        """Adds a handler."""
        route = self._routes.get(pattern) or Route(parse(pattern))
        if method in route.handlers:
            raise ValueError(f"{method} {pattern} was added before")
        route.handlers[method] = handler
        self._routes[pattern] = route

    def url(self, pattern: str, **values: Any) -> str:
        """Returns the path of a pattern with values."""
        if pattern not in self._routes:
            raise LookupError(f"unknown pattern {pattern!r}")
        segments = self._routes[pattern].segments
        names = {name for kind, name in segments if kind != "literal"}
        if names != set(values):
            raise TypeError(f"{pattern} has the values {sorted(names)}, not {sorted(values)}")
        parts = []
        for kind, name in segments:
            if kind == "literal":
                parts.append(quote(name, safe=""))
                continue
            text = str(values[name])
            if not re.fullmatch(CONVERTERS[kind], text, re.DOTALL):
                raise ValueError(f"{text!r} does not match {name}")
            parts.append(quote(text, safe="/" if kind == "path" else ""))
        return "/" + "/".join(parts)

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answers a request."""
        method = environ["REQUEST_METHOD"]
        headers: list[tuple[str, str]] = []
        route, values = self._find(environ.get("PATH_INFO", ""))
        status = "200 OK"
        if route is None:
            status = text = "404 Not Found"
        elif method in route.handlers:
            text = route.handlers[method](**values)
        elif method == "HEAD" and "GET" in route.handlers:
            text = route.handlers["GET"](**values)
        elif method == "OPTIONS":
            start_response("204 No Content", [("Allow", route.allowed)])
            return [b""]
        else:
            status = text = "405 Method Not Allowed"
            headers.append(("Allow", route.allowed))
        body = text.encode()
        headers.append(("Content-Type", "text/plain; charset=utf-8"))
        headers.append(("Content-Length", str(len(body))))
        start_response(status, headers)
        return [b"" if method == "HEAD" else body]

    def _find(self, raw: str) -> tuple[Route | None, dict[str, Any]]:
        try:
            path = raw.encode("latin-1").decode()
        except UnicodeError:
            return None, {}
        for route in sorted(self._routes.values(), key=lambda each: each.rank):
            values = route.match(path)
            if values is not None:
                return route, values
        return None, {}
