"""What experiments cost so far, kept as it grows: a lab of a million calls is added up once."""

import threading
from typing import NamedTuple

import sqlalchemy as sa

from judge_gym.store.database import Database
from judge_gym.store.tables import attempts


class Spent(NamedTuple):
    """Sums over attempts."""

    attempts: int = 0
    failed: int = 0
    """Those that brought no answer."""
    unpriced: int = 0
    """Answers whose price nobody knows."""
    usd: float = 0.0

    def __add__(self, other: object) -> "Spent":
        """The sums of both."""
        assert isinstance(other, Spent)
        return Spent(
            self.attempts + other.attempts,
            self.failed + other.failed,
            self.unpriced + other.unpriced,
            self.usd + other.usd,
        )


class Spending:
    """Sums by study and tag; every look reads only the attempts that are new."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, str], Spent] = {}
        self._last = self._held = 0

    def by_tag(self) -> dict[tuple[str, str], Spent]:
        """What the experiments of each study cost by their tags; imported attempts are not paid."""
        a = attempts.c
        with self._lock, self._database.read() as connection:
            held = sa.select(sa.func.count()).select_from(attempts).where(a.id <= self._last)
            if connection.scalar(held) != self._held:  # some were cleaned up
                self._sums, self._last, self._held = {}, 0, 0
            new = a.id > self._last
            ends = sa.select(sa.func.max(a.id), sa.func.count()).where(new)
            last, count = connection.execute(ends).one()
            if count:
                sums = (
                    sa.func.count(),
                    sa.func.sum(sa.case((a.completed, 0), else_=1)),
                    sa.func.sum(sa.case((sa.and_(a.completed, a.usd.is_(None)), 1), else_=0)),
                    sa.func.coalesce(sa.func.sum(a.usd), 0.0),
                )
                query = sa.select(a.study, a.tag, *sums).where(new, a.run_id.is_not(None))
                for study, tag, *found in connection.execute(query.group_by(a.study, a.tag)):
                    key = (study or "", tag or "")
                    self._sums[key] = self._sums.get(key, Spent()) + Spent(*found)
                self._last, self._held = last, self._held + count
            return dict(self._sums)
