"""Lab: the verbs that every face calls. It joins the rooms."""

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import yaml

from judge_gym.analyzing import Analyzing
from judge_gym.engine import (
    FINISHED,
    Reparsed,
    Result,
    reparse,
)
from judge_gym.errors import ConflictError, DesignError, unknown
from judge_gym.models.cards import Limits
from judge_gym.preparing import (
    Prepared,
    prepare_study,
)
from judge_gym.records import Pool, TaskType
from judge_gym.sources import load_benchmark, load_rubric
from judge_gym.store import Imported, Store, import_ledger
from judge_gym.studies import (
    Experiment,
    Task,
    read_knobs,
    read_study,
    read_truth,
    refuse_roles,
    settle,
    with_rubric,
)


class Lab(Analyzing):
    """A laboratory: a library, its archive, and the verbs that put evidence before judges."""

    @classmethod
    def open(
        cls, url: str | None = None, *, limits: Limits | None = None, create: bool = True
    ) -> "Lab":
        """The lab of a database URL, of `JUDGE_GYM_DATABASE_URL`, or of the working folder.

        Args:
            url: the database.
            limits: each that is given stands in the place of what the registry states.
            create: begin a lab where there is none; without, that is refused.
        """
        return cls(Store.open(url, create=create), limits=limits)

    def close(self) -> None:
        """Release the database."""
        self.store.close()

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the blueprint's main --------------------------------------------------------------------

    def create_experiment(
        self,
        experiment_tag: str,
        window_id: int,
        model_id: str,
        task_type: TaskType,
        concept: str,
        config: Mapping[str, Any],
        ground_truth: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
    ) -> str:
        """One point of the design space, on the evidence that its window holds now."""
        window = self.store.evidence.find_window(window_id)
        pool = Pool(self.store.evidence.window_items(window_id), window)
        if not pool.items:
            raise ConflictError(
                f"the window {window_id} holds no evidence for {concept!r}; load it first"
            )
        knobs = read_knobs(config, resolve=self.models.resolve)
        if task_type not in get_args(TaskType):
            raise DesignError(unknown("task type", task_type, get_args(TaskType)))
        truth = read_truth(ground_truth) if ground_truth else None
        task = Task(task_type, concept, f"window-{window_id}", pool, truth=truth)
        if task_type != "benchmark":
            with_rubric(task, None)  # pairs need one
        chosen = {**knobs, "judge.model": self.models.resolve(model_id)}
        if task_type == "benchmark":  # its rubric is loaded next
            chosen["rubric.author"] = "provided"
        design, _ = settle(task, chosen)
        if task_type != "benchmark":
            refuse_roles([design.judge.model], task, design)
        if any(row["tag"] == experiment_tag for row in self.store.queries.tags()):
            raise ConflictError(f"there is an experiment {experiment_tag!r} already")
        return self._save("", Experiment(experiment_tag, task, design, seed)).digest

    def load_benchmark_rubric(self, experiment_tag: str, rubric_path: str | Path) -> str:
        """Give a benchmark its rubric, and its known answers their stages; its new digest.

        Nobody criticises a given rubric: its quality is null.
        """
        experiment, study = self.store.runs.find_experiment(experiment_tag)
        if experiment.task.type != "benchmark":
            raise DesignError(f"{experiment_tag} is no benchmark: its judge writes the rubric")
        path = Path(rubric_path)
        rubric = load_rubric(path, experiment.task.concept, experiment.task.country)
        task = with_rubric(experiment.task, rubric)
        if (path.parent / "benchmark.toml").exists():  # it says how to ask
            task = replace(task, defaults=load_benchmark(path.parent).design)
        # The view was settled when the experiment was made: here the default means a choice.
        chosen = {"evidence.view": experiment.design.evidence.view, **experiment.design.chosen()}
        design, _ = settle(task, chosen)
        refuse_roles([design.judge.model], task, design)
        saved = self._save(study, replace(experiment, task=task, design=design))
        if experiment.task.rubric is None and saved.digest != experiment.digest:
            # The experiment without a rubric was never run; its name now means this one.
            old = f"{experiment_tag}@{experiment.digest[:8]}"
            self.store.runs.delete_experiment(old, ledger=False)
        return saved.digest

    def start_evidence_pipeline(self, experiment_tag: str) -> Result:
        """W1: make the views that an experiment's judge reads."""
        return self.run(experiment_tag, workflows=["evidence"])

    def start_rubric_generation(self, experiment_tag: str) -> Result:
        """W2: have the rubric written and criticised."""
        return self.run(experiment_tag, workflows=["rubric"])

    def start_scoring_trial(self, experiment_tag: str, samples: int | None = None) -> Result:
        """W3: score."""
        return self.run(experiment_tag, workflows=["score"], samples=samples)

    def start_swap_trial(self, experiment_tag: str, swap_rubric_from: str) -> Result:
        """W4: score under a rival's rubric, with as many samples and the same displays."""
        return self.run(experiment_tag, workflows=["swap"], rivals=[swap_rubric_from])

    def start_probing_trial(self, experiment_tag: str) -> Result:
        """W5: probe every scored sample."""
        return self.run(experiment_tag, workflows=["probe"])

    # --- benchmarks ------------------------------------------------------------------------------

    def prepare_benchmark(
        self, path: Path, judges: Sequence[str], *, overrides: Mapping[str, Any] | None = None
    ) -> Prepared:
        """A study of judges on a benchmark: a folder, or JudgeBench's pairs as published."""
        kind = "benchmark" if path.is_dir() else "judgebench"
        name = re.sub(r"[^\w.-]+", "-", path.resolve().stem)
        study: dict[str, Any] = {
            "study": f"{kind}-{name}",
            "samples": 1,
            "evidence": {name: {kind: str(path.resolve())}},
            "tasks": [{"type": "benchmark", "evidence": name}],
            "judges": list(judges),
            "probe": False,
        }
        text = yaml.safe_dump(study, sort_keys=False)
        given = overrides or {}
        checked = read_study(text, "", resolve=self.models.resolve, overrides=given)
        return prepare_study(checked, text, Path(), self.models, self.store, given)

    # --- replay ----------------------------------------------------------------------------------

    def import_ledger(self, path: str | Path) -> Imported:
        """Add another lab's calls to the ledger, all of a file or nothing; no answer gives way."""
        with self.engine.lock():
            return import_ledger(self.store.database, Path(path))

    def reparse(self, target: str, *, write: bool = False) -> Reparsed:
        """Read the stored answers of experiments with today's parsers; what changes.

        Args:
            target: a study file, a study's name or an experiment's tag.
            write: change the records; without it they are only looked at.
        """
        tags = [row["tag"] for row in self._rows([target])]
        with self.engine.lock() if write else nullcontext():
            return reparse(self.store, tags, write=write)

    # --- housekeeping ----------------------------------------------------------------------------

    def cleanup(self, tag: str, *, ledger: bool = False, force: bool = False) -> dict[str, int]:
        """Forget an experiment's runs. The ledger keeps every answer unless `ledger` is given."""
        unfinished = [p for p in self.store.progress.of_tag(tag) if p.status not in FINISHED]
        try:
            with self.engine.lock():
                return self.store.runs.delete_experiment(tag, ledger=ledger)
        except ConflictError:
            if unfinished and not force:
                raise ConflictError(
                    f"{tag} may be running now ({unfinished[0].status}); stop it, or use --force"
                ) from None
        return self.store.runs.delete_experiment(tag, ledger=ledger)
