"""Reading for faces and analysis: counts, statuses, tidy rows, spend; all derived from rows."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from judge_gym.axes import complete
from judge_gym.errors import NotFoundError
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import latest_attempt

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 50_000
"""Samples that are fetched at once."""
USAGE_BY = ("study", "tag", "stage", "model", "day")


class Queries:
    """Read-only questions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tags(
        self, *, study: str | None = None, task_type: str | None = None, tags: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Experiments by their tags, with annotations and the value of every knob."""
        e = t.experiments.c
        query = sa.select(
            t.tags, e.task_type, e.concept, e.country, e.seed, e.design, e.pool_id
        ).join(t.experiments, e.digest == t.tags.c.digest)
        if study is not None:
            query = query.where(t.tags.c.study == study)
        if task_type is not None:
            query = query.where(e.task_type == task_type)
        if tags:
            query = query.where(t.tags.c.tag.in_(tags))
        with self._database.read() as connection:
            rows = [
                {**row, "design": complete(row["design"])}
                for row in connection.execute(query.order_by(t.tags.c.tag)).mappings()
            ]
        for tag in sorted(set(tags) - {row["tag"] for row in rows}):
            raise self.no_such(tag)
        return rows

    def no_such(self, tag: str) -> NotFoundError:
        """The error for a tag that is not there, with those that are like it."""
        like = t.tags.c.tag.contains(tag, autoescape=True)
        with self._database.read() as connection:
            near = connection.scalars(sa.select(t.tags.c.tag).where(like).limit(5)).all()
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see judge-gym status"
        return NotFoundError(f"there is no experiment {tag!r}; {hint}", choices=near)

    def samples(self, tags: Sequence[str]) -> Iterator[dict[str, Any]]:
        """One tidy row per sample of the active runs, without the knobs."""
        query = self._samples().execution_options(yield_per=1000)  # a server keeps the rest
        with self._database.read() as connection:
            for tag in tags:
                for row in connection.execute(query, {"tag": tag}).mappings():
                    truth = None if row["truth"] is None else json.loads(row["truth"])
                    yield {**row, "truth": truth}

    def sample_table(self, tags: Sequence[str]) -> "pa.Table":
        """The same as typed columns, truths as JSON: a million dictionaries are too many."""
        import pyarrow as pa

        query = self._samples()
        kinds = {sa.Integer: pa.int64(), sa.Float: pa.float64(), sa.Boolean: pa.bool_()}
        schema = pa.schema(
            [(c.key, kinds.get(type(c.type), pa.large_string())) for c in query.selected_columns]
        )
        parts = [schema.empty_table()]
        with self._database.read() as connection:
            reading = connection.execution_options(yield_per=CHUNK)
            for tag in tags:
                for rows in reading.execute(query, {"tag": tag}).partitions():
                    columns = zip(zip(*rows, strict=True), schema, strict=True)
                    arrays = [pa.array(values, type=field.type) for values, field in columns]
                    parts.append(pa.Table.from_arrays(arrays, schema=schema))
        return pa.concat_tables(parts)

    def _samples(self) -> sa.Select[Any]:
        s = t.samples.c
        return (
            sa.select(
                t.tags.c.tag,
                t.tags.c.study,
                t.experiments.c.task_type,
                t.experiments.c.concept,
                t.experiments.c.country,
                t.tags.c.pool_name.label("pool"),
                t.tags.c.dose,
                t.runs.c.id.label("run"),
                t.runs.c.series,
                s.id.label("sample"),
                s.evidence_id.label("evidence"),
                t.evidence.c.title.label("evidence_title"),
                t.evidence.c.pair,
                sa.cast(t.pool_items.c.truth, sa.Text).label("truth"),
                s.replicate,
                s.flipped,
                s.is_swap,
                s.status,
                s.stages,
                t.rubrics.c.scale.label("n_stages"),
                s.display,
                t.probes.c.probability.label("probe"),
                t.probes.c.status.label("probe_status"),
                t.probes.c.call_id.label("probe_call_id"),
                s.rubric_id.label("rubric"),
                t.rubrics.c.kind.label("rubric_kind"),
                t.rubrics.c.author.label("rubric_author"),
                t.rubrics.c.draw.label("rubric_draw"),
                t.critiques.c.observability,
                t.critiques.c.discriminability,
                s.call_id,
                t.attempts.c.reported_model,
                t.attempts.c.usd,
            )
            .join(t.runs, t.runs.c.id == s.run_id)
            .join(t.experiments, t.experiments.c.digest == t.runs.c.digest)
            .join(t.tags, t.tags.c.digest == t.experiments.c.digest)
            .join(t.evidence, t.evidence.c.id == s.evidence_id)
            .join(
                t.pool_items,
                sa.and_(
                    t.pool_items.c.pool_id == t.tags.c.pool_id,
                    t.pool_items.c.evidence_id == s.evidence_id,
                ),
            )
            .join(t.rubrics, t.rubrics.c.id == s.rubric_id)
            .join(t.attempts, t.attempts.c.id == latest_attempt(s.call_id, completed=False))
            .outerjoin(t.probes, t.probes.c.sample_id == s.id)
            .outerjoin(
                t.critiques,
                sa.and_(
                    t.critiques.c.rubric_id == s.rubric_id,
                    t.critiques.c.maker == t.runs.c.critic_maker,
                ),
            )
            .where(t.tags.c.tag == sa.bindparam("tag"), t.runs.c.superseded.is_(None))
            .order_by(  # not ids of what is made, which is the order in which answers came
                s.run_id,
                s.is_swap,
                t.rubrics.c.author,
                t.rubrics.c.draw,
                s.evidence_id,
                s.replicate,
                s.flipped,
            )
        )

    def views(self, tags: Sequence[str]) -> list[dict[str, Any]]:
        """The views that judges of experiments read, each once, with their checks."""
        query = (
            sa.select(t.views)
            .distinct()
            .join(t.pool_items, t.pool_items.c.evidence_id == t.views.c.evidence_id)
            .join(t.tags, t.tags.c.pool_id == t.pool_items.c.pool_id)
            .join(t.runs, t.runs.c.digest == t.tags.c.digest)
            .where(t.views.c.maker == t.runs.c.view_maker, t.runs.c.superseded.is_(None))
            .where(t.tags.c.tag == sa.bindparam("tag"))
        )
        found: dict[int, dict[str, Any]] = {}
        with self._database.read() as connection:
            for tag in tags:
                for row in connection.execute(query, {"tag": tag}).mappings():
                    found[row["id"]] = dict(row)
        return list(found.values())

    def rubrics(self, tag: str) -> list[dict[str, Any]]:
        """The rubrics of an experiment's runs, with the critic's scores (null until given)."""
        query = (
            sa.select(
                t.rubrics,
                t.run_rubrics.c.is_swap,
                t.critiques.c.critic,
                t.critiques.c.observability,
                t.critiques.c.discriminability,
            )
            .distinct()
            .join(t.run_rubrics, t.run_rubrics.c.rubric_id == t.rubrics.c.id)
            .join(t.runs, t.runs.c.id == t.run_rubrics.c.run_id)
            .join(t.tags, t.tags.c.digest == t.runs.c.digest)
            .outerjoin(
                t.critiques,
                sa.and_(
                    t.critiques.c.rubric_id == t.rubrics.c.id,
                    t.critiques.c.maker == t.runs.c.critic_maker,
                ),
            )
            .where(t.tags.c.tag == tag, t.runs.c.superseded.is_(None))
            .order_by(t.run_rubrics.c.is_swap, t.rubrics.c.author, t.rubrics.c.draw)
        )
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def usage(
        self,
        *,
        by: Sequence[str] = USAGE_BY,
        study: str | None = None,
        tag: str | None = None,
        run: int | None = None,
    ) -> list[dict[str, Any]]:
        """What was paid, in sums by some of `USAGE_BY`; what was imported apart."""
        a, query = t.attempts.c, usage_query(by)
        for column, wanted in ((a.study, study), (a.tag, tag), (a.run_id, run)):
            if wanted is not None:
                query = query.where(column == wanted)
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def last_attempt(self) -> int:
        """The newest attempt of all; 0 where there is none."""
        with self._database.read() as connection:
            return connection.scalar(sa.select(sa.func.max(t.attempts.c.id))) or 0

    def paid(
        self, payer: str | int, after: int, until: int | None = None
    ) -> tuple[int, int, float, int]:
        """What a study, or a run, paid in attempts of some ids: calls, tokens, US dollars, last id.

        It reads those rows alone, for whoever adds up as they come.
        """
        a = t.attempts.c
        tokens = sa.func.coalesce(a.input_tokens, 0) + sa.func.coalesce(a.output_tokens, 0)
        sums = [sa.func.count(), sa.func.sum(tokens), sa.func.sum(a.usd), sa.func.max(a.id)]
        of = a.study if isinstance(payer, str) else a.run_id
        query = sa.select(*sums).where(of == payer, a.run_id.is_not(None), a.id > after)
        if until is not None:
            query = query.where(a.id <= until)
        with self._database.read() as connection:
            calls, read, usd, last = connection.execute(query).one()
        return calls, int(read or 0), usd or 0.0, last or after

    def asks(self, study: str) -> dict[str, int]:
        """How many rubric questions of a study were asked, and how many of them were re-asks."""
        a = t.attempts.c
        query = sa.select(
            sa.func.count(), sa.func.sum(sa.case((t.calls.c.ask > 0, 1), else_=0))
        ).join(t.calls, t.calls.c.id == a.call_id)
        with self._database.read() as connection:
            asked, again = connection.execute(
                query.where(a.study == study, a.stage == "rubricer")
            ).one()
        return {"asked": asked, "again": again or 0}


def usage_query(by: Sequence[str]) -> sa.Select[Any]:
    """Sums over attempts by some of `USAGE_BY`."""
    a = t.attempts.c
    known = {**a, "model": t.calls.c.model, "day": sa.cast(sa.func.date(a.at), sa.String)}
    sums_by = [known[name].label(name) for name in by]
    sums_by.append(a.run_id.is_(None).label("imported"))
    query = sa.select(
        *sums_by,
        sa.func.count().label("attempts"),
        sa.func.sum(sa.case((a.completed, 1), else_=0)).label("calls"),
        sa.func.sum(a.input_tokens).label("input_tokens"),
        sa.func.sum(a.cached_tokens).label("cached_tokens"),
        sa.func.sum(a.output_tokens).label("output_tokens"),
        sa.func.sum(a.usd).label("usd"),
        sa.func.sum(a.seconds).label("seconds"),
    ).join(t.calls, t.calls.c.id == a.call_id)
    return query.group_by(*sums_by).order_by(*sums_by)
