"""Samples and experiments page by page, found by an index and so as fast at the end as at first."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.queries import Queries

# The columns of the samples' unique index, in its order: a page is one stretch of it.
PLACE = ("run_id", "rubric_id", "evidence_id", "replicate", "flipped", "is_swap")


class Page(NamedTuple):
    """Some rows, and where the next ones begin."""

    rows: list[dict[str, Any]]
    next: str | None
    """What to ask the next page with; None on the last."""
    previous: str | None = None
    """What to ask the page before with, where that can be asked; None on the first."""


class Pages(Queries):
    """The questions whose answers may be too long for one."""

    def samples_page(
        self,
        tag: str,
        *,
        after: int | None = None,
        limit: int,
        status: str | None = None,
        evidence: int | None = None,
    ) -> Page:
        """Samples of an experiment's active runs, in an order that stays while others come.

        Args:
            tag: the experiment.
            after: the last sample of the page before.
            limit: how many at most.
            status: only those with this verdict status.
            evidence: only those on this item.
        """
        s = t.samples.c
        active = (
            sa.select(t.runs.c.id)
            .join(t.tags, t.tags.c.digest == t.runs.c.digest)
            .where(t.tags.c.tag == tag, t.runs.c.superseded.is_(None))
        )
        place = [s[name] for name in PLACE]
        with self._database.read() as connection:
            runs = connection.scalars(active).all()
            query = sa.select(s.id).where(s.run_id.in_(runs)).order_by(*place).limit(limit + 1)
            if after is not None:
                last = connection.execute(sa.select(*place).where(s.id == after)).first()
                if last is None:
                    return Page([], None)
                query = query.where(sa.tuple_(*place) > sa.tuple_(*last))
            if status is not None:
                query = query.where(s.status == status)
            if evidence is not None:
                query = query.where(s.evidence_id == evidence)
            ids = connection.scalars(query).all()
            wanted = self._samples().where(s.id.in_(ids[:limit]))
            rows = connection.execute(wanted, {"tag": tag}).mappings().all()
        found = {row["sample"]: dict(row) for row in rows}
        more = len(ids) > limit
        return Page([found[id] for id in ids[:limit]], str(ids[limit - 1]) if more else None)

    def tags_page(
        self,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int,
        study: str | None = None,
        task_type: str | None = None,
        judge: str | None = None,
    ) -> Page:
        """Tags of experiments in their order: the first, those after one, or those before one."""
        tag = t.tags.c.tag
        query = sa.select(tag).order_by(tag if before is None else tag.desc()).limit(limit + 1)
        if before is not None:
            query = query.where(tag < before)
        elif after is not None:
            query = query.where(tag > after)
        if study is not None:
            query = query.where(t.tags.c.study == study)
        e = t.experiments.c
        query = query.join(t.experiments, e.digest == t.tags.c.digest)
        if task_type is not None:
            query = query.where(e.task_type == task_type)
        if judge is not None:
            query = query.where(e.design["judge.model"].as_string() == judge)
        with self._database.read() as connection:
            found = connection.scalars(query).all()
        more, tags = len(found) > limit, list(found[:limit])
        further, earlier = more, after is not None
        if before is not None:
            tags.reverse()
            further, earlier = True, more
        if not tags:
            return Page([], None)
        rows = [{"tag": tag} for tag in tags]
        return Page(rows, tags[-1] if further else None, tags[0] if earlier else None)

    def study_mark(self, study: str) -> tuple[int, ...]:
        """Numbers that differ once something was added to what a report on a study tells."""
        mine = sa.select(t.tags.c.digest).where(t.tags.c.study == study)
        runs = sa.select(t.runs.c.id).where(
            t.runs.c.digest.in_(mine), t.runs.c.superseded.is_(None)
        )
        counted = (t.samples, t.probes, t.events)
        queries = [sa.select(sa.func.count()).where(one.c.run_id.in_(runs)) for one in counted]
        queries += [
            sa.select(sa.func.count()).select_from(mine.subquery()),
            sa.select(sa.func.count()).select_from(t.labels),
        ]
        with self._database.read() as connection:
            return tuple(int(connection.scalar(query) or 0) for query in queries)
