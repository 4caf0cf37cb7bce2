"""What pages and streams of the web show beside the results of verbs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from judge_gym.errors import DesignError, NotFoundError
from judge_gym.lab.evidence import summarize_item
from judge_gym.lab.export_columns import requested_columns
from judge_gym.lab.items import StudyItems
from judge_gym.lab.sample_frames import exported_samples, with_answers
from judge_gym.lab.studies import Studies
from judge_gym.lab.study_states import StudyState, study_states
from judge_gym.models import Registry
from judge_gym.records import Message, Window
from judge_gym.records.responses import Collection as CollectionRow
from judge_gym.records.responses import CrossedLabels, ItemChoices, RaterLabel, as_records
from judge_gym.store import Event, Page, Progress, Selection, Span, Store

if TYPE_CHECKING:
    import pandas as pd


class PageData:
    """Reads what pages link, count and sum up, where no verb returns it."""

    def __init__(self, store: Store, models: Registry, studies: Studies, items: StudyItems) -> None:
        self._store = store
        self._models = models
        self._studies = studies
        self._items = items

    # --- studies and experiments -----------------------------------------------------------------

    def count_by_study(self) -> dict[str, int]:
        """Counts the experiments of each study, newest first, and under "" those of none."""
        return self._store.studies.counts()

    def judges(self) -> Sequence[str]:
        """Lists every model that judges in an experiment, by name."""
        return sorted(self._store.experiments.judges())

    def task_types(self) -> Sequence[str]:
        """Reads the types of tasks that occur. A lab without the research protocol has none."""
        return sorted(self._store.experiments.task_types())

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
        """Reads a page of tags alone."""
        return self._store.experiments.page(
            after=after, before=before, limit=limit, study=study, task_type=task_type, judge=judge
        )

    def study_version(self, study: str) -> tuple[int, ...]:
        """Numbers that change when something is added to what a study's report shows."""
        return self._store.studies.fingerprint(study)

    # --- runs, events and spending ---------------------------------------------------------------

    def progress(self, tag: str) -> Sequence[Progress]:
        """Reads the progress of each run of an experiment, oldest first."""
        return self._store.progress.of_tag(tag)

    def study_state(self, study: str) -> StudyState:
        """Reads how a study is going: its status, what came of its verdicts, what to do next."""
        return study_states(self._store, [study])[study]

    def study_states(self) -> Mapping[str, StudyState]:
        """Reads how all studies are going, by name; "" has the experiments of no study."""
        return study_states(self._store)

    def study_models(self, study: str) -> Sequence[dict[str, Any]]:
        """Counts what each model answered in a study, in all and in the last minute."""
        return self._store.usage.by_model(study)

    def events(self, after: int, run_ids: Collection[int]) -> Sequence[Event]:
        """Reads the events of runs after one of them, oldest first."""
        return self._store.events.since(after, run_ids)

    def study_events(
        self, study: str, limit: int, before: int | None = None
    ) -> Sequence[tuple[Event, str]]:
        """Reads a study's events with their tags, newest first, before one of them."""
        return self._store.events.of_study(study, limit, before)

    def last_event_id(self) -> int:
        """Reads the number of the newest event of any run."""
        return self._store.events.last_id()

    def experiment_usage(
        self, tag: str, *, by: Sequence[str] = ("stage", "model")
    ) -> Sequence[dict[str, Any]]:
        """Sums what was paid under one tag, even if a study has the same name."""
        return self._store.usage.rows(by=by, tag=tag)

    def spending(self, study: str | None = None) -> Sequence[dict[str, Any]]:
        """Sums what a study paid, or everything, by all columns, from totals kept up to date."""
        rows = self._store.usage_totals.rows()
        return [row for row in rows if study is None or row["study"] == study]

    # --- samples ---------------------------------------------------------------------------------

    def browse_samples(
        self,
        tag: str,
        selection: Selection,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int,
    ) -> Span:
        """Reads the samples of a selection after or before one of them."""
        return self._store.samples.browse(tag, selection, after=after, before=before, limit=limit)

    def show_sample(self, id: int, tag: str | None = None) -> dict[str, Any]:
        """Reads a sample as a tidy row, under this tag or the first of its experiment."""
        row = self._store.samples.find(id, tag)
        return with_answers(self._store, [row], row["tag"])[0]

    def sample_parts(
        self, *targets: str, include: Collection[str] = ()
    ) -> Iterator["pd.DataFrame"]:
        """Reads the rows of `samples`, one experiment at a time, in at least one part."""
        experiments = self._studies.find(*targets)
        columns = requested_columns(self._store, experiments, include)
        by_digest: dict[str, list[dict[str, Any]]] = {}
        for row in experiments:
            by_digest.setdefault(row["digest"], []).append(row)
        for rows in by_digest.values() or [[]]:
            yield exported_samples(self._store, rows, columns)

    # --- judged items ----------------------------------------------------------------------------

    def count_items(self, study: str, **query: Any) -> int:
        """Counts the items of a list."""
        return self._items.count(study, **query)

    def list_tasks(self, study: str) -> Sequence[str]:
        """Reads the names of a study's tasks, as its items have them."""
        return self._items.tasks(study)

    def given_stages(self, tags: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Reads the names of the stages of experiments whose task gives the rubric, by tag."""
        return self._store.items.given_stages(tags)

    def item_choices(self, study: str) -> ItemChoices:
        """Reads the verdicts, labels and known answers by which a study's items are chosen."""
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
        """Reads the labels that people gave to an item of an experiment."""
        return self._items.labels(tag, evidence)

    # --- evidence --------------------------------------------------------------------------------

    def find_window(self, window_id: int) -> tuple[Window, Sequence[CollectionRow]]:
        """Reads a window and the collections that filled it, oldest first."""
        collections = as_records(CollectionRow, self._store.evidence.collections(window_id))
        return self._store.evidence.find_window(window_id), collections

    def evidence_page(
        self,
        *,
        window_id: int | None = None,
        pool: str | None = None,
        tag: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> Page:
        """Reads a page of the items of a window, of a frozen pool or of an experiment."""
        evidence = self._store.evidence
        if [window_id, pool, tag].count(None) != 2:
            raise DesignError("items are those of one window, of one pool or of one experiment")
        if tag is not None:
            [row] = self._store.experiments.rows(tags=[tag])
            entries = evidence.some_of_pool(row["pool_id"], after, limit + 1)
        elif window_id is not None:
            evidence.find_window(window_id)
            entries = evidence.some_of_window(window_id, after, limit + 1)
        else:
            entries = evidence.some_of_pool(evidence.named_pool(str(pool)), after, limit + 1)
        rows = [
            {**summarize_item(item), "pair": bool(item.responses), "dropped": dropped}
            for _, item, dropped in entries[:limit]
        ]
        return Page(rows, str(entries[limit - 1][0]) if len(entries) > limit else None)

    def holders(self, id: int, limit: int = 50) -> dict[str, Any]:
        """Reads the windows, frozen pools and experiments that hold an item, `limit` of each."""
        return self._store.evidence.holders(id, limit)

    def judged_pools(self, *, limit: int) -> Sequence[dict[str, Any]]:
        """Reads the pools that runs judged, by study, the most recently judged first."""
        return self._store.items.judged_pools(limit)

    # --- calls and models ------------------------------------------------------------------------

    def transcript(self, call_id: int) -> tuple[Sequence[Message], Sequence[Mapping[str, Any]]]:
        """Reads what was asked in a call, and every attempt at an answer."""
        messages, attempts = self._store.ledger.transcript(call_id)
        if not messages:
            raise NotFoundError(f"there is no call {call_id}")
        return messages, [dict(row) for row in attempts]

    def named_models(self) -> Sequence[str]:
        """Lists the models that the registry and the user's file name, without retired ones."""
        today = datetime.now(UTC).date()
        cards = [self._models.card(id) for id in self._models.known()]
        return [card.id for card in cards if card.retires is None or card.retires > today]

    def can_call(self, model: str) -> bool:
        """Whether a model can be called from here."""
        try:
            self._models.open(model)
        except DesignError:
            return False
        return True

    def providers(self) -> Sequence[dict[str, Any]]:
        """Lists the model providers with what each needs."""
        return self._models.providers()
