"""Parses multipart/form-data piece by piece."""

import re
from dataclasses import dataclass
from typing import Literal

PARAMETER = re.compile(
    r"""[ \t]*;[ \t]*(?:([^=;" \t]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;"]*)))?[ \t]*(?=;|\Z)""",
    re.DOTALL,
)
BOUNDARY = re.compile(r"[A-Za-z0-9'()+_,\-./:=? ]{0,69}[A-Za-z0-9'()+_,\-./:=?]")


class MultipartError(ValueError):
    """A body is not valid."""


class TooLarge(MultipartError):
    """A body exceeds a limit."""


@dataclass(frozen=True)
class Part:
    """A field or a file."""

    name: str
    filename: str | None
    headers: dict[str, str]
    content: bytes


@dataclass(frozen=True)
class Limits:
    """How large a body may be."""

    parts: int = 100
    header_bytes: int = 8192
    part_bytes: int = 1 << 20


def parameters_of(header: str) -> tuple[str, dict[str, str]]:
    """Returns the value of a header in lower case, and its parameters."""
    value, semicolon, _ = header.partition(";")
    parameters: dict[str, str] = {}
    position = len(value)
    while semicolon and position < len(header):
        match = PARAMETER.match(header, position)
        if match is None:
            raise MultipartError(f"not a parameter: {header[position:]!r}")
        position = match.end()
        name, quoted, plain = match.groups()
        if name is None:
            continue
        text = plain.strip(" \t") if quoted is None else re.sub(r'\\(["\\])', r"\1", quoted)
        parameters.setdefault(name.lower(), text)
    return value.strip(" \t").lower(), parameters


def boundary_of(content_type: str) -> bytes:
    """Returns the boundary that a Content-Type names."""
    kind, parameters = parameters_of(content_type)
    boundary = parameters.get("boundary", "")
    if kind != "multipart/form-data" or not BOUNDARY.fullmatch(boundary):
        raise MultipartError(f"not a form with a boundary: {content_type!r}")
    return boundary.encode()


def headers_of(block: bytes) -> dict[str, str]:
    """Returns the headers of a part by their names in lower case."""
    headers: dict[str, str] = {}
    for line in block.split(b"\r\n")[:-1]:
        try:
            name, colon, value = line.decode().partition(":")
        except UnicodeDecodeError as error:
            raise MultipartError("a header is not UTF-8") from error
        name = name.lower()
        if not colon or not name or " " in name or "\t" in name or name in headers:
            raise MultipartError(f"not a header: {line!r}")
        headers[name] = value.strip(" \t")
    return headers


class Parser:
    """Finds the parts of a body."""

    def __init__(self, boundary: bytes, limits: Limits | None = None) -> None:
        self._delimiter = b"\r\n--" + boundary
        self._limits = limits or Limits()
        self._state: Literal["before", "headers", "content", "after", "failed"] = "before"
        self._buffer = bytearray(b"\r\n")
        self._scanned = 0
        self._count = 0
        self._headers: dict[str, str] = {}
        self._disposition: dict[str, str] = {}

    def feed(self, data: bytes) -> list[Part]:
        """Takes the next bytes; returns the parts that they complete."""
        if self._state == "failed":
            raise MultipartError("the body was not valid before")
        self._buffer += data
        parts: list[Part] = []
        try:
            while self._step(parts):
                pass
        except MultipartError:
            self._state = "failed"
            self._buffer.clear()
            raise
        return parts

    def finish(self) -> None:
        """Ends the body."""
        if self._state != "after":
            self._state = "failed"
            raise MultipartError("the body ends before its last delimiter")

    def _step(self, parts: list[Part]) -> bool:
        """Reads a delimiter, or the headers of a part; returns whether it could."""
        if self._state == "after":
            self._buffer.clear()
            return False
        if self._state == "headers":
            return self._read_headers()
        end = self._find_delimiter()
        rest = len(self._delimiter) + 2
        if self._state == "content":
            if (len(self._buffer) - rest if end is None else end) > self._limits.part_bytes:
                raise TooLarge("a part is too large")
        elif end is None:
            del self._buffer[:-rest]
        if end is None:
            self._scanned = max(0, len(self._buffer) - rest)
            return False
        if self._state == "content":
            name, filename = self._disposition["name"], self._disposition.get("filename")
            parts.append(Part(name, filename, self._headers, bytes(self._buffer[:end])))
        last = self._buffer[end + rest - 2 : end + rest] == b"--"
        del self._buffer[: end + rest]
        self._state = "after" if last else "headers"
        self._scanned = 0
        if not last:
            self._count += 1
            if self._count > self._limits.parts:
                raise TooLarge("there are too many parts")
        return True

    def _find_delimiter(self) -> int | None:
        position = self._buffer.find(self._delimiter, self._scanned)
        while position >= 0:
            after = position + len(self._delimiter)
            if self._buffer[after : after + 2] in (b"\r\n", b"--"):
                return position
            position = self._buffer.find(self._delimiter, position + 1)
        return None

    def _read_headers(self) -> bool:
        end = 0
        if not self._buffer.startswith(b"\r\n"):
            end = self._buffer.find(b"\r\n\r\n") + 2
            if end == 1:
                if len(self._buffer) > self._limits.header_bytes + 4:
                    raise TooLarge("the headers of a part are too large")
                return False
        if end > self._limits.header_bytes:
            raise TooLarge("the headers of a part are too large")
        self._headers = headers_of(bytes(self._buffer[:end]))
        value, self._disposition = parameters_of(self._headers.get("content-disposition", ""))
        if value != "form-data" or "name" not in self._disposition:
            raise MultipartError("a part has no name")
        del self._buffer[: end + 2]
        self._state = "content"
        return True
