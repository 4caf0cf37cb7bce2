"""Evidence and rubrics from files: `.jsonl` with an item a line, `.md` and `.txt` with one each."""

import glob
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from judge_gym.errors import DesignError, unknown
from judge_gym.records import Evidence, Rubric, provided_rubric

FIELDS = ("title", "text", "url", "date", "source", "truth", "metadata")
SUFFIXES = (".jsonl", ".md", ".txt")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What files held."""

    items: tuple[Evidence, ...]
    duplicates: int
    """Items whose text or address was there already; they are left out."""


def load_files(patterns: str | Sequence[str], folder: Path) -> Loaded:
    """The evidence in files, in the order of their names; a text and an address stand once."""
    items: dict[str, Evidence] = {}
    addresses: set[str] = set()
    read = 0
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        found = sorted(glob.glob(pattern, root_dir=folder, recursive=True))
        paths = [folder / path for path in found if (folder / path).is_file()]
        if not paths:
            hint = (
                f"; a folder needs a pattern: {pattern}/*.md" if (folder / pattern).is_dir() else ""
            )
            raise DesignError(f"no file matches {pattern!r} in {folder.resolve()}{hint}")
        for path in paths:
            before = read
            for item in _items(path):
                read += 1
                if item.url not in addresses:
                    items.setdefault(item.hash, item)
                    addresses |= {item.url} - {""}
            if read == before:
                raise DesignError(f"{path} holds no evidence")
    return Loaded(tuple(items.values()), read - len(items))


def load_rubric(path: Path, concept: str, country: str) -> Rubric:
    """A given rubric from its JSON file."""
    try:
        return provided_rubric(json.loads(_read(path)), concept, country)
    except json.JSONDecodeError as fault:
        raise DesignError(f"{path}:{fault.lineno}: broken JSON: {fault.msg}") from fault
    except DesignError as fault:
        raise DesignError(f"{path}: {fault.message}", choices=fault.choices) from fault


def _items(path: Path) -> Iterator[Evidence]:
    if path.suffix not in SUFFIXES:
        raise DesignError(unknown("kind of file", path.name, SUFFIXES), choices=SUFFIXES)
    text = _read(path)
    if path.suffix != ".jsonl":
        if text.strip():
            yield _evidence(*_front_matter(text, path), where=str(path), title=path.stem)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as fault:
            raise DesignError(f"{where}: broken JSON: {fault.msg}") from fault
        if not isinstance(row, dict):
            raise DesignError(f"{where}: a line is an object with {', '.join(FIELDS)}")
        yield _evidence(row, str(row.get("text") or ""), where=where, title=f"{path.stem} {number}")


def _front_matter(text: str, path: Path) -> tuple[Mapping[str, Any], str]:
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


def _evidence(fields: Mapping[str, Any], text: str, *, where: str, title: str) -> Evidence:
    for name in fields:
        if name not in FIELDS:
            raise DesignError(f"{where}: {unknown('field', name, FIELDS)}", choices=FIELDS)
    if not text.strip():
        raise DesignError(f"{where}: the text is empty")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise DesignError(f"{where}: the text holds half a character (a lone surrogate)")
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise DesignError(f"{where}: metadata is a mapping")
    return Evidence(
        title=str(fields.get("title") or title),
        text=text.strip(),
        url=str(fields.get("url") or ""),
        date=str(fields.get("date") or ""),
        source=str(fields.get("source") or ""),
        truth=fields.get("truth"),
        metadata=metadata,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DesignError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as fault:
        raise DesignError(f"{path} cannot be read: {fault}") from fault
