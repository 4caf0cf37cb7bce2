"""Reads evidence and rubrics from files: a folder, a glob pattern, or a list of them.

`.md`, `.txt` and `.html` have one item each, `.jsonl` and `.csv` one per line, `.json` one or many.
"""

import csv
import difflib
import glob
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml

from judge_gym.errors import DesignError, MissingFileError, unknown
from judge_gym.records import (
    FIELD_NAMES,
    Evidence,
    Rubric,
    Window,
    evidence,
    provided_rubric,
    render_fields,
    render_messages,
)
from judge_gym.sources.search import SearchResult

ABOUT = ("title", "text", "responses", "url", "date", "source", "cluster", "truth", "metadata")
FIELDS = (*ABOUT, *FIELD_NAMES)
COLUMNS = tuple(name for name in ABOUT if name not in ("responses", "metadata"))
LISTED = 10
"""The number of invalid files that an error lists."""
SURROGATE = re.compile("[\ud800-\udfff]")
ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
ITEM = fields(Evidence)
LIBRARIES = ("courlan", "trafilatura")
"""Libraries whose version may change what is read."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Reads files that a user chose, near-duplicates included."""

    patterns: Sequence[str]
    folder: Path = Path()
    known: Sequence[Evidence] = ()
    columns: Sequence[str] = ()
    """Further fields of an item, such as people's labels, which become metadata."""

    def search(self, window: Window | None, query: str = "", limit: int = 0) -> SearchResult:
        """Reads the evidence in the files in their order. A limit of 0 means no limit."""
        from judge_gym.sources.filters import EvidenceFilter

        evidence = EvidenceFilter(
            window, searched=False, query=query, known=self.known, limit=limit
        )
        paths, unreadable = self.paths()
        items: list[Evidence] = []
        errors = []
        for path in paths:
            try:
                items += read_items(path, self.columns)
            except DesignError as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:  # all in one error, so that they can be corrected together
            listed = "; ".join(error.message for error in errors[:LISTED])
            more = f"; and {len(errors) - LISTED} more" if len(errors) > LISTED else ""
            raise DesignError(f"{len(errors)} files cannot be read: {listed}{more}")
        evidence.add_all(items)
        evidence.drop("other kinds of file", unreadable)
        return evidence.result()

    def paths(self) -> tuple[list[Path], int]:
        """Lists the files, and counts files in folders that cannot have evidence."""
        paths, unreadable = [], 0
        for pattern in self.patterns:
            named = self.folder / pattern
            if named.is_dir():
                inside = [path for path in sorted(named.rglob("*")) if not _is_hidden(path, named)]
                matching = [path for path in inside if path.suffix in READERS and path.is_file()]
                unreadable += sum(path.is_file() for path in inside) - len(matching)
                kinds = f"; a file is {', '.join(READERS)}"
            else:
                matches = sorted(glob.glob(pattern, root_dir=self.folder, recursive=True))
                matching = [path for match in matches if (path := self.folder / match).is_file()]
                kinds = ""
            if not matching:
                raise MissingFileError(
                    f"no file matches {pattern!r} in {self.folder.resolve()}{kinds}"
                )
            paths += matching
        return paths, unreadable


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def load_files(
    patterns: str | Sequence[str],
    folder: Path,
    window: Window | None = None,
    *,
    columns: Sequence[str] = (),
    cache: Path | None = None,
) -> SearchResult:
    """Loads the evidence in files, each text and each address once.

    `columns` are further fields of an item, which become metadata. `cache` is a folder with earlier
    results, which are used as long as nothing has changed.
    """
    named = [patterns] if isinstance(patterns, str) else [*patterns]
    source = FileSource(named, folder, columns=columns)
    return source.search(window) if cache is None else cached_search(source, window, cache)


def load_items(
    rows: Sequence[Any], window: Window | None = None, *, columns: Sequence[str] = ()
) -> SearchResult:
    """Loads evidence that is given as texts or as items, each text and each address once."""
    from judge_gym.sources.filters import EvidenceFilter

    items = []
    for number, row in enumerate(rows, 1):
        fields = {"text": row} if isinstance(row, str) else _with_metadata(row, columns)
        items.append(_evidence(fields, where=f"item {number}", title=f"text {number}"))
    evidence = EvidenceFilter(window, searched=False)
    evidence.add_all(items)
    return evidence.result()


def load_rubric(path: Path, concept: str, country: str) -> Rubric:
    """Loads a given rubric from its JSON file."""
    data = _parse_json(read_text(path), path)
    with errors_in(path):
        return provided_rubric(data, concept, country)


@contextmanager
def errors_in(path: Path) -> Iterator[None]:
    """Adds a file's path to the errors raised within."""
    try:
        yield
    except DesignError as error:
        raise DesignError(f"{path}: {error.message}", choices=error.choices) from error


def read_items(path: Path, columns: Sequence[str] = ()) -> tuple[Evidence, ...]:
    """Reads the items of one file. The fields named by `columns` become metadata."""
    if path.suffix not in READERS:
        raise DesignError(unknown("kind of file", path.name, READERS), choices=READERS)
    items = tuple(READERS[path.suffix](path, columns))
    if not items:
        raise DesignError(f"{path} holds no evidence")
    return items


def _text(path: Path, columns: Sequence[str]) -> Iterator[Evidence]:
    text = read_text(path)
    if text.strip():
        fields, body = _front_matter(text, path)
        for name in fields:
            _refuse_misspelt(str(name), str(path))
        about = {name: value for name, value in fields.items() if name in ABOUT}
        other = {str(name): str(value) for name, value in fields.items() if name not in ABOUT}
        nested = about.get("metadata") or {}
        metadata = {**other, **nested} if isinstance(nested, dict) else nested
        yield _evidence(
            {**about, "metadata": metadata, "text": body}, where=str(path), title=path.stem
        )


def _html(path: Path, columns: Sequence[str]) -> Iterator[Evidence]:
    from judge_gym.sources.articles import extract_article

    article = extract_article(_bytes(path))
    if article is None:
        raise DesignError(f"{path} holds no article text")
    yield replace(article, title=article.title or path.stem)


def _json(path: Path, columns: Sequence[str]) -> Iterator[Evidence]:
    data = _parse_json(read_text(path), path)
    rows = data if isinstance(data, list) else [data]
    for number, row in enumerate(rows, 1):
        where = f"{path}: item {number}" if isinstance(data, list) else str(path)
        yield _evidence(_with_metadata(row, columns), where=where, title=f"{path.stem} {number}")


def _jsonl(path: Path, columns: Sequence[str]) -> Iterator[Evidence]:
    for number, row in json_lines(path):
        fields = _with_metadata(row, columns)
        yield _evidence(fields, where=f"{path}:{number}", title=f"{path.stem} {number}")


def _with_metadata(row: Any, columns: Sequence[str]) -> Any:
    """Moves the fields of these names to an item's metadata."""
    named = {name: row[name] for name in columns if name in row} if isinstance(row, dict) else {}
    if not named:
        return row
    item_columns = {name: value for name, value in row.items() if name not in named}
    metadata = item_columns.get("metadata") or {}
    return {
        **item_columns,
        "metadata": {**metadata, **named} if isinstance(metadata, dict) else metadata,
    }


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields the values of a JSON Lines file with their line numbers."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            yield number, _parse_json(line, path, number)


def _parse_json(text: str, path: Path, line: int | None = None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DesignError(f"{path}:{line or error.lineno}: broken JSON: {error.msg}") from error
    except RecursionError:
        raise DesignError(f"{path}{f':{line}' if line else ''}: JSON nested too deeply") from None


def _csv(path: Path, columns: Sequence[str]) -> Iterator[Evidence]:
    """Reads one item per row. Unknown columns are metadata."""
    names, rows = csv_table(path, required=("text",), columns=COLUMNS, instead=FIELD_NAMES)
    # Beside a text, columns such as `reference` are metadata, as any other.
    parts = () if "text" in names else tuple(n for n in FIELD_NAMES if n not in columns)
    read_columns = (*COLUMNS, *parts)
    for name in names:
        if name not in columns:
            _refuse_misspelt(name, f"{path}:1", (*ABOUT, *parts))
    for number, row in rows:
        item: dict[str, Any] = {name: row[name] for name in read_columns if row.get(name)}
        if "truth" in item and str(item["truth"]).strip().isdigit():
            item["truth"] = int(item["truth"])
        other = {name: value for name, value in row.items() if name not in read_columns}
        yield _evidence(
            {**item, "metadata": other}, where=f"{path}:{number}", title=f"{path.stem} {number}"
        )


def csv_table(
    path: Path, required: Sequence[str], columns: Sequence[str], instead: Sequence[str] = ()
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Reads the columns of a CSV file, and its rows with the number of their last line.

    The delimiter is a comma, a semicolon or a tab, whichever makes the header complete. The case of
    known columns is ignored, and so are empty rows. Any column of `instead` makes up for those that
    are required.
    """
    text = read_text(path)
    header = text.partition("\n")[0]
    tables = {mark: _column_names(header, mark, columns) for mark in ",;\t"}
    fits = [mark for mark, names in tables.items() if set(required) <= set(names)]
    if not fits and instead:
        columns = (*columns, *instead)
        tables = {mark: _column_names(header, mark, columns) for mark in tables}
        fits = [mark for mark, names in tables.items() if not set(instead).isdisjoint(names)]
        fits.sort(key=lambda mark: -len(tables[mark]))
    if not fits:
        most = max(tables.values(), key=len)
        missing = ", ".join(name for name in required if name not in most)
        missing += f" (or {' or '.join(instead)})" if instead else ""
        raise DesignError(
            f"{path}:1: the header lacks {missing}; it is {header[:200]!r}, and known columns are "
            f"{', '.join(columns)}"
        )
    names = tables[fits[0]]
    for name in columns:
        if names.count(name) > 1:
            raise DesignError(f"{path}:1: the header names {name!r} twice")

    def rows() -> Iterator[tuple[int, dict[str, str]]]:
        csv.field_size_limit(2**27)  # a cell may be a long article
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=fits[0], strict=True)
        try:
            next(reader, None)
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if len(cells) != len(names):
                    many = f"{len(cells)} cells under a header of {len(names)}"
                    raise DesignError(f"{path}:{reader.line_num}: {many}")
                yield reader.line_num, dict(zip(names, cells, strict=True))
        except csv.Error as error:
            raise DesignError(f"{path}:{reader.line_num}: broken CSV: {error}") from error

    return names, rows()


def _column_names(header: str, delimiter: str, known: Sequence[str]) -> list[str]:
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    return [name.lower() if name.lower() in known else name for name in names]


def _refuse_misspelt(name: str, where: str, fields: Sequence[str] = ABOUT) -> None:
    """Refuses a name that looks like a misspelt field, since other names are metadata."""
    near = difflib.get_close_matches(name.lower(), fields, n=1, cutoff=0.8)
    if near and name not in fields:
        raise DesignError(
            f"{where}: unknown field {name!r}; did you mean {near[0]!r}?", choices=near
        )


READERS: Mapping[str, Callable[[Path, Sequence[str]], Iterator[Evidence]]] = {
    ".md": _text,
    ".txt": _text,
    ".html": _html,
    ".htm": _html,
    ".json": _json,
    ".jsonl": _jsonl,
    ".csv": _csv,
}


def _front_matter(text: str, path: Path) -> tuple[Mapping[str, Any], str]:
    """Splits a text into the fields between two `---` lines at its top, and the rest."""
    if not text.startswith("---\n"):
        return {}, text
    head, _, body = text[4:].partition("\n---")
    try:
        fields = yaml.safe_load(head) or {}
    except yaml.YAMLError as error:
        raise DesignError(f"{path}: broken front matter") from error
    if not isinstance(fields, dict):
        raise DesignError(f"{path}: front matter is a mapping with {', '.join(ABOUT)}")
    return fields, body.lstrip("-").lstrip("\n")


def _evidence(fields: Any, *, where: str, title: str) -> Evidence:
    if not isinstance(fields, dict):
        raise DesignError(f"{where}: an item is an object with {', '.join(FIELDS)}")
    for name in fields:
        if name not in FIELDS:
            raise DesignError(f"{where}: {unknown('field', name, FIELDS)}", choices=FIELDS)
    text = str(fields.get("text") or "").strip()
    parts = _parts(fields, where)
    if text and parts:
        raise DesignError(
            f"{where}: an item has a text or named parts, not both: text and {', '.join(parts)}"
        )
    responses = fields.get("responses") or []
    if responses and (not isinstance(responses, list) or len(responses) != 2):
        raise DesignError(f"{where}: a pair has two responses")
    if parts:  # of a pair they are the task, which both responses answer
        alone = responses and [*parts] == ["input"]
        text = parts["input"] if alone else render_fields(parts)
    texts = [text, *(str(response or "").strip() for response in responses)]
    for name, part in zip(("text", "first response", "second response"), texts, strict=False):
        if not part:
            raise DesignError(f"{where}: the {name} is empty")
    if any(SURROGATE.search(part) for part in texts):
        raise DesignError(f"{where}: the text has a lone surrogate, half of a character")
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise DesignError(f"{where}: metadata is a mapping")
    return Evidence(
        title=str(fields.get("title") or title),
        text=text,
        url=str(fields.get("url") or ""),
        date=iso_date(fields.get("date")),
        source=str(fields.get("source") or ""),
        truth=fields.get("truth"),
        metadata=metadata,
        responses=tuple(texts[1:]),
        cluster=str(
            cluster_name if (cluster_name := fields.get("cluster")) is not None else ""
        ).strip(),
        fields={} if responses else parts,
    )


def _parts(fields: Mapping[str, Any], where: str) -> dict[str, str]:
    """Reads the non-empty named parts of an item, and a transcript as readable text."""
    parts: dict[str, str] = {}
    for name in FIELD_NAMES:
        value = fields.get(name)
        if name == "messages" and value:
            value = _transcript(value, where)
        elif value is not None and not isinstance(value, str):  # a number, or an object
            value = json.dumps(value, ensure_ascii=False)
        if text := (value or "").strip():
            parts[name] = text
    return parts


def _transcript(value: Any, where: str) -> str:
    """Writes a transcript, a list of messages or its JSON in a cell, as text."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return value  # a transcript that is text already
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DesignError(f"{where}: messages: broken JSON: {error}") from error
    if not isinstance(value, list):
        raise DesignError(f"{where}: messages is a list of objects with role and content")
    try:
        return render_messages(value)
    except DesignError as error:
        raise DesignError(f"{where}: messages: {error.message}") from error


def iso_date(given: Any) -> str:
    """Converts an unambiguous date to ISO format and leaves any other as it is written.

    >>> iso_date("Mon, 05 Jan 2026 10:00:00 GMT"), iso_date("5 January 2026"), iso_date("5.1.2026")
    ('2026-01-05', '2026-01-05', '2026-01-05')
    >>> iso_date("26/1/2026"), iso_date("5/1/2026")
    ('2026-01-26', '5/1/2026')
    """
    if isinstance(given, date):
        return given.isoformat()
    text = str(given or "").strip()
    return text if ISO_DAY.fullmatch(text) else _iso_date(text)


@lru_cache(maxsize=4096)
def _iso_date(text: str) -> str:
    try:
        return parsedate_to_datetime(text).date().isoformat()
    except (ValueError, OverflowError):
        pass
    forms = ("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y")
    slashed = ("%d/%m/%Y", "%m/%d/%Y")
    days = {day for form in forms if (day := _day(text, form))}
    days = days or {day for form in slashed if (day := _day(text, form))}
    return days.pop().isoformat() if len(days) == 1 else text


def _day(text: str, form: str) -> date | None:
    try:
        return datetime.strptime(text, form).date()  # noqa: DTZ007 (a day)
    except ValueError:
        return None


def read_text(path: Path) -> str:
    """Reads a UTF-8 file, with or without a byte order mark, with any line ends."""
    try:
        return _bytes(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise DesignError(f"{path} cannot be read: it is not UTF-8; save it as such") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {path}") from None
    except OSError as error:
        raise DesignError(f"{path} cannot be read: {error}") from error


def cached_search(source: FileSource, window: Window | None, folder: Path) -> SearchResult:
    """Searches files, or returns the result of the last search if nothing has changed since.

    A result is known by the contents of all files, by the window, and by the code that reads.
    """
    name = hashlib.sha256(
        repr((source.patterns, source.folder.resolve(), window, source.columns)).encode()
    )
    file = folder / f"{name.hexdigest()}.json"
    try:
        contents = _digest(source)
    except OSError:
        return source.search(window)  # which names the file that cannot be read
    result = _read(file, contents)
    if result is None:
        result = source.search(window)
        with suppress(OSError):  # a folder in which nothing can be written
            if _digest(source) == contents:  # the files have not changed meanwhile
                _write(file, contents, result)
    return result


def _digest(source: FileSource) -> str:
    """Hashes all that a search of the files depends on, apart from the window."""
    paths, skipped = source.paths()
    hasher = hashlib.sha256(f"{_code()} {skipped}".encode())
    for path in paths:
        hasher.update(f"\0{path}\0".encode("utf-8", "surrogateescape"))
        hasher.update(hashlib.sha256(path.read_bytes()).digest())
    return hasher.hexdigest()


@cache
def _code() -> str:
    modules = [*sorted(Path(__file__).parent.glob("*.py")), Path(evidence.__file__)]
    hasher = hashlib.sha256(repr([metadata.version(name) for name in LIBRARIES]).encode())
    for module in modules:
        hasher.update(module.read_bytes())
    return hasher.hexdigest()


def _read(file: Path, contents: str) -> SearchResult | None:
    try:
        stored = json.loads(file.read_bytes())
        return _result(stored) if stored["contents"] == contents else None
    except (OSError, ValueError, KeyError, TypeError):  # none, or of another version
        return None


def _write(file: Path, contents: str, result: SearchResult) -> None:
    """Writes a result that only the owner can read, unless JSON would change it."""
    # Not `asdict`, which copies every value.
    rows = [{field.name: getattr(item, field.name) for field in ITEM} for item in result.items]
    others = {field.name: getattr(result, field.name) for field in fields(result)}
    stored = {**others, "items": rows, "contents": contents}
    try:
        text = json.dumps(stored)
        if _result(json.loads(text)) != result:
            return
    except (TypeError, ValueError):  # metadata that is not JSON, such as a date
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=file.parent, delete=False) as written:
        written.write(text)
    os.replace(written.name, file)


def _result(stored: Mapping[str, Any]) -> SearchResult:
    others = {name: value for name, value in stored.items() if name != "contents"}
    items = tuple(
        Evidence(**{**item, "responses": tuple(item["responses"])}) for item in stored["items"]
    )
    return SearchResult(**{**others, "items": items, "notes": tuple(stored["notes"])})
