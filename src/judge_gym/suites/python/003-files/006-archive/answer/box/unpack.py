"""An archive becomes a folder."""

import hashlib
import zlib
from pathlib import Path

from box.layout import FILE, FOLDER, HASH, MAGIC, BoxError, check_path


class _Bytes:
    """Takes the parts of some data one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        """So many bytes."""
        part = self._data[self._at : self._at + count]
        if len(part) < count:
            raise BoxError("the archive ends too early")
        self._at += count
        return part

    def number(self, count: int) -> int:
        """A number of so many bytes."""
        return int.from_bytes(self.take(count), "big")

    @property
    def left(self) -> int:
        """How many bytes remain."""
        return len(self._data) - self._at


def entries(data: bytes) -> list[tuple[str, bytes | None]]:
    """Paths and contents of an archive."""
    if hashlib.sha256(data[:-HASH]).digest() != data[-HASH:]:
        raise BoxError("the checksum of the archive is wrong")
    source = _Bytes(data[:-HASH])
    if source.take(len(MAGIC)) != MAGIC:
        raise BoxError("this is no archive")
    found: list[tuple[str, bytes | None]] = []
    last = b""
    while size := source.number(2):
        name = source.take(size)
        if name <= last:
            raise BoxError("the entries are not in order")
        last = name
        found.append(_entry(name, source))
    if source.number(4) != len(found) or source.left:
        raise BoxError("the trailer does not fit the entries")
    paths = {path for path, _ in found}
    for path in paths:
        parts = path.split("/")
        if any("/".join(parts[:n]) in paths for n in range(1, len(parts))):
            raise BoxError(f"{path!r} stands below another entry")
    return found


def _entry(name: bytes, source: _Bytes) -> tuple[str, bytes | None]:
    try:
        path = name.decode("utf-8")
    except UnicodeDecodeError:
        raise BoxError(f"{name!r} is not UTF-8") from None
    check_path(path)
    kind, size, checksum = source.number(1), source.number(8), source.number(4)
    content = source.take(size)
    if zlib.crc32(content) != checksum:
        raise BoxError(f"the checksum of {path!r} is wrong")
    if kind not in (FILE, FOLDER) or kind == FOLDER and content:
        raise BoxError(f"{path!r} is of no known kind")
    return path, content if kind == FILE else None


def unpack(data: bytes, folder: str) -> None:
    """Write an archive into a folder."""
    found = entries(data)
    root = Path(folder)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise BoxError(f"{folder} is not an empty folder")
    root.mkdir(parents=True, exist_ok=True)
    for path, content in found:
        target = root / path
        if content is None:
            target.mkdir(parents=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
