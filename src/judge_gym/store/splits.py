"""Splits of studies into train, dev and test, and how often each test part was read."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from judge_gym.errors import StoreError
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.study_results import record_correction


@dataclass(frozen=True, slots=True)
class Split:
    """The split of a study's items."""

    seed: int
    shares: Mapping[str, float]
    """The share of clusters in each part."""
    items: Mapping[int, str]
    """The part of each item, by its number."""
    uses: int
    """How many different estimates were read from the test part."""


class Splits:
    """Saves and finds splits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, study: str) -> Split | None:
        """Returns the split of a study; None if it has none."""
        stored = self._database.first(sa.select(t.splits).where(t.splits.c.study == study))
        if stored is None:
            return None
        i, u = t.split_items.c, t.split_uses.c
        items = self._database.pairs(sa.select(i.evidence_id, i.part).where(i.study == study))
        uses = self._database.scalar(sa.select(sa.func.count()).where(u.study == study))
        return Split(stored.seed, stored.shares, items, uses)

    def save(
        self,
        study: str,
        seed: int,
        shares: Mapping[str, float],
        items: Mapping[int, str],
        *,
        replace: bool,
    ) -> None:
        """Saves a split, or adds items to it; with `replace`, instead of the one before."""
        row = {
            "study": study,
            "seed": seed,
            "shares": dict(shares),
            "created": datetime.now(UTC),
        }
        rows = [{"study": study, "evidence_id": id, "part": part} for id, part in items.items()]
        with self._database.begin() as connection:
            if replace:
                for table in (t.splits, t.split_items):  # uses stay: what was seen stays seen
                    connection.execute(table.delete().where(table.c.study == study))
            self._database.insert_new(connection, t.splits, [row])
            self._database.insert_new(connection, t.split_items, rows)
            record_correction(connection, "splits")

    def record_use(self, study: str, key: str) -> int:
        """Counts a use of a study's test part, and returns how many there are with this one.

        The same estimates count once. Whoever reads estimates is never refused: where this session
        cannot write, a new use is counted in what is returned, and not recorded.
        """
        u = t.split_uses.c
        keys = set(self._database.scalars(sa.select(u.key).where(u.study == study)))
        if key not in keys and self._database.may_write:
            row = {"study": study, "key": key, "at": datetime.now(UTC)}
            with suppress(StoreError), self._database.begin() as connection:
                self._database.insert_new(connection, t.split_uses, [row])
        return len(keys | {key})
