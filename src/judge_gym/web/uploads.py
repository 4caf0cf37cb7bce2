"""What `Lab` reads from files, given in requests: evidence, rubrics, labels, studies.

A client names no file of the server, except in a study, and there only files below one folder.
"""

import csv
import io
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import yaml

from judge_gym.errors import DesignError, JudgeGymError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.lab.prepare import STUDY_SUFFIXES, PreparedStudy, prepare_study
from judge_gym.studies import Study, read_study
from judge_gym.studies.file import SampleSweep

T = TypeVar("T")

LONGEST_STUDY = 256 * 1024
"""Characters of a study."""
DEEPEST = 50
OPENING = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
MOST_EXPERIMENTS, MOST_SAMPLES = 20_000, 10_000


def named(target: str) -> str:
    """The name of a study or a tag. `Lab` would take a file's path too, and read the file."""
    if Path(target).suffix in STUDY_SUFFIXES:
        raise NotFoundError(f"there is no experiment {target!r}; a study file is sent as its text")
    return target


def prepared(
    lab: Lab, text: str, folder: Path, overrides: Mapping[str, Any] | None = None
) -> PreparedStudy:
    """A study given as its text; the files that it names lie below the folder."""
    if len(text) > LONGEST_STUDY:
        raise DesignError(f"a study has at most {LONGEST_STUDY:,} characters")
    _refuse_endless(text)
    given = dict(overrides or {})
    study = read_study(text, "study", resolve=lab.models.resolve, overrides=given)
    _refuse_vast(study)
    for path in _paths(study):
        _refuse_outside(path, folder)
    with _bare_messages(folder):
        return prepare_study(study, text, folder, lab.models, lab.store, given)


def from_items(items: Sequence[Mapping[str, Any]], read: Callable[[Path], T]) -> T:
    """Read evidence as if it were a file of one item a line."""
    return from_files({"items.jsonl": _lines(items)}, lambda folder: read(folder / "items.jsonl"))


def from_benchmark(
    concept: str,
    items: Sequence[Mapping[str, Any]],
    rubric: Mapping[str, Any],
    read: Callable[[Path], T],
) -> T:
    """Read a benchmark as if it were a folder."""
    texts = {
        "benchmark.toml": f"concept = {json.dumps(concept)}",
        "items.jsonl": _lines(items),
        "rubric.json": json.dumps(rubric),
    }
    return from_files(texts, read)


def from_rows(rows: Sequence[Mapping[str, str]], read: Callable[[Path], T]) -> T:
    """Read a table as if it were a CSV file."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    name = "labels.csv"
    return from_files({name: text.getvalue()}, lambda folder: read(folder / name))


def from_files(texts: Mapping[str, str], read: Callable[[Path], T]) -> T:
    """Read texts as if they lay in a folder."""
    with tempfile.TemporaryDirectory() as made, _bare_messages(Path(made)):
        for name, text in texts.items():
            (Path(made) / name).write_bytes(text.encode("utf-8"))
        return read(Path(made))


def _lines(items: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(json.dumps(item) for item in items)


@contextmanager
def _bare_messages(folder: Path) -> Iterator[None]:
    """Errors within name files as the client knows them, not where they lie on the server."""
    try:
        yield
    except JudgeGymError as fault:
        for place in {str(folder), str(folder.resolve())} - {".", "/"}:
            fault.message = fault.message.replace(f"{place}/", "").replace(place, "the folder")
        fault.args = (fault.message,)
        raise


def _refuse_vast(study: Study) -> None:
    """A short text may ask for more than any server holds."""
    levels = [len(levels) for levels in study.vary.values()]
    match study.sweep:
        case "grid":
            points = math.prod(levels)
        case "ablate":
            points = 1 + sum(levels)
        case SampleSweep(sample=drawn):
            points = drawn * (1 + sum(levels))
    wanted = points * len(study.tasks) * len(study.judges)
    if wanted > MOST_EXPERIMENTS or study.samples > MOST_SAMPLES:
        raise DesignError(
            f"a study that is sent has at most {MOST_EXPERIMENTS:,} experiments and "
            f"{MOST_SAMPLES:,} samples"
        )


def _refuse_endless(text: str) -> None:
    """A few aliases of aliases stand for a text without end, and deep nesting is slow to read."""
    depth = 0
    try:
        for token in yaml.scan(text):
            depth += isinstance(token, OPENING) - isinstance(token, CLOSING)
            if isinstance(token, yaml.AliasToken) or depth > DEEPEST:
                raise DesignError(
                    f"a study that is sent has no YAML aliases and {DEEPEST} levels at most"
                )
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
