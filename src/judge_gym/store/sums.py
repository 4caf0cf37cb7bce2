"""What was paid, in sums that are kept as they grow: a lab of a million calls is added up once."""

import threading
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.queries import USAGE_BY, usage_query

KEY = (*USAGE_BY, "imported")
Key = tuple[Any, ...]


class Sums:
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


def added(rows: Sequence[Any]) -> dict[str, Any]:
    """Rows as one: sums of what is known, None where nothing is; names are those of the first."""
    found = dict(rows[0])
    for row in rows[1:]:
        for name, value in row.items():
            if name not in KEY and value is not None:
                found[name] = value if found[name] is None else found[name] + value
    return found
