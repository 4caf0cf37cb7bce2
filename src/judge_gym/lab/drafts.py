"""Experiments that are created one by one on a window, and complete once they have evidence."""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from judge_gym.axes import CONTESTED, NONE, TEMPLATE, Design
from judge_gym.engine import Engine
from judge_gym.errors import ConflictError, DesignError, Remedy, unknown
from judge_gym.lab.collection import LabSearch, collect, collected_window, window_of
from judge_gym.lab.prepare import PreparedStudy, refuse_draft
from judge_gym.lab.studies import Studies
from judge_gym.models import Registry
from judge_gym.records import Pool, TaskType, Window
from judge_gym.records.environment import ASSISTANT, SEARCH
from judge_gym.sources import load_benchmark, load_rubric
from judge_gym.store import Store
from judge_gym.studies import (
    SIMULATED_ASSISTANT,
    Experiment,
    Task,
    check_pool,
    check_roles,
    read_knobs,
    read_truth,
    resolve_design,
    with_rubric,
)


class Drafts:
    """Creates experiments of no study, and gives them their evidence and rubric.

    Args:
        store: the lab's database.
        models: by which bare names of models are resolved.
        engine: knows which models can be called.
        studies: saves experiments.
        assistant: the model that edits and criticises in them, by default that of
            `JUDGE_GYM_ASSISTANT`.
    """

    def __init__(
        self,
        store: Store,
        models: Registry,
        engine: Engine,
        studies: Studies,
        assistant: str | None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._searching = threading.Lock()
        self._models = models
        self._studies = studies
        self._assistant = assistant

    def create(
        self,
        tag: str,
        window_id: int,
        model_id: str,
        task_type: TaskType,
        concept: str,
        config: Mapping[str, Any],
        ground_truth: Mapping[str, Any] | None,
        *,
        seed: int,
    ) -> str | None:
        """Creates an experiment on a window's evidence and returns its digest, None for a draft."""
        window = self._store.evidence.find_window(window_id)
        pool = Pool(self._store.evidence.window_items(window_id), window)
        knobs = read_knobs(config, resolve=self._models.resolve)
        if task_type not in get_args(TaskType):
            raise DesignError(unknown("task type", task_type, get_args(TaskType)))
        truth = read_truth(ground_truth, task_type) if ground_truth else None
        task = Task(
            task_type, concept, _pool_name(window_id), pool, truth=truth, protocol=CONTESTED
        )
        levels = {**knobs, "judge.model": self._models.resolve(model_id)}
        if task_type == "benchmark":  # its rubric is loaded next
            levels["rubric.author"] = "provided"
        for row in self._store.experiments.rows():
            if row["tag"] == tag:
                forget = Remedy("experiments.cleanup", {"tag": tag, "forget": True})
                raise ConflictError(
                    f"there is an experiment {tag!r} already",
                    remedy=forget if row["cleaned_up"] is not None else None,
                )
        experiment = self._design_experiment(tag, task, levels, seed)
        saved = self._studies.save("", experiment)
        return None if saved.draft else saved.digest

    def _freeze(self, draft: Experiment, pool: Pool) -> Experiment:
        """Fixes the evidence of a draft for good. Without any evidence it stays a draft."""
        if not pool.items:
            return draft
        task = replace(draft.task, pool=pool)
        frozen = self._design_experiment(draft.tag, task, _knobs_of_incomplete(draft), draft.seed)
        return self._replace(draft, frozen, "")

    def _design_experiment(
        self, tag: str, task: Task, chosen: Mapping[str, Any], seed: int
    ) -> Experiment:
        """Designs the experiment of a task. A benchmark's rubric is loaded later."""
        design = self._design(task, chosen)
        if task.type != "benchmark":
            with_rubric(task, None)  # pairs need one
            check_roles([design.judge.model], task, design, chosen=chosen)
        return Experiment(tag, task, design, seed)

    def _replace(self, old: Experiment, new: Experiment, study: str) -> Experiment:
        """Stores an experiment in place of an incomplete one, which was never run."""
        saved = self._studies.save(study, new)
        if saved.digest != old.digest:
            old_tag = f"{old.tag}@{old.digest[:8]}"
            self._store.experiments.delete(old_tag, ledger=False, forget=True)
        return saved

    def load_rubric(self, tag: str, path: Path) -> str:
        """Gives a benchmark the rubric of a file, and the design of a benchmark's folder."""
        experiment, study = self._store.experiments.find(tag)
        if experiment.task.type != "benchmark":
            raise DesignError(f"{tag} is no benchmark: its judge writes the rubric")
        if experiment.draft:
            experiment = self._freeze(*self._find(tag))
        refuse_draft(experiment)
        rubric = load_rubric(path, experiment.task.concept, experiment.task.country)
        task = with_rubric(experiment.task, rubric)
        if (path.parent / "benchmark.toml").exists():  # it says how to ask
            task = replace(task, defaults=load_benchmark(path.parent).design)
        levels = _knobs_of_incomplete(experiment)
        design = self._design(task, levels)
        check_roles([design.judge.model], task, design, chosen=levels)
        new = replace(experiment, task=task, design=design)
        if experiment.task.rubric is None:
            return self._replace(experiment, new, study).digest
        return self._studies.save(study, new).digest

    def _find(self, tag: str) -> tuple[Experiment, Pool]:
        """Finds a draft, and what its window holds by now, which may be nothing."""
        draft, _ = self._store.experiments.find(tag)
        window = draft.task.pool.window
        assert window is not None, "a draft is created on a window"
        id = self._store.evidence.save_window(window)
        return draft, Pool(self._store.evidence.window_items(id), window)

    def _design(self, task: Task, chosen: Mapping[str, Any]) -> Design:
        """Resolves the design of an experiment of no study, with the lab's assistant."""
        name = self._assistant or os.environ.get(ASSISTANT)
        if name is None and self._models.card(chosen["judge.model"]).simulated:
            name = SIMULATED_ASSISTANT
        assistant = self._models.resolve(name) if name else None
        remedy = f"{ASSISTANT}=provider:name, or with evidence.editor and rubric.critic"
        design = resolve_design(task, chosen, assistant=assistant, remedy=remedy)[0]
        if design.prompt.template != NONE:
            raise DesignError(f"{TEMPLATE} is a file that a study names; run it as a study")
        return design

    def prepare_with_evidence(
        self, window_id: int | None, tag: str | None, limit: int
    ) -> PreparedStudy:
        """Prepares experiments whose drafts are given their evidence first."""
        if window_id is None and tag is None:
            raise DesignError("give a window or an experiment's tag")
        rows = self._created_on(window_id) if window_id is not None else None
        if tag is not None:
            [row] = self._studies.find(tag)
            if rows is not None and row not in rows:
                raise DesignError(f"{tag} was not created on the window {window_id}")
            rows = [row]
        if not rows:
            raise ConflictError(
                f"no experiment was created on the window {window_id}; create one first: its "
                "concept is what is searched for"
            )
        self.freeze_all(rows, limit)
        return self._studies.prepare_tags([row["tag"] for row in rows])

    def freeze_all(self, rows: Sequence[Mapping[str, Any]], limit: int) -> None:
        """Gives drafts what their window holds, else what a search for their concept finds."""
        for row in rows:
            if not row["draft"]:
                continue
            draft, pool = self._find(row["tag"])
            if not pool.items and draft.task.type != "benchmark":
                self._engine.refuse_uncallable(draft.design, (), ["evidence"])
                assert pool.window is not None, "a draft is created on a window"
                pool = self._search(draft.task.concept, pool.window, limit)
            self._freeze(draft, pool)

    def _search(
        self,
        concept: str,
        window: Window,
        limit: int,
    ) -> Pool:
        """Searches a window for a concept with the lab's source, once.

        Each concept has a window of its own, so that what was found for one is not judged for
        another.
        """
        source = LabSearch.from_setting()
        spec = source.spec(concept, window, limit)
        check_pool(spec, ())
        searched = window_of(spec)
        assert searched is not None, "a search has a window"
        with self._searching:  # two searches at once would find different evidence
            id = collected_window(self._store, searched)
            items = self._store.evidence.window_items(id) if id else ()
            if not items:
                result = collect(
                    self._store,
                    spec,
                    Path(),
                    allow_private=source.allow_private,
                    watch=lambda done, total: None,
                )
                result.raise_error()
                if result.found.interrupted:
                    raise KeyboardInterrupt
                items = self._store.evidence.window_items(result.window_id)
        if not items:
            left_out = ", ".join(f"{n} {reason}" for reason, n in result.found.dropped.items())
            raise ConflictError(
                f"the search ({searched.search}) found nothing for {window.country} from "
                f"{window.start} to {window.end}"
                + (f" (left out: {left_out})" if left_out else "")
                + f"; change the lab's source ({SEARCH}), or load evidence into the window"
            )
        return Pool(items, searched)

    def _created_on(self, window_id: int) -> Sequence[dict[str, Any]]:
        """Finds the stored rows of the experiments that were created on a window."""
        self._store.evidence.find_window(window_id)
        return self._store.experiments.rows(study="", pool_name=_pool_name(window_id))


def _pool_name(window_id: int) -> str:
    """Names the pool of experiments that were created on a window."""
    return f"window-{window_id}"


def _knobs_of_incomplete(incomplete: Experiment) -> dict[str, Any]:
    """Lists the knobs that an incomplete experiment was created with.

    Its view was settled when it was created: here even the default is a choice.
    """
    design = incomplete.design
    return {"evidence.view": design.evidence.view, **design.chosen(incomplete.task.protocol)}
