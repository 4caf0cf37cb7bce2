"""Reads JSON, JSON Lines and tables that others wrote, within limits on size and memory.

Everything read is data: nothing is executed. What cannot be read is refused with its place, before
anything is made of the rest.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from judge_gym.errors import DesignError, MissingFileError
from judge_gym.records.hashes import storable

MOST_BYTES, MOST_WIDE_BYTES = 96 << 20, 32 << 20
"""The largest document; one with letters beyond ASCII takes up to four times its size in memory."""
MOST_LINE = MOST_LINES = 64 << 20
"""The longest line, and the largest file of lines: all of its texts are kept."""
MOST_TOGETHER = 128 << 20
"""The largest sum of the files of a collection, which repeat the texts of items."""
MOST_VALUES = 3_000_000
"""The number of values of a JSON document: many small ones take far more memory than their text."""
HEAD = 1 << 18
"""The number of bytes that are read to see what a file is."""


def read_head(path: Path) -> str:
    """Reads the beginning of a file, to see what it is; empty if there is none to read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(HEAD).decode("utf-8-sig", "replace").lstrip()
    except (OSError, ValueError):
        return ""


def read_json(path: Path) -> Any:
    """Reads a JSON document; a repeated key would hide a value, and is refused."""
    raw = _read_bytes(path)
    if sum(raw.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
        raise DesignError(f"{path} has more than {MOST_VALUES:,} values; split it")
    text = _decode(raw, path)
    del raw
    return _parse_json(text, str(path))


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields the values of a JSON Lines file with their line numbers."""
    _check_size(path, MOST_LINES)
    with _open(path) as file:
        number, values = 0, 0
        while line := file.readline(MOST_LINE + 1):
            number += 1
            where = f"{path}:{number}"
            if len(line) > MOST_LINE:
                raise DesignError(f"{where} is longer than {MOST_LINE >> 20} MB")
            values += sum(line.count(mark) for mark in (b",", b"[", b"{"))
            if values > MOST_VALUES:
                raise DesignError(f"{path} has more than {MOST_VALUES:,} values; split it")
            text = _decode(line, path, f"line {number}")
            if text.strip():
                yield number, _parse_json(text, where)


def read_table(path: Path, delimiter: str = "\t") -> tuple[list[str], list[dict[str, str]]]:
    """Reads a table of text with a header; every row has as many cells as the header."""
    text = _decode(_read_bytes(path), path).replace("\r\n", "\n").replace("\r", "\n")
    reader = csv.reader(text.split("\n"), delimiter=delimiter)
    try:
        header = next(reader, [])
        rows = []
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise DesignError(
                    f"{path}:{reader.line_num}: {len(cells)} cells, and {len(header)} columns"
                )
            rows.append(dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise DesignError(f"{path}:{reader.line_num}: {error}") from error
    if repeated := sorted({name for name in header if header.count(name) > 1}):
        raise DesignError(f"{path} has the column {repeated[0]!r} twice")
    return header, rows


def text_of(fields: Mapping[str, Any], name: str, where: str, *, empty: bool = False) -> str:
    """Returns a field that is a text, and refuses any other value."""
    value = fields.get(name)
    if value is None or (value == "" and not empty):
        raise DesignError(f"{where}: {name!r} is missing")
    if not isinstance(value, str):
        raise DesignError(f"{where}: {name!r} is a text, not {shorten(value)}")
    if has_surrogates(value):
        raise DesignError(f"{where}: {name!r} has a lone surrogate, half of a character")
    return value


def mapping_of(value: Any, where: str) -> Mapping[str, Any]:
    """Returns a value that is a JSON object, and refuses any other."""
    if not isinstance(value, dict):
        raise DesignError(f"{where}: expected an object, not {shorten(value)}")
    return value


def list_of(value: Any, where: str) -> list[Any]:
    """Returns a value that is a list with elements, and refuses any other."""
    if not isinstance(value, list):
        raise DesignError(f"{where}: expected a list, not {shorten(value)}")
    if not value:
        raise DesignError(f"{where}: the list is empty")
    return value


def clean_text(text: str) -> str:
    """Makes a text storable; nearly all are, and need no copy."""
    return text if text.isascii() and "\x00" not in text else storable(text)


def consume(rows: list[Any]) -> Iterator[tuple[int, Any]]:
    """Yields the elements of a list with their number from 1, and lets go of each.

    A document and what is made of it are then not in memory together.
    """
    rows.reverse()
    for number in range(1, len(rows) + 1):
        yield number, rows.pop()


def shorten(value: Any) -> str:
    """Writes a value for a message, in at most about 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def has_surrogates(text: str) -> bool:
    """Whether a text has half of a character, which no file can store."""
    return any("\ud800" <= char <= "\udfff" for char in text) if not text.isascii() else False


def files_below(folder: Path, pattern: str, most: int = 5000) -> Sequence[Path]:
    """Lists the files below a folder in a fixed order, and refuses very many."""
    paths = list(islice((path for path in folder.rglob(pattern) if path.is_file()), most + 1))
    if len(paths) > most:
        raise DesignError(f"{folder} has more than {most:,} files {pattern}; name a part of it")
    check_together(paths, MOST_TOGETHER)
    return sorted(paths)


def check_together(files: Sequence[Path], most: int) -> None:
    """Refuses files that are too large together."""
    size = sum(path.stat().st_size for path in files)
    if size > most:
        raise DesignError(
            f"the {len(files)} files have {size >> 20} MB, and at most {most >> 20} are read "
            "together; name a part of them"
        )


def _read_bytes(path: Path) -> bytes:
    _check_size(path, MOST_BYTES)
    with _open(path) as file:
        return file.read(MOST_BYTES + 1)


def _check_size(path: Path, most: int) -> None:
    """Refuses what is no ordinary file, and what is too large to be read into memory."""
    if not path.exists():
        raise MissingFileError(f"there is no file {path}")
    if not path.is_file():
        raise DesignError(f"{path} is not a file")
    size = path.stat().st_size
    if size > most:
        raise DesignError(f"{path} has {size >> 20} MB, and at most {most >> 20} are read")
    if size > MOST_WIDE_BYTES:
        with _open(path) as file:
            ascii_only = all(chunk.isascii() for chunk in iter(lambda: file.read(1 << 20), b""))
        if not ascii_only:
            raise DesignError(
                f"{path} has {size >> 20} MB; of a file with letters beyond ASCII at most "
                f"{MOST_WIDE_BYTES >> 20} are read"
            )


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DesignError(f"{path} cannot be read: {error.strerror}") from error


def _decode(raw: bytes, path: Path, what: str = "it") -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path} cannot be read: {what} is not UTF-8; save it as such"
        raise DesignError(message) from error


def _parse_json(text: str, where: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            repeated = next(name for name in fields if names.count(name) > 1)
            raise DesignError(f"{where}: the key {shorten(repeated)} is there twice")
        return fields

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        place = where if error.lineno == 1 else f"{where}:{error.lineno}"
        raise DesignError(f"{place}: broken JSON: {error.msg}") from error
    except RecursionError:
        raise DesignError(f"{where}: JSON nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise DesignError(f"{where}: broken JSON: {error}") from error
