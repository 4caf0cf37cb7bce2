"""Keeps what was read from files and filtered, until the files, the window or the code change."""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from judge_gym.records import Evidence, Window, evidence
from judge_gym.sources.files import FileSource
from judge_gym.sources.search import SearchResult

LIBRARIES = ("courlan", "trafilatura")
"""Libraries whose version may change what is read."""


def cached_search(source: FileSource, window: Window | None, folder: Path) -> SearchResult:
    """Searches files, or returns the result of the last search if nothing has changed since.

    A result is known by the contents of all files, by the window, and by the code that reads.

    Args:
        source: the files; it has no items that are known already.
        window: the country and the dates.
        folder: holds the results; it is created if necessary.
    """
    name = hashlib.sha256(repr((source.patterns, source.folder.resolve(), window)).encode())
    file = folder / f"{name.hexdigest()}.json"
    try:
        contents = _digest(source)
    except OSError:
        return source.search(window)  # which names the file that cannot be read
    found = _read(file, contents)
    if found is None:
        found = source.search(window)
        with suppress(OSError):  # a folder in which nothing can be written
            if _digest(source) == contents:  # the files have not changed meanwhile
                _write(file, contents, found)
    return found


def _digest(source: FileSource) -> str:
    """Returns the hash of all that a search of the files depends on, apart from the window."""
    paths, others = source.paths()
    whole = hashlib.sha256(f"{_code()} {others}".encode())
    for path in paths:
        whole.update(f"\0{path}\0".encode("utf-8", "surrogateescape"))
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


@cache
def _code() -> str:
    modules = [*sorted(Path(__file__).parent.glob("*.py")), Path(evidence.__file__)]
    whole = hashlib.sha256(repr([metadata.version(name) for name in LIBRARIES]).encode())
    for module in modules:
        whole.update(module.read_bytes())
    return whole.hexdigest()


def _read(file: Path, contents: str) -> SearchResult | None:
    try:
        stored = json.loads(file.read_bytes())
        return _result(stored) if stored["contents"] == contents else None
    except (OSError, ValueError, KeyError, TypeError):  # none, or of another version
        return None


def _write(file: Path, contents: str, result: SearchResult) -> None:
    """Writes a result, unless JSON would change it; only the owner can read the file."""
    stored = {**asdict(result), "contents": contents}
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
    fields = {name: value for name, value in stored.items() if name != "contents"}
    items = tuple(
        Evidence(**{**item, "responses": tuple(item["responses"])}) for item in stored["items"]
    )
    return SearchResult(**{**fields, "items": items, "notes": tuple(stored["notes"])})
