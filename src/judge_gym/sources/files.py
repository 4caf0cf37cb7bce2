"""Evidence and rubrics from files: a folder, a glob, or a list of them.

`.md`, `.txt` and `.html` hold one item each; `.jsonl` and `.csv` one a line, `.json` one or a list.
"""

import csv
import difflib
import glob
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import yaml

from judge_gym.errors import DesignError, unknown
from judge_gym.records import Evidence, Rubric, Window, provided_rubric
from judge_gym.sources.collecting import Collected

FIELDS = ("title", "text", "responses", "url", "date", "source", "truth", "metadata")
TOLD = 10
"""So many faulty files are told at once."""
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files that a user chose. What they say of themselves counts: near-duplicates are kept."""

    patterns: Sequence[str]
    folder: Path = Path()
    known: Sequence[Evidence] = ()

    def search(self, window: Window | None, query: str = "", limit: int = 0) -> Collected:
        """The evidence in the files, in the order of patterns and names; 0 is no limit."""
        from judge_gym.sources.sifting import sift

        paths, others = self._paths()
        items: list[Evidence] = []
        faults = []
        for path in paths:
            try:
                items += read_items(path)
            except DesignError as fault:
                faults.append(fault)
        if len(faults) == 1:
            raise faults[0]
        if faults:  # all at once, so that they can be mended at once
            told = "; ".join(fault.message for fault in faults[:TOLD])
            more = f"; and {len(faults) - TOLD} more" if len(faults) > TOLD else ""
            raise DesignError(f"{len(faults)} files cannot be taken: {told}{more}")
        found = sift(items, window, query=query, searched=False, known=self.known, limit=limit)
        odd = {"other kinds of file": others} if others else {}
        return replace(found, dropped={**found.dropped, **odd})

    def _paths(self) -> tuple[list[Path], int]:
        """The files, and how many in a folder are of no kind that holds evidence."""
        paths, others = [], 0
        for pattern in self.patterns:
            named = self.folder / pattern
            if named.is_dir():
                inside = [path for path in sorted(named.rglob("*")) if not _hidden(path, named)]
                found = [path for path in inside if path.suffix in READERS and path.is_file()]
                others += sum(path.is_file() for path in inside) - len(found)
                kinds = f"; a file is {', '.join(READERS)}"
            else:
                matches = sorted(glob.glob(pattern, root_dir=self.folder, recursive=True))
                found = [path for match in matches if (path := self.folder / match).is_file()]
                kinds = ""
            if not found:
                raise DesignError(f"no file matches {pattern!r} in {self.folder.resolve()}{kinds}")
            paths += found
        return paths, others


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def load_files(
    patterns: str | Sequence[str], folder: Path, window: Window | None = None
) -> Collected:
    """The evidence in files; a text and an address stand once."""
    listed = [patterns] if isinstance(patterns, str) else patterns
    return FileSource(listed, folder).search(window)


def load_rubric(path: Path, concept: str, country: str) -> Rubric:
    """A given rubric from its JSON file."""
    try:
        return provided_rubric(json.loads(read_text(path)), concept, country)
    except json.JSONDecodeError as fault:
        raise DesignError(f"{path}:{fault.lineno}: broken JSON: {fault.msg}") from fault
    except DesignError as fault:
        raise DesignError(f"{path}: {fault.message}", choices=fault.choices) from fault


def read_items(path: Path) -> tuple[Evidence, ...]:
    """The items of one file, as they stand there."""
    if path.suffix not in READERS:
        raise DesignError(unknown("kind of file", path.name, READERS), choices=READERS)
    items = tuple(READERS[path.suffix](path))
    if not items:
        raise DesignError(f"{path} holds no evidence")
    return items


def _text(path: Path) -> Iterator[Evidence]:
    text = read_text(path)
    if text.strip():
        fields, body = _front_matter(text, path)
        for name in fields:
            _refuse_misspelt(str(name), str(path))
        own = {name: value for name, value in fields.items() if name in FIELDS}
        other = {str(name): str(value) for name, value in fields.items() if name not in FIELDS}
        given = own.get("metadata") or {}
        metadata = {**other, **given} if isinstance(given, dict) else given
        yield _evidence(
            {**own, "metadata": metadata, "text": body}, where=str(path), title=path.stem
        )


def _html(path: Path) -> Iterator[Evidence]:
    from judge_gym.sources.articles import article

    found = article(_bytes(path))
    if found is None:
        raise DesignError(f"{path} holds no article text")
    yield replace(found, title=found.title or path.stem)


def _json(path: Path) -> Iterator[Evidence]:
    try:
        data = json.loads(read_text(path))
    except json.JSONDecodeError as fault:
        raise DesignError(f"{path}:{fault.lineno}: broken JSON: {fault.msg}") from fault
    except RecursionError:
        raise DesignError(f"{path}: JSON nested beyond reading") from None
    rows = data if isinstance(data, list) else [data]
    for number, row in enumerate(rows, 1):
        where = f"{path}: item {number}" if isinstance(data, list) else str(path)
        yield _evidence(row, where=where, title=f"{path.stem} {number}")


def _jsonl(path: Path) -> Iterator[Evidence]:
    for number, row in json_lines(path):
        yield _evidence(row, where=f"{path}:{number}", title=f"{path.stem} {number}")


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a file with one a line, and the number of each."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as fault:
                raise DesignError(f"{path}:{number}: broken JSON: {fault.msg}") from fault
            except RecursionError:
                raise DesignError(f"{path}:{number}: JSON nested beyond reading") from None


def _csv(path: Path) -> Iterator[Evidence]:
    """A row an item. Other columns are metadata, since a table cannot nest them."""
    text = read_text(path)
    head = text.partition("\n")[0]
    columns = [name for name in FIELDS if name not in ("responses", "metadata")]
    delimiter = next((mark for mark in ",;\t" if "text" in _columns(head, mark)), ",")
    csv.field_size_limit(2**27)  # a cell may hold a long article
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    reader.fieldnames = _columns(head, delimiter)
    next(reader.reader, None)
    if "text" not in reader.fieldnames:
        raise DesignError(
            f"{path}:1: there is no column 'text' among {', '.join(reader.fieldnames)}; known "
            f"columns: {', '.join(columns)}"
        )
    for name in reader.fieldnames:
        _refuse_misspelt(name, f"{path}:1")
    try:
        for row in reader:
            where = f"{path}:{reader.line_num}"
            if not any(value and str(value).strip() for value in row.values()):
                continue  # a blank row at the end of a spreadsheet
            if None in row or None in row.values():
                raise DesignError(f"{where}: the row has not as many cells as the first")
            given: dict[str, Any] = {name: row[name] for name in columns if row.get(name)}
            if "truth" in given and str(given["truth"]).strip().isdigit():
                given["truth"] = int(given["truth"])
            other = {name: value for name, value in row.items() if name not in columns}
            yield _evidence(
                {**given, "metadata": other}, where=where, title=f"{path.stem} {reader.line_num}"
            )
    except csv.Error as fault:
        raise DesignError(f"{path}:{reader.line_num + 1}: broken CSV: {fault}") from fault


def _columns(head: str, delimiter: str) -> list[str]:
    """The names of columns; those that we know, whatever their case."""
    names = [name.strip().strip('"') for name in head.split(delimiter)]
    return [name.lower() if name.lower() in FIELDS else name for name in names]


def _refuse_misspelt(name: str, where: str) -> None:
    """Other names are metadata, unless they look like a field with a slip in it."""
    near = difflib.get_close_matches(name.lower(), FIELDS, n=1, cutoff=0.8)
    if near and name not in FIELDS:
        raise DesignError(
            f"{where}: unknown field {name!r}; did you mean {near[0]!r}?", choices=near
        )


READERS: Mapping[str, Callable[[Path], Iterator[Evidence]]] = {
    ".md": _text,
    ".txt": _text,
    ".html": _html,
    ".htm": _html,
    ".json": _json,
    ".jsonl": _jsonl,
    ".csv": _csv,
}


def _front_matter(text: str, path: Path) -> tuple[Fields, str]:
    """The fields between two `---` lines at the top, and the text below."""
    if not text.startswith("---\n"):
        return {}, text
    head, _, body = text[4:].partition("\n---")
    try:
        fields = yaml.safe_load(head) or {}
    except yaml.YAMLError as fault:
        raise DesignError(f"{path}: broken front matter") from fault
    if not isinstance(fields, dict):
        raise DesignError(f"{path}: front matter is a mapping with {', '.join(FIELDS)}")
    return fields, body.lstrip("-").lstrip("\n")


def _evidence(fields: Any, *, where: str, title: str) -> Evidence:
    if not isinstance(fields, dict):
        raise DesignError(f"{where}: an item is an object with {', '.join(FIELDS)}")
    for name in fields:
        if name not in FIELDS:
            raise DesignError(f"{where}: {unknown('field', name, FIELDS)}", choices=FIELDS)
    text = str(fields.get("text") or "").strip()
    responses = fields.get("responses") or []
    if responses and (not isinstance(responses, list) or len(responses) != 2):
        raise DesignError(f"{where}: a pair has two responses")
    texts = [text, *(str(response or "").strip() for response in responses)]
    if not all(texts):
        raise DesignError(f"{where}: the text is empty")
    whole = json.dumps([*texts, str(fields)], ensure_ascii=False)
    if any("\ud800" <= char <= "\udfff" for char in whole):
        raise DesignError(f"{where}: the text holds half a character (a lone surrogate)")
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
    )


def iso_date(given: Any) -> str:
    """A date as ISO text where it can only mean one day, else as it was written.

    >>> iso_date("Mon, 05 Jan 2026 10:00:00 GMT"), iso_date("5 January 2026"), iso_date("5.1.2026")
    ('2026-01-05', '2026-01-05', '2026-01-05')
    >>> iso_date("26/1/2026"), iso_date("5/1/2026")
    ('2026-01-26', '5/1/2026')
    """
    if isinstance(given, date):
        return given.isoformat()
    text = str(given or "").strip()
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
    """The text of a file, whatever mark stands before it."""
    try:
        return _bytes(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as fault:
        raise DesignError(f"{path} cannot be read: it is not UTF-8; save it as such") from fault


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DesignError(f"there is no file {path}") from None
    except OSError as fault:
        raise DesignError(f"{path} cannot be read: {fault}") from fault
