"""A folder becomes an archive."""

import hashlib
import os
import zlib
from pathlib import Path

from box.layout import FILE, FOLDER, MAGIC, BoxError, check_path


def pack(folder: str) -> bytes:
    """The archive of all below a folder."""
    root = Path(folder)
    entries = dict(_entry(root, path) for path in _leaves(root))
    made = bytearray(MAGIC)
    for name in sorted(entries):
        content = entries[name]
        body = content or b""
        made += len(name).to_bytes(2, "big") + name
        made.append(FOLDER if content is None else FILE)
        made += len(body).to_bytes(8, "big") + zlib.crc32(body).to_bytes(4, "big") + body
    made += bytes(2) + len(entries).to_bytes(4, "big")
    return bytes(made) + hashlib.sha256(made).digest()


def _leaves(folder: Path) -> list[Path]:
    """The files and empty folders below a folder."""
    found: list[Path] = []
    for path in folder.iterdir():
        if not (path.is_file() or path.is_dir()):
            raise BoxError(f"{path} is neither a file nor a folder")
        inner = _leaves(path) if path.is_dir() else []
        found += inner or [path]
    return found


def _entry(root: Path, path: Path) -> tuple[bytes, bytes | None]:
    name = path.relative_to(root).as_posix()
    check_path(name)
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError:
        raise BoxError(f"{os.fsencode(path)!r} is not UTF-8") from None
    if len(encoded) > 0xFFFF:
        raise BoxError(f"{name!r} is too long")
    return encoded, None if path.is_dir() else path.read_bytes()
