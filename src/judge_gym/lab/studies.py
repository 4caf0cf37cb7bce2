"""Resolves what users name to stored experiments, and prepares it to be run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError, NotFoundError, unknown
from judge_gym.lab.prepare import PreparedStudy, prepare_rows, prepare_study
from judge_gym.lab.study_files import StudySource, read_study_file, stored_rows
from judge_gym.lab.texts import prepare_text
from judge_gym.models import Registry
from judge_gym.records import Pool
from judge_gym.records.inputs import STUDY_SUFFIXES
from judge_gym.store import Store
from judge_gym.studies import Experiment

Target = str | Path | StudySource
"""What users name: a study's name, an experiment's tag, or a study file, which may be read."""


class Studies:
    """Finds and prepares the studies and experiments that users name.

    A verb that asks no model finds what is stored: neither the evidence of a study file nor its
    rubrics have to be there any more. A verb that asks prepares all of it.

    Args:
        store: the lab's database.
        models: by which bare names of models are resolved.
        folder: holds the files that the text of a study may name.
    """

    def __init__(self, store: Store, models: Registry, folder: Path) -> None:
        self._store = store
        self._models = models
        self._folder = folder

    def read(self, target: Target, overrides: Mapping[str, Any] | None = None) -> str | StudySource:
        """Reads a study file once for all steps of a command. Any other target is a name."""
        if isinstance(target, StudySource):
            if overrides and overrides != target.overrides:
                raise DesignError("this study was read under other knobs; read its file again")
            return target
        if Path(target).suffix in STUDY_SUFFIXES:
            return read_study_file(Path(target), self._models, overrides)
        if overrides:
            raise DesignError(
                "overrides (--set) change a study file's base design; a tag has its design"
            )
        return str(target)

    # --- what is stored --------------------------------------------------------------------------

    def find(self, *targets: Target) -> Sequence[dict[str, Any]]:
        """Finds the stored rows of experiments by tag, study or study file, or of all."""
        if not targets:
            return self._store.experiments.rows()
        rows = [row for target in targets for row in self.find_named(target)[1]]
        return [*{row["tag"]: row for row in rows}.values()]

    def find_named(self, target: Target) -> tuple[str, Sequence[dict[str, Any]]]:
        """Finds the stored rows of one target, with the study's name or tag that it stands for."""
        source = self.read(target)
        if isinstance(source, StudySource):
            name = source.study.study
            rows = stored_rows(source, self._models, self._store)
        else:
            name = source
            rows = self._store.experiments.rows(study=name)
        return name, rows or self._store.experiments.rows(tags=[name])

    def name(self, target: Target) -> str:
        """Reads the name in a study file. Any other target is a name itself."""
        source = self.read(target)
        return source.study.study if isinstance(source, StudySource) else source

    def find_study(self, study: str) -> Sequence[dict[str, Any]]:
        """Finds the stored rows of a study's experiments, none if there is no such study."""
        return self._store.experiments.rows(study=study)

    def find_tags(self, tags: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Finds the stored rows of experiments, in the order of their tags."""
        rows = self._store.experiments.rows(tags=tags) if tags else []
        return sorted(rows, key=lambda row: tags.index(row["tag"]))

    def check_study(self, name: str) -> None:
        """Raises if there is no study of this name."""
        if not self._store.experiments.page(limit=1, study=name).rows:
            studies = [row["study"] for row in self._store.studies.rows() if row["study"]]
            raise NotFoundError(unknown("study", name, studies), choices=studies)

    # --- what can be run -------------------------------------------------------------------------

    def prepare(
        self, target: Target, *, overrides: Mapping[str, Any] | None = None
    ) -> PreparedStudy:
        """Reads a study file, a study's name or a tag with all that it needs. Stores nothing."""
        source = self.read(target, overrides)
        if isinstance(source, StudySource):
            return prepare_study(source, self._models, self._store)
        rows = self._store.experiments.rows(study=source)
        return prepare_rows(
            rows or self._store.experiments.rows(tags=[source]), self._store, self._models
        )

    def prepare_text(
        self, text: str, *, overrides: Mapping[str, Any] | None = None
    ) -> PreparedStudy:
        """Reads a study from the text of its file, which may name files of the lab's folder."""
        return prepare_text(text, self._folder, self._models, self._store, overrides or {})

    def prepare_tags(self, tags: Sequence[str]) -> PreparedStudy:
        """Prepares stored experiments by their tags."""
        return prepare_rows(self._store.experiments.rows(tags=tags), self._store, self._models)

    # --- what is saved ---------------------------------------------------------------------------

    def save(self, study: str, experiment: Experiment) -> Experiment:
        """Stores an experiment with its pool and rubric."""
        task = experiment.task
        pool = task.pool if task.pool.id else self._store.evidence.save_pool(task.pool)
        rubric = self._store.rubrics.save_given(task.rubric) if task.rubric else None
        saved = replace(experiment, task=replace(task, pool=pool, rubric=rubric))
        self._store.experiments.save(saved, study)
        return saved

    def save_all(self, prepared: PreparedStudy) -> Iterator[Experiment]:
        """Stores the experiments of a study. A pool that several share is written once."""
        saved_pools: dict[int, Pool] = {}
        for experiment in prepared.sweep.experiments:
            pool = experiment.task.pool
            if id(pool) not in saved_pools:
                saved_pools[id(pool)] = self._store.evidence.save_pool(pool)
            task = replace(experiment.task, pool=saved_pools[id(pool)])
            yield self.save(prepared.study, replace(experiment, task=task))
