"""The WSGI application."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from wsgiref.types import StartResponse, WSGIEnvironment

from static.etags import make_etag, matches
from static.ranges import NotSatisfiable, parse_range


@dataclass(frozen=True)
class File:
    """A file in memory."""

    content: bytes
    content_type: str
    modified: datetime


def format_date(date: datetime) -> str:
    """Returns an HTTP date."""
    return format_datetime(date, usegmt=True)


def parse_date(text: str | None) -> datetime | None:
    """Returns the date of a header, if it is one."""
    try:
        date = datetime.strptime(text or "", "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    except ValueError:
        return None
    return date if format_date(date) == text else None


@dataclass(frozen=True)
class Response:
    """A status with its headers and its body."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes = b""


class Static:
    """Serves files by their paths."""

    def __init__(self, files: Mapping[str, File]) -> None:
        self._files = dict(files)

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answers a request."""
        response = self._respond(environ)
        headers = response.headers
        if not response.status.startswith("304"):
            headers = [*headers, ("Content-Length", str(len(response.body)))]
        start_response(response.status, headers)
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else response.body]

    def _respond(self, environ: WSGIEnvironment) -> Response:
        file = self._files.get(environ.get("PATH_INFO", ""))
        method = environ["REQUEST_METHOD"]
        if file is None:
            return Response("404 Not Found", [])
        if method not in ("GET", "HEAD"):
            return Response("405 Method Not Allowed", [("Allow", "GET, HEAD")])
        etag = make_etag(file.content)
        modified = file.modified.astimezone(UTC).replace(microsecond=0)
        validators = [("ETag", etag), ("Last-Modified", format_date(modified))]
        if self._fails(environ, etag, modified):
            return Response("412 Precondition Failed", [])
        if self._unchanged(environ, etag, modified):
            return Response("304 Not Modified", validators)
        headers = [*validators, ("Content-Type", file.content_type), ("Accept-Ranges", "bytes")]
        size = len(file.content)
        if_range = environ.get("HTTP_IF_RANGE")
        wanted = environ.get("HTTP_RANGE")
        if method == "GET" and wanted is not None and if_range in (None, etag, validators[1][1]):
            try:
                part = parse_range(wanted, size)
            except NotSatisfiable:
                unsatisfied = [("Content-Range", f"bytes */{size}")]
                return Response("416 Range Not Satisfiable", unsatisfied)
            first, last = part
            headers.append(("Content-Range", f"bytes {first}-{last}/{size}"))
            return Response("206 Partial Content", headers, file.content[first : last + 1])
        return Response("200 OK", headers, file.content)

    def _fails(self, environ: WSGIEnvironment, etag: str, modified: datetime) -> bool:
        tags = environ.get("HTTP_IF_MATCH")
        if tags is not None:
            return not matches(tags, etag, weak=False)
        date = parse_date(environ.get("HTTP_IF_UNMODIFIED_SINCE"))
        return date is not None and date < modified

    def _unchanged(self, environ: WSGIEnvironment, etag: str, modified: datetime) -> bool:
        tags = environ.get("HTTP_IF_NONE_MATCH")
        if tags is not None:
            return matches(tags, etag, weak=True)
        date = parse_date(environ.get("HTTP_IF_MODIFIED_SINCE"))
        return date is not None and date >= modified
