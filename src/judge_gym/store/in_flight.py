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

    def take(self, keys: Collection[str]) -> set[str]:
        """Claims calls, and returns the keys of those that no process had claimed."""
        rows = [{"key": key, "holder": self._holder} for key in sorted(keys)]
        insert = self._database.insert(claims).values(rows).on_conflict_do_nothing()
        with self._database.begin() as connection:
            return set(connection.scalars(insert.returning(claims.c.key)))

    def release(self, keys: Collection[str]) -> None:
        """Releases claims of this process."""
        self._delete(claims.c.holder == self._holder, claims.c.key.in_(keys))

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

    def of_study(self, study: str) -> Counter[str]:
        """Returns the number of calls of a study that are in flight, by model."""
        fresh = in_flight.c.at > datetime.now(UTC) - FRESH
        found = Counter[str]()
        for calls in self._database.scalars(sa.select(in_flight.c.calls).where(fresh)):
            found.update({model: count for of, model, count in calls if of == study})
        return found
