"""Records of changes: a length, a checksum, and the changes."""

import struct
import zlib
from collections.abc import Iterator, Mapping

HEAD = struct.Struct(">II")
CHANGE = struct.Struct(">IIB")
Changes = Mapping[bytes, bytes | None]


def encoded(changes: Changes) -> bytes:
    """A record."""
    body = bytearray()
    for key, value in changes.items():
        body += CHANGE.pack(len(key), len(value or b""), value is not None) + key + (value or b"")
    return HEAD.pack(len(body), _checksum(len(body), bytes(body))) + body


def records(data: bytes) -> Iterator[tuple[Changes, int]]:
    """The whole records at the beginning of a log, each with the offset after it."""
    at = 0
    while at + HEAD.size <= len(data):
        size, checksum = HEAD.unpack_from(data, at)
        body = data[at + HEAD.size : at + HEAD.size + size]
        if not size or len(body) < size or not checksum:
            return
        at += HEAD.size + size
        yield _decoded(body), at


def _checksum(size: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(size.to_bytes(4, "big")))


def _decoded(body: bytes) -> Changes:
    changes: dict[bytes, bytes | None] = {}
    at = 0
    while at < len(body):
        key_size, value_size, present = CHANGE.unpack_from(body, at)
        at += CHANGE.size
        key = body[at : at + key_size]
        at += key_size
        changes[key] = body[at : at + value_size] if present else None
        at += value_size
    return changes
