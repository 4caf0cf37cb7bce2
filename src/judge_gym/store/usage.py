"""What was paid: sums over the attempts in the ledger, and running totals of them."""

import threading
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.database import Database

USAGE_BY = ("study", "tag", "stage", "model", "day")
KEY = (*USAGE_BY, "imported")
Key = tuple[Any, ...]


class Usage:
    """Adds up what attempts took."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(
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


class UsageTotals:
    """Sums by study, tag, stage, model and day; every look reads only the attempts that are new."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._rows: dict[Key, dict[str, Any]] = {}
        self._last = self._held = 0

    def rows(self) -> list[dict[str, Any]]:
        """The rows of `Queries.usage` as finely as it adds up, and how many have no price."""
        a = t.attempts.c
        unpriced = sa.case((sa.and_(a.completed, a.usd.is_(None)), 1), else_=0)
        with self._lock, self._database.read() as connection:
            held = sa.select(sa.func.count()).select_from(t.attempts).where(a.id <= self._last)
            if connection.scalar(held) != self._held:  # some were cleaned up
                self._rows, self._last, self._held = {}, 0, 0
            ends = sa.select(sa.func.max(a.id), sa.func.count()).where(a.id > self._last)
            last, count = connection.execute(ends).one()
            if count:
                query = usage_query(USAGE_BY).add_columns(sa.func.sum(unpriced).label("unpriced"))
                new = query.where(a.id > self._last, a.id <= last)
                for row in connection.execute(new).mappings():
                    key = tuple(row[name] for name in KEY)
                    before = self._rows.get(key)
                    self._rows[key] = added([before, row]) if before else dict(row)
                self._last, self._held = last, self._held + count
            return [dict(row) for row in self._rows.values()]


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


def added(rows: Sequence[Any]) -> dict[str, Any]:
    """Rows as one: sums of what is known, None where nothing is; names are those of the first."""
    found = dict(rows[0])
    for row in rows[1:]:
        for name, value in row.items():
            if name not in KEY and value is not None:
                found[name] = value if found[name] is None else found[name] + value
    return found
