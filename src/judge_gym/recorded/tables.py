"""Reads a table from a file of any usual format, safely: cells are data, and become text.

Memory stays bounded: a file is read in parts, and refused at the cell that is too much.
"""

import codecs
import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pandas as pd

from judge_gym.errors import DesignError, MissingFileError

MARKS = ",;\t|"
"""What may separate cells."""
MARK_WORDS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
LARGEST_FILE = 512 * 2**20
LARGEST_LINE = 32 * 2**20
"""The bytes in memory of a line or cell, of which reading takes several times as much."""
LARGEST_PART = 2**22
"""The characters of a line that are read at a time."""
MOST_TEXT = 96 * 2**20
"""The characters that the cells of a file may have, which bounds the memory that it takes."""
MOST_CELLS = 6_000_000
MOST_ROWS = 600_000
MOST_COLUMNS = 1_000
PART = 200_000
"""The cells that are packed at a time."""
BATCH = 10_000
"""The rows of parquet that are read at a time."""
SAMPLE = 2**16
FITS = 0.5
"""The share of rows from which a text may be a table."""
LONGEST_NAME = 40
HEADER_NAMES = {"text", "id", "item", "output", "input", "response", "answer", "label", "truth"}
"""Names of columns that only a header has."""
DEPTH = 3
"""How deep fields of objects in objects are read, and lists of rows are looked for."""
MOST_NAMED = 30
NAME_KEYS = ("judge", "rater", "annotator", "evaluator", "scorer", "metric", "name")
"""The fields of an object in a list that may name it."""
LISTED = 5
"""The problems of one kind that a message lists."""
SURROGATE = re.compile("[\ud800-\udfff]")
CONTROL = re.compile("[\x00-\x06\x0e-\x1a]")
"""What no text has, though it can be decoded as Windows-1252."""
WHITESPACE = re.compile(r"[ \t\r\n]*")
DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
BINARY_FORMATS = {
    b"\xd0\xcf\x11\xe0": "an old Excel file; save it as .xlsx or CSV",
    b"\x1f\x8b": "a gzip archive; unpack it",
    b"7z\xbc\xaf": "a 7z archive; unpack it",
    b"SQLite format 3": "an SQLite database; export a table as CSV",
    b"%PDF": "a PDF; save the table as CSV",
}
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
INSTALL_EXCEL = "pip install 'judge-gym[excel]'"


@dataclass(frozen=True, eq=False)
class Table:
    """A table whose cells are text; an empty cell is an empty text."""

    name: str
    """The file's name."""
    frame: pd.DataFrame
    lines: Sequence[int]
    """The number of each row in its file."""
    unit: str = "line"
    """What is numbered: a line or a row."""
    notes: tuple[str, ...] = ()

    def place(self, row: int) -> str:
        """Names the place of a row, as users find it in their file: `line 7`."""
        return f"{self.unit} {self.lines[row]}"


def read_table(source: Path | pd.DataFrame) -> Table:
    """Reads a table from a file, whatever its format, or takes a frame.

    Raises:
        DesignError: if the file is no table, is cut off, or is too large.
    """
    if isinstance(source, pd.DataFrame):
        names = [str(name) for name in source.columns]
        packer = _Packer("the table", "row")
        for number, cells in enumerate(source.itertuples(index=False, name=None), 1):
            packer.add(number, dict(zip(names, cells, strict=True)))
        return packer.table(names)
    if source.is_dir():
        raise DesignError(f"{source} is a folder; name a file in it")
    if not source.is_file():
        raise MissingFileError(f"there is no file {source}")
    size = source.stat().st_size
    if not size:
        raise DesignError(f"{source.name} is empty")
    if size > LARGEST_FILE:
        raise DesignError(
            f"{source.name} has {size / 2**20:,.0f} MB, and {LARGEST_FILE // 2**20} MB can be "
            "read; leave out columns, or split it"
        )
    with source.open("rb") as file:
        head = file.read(SAMPLE)
        if head.startswith(b"PAR1"):
            return _read_parquet(source)
        if head.startswith(b"PK\x03\x04"):
            return _read_excel(source)
        for start, advice in BINARY_FORMATS.items():
            if head.startswith(start):
                raise DesignError(f"{source.name} is {advice}")
        encoding, notes = _find_encoding(source.name, file, head)
        file.seek(0)
        with io.TextIOWrapper(file, encoding, newline="") as text:
            return _read_text(source, text, notes)


def parse_table(text: str, name: str) -> Table:
    """Reads a table from text: delimited, JSON or JSON Lines."""
    return _read_text(Path(name), io.StringIO(text, newline=""), ())


def looks_like_table(text: str) -> tuple[bool, bool]:
    r"""Returns whether a text looks like a table with a header, and whether that is certain.

    >>> looks_like_table("id,text,ann\n1,Hello,pass\n2,Bye,fail")
    (True, True)
    >>> looks_like_table("Thank you, that was quick.\nNo idea, read the manual.")
    (False, False)
    >>> looks_like_table("Thank you.\nNo idea.")
    (False, True)
    """
    sample = text.lstrip("\ufeff \t\r\n")[:SAMPLE]
    if sample.startswith(("{", "[{")):
        return True, True
    mark, _ = _find_mark(sample)
    several, fitting, width = _fit(sample, mark)
    header = next(csv.reader([sample.partition("\n")[0]], delimiter=mark), [])
    names = [name.strip() for name in header]
    plain = _are_names(header)
    one_row = "\n" not in sample.strip()
    if several and plain and not one_row and HEADER_NAMES & {name.lower() for name in names}:
        return True, True
    if not several or fitting < 1:
        return False, not several or fitting < FITS
    certain = plain and (mark == "\t" or width > 2 or all(" " not in name for name in names))
    return plain and not one_row, certain and not one_row


def _find_encoding(name: str, file: BinaryIO, head: bytes) -> tuple[str, tuple[str, ...]]:
    """Returns the encoding of a text file, and what was taken for granted about it."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding, ()
    zeros = (head[0::2].count(0), head[1::2].count(0))
    if max(zeros) > len(head) / 5 and min(zeros) < len(head) / 50:
        return ("utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"), ()
    if any(zeros):
        raise DesignError(
            f"{name} is a binary file; a file is CSV, JSON, JSONL, parquet or an Excel sheet"
        )
    if _is_text(file, "utf-8"):
        return "utf-8", ()
    if _is_text(file, "cp1252"):
        return "cp1252", ("It is not UTF-8, and was read as Windows-1252 (Western European).",)
    raise DesignError(f"{name} is neither UTF-8 nor Windows-1252 text; save it as UTF-8")


def _is_text(file: BinaryIO, encoding: str) -> bool:
    """Whether all bytes of a file are text in an encoding."""
    file.seek(0)
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while part := file.read(2**20):
            text = decoder.decode(part)
            if encoding != "utf-8" and CONTROL.search(text):
                return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _read_text(path: Path, text: TextIO, notes: tuple[str, ...]) -> Table:
    try:
        sample = text.read(SAMPLE)
        text.seek(0)
        start = sample.lstrip("\ufeff \t\r\n")[:1]
        delimited = path.suffix.lower() in (".csv", ".tsv")
        if not sample.strip("\ufeff \t\r\n\0"):
            raise DesignError(f"{path.name} is empty")
        if start == "[" and not delimited:
            return _read_json(path.name, text)
        if start == "{" and not delimited:
            return _read_objects(path.name, text)
        return _read_delimited(path.name, text, sample, notes)
    except UnicodeDecodeError as error:
        raise DesignError(
            f"{path.name} cannot be read as {error.encoding}: {error.reason}; it may be cut off"
        ) from error


# --- delimited text ------------------------------------------------------------------------------


def _read_delimited(name: str, text: TextIO, sample: str, notes: tuple[str, ...]) -> Table:
    mark, skip = _find_mark(sample)
    _refuse_lines_above_header(name, sample, mark)
    csv.field_size_limit(2**27)  # lines are bounded, and so are their cells
    last = _LastLine()
    reader = csv.reader(_bounded_lines(name, text, last), delimiter=mark, strict=True)
    packer = _Packer(name, "line")
    names: list[str] = []
    start = 1
    short: list[int] = []
    long: list[str] = []
    try:
        for cells in islice(reader, skip, None):
            start = reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = _column_names(name, cells)
                continue
            if len(cells) < len(names):
                short.append(reader.line_num)
            elif any(cell.strip() for cell in cells[len(names) :]):
                long.append(f"line {reader.line_num} ({len(cells)})")
                continue
            packer.add(reader.line_num, dict(zip(names, cells, strict=False)))
    except csv.Error as error:
        if "unexpected end" in str(error):
            message = f"{name}: broken CSV: a quotation mark in line {start} is not closed"
        else:
            message = f"{name}: line {reader.line_num}: broken CSV: {error}"
        raise DesignError(message) from error
    if long:
        raise DesignError(
            f"{name}: {_listed(long)} {'has' if len(long) == 1 else 'have'} more cells than the "
            f"header's {len(names)}; put a cell that contains {MARK_WORDS.get(mark, mark)} in "
            "quotation marks"
        )
    if short and short[-1] == reader.line_num and not last.text.endswith(("\n", "\r")):
        raise DesignError(f"{name}: line {short[-1]} is cut off; the file is not complete")
    if short:
        taken = f"{_count(len(short), 'line')} with fewer cells than the header"
        notes += (f"{taken}, the first is line {short[0]}: missing cells were taken as empty.",)
    table = packer.table(names, notes)
    return _with_decimal_points(table) if mark != "," else table


class _LastLine:
    """The end of the line that was read last."""

    text = ""


def _bounded_lines(name: str, text: TextIO, last: _LastLine) -> Iterator[str]:
    """Yields the lines of a file, and refuses one that is too long before it is in memory."""
    cell_size, in_quotes = 0, False
    for number in count(1):
        parts, size = [], 0
        while part := text.readline(LARGEST_PART):
            parts.append(part)
            size += part.__sizeof__()
            if size > LARGEST_LINE:
                raise _line_too_long(name, number)
            if part.endswith(("\n", "\r")):
                break
        if not parts:
            return
        line = "".join(parts)
        # A cell in quotation marks may have many lines.
        cell_size = cell_size + size if in_quotes else size
        if cell_size > LARGEST_LINE:
            raise _line_too_long(name, number)
        in_quotes ^= bool(line.count('"') % 2)
        last.text = line[-2:]
        yield line.replace("\0", "")


def _line_too_long(name: str, number: int) -> DesignError:
    return DesignError(
        f"{name}: line {number}: a line or cell may have {LARGEST_LINE // 2**20} MB, and this one "
        "has more; is it a table?"
    )


def _find_mark(sample: str) -> tuple[str, int]:
    """Returns what separates cells, and how many lines stand before the header."""
    first = sample.partition("\n")[0].strip()
    if re.fullmatch(r"sep=.", first):  # a hint for Excel
        return first[-1], 1
    complete = sample[: sample.rfind("\n") + 1] or sample
    return max(MARKS, key=lambda mark: _fit(complete, mark)), 0


def _refuse_lines_above_header(name: str, sample: str, mark: str) -> None:
    """Refuses a file whose first lines are no table, such as the title of a report."""
    complete = sample[: sample.rfind("\n") + 1] or sample
    if _fit(complete, mark)[2] != 1:
        return
    for other in MARKS:
        rows = _sample_rows(complete, other)
        widths = Counter(len(cells) for _, cells in rows if len(cells) > 1)
        width, number = max(widths.items(), key=lambda item: item[1], default=(0, 0))
        if number > max(FITS * len(rows), 2) and width > 2:
            header, names = next((line, cells) for line, cells in rows if len(cells) == width)
            if not _are_names(names):
                continue  # texts with commas
            first = " ".join(rows[0][1][0].split())[:LONGEST_NAME]
            raise DesignError(
                f"{name}: line {rows[0][0]} ({first!r}) does not name the {width} columns below "
                f"it; delete the lines above the header, which seems to be line {header}"
            )


def _are_names(cells: Sequence[str]) -> bool:
    """Whether cells may name columns: short, without a full stop, and none twice."""
    names = [cell.strip() for cell in cells]
    short = all(name and len(name) <= LONGEST_NAME and name[-1].isalnum() for name in names)
    return short and len(set(names)) == len(names)


def _sample_rows(sample: str, mark: str) -> list[tuple[int, list[str]]]:
    """Returns the first rows that are not empty, each with its line."""
    rows: list[tuple[int, list[str]]] = []
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=mark)
    try:
        for cells in islice(reader, 100):
            if any(cell.strip() for cell in cells):
                rows.append((reader.line_num, cells))
    except csv.Error:
        pass
    return rows


def _fit(sample: str, mark: str) -> tuple[bool, float, int]:
    """Ranks a separator: rows should have as many cells as the header, and several."""
    rows = _sample_rows(sample, mark)
    width = len(rows[0][1]) if rows else 0
    fitting = sum(len(cells) == width for _, cells in rows) / max(len(rows), 1)
    return width > 1, round(fitting, 1), width


def _column_names(name: str, cells: Sequence[Any]) -> list[str]:
    """Returns the names of columns; one without a name is named by its place."""
    names = [_text(cell) for cell in cells]
    while names and not names[-1]:
        names.pop()
    if len(names) > MOST_COLUMNS:
        raise DesignError(f"{name} has {len(names)} columns, and {MOST_COLUMNS} can be read")
    names = [column or f"column {place}" for place, column in enumerate(names, 1)]
    twice = sorted({column for column in names if names.count(column) > 1})
    if twice:
        listed = ", ".join(map(repr, twice))
        raise DesignError(f"{name}: the header names {listed} twice; give each column its own name")
    return names


def _with_decimal_points(table: Table) -> Table:
    """Writes numbers with a decimal comma, as in 4,5, with a point."""
    frame = table.frame.copy()
    for column in frame:
        values = frame[column].unique()
        commas = [value for value in values if DECIMAL_COMMA.fullmatch(value)]
        if commas and all(value in commas or not value or _is_number(value) for value in values):
            frame[column] = frame[column].str.replace(",", ".")
    return Table(table.name, frame, table.lines, table.unit, table.notes)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- JSON ----------------------------------------------------------------------------------------


def _read_objects(name: str, text: TextIO) -> Table:
    """Reads JSON Lines, or one object that holds a list of rows."""
    first = text.readline(LARGEST_PART)
    try:
        several = isinstance(json.loads(first), dict) and bool(text.read(SAMPLE).strip())
    except (json.JSONDecodeError, RecursionError):
        several = False
    text.seek(0)
    return _read_json_lines(name, text) if several else _read_json(name, text)


def _read_json_lines(name: str, text: TextIO) -> Table:
    packer = _Packer(name, "line")
    for number, line in enumerate(_bounded_lines(name, text, _LastLine()), 1):
        if not line.strip("\ufeff \t\r\n"):
            continue
        _refuse_many_values(name, line)
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise _broken_json(name, number, error) from None
        if not isinstance(row, dict):
            raise DesignError(f"{name}: line {number}: a line is an object, not {_kind(row)}")
        packer.add(number, _flat(row))
    return packer.table()


def _read_json(name: str, text: TextIO) -> Table:
    """Reads a list of objects, or an object that holds one list of objects."""
    parts, size = [], 0
    while part := text.read(2**22):
        parts.append(part)
        size += part.__sizeof__()
        if size > MOST_TEXT:
            raise DesignError(
                f"{name} has more than {MOST_TEXT // 2**20} MB of text; save it as JSON Lines, or "
                "leave out fields"
            )
    document = "".join(parts)
    del parts, part
    _refuse_many_values(name, document)
    packer = _Packer(name, "item")
    start = len(document) - len(document.lstrip("\ufeff \t\r\n"))
    try:
        rows = (
            _list_items(document, start)
            if document[start] == "["
            else _items_of_object(name, document, start)
        )
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict):
                raise DesignError(f"{name}: item {number} is {_kind(row)}, not an object")
            packer.add(number, _flat(row))
    except json.JSONDecodeError as error:
        raise _broken_json(name, error.lineno, error) from None
    except RecursionError as error:
        raise _broken_json(name, 1, error) from None
    return packer.table()


DECODER = json.JSONDecoder()


def _skip_space(document: str, position: int) -> int:
    match = WHITESPACE.match(document, position)
    return match.end() if match else position


def _list_items(document: str, position: int) -> Iterator[Any]:
    """Yields the items of the list at a position, one at a time, and expects the end after it."""
    position = yield from _items_from(document, position)
    if _skip_space(document, position) != len(document):
        raise json.JSONDecodeError("more after its end", document, position)


def _items_from(document: str, position: int) -> Generator[Any, None, int]:
    """Yields the items of a list, and returns the position after it."""
    position = _skip_space(document, position + 1)
    if document[position : position + 1] == "]":
        return position + 1
    while True:
        item, position = DECODER.raw_decode(document, position)
        yield item
        position = _skip_space(document, position)
        sign = document[position : position + 1]
        if sign not in (",", "]") or not sign:
            raise json.JSONDecodeError("expecting ',' or ']'", document, position)
        position = _skip_space(document, position + 1)
        if sign == "]":
            return position


def _items_of_object(name: str, document: str, position: int) -> Iterator[Any]:
    """Yields the items of the one list in an object; other fields are not read.

    Lists of the object itself come first; without one, lists of objects in the objects in it, such
    as `results.rows`.
    """
    lists = {
        path: start
        for path, start in _lists_of_objects(document, position, DEPTH)
        if "." not in path or document[_skip_space(document, start + 1)] == "{"
    }
    own = {path: start for path, start in lists.items() if "." not in path}
    lists = own or lists
    if not lists:
        raise DesignError(
            f"{name} is one object without a list of rows; write a list of objects, or an object "
            "on each line"
        )
    if len(lists) > 1:
        listed = ", ".join(map(repr, lists))
        raise DesignError(f"{name} holds several lists ({listed}); keep one of them")
    yield from _items_from(document, next(iter(lists.values())))


def _lists_of_objects(
    document: str, position: int, depth: int, before: str = ""
) -> Generator[tuple[str, int], None, int]:
    """Yields the name and position of each list in an object; returns the position after it."""
    position = _skip_space(document, position + 1)
    while document[position : position + 1] != "}":
        field, position = DECODER.raw_decode(document, position)
        position = _skip_space(document, position)
        if document[position : position + 1] != ":":
            raise json.JSONDecodeError("expecting ':'", document, position)
        position = _skip_space(document, position + 1)
        sign = document[position : position + 1]
        if sign == "{" and depth > 1:
            position = yield from _lists_of_objects(
                document, position, depth - 1, f"{before}{field}."
            )
        else:
            if sign == "[":
                yield f"{before}{field}", position
            position = _after_value(document, position)
        position = _skip_space(document, position)
        sign = document[position : position + 1]
        if sign == ",":
            position = _skip_space(document, position + 1)
        elif sign != "}":
            raise json.JSONDecodeError("expecting ',' or '}'", document, position)
    return position + 1


def _after_value(document: str, position: int) -> int:
    """Returns the position after a value; of a list, one item is in memory at a time."""
    if document[position : position + 1] != "[":
        return int(DECODER.raw_decode(document, position)[1])
    items = _items_from(document, position)
    while True:
        try:
            next(items)
        except StopIteration as end:
            return int(end.value)


def _refuse_many_values(name: str, text: str) -> None:
    """Refuses JSON of more values than fit into memory, before it is decoded."""
    if text.count(",") + text.count("[") + text.count("{") > MOST_CELLS:
        raise _too_many(name)


def _broken_json(name: str, line: int, error: Exception) -> DesignError:
    if not isinstance(error, json.JSONDecodeError):
        return DesignError(f"{name}: line {line}: JSON nested too deeply")
    cut = error.pos >= len(error.doc.rstrip()) or "Unterminated" in error.msg
    end = "; the file seems to be cut off" if cut else ""
    place = f"line {line}, character {error.colno}"
    problem = error.msg.removesuffix(" starting at")
    return DesignError(f"{name}: {place}: broken JSON: {problem}{end}")


def _kind(value: object) -> str:
    kinds = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _flat(row: Mapping[str, Any], before: str = "", depth: int = 0) -> dict[str, Any]:
    """Returns the fields of an object, those of objects in it under dotted names.

    A list of objects that each have a name of their own is read as an object with these names:

    >>> _flat({"scores": [{"name": "gpt", "value": 1}, {"name": "haiku", "value": 0}]})
    {'scores.gpt.value': 1, 'scores.haiku.value': 0}
    """
    cells: dict[str, Any] = {}
    for name, value in row.items():
        fields = _by_name(value) if isinstance(value, list) else value
        if isinstance(fields, dict) and depth < DEPTH and fields:
            cells |= _flat(fields, f"{before}{name}.", depth + 1)
        else:
            cells[f"{before}{name}"] = value
    return cells


def _by_name(values: Sequence[Any]) -> Mapping[str, Any] | None:
    """Returns objects by the name that tells them apart; None for messages and other lists."""
    if not 0 < len(values) <= MOST_NAMED or not all(isinstance(value, dict) for value in values):
        return None
    if any("role" in value or "content" in value for value in values):
        return None  # a transcript
    for key in NAME_KEYS:
        names = [value.get(key) for value in values]
        if all(isinstance(name, str) and name for name in names) and len({*names}) == len(names):
            return {
                str(value[key]): {name: part for name, part in value.items() if name != key}
                for value in values
            }
    return None


# --- parquet and Excel ---------------------------------------------------------------------------


def _read_parquet(path: Path) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    packer = _Packer(path.name, "row")
    try:
        with parquet.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
            if sum(group.total_byte_size for group in sizes) > 2 * MOST_TEXT:
                raise _too_many(path.name)
            _refuse_cells(path.name, file.metadata.num_rows, len(file.schema_arrow.names))
            names = _column_names(path.name, file.schema_arrow.names)
            words = [
                field.name
                for field in file.schema_arrow
                if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
            ]
        # A repeated text is in memory once.
        with parquet.ParquetFile(path, read_dictionary=words) as file:
            number = 0
            for batch in file.iter_batches(BATCH, use_threads=False):
                columns = [_distinct_cells(column) for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    packer.add(number, dict(zip(names, cells, strict=True)))
    except (pa.ArrowException, OSError) as error:
        message = " ".join(str(error).split())[:200]
        raise DesignError(f"{path.name} cannot be read as parquet: {message}") from error
    return packer.table(names)


def _distinct_cells(column: Any) -> Iterable[Any]:
    """Yields the values of a column, each distinct text of it as one object."""
    import pyarrow as pa

    if not isinstance(column, pa.DictionaryArray):
        return list(column.to_pylist())
    values = column.dictionary.to_pylist()
    return [None if code is None else values[code] for code in column.indices.to_pylist()]


def _read_excel(path: Path) -> Table:
    try:
        import openpyxl
    except ImportError:
        raise DesignError(
            f"{path.name} is an Excel file, which needs openpyxl: {INSTALL_EXCEL}; or save it as "
            "CSV"
        ) from None
    packer = _Packer(path.name, "row")
    names: list[str] = []
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > 4 * MOST_TEXT:
            raise _too_many(path.name)
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheets = workbook.worksheets
            for number, cells in enumerate(sheets[0].iter_rows(values_only=True), 1):
                if all(cell is None or cell == "" for cell in cells):
                    continue
                if not names:
                    names = _column_names(path.name, cells)
                else:
                    packer.add(number, dict(zip(names, cells, strict=False)))
        finally:
            workbook.close()
    except DesignError:
        raise
    except Exception as error:  # of many kinds, by what is broken in the archive
        message = " ".join(str(error).split())[:200]
        raise DesignError(f"{path.name} cannot be read as an Excel file: {message}") from error
    notes: tuple[str, ...] = ()
    if len(sheets) > 1:
        notes = (f"The first of its {len(sheets)} sheets was read: {sheets[0].title}.",)
    return packer.table(names, notes)


# --- cells ---------------------------------------------------------------------------------------


class _Packer:
    """Packs rows into a frame of text, in parts that take little memory."""

    def __init__(self, name: str, unit: str) -> None:
        self._name, self._unit = name, unit
        self._columns: dict[str, None] = {}
        self._rows: list[dict[str, str]] = []
        self._parts: list[Any] = []
        self._lines: list[int] = []
        self._texts: dict[str, str] = {}
        self._size = 0

    def add(self, line: int, cells: Mapping[str, Any]) -> None:
        """Adds a row."""
        row = {}
        for column, cell in cells.items():
            text = cell.strip() if type(cell) is str else _text(cell)
            self._size += len(text)
            row[column] = text
        if self._size > MOST_TEXT:
            raise _too_many(self._name)
        if not row.keys() <= self._columns.keys():
            self._columns |= dict.fromkeys(row)
            if len(self._columns) > MOST_COLUMNS:
                raise DesignError(
                    f"{self._name}: {self._unit} {line}: more than {MOST_COLUMNS} different "
                    "columns; is it a table?"
                )
        self._rows.append(row)
        self._lines.append(line)
        if len(self._rows) * len(self._columns) >= PART:
            self._pack()

    def table(self, names: Sequence[str] = (), notes: tuple[str, ...] = ()) -> Table:
        """Returns all rows as a table."""
        import pyarrow as pa

        self._columns = dict.fromkeys(names) | self._columns
        self._pack()
        if not self._lines:
            columns = ", ".join(self._columns)
            header = f" under its header ({columns[:200]})" if columns else ""
            raise DesignError(f"{self._name} has no rows{header}")
        table = pa.concat_tables(self._parts, promote_options="default")
        self._parts.clear()
        frame = table.to_pandas().fillna("")[list(self._columns)]
        return Table(self._name, frame, self._lines, self._unit, notes)

    def _pack(self) -> None:
        import pyarrow as pa

        if not self._rows:
            return
        refuse_rows(self._name, len(self._lines))
        _refuse_cells(self._name, len(self._lines), len(self._columns))
        columns = {}
        for name in self._columns:
            cells = [row.get(name, "") for row in self._rows]
            try:
                columns[name] = pa.array(cells, pa.large_string())
            except UnicodeEncodeError:  # half of a character
                columns[name] = pa.array(
                    [SURROGATE.sub("\ufffd", cell) for cell in cells], pa.large_string()
                )
        self._parts.append(pa.table(columns))
        self._rows.clear()


def _text(cell: Any) -> str:
    """Returns a cell as it is written in a file.

    >>> [_text(cell) for cell in (None, float("nan"), True, 2.0, 2.5, " yes ", ["a"])]
    ['', '', 'true', '2', '2.5', 'yes', '["a"]']
    """
    match cell:
        case str():
            return cell.strip()
        case None:
            return ""
        case bool():
            return str(cell).lower()
        case int():
            return str(cell)
        case float():
            return "" if cell != cell else str(int(cell)) if cell.is_integer() else repr(cell)
        case datetime() | date():
            return "" if cell is pd.NaT else cell.isoformat()
        case list() | dict() | tuple():
            return json.dumps(cell, ensure_ascii=False, default=str)
        case bytes():
            return cell.decode("utf-8", "replace")
    if hasattr(cell, "item"):  # a scalar of numpy
        return _text(cell.item())
    return "" if cell is pd.NA or cell is pd.NaT else str(cell).strip()


def refuse_rows(name: str, rows: int, what: str = "rows") -> None:
    """Refuses a table of more rows, or verdicts, than can be analysed in usual memory."""
    if rows > MOST_ROWS:
        raise DesignError(
            f"{name} has more than {MOST_ROWS:,} {what}, which is the most that can be read; split "
            "it, or leave out columns"
        )


def _refuse_cells(name: str, rows: int, columns: int) -> None:
    if rows * columns > MOST_CELLS:
        raise _too_many(name)


def _too_many(name: str) -> DesignError:
    return DesignError(
        f"{name} is too large: a table may have {MOST_CELLS:,} cells and {MOST_TEXT // 2**20} MB "
        "of text; leave out columns, or split it"
    )


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - LISTED} more" if len(places) > LISTED else ""
    return ", ".join(places[:LISTED]) + more


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"
