"""The ledger as a file: gzip-compressed lines of JSON, read and written one by one.

The first line is a header with the number of records. Each text has one line, before the first
call that uses it; each call has one line with all attempts at it.
"""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.records import Draw, Finish, Message, Request, Role, digest

VERSION = 5
MAX_LINE = 64 * 2**20
"""Bytes; no line that we write is longer."""
Count = Annotated[int, Field(ge=0, lt=2**63)]
NamedPart = Annotated[list[str], Field(min_length=2, max_length=2)]
"""A name and a text."""


class _Line(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


class Header(_Line):
    """The first line; its counts show whether the file is complete."""

    line: Literal["ledger"] = "ledger"
    version: Count = VERSION
    revision: str
    """The schema revision of the database that it comes from."""
    calls: Count
    attempts: Count
    evidence: Count = 0  # since format 2


class TextLine(_Line):
    """A text that later lines refer to by its hash."""

    line: Literal["text"] = "text"
    hash: str
    body: str


class CostLine(_Line):
    """The cost of an attempt."""

    input_tokens: Count
    output_tokens: Count
    usd: float | None
    cached_tokens: Count = 0  # since format 2


class AnswerLine(CostLine):
    """A completion; `text` is a hash, or None where others recorded a verdict without its words."""

    text: str | None
    finish: Finish
    model: str


class AttemptLine(_Line):
    """One attempt at a call, and the study that paid for it."""

    study: str | None
    tag: str | None
    stage: str
    at: AwareDatetime
    seconds: float
    said: AnswerLine | None
    error: str | None
    billed: CostLine | None = None  # without a completion; since format 2


class CallLine(_Line):
    """A call with the attempts at it, oldest first."""

    line: Literal["call"] = "call"
    key: str
    model: str
    endpoint: str
    messages: tuple[tuple[Role, tuple[str, ...]], ...]
    """The role of each message and the hashes of its parts."""
    temperature: int | float | None
    max_tokens: Count
    output_schema: Annotated[dict[str, Any], Field(min_length=1)] | None
    draw: tuple[str, Count, Count]
    web_search: bool = False  # since format 3
    attempts: tuple[AttemptLine, ...]
    check: str
    """A hash of the attempts; the key covers the request alone."""

    @property
    def texts(self) -> Iterator[str]:
        """The hashes of all texts of the request and the answers."""
        for _, parts in self.messages:
            yield from parts
        said = (attempt.said for attempt in self.attempts if attempt.said)
        yield from (answer.text for answer in said if answer.text is not None)

    def request(self, bodies: Mapping[str, str]) -> Request:
        """Returns the request."""
        messages = [Message(role, tuple(bodies[h] for h in parts)) for role, parts in self.messages]
        return Request(
            model=self.model,
            messages=tuple(messages),
            draw=Draw(*self.draw),
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            schema=self.output_schema,
            web_search=self.web_search,
        )


class WindowLine(_Line):
    """The window of an item of evidence."""

    country: str
    start: date | None
    end: date | None
    search: str


class EvidenceLine(_Line):
    """An item that a search found, or an item of a frozen pool."""

    line: Literal["evidence"] = "evidence"
    window: WindowLine | None
    pool: str | None
    text: str
    """A hash."""
    title: str
    url: str
    date: str
    source: str
    metadata: dict[str, Any]
    pair: bool
    truth: int | str | None
    cluster: str = ""  # since format 4
    fields: list[NamedPart] | None = None  # since format 5


AnyLine = Header | TextLine | CallLine | EvidenceLine
_LINES: TypeAdapter[AnyLine] = TypeAdapter(
    Annotated[AnyLine, Field(discriminator="line")], config=ConfigDict(defer_build=True)
)


def check_of(attempts: tuple[AttemptLine, ...]) -> str:
    """Returns the hash of attempts as they are written in the file."""
    # Fields that an older format did not have are not part of its hash.
    return digest([attempt.model_dump(mode="json", exclude_unset=True) for attempt in attempts])


class LedgerFile:
    """Reads and writes a ledger file; errors name the line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def writing(self) -> Iterator[Callable[[AnyLine], None]]:
        """Opens the file for writing; it appears when all is written, and is reproducible."""
        part = self.path.with_name(f"{self.path.name}.part")
        try:
            with part.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:

                def write(line: AnyLine) -> None:
                    text = json.dumps(line.model_dump(mode="json"), separators=(",", ":"))
                    file.write(text.encode() + b"\n")

                yield write
            os.replace(part, self.path)
        finally:
            part.unlink(missing_ok=True)

    def lines(self) -> Iterator[tuple[int, TextLine | CallLine | EvidenceLine]]:
        """Yields the numbered lines after the header; raises at the end if some are missing."""
        header: Header | None = None
        calls = attempts = evidence = number = 0
        for number, raw in self._raw():
            line = self._parsed(number, raw)
            if isinstance(line, Header) != (number == 1):
                raise self.error(number, "the first line, and no other, must be the header")
            if isinstance(line, Header):
                header = line
                continue
            if isinstance(line, CallLine):
                calls, attempts = calls + 1, attempts + len(line.attempts)
            evidence += isinstance(line, EvidenceLine)
            yield number, line
        if header is None:
            raise self.error(1, "the file is empty")
        read, stated = (calls, attempts, evidence), (header.calls, header.attempts, header.evidence)
        if read != stated:
            raise self.error(
                number,
                "the file ends with {} calls, {} attempts and {} items of evidence; it should "
                "hold {}, {} and {}".format(*read, *stated),
            )

    def error(self, number: int, reason: str) -> DesignError:
        """Returns the error for a line that cannot be imported."""
        return DesignError(f"{self.path}, line {number}: {reason}; nothing was imported")

    def _raw(self) -> Iterator[tuple[int, bytes]]:
        number = 1
        try:
            with gzip.open(self.path, "rb") as file:
                while raw := file.readline(MAX_LINE):
                    if not raw.endswith(b"\n"):
                        raise self.error(number, "the line does not end")
                    yield number, raw
                    number += 1
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            reason = "the file is damaged or cut off" if number > 1 else "this is no ledger file"
            raise self.error(number, f"{reason} ({error})") from error
        except OSError as error:
            raise NotFoundError(f"{self.path} cannot be read: {error.strerror}") from error

    def _parsed(self, number: int, raw: bytes) -> AnyLine:
        try:
            line = _LINES.validate_json(raw)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            reason = "this is no ledger file" if number == 1 else "the line is damaged"
            raise self.error(number, f"{reason} ({where}: {first['msg']})") from error
        if isinstance(line, Header) and line.version > VERSION:
            raise ConflictError(
                f"{self.path} is a ledger of format {line.version} by a newer judge-gym, this one "
                f"reads {VERSION}: upgrade judge-gym"
            )
        return line
