"""Other people's files, read with limits: JSON, JSON lines, CSV tables and zip archives.

Nothing here runs code from a file. Every limit is checked while a file is read, so that a file of
any size takes little memory; what does not fit is one `DesignError`.
"""

import codecs
import csv
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from judge_gym.errors import DesignError

LARGEST_RECORD = 64 * 2**20
"""The bytes of one line, one element of a JSON array or one file of an archive; of text that is not
ASCII, which takes up to four times as much memory, a quarter."""
LARGEST_ARCHIVE = 4 * 2**30
"""The bytes of all files of an archive, uncompressed."""
LARGEST_DIRECTORY = 16 * 2**20
"""The bytes of an archive's list of files, which is read before anything else."""
MOST_VALUES = 2_000_000
"""The values of one record: brackets take one byte of a file, and fifty of memory."""
MOST_ROWS = 1_000_000
"""The rows of a file."""
MOST_FILES = 1000
"""The files of a folder."""
MOST_LOOKED_AT = 50
"""The files of a folder in which its format must show."""
HEAD = 4 * 2**20
"""The bytes of a file in which its format must show."""
_CHUNK = 2**18
_COUNTED_FROM = 2**20
"""Shorter records hold few values whatever they are made of."""
_ZSTANDARD = 93
_VISIBLE = re.compile(r"[^ \t\r\n]")
_DECODER = json.JSONDecoder()


def open_file(path: Path) -> IO[bytes]:
    """Opens a file; one that cannot be read is a `DesignError`."""
    try:
        return path.open("rb")
    except OSError as error:
        raise DesignError(f"{path}: {error.strerror}") from error


def files_of(path: Path, test: Callable[[Path], bool], *suffixes: str) -> list[Path]:
    """Lists the files of a folder and its folders that pass a test, or the file itself."""
    if not path.is_dir():
        return [path]
    files = []
    for file in path.rglob("*"):
        if file.suffix.lower() in suffixes and file.is_file() and not file.is_symlink():
            files.append(file)
        if len(files) > MOST_FILES:
            raise DesignError(f"{path} holds more than {MOST_FILES} files; import a part of it")
    passed = [file for file in sorted(files) if test(file)]
    if not passed:
        raise DesignError(f"{path} holds no file of this format")
    return passed


def some_file(path: Path, test: Callable[[Path], bool], *suffixes: str) -> bool:
    """Whether a file, or one of the first files of a folder, passes a test."""
    if not path.is_dir():
        return path.suffix.lower() in suffixes and test(path)
    files = (file for file in path.rglob("*") if file.suffix.lower() in suffixes)
    return any(test(file) for file in islice(files, MOST_LOOKED_AT) if file.is_file())


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Returns an object of a JSON document; nothing as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DesignError(f"{_excerpt(value)} stands where an object should be")
    return value


def as_list(value: Any) -> Sequence[Any]:
    """Returns a list of a JSON document; nothing as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise DesignError(f"{_excerpt(value)} stands where a list should be")
    return value


@contextmanager
def errors_of(where: str) -> Iterator[None]:
    """Says in errors where in a file they are."""
    try:
        yield
    except DesignError as error:
        raise DesignError(f"{where}: {error.message}", choices=error.choices) from error


def _excerpt(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


class JsonReader:
    """Reads a JSON document part by part, and holds one part in memory.

    What `keys` and `elements` announce is read, or skipped, before they are asked for more.
    """

    def __init__(self, file: IO[bytes], name: str, at_most: float = float("inf")) -> None:
        """Starts at the beginning of a document.

        Args:
            file: what is read.
            name: its name in messages.
            at_most: the bytes after which reading ends with an error.
        """
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._name = name
        self._left = at_most
        self._text = ""
        self._position = 0

    def peek(self) -> str:
        """Returns the next character that is not white space; at the end, the empty string."""
        while True:
            if match := _VISIBLE.search(self._text, self._position):
                self._position = match.start()
                return match[0]
            self._position = len(self._text)
            if not self._read_more():
                return ""

    def value(self) -> Any:
        """Reads the next value whole."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._position)
            except json.JSONDecodeError as error:
                if not self._read_more():
                    raise self._error(f"is not JSON, or cut off ({error.msg})") from error
                continue
            except RecursionError as error:
                raise self._error("is nested too deeply") from error
            except ValueError as error:
                raise self._error("holds a number of too many digits") from error
            # The next chunk may hold more digits of a number.
            if end < len(self._text) or not self._read_more():
                self._position = end
                return value

    def skip(self) -> None:
        """Skips the next value; of a list or an object, part by part."""
        match self.peek():
            case "[":
                for _ in self.elements():
                    self.value()
            case "{":
                for _ in self.keys():
                    self.value()
            case _:
                self.value()

    def elements(self) -> Iterator[None]:
        """Announces each element of the list that comes next."""
        self._take("[")
        if self.peek() == "]":
            self._take("]")
            return
        while True:
            yield
            if self._take(",]") == "]":
                return

    def keys(self) -> Iterator[str]:
        """Returns the key of each member of the object that comes next."""
        self._take("{")
        if self.peek() == "}":
            self._take("}")
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise self._error("is not JSON: a key of an object is not text")
            self._take(":")
            yield key
            if self._take(",}") == "}":
                return

    def finish(self) -> None:
        """Refuses anything that follows the document."""
        if rest := self.peek():
            raise self._error(f"goes on with {rest!r} after its end; lines of JSON are a .jsonl")

    def _take(self, choices: str) -> str:
        character = self.peek()
        if not character or character not in choices:
            what = f"{character!r} where" if character else "ends where"
            raise self._error(f"is not JSON, or cut off: {what} {' or '.join(choices)} should be")
        self._position += 1
        return character

    def _read_more(self) -> bool:
        """Adds to the text, in larger pieces the longer it is; returns false at the end."""
        rest = self._text[self._position :]
        try:
            data = self._file.read(min(max(_CHUNK, len(rest)), LARGEST_RECORD // 4))
            added = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise self._error("is not UTF-8") from error
        self._left -= len(data)
        if self._left < 0:
            raise self._error("is too long to look through")
        _check_length(len(rest) + len(added), rest.isascii() and added.isascii(), self._name)
        self._text, self._position = rest + added, 0
        if len(rest) > _COUNTED_FROM:
            _check_values(self._text, self._name)
        return data != b""

    def _error(self, problem: str) -> DesignError:
        return DesignError(f"{self._name} {problem}")


def _check_length(length: int, ascii: bool, name: str) -> None:
    """Refuses a record whose text would take too much memory."""
    most = LARGEST_RECORD if ascii else LARGEST_RECORD // 4
    if length > most:
        raise DesignError(f"{name} has a line or record over {most // 2**20} MB")


def _check_values(text: str, name: str) -> None:
    """Refuses a record whose values would take too much memory."""
    if text.count(",") + text.count("[") + text.count("{") > MOST_VALUES:
        raise DesignError(f"{name} has a record of over {MOST_VALUES:,} values")


def parse_record(data: bytes, name: str) -> Any:
    """Reads a JSON value."""
    _check_length(len(data), data.isascii(), name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DesignError(f"{name} is not UTF-8") from error
    if len(data) > _COUNTED_FROM:
        _check_values(text, name)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DesignError(f"{name} is not JSON, or cut off ({error.msg})") from error
    except RecursionError as error:
        raise DesignError(f"{name} is nested too deeply") from error
    except ValueError as error:
        raise DesignError(f"{name} holds a number of too many digits") from error


def rows_of(
    path: Path, *lists: tuple[str, ...], at_most: float = float("inf")
) -> Iterator[dict[str, Any]]:
    """Reads the rows of a table, whatever it is written in.

    Rows are the lines of a `.jsonl` or `.ndjson` file, those below the header of a `.csv` file,
    and the elements of a list in a `.json` file, of whose other values nothing is kept.

    Args:
        path: the file.
        lists: where in an object the list of rows may stand, as keys from the outermost. Without
            any, the document is the list.
        at_most: the bytes of a JSON document after which reading ends with an error.
    """
    reader: Callable[[IO[bytes], str], Iterator[Any]]
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            reader = _json_lines
        case ".csv":
            reader = _csv_rows
        case ".json":

            def reader(file: IO[bytes], name: str) -> Iterator[Any]:
                return _json_rows(JsonReader(file, name, at_most), name, lists)

        case suffix:
            raise DesignError(f"{path.name}: {suffix or 'no suffix'} is no .json, .jsonl or .csv")
    with open_file(path) as file:
        for number, row in enumerate(reader(file, path.name), 1):
            if number > MOST_ROWS:
                raise DesignError(f"{path.name} has over {MOST_ROWS:,} rows; import a part of it")
            if not isinstance(row, dict):
                raise DesignError(f"{path.name}: row {number}, {_excerpt(row)}, is no object")
            yield row


def first_row(path: Path, *lists: tuple[str, ...]) -> dict[str, Any]:
    """Returns the first row of a table; of anything else, an empty one."""
    try:
        return next(rows_of(path, *lists, at_most=HEAD), {})
    except DesignError:
        return {}


def top_level(path: Path, *wanted: str) -> dict[str, Any]:
    """Returns members of the object in a JSON file, as far as its beginning has them."""
    members: dict[str, Any] = {}
    try:
        with open_file(path) as file:
            reader = JsonReader(file, path.name, HEAD)
            for key in reader.keys():
                if key in wanted:
                    members[key] = reader.value()
                else:
                    reader.skip()
                if len(members) == len(wanted):
                    break
    except DesignError:
        pass
    return members


def _json_rows(reader: JsonReader, name: str, lists: tuple[tuple[str, ...], ...]) -> Iterator[Any]:
    if reader.peek() == "[" and (not lists or () in lists):
        for _ in reader.elements():
            yield reader.value()
        reader.finish()
        return
    if reader.peek() != "{" or not lists:
        raise DesignError(f"{name} holds no list of rows")
    found = yield from _nested_rows(reader, lists)
    reader.finish()
    if not found:
        places = [".".join(keys) for keys in lists if keys]
        raise DesignError(f"{name} has no list {' or '.join(places)}", choices=places)


def _nested_rows(
    reader: JsonReader, lists: tuple[tuple[str, ...], ...]
) -> Generator[Any, None, bool]:
    """Reads the rows of lists inside an object, and returns whether there was one."""
    found = False
    for key in reader.keys():
        below = tuple(keys[1:] for keys in lists if keys[:1] == (key,))
        start = reader.peek() if below else ""
        if start == "[" and () in below:
            found = True
            for _ in reader.elements():
                yield reader.value()
        elif start == "{" and any(below):
            found |= yield from _nested_rows(reader, below)
        else:
            reader.skip()
    return found


def _json_lines(file: IO[bytes], name: str) -> Iterator[Any]:
    number = 0
    while line := file.readline(LARGEST_RECORD + 1):
        number += 1
        if not line.isspace():
            yield parse_record(line, f"{name}: line {number}")


def _csv_rows(file: IO[bytes], name: str) -> Iterator[dict[str, str]]:
    lines = _CsvLines(file, name)
    limit = csv.field_size_limit(LARGEST_RECORD)
    try:
        for row in csv.DictReader(lines, strict=True):
            if None in row or None in row.values():
                raise DesignError(f"{name}: a row has more or fewer cells than the header")
            yield row
            lines.start_row()
    except csv.Error as error:
        raise DesignError(f"{name} is no CSV table, or cut off ({error})") from error
    finally:
        csv.field_size_limit(limit)


class _CsvLines:
    """The lines of a file, with a limit for those of one row, whose cells may have line breaks."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self.start_row()

    def start_row(self) -> None:
        self._bytes = self._cells = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._file.readline(LARGEST_RECORD + 1)
        if not line:
            raise StopIteration
        self._bytes += len(line)
        self._cells += line.count(b",")
        _check_length(self._bytes, line.isascii(), self._name)
        if self._cells > MOST_VALUES:
            raise DesignError(f"{self._name} has a row of over {MOST_VALUES:,} cells")
        try:
            return line.decode("utf-8-sig" if self._file.tell() == len(line) else "utf-8")
        except UnicodeDecodeError as error:
            raise DesignError(f"{self._name} is not UTF-8") from error


class Archive:
    """A zip archive whose sizes are checked before anything of it is read."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._file = open_file(path)
        try:
            _check_directory(self._file, path.name)
            self._archive = zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, struct.error, OSError) as error:
            self._file.close()
            raise DesignError(f"{path.name} is no zip archive, or cut off ({error})") from error
        except DesignError:
            self._file.close()
            raise
        self.names = self._archive.namelist()
        total = sum(member.file_size for member in self._archive.infolist())
        problem = ""
        if total > LARGEST_ARCHIVE:
            problem = f"holds over {LARGEST_ARCHIVE // 2**30} GB"
        elif len(set(self.names)) < len(self.names):
            problem = "holds two files of one name"
        if problem:
            self._file.close()
            raise DesignError(f"{path.name} {problem}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def read(self, name: str) -> bytes:
        """Reads a file of the archive."""
        try:
            member = self._archive.getinfo(name)
        except KeyError as error:
            raise DesignError(f"{self._name} has no {name}", choices=self.names[:20]) from error
        where = f"{self._name}: {name}"
        if member.file_size > LARGEST_RECORD:
            raise DesignError(f"{where} is over {LARGEST_RECORD // 2**20} MB")
        try:
            with self._open(member) as file:
                data: bytes = file.read(member.file_size + 1)
        except (zipfile.BadZipFile, OSError, EOFError, struct.error, zlib.error) as error:
            raise DesignError(f"{where} is damaged or cut off ({error})") from error
        except (NotImplementedError, RuntimeError) as error:
            raise DesignError(f"{where} cannot be unpacked ({error})") from error
        if len(data) != member.file_size:
            raise DesignError(f"{where} is damaged: it has not the size that the archive states")
        return data

    def _open(self, member: zipfile.ZipInfo) -> Any:
        if member.compress_type != _ZSTANDARD:
            return self._archive.open(member)
        # Python reads this compression from version 3.14 on.
        self._file.seek(member.header_offset)
        header = self._file.read(30)
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        self._file.seek(name_length + extra_length, io.SEEK_CUR)
        if header[:4] != b"PK\x03\x04" or member.compress_size > LARGEST_RECORD:
            raise zipfile.BadZipFile("its header is wrong")
        data = self._file.read(member.compress_size)
        return pa.CompressedInputStream(pa.BufferReader(data), "zstd")


def _check_directory(file: IO[bytes], name: str) -> None:
    """Refuses an archive whose list of files is too long to be read."""
    size = file.seek(0, io.SEEK_END)
    start = max(0, size - 2**16 - 22)
    file.seek(start)
    tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0:
        raise zipfile.BadZipFile("it has no list of files")
    lengths = [struct.unpack_from("<I", tail, end + 12)[0]]
    if tail[max(0, end - 20) : end].startswith(b"PK\x06\x07"):  # a list longer than 32 bits count
        file.seek(max(0, start + end - 76))
        lengths = [struct.unpack_from("<Q", file.read(56), 40)[0]]
    if max(lengths) > LARGEST_DIRECTORY:
        raise DesignError(f"{name} holds too many files")
    file.seek(0)
