"""Reads what a client sends as text as if it were files, within limits and within a folder."""

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from judge_gym.axes import NONE, TEMPLATE
from judge_gym.errors import ConflictError, DesignError, JudgeGymError, unknown
from judge_gym.lab.prepare import PreparedStudy, prepare_study
from judge_gym.lab.study_files import StudySource
from judge_gym.models import Registry
from judge_gym.store import Store
from judge_gym.studies import Study, read_study
from judge_gym.studies.file import SampleSweep


@contextmanager
def files_of(texts: Mapping[str, str]) -> Iterator[Path]:
    """Writes texts into a temporary folder, which errors leave out of the names of files."""
    with tempfile.TemporaryDirectory() as name, strip_folder_from_errors(Path(name)):
        for file, text in texts.items():
            (Path(name) / file).write_bytes(text.encode("utf-8"))
        yield Path(name)


@contextmanager
def strip_folder_from_errors(folder: Path) -> Iterator[None]:
    """Removes a folder from the messages of errors: its files are known without it."""
    try:
        yield
    except JudgeGymError as error:
        for name in {str(folder), str(folder.resolve())} - {".", "/"}:
            error.message = error.message.replace(f"{name}/", "").replace(name, "the folder")
        error.args = (error.message,)
        raise


# --- studies -------------------------------------------------------------------------------------

MAX_LENGTH = 2 * 1024 * 1024
"""Characters of a study."""
MAX_DEPTH = 50
OPENING = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
MAX_EXPERIMENTS, MAX_SAMPLES = 20_000, 10_000


def prepare_text(
    text: str, folder: Path, models: Registry, store: Store, overrides: Mapping[str, Any]
) -> PreparedStudy:
    """Reads a study from its text. The files that it names must be in the folder."""
    if len(text) > MAX_LENGTH:
        raise DesignError(f"a study has at most {MAX_LENGTH:,} characters")
    _check_yaml_depth(text)
    study = read_study(text, "study", resolve=models.resolve, overrides=overrides)
    _check_size(study)
    for path in _paths(study):
        refuse_outside(path, folder)
    with strip_folder_from_errors(folder):
        return prepare_study(StudySource(text, study, folder, overrides), models, store)


def _check_size(study: Study) -> None:
    """Refuses a study with too many experiments or samples, however short its text is."""
    levels = [len(levels) for levels in study.vary.values()]
    match study.sweep:
        case "grid":
            points = math.prod(levels)
        case "ablate":
            points = 1 + sum(levels)
        case SampleSweep(sample=drawn):
            points = drawn * (1 + sum(levels))
    experiments = points * len(study.tasks) * len(study.judges)
    if experiments > MAX_EXPERIMENTS or study.samples > MAX_SAMPLES:
        raise DesignError(
            f"a study that is sent has at most {MAX_EXPERIMENTS:,} experiments and "
            f"{MAX_SAMPLES:,} samples"
        )


def _check_yaml_depth(text: str) -> None:
    """Refuses YAML aliases, which can expand without limit, and deep nesting."""
    depth = 0
    try:
        for token in yaml.scan(text, Loader=yaml.CSafeLoader):
            depth += isinstance(token, OPENING) - isinstance(token, CLOSING)
            if isinstance(token, yaml.AliasToken) or depth > MAX_DEPTH:
                raise DesignError(
                    f"a study that is sent has no YAML aliases and {MAX_DEPTH} levels at most"
                )
    except yaml.YAMLError:
        return  # the reader of studies reports it better


def _paths(study: Study) -> Iterator[str]:
    """Yields every path that a study names."""
    for pool in study.evidence.values():
        files = [pool.files] if isinstance(pool.files, str) else pool.files or []
        yield from (*files, *_present_paths(pool.benchmark, pool.judgebench))
    prompts = [*study.vary.get(TEMPLATE, []), study.design.get(TEMPLATE, NONE)]
    yield from (path for path in prompts if path != NONE)
    for task in study.tasks:
        rubric = task.rubric if isinstance(task.rubric, str) else None
        yield from _present_paths(rubric, task.truth.vdem if task.truth else None)


def _present_paths(*paths: str | None) -> Iterable[str]:
    return [path for path in paths if path is not None]


def refuse_outside(path: str, folder: Path) -> None:
    """Refuses a path or a pattern that leads out of the folder, by its parts or by a link."""
    words = PurePosixPath(path.replace("\\", "/"))
    hidden = any(part.startswith(".") for part in words.parts)
    if hidden or words.is_absolute() or Path(path).is_absolute() or _leads_out(path, folder):
        raise DesignError(f"{path!r} is not below the folder of the lab; name files there")


def check_folder(file: Path) -> None:
    """Raises if the folder of a file is missing. Called before its content is computed."""
    if not file.parent.is_dir():
        raise DesignError(f"there is no folder {file.parent} for {file.name}")


def new_file(path: str, folder: Path, suffixes: Sequence[str]) -> Path:
    """Validates a client-supplied path of a new file below a folder, and creates its parent folder.

    An existing file is never replaced: it may be anything.
    """
    refuse_outside(path, folder)
    file = folder / path
    if file.suffix not in suffixes:
        raise DesignError(unknown("kind of file", file.suffix, suffixes), choices=suffixes)
    if not file.resolve().is_relative_to(folder.resolve()):
        raise DesignError(f"{path!r} is not below the folder of the lab; name files there")
    if file.exists():
        raise ConflictError(f"{path} exists already; choose another name")
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _leads_out(pattern: str, folder: Path) -> bool:
    root = folder.resolve()
    matches = [root / match for match in glob(pattern, root_dir=root, recursive=True)]
    contents = [inside for match in matches if match.is_dir() for inside in match.rglob("*")]
    return not all(path.resolve().is_relative_to(root) for path in (*matches, *contents))
