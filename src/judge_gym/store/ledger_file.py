"""The ledger as a file that travels: gzip-compressed lines of JSON, read and written one by one.

The first line says what the file is and how much it holds. A text stands once, in a line of its own
before the first call that uses it; a call stands with every attempt at it.
"""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.records import Draw, Finish, Message, Request, Role, digest

VERSION = 3
MAX_LINE = 64 * 2**20
"""Bytes; a line that goes on beyond them is no line of ours."""
Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Header(_Line):
    """What the file is; a file that was cut off does not hold what it says here."""

    line: Literal["ledger"] = "ledger"
    version: Count = VERSION
    revision: str
    """The schema of the database that it comes from."""
    calls: Count
    attempts: Count
    evidence: Count = 0  # since format 2


class TextLine(_Line):
    """A text that calls and answers below refer to by its hash."""

    line: Literal["text"] = "text"
    hash: str
    body: str


class Billed(_Line):
    """What an attempt took."""

    input_tokens: Count
    output_tokens: Count
    usd: float | None
    cached_tokens: Count = 0  # since format 2


class Said(Billed):
    """A completion; `text` is a hash."""

    text: str
    finish: Finish
    model: str


class Attempt(_Line):
    """One attempt at a call, and who paid for it."""

    study: str | None
    tag: str | None
    stage: str
    at: datetime
    seconds: float
    said: Said | None
    error: str | None
    billed: Billed | None = None  # without a completion; since format 2


class CallLine(_Line):
    """A question with the attempts at it, oldest first."""

    line: Literal["call"] = "call"
    key: str
    model: str
    endpoint: str
    messages: tuple[tuple[Role, tuple[str, ...]], ...]
    """Roles, and the hashes of the parts of what was said."""
    temperature: int | float | None
    max_tokens: Count
    output_schema: Annotated[dict[str, Any], Field(min_length=1)] | None
    draw: tuple[str, Count, Count]
    web_search: bool = False  # since format 3
    attempts: tuple[Attempt, ...]
    check: str
    """A hash of the attempts, since the key covers the question alone."""

    @property
    def texts(self) -> Iterator[str]:
        """The hashes of all that was asked and answered."""
        for _, parts in self.messages:
            yield from parts
        yield from (attempt.said.text for attempt in self.attempts if attempt.said)

    def request(self, bodies: Mapping[str, str]) -> Request:
        """What was asked."""
        asked = [Message(role, tuple(bodies[h] for h in parts)) for role, parts in self.messages]
        return Request(
            model=self.model,
            messages=tuple(asked),
            draw=Draw(*self.draw),
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            schema=self.output_schema,
            web_search=self.web_search,
        )


class WindowLine(_Line):
    """Where and when evidence comes from, and the search that found it."""

    country: str
    start: date | None
    end: date | None
    search: str


class EvidenceLine(_Line):
    """An item that a search found, or one of a pool that was frozen under a name."""

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


AnyLine = Header | TextLine | CallLine | EvidenceLine
_LINES: TypeAdapter[AnyLine] = TypeAdapter(Annotated[AnyLine, Field(discriminator="line")])


def check_of(attempts: tuple[Attempt, ...]) -> str:
    """The hash of attempts as their file says them."""
    # What an older format did not say was no part of its check.
    return digest([attempt.model_dump(mode="json", exclude_unset=True) for attempt in attempts])


def utc(moment: datetime) -> datetime:
    """A moment as the database keeps it, with its zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class LedgerFile:
    """A file of lines, with faults that name theirs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def writing(self) -> Iterator[Callable[[AnyLine], None]]:
        """Write lines; the file is there when all of them are, and the same lines make it alike."""
        part = self.path.with_name(f"{self.path.name}.part")
        try:
            with part.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:

                def write(line: AnyLine) -> None:
                    said = json.dumps(line.model_dump(mode="json"), separators=(",", ":"))
                    file.write(said.encode() + b"\n")

                yield write
            os.replace(part, self.path)
        finally:
            part.unlink(missing_ok=True)

    def lines(self) -> Iterator[tuple[int, TextLine | CallLine | EvidenceLine]]:
        """The numbered lines behind the first; whether they are all there is checked at the end."""
        header: Header | None = None
        calls = attempts = evidence = number = 0
        for number, raw in self._raw():
            line = self._parsed(number, raw)
            if isinstance(line, Header) != (number == 1):
                raise self.fault(number, "the first line, and no other, says what the file holds")
            if isinstance(line, Header):
                header = line
                continue
            if isinstance(line, CallLine):
                calls, attempts = calls + 1, attempts + len(line.attempts)
            evidence += isinstance(line, EvidenceLine)
            yield number, line
        if header is None:
            raise self.fault(1, "there is nothing in it")
        held, said = (calls, attempts, evidence), (header.calls, header.attempts, header.evidence)
        if held != said:
            raise self.fault(
                number,
                "the file ends with {} calls, {} attempts and {} items of evidence; it should "
                "hold {}, {} and {}".format(*held, *said),
            )

    def fault(self, number: int, what: str) -> DesignError:
        """Why a line is refused."""
        return DesignError(f"{self.path}, line {number}: {what}; nothing was imported")

    def _raw(self) -> Iterator[tuple[int, bytes]]:
        number = 1
        try:
            with gzip.open(self.path, "rb") as file:
                while raw := file.readline(MAX_LINE):
                    if not raw.endswith(b"\n"):
                        raise self.fault(number, "the line does not end")
                    yield number, raw
                    number += 1
        except (gzip.BadGzipFile, EOFError, zlib.error) as fault:
            what = "the file is damaged or cut off" if number > 1 else "this is no ledger file"
            raise self.fault(number, f"{what} ({fault})") from fault
        except OSError as fault:
            raise NotFoundError(f"{self.path} cannot be read: {fault.strerror}") from fault

    def _parsed(self, number: int, raw: bytes) -> AnyLine:
        try:
            line = _LINES.validate_json(raw)
        except ValidationError as fault:
            first = fault.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            what = "this is no ledger file" if number == 1 else "the line is damaged"
            raise self.fault(number, f"{what} ({where}: {first['msg']})") from fault
        if isinstance(line, Header) and line.version > VERSION:
            raise ConflictError(
                f"{self.path} is a ledger of format {line.version} by a newer judge-gym, this one "
                f"reads {VERSION}: upgrade judge-gym"
            )
        return line
