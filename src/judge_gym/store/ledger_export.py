"""Export: calls leave the ledger with every attempt, a page at a time, for another lab."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from judge_gym.errors import ConflictError
from judge_gym.store import tables as t
from judge_gym.store.database import HEAD, Database
from judge_gym.store.ledger import CHUNK, bodies_of
from judge_gym.store.ledger_evidence import evidence_lines
from judge_gym.store.ledger_file import (
    AnyLine,
    Attempt,
    Billed,
    CallLine,
    Header,
    LedgerFile,
    Said,
    TextLine,
    check_of,
    utc,
)

PAGE = 100
"""Calls that are in memory together."""
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
    """How much went into a file."""

    calls: int
    attempts: int
    texts: int
    evidence: int
    """Items that searches found, or that were frozen under a name."""


def export_ledger(database: Database, path: Path, tags: Sequence[str] | None = None) -> Exported:
    """Write the calls that experiments rest on, or all of them, to a file."""
    texts = 0
    with database.read() as connection, _temporary_tables(connection):
        _choose(connection, tags)
        calls = int(connection.scalar(sa.select(sa.func.count()).select_from(_chosen)) or 0)
        tried = sa.select(sa.func.count()).join(_chosen, _chosen.c.id == t.attempts.c.call_id)
        attempts = int(connection.scalar(tried.select_from(t.attempts)) or 0)
        if not calls:
            raise ConflictError("there are no calls to export yet; run a study first")
        evidence = sum(1 for _ in evidence_lines(connection, tags))
        with LedgerFile(path).writing() as write:
            write(Header(revision=HEAD, calls=calls, attempts=attempts, evidence=evidence))
            for page in _pages(connection):
                used = [hash for line in page for hash in line.texts]
                texts += _write_texts(connection, used, write)
                for line in page:
                    write(line)
            for item in evidence_lines(connection, tags):
                texts += _write_texts(connection, [item.text], write)
                write(item)
    return Exported(calls, attempts, texts, evidence)


@contextmanager
def _temporary_tables(connection: sa.Connection) -> Iterator[None]:
    """Tables of this connection alone: what was chosen and written need not fit into memory."""
    _temporary.create_all(connection, checkfirst=False)
    try:
        yield
    finally:
        _temporary.drop_all(connection, checkfirst=False)


def _choose(connection: sa.Connection, tags: Sequence[str] | None) -> None:
    """Choose all calls, or those that the records of experiments come from, whoever paid."""
    if tags is None:
        connection.execute(_chosen.insert().from_select(["id"], sa.select(t.calls.c.id)))
        return
    digests = sa.select(t.tags.c.digest).where(t.tags.c.tag.in_(tags))
    runs = sa.select(t.runs).where(t.runs.c.digest.in_(digests)).cte()
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
    # A rubric knows the ask that brought it; those before it are part of the way there.
    last, first = t.calls, t.calls.alias()
    earlier = sa.and_(
        last.c.ask > 0,  # few are: without this, every call would be held against every other
        *(first.c[name] == last.c[name] for name in ("model", "endpoint", "series", "draw")),
        sa.cast(first.c.messages, sa.String) == sa.cast(last.c.messages, sa.String),
        first.c.ask < last.c.ask,
        first.c.id.not_in(sa.select(_chosen.c.id)),
    )
    both = _chosen.join(last, _chosen.c.id == last.c.id).join(first, earlier)
    asked = sa.select(first.c.id).distinct().select_from(both)
    connection.execute(_chosen.insert().from_select(["id"], asked))


def _pages(connection: sa.Connection) -> Iterator[list[CallLine]]:
    """The chosen calls in the order in which they were first asked."""
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
    """Write the texts that no line before used; how many."""
    hashes = list(dict.fromkeys(used))
    count = 0
    for start in range(0, len(hashes), CHUNK):
        some = hashes[start : start + CHUNK]
        done = connection.scalars(sa.select(_written.c.hash).where(_written.c.hash.in_(some)))
        fresh = sorted(set(some) - set(done), key=some.index)
        bodies = bodies_of(connection, fresh)
        for hash in fresh:
            write(TextLine(hash=hash, body=bodies[hash]))
        if fresh:
            connection.execute(_written.insert(), [{"hash": hash} for hash in fresh])
        count += len(fresh)
    return count


def _call(row: sa.RowMapping, attempts: tuple[Attempt, ...]) -> CallLine:
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


def _attempt(row: sa.RowMapping) -> Attempt:
    said = billed = None
    took = {name: row[name] for name in ("input_tokens", "output_tokens", "usd")}
    took["cached_tokens"] = row["cached_tokens"] or 0
    if row["completed"]:
        said = Said(text=row["text"], finish=row["finish"], model=row["reported_model"], **took)
    elif row["input_tokens"] is not None:
        billed = Billed(**took)
    kept = {name: row[name] for name in ("study", "tag", "stage", "seconds", "error")}
    return Attempt(**kept, at=utc(row["at"]), said=said, billed=billed)
