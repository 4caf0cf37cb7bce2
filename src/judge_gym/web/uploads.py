"""What `Lab` reads from files, given in requests: evidence, rubrics, labels, studies.

A client names no file of the server, except in a study, and there only files below one folder.
"""

import csv
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import yaml

from judge_gym.errors import DesignError, JudgeGymError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.preparing import STUDY_SUFFIXES, Prepared, prepare_study
from judge_gym.studies import Study, read_study

T = TypeVar("T")

LONGEST_STUDY = 256 * 1024
"""Characters of a study."""


def named(target: str) -> str:
    """The name of a study or a tag. `Lab` would take a file's path too, and read the file."""
    if Path(target).suffix in STUDY_SUFFIXES:
        raise NotFoundError(f"there is no experiment {target!r}; a study file is sent as its text")
    return target


def prepared(
    lab: Lab, text: str, folder: Path, overrides: Mapping[str, Any] | None = None
) -> Prepared:
    """A study given as its text; the files that it names lie below the folder."""
    if len(text) > LONGEST_STUDY:
        raise DesignError(f"a study has at most {LONGEST_STUDY:,} characters")
    _refuse_aliases(text)
    given = dict(overrides or {})
    study = read_study(text, "study", resolve=lab.models.resolve, overrides=given)
    for path in _paths(study):
        _refuse_outside(path, folder)
    with _bare_messages(folder):
        return prepare_study(study, text, folder, lab.models, lab.store, given)


def from_items(items: Sequence[Mapping[str, Any]], read: Callable[[Path], T]) -> T:
    """Read evidence as if it were a file of one item a line."""
    lines = "\n".join(json.dumps(item, default=str) for item in items)
    return _from_file("items.jsonl", lines, read)


def from_json(document: Any, read: Callable[[Path], T]) -> T:
    """Read a document as if it were a file."""
    return _from_file("rubric.json", json.dumps(document), read)


def from_rows(rows: Sequence[Mapping[str, str]], read: Callable[[Path], T]) -> T:
    """Read a table as if it were a CSV file."""
    with tempfile.TemporaryDirectory() as folder, _bare_messages(Path(folder)):
        path = Path(folder) / "labels.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return read(path)


def _from_file(name: str, text: str, read: Callable[[Path], T]) -> T:
    with tempfile.TemporaryDirectory() as folder, _bare_messages(Path(folder)):
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        return read(path)


@contextmanager
def _bare_messages(folder: Path) -> Iterator[None]:
    """Errors within name files as the client knows them, not where they lie on the server."""
    try:
        yield
    except JudgeGymError as fault:
        for place in {str(folder), str(folder.resolve())} - {".", "/"}:
            fault.message = fault.message.replace(f"{place}/", "").replace(place, "its folder")
        fault.args = (fault.message,)
        raise


def _refuse_aliases(text: str) -> None:
    """A few aliases of aliases in a short text would stand for a text without end."""
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise DesignError("a study that is sent has no YAML aliases")
    except yaml.YAMLError:
        return  # which its reader tells better


def _paths(study: Study) -> Iterator[str]:
    """Whatever a study names of files."""
    for pool in study.evidence.values():
        files = [pool.files] if isinstance(pool.files, str) else pool.files or []
        yield from (*files, *_given(pool.benchmark, pool.judgebench))
    for task in study.tasks:
        yield from _given(task.rubric, task.truth.vdem if task.truth else None)


def _given(*paths: str | None) -> Iterable[str]:
    return [path for path in paths if path is not None]


def _refuse_outside(path: str, folder: Path) -> None:
    """Refuse a path or a pattern that leads out of the folder, by its words or by a link."""
    words = PurePosixPath(path.replace("\\", "/"))
    hidden = any(part.startswith(".") for part in words.parts)
    if hidden or words.is_absolute() or Path(path).is_absolute() or _leads_out(path, folder):
        raise DesignError(f"{path!r} is not below the folder of the lab; name files there")


def _leads_out(pattern: str, folder: Path) -> bool:
    root = folder.resolve()
    matches = [root / match for match in glob(pattern, root_dir=root, recursive=True)]
    held = [inside for match in matches if match.is_dir() for inside in match.rglob("*")]
    return not all(one.resolve().is_relative_to(root) for one in (*matches, *held))
