"""Reads a study file once, and finds its stored experiments without its evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge_gym.axes import NONE, TEMPLATE
from judge_gym.errors import DesignError, NotFoundError
from judge_gym.lab.study_evidence import read_benchmark
from judge_gym.lab.study_prompts import with_prompts
from judge_gym.models import Registry
from judge_gym.store import Store
from judge_gym.studies import Study, read_study, study_tags


@dataclass(frozen=True, slots=True)
class StudySource:
    """A study that was read and checked, from which all steps of a command work."""

    text: str
    study: Study
    """The study of the text, under `overrides`."""
    folder: Path
    """The folder that its paths are relative to."""
    overrides: Mapping[str, Any]
    """The knobs of the base design that a command sets in place of the file's."""


def read_study_file(
    path: Path, models: Registry, overrides: Mapping[str, Any] | None = None
) -> StudySource:
    """Reads and checks a study file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"the study file {path} cannot be read: {error}") from error
    study = read_study(text, str(path), resolve=models.resolve, overrides=overrides or {})
    return StudySource(text, study, path.parent, overrides or {})


def stored_rows(file: StudySource, models: Registry, store: Store) -> list[dict[str, Any]]:
    """Finds the stored experiments that a study file names. Its evidence may be gone.

    What its tasks on a benchmark vary is written in the benchmark's folder: without the folder,
    all that the study has of its judges on this benchmark are returned.
    """
    study, folder = file.study, file.folder
    benchmarks, missing_benchmarks = {}, set()
    for name, spec in study.evidence.items():
        if spec.is_benchmark:
            try:
                benchmarks[name] = read_benchmark(spec, folder, models)
            except DesignError:
                missing_benchmarks.add(name)
    prompts_missing = False
    try:
        study, _ = with_prompts(study, folder)
    except DesignError:
        prompts_missing = True  # the tags of a prompt of its own name its text
    tags = study_tags(study, benchmarks)
    return [
        row
        for row in store.experiments.rows(study=study.study)
        if row["tag"] in tags
        or (row["pool_name"] in missing_benchmarks and row["design"]["judge.model"] in study.judges)
        or (prompts_missing and row["design"][TEMPLATE] != NONE)
    ]
