"""Items with the verdicts of every setup on them, read in bulk."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.labels import latest_labels
from judge_gym.store.ledger import latest_attempt
from judge_gym.store.samples import PARAMETERS


class CellVerdicts(NamedTuple):
    """What repeats of one experiment under one rubric said about one item."""

    tag: str
    rubric: int
    evidence: int
    verdicts: str
    """The stages of each scored repeat, else its status, with commas between: `2,2 3,abstained`."""


class PoolItem(NamedTuple):
    """An item of a pool."""

    evidence: int
    truth: Any
    """The known answer: a stage, a label, or None."""
    pair: bool


class Items:
    """Reads what was judged, item by item, across the experiments of a study."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def verdicts(self, tags: Sequence[str]) -> Iterator[CellVerdicts]:
        """Yields the verdicts of active runs by experiment, rubric and item, without swaps."""
        s = t.samples.c
        runs = (
            sa.select(t.tags.c.tag, t.runs.c.id, t.run_rubrics.c.rubric_id)
            .join(t.runs, t.NAMED_RUNS)
            .join(t.run_rubrics, t.run_rubrics.c.run_id == t.runs.c.id)
            .where(t.tags.c.tag.in_(tags), t.runs.c.superseded.is_(None))
            .where(t.run_rubrics.c.is_swap.is_(False))
            .order_by(t.tags.c.tag, t.runs.c.id, t.run_rubrics.c.rubric_id)
        )
        verdict = sa.case((s.status == "scored", s.stages), else_=s.status)
        # With run and rubric fixed the unique index has the items in order: nothing is sorted.
        cells = (
            sa.select(s.evidence_id, sa.func.aggregate_strings(verdict, ","))
            .where(s.run_id == sa.bindparam("run"), s.rubric_id == sa.bindparam("rubric"))
            .where(s.is_swap.is_(False))
            .group_by(s.evidence_id)
        )
        with self._database.read() as connection:
            for tag, run, rubric in connection.execute(runs).all():
                rows = connection.execute(cells, {"run": run, "rubric": rubric}).all()
                yield from (CellVerdicts(tag, rubric, *row) for row in rows)

    def pools(self, ids: Iterable[int]) -> dict[int, list[PoolItem]]:
        """Returns the items of pools in their order."""
        p = t.pool_items.c
        query = (
            sa.select(p.pool_id, p.evidence_id, p.truth, t.evidence.c.pair)
            .join(t.evidence, t.evidence.c.id == p.evidence_id)
            .where(p.pool_id.in_([*ids]))
            .order_by(p.pool_id, p.position)
        )
        pools: dict[int, list[PoolItem]] = {}
        with self._database.read() as connection:
            for pool, *item in connection.execute(query):
                pools.setdefault(pool, []).append(PoolItem(*item))
        return pools

    def scales(self, tags: Sequence[str]) -> dict[int, tuple[str, int]]:
        """Returns the kind and the number of stages of the rubrics of experiments, by id."""
        query = (
            sa.select(t.rubrics.c.id, t.rubrics.c.kind, t.rubrics.c.scale)
            .join(t.run_rubrics, t.run_rubrics.c.rubric_id == t.rubrics.c.id)
            .join(t.runs, t.runs.c.id == t.run_rubrics.c.run_id)
            .join(t.tags, t.NAMED_RUNS)
            .where(t.tags.c.tag.in_(tags))
        )
        with self._database.read() as connection:
            return {id: (kind, scale) for id, kind, scale in connection.execute(query)}

    def given_stages(self, tags: Sequence[str]) -> dict[str, list[str]]:
        """Returns the names of the stages of experiments whose task gives the rubric, by tag."""
        query = (
            sa.select(t.tags.c.tag, t.rubrics.c.stages)
            .join(t.experiments, t.experiments.c.digest == t.tags.c.digest)
            .join(t.rubrics, t.rubrics.c.id == t.experiments.c.rubric_id)
            .where(t.tags.c.tag.in_(tags))
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return {tag: [name for name, *_ in stages] for tag, stages in rows}

    def label_counts(
        self, study: str, pools: Iterable[int], concept: str
    ) -> Sequence[tuple[int, str, int]]:
        """Returns how many people gave each item of pools each stage, for a concept or for any."""
        label, member = t.labels.c, t.pool_items.c
        items = sa.select(member.evidence_id).where(member.pool_id.in_([*pools]))
        query = (
            sa.select(label.evidence_id, label.stage, sa.func.count(label.rater.distinct()))
            .where(label.evidence_id.in_(items), label.concept.in_(["", concept]))
            .where(latest_labels(), label.study.in_(["", study]))
            .group_by(label.evidence_id, label.stage)
        )
        with self._database.read() as connection:
            return [(item, stage, count) for item, stage, count in connection.execute(query)]

    def labels(self, study: str, pools: Iterable[int], concept: str) -> list[tuple[int, str, str]]:
        """Returns item, rater and stage of the labels of pools, for a concept or for any."""
        label, member = t.labels.c, t.pool_items.c
        items = sa.select(member.evidence_id).where(member.pool_id.in_([*pools]))
        query = (
            sa.select(label.evidence_id, label.rater, label.stage)
            .where(label.evidence_id.in_(items), label.concept.in_(["", concept]))
            .where(latest_labels(), label.study.in_(["", study]))
            .order_by(label.id)
        )
        with self._database.read() as connection:
            return [(item, rater, stage) for item, rater, stage in connection.execute(query)]

    def raters(self, studies: Iterable[str], pools: Iterable[int]) -> list[str]:
        """Returns the people who labelled items of pools, by name."""
        member = t.pool_items.c
        items = sa.select(member.evidence_id).where(member.pool_id.in_([*pools]))
        named = sa.select(t.labels.c.rater).where(t.labels.c.evidence_id.in_(items))
        query = named.where(latest_labels(), t.labels.c.study.in_(["", *studies])).distinct()
        return sorted(self._database.scalars(query))

    def has_pairs(self, pools: Iterable[int]) -> bool:
        """Returns whether any item of pools is a pair of responses."""
        member = t.pool_items.c
        items = sa.select(member.evidence_id).where(member.pool_id.in_([*pools]))
        pairs = sa.select(t.evidence.c.id).where(t.evidence.c.id.in_(items), t.evidence.c.pair)
        return bool([*self._database.scalars(pairs.limit(1))])

    def texts(self, ids: Sequence[int]) -> dict[int, list[str]]:
        """Returns the text of items, and after it the responses of a pair."""
        query = sa.select(t.evidence.c.id, t.evidence.c.pair, t.texts.c.body).join(
            t.texts, t.texts.c.hash == t.evidence.c.text
        )
        texts: dict[int, list[str]] = {}
        with self._database.read() as connection:
            for start in range(0, len(ids), PARAMETERS):
                part = t.evidence.c.id.in_(ids[start : start + PARAMETERS])
                for id, pair, body in connection.execute(query.where(part)):
                    texts[id] = json.loads(body) if pair else [body]
        return texts

    def labels_of(self, study: str, evidence: int, concept: str) -> list[tuple[str, str]]:
        """Returns who gave an item which stage, for a concept or for any."""
        label = t.labels.c
        query = (
            sa.select(label.rater, label.stage)
            .where(label.evidence_id == evidence, label.concept.in_(["", concept]))
            .where(latest_labels(), label.study.in_(["", study]))
            .order_by(label.rater, label.id)
        )
        with self._database.read() as connection:
            return [(rater, stage) for rater, stage in connection.execute(query)]

    def judged_pools(self, limit: int) -> list[dict[str, Any]]:
        """Returns the pools that runs judged, by study, the most recently judged first."""
        g, i = t.tags.c, t.pool_items.c
        newest = sa.func.max(t.runs.c.id)
        query = (
            sa.select(
                g.pool_id,
                g.pool_name.label("name"),
                g.study,
                sa.func.min(g.tag).label("tag"),
                sa.func.count(g.tag.distinct()).label("experiments"),
            )
            .join(t.runs, t.NAMED_RUNS)
            .where(g.tag.not_like("%/rerun/%"))
            .group_by(g.pool_id, g.pool_name, g.study)
            .order_by(newest.desc())
            .limit(limit)
        )
        counts = sa.select(sa.func.count(), sa.func.count(i.truth)).where(
            i.pool_id == sa.bindparam("pool")
        )
        labelled = (
            sa.select(sa.func.count(i.evidence_id.distinct()))
            .join(t.labels, t.labels.c.evidence_id == i.evidence_id)
            .where(i.pool_id == sa.bindparam("pool"))
        )
        concepts = (
            sa.select(t.experiments.c.concept)
            .distinct()
            .join(t.tags, g.digest == t.experiments.c.digest)
            .where(g.pool_id == sa.bindparam("pool"), g.study == sa.bindparam("study"))
            .order_by(t.experiments.c.concept)
        )
        rows = self._database.rows(query)
        with self._database.read() as connection:
            for row in rows:
                pool_and_study = {"pool": row["pool_id"], "study": row["study"]}
                row["items"], row["known"] = connection.execute(counts, pool_and_study).one()
                row["labelled"] = connection.scalar(labelled, pool_and_study)
                row["concepts"] = [*connection.scalars(concepts, pool_and_study)]
        return rows

    def titles(self, ids: Sequence[int]) -> dict[int, str]:
        """Returns the titles of items."""
        query = sa.select(t.evidence.c.id, t.evidence.c.title)
        return self._database.pairs(query.where(t.evidence.c.id.in_(ids)))

    def search(self, tags: Sequence[str], words: str) -> set[int]:
        """Returns the items that have the words in title or text, or in a judge's answer."""
        pools = sa.select(t.tags.c.pool_id).where(t.tags.c.tag.in_(tags))
        items = sa.select(t.pool_items.c.evidence_id).where(t.pool_items.c.pool_id.in_(pools))
        texts = (
            sa.select(t.evidence.c.id)
            .join(t.texts, t.texts.c.hash == t.evidence.c.text)
            .where(t.evidence.c.id.in_(items))
            .where(sa.or_(_contains(t.evidence.c.title, words), _contains(t.texts.c.body, words)))
        )
        answered = t.texts.alias()
        answers = (
            sa.select(t.samples.c.evidence_id)
            .join(t.runs, t.runs.c.id == t.samples.c.run_id)
            .join(t.tags, t.NAMED_RUNS)
            .join(t.attempts, t.attempts.c.call_id == t.samples.c.call_id)
            .join(answered, answered.c.hash == t.attempts.c.text)
            .where(t.tags.c.tag.in_(tags), t.runs.c.superseded.is_(None))
            .where(t.samples.c.is_swap.is_(False), t.attempts.c.completed)
            .where(_contains(answered.c.body, words))
            .distinct()
        )
        return {*self._database.scalars(texts), *self._database.scalars(answers)}

    def answers(self, tags: Sequence[str], evidence: int) -> list[dict[str, Any]]:
        """Returns every verdict on an item with the judge's words, by experiment and repeat."""
        s, a = t.samples.c, t.attempts.c
        query = (
            sa.select(
                t.tags.c.tag,
                s.id.label("sample"),
                t.runs.c.series,
                s.replicate,
                s.flipped,
                s.status,
                s.stages,
                s.display,
                s.rubric_id.label("rubric"),
                t.rubrics.c.author.label("rubric_author"),
                t.rubrics.c.stages.label("rubric_stages"),
                a.usd,
                a.error,
                t.texts.c.body.label("text"),
            )
            .join(t.runs, t.NAMED_RUNS)
            .join(t.run_rubrics, t.run_rubrics.c.run_id == t.runs.c.id)
            .join(
                t.samples,
                sa.and_(
                    s.run_id == t.runs.c.id,
                    s.rubric_id == t.run_rubrics.c.rubric_id,
                    s.evidence_id == evidence,
                ),
            )
            .join(t.rubrics, t.rubrics.c.id == s.rubric_id)
            .join(t.attempts, a.id == latest_attempt(s.call_id, completed=False))
            .outerjoin(t.texts, t.texts.c.hash == a.text)
            .where(t.tags.c.tag.in_(tags), t.runs.c.superseded.is_(None), s.is_swap.is_(False))
            .where(t.run_rubrics.c.is_swap.is_(False))
            .order_by(t.tags.c.tag, t.runs.c.id, t.rubrics.c.draw, s.replicate, s.flipped)
        )
        return self._database.rows(query)


def _contains(column: Any, words: str) -> Any:
    return column.icontains(words, autoescape=True)
