"""Exports calls with every attempt to a file for another lab, a page at a time."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.errors import ConflictError
from judge_gym.store import tables as t
from judge_gym.store.database import HEAD, Database
from judge_gym.store.ledger import CHUNK, COST, bodies_of
from judge_gym.store.ledger_file import (
    AnswerLine,
    AnyLine,
    AttemptLine,
    CallLine,
    CostLine,
    EvidenceLine,
    Header,
    LedgerFile,
    TextLine,
    WindowLine,
    check_of,
)

PAGE = 100
"""Calls in memory at once."""
_temporary = sa.MetaData()
_chosen = sa.Table(
    "exported_calls",
    _temporary,
    sa.Column("id", sa.Integer, primary_key=True),
    prefixes=["TEMPORARY"],
)
_written = sa.Table(
    "exported_texts",
    _temporary,
    sa.Column("hash", sa.String(64), primary_key=True),
    prefixes=["TEMPORARY"],
)


class Exported(NamedTuple):
    """The numbers of exported records."""

    calls: int
    attempts: int
    texts: int
    evidence: int
    """Items that searches found, and items of frozen pools."""


def export_ledger(database: Database, path: Path, tags: Sequence[str] | None = None) -> Exported:
    """Writes the calls that experiments use, or all calls, to a file."""
    texts = 0
    with database.read() as connection, _temporary_tables(connection):
        _choose(connection, tags)
        calls = int(connection.scalar(sa.select(sa.func.count()).select_from(_chosen)) or 0)
        tried = sa.select(sa.func.count()).join(_chosen, _chosen.c.id == t.attempts.c.call_id)
        attempts = int(connection.scalar(tried.select_from(t.attempts)) or 0)
        if not calls:
            raise ConflictError("there are no calls to export yet; run a study first")
        evidence = sum(1 for _ in _evidence(connection, tags))
        with LedgerFile(path).writing() as write:
            write(Header(revision=HEAD, calls=calls, attempts=attempts, evidence=evidence))
            for page in _pages(connection):
                used = [hash for line in page for hash in line.texts]
                texts += _write_texts(connection, used, write)
                for line in page:
                    write(line)
            for item in _evidence(connection, tags):
                texts += _write_texts(connection, [item.text], write)
                write(item)
    return Exported(calls, attempts, texts, evidence)


@contextmanager
def _temporary_tables(connection: sa.Connection) -> Iterator[None]:
    """Creates temporary tables, so that what was chosen and written need not fit into memory."""
    _temporary.create_all(connection, checkfirst=False)
    try:
        yield
    finally:
        _temporary.drop_all(connection, checkfirst=False)


def _choose(connection: sa.Connection, tags: Sequence[str] | None) -> None:
    """Chooses all calls, or those that records of experiments refer to, whichever run paid."""
    if tags is None:
        connection.execute(_chosen.insert().from_select(["id"], sa.select(t.calls.c.id)))
        return
    named = sa.select(t.runs).join(t.tags, t.NAMED_RUNS).where(t.tags.c.tag.in_(tags))
    runs = named.distinct().cte()
    rubrics = t.run_rubrics.join(runs, runs.c.id == t.run_rubrics.c.run_id)
    samples = t.samples.join(runs, runs.c.id == t.samples.c.run_id)
    views = t.views.join(t.pool_items, t.pool_items.c.evidence_id == t.views.c.evidence_id)
    views = views.join(t.experiments, t.experiments.c.pool_id == t.pool_items.c.pool_id)
    views = views.join(runs, runs.c.digest == t.experiments.c.digest)
    used = sa.union(
        sa.select(t.attempts.c.call_id).where(t.attempts.c.tag.in_(tags)),
        sa.select(t.samples.c.call_id).select_from(samples),
        sa.select(t.probes.c.call_id).select_from(
            samples.join(t.probes, t.probes.c.sample_id == t.samples.c.id)
        ),
        sa.select(t.rubrics.c.call_id)
        .select_from(rubrics.join(t.rubrics, t.rubrics.c.id == t.run_rubrics.c.rubric_id))
        .where(t.rubrics.c.call_id.is_not(None)),
        sa.select(t.critiques.c.call_id)
        .select_from(
            rubrics.join(t.critiques, t.critiques.c.rubric_id == t.run_rubrics.c.rubric_id)
        )
        .where(t.critiques.c.maker == runs.c.critic_maker),
        sa.select(t.views.c.call_id).select_from(views).where(t.views.c.maker == runs.c.view_maker),
    ).subquery()
    connection.execute(_chosen.insert().from_select(["id"], sa.select(used.c.call_id)))
    # A rubric refers to its last ask; the asks before it are exported, too.
    last, first = t.calls, t.calls.alias()
    earlier = sa.and_(
        last.c.ask > 0,  # few have one: without this, every call would be compared with every other
        *(first.c[name] == last.c[name] for name in ("model", "endpoint", "series", "draw")),
        sa.cast(first.c.messages, sa.String) == sa.cast(last.c.messages, sa.String),
        first.c.ask < last.c.ask,
        first.c.id.not_in(sa.select(_chosen.c.id)),
    )
    both = _chosen.join(last, _chosen.c.id == last.c.id).join(first, earlier)
    call_ids = sa.select(first.c.id).distinct().select_from(both)
    connection.execute(_chosen.insert().from_select(["id"], call_ids))


def _pages(connection: sa.Connection) -> Iterator[list[CallLine]]:
    """Yields the chosen calls in the order in which they were first made."""
    after = 0
    query = sa.select(t.calls).join(_chosen, _chosen.c.id == t.calls.c.id).order_by(t.calls.c.id)
    while True:
        page = connection.execute(query.where(t.calls.c.id > after).limit(PAGE)).mappings().all()
        if not page:
            return
        after = page[-1]["id"]
        tried = defaultdict(list)
        ids = [row["id"] for row in page]
        mine = sa.select(t.attempts).where(t.attempts.c.call_id.in_(ids)).order_by(t.attempts.c.id)
        for row in connection.execute(mine).mappings():
            tried[row["call_id"]].append(_attempt(row))
        yield [_call(row, tuple(tried[row["id"]])) for row in page]


def _write_texts(
    connection: sa.Connection, used: Sequence[str], write: Callable[[AnyLine], None]
) -> int:
    """Writes the texts that no earlier line used, and returns how many."""
    hashes = list(dict.fromkeys(used))
    count = 0
    for start in range(0, len(hashes), CHUNK):
        some = hashes[start : start + CHUNK]
        written = connection.scalars(sa.select(_written.c.hash).where(_written.c.hash.in_(some)))
        fresh = sorted(set(some) - set(written), key=some.index)
        bodies = bodies_of(connection, fresh)
        for hash in fresh:
            write(TextLine(hash=hash, body=bodies[hash]))
        if fresh:
            connection.execute(_written.insert(), [{"hash": hash} for hash in fresh])
        count += len(fresh)
    return count


def _call(row: sa.RowMapping, attempts: tuple[AttemptLine, ...]) -> CallLine:
    return CallLine(
        key=row["key"],
        model=row["model"],
        endpoint=row["endpoint"],
        messages=tuple((role, tuple(parts)) for role, parts in row["messages"]),
        **row["parameters"],
        output_schema=row["schema"],
        draw=(row["series"], row["draw"], row["ask"]),
        attempts=attempts,
        check=check_of(attempts),
    )


def _attempt(row: sa.RowMapping) -> AttemptLine:
    said = billed = None
    cost = {name: row[name] for name in COST} | {"cached_tokens": row["cached_tokens"] or 0}
    if row["completed"]:
        answer = {"text": row["text"], "finish": row["finish"], "model": row["reported_model"]}
        said = AnswerLine(**answer, **cost)
    elif row["input_tokens"] is not None:
        billed = CostLine(**cost)
    same = {name: row[name] for name in ("study", "tag", "stage", "at", "seconds", "error")}
    return AttemptLine(**same, said=said, billed=billed)


def _evidence(connection: sa.Connection, tags: Sequence[str] | None) -> Iterator[EvidenceLine]:
    """Yields the items of searched windows and frozen pools, of experiments or of the lab.

    Files that a study names can be copied; what a search found exists only in the lab.
    """
    w, i, n, p = t.windows.c, t.window_items.c, t.pool_names.c, t.pool_items.c
    item: list[Any] = [t.evidence, w.country, w.start, w.end, w.search]
    none = sa.null().label("pool")
    items = (
        sa.select(*item, i.truth, none)
        .join(t.window_items, i.evidence_id == t.evidence.c.id)
        .join(t.windows, w.id == i.window_id)
        .where(w.search != "", i.dropped.is_(None))
        .order_by(i.id)
    )
    frozen = (
        sa.select(*item, p.truth, n.name.label("pool"))
        .join(t.pool_items, p.evidence_id == t.evidence.c.id)
        .join(t.pools, t.pools.c.id == p.pool_id)
        .join(t.pool_names, n.pool_id == t.pools.c.id)
        .outerjoin(t.windows, w.id == t.pools.c.window_id)
        .order_by(n.name, p.position)
    )
    if tags is not None:
        pools = sa.select(t.tags.c.pool_id).where(t.tags.c.tag.in_(tags))
        windows = sa.select(t.pools.c.window_id).where(t.pools.c.id.in_(pools))
        items, frozen = items.where(w.id.in_(windows)), frozen.where(n.pool_id.in_(pools))
    for query in (items, frozen):
        for row in connection.execute(query).mappings():
            yield _evidence_line(row)


def _evidence_line(row: sa.RowMapping) -> EvidenceLine:
    window_fields = {name: row[name] for name in ("country", "start", "end", "search")}
    columns = EvidenceLine.model_fields.keys() - {"line", "window"}
    window = WindowLine(**window_fields) if row["country"] is not None else None
    return EvidenceLine(window=window, **{name: row[name] for name in columns})
