"""People's labels of items, the queues in which people are asked, and what they say of judges.

Rows are only added. Of a rater's labels of an item the latest counts; the earlier ones stay.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from judge_gym.errors import ConflictError, NotFoundError, unknown
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import CHUNK

Kind = Literal["imported", "given", "adjudicated"]
ADJUDICATE = "adjudicate"
"""The key of a queue's draw that marks the items on which raters differed."""
KEY = ("evidence_id", "study", "concept", "rater")
"""What a label is of; of several labels with the same key the latest counts."""


class Assignment(NamedTuple):
    """An item that a rater is asked about."""

    rater: str
    position: int
    evidence_id: int
    flipped: bool


@dataclass(frozen=True, slots=True)
class Queue:
    """Items of a study that people are asked to label."""

    id: int
    study: str
    concept: str
    tag: str | None
    """The experiment whose wording and view people see."""
    rubric: Mapping[str, Any]
    """The kind, and each stage as a list of its label and its criteria."""
    draw: Mapping[str, Any]
    """How the items were drawn."""
    created: datetime


class GivenLabel(NamedTuple):
    """The latest label of a rater on an item of a queue; `stage` is None for "cannot judge"."""

    evidence_id: int
    stage: str | None
    confidence: str | None
    note: str | None


def latest_labels() -> sa.ColumnElement[bool]:
    """Selects each rater's latest label of an item, unless it says that they cannot judge it."""
    label = t.labels.c
    newest = sa.select(sa.func.max(label.id)).group_by(*(label[name] for name in KEY))
    return sa.and_(label.id.in_(newest), label.stage.is_not(None))


class Labels:
    """Saves and finds labels."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, rows: Iterable[Mapping[str, Any]], *, replace: bool) -> dict[str, int]:
        """Saves labels of a file; one that differs from the rater's earlier one needs `replace`."""
        counts = {"new": 0, "same": 0, "changed": 0}
        labels = [{"study": "", **row} for row in rows]
        added, now = [], datetime.now(UTC)
        with self._database.begin() as connection:
            stages = self._latest_stages(connection, {row["evidence_id"] for row in labels})
            for row in labels:
                key = tuple(row[name] for name in KEY)
                earlier = stages.get(key)
                if earlier is None:
                    counts["new"] += 1
                elif earlier == row["stage"]:
                    counts["same"] += 1
                    continue
                elif replace:
                    counts["changed"] += 1
                else:
                    raise ConflictError(
                        f"{row['rater']} gave evidence {row['evidence_id']} the stage {earlier!r}, "
                        f"now {row['stage']!r}; nothing was imported; `replace` takes the new ones"
                    )
                stages[key] = row["stage"]
                added.append({**row, "kind": "imported", "given": now})
            if added:
                connection.execute(t.labels.insert(), added)
        return counts

    def give(self, row: Mapping[str, Any], *, kind: Kind = "given") -> int:
        """Adds the label that a person gives in the browser, and returns its number."""
        values = {**row, "kind": kind, "given": datetime.now(UTC)}
        with self._database.begin() as connection:
            inserted = connection.execute(t.labels.insert(), values).inserted_primary_key
        assert inserted is not None
        return int(inserted[0])

    def all(self) -> list[dict[str, Any]]:
        """Returns the labels that count, in the order in which they were given."""
        label = t.labels.c
        query = (
            sa.select(
                label.evidence_id.label("evidence"),
                t.evidence.c.title,
                label.study,
                label.concept,
                label.rater,
                label.stage,
            )
            .join(t.evidence, t.evidence.c.id == label.evidence_id)
            .where(latest_labels())
            .order_by(label.id)
        )
        return self._database.rows(query)

    def history(self, evidence_ids: Collection[int]) -> list[dict[str, Any]]:
        """Returns every label of items, also replaced ones, in the order of their times."""
        label, ids = t.labels.c, sorted(evidence_ids)
        columns = ("stage", "kind", "confidence", "note", "queue_id", "shown", "given")
        query = sa.select(
            label.id,
            label.evidence_id.label("evidence"),
            label.study,
            label.concept,
            label.rater,
            *(label[name] for name in columns),
        ).order_by(label.id)
        return [
            row
            for start in range(0, len(ids), CHUNK)
            for row in self._database.rows(
                query.where(label.evidence_id.in_(ids[start : start + CHUNK]))
            )
        ]

    def _latest_stages(
        self, connection: sa.Connection, evidence_ids: Collection[int]
    ) -> dict[tuple[Any, ...], str]:
        """Finds the stages that count of items, by `KEY`."""
        label, ids = t.labels.c, sorted(evidence_ids)
        query = sa.select(*(label[name] for name in KEY), label.stage).where(latest_labels())
        return {
            tuple(key): stage
            for start in range(0, len(ids), CHUNK)
            for *key, stage in connection.execute(
                query.where(label.evidence_id.in_(ids[start : start + CHUNK]))
            )
        }


class LabelQueues:
    """Saves and finds queues of items, and how far each rater is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        queue: Mapping[str, Any],
        probabilities: Mapping[int, float | None],
        assignments: Iterable[Assignment],
    ) -> int:
        """Saves a queue with the chance of each of its items and what each rater is asked."""
        with self._database.begin() as connection:
            values = {**queue, "created": datetime.now(UTC)}
            inserted = connection.execute(t.label_queues.insert(), values).inserted_primary_key
            assert inserted is not None
            id = int(inserted[0])
            connection.execute(
                t.label_queue_items.insert(),
                [
                    {"queue_id": id, "evidence_id": item, "probability": probability}
                    for item, probability in probabilities.items()
                ],
            )
            connection.execute(
                t.label_assignments.insert(),
                [{"queue_id": id, **assignment._asdict()} for assignment in assignments],
            )
        return id

    def find(self, id: int) -> Queue:
        """Returns a queue."""
        row = self._database.first(sa.select(t.label_queues).where(t.label_queues.c.id == id))
        if row is None:
            numbers = [str(queue.id) for queue in self.of_study()]
            raise NotFoundError(unknown("queue", str(id), numbers), choices=numbers)
        return Queue(**row._mapping)

    def of_study(self, study: str | None = None) -> Sequence[Queue]:
        """Returns the queues of a study, or of all studies, oldest first."""
        query = sa.select(t.label_queues).order_by(t.label_queues.c.id)
        if study is not None:
            query = query.where(t.label_queues.c.study == study)
        return [Queue(**row) for row in self._database.rows(query)]

    def assignments(self, id: int, rater: str | None = None) -> Sequence[Assignment]:
        """Returns what raters are asked, in their order."""
        a = t.label_assignments.c
        query = sa.select(a.rater, a.position, a.evidence_id, a.flipped).where(a.queue_id == id)
        if rater is not None:
            query = query.where(a.rater == rater)
        rows = self._database.rows(query.order_by(a.rater, a.position))
        return [Assignment(**row) for row in rows]

    def given(self, queue: Queue, rater: str, *, kinds: Sequence[Kind]) -> dict[int, GivenLabel]:
        """Returns a rater's latest labels of the items of a queue, wherever they were given."""
        label, asked = t.labels.c, t.label_assignments.c
        items = sa.select(asked.evidence_id).where(asked.queue_id == queue.id, asked.rater == rater)
        query = (
            sa.select(label.evidence_id, label.stage, label.confidence, label.note)
            .where(label.evidence_id.in_(items), label.rater == rater, label.kind.in_(kinds))
            .where(label.concept.in_(["", queue.concept]), label.study.in_(["", queue.study]))
            .order_by(label.id)
        )
        return {row["evidence_id"]: GivenLabel(**row) for row in self._database.rows(query)}

    def probabilities(self, study: str) -> dict[int, float | None]:
        """Returns the chance with which each item of any queue of a study was drawn.

        Draws of several queues combine: an item is left out only if each left it out. None marks
        items that were only drawn because they are disputed.
        """
        q, item = t.label_queues.c, t.label_queue_items.c
        query = (
            sa.select(item.evidence_id, item.probability, q.draw)
            .join(t.label_queues, q.id == item.queue_id)
            .where(q.study == study)
            .order_by(item.queue_id)
        )
        chances: dict[int, float | None] = {}
        for row in self._database.rows(query):
            if row["draw"].get(ADJUDICATE):
                continue  # these were drawn before
            earlier, drawn = chances.get(row["evidence_id"]), row["probability"]
            if earlier is not None and drawn is not None:
                drawn = 1 - (1 - earlier) * (1 - drawn)
            chances[row["evidence_id"]] = earlier if drawn is None else drawn
        return chances

    def review(self, id: int, rater: str, sample: int, *, sound: bool) -> None:
        """Records what a rater says of the reasoning behind a judge's verdict."""
        row = {"queue_id": id, "rater": rater, "sample_id": sample, "sound": sound}
        with self._database.begin() as connection:
            connection.execute(t.label_reviews.insert(), {**row, "given": datetime.now(UTC)})

    def reviews(self, id: int) -> list[dict[str, Any]]:
        """Returns what raters said of judges' reasoning, in the order in which they said it."""
        r = t.label_reviews.c
        query = sa.select(r.rater, r.sample_id.label("sample"), r.sound).where(r.queue_id == id)
        return self._database.rows(query.order_by(r.id))
