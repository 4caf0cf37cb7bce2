"""Calls in flight: which process makes which call, and how many each process reports."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from judge_gym.store.database import Database
from judge_gym.store.tables import claims, in_flight

FRESH = timedelta(seconds=10)
"""The age up to which a report is valid; a process that works renews it more often."""


class Claims:
    """The calls that one process claims, so that no other on the same server makes them, too.

    Args:
        database: on a server.
        holder: the unique name of this process.
    """

    def __init__(self, database: Database, holder: str) -> None:
        self._database = database
        self._holder = holder
        self._due: set[str] = set()
        """The claims that are to be released, and could not be while the database was away."""

    def take(self, keys: Collection[str]) -> set[str]:
        """Claims calls, and returns the keys of those that no other process has claimed."""
        self._due.difference_update(keys)
        # In order: two processes that claim the same calls at once would otherwise deadlock.
        rows = [{"key": key, "holder": self._holder} for key in sorted(keys)]
        insert = self._database.insert(claims).values(rows).on_conflict_do_nothing()
        # Also what it had claimed when an outage began.
        mine = sa.select(claims.c.key).where(self._mine, claims.c.key.in_(keys))
        with self._database.begin() as connection:
            # One transaction: a claim that was ignored here was committed by another process
            # before.
            connection.execute(insert)
            return set(connection.scalars(mine))

    def release(self, keys: Collection[str] = ()) -> None:
        """Releases claims of this process, and those that an outage kept from being released."""
        self._due.update(keys)
        if due := list(self._due):
            self._delete(self._mine, claims.c.key.in_(due))
            self._due.difference_update(due)

    @property
    def _mine(self) -> sa.ColumnElement[bool]:
        return claims.c.holder == self._holder

    def release_all(self, holders: Collection[str] = ()) -> None:
        """Releases all claims of this process, or of others that are dead."""
        self._delete(claims.c.holder.in_(holders or [self._holder]))

    def holders(self) -> set[str]:
        """Returns the processes that claim calls."""
        return set(self._database.scalars(sa.select(claims.c.holder).distinct()))

    def _delete(self, *conditions: sa.ColumnElement[bool]) -> None:
        with self._database.begin() as connection:
            connection.execute(claims.delete().where(*conditions))


class InFlight:
    """The number of calls in flight in each process, by study and model."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def report(self, holder: str, calls: Mapping[tuple[str, str], int]) -> None:
        """Replaces the report of a process; an empty one is removed, and outdated ones as well."""
        now, f = datetime.now(UTC), in_flight.c
        rows = [[study, model, count] for (study, model), count in sorted(calls.items()) if count]
        with self._database.begin() as connection:
            outdated = sa.or_(f.holder == holder, f.at < now - FRESH)
            connection.execute(in_flight.delete().where(outdated))
            if rows:
                connection.execute(in_flight.insert().values(holder=holder, at=now, calls=rows))

    def silences(self) -> dict[str, float]:
        """Returns the seconds since each process with calls in flight has reported them."""
        now = datetime.now(UTC)
        reports = self._database.pairs(sa.select(in_flight.c.holder, in_flight.c.at))
        return {holder: (now - at).total_seconds() for holder, at in reports.items()}

    def of_study(self, study: str) -> Counter[str]:
        """Returns the number of calls of a study that are in flight, by model."""
        fresh = in_flight.c.at > datetime.now(UTC) - FRESH
        by_model = Counter[str]()
        for calls in self._database.scalars(sa.select(in_flight.c.calls).where(fresh)):
            by_model.update({model: count for of, model, count in calls if of == study})
        return by_model
