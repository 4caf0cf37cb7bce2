"""Lab: a laboratory on one database, composed of the nouns that implement every verb.

`lab.runs.start(...)`, `lab.evidence.freeze_pool(...)`: each noun is a class in its own module. The
flat names of `Lab` are those of the blueprint, and call a noun.
"""

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from judge_gym.engine import Engine, Result
from judge_gym.engine.queue_state import QueueState
from judge_gym.errors import JudgeGymError
from judge_gym.lab.admin import Admin
from judge_gym.lab.benchmarks import Benchmarks
from judge_gym.lab.drafts import Drafts
from judge_gym.lab.evidence import EvidenceLibrary
from judge_gym.lab.experiments import Experiments
from judge_gym.lab.improvements import Improvements
from judge_gym.lab.items import StudyItems
from judge_gym.lab.labelling import Labelling
from judge_gym.lab.labels import Labels
from judge_gym.lab.page_data import PageData
from judge_gym.lab.recordings import Recordings
from judge_gym.lab.reports import Reports
from judge_gym.lab.runs import Runs
from judge_gym.lab.serving import Serving
from judge_gym.lab.studies import Studies
from judge_gym.lab.study_results import StudyResults
from judge_gym.lab.workers import Workers
from judge_gym.models import Registry
from judge_gym.models.model_card import Limits
from judge_gym.records import TaskType
from judge_gym.records.inputs import ARTICLES
from judge_gym.records.responses import Counts, ExperimentSummary, ProbeRow, RubricRow, SampleRow
from judge_gym.store import Store

if TYPE_CHECKING:
    from judge_gym.lab.failures import Failures
    from judge_gym.lab.suites import Suites

__all__ = ["Lab"]


class Lab:
    """A laboratory.

    Args:
        store: its database.
        limits: limits on calls, instead of those that the registry states.
        engine: executes runs; by default one on the store and the registry.
        folder: holds the files that the text of a study may name, and the reports.
        assistant: the model that edits and criticises in experiments that belong to no study, by
            default that of `JUDGE_GYM_ASSISTANT`.
    """

    def __init__(
        self,
        store: Store,
        *,
        limits: Limits | None = None,
        engine: Engine | None = None,
        folder: Path = Path(),
        assistant: str | None = None,
    ) -> None:
        self.store = store
        self.folder = folder
        self.addresses: set[str] = set()
        """Where this lab is served, as `HOST:PORT`."""
        self.models = Registry()
        self.engine = engine or Engine(store, self.models, limits=limits)
        self.studies = Studies(store, self.models, folder)
        """Finds and prepares what users name: for commands with several steps."""
        self.evidence = EvidenceLibrary(store, self.engine, self.studies)
        items = StudyItems(store)
        drafts = Drafts(store, self.models, self.engine, self.studies, assistant)
        self.experiments = Experiments(store, self.engine, self.studies, drafts, items, folder)
        self.runs = Runs(store, self.models, self.engine, self.evidence, self.studies, drafts)
        self.workers = Workers(store, self.engine, analyze=self._perform_analysis)
        """The processes that execute queued runs."""
        self.pages = PageData(store, self.models, self.studies, items)
        """What pages of the web show beside the results of verbs."""
        self.benchmarks = Benchmarks(store, self.models, self.studies)
        """Judges on a benchmark, beside its known answers."""
        self.labelling = Labelling(store, self.studies, items)
        """The pages on which people label items."""
        self.labels = Labels(store, self.studies, self.labelling)
        self.improvements = Improvements(store, self.models, self.engine, self.studies, self.runs)
        """Better rubrics and prompts from labels."""
        self.recordings = Recordings(store)
        self.reports = Reports(store, self.studies, folder)
        self.results = StudyResults(store, self.reports)
        """What is shown of a study, stored until its data change."""
        self.admin = Admin(store, self.models, self.engine, self.studies)
        self.serving = Serving(store, self.models)
        """What a server asks of its lab."""
        self.tokens = store.tokens
        """The tokens of the HTTP API."""

    @cached_property
    def suites(self) -> "Suites":
        """The noun `suites`, loaded when it is used."""
        from judge_gym.lab.suites import Suites

        return Suites(self.store, self.models, self.engine, self.addresses)

    @cached_property
    def failures(self) -> "Failures":
        """The noun `failures`, loaded when it is used."""
        from judge_gym.lab.failures import Failures

        return Failures(self.store, self.models, self.engine, self.runs, self.suites, self.folder)

    def _perform_analysis(self, number: int, stop: threading.Event) -> None:
        self.failures.perform(number, stop)  # whose noun is loaded when it is used

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        limits: Limits | None = None,
        create: bool = True,
        folder: Path = Path(),
        assistant: str | None = None,
    ) -> "Lab":
        """Opens the lab of a database URL, of `JUDGE_GYM_DATABASE_URL`, or of the working folder.

        Args:
            url: the database.
            limits: limits on calls, instead of those that the registry states.
            create: create the database if there is none; otherwise that is an error.
            folder: holds the files that the text of a study may name, and the reports.
            assistant: the model that edits and criticises in experiments that belong to no study,
                by default that of `JUDGE_GYM_ASSISTANT`.
        """
        store = Store.open(url, create=create, queue=QueueState)
        return cls(store, limits=limits, folder=folder, assistant=assistant)

    def close(self) -> None:
        """Closes the database."""
        self.store.close()

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.store.close(refused=isinstance(error, JudgeGymError))

    # --- the blueprint's main --------------------------------------------------------------------

    def create_window(self, start_date: str, end_date: str, country: str) -> int:
        """Calls `evidence.create_window`."""
        return self.evidence.create_window(start_date, end_date, country)

    def load_evidence(
        self,
        window_id: int,
        items: str | Sequence[str] | Sequence[Mapping[str, Any]],
        *,
        folder: Path = Path(),
    ) -> int:
        """Calls `evidence.load` with items, or `evidence.load_files` with names of files."""
        if isinstance(items, str):
            return self.evidence.load_files(window_id, items, folder=folder)
        files = [item for item in items if isinstance(item, str)]
        if files:
            return self.evidence.load_files(window_id, files, folder=folder)
        return self.evidence.load(window_id, cast(Sequence[Mapping[str, Any]], items))

    def load_benchmark_evidence(self, window_id: int, dataset_path: str | Path) -> int:
        """Calls `evidence.load_benchmark_files`."""
        return self.evidence.load_benchmark_files(window_id, dataset_path)

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
    ) -> str | None:
        """Calls `experiments.create`."""
        point = (experiment_tag, window_id, model_id, task_type, concept, config, ground_truth)
        return self.experiments.create(*point, seed=seed)

    def load_benchmark_rubric(self, experiment_tag: str, rubric_path: str | Path) -> str:
        """Calls `experiments.load_rubric_file`."""
        return self.experiments.load_rubric_file(experiment_tag, rubric_path)

    def start_evidence_pipeline(
        self,
        target: int | str | None = None,
        limit: int = ARTICLES,
        *,
        window_id: int | None = None,
        experiment_tag: str | None = None,
    ) -> Result:
        """Runs W1 of a window's experiments, or of one by its tag: `runs.run_evidence`."""
        if isinstance(target, str):
            experiment_tag = target
        elif target is not None:
            window_id = target
        return self.runs.run_evidence(window_id=window_id, tag=experiment_tag, limit=limit)

    def start_rubric_generation(self, experiment_tag: str) -> Result:
        """Runs W2: has the rubric written and criticised."""
        return self.runs.run(experiment_tag, workflows=["rubric"])

    def start_scoring_trial(self, experiment_tag: str, samples: int | None = None) -> Result:
        """Runs W3: scores."""
        return self.runs.run(experiment_tag, workflows=["score"], samples=samples)

    def start_swap_trial(self, experiment_tag: str, swap_rubric_from: str) -> Result:
        """Runs W4: scores under a rival's rubric, with as many samples and the same displays."""
        return self.runs.run(experiment_tag, workflows=["swap"], rivals=[swap_rubric_from])

    def start_probing_trial(self, experiment_tag: str) -> Result:
        """Runs W5: probes every scored sample."""
        return self.runs.run(experiment_tag, workflows=["probe"])

    # --- the blueprint's data --------------------------------------------------------------------

    def get_experiment_summary(self, experiment_tag: str) -> ExperimentSummary:
        """Calls `experiments.show`."""
        return self.experiments.show(experiment_tag)

    def list_experiments(
        self, *, study: str | None = None, task_type: str | None = None
    ) -> Sequence[ExperimentSummary]:
        """Calls `experiments.list`."""
        return self.experiments.list(study=study, task_type=task_type)

    def list_experiments_by_task_type(self, task_type: TaskType) -> Sequence[ExperimentSummary]:
        """Calls `experiments.list` for one type of task."""
        return self.experiments.list(task_type=task_type)

    def list_experiment_rubrics(self, experiment_tag: str) -> Sequence[RubricRow]:
        """Calls `experiments.list_rubrics`."""
        return self.experiments.list_rubrics(experiment_tag)

    def list_experiment_samples(self, experiment_tag: str) -> Sequence[SampleRow]:
        """Calls `experiments.list_samples`."""
        return self.experiments.list_samples(experiment_tag)

    def list_experiment_probes(self, experiment_tag: str) -> Sequence[ProbeRow]:
        """Calls `experiments.list_probes`."""
        return self.experiments.list_probes(experiment_tag)

    def export_experiment_csv(self, experiment_tag: str) -> str:
        """Calls `experiments.export_csv` for one experiment."""
        return self.experiments.export_csv([experiment_tag])

    def export_design_space_csv(self, experiment_tags: Sequence[str]) -> str:
        """Calls `experiments.export_csv`."""
        return self.experiments.export_csv(experiment_tags)

    # --- the blueprint's debug -------------------------------------------------------------------

    def cleanup_experiment(
        self, experiment_tag: str, *, ledger: bool = False, forget: bool = False
    ) -> Counts:
        """Calls `experiments.cleanup`."""
        return self.experiments.cleanup(experiment_tag, ledger=ledger, forget=forget)
