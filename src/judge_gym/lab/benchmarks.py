"""Judges on a benchmark: its study, and how their verdicts agree with its known answers."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from judge_gym.lab.prepare import PreparedStudy, prepare_study
from judge_gym.lab.sample_frames import stored_samples
from judge_gym.lab.studies import Studies
from judge_gym.lab.study_files import StudySource
from judge_gym.models import Registry
from judge_gym.store import Store
from judge_gym.studies import read_study

if TYPE_CHECKING:
    import pandas as pd


class Benchmarks:
    """Prepares the study of judges on a benchmark, and compares verdicts with its answers."""

    def __init__(self, store: Store, models: Registry, studies: Studies) -> None:
        self._store = store
        self._models = models
        self._studies = studies

    def prepare(
        self, path: Path, judges: Sequence[str], *, overrides: Mapping[str, Any] | None = None
    ) -> PreparedStudy:
        """Prepares a study of judges on a benchmark: a folder, or JudgeBench's published pairs."""
        kind = "benchmark" if path.is_dir() else "judgebench"
        name = re.sub(r"[^\w.-]+", "-", path.resolve().stem)
        keys: dict[str, Any] = {
            "study": f"{kind}-{name}",
            "samples": 1,
            "evidence": {name: {kind: str(path.resolve())}},
            "tasks": [{"type": "benchmark", "evidence": name}],
            "judges": [*judges],
            "probe": False,
        }
        text = yaml.safe_dump(keys, sort_keys=False)
        study = read_study(text, "", resolve=self._models.resolve, overrides=overrides or {})
        file = StudySource(text, study, Path(), overrides or {})
        return prepare_study(file, self._models, self._store)

    def judged_pairs(self, prepared: PreparedStudy) -> "dict[str, pd.DataFrame]":
        """Reads samples of a benchmark's pairs by judge, with published ids and categories."""
        from judge_gym.analysis.frames import tidy

        tags = [each.tag for each in prepared.sweep.experiments]
        frame = stored_samples(self._store, self._studies.find(*tags))
        first = prepared.sweep.experiments[0]
        metadata = {item.hash: item.metadata for item in first.task.pool.items}
        items = self._store.experiments.find(first.tag)[0].task.pool.items
        by_id = {item.id: metadata.get(item.hash, item.metadata) for item in items}
        frame = frame.assign(
            category=[str(by_id[id].get("category", "")) for id in frame["evidence"]],
            evidence=[str(by_id[id].get("id", id)) for id in frame["evidence"]],
        )
        return {
            str(judge): tidy(part[part["series"] == part["series"].iloc[-1]])
            for judge, part in frame.groupby("judge.model", sort=False)
        }

    def known_answers(self, prepared: PreparedStudy) -> "pd.DataFrame":
        """Computes the share of verdicts on the right stage, by judge, and how many have none."""
        from judge_gym.analysis.frames import JUDGE, tidy
        from judge_gym.analysis.measures.known_answers import known_answers

        tags = [each.tag for each in prepared.sweep.experiments]
        frame = stored_samples(self._store, self._studies.find(*tags))
        return known_answers(tidy(frame), [JUDGE]) if len(frame) else frame
