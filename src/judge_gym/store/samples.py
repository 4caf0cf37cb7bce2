"""Samples as tidy rows, filtered and page by page, forwards and backwards.

A page is read from one segment of an index after the other. Where no index supports a filter, only
`SCAN` samples are read for a page, which may then be short; its cursor continues after them.
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
# The columns of the samples' unique index, in its order.
UNIQUE = ("run_id", "rubric_id", "evidence_id", "replicate", "flipped", "is_swap")
PARAMETERS = 500
"""The calls that one query names."""
SCAN = 10_000
"""The most samples that are read for a page, where no index supports the filter."""
DISPUTED = 0.5
"""The share of pairs of replicates without a common stage that makes an item disputed."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter of an experiment's samples; None selects all."""

    run: int | None = None
    rubric: int | None = None
    evidence: int | None = None
    status: str | None = None
    stage: int | None = None
    """Samples that name this stage, alone or with others."""
    swap: bool | None = None
    """Samples scored with a rival's rubric, or with the judge's own."""
    disputed: bool = False
    """Samples of items where at least half of the pairs of replicates share no stage."""


class Span(NamedTuple):
    """A page of samples, and the cursors of the pages before and after it."""

    rows: list[dict[str, Any]]
    before: int | None
    """The cursor of the previous page; None on the first."""
    after: int | None
    """The cursor of the next page; None on the last."""
    cut: bool
    """Whether the page is short because the scan limit was reached."""


class _Scan(NamedTuple):
    """How samples are read from an index."""

    segments: Sequence[tuple[Any, ...]]
    by: tuple[str, ...]
    """The columns whose values a segment fixes."""
    key: tuple[str, ...]
    """The columns that order the rows of a segment."""


class Samples:
    """Reads samples as tidy rows: all of experiments, one, or a page of a selection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, tags: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yields one tidy row per sample of the active runs, without the knobs."""
        query = _tidy_rows().execution_options(yield_per=1000)  # the server holds the others
        with self._database.read() as connection:
            for tag in tags:
                for row in connection.execute(query, {"tag": tag}).mappings():
                    truth = None if row["truth"] is None else json.loads(row["truth"])
                    yield {**row, "truth": truth}

    def table(self, tags: Sequence[str]) -> "pa.Table":
        """Returns the tidy rows as an Arrow table, truths as JSON; it suits a million rows."""
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

    def text_lengths(self, tags: Sequence[str]) -> list[dict[str, Any]]:
        """Returns the number of characters that judges read of each item of active runs.

        It is that of the view, if the design has one, and None for a pair, whose text has two
        responses; of recorded items, the recorded one. Columns: run, evidence, length. Texts are
        measured once, not once a sample.
        """
        text = sa.func.coalesce(t.views.c.text, t.evidence.c.text)
        recorded = t.evidence.c.metadata["recorded"]
        query = (
            sa.select(
                t.runs.c.id.label("run"),
                t.evidence.c.id.label("evidence"),
                sa.case(
                    (recorded["length"].as_float().is_not(None), recorded["length"].as_float()),
                    (sa.or_(t.evidence.c.pair, recorded["text"].as_boolean().is_(False)), None),
                    else_=sa.func.length(t.texts.c.body),
                ).label("length"),
            )
            .select_from(t.tags)
            .join(t.runs, sa.and_(t.NAMED_RUNS, t.runs.c.superseded.is_(None)))
            .join(t.pool_items, t.pool_items.c.pool_id == t.tags.c.pool_id)
            .join(t.evidence, t.evidence.c.id == t.pool_items.c.evidence_id)
            .outerjoin(
                t.views,
                sa.and_(
                    t.views.c.maker == t.runs.c.view_maker,
                    t.views.c.evidence_id == t.evidence.c.id,
                ),
            )
            .join(t.texts, t.texts.c.hash == text)
        )
        return [
            dict(row)
            for start in range(0, len(tags), PARAMETERS)
            for row in self._database.rows(
                query.where(t.tags.c.tag.in_(tags[start : start + PARAMETERS])).distinct()
            )
        ]

    def preparation(self, tags: Sequence[str]) -> list[dict[str, Any]]:
        """Returns the calls for views and rubrics of active runs: their price and seconds.

        Columns: tag, evidence (of a view, else None), rubric (else None), usd, seconds.
        """
        runs = sa.and_(t.NAMED_RUNS, t.runs.c.superseded.is_(None))
        views = (
            sa.select(
                t.tags.c.tag,
                t.views.c.evidence_id.label("evidence"),
                sa.null().label("rubric"),
                t.attempts.c.usd,
                t.attempts.c.seconds,
            )
            .join(t.runs, runs)
            .join(t.pool_items, t.pool_items.c.pool_id == t.tags.c.pool_id)
            .join(
                t.views,
                sa.and_(
                    t.views.c.maker == t.runs.c.view_maker,
                    t.views.c.evidence_id == t.pool_items.c.evidence_id,
                ),
            )
            .join(t.attempts, t.attempts.c.id == latest_attempt(t.views.c.call_id, completed=False))
        )
        rubrics = (
            sa.select(
                t.tags.c.tag,
                sa.null().label("evidence"),
                t.rubrics.c.id.label("rubric"),
                t.attempts.c.usd,
                t.attempts.c.seconds,
            )
            .join(t.runs, runs)
            .join(t.run_rubrics, t.run_rubrics.c.run_id == t.runs.c.id)
            .join(t.rubrics, t.rubrics.c.id == t.run_rubrics.c.rubric_id)
            .join(
                t.attempts, t.attempts.c.id == latest_attempt(t.rubrics.c.call_id, completed=False)
            )
            .where(~t.run_rubrics.c.is_swap)
        )
        return [
            row
            for query in (views, rubrics)
            for start in range(0, len(tags), PARAMETERS)
            for row in self._database.rows(
                query.where(t.tags.c.tag.in_(tags[start : start + PARAMETERS])).distinct()
            )
        ]

    def find(self, id: int, tag: str | None = None) -> dict[str, Any]:
        """Returns a sample as a tidy row, under this tag or the first of its experiment."""
        named = (
            sa.select(t.tags.c.tag)
            .join(t.runs, t.NAMED_RUNS)
            .join(t.samples, t.samples.c.run_id == t.runs.c.id)
            .where(t.samples.c.id == id, t.runs.c.superseded.is_(None))
            .order_by(t.tags.c.tag)
        )
        with self._database.read() as connection:
            tags = connection.scalars(named).all()
            if not tags:
                raise NotFoundError(f"there is no sample {id}, or its run was superseded")
            query = _tidy_rows().where(t.samples.c.id == id)
            shown_tag = tag if tag in tags else tags[0]
            return dict(connection.execute(query, {"tag": shown_tag}).mappings().one())

    def browse(
        self,
        tag: str,
        selection: Selection,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int,
    ) -> Span:
        """Returns a page of the samples of an experiment's active runs, after or before one."""
        back = before is not None
        cursor = before if back else after
        with self._database.read() as connection:
            scan = _choose_scan(connection, tag, selection)
            last = _cursor_row(connection, cursor)
            if cursor is not None and last is None:
                return Span([], None, None, False)
            ids, stopped = _read_ids(connection, scan, selection, last, back, limit)
            more = len(ids) > limit
            ids = ids[:limit][::-1] if back else ids[:limit]
            query = _tidy_rows().where(t.samples.c.id.in_(ids))
            rows = connection.execute(query, {"tag": tag}).mappings().all() if ids else []
        by_id = {row["sample"]: dict(row) for row in rows}
        onward = (ids[0] if back else ids[-1]) if more else stopped
        backward = None if cursor is None else (ids or [cursor])[-1 if back else 0]
        cursors = (onward, backward) if back else (backward, onward)
        return Span([by_id[id] for id in ids], *cursors, stopped is not None and not more)

    def answer_texts(self, call_ids: Sequence[int]) -> dict[int, str]:
        """Returns the texts of completed answers, by call."""
        a, texts = t.attempts.c, dict[int, str]()
        newest = sa.select(a.call_id, t.texts.c.body).join(t.texts, t.texts.c.hash == a.text)
        newest = newest.where(a.completed).order_by(a.id)
        with self._database.read() as connection:
            for start in range(0, len(call_ids), PARAMETERS):
                part = a.call_id.in_(call_ids[start : start + PARAMETERS])
                texts.update({id: text for id, text in connection.execute(newest.where(part))})
        return texts

    def answers(
        self,
        tags: Sequence[str],
        status: str | None = None,
        *,
        after: int | None = None,
        limit: int = 100,
    ) -> list[dict[str, Any]]:
        """Returns what judges answered in active runs, word for word, by sample, after one."""
        s, a = t.samples.c, t.attempts.c
        named = t.tags.c.tag.in_(tags)
        of_tags = sa.select(t.runs.c.id).join(t.tags, t.NAMED_RUNS).where(named)
        name = sa.select(sa.func.min(t.tags.c.tag)).where(t.NAMED_RUNS, named)
        query = (
            sa.select(
                s.id.label("sample"),
                name.correlate(t.runs).scalar_subquery().label("tag"),
                s.evidence_id.label("evidence"),
                t.evidence.c.title.label("evidence_title"),
                s.replicate,
                s.status,
                s.stages,
                s.display,
                s.call_id,
                a.reported_model,
                a.finish,
                t.texts.c.body.label("text"),
                a.error,
            )
            .join(t.runs, t.runs.c.id == s.run_id)
            .join(t.evidence, t.evidence.c.id == s.evidence_id)
            .join(t.attempts, a.id == latest_attempt(s.call_id, completed=False))
            .outerjoin(t.texts, t.texts.c.hash == a.text)
            .where(s.run_id.in_(of_tags), t.runs.c.superseded.is_(None))
            .order_by(s.id)
            .limit(limit)
        )
        if status is not None:
            query = query.where(s.status == status)
        if after is not None:
            query = query.where(s.id > after)
        return self._database.rows(query)


def _tidy_rows() -> sa.Select[Any]:
    s = t.samples.c
    return (
        sa.select(
            t.tags.c.tag,
            t.tags.c.study,
            t.tags.c.protocol,
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
            t.evidence.c.cluster,
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
            sa.case(
                # Others may not have recorded how long a call took.
                (sa.and_(t.attempts.c.run_id.is_(None), t.attempts.c.seconds == 0), None),
                else_=t.attempts.c.seconds,
            ).label("seconds"),
            sa.func.substr(t.attempts.c.text, 1, 16).label("answer"),  # equal for equal texts
        )
        .join(t.runs, t.runs.c.id == s.run_id)
        .join(t.experiments, t.experiments.c.digest == t.runs.c.digest)
        .join(t.tags, t.NAMED_RUNS)
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
        .order_by(  # not by rubric id, which depends on the order of answers
            s.run_id,
            s.is_swap,
            t.rubrics.c.author,
            t.rubrics.c.draw,
            s.evidence_id,
            s.replicate,
            s.flipped,
        )
    )


def _choose_scan(connection: sa.Connection, tag: str, selection: Selection) -> _Scan:
    """Chooses the index by status where that is the filter, else the unique index."""
    run_rubrics = (
        sa.select(t.runs.c.id, t.run_rubrics.c.rubric_id, t.run_rubrics.c.is_swap)
        .join(t.tags, t.NAMED_RUNS)
        .join(t.run_rubrics, t.run_rubrics.c.run_id == t.runs.c.id)
        .where(t.tags.c.tag == tag, t.runs.c.superseded.is_(None))
    )
    rows = [
        (run, rubric, bool(swap))
        for run, rubric, swap in connection.execute(run_rubrics)
        if selection.run in (None, run)
        and selection.rubric in (None, rubric)
        and selection.swap in (None, bool(swap))
    ]
    item = selection.evidence
    if selection.status and item is None and selection.rubric is None and not selection.disputed:
        by_status = sorted({(run, swap, selection.status) for run, _, swap in rows})
        return _Scan(by_status, ("run_id", "is_swap", "status"), ("id",))
    if item is not None:
        by_item = sorted({(run, rubric, item) for run, rubric, _ in rows})
        return _Scan(by_item, UNIQUE[:3], UNIQUE[3:])
    return _Scan(sorted({(run, rubric) for run, rubric, _ in rows}), UNIQUE[:2], UNIQUE[2:])


def _cursor_row(connection: sa.Connection, id: int | None) -> sa.RowMapping | None:
    query = sa.select(t.samples).where(t.samples.c.id == id)
    return connection.execute(query).mappings().first() if id is not None else None


def _read_ids(
    connection: sa.Connection,
    scan: _Scan,
    selection: Selection,
    last: sa.RowMapping | None,
    back: bool,
    limit: int,
) -> tuple[list[int], int | None]:
    """Returns the ids of the next samples, one more than the limit if there are more.

    With them, the last sample that was read if the scan limit was reached, else None.
    """
    segments = scan.segments[::-1] if back else scan.segments
    start = None if last is None else tuple(last[name] for name in scan.by)
    matches, ids, read = _filter(scan, selection), list[int](), 0
    filtered = matches is not None or selection.disputed
    for segment in segments:
        if start is not None and (segment > start if back else segment < start):
            continue
        cursor = last if segment == start else None
        size = SCAN if filtered else limit + 1 - len(ids)
        query = _query(scan, segment, back)
        following = _after(query, scan, cursor, back, items=selection.disputed)
        rows = connection.execute(following.limit(size)).all()
        read += len(rows)
        end = rows[-1].id if rows else None
        if selection.disputed:
            cells = _cells(rows, cut=len(rows) == size)
            end = cells[-1][-1].id if cells else None
            if cursor is not None:  # the rest of the cursor's item, which is judged as a whole
                same_item = t.samples.c.evidence_id == cursor["evidence_id"]
                cells.insert(0, list(connection.execute(query.where(same_item)).all()))
            rows = [row for cell in cells if _is_disputed(cell) for row in cell]
            rows = [row for row in rows if cursor is None or _is_after(row, cursor, back)]
        ids += [row.id for row in rows if matches is None or matches(row)]
        if len(ids) > limit:
            break
        if filtered and read >= SCAN:
            return ids, end
    return ids, None


def _query(scan: _Scan, segment: Sequence[Any], back: bool) -> sa.Select[Any]:
    """Returns the query of a segment's samples, in order."""
    s = t.samples.c
    query = sa.select(s.id, s.evidence_id, s.replicate, s.flipped, s.status, s.stages).where(
        *(s[name] == value for name, value in zip(scan.by, segment, strict=True))
    )
    key = [s[name] for name in scan.key]
    return query.order_by(*(column.desc() if back else column for column in key))


def _after(
    query: sa.Select[Any], scan: _Scan, cursor: sa.RowMapping | None, back: bool, *, items: bool
) -> sa.Select[Any]:
    """Narrows a query to samples after the cursor; with `items`, to items after its item."""
    if cursor is None:
        return query
    key = ("evidence_id",) if items else scan.key
    ours = sa.tuple_(*(t.samples.c[name] for name in key))
    theirs = sa.tuple_(*(cursor[name] for name in key))
    return query.where(ours < theirs if back else ours > theirs)


def _filter(scan: _Scan, selection: Selection) -> Callable[[Any], bool] | None:
    """Returns the part of a selection that the index does not support; None if there is none."""
    status = selection.status if "status" not in scan.by else None
    stage = None if selection.stage is None else str(selection.stage)
    if status is None and stage is None:
        return None

    def matches(row: Any) -> bool:
        return (status is None or row.status == status) and (
            stage is None or stage in row.stages.split()
        )

    return matches


def _cells(rows: Sequence[Any], *, cut: bool) -> list[list[Any]]:
    """Groups rows by item; the last item is left to the next page if it may be incomplete."""
    cells = [list(cell) for _, cell in groupby(rows, key=lambda row: row.evidence_id)]
    return cells[:-1] if cut and len(cells) > 1 else cells


def _is_after(row: Any, cursor: sa.RowMapping, back: bool) -> bool:
    ours = (row.evidence_id, row.replicate, row.flipped)
    theirs = (cursor["evidence_id"], cursor["replicate"], cursor["flipped"])
    return ours < theirs if back else ours > theirs


def _is_disputed(cell: Sequence[Any]) -> bool:
    """Returns whether at least half of the pairs of scored replicates share no stage."""
    counts = Counter(row.stages for row in cell if row.status == "scored")
    stage_sets = {stages: frozenset(stages.split()) for stages in counts}
    n = counts.total()
    apart = sum(
        counts[stages_a] * counts[other]
        for stages_a, other in combinations(counts, 2)
        if stage_sets[stages_a].isdisjoint(stage_sets[other])
    )
    return n > 1 and apart / (n * (n - 1) / 2) >= DISPUTED
