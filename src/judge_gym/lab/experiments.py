"""The noun `lab.experiments`: studies, experiments and what was judged in them."""

import io
import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, Unpack

from pydantic import Field

from judge_gym.engine import FINISHED, Engine
from judge_gym.errors import ConflictError, DesignError
from judge_gym.lab.cursors import all_rows, read_row
from judge_gym.lab.drafts import Drafts
from judge_gym.lab.experiment_summaries import summarize_experiments
from judge_gym.lab.export_columns import requested_columns
from judge_gym.lab.items import StudyItems
from judge_gym.lab.sample_frames import (
    exported_samples,
    file_format,
    stored_samples,
    with_answers,
    write_csv,
    write_samples,
)
from judge_gym.lab.studies import Studies
from judge_gym.lab.texts import check_folder, files_of, new_file
from judge_gym.records import Status, TaskType
from judge_gym.records.requests import (
    NOTHING,
    Count,
    Id,
    Include,
    Knobs,
    Name,
    NewFile,
    Sent,
    Tag,
    TargetName,
    Targets,
)
from judge_gym.records.responses import (
    AnswerRow,
    Counts,
    ExperimentSummary,
    JudgedItem,
    JudgedItemDetail,
    ProbeRow,
    RubricRow,
    SampleRow,
    SetupRow,
    StudyFile,
    StudyRow,
    StudyTemplate,
    UntrustedText,
    WrittenFile,
    as_records,
)
from judge_gym.store import Page, Selection, Store
from judge_gym.studies import (
    Study,
)

if TYPE_CHECKING:
    import pandas as pd

RUBRIC = "rubric.json"
FEW = 20
"""Tags of a study that are named where one of them is meant."""


class ItemQuery(TypedDict, total=False):
    """Which items of a study are listed, in which order, for which setups."""

    sort: Annotated[
        Literal["disagreement", "people", "position"],
        Field(
            default="disagreement",
            description="Largest disagreement, furthest from people, or the pool's order.",
        ),
    ]
    status: Annotated[Status | None, Field(description="Items with a verdict of this status.")]
    wrong: Annotated[
        bool,
        Field(
            default=False,
            description="Items on which a setup's usual verdict is not the known one.",
        ),
    ]
    differs: Annotated[
        bool,
        Field(
            default=False,
            description="Items on which a setup's verdict is not what most people said.",
        ),
    ]
    verdict: Annotated[
        Name | None, Field(description="Items with this usual verdict: a label or a status.")
    ]
    label: Annotated[
        Name | None, Field(description="Items to which most people gave this label; or `divided`.")
    ]
    truth: Annotated[Name | None, Field(description="Items with this known answer.")]
    search: Annotated[Name | None, Field(description="Words in the title, the text or an answer.")]
    setups: Annotated[
        Sequence[Name], Field(default=(), max_length=100, description="Compare these alone.")
    ]


class Experiments:
    """Creates, lists and exports experiments."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        studies: Studies,
        drafts: Drafts,
        items: StudyItems,
        folder: Path = Path(),
    ) -> None:
        self._store = store
        self._folder = folder
        self._engine = engine
        self._studies = studies
        self._drafts = drafts
        self._items = items

    # --- creating --------------------------------------------------------------------------------

    def create(
        self,
        tag: Name,
        window_id: Id,
        model_id: Name,
        task_type: TaskType,
        concept: Name,
        config: Knobs = NOTHING,
        ground_truth: Mapping[str, Any] | None = None,
        *,
        seed: Count = 0,
    ) -> str | None:
        """Creates an experiment on a window's evidence and returns its digest, null for a draft.

        On a window without evidence it is a draft, which `freeze` gives its evidence. It runs under
        the protocol contested-concepts, with the lab's assistant.
        """
        return self._drafts.create(
            tag, window_id, model_id, task_type, concept, config, ground_truth, seed=seed
        )

    def load_rubric(self, tag: Tag, rubric: Mapping[str, Any]) -> str:
        """Sets a benchmark's rubric and the stages of its known answers; returns its new digest.

        A given rubric is not criticised: its quality is null.
        """
        with files_of({RUBRIC: json.dumps(rubric)}) as folder:
            return self.load_rubric_file(tag, folder / RUBRIC)

    def load_rubric_file(self, tag: str, rubric_path: str | Path) -> str:
        """Gives a benchmark the rubric of a file, and the design of a benchmark's folder."""
        return self._drafts.load_rubric(tag, Path(rubric_path))

    def cleanup(
        self,
        tag: Tag,
        *,
        ledger: Annotated[bool, Field(description="Also answers that only it uses.")] = False,
        forget: Annotated[bool, Field(description="Also its tag, which else stays known.")] = False,
        force: Annotated[bool, Field(description="Even if it may be running.")] = False,
    ) -> Counts:
        """Deletes an experiment's runs. Its tag and every answer in the ledger are kept."""
        [row] = self._store.experiments.rows(tags=[tag])
        if row["draft"] and not forget:
            raise ConflictError(
                f"{tag} is a draft: it has nothing to delete but its name; `forget` does"
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
                    f"{tag} may be running now ({unfinished[0].status}); stop it, or use `force`"
                ) from None
        return delete(tag)

    # --- study files -----------------------------------------------------------------------------

    def list_studies(self) -> Sequence[StudyRow]:
        """Lists studies with their number of experiments, and whether their file is stored."""
        return as_records(StudyRow, self._store.studies.rows())

    def show_study(self, name: Name) -> StudyFile:
        """Shows a study's file as it was last run, its budget, and what it declares.

        The text is empty if it had no file. A declaration of its analysis (a contrast, a hypothesis
        or a margin) comes with the number of answers that the study had when it was declared.
        """
        self._studies.check_study(name)
        text = self._store.studies.file(name) or ""
        return {
            "study": name,
            "text": text,
            "budget": dict(self._store.studies.budget(name)),
            "declarations": [
                {
                    "what": declaration.what,
                    "declared": declaration.when,
                    "answers_before": declaration.before,
                    "answers": declaration.answers,
                }
                for declaration in self._store.studies.declarations(name).declared
            ],
        }

    # --- finding ---------------------------------------------------------------------------------

    def show(self, tag: Tag) -> ExperimentSummary:
        """Shows an experiment's design, the progress of its runs and why targets failed."""
        [summary] = summarize_experiments(self._store, self._store.experiments.rows(tags=[tag]))
        return summary

    def list(
        self,
        *,
        study: Name | None = None,
        task_type: Annotated[str | None, Sent(TaskType | None)] = None,
    ) -> Sequence[ExperimentSummary]:
        """Lists experiments with the status of their newest run."""
        return summarize_experiments(
            self._store, self._store.experiments.rows(study=study, task_type=task_type)
        )

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
        """Reads a page of experiments, after the last tag of a page or before its first."""
        tags = self._store.experiments.page(
            after=after, before=before, limit=limit, study=study, task_type=task_type, judge=judge
        )
        names = [row["tag"] for row in tags.rows]
        rows = self._store.experiments.rows(tags=names) if names else []
        summaries = summarize_experiments(self._store, rows, reasons=reasons)
        return Page(summaries, tags.next, tags.previous)

    # --- rubrics, samples, probes ----------------------------------------------------------------

    def list_rubrics(self, tag: Tag) -> Sequence[RubricRow]:
        """Lists the rubrics of an experiment with the critic's scores."""
        self._refuse_unknown(tag)
        return as_records(RubricRow, self._store.rubrics.of_experiment(tag))

    def list_samples(
        self, tag: Tag, *, status: Status | None = None, evidence: Id | None = None
    ) -> Sequence[SampleRow]:
        """Lists the samples of an experiment with decoded stages."""
        self._refuse_unknown(tag)
        samples = [
            row
            for row in self._store.samples.rows([tag])
            if status in (None, row["status"]) and evidence in (None, row["evidence"])
        ]
        return as_records(SampleRow, with_answers(self._store, samples, tag))

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
        """Reads a page of an experiment's samples, after the last sample of the previous one."""
        self._refuse_unknown(tag)
        selection = Selection(status=status, evidence=evidence)
        span = self._store.samples.browse(tag, selection, after=read_row(after), limit=limit)
        rows = with_answers(self._store, span.rows, tag)
        return Page([*rows], None if span.after is None else str(span.after))

    def list_answers(
        self, target: TargetName, *, status: Status | None = None
    ) -> Sequence[AnswerRow]:
        """Lists what judges answered, word for word, in a study or an experiment."""
        return as_records(AnswerRow, all_rows(partial(self.page_answers, target, status=status)))

    def page_answers(
        self, target: str, *, status: str | None = None, after: str | None = None, limit: int = 100
    ) -> Page:
        """Reads a page of answers, after the last sample of the previous page."""
        judges = {row["tag"]: row["design"]["judge.model"] for row in self._studies.find(target)}
        rows = self._store.samples.answers(
            [*judges], status, after=read_row(after), limit=limit + 1
        )
        more = str(rows[limit - 1]["sample"]) if len(rows) > limit else None
        return Page([{**row, "judge": judges[row["tag"]]} for row in rows[:limit]], more)

    def list_setups(self, study: Name) -> Sequence[SetupRow]:
        """Lists the setups of a study, by name."""
        return self._items.setups(study)

    def list_items(
        self,
        study: Name,
        *,
        task: Annotated[
            Name | None, Field(description="As `experiments_list_items` names it.")
        ] = None,
        **query: Unpack[ItemQuery],
    ) -> Sequence[JudgedItem]:
        """Lists a study's items with every setup's verdicts, the most disputed first.

        Args:
            study: the study's name.
            task: items of this task alone.
            query: see `ItemQuery`.
        """
        page = partial(self.page_items, study, task=task, **query)
        return as_records(JudgedItem, all_rows(page))

    def page_items(
        self, study: str, *, after: str | None = None, limit: int = 100, **query: Any
    ) -> Page:
        """Reads a page of a study's items, after a position in the list."""
        return self._items.page(study, after=after, limit=limit, **query)

    def show_item(
        self,
        evidence: Id,
        study: Name,
        task: Name,
        **query: Unpack[ItemQuery],
    ) -> JudgedItemDetail:
        """Shows an item with what every setup answered, and its neighbours in the list.

        The other arguments are those of `list_items`, and select the list.
        """
        return self._items.show(study, task, evidence, **query)

    def list_probes(self, tag: Tag) -> Sequence[ProbeRow]:
        """Lists probes with the probability of expert agreement, null if unreadable."""
        return _probes(self.list_samples(tag))

    def page_probes(self, tag: str, *, after: str | None = None, limit: int = 100) -> Page:
        """Reads the probes of a page of samples, which may be fewer than the limit."""
        page = self.page_samples(tag, after=after, limit=limit)
        return Page(_probes(page.rows), page.next)

    def samples(self, *targets: str) -> "pd.DataFrame":
        """Reads a tidy row per sample with a column per knob, of tags, studies or everything."""
        return stored_samples(self._store, self._studies.find(*targets))

    def exported_samples(self, *targets: str, include: Collection[str] = ()) -> "pd.DataFrame":
        """Adds what is read from answers, such as verdict lines, to the rows of `samples`.

        Args:
            targets: tags or studies; everything where none is given.
            include: what is added: `labels` (columns `label.RATER`, in the words of the labels),
                `text` (of the item), `answer` (the judge's words).
        """
        rows = self._studies.find(*targets)
        columns = requested_columns(self._store, rows, include)
        return exported_samples(self._store, rows, columns)

    def export_csv(self, targets: Targets, include: Include = ()) -> UntrustedText:
        """Exports the tidy rows of experiments as CSV."""
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
        out_format = file_format(out, format)
        check_folder(out)
        frame = self.exported_samples(*targets, include=include)
        if frame.empty:
            raise ConflictError("there are no samples to export yet; run a study first")
        write_samples(frame, out, out_format)
        return len(frame)

    def export_file(self, targets: Targets, path: NewFile, include: Include = ()) -> WrittenFile:
        """Writes the tidy rows of studies and experiments to a new file below the lab's folder."""
        file = new_file(path, self._folder, (".csv", ".parquet"))
        rows = self.export(targets, file, include=include)
        return {"path": path, "bytes": file.stat().st_size, "rows": rows}

    def template(self) -> StudyTemplate:
        """Provides a commented study file to start from, and the JSON Schema of its keys."""
        text = (files("judge_gym.demo") / "support.yaml").read_text(encoding="utf-8")
        return {"text": text, "schema": Study.model_json_schema()}


def _probes(rows: Sequence[Mapping[str, Any]]) -> Sequence[ProbeRow]:
    fields = ProbeRow.__annotations__
    probes = [{name: row[name] for name in fields} for row in rows if row["probe_status"]]
    return as_records(ProbeRow, probes)
