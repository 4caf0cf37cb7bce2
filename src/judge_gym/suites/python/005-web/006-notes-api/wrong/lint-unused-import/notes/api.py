"""The WSGI application."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIEnvironment

from notes.cursors import BadCursor, make_cursor, read_cursor
from notes.store import Note, Store
from wsgiref.util import request_uri

PATH = re.compile(r"/notes(?:/([1-9][0-9]*))?")
TAG = re.compile(r"[a-z0-9-]{1,20}")
KEY = re.compile(r"[!-~]{1,64}")
LIMIT = re.compile(r"[0-9]+")
BODY_BYTES = 65536
KEY_SECONDS = 86400


@dataclass(frozen=True)
class Answer:
    """What a request gets."""

    status: int
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)


class Refused(Exception):
    """A request cannot be answered."""

    def __init__(self, status: int, message: str, headers: list[tuple[str, str]]) -> None:
        super().__init__(message)
        self.answer = json_answer(status, {"error": message}, headers)


def json_answer(status: int, data: Any, headers: list[tuple[str, str]]) -> Answer:
    """Returns an answer with a JSON body."""
    body = json.dumps(data).encode()
    about = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return Answer(status, body, [*about, *headers])


def note_answer(status: int, note: Note, headers: list[tuple[str, str]]) -> Answer:
    """Returns an answer with one note."""
    return json_answer(status, note.to_json(), [("ETag", f'"{note.version}"'), *headers])


def refuse(status: int, message: str, *headers: tuple[str, str]) -> NoReturn:
    """Ends a request with an error."""
    raise Refused(status, message, list(headers))


def refuse_constant(name: str) -> NoReturn:
    """Refuses NaN and Infinity, which json reads by default."""
    raise ValueError(f"{name} is not JSON")


def read_body(environ: WSGIEnvironment) -> bytes:
    """Returns the bytes of a JSON body."""
    kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        refuse(415, "the body has to be application/json")
    length = environ.get("CONTENT_LENGTH", "")
    if not re.fullmatch("[0-9]+", length):
        refuse(411, "the length of the body is needed")
    if int(length) > BODY_BYTES:
        refuse(413, f"the body has more than {BODY_BYTES} bytes")
    body: bytes = environ["wsgi.input"].read(int(length))
    if len(body) < int(length):
        refuse(400, "the body is not complete")
    return body


def read_fields(body: bytes, required: bool) -> tuple[str | None, list[str] | None]:
    """Returns the text and the tags of a body."""
    try:
        data = json.loads(body.decode(), parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        refuse(400, "the body is not JSON")
    if not isinstance(data, dict) or not set(data) <= {"text", "tags"}:
        refuse(422, "the body has to be an object with text and tags")
    if "text" not in data and (required or "tags" not in data):
        refuse(422, "text is missing")
    if "text" in data:
        text = data["text"]
        if not isinstance(text, str) or not text.strip() or len(text) > 1000:
            refuse(422, "text has to be 1 to 1000 characters, and not blank")
    if "tags" in data:
        tags = data["tags"]
        valid = isinstance(tags, list) and len(tags) <= 10
        if not valid or not all(isinstance(tag, str) and TAG.fullmatch(tag) for tag in tags):
            refuse(422, "tags have to be at most 10 short names")
        if len(set(tags)) < len(tags):
            refuse(422, "a tag is there twice")
    return data.get("text"), data.get("tags")


class Api:
    """Answers requests about notes."""

    def __init__(self, clock: Callable[[], float], secret: bytes) -> None:
        self._clock = clock
        self._secret = secret
        self._store = Store()
        self._keys: dict[str, tuple[float, bytes, Answer]] = {}

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answers a request."""
        try:
            answer = self._respond(environ)
        except Refused as refused:
            answer = refused.answer
        phrase = HTTPStatus(answer.status).phrase
        start_response(f"{answer.status} {phrase}", answer.headers)
        return [answer.body]

    def _respond(self, environ: WSGIEnvironment) -> Answer:
        method = environ["REQUEST_METHOD"]
        path = PATH.fullmatch(environ.get("PATH_INFO", ""))
        if path is None:
            refuse(404, "there is no such path")
        allowed = ("DELETE", "GET", "PATCH") if path[1] else ("GET", "POST")
        if method not in allowed:
            refuse(405, f"{method} is not possible here", ("Allow", ", ".join(allowed)))
        if not path[1]:
            return self._list(environ) if method == "GET" else self._create(environ)
        note = self._store.find(int(path[1]))
        if note is None:
            refuse(404, "there is no such note")
        if method == "GET":
            return note_answer(200, note, [])
        self._check_version(environ.get("HTTP_IF_MATCH"), note)
        if method == "DELETE":
            self._store.remove(note)
            return Answer(204)
        text, tags = read_fields(read_body(environ), required=False)
        return note_answer(200, self._store.change(note, text, tags), [])

    def _check_version(self, if_match: str | None, note: Note) -> None:
        if if_match is None:
            refuse(428, "If-Match is needed")
        if if_match not in ("*", f'"{note.version}"'):
            refuse(412, f"the note has the version {note.version}")

    def _create(self, environ: WSGIEnvironment) -> Answer:
        body = read_body(environ)
        text, tags = read_fields(body, required=True)
        key = environ.get("HTTP_IDEMPOTENCY_KEY")
        if key is not None and not KEY.fullmatch(key):
            refuse(400, "the Idempotency-Key has to be 1 to 64 printable characters")
        now = self._clock()
        if key is not None and key in self._keys:
            since, earlier, answer = self._keys[key]
            if now - since < KEY_SECONDS:
                if earlier != body:
                    refuse(409, "the Idempotency-Key was used with another body")
                replayed = ("Idempotent-Replayed", "true")
                return Answer(answer.status, answer.body, [*answer.headers, replayed])
        note = self._store.add(text or "", tags or [], now)
        answer = note_answer(201, note, [("Location", f"/notes/{note.id}")])
        if key is not None:
            self._keys[key] = (now, body, answer)
        return answer

    def _list(self, environ: WSGIEnvironment) -> Answer:
        pairs = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        query = dict(pairs)
        if len(query) < len(pairs) or not set(query) <= {"limit", "tag", "cursor"}:
            refuse(400, "a parameter is unknown, or is there twice")
        text, tag = query.get("limit", "20"), query.get("tag")
        if not LIMIT.fullmatch(text) or not 1 <= int(text) <= 100:
            refuse(400, "limit has to be 1 to 100")
        before = None
        if "cursor" in query:
            try:
                before = read_cursor(self._secret, query["cursor"], tag)
            except BadCursor as error:
                refuse(400, str(error))
        notes, more = self._store.page(before, tag, int(text))
        following = make_cursor(self._secret, notes[-1].id, tag) if more else None
        data = {"notes": [note.to_json() for note in notes], "next": following}
        return json_answer(200, data, [])
