"""Samples as tidy rows, filtered and page by page, forwards and backwards.

Every page is read off one stretch of an index after the other. Where no index knows an answer, a
page is what was found among so many samples, and its cursor says where to continue.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from judge_gym.errors import NotFoundError
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import latest_attempt

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 50_000
"""Samples that are fetched at once."""
# The columns of the samples' unique index, in its order: a page is one stretch of it.
PLACE = ("run_id", "rubric_id", "evidence_id", "replicate", "flipped", "is_swap")
SCAN = 10_000
"""Samples that one page looks at, at most, where no index knows the answer."""
STRONG = 0.5
"""The share of pairs of replicates without a common stage from which a cell counts as torn."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which samples of an experiment are meant; None is all."""

    run: int | None = None
    rubric: int | None = None
    evidence: int | None = None
    status: str | None = None
    stage: int | None = None
    """Those that name it, alone or with others."""
    swap: bool | None = None
    """Those under a rival's rubric, or those that are not."""
    torn: bool = False
    """Those of an item on which half of the pairs of replicates, or more, share no stage."""


class Span(NamedTuple):
    """Some samples, and where those before and after them begin."""

    rows: list[dict[str, Any]]
    before: int | None
    """What to ask the page before with; None on the first."""
    after: int | None
    """The same of the next page."""
    cut: bool
    """Whether the search ended before the page was full, or the samples at their end."""


class _Way(NamedTuple):
    """How an index leads through samples."""

    segments: Sequence[tuple[Any, ...]]
    by: tuple[str, ...]
    """The columns that tell segments apart."""
    key: tuple[str, ...]
    """The order within one."""


class Samples:
    """Reads samples as tidy rows: all of experiments, one, or a page of a selection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, tags: Sequence[str]) -> Iterator[dict[str, Any]]:
        """One tidy row per sample of the active runs, without the knobs."""
        query = _tidy_rows().execution_options(yield_per=1000)  # a server keeps the rest
        with self._database.read() as connection:
            for tag in tags:
                for row in connection.execute(query, {"tag": tag}).mappings():
                    truth = None if row["truth"] is None else json.loads(row["truth"])
                    yield {**row, "truth": truth}

    def table(self, tags: Sequence[str]) -> "pa.Table":
        """The same as typed columns, truths as JSON: a million dictionaries are too many."""
        import pyarrow as pa

        query = _tidy_rows()
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

    def find(self, id: int, tag: str | None = None) -> dict[str, Any]:
        """A sample as a tidy row, under a tag of its experiment or the first of them."""
        named = (
            sa.select(t.tags.c.tag)
            .join(t.runs, t.runs.c.digest == t.tags.c.digest)
            .join(t.samples, t.samples.c.run_id == t.runs.c.id)
            .where(t.samples.c.id == id, t.runs.c.superseded.is_(None))
            .order_by(t.tags.c.tag)
        )
        with self._database.read() as connection:
            tags = connection.scalars(named).all()
            if not tags:
                raise NotFoundError(f"there is no sample {id}, or its run gave way to a new one")
            one = _tidy_rows().where(t.samples.c.id == id)
            under = tag if tag in tags else tags[0]
            return dict(connection.execute(one, {"tag": under}).mappings().one())

    def browse(
        self,
        tag: str,
        which: Selection,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int,
    ) -> Span:
        """Samples of an experiment's active runs; the same filter has one order.

        Args:
            tag: the experiment.
            which: the samples that are meant.
            after: the last sample of the page before.
            before: the first sample of the page behind; only one of the two.
            limit: how many at most.
        """
        back = before is not None
        cursor = before if back else after
        with self._database.read() as connection:
            way = _way(connection, tag, which)
            last = _place(connection, cursor)
            if cursor is not None and last is None:
                return Span([], None, None, False)
            ids, stopped = _walk(connection, way, which, last, back, limit)
            more = len(ids) > limit
            ids = ids[:limit][::-1] if back else ids[:limit]
            wanted = _tidy_rows().where(t.samples.c.id.in_(ids))
            rows = connection.execute(wanted, {"tag": tag}).mappings().all() if ids else []
        found = {row["sample"]: dict(row) for row in rows}
        shown = [found[id] for id in ids]
        onward = (ids[0] if back else ids[-1]) if more else stopped
        returning = None if cursor is None else (ids or [cursor])[-1 if back else 0]
        ends = (onward, returning) if back else (returning, onward)
        return Span(shown, *ends, stopped is not None and not more)


def _tidy_rows() -> sa.Select[Any]:
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


def _way(connection: sa.Connection, tag: str, which: Selection) -> _Way:
    """By the index of statuses where that is what is asked, else by the samples' own places."""
    mine = (
        sa.select(t.runs.c.id, t.run_rubrics.c.rubric_id, t.run_rubrics.c.is_swap)
        .join(t.tags, t.tags.c.digest == t.runs.c.digest)
        .join(t.run_rubrics, t.run_rubrics.c.run_id == t.runs.c.id)
        .where(t.tags.c.tag == tag, t.runs.c.superseded.is_(None))
    )
    rows = [
        (run, rubric, bool(swap))
        for run, rubric, swap in connection.execute(mine)
        if which.run in (None, run)
        and which.rubric in (None, rubric)
        and which.swap in (None, bool(swap))
    ]
    if which.status and which.evidence is None and which.rubric is None and not which.torn:
        by_status = sorted({(run, swap, which.status) for run, _, swap in rows})
        return _Way(by_status, ("run_id", "is_swap", "status"), ("id",))
    if which.evidence is not None:
        by_item = sorted({(run, rubric, which.evidence) for run, rubric, _ in rows})
        return _Way(by_item, PLACE[:3], PLACE[3:])
    return _Way(sorted({(run, rubric) for run, rubric, _ in rows}), PLACE[:2], PLACE[2:])


def _place(connection: sa.Connection, id: int | None) -> sa.RowMapping | None:
    query = sa.select(t.samples).where(t.samples.c.id == id)
    return connection.execute(query).mappings().first() if id is not None else None


def _walk(
    connection: sa.Connection,
    way: _Way,
    which: Selection,
    last: sa.RowMapping | None,
    back: bool,
    limit: int,
) -> tuple[list[int], int | None]:
    """The samples that come next, one more than the limit where there are more.

    With them, where the search stopped before its end; None where it did not.
    """
    segments = way.segments[::-1] if back else way.segments
    begin = None if last is None else tuple(last[name] for name in way.by)
    keeps, found, looked = _filter(way, which), list[int](), 0
    scans = keeps is not None or which.torn
    for segment in segments:
        if begin is not None and (segment > begin if back else segment < begin):
            continue
        at = last if segment == begin else None
        take = SCAN if scans else limit + 1 - len(found)
        query = _query(way, segment, back)
        rows = connection.execute(_behind(query, way, at, back, which.torn).limit(take)).all()
        looked += len(rows)
        end = rows[-1].id if rows else None
        if which.torn:
            cells = _cells(rows, cut=len(rows) == take)
            end = cells[-1][-1].id if cells else None
            if at is not None:  # the rest of its item, which is judged as a whole
                mine = t.samples.c.evidence_id == at["evidence_id"]
                cells.insert(0, list(connection.execute(query.where(mine)).all()))
            rows = [row for cell in cells if _conflicts(cell) for row in cell]
            rows = [row for row in rows if at is None or _is_behind(row, at, back)]
        found += [row.id for row in rows if keeps is None or keeps(row)]
        if len(found) > limit:
            break
        if scans and looked >= SCAN:
            return found, end
    return found, None


def _query(way: _Way, segment: Sequence[Any], back: bool) -> sa.Select[Any]:
    """The samples of a segment in their order."""
    s = t.samples.c
    query = sa.select(s.id, s.evidence_id, s.replicate, s.flipped, s.status, s.stages).where(
        *(s[name] == value for name, value in zip(way.by, segment, strict=True))
    )
    key = [s[name] for name in way.key]
    return query.order_by(*(column.desc() if back else column for column in key))


def _behind(
    query: sa.Select[Any], way: _Way, at: sa.RowMapping | None, back: bool, items: bool
) -> sa.Select[Any]:
    """Those behind one; with `items`, those of the items behind its own."""
    if at is None:
        return query
    key = ("evidence_id",) if items else way.key
    ours = sa.tuple_(*(t.samples.c[name] for name in key))
    theirs = sa.tuple_(*(at[name] for name in key))
    return query.where(ours < theirs if back else ours > theirs)


def _filter(way: _Way, which: Selection) -> Callable[[Any], bool] | None:
    """What no index of the way knows; None where it knows all."""
    status = which.status if "status" not in way.by else None
    if status is None and which.stage is None:
        return None
    stage = None if which.stage is None else str(which.stage)

    def keeps(row: Any) -> bool:
        return (status is None or row.status == status) and (
            stage is None or stage in row.stages.split()
        )

    return keeps


def _cells(rows: Sequence[Any], *, cut: bool) -> list[list[Any]]:
    """The rows item by item; the last item is left for the next page where it was cut off."""
    cells = [list(cell) for _, cell in groupby(rows, key=lambda row: row.evidence_id)]
    return cells[:-1] if cut and len(cells) > 1 else cells


def _is_behind(row: Any, at: sa.RowMapping, back: bool) -> bool:
    ours = (row.evidence_id, row.replicate, row.flipped)
    theirs = (at["evidence_id"], at["replicate"], at["flipped"])
    return ours < theirs if back else ours > theirs


def _conflicts(cell: Sequence[Any]) -> bool:
    """Whether half of the pairs of scored replicates, or more, share no stage."""
    counts = Counter(row.stages for row in cell if row.status == "scored")
    chosen = {stages: frozenset(stages.split()) for stages in counts}
    n = counts.total()
    apart = sum(
        counts[one] * counts[other]
        for one, other in combinations(counts, 2)
        if chosen[one].isdisjoint(chosen[other])
    )
    return n > 1 and apart / (n * (n - 1) / 2) >= STRONG
