"""Changes to a database in use: expand the schema, migrate the data in batches, then contract.

A contract revision names an audit query, and is refused until that returns 0. Between the steps
both the old and the new version work on the database.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from judge_gym.errors import DesignError, StoreError, unknown
from judge_gym.store import tables as t
from judge_gym.store.database import HEAD, PROFILES, Database

BATCH = 1000


@dataclass(frozen=True, slots=True)
class DataMigration:
    """A change of rows that can be interrupted after any batch, and done twice without harm."""

    name: str
    about: str
    table: sa.Table
    undone: sa.ColumnElement[bool]
    """Which rows are still to be changed."""
    values: Mapping[str, Any]
    """What becomes of their columns."""

    def left(self, connection: sa.Connection) -> int:
        """How many rows are to be changed."""
        query = sa.select(sa.func.count()).select_from(self.table).where(self.undone)
        return int(connection.execute(query).scalar_one())

    def batch(self, connection: sa.Connection, after: int, size: int) -> tuple[int | None, int]:
        """Change the rows that follow an id; where the next batch begins, and how many changed."""
        id = self.table.c.id
        ids = sa.select(id).where(id > after, self.undone).order_by(id).limit(size)
        found = list(connection.execute(ids).scalars())
        if found:
            chosen = id.between(found[0], found[-1]) & self.undone
            connection.execute(self.table.update().where(chosen).values(**self.values))
        return (found[-1] if len(found) == size else None), len(found)


DATA_MIGRATIONS = (
    DataMigration(
        "probes-know-their-run",
        "fills in the run of probes that versions before 0004 wrote",
        t.probes,
        t.probes.c.run_id.is_(None),
        {
            "run_id": sa.select(t.samples.c.run_id)
            .where(t.samples.c.id == t.probes.c.sample_id)
            .scalar_subquery()
        },
    ),
)


class Deployment:
    """A database as whoever operates it sees it.

    Args:
        database: which; its schema may be any that this version knows.
        migrations: the changes of data that belong to this version.
    """

    def __init__(
        self, database: Database, migrations: tuple[DataMigration, ...] = DATA_MIGRATIONS
    ) -> None:
        self._database = database
        self._migrations = migrations

    def status(self) -> dict[str, Any]:
        """Profile, revision, what is pending, and how far each change of data is."""
        database = self._database
        revision = database.revision()
        steps = [
            {
                "revision": step.revision,
                "phase": "expand" if step.only_adds else "contract",
                "misfits": self._audited(step.audit) if step.audit else 0,
            }
            for step in database.pending()
        ]
        return {
            "database": database.shown,
            "profile": database.marked,
            "revision": revision,
            "newest": HEAD,
            "pending": steps,
            "data": list(self._stands()),
        }

    def mark(self, profile: str) -> None:
        """Say what a database is for; a production database refuses sessions of another profile."""
        if profile not in PROFILES:
            raise DesignError(unknown("profile", profile, PROFILES), choices=PROFILES)
        with self._database.begin() as connection:
            connection.execute(t.deployment.delete())
            connection.execute(t.deployment.insert().values(profile=profile))
        self._database.forget_mark()

    def migrate(
        self,
        *,
        size: int = BATCH,
        watch: Callable[[Mapping[str, Any]], None] = lambda stand: None,
    ) -> int:
        """Carry out the changes of data that are pending, batch by batch; how many rows changed.

        Each batch is a transaction with where the next one begins: whatever interrupts it, the
        same call goes on from there, and several at once take turns.
        """
        total = 0
        for migration in self._migrations:
            going = True
            while going:
                going, changed = self._batch(migration, size)
                total += changed
                watch(self._stand(migration))
        return total

    def _batch(self, migration: DataMigration, size: int) -> tuple[bool, int]:
        rows = t.data_migrations
        mine = rows.c.name == migration.name
        with self._database.begin() as connection:
            start = {"name": migration.name, "after": 0, "changed": 0, "started": _now()}
            self._database.add(connection, rows, [{**start, "finished": None}])
            row = connection.execute(sa.select(rows).where(mine).with_for_update()).one()
            if row.finished is not None and not migration.left(connection):
                return False, 0
            # What older processes wrote meanwhile is taken up from the beginning.
            after = 0 if row.finished is not None else row.after
            next, changed = migration.batch(connection, after, size)
            over = next is None and not migration.left(connection)
            stand = {
                "after": next or 0,
                "changed": row.changed + changed,
                "finished": _now() if over else None,
            }
            connection.execute(rows.update().where(mine).values(**stand))
        return not over, changed

    def _stands(self) -> Iterator[dict[str, Any]]:
        return (self._stand(migration) for migration in self._migrations)

    def _stand(self, migration: DataMigration) -> dict[str, Any]:
        told = {"name": migration.name, "about": migration.about}
        with self._database.read() as connection:
            names = sa.inspect(connection).get_table_names()
            if not {"data_migrations", migration.table.name} <= set(names):
                return {**told, "status": "waits for the schema", "changed": 0, "left": None}
            mine = t.data_migrations.c.name == migration.name
            row = connection.execute(sa.select(t.data_migrations).where(mine)).first()
            left = migration.left(connection)
        status = "pending" if row is None else "finished" if row.finished else "under way"
        if left == 0:
            status = "finished"
        return {**told, "status": status, "changed": row.changed if row else 0, "left": left}

    def _audited(self, audit: str) -> int | None:
        try:
            with self._database.read() as connection:
                return int(connection.execute(sa.text(audit)).scalar_one())
        except StoreError:  # the tables that it asks for are not there yet
            return None


def _now() -> datetime:
    return datetime.now(UTC)
