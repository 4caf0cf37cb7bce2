"""The noun `lab.experiments`: studies, experiments and what was judged in them."""

import io
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import yaml

from judge_gym.axes import CONTESTED, NONE, TEMPLATE, Design
from judge_gym.engine import FINISHED, Engine
from judge_gym.errors import ConflictError, DesignError, NotFoundError, unknown
from judge_gym.lab.cursors import all_rows, read_row
from judge_gym.lab.export_columns import requested_columns
from judge_gym.lab.items import StudyItems
from judge_gym.lab.prepare import (
    PreparedStudy,
    prepare_file,
    prepare_rows,
    prepare_study,
    prepare_tags,
    read_file,
    refuse_draft,
    rows_of_file,
)
from judge_gym.lab.sample_frames import (
    answer_columns,
    exported_samples,
    file_format,
    stored_samples,
    write_csv,
    write_samples,
)
from judge_gym.lab.texts import check_folder, files_of, new_file, prepare_text
from judge_gym.models import Registry
from judge_gym.records import Pool, TaskType
from judge_gym.records.environment import ASSISTANT
from judge_gym.records.inputs import STUDY_SUFFIXES
from judge_gym.records.responses import (
    AnswerRow,
    Counts,
    CrossedLabels,
    ExperimentSummary,
    ItemChoices,
    JudgedItem,
    JudgedItemDetail,
    ProbeRow,
    RaterLabel,
    RubricRow,
    RunCounts,
    RunSummary,
    SampleRow,
    SetupRow,
    StudyFile,
    StudyRow,
    StudyTemplate,
    UntrustedText,
    WrittenFile,
)
from judge_gym.sources import load_benchmark, load_rubric
from judge_gym.store import Page, Progress, Selection, Span, Store
from judge_gym.studies import (
    SIMULATED_ASSISTANT,
    Experiment,
    Study,
    Task,
    check_roles,
    read_knobs,
    read_study,
    read_truth,
    resolve_design,
    with_rubric,
)

if TYPE_CHECKING:
    import pandas as pd

RUBRIC = "rubric.json"
FEW = 20
"""Tags of a study that are named where one of them is meant."""


class Experiments:
    """Creates, lists and exports experiments."""

    def __init__(
        self,
        store: Store,
        models: Registry,
        engine: Engine,
        folder: Path = Path(),
        assistant: str | None = None,
    ) -> None:
        self._store = store
        self._assistant = assistant
        self._folder = folder
        self._models = models
        self._engine = engine
        self._items = StudyItems(store)

    # --- creating --------------------------------------------------------------------------------

    def create(
        self,
        tag: str,
        window_id: int,
        model_id: str,
        task_type: TaskType,
        concept: str,
        config: Mapping[str, Any] | None = None,
        ground_truth: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
    ) -> str | None:
        """Creates an experiment on a window's evidence; returns its digest, null for a draft.

        On a window without evidence it is a draft, which `freeze` gives its evidence. It runs under
        the protocol contested-concepts, with the lab's assistant.
        """
        window = self._store.evidence.find_window(window_id)
        pool = Pool(self._store.evidence.window_items(window_id), window)
        knobs = read_knobs(config or {}, resolve=self._models.resolve)
        if task_type not in get_args(TaskType):
            raise DesignError(unknown("task type", task_type, get_args(TaskType)))
        truth = read_truth(ground_truth, task_type) if ground_truth else None
        pool_name = pool_of(window_id)
        task = Task(task_type, concept, pool_name, pool, truth=truth, protocol=CONTESTED)
        chosen = {**knobs, "judge.model": self._models.resolve(model_id)}
        if task_type == "benchmark":  # its rubric is loaded next
            chosen["rubric.author"] = "provided"
        for row in self._store.experiments.rows():
            if row["tag"] == tag:
                hint = f"; 'judge-gym cleanup {tag} --forget' frees its tag"
                raise ConflictError(
                    f"there is an experiment {tag!r} already"
                    + hint * (row["cleaned_up"] is not None)
                )
        experiment = self._resolved(tag, task, chosen, seed)
        saved = self.save("", experiment)
        return None if saved.draft else saved.digest

    def freeze(self, draft: Experiment, pool: Pool) -> Experiment:
        """Gives a draft its evidence for good; without any it stays a draft."""
        if not pool.items:
            return draft
        task = replace(draft.task, pool=pool)
        frozen = self._resolved(draft.tag, task, _chosen(draft), draft.seed)
        return self._replace(draft, frozen, "")

    def _resolved(self, tag: str, task: Task, chosen: Mapping[str, Any], seed: int) -> Experiment:
        """Returns the experiment of a task; a benchmark's rubric is loaded later."""
        design = self._design(task, chosen)
        if task.type != "benchmark":
            with_rubric(task, None)  # pairs need one
            check_roles([design.judge.model], task, design, chosen=chosen)
        return Experiment(tag, task, design, seed)

    def _replace(self, old: Experiment, new: Experiment, study: str) -> Experiment:
        """Stores an experiment in place of an incomplete one, which was never run."""
        saved = self.save(study, new)
        if saved.digest != old.digest:
            kept = f"{old.tag}@{old.digest[:8]}"
            self._store.experiments.delete(kept, ledger=False, forget=True)
        return saved

    def load_rubric(self, tag: str, rubric: Mapping[str, Any]) -> str:
        """Gives a benchmark its rubric, and its known answers their stages; its new digest.

        A given rubric is not criticised: its quality is null.
        """
        with files_of({RUBRIC: json.dumps(rubric)}) as folder:
            return self.load_rubric_file(tag, folder / RUBRIC)

    def load_rubric_file(self, tag: str, rubric_path: str | Path) -> str:
        """Gives a benchmark the rubric of a file, and the design of a benchmark's folder."""
        experiment, study = self._store.experiments.find(tag)
        if experiment.task.type != "benchmark":
            raise DesignError(f"{tag} is no benchmark: its judge writes the rubric")
        if experiment.draft:
            experiment = self.freeze(*self.find_draft(tag))
        refuse_draft(experiment)
        path = Path(rubric_path)
        rubric = load_rubric(path, experiment.task.concept, experiment.task.country)
        task = with_rubric(experiment.task, rubric)
        if (path.parent / "benchmark.toml").exists():  # it says how to ask
            task = replace(task, defaults=load_benchmark(path.parent).design)
        chosen = _chosen(experiment)
        design = self._design(task, chosen)
        check_roles([design.judge.model], task, design, chosen=chosen)
        new = replace(experiment, task=task, design=design)
        if experiment.task.rubric is None:
            return self._replace(experiment, new, study).digest
        return self.save(study, new).digest

    def find_draft(self, tag: str) -> tuple[Experiment, Pool]:
        """Returns a draft, and what its window holds by now, which may be nothing."""
        draft, _ = self._store.experiments.find(tag)
        window = draft.task.pool.window
        assert window is not None, "a draft is created on a window"
        id = self._store.evidence.save_window(window)
        return draft, Pool(self._store.evidence.window_items(id), window)

    def _design(self, task: Task, chosen: Mapping[str, Any]) -> Design:
        """Returns the design of an experiment of no study, with the lab's assistant."""
        named = self._assistant or os.environ.get(ASSISTANT)
        if named is None and self._models.card(chosen["judge.model"]).simulated:
            named = SIMULATED_ASSISTANT
        assistant = self._models.resolve(named) if named else None
        remedy = f"{ASSISTANT}=provider:name, or with evidence.editor and rubric.critic"
        design = resolve_design(task, chosen, assistant=assistant, remedy=remedy)[0]
        if design.prompt.template != NONE:
            raise DesignError(f"{TEMPLATE} is a file that a study names; run it as a study")
        return design

    def save(self, study: str, experiment: Experiment) -> Experiment:
        """Stores an experiment with its pool and rubric."""
        task = experiment.task
        pool = task.pool if task.pool.id else self._store.evidence.save_pool(task.pool)
        rubric = self._store.rubrics.save_given(task.rubric) if task.rubric else None
        saved = replace(experiment, task=replace(task, pool=pool, rubric=rubric))
        self._store.experiments.save(saved, study)
        return saved

    def save_all(self, prepared: PreparedStudy) -> Iterator[Experiment]:
        """Stores the experiments of a study; a pool that several share is written once."""
        pools: dict[int, Pool] = {}
        for experiment in prepared.sweep.experiments:
            pool = experiment.task.pool
            if id(pool) not in pools:
                pools[id(pool)] = self._store.evidence.save_pool(pool)
            task = replace(experiment.task, pool=pools[id(pool)])
            yield self.save(prepared.study, replace(experiment, task=task))

    def cleanup(
        self,
        tag: str,
        *,
        ledger: bool = False,
        forget: bool = False,
        force: bool = False,
    ) -> Counts:
        """Deletes an experiment's runs; its tag, and every answer in the ledger, stay known."""
        [row] = self._store.experiments.rows(tags=[tag])
        if row["draft"] and not forget:
            raise ConflictError(
                f"{tag} is a draft: it has nothing to delete but its name; use --forget"
            )
        delete = partial(self._store.experiments.delete, ledger=ledger, forget=forget)
        progress = self._store.progress.of_tag(tag)
        unfinished = [run for run in progress if run.status not in FINISHED]
        try:
            with self._engine.lock():
                return delete(tag)
        except ConflictError:
            if unfinished and not force:
                raise ConflictError(
                    f"{tag} may be running now ({unfinished[0].status}); stop it, or use --force"
                ) from None
        return delete(tag)

    # --- study files -----------------------------------------------------------------------------

    def prepare(
        self, target: str | Path, *, overrides: Mapping[str, Any] | None = None
    ) -> PreparedStudy:
        """Reads a study file, a study's name or a tag with all that it needs; writes nothing."""
        path = Path(target)
        if path.suffix in STUDY_SUFFIXES:
            return prepare_file(path, self._models, self._store, overrides or {})
        if overrides:
            raise DesignError("--set changes a study file's base design; a tag has its design")
        return prepare_tags(str(target), self._store, self._models)

    def prepare_text(
        self, text: str, *, overrides: Mapping[str, Any] | None = None
    ) -> PreparedStudy:
        """Reads a study from the text of its file; it may name files of the lab's folder."""
        return prepare_text(text, self._folder, self._models, self._store, overrides or {})

    def prepare_benchmark(
        self, path: Path, judges: Sequence[str], *, overrides: Mapping[str, Any] | None = None
    ) -> PreparedStudy:
        """Prepares a study of judges on a benchmark: a folder, or JudgeBench's published pairs."""
        kind = "benchmark" if path.is_dir() else "judgebench"
        name = re.sub(r"[^\w.-]+", "-", path.resolve().stem)
        study: dict[str, Any] = {
            "study": f"{kind}-{name}",
            "samples": 1,
            "evidence": {name: {kind: str(path.resolve())}},
            "tasks": [{"type": "benchmark", "evidence": name}],
            "judges": [*judges],
            "probe": False,
        }
        text = yaml.safe_dump(study, sort_keys=False)
        given = overrides or {}
        checked = read_study(text, "", resolve=self._models.resolve, overrides=given)
        return prepare_study(checked, text, Path(), self._models, self._store, given)

    def prepare_found(self, tags: Sequence[str]) -> PreparedStudy:
        """Prepares experiments without a study by their tags."""
        rows = self._store.experiments.rows(tags=tags)
        return prepare_rows(rows, self._store, self._models)

    def study_name(self, target: str) -> str:
        """Returns the name in a study file, or the target itself."""
        path = Path(target)
        if path.suffix not in STUDY_SUFFIXES:
            return target
        return read_file(path, self._models).study

    def list_studies(self) -> Sequence[StudyRow]:
        """Returns studies with their number of experiments, and whether their file is stored."""
        return cast(Sequence[StudyRow], self._store.studies.rows())

    def show_study(self, name: str) -> StudyFile:
        """Returns a study's file as it was last run, its budget, and what it declares.

        The text is empty if it had no file. A declaration of its analysis (a contrast, a hypothesis
        or a margin) comes with the number of answers that the study had when it was declared.
        """
        self.check_study(name)
        text = self._store.studies.file(name) or ""
        return {
            "study": name,
            "text": text,
            "budget": dict(self._store.studies.budget(name)),
            "declarations": [
                {
                    "what": one.what,
                    "declared": one.when,
                    "answers_before": one.before,
                    "answers": one.answers,
                }
                for one in self._store.studies.declarations(name).declared
            ],
        }

    def check_study(self, name: str) -> None:
        """Raises if there is no study of this name."""
        if not self._store.experiments.page(limit=1, study=name).rows:
            known = [row["study"] for row in self.list_studies() if row["study"]]
            raise NotFoundError(unknown("study", name, known), choices=known)

    # --- finding ---------------------------------------------------------------------------------

    def find(self, *targets: str) -> Sequence[dict[str, Any]]:
        """Returns the stored rows of experiments by tag, study or study file; else of all."""
        if not targets:
            return self._store.experiments.rows()
        rows: dict[str, dict[str, Any]] = {}
        for target in targets:
            if Path(target).suffix in STUDY_SUFFIXES:
                selected = rows_of_file(Path(target), self._models, self._store)
            else:
                selected = self._store.experiments.rows(study=target)
            selected = selected or self._store.experiments.rows(tags=[self.study_name(target)])
            rows |= {row["tag"]: row for row in selected}
        return [*rows.values()]

    def find_tags(self, tags: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Returns the stored rows of experiments, in the order of their tags."""
        rows = self._store.experiments.rows(tags=tags) if tags else []
        return sorted(rows, key=lambda row: tags.index(row["tag"]))

    def created_on(self, window_id: int) -> Sequence[dict[str, Any]]:
        """Returns the stored rows of the experiments that were created on a window."""
        self._store.evidence.find_window(window_id)
        return self._store.experiments.rows(study="", pool_name=pool_of(window_id))

    def find_study(self, study: str) -> Sequence[dict[str, Any]]:
        """Returns the stored rows of a study's experiments; none if there is no such study."""
        return self._store.experiments.rows(study=study)

    def count_by_study(self) -> dict[str, int]:
        """Returns how many experiments each study has, newest first; "": those of no study."""
        return self._store.studies.counts()

    def judges(self) -> Sequence[str]:
        """Returns every model that judges in an experiment, by name."""
        return sorted(self._store.experiments.judges())

    def task_types(self) -> Sequence[str]:
        """Returns the types of tasks that occur; none in a lab without the research protocol."""
        return sorted(self._store.experiments.task_types())

    def show(self, tag: str) -> ExperimentSummary:
        """Returns an experiment's design, the progress of its runs and why targets failed."""
        [summary] = self.summaries(self._store.experiments.rows(tags=[tag]))
        return summary

    def list(
        self, *, study: str | None = None, task_type: str | None = None
    ) -> Sequence[ExperimentSummary]:
        """Returns experiments with the status of their newest run."""
        return self.summaries(self._store.experiments.rows(study=study, task_type=task_type))

    def page(
        self,
        *,
        study: str | None = None,
        task_type: str | None = None,
        judge: str | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int = 100,
        reasons: bool = True,
    ) -> Page:
        """Returns a page of experiments, after the last tag of a page or before its first."""
        tags = self.page_tags(
            after=after, before=before, limit=limit, study=study, task_type=task_type, judge=judge
        )
        names = [row["tag"] for row in tags.rows]
        rows = self._store.experiments.rows(tags=names) if names else []
        found = self.summaries(rows, reasons=reasons)
        return Page(cast(Any, found), tags.next, tags.previous)

    def page_tags(
        self,
        *,
        study: str | None = None,
        task_type: str | None = None,
        judge: str | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Returns a page of tags alone."""
        return self._store.experiments.page(
            after=after, before=before, limit=limit, study=study, task_type=task_type, judge=judge
        )

    def summaries(
        self, rows: Sequence[Mapping[str, Any]], *, reasons: bool = True
    ) -> Sequence[ExperimentSummary]:
        """Returns experiments with their runs, by as many statements for many as for one."""
        progress = self._store.progress.of_tags([row["tag"] for row in rows])
        failed = [
            run.run_id for runs in progress.values() for run in runs if any(run.failed.values())
        ]
        failures = self._store.progress.failures(failed) if reasons and failed else {}
        return [
            _summary(
                row,
                [_run(run, failures.get(run.run_id, ())) for run in progress[row["tag"]]],
                collected=not row["draft"] or self._benchmark_is_loaded(row),
            )
            for row in rows
        ]

    def _benchmark_is_loaded(self, draft: Mapping[str, Any]) -> bool:
        """Returns whether a draft is a benchmark whose window holds its items by now."""
        if draft["task_type"] != "benchmark" or draft["window_id"] is None:
            return False
        return bool(self._store.evidence.window_items(draft["window_id"]))

    # --- rubrics, samples, probes ----------------------------------------------------------------

    def list_rubrics(self, tag: str) -> Sequence[RubricRow]:
        """Returns the rubrics of an experiment with the critic's scores."""
        self._refuse_unknown(tag)
        return cast(Sequence[RubricRow], self._store.rubrics.of_experiment(tag))

    def list_samples(
        self, tag: str, *, status: str | None = None, evidence: int | None = None
    ) -> Sequence[SampleRow]:
        """Returns the samples of an experiment with decoded stages."""
        self._refuse_unknown(tag)
        found = [
            row
            for row in self._store.samples.rows([tag])
            if status in (None, row["status"]) and evidence in (None, row["evidence"])
        ]
        return cast(Sequence[SampleRow], self._with_answers(found, tag))

    def _with_answers(
        self, samples: Sequence[dict[str, Any]], tag: str
    ) -> Sequence[dict[str, Any]]:
        """Returns an experiment's samples with the columns that are read from answers."""
        rows = self._store.experiments.rows(tags=[tag])
        added = answer_columns(self._store, samples, rows)
        return [{**row, **columns} for row, columns in zip(samples, added, strict=True)]

    def _refuse_unknown(self, tag: str) -> None:
        """Raises an error that says of a study's name that it is no tag."""
        few = self._store.experiments.page(study=tag, limit=FEW)
        tags = [row["tag"] for row in few.rows]
        if tags and tag not in tags:
            raise DesignError(
                f"{tag!r} is a study; name one of its experiments, such as "
                f"{tags[0]!r}; an export takes a whole study",
                choices=tags,
            )
        self._store.experiments.rows(tags=[tag])

    def page_samples(
        self,
        tag: str,
        *,
        status: str | None = None,
        evidence: int | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Returns a page of an experiment's samples, after the last sample of the previous one."""
        self._refuse_unknown(tag)
        chosen = Selection(status=status, evidence=evidence)
        found = self._store.samples.browse(tag, chosen, after=read_row(after), limit=limit)
        rows = self._with_answers(found.rows, tag)
        return Page([*rows], None if found.after is None else str(found.after))

    def list_answers(self, target: str, *, status: str | None = None) -> Sequence[AnswerRow]:
        """Returns what judges answered, word for word, in a study or an experiment."""
        return cast(
            Sequence[AnswerRow], all_rows(partial(self.page_answers, target, status=status))
        )

    def page_answers(
        self, target: str, *, status: str | None = None, after: str | None = None, limit: int = 100
    ) -> Page:
        """Returns a page of answers, after the last sample of the previous page."""
        judges = {row["tag"]: row["design"]["judge.model"] for row in self.find(target)}
        rows = self._store.samples.answers(
            [*judges], status, after=read_row(after), limit=limit + 1
        )
        more = str(rows[limit - 1]["sample"]) if len(rows) > limit else None
        return Page([{**row, "judge": judges[row["tag"]]} for row in rows[:limit]], more)

    def browse_samples(
        self,
        tag: str,
        selection: Selection,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int,
    ) -> Span:
        """Returns the samples of a selection after or before one of them."""
        return self._store.samples.browse(tag, selection, after=after, before=before, limit=limit)

    def show_sample(self, id: int, tag: str | None = None) -> dict[str, Any]:
        """Returns a sample as a tidy row, under this tag or the first of its experiment."""
        row = self._store.samples.find(id, tag)
        return self._with_answers([row], row["tag"])[0]

    def list_setups(self, study: str) -> Sequence[SetupRow]:
        """Returns the setups of a study, by name."""
        return self._items.setups(study)

    def list_items(
        self,
        study: str,
        *,
        sort: str = "disagreement",
        task: str | None = None,
        status: str | None = None,
        wrong: bool = False,
        differs: bool = False,
        verdict: str | None = None,
        label: str | None = None,
        truth: str | None = None,
        search: str | None = None,
        setups: Sequence[str] = (),
    ) -> Sequence[JudgedItem]:
        """Returns the items of a study with every setup's verdicts, the most disputed first.

        Args:
            study: the study's name.
            sort: `disagreement`, `people` for those furthest from people's labels, or `position`
                for the order of the pool.
            task: items of this task alone.
            status: items with a verdict of this status.
            wrong: items on which a setup's usual verdict is not the known one.
            differs: items on which a setup's usual verdict is not what most people said.
            verdict: items on which this is a setup's usual verdict, such as `pass` or `abstained`.
            label: items to which most people gave this label; `divided` where several are as
                frequent.
            truth: items with this known answer.
            search: words in the title, the text or an answer.
            setups: compare these alone.
        """
        page = partial(self.page_items, study, sort=sort, task=task, status=status, wrong=wrong)
        page = partial(page, differs=differs, verdict=verdict, label=label, truth=truth)
        page = partial(page, search=search, setups=setups)
        return cast(Sequence[JudgedItem], all_rows(page))

    def page_items(
        self, study: str, *, after: str | None = None, limit: int = 100, **query: Any
    ) -> Page:
        """Returns a page of a study's items, after a position in the list."""
        return self._items.page(study, after=after, limit=limit, **query)

    def count_items(self, study: str, **query: Any) -> int:
        """Returns how many items a list has."""
        return self._items.count(study, **query)

    def show_item(
        self,
        evidence: int,
        study: str,
        task: str,
        *,
        sort: str = "disagreement",
        status: str | None = None,
        wrong: bool = False,
        differs: bool = False,
        verdict: str | None = None,
        label: str | None = None,
        truth: str | None = None,
        search: str | None = None,
        setups: Sequence[str] = (),
    ) -> JudgedItemDetail:
        """Returns an item with what every setup answered, and its neighbours in the list.

        The other arguments are those of `list_items`, and select the list.
        """
        return self._items.show(
            study,
            task,
            evidence,
            sort=sort,
            status=status,
            wrong=wrong,
            differs=differs,
            verdict=verdict,
            label=label,
            truth=truth,
            search=search,
            setups=setups,
        )

    def list_tasks(self, study: str) -> Sequence[str]:
        """Returns the names of a study's tasks, as its items have them."""
        return self._items.tasks(study)

    def given_stages(self, tags: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Returns the names of the stages of experiments whose task gives the rubric, by tag."""
        return self._store.items.given_stages(tags)

    def item_choices(self, study: str) -> ItemChoices:
        """Returns the verdicts, labels and known answers by which a study's items are chosen."""
        return self._items.choices(study)

    def crossed_labels(
        self, study: str, setup: str, *, truth: bool = False
    ) -> CrossedLabels | None:
        """Counts items by a setup's usual verdict and by what most people said.

        Args:
            study: the study's name.
            setup: the setup.
            truth: count known answers in place of people's labels.

        Returns:
            The counts; None where tasks have different scales, or there is nothing to count.
        """
        return self._items.crossed(study, setup, truth=truth)

    def item_labels(self, tag: str, evidence: int) -> Sequence[RaterLabel]:
        """Returns the labels that people gave to an item of an experiment."""
        return self._items.labels(tag, evidence)

    def list_probes(self, tag: str) -> Sequence[ProbeRow]:
        """Returns probes with the probability of expert agreement; null if unreadable."""
        return _probes(self.list_samples(tag))

    def page_probes(self, tag: str, *, after: str | None = None, limit: int = 100) -> Page:
        """Returns the probes of a page of samples; it may hold fewer than the limit."""
        page = self.page_samples(tag, after=after, limit=limit)
        return Page(cast(Any, _probes(page.rows)), page.next)

    def samples(self, *targets: str) -> "pd.DataFrame":
        """Returns a tidy row per sample with a column per knob, of tags, studies or everything."""
        return stored_samples(self._store, self.find(*targets))

    def sample_parts(
        self, *targets: str, include: Collection[str] = ()
    ) -> Iterator["pd.DataFrame"]:
        """Returns the rows of `samples`, one experiment at a time; at least one part."""
        every = self.find(*targets)
        columns = requested_columns(self._store, every, include)
        by_digest: dict[str, list[dict[str, Any]]] = {}
        for row in every:
            by_digest.setdefault(row["digest"], []).append(row)
        for rows in by_digest.values() or [[]]:
            yield exported_samples(self._store, rows, columns)

    def exported_samples(self, *targets: str, include: Collection[str] = ()) -> "pd.DataFrame":
        """Returns the rows of `samples` with what is read from answers, such as verdict lines.

        Args:
            targets: tags or studies; everything where none is given.
            include: what is added: `labels` (columns `label.RATER`, in the words of the labels),
                `text` (of the item), `answer` (the judge's words).
        """
        rows = self.find(*targets)
        columns = requested_columns(self._store, rows, include)
        return exported_samples(self._store, rows, columns)

    def export_csv(self, targets: Sequence[str], include: Collection[str] = ()) -> UntrustedText:
        """Returns the tidy rows of experiments as CSV."""
        text = io.StringIO(newline="")
        write_csv(self.exported_samples(*targets, include=include), text)
        return text.getvalue()

    def export(
        self,
        targets: Sequence[str],
        out: Path,
        *,
        format: str | None = None,
        include: Collection[str] = (),
    ) -> int:
        """Writes tidy rows to a file and returns how many."""
        chosen = file_format(out, format)
        check_folder(out)
        frame = self.exported_samples(*targets, include=include)
        if frame.empty:
            raise ConflictError("there are no samples to export yet; run a study first")
        write_samples(frame, out, chosen)
        return len(frame)

    def export_file(
        self, targets: Sequence[str], path: str, include: Collection[str] = ()
    ) -> WrittenFile:
        """Writes the tidy rows of studies and experiments to a new file below the lab's folder."""
        file = new_file(path, self._folder, (".csv", ".parquet"))
        rows = self.export(targets, file, include=include)
        return {"path": path, "bytes": file.stat().st_size, "rows": rows}

    def template(self) -> StudyTemplate:
        """Returns a commented study file to start from, and the JSON Schema of its keys."""
        text = (files("judge_gym.demo") / "support.yaml").read_text(encoding="utf-8")
        return {"text": text, "schema": Study.model_json_schema()}


def pool_of(window_id: int) -> str:
    """Returns the name of the pool of experiments that were created on a window."""
    return f"window-{window_id}"


def _chosen(incomplete: Experiment) -> dict[str, Any]:
    """Returns the knobs of an incomplete experiment.

    Its view was settled when it was created: here even the default is a choice.
    """
    design = incomplete.design
    return {"evidence.view": design.evidence.view, **design.chosen(incomplete.task.protocol)}


def _summary(
    row: Mapping[str, Any], runs: list[RunSummary], *, collected: bool
) -> ExperimentSummary:
    design = Design.of(row["design"])
    cleaned_up = row["cleaned_up"] if not runs else None
    viewed = "pending" if design.evidence.resolve().editor else "evidence-done"
    waiting = "draft" if not collected else "cleaned-up" if cleaned_up else viewed
    return {
        "tag": row["tag"],
        "study": row["study"],
        "protocol": row["protocol"],
        "task_type": row["task_type"],
        "concept": row["concept"],
        "country": row["country"],
        "window_id": row["window_id"],
        "dose": row["dose"],
        "truth": row["truth"],
        "digest": None if row["draft"] else row["digest"],
        "judge": design.judge.model,
        "design": design.chosen(row["protocol"]),
        "status": runs[-1]["status"] if runs else waiting,
        "cleaned_up": cleaned_up,
        "runs": runs,
    }


def run_counts(progress: Progress) -> RunCounts:
    """Returns the progress of a run as responses have it."""
    return {
        "run": progress.run_id,
        "series": progress.series,
        "status": progress.status,
        "targets": dict(progress.targets),
        "done": dict(progress.done),
        "not_needed": dict(progress.not_needed),
        "failed": dict(progress.failed),
        "verdicts": dict(progress.statuses),
        "message": progress.message,
        "actor": progress.event.actor if progress.event is not None else "",
    }


def _run(progress: Progress, failures: Sequence[Mapping[str, Any]]) -> RunSummary:
    summary: RunSummary = {**run_counts(progress), "failures": cast(Any, [*failures])}
    if progress.status in FINISHED:
        summary["message"] = ""
    return summary


def _probes(rows: Sequence[Mapping[str, Any]]) -> Sequence[ProbeRow]:
    fields = ProbeRow.__annotations__
    found = [{name: row[name] for name in fields} for row in rows if row["probe_status"]]
    return cast(Sequence[ProbeRow], found)
