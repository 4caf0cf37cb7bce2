"""Changes a database in use: expands the schema, migrates data in batches, then contracts it.

A contract step has an audit query, and is refused until that returns 0. Between the steps both the
old and the new version work with the database.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from judge_gym.errors import DesignError, StoreError, unknown
from judge_gym.store import tables as t
from judge_gym.store.database import HEAD, NEEDED, PROFILES, Database
from judge_gym.store.identity import Identity

BATCH = 1000


@dataclass(frozen=True, slots=True)
class DataMigration:
    """A change of rows that can be interrupted after any batch, and repeated."""

    name: str
    description: str
    table: sa.Table
    pending: sa.ColumnElement[bool]
    """The condition of rows that are not changed yet."""
    values: Mapping[str, Any]
    """Their new values."""

    def left(self, connection: sa.Connection) -> int:
        """Returns how many rows are not changed yet."""
        query = sa.select(sa.func.count()).select_from(self.table).where(self.pending)
        return int(connection.execute(query).scalar_one())

    def batch(self, connection: sa.Connection, after: int, size: int) -> tuple[int | None, int]:
        """Changes the next rows after an id; returns the last id if more follow, and how many."""
        id = self.table.c.id
        ids = sa.select(id).where(id > after, self.pending).order_by(id).limit(size)
        batch_ids = list(connection.execute(ids).scalars())
        if batch_ids:
            in_batch = id.between(batch_ids[0], batch_ids[-1]) & self.pending
            connection.execute(self.table.update().where(in_batch).values(**self.values))
        return (batch_ids[-1] if len(batch_ids) == size else None), len(batch_ids)


DATA_MIGRATIONS: tuple[DataMigration, ...] = ()
"""Those since the baseline, oldest first."""


class Deployment:
    """The schema, the data migrations and the profile of a database."""

    def __init__(
        self, database: Database, migrations: tuple[DataMigration, ...] = DATA_MIGRATIONS
    ) -> None:
        self._database = database
        self._migrations = migrations

    def status(self) -> dict[str, Any]:
        """Returns the profile, the revision, pending steps and the state of data migrations."""
        database = self._database
        revision = database.revision()
        steps = [
            {
                "revision": step.revision,
                "phase": "expand" if step.only_adds else "contract",
                "misfits": self._count_misfits(step.audit) if step.audit else 0,
            }
            for step in database.pending()
        ]
        return {
            "database": database.display_url,
            "profile": database.marked_profile,
            "revision": revision,
            "newest": HEAD,
            "serves": database.oldest_served(),
            "identity": Identity(database).describe() if (revision or "") >= NEEDED else None,
            "pending": steps,
            "data": [self._state(migration) for migration in self._migrations],
        }

    def mark(self, profile: str) -> None:
        """Marks the database with a profile; `prod` refuses writes of other sessions."""
        if profile not in PROFILES:
            raise DesignError(unknown("profile", profile, PROFILES), choices=PROFILES)
        self._database.refuse_empty()
        with self._database.begin() as connection:
            connection.execute(t.deployment.delete())
            connection.execute(t.deployment.insert().values(profile=profile))
        self._database.reload_profile()

    def migrate(
        self,
        *,
        size: int = BATCH,
        watch: Callable[[Mapping[str, Any]], None] = lambda state: None,
    ) -> int:
        """Runs the pending data migrations in batches, and returns how many rows changed.

        Each batch is a transaction that stores where the next one begins, so that the same call
        continues after an interruption, and several processes can take turns.
        """
        self._database.refuse_empty()
        total = 0
        for migration in self._migrations:
            unfinished = True
            while unfinished:
                unfinished, changed = self._batch(migration, size)
                total += changed
                watch(self._state(migration))
        return total

    def _batch(self, migration: DataMigration, size: int) -> tuple[bool, int]:
        rows = t.data_migrations
        mine = rows.c.name == migration.name
        with self._database.begin() as connection:
            start = {"name": migration.name, "after": 0, "changed": 0, "started": datetime.now(UTC)}
            self._database.insert_new(connection, rows, [{**start, "finished": None}])
            row = connection.execute(sa.select(rows).where(mine).with_for_update()).one()
            if row.finished is not None and not migration.left(connection):
                return False, 0
            # Rows that older processes wrote meanwhile are found from the start.
            after = 0 if row.finished is not None else row.after
            last, changed = migration.batch(connection, after, size)
            finished = last is None and not migration.left(connection)
            state = {
                "after": last or 0,
                "changed": row.changed + changed,
                "finished": datetime.now(UTC) if finished else None,
            }
            connection.execute(rows.update().where(mine).values(**state))
        return not finished, changed

    def _state(self, migration: DataMigration) -> dict[str, Any]:
        named = {"name": migration.name, "description": migration.description}
        with self._database.read() as connection:
            names = sa.inspect(connection).get_table_names()
            if not {"data_migrations", migration.table.name} <= set(names):
                return {**named, "status": "waits for the schema", "changed": 0, "left": None}
            mine = t.data_migrations.c.name == migration.name
            row = connection.execute(sa.select(t.data_migrations).where(mine)).first()
            left = migration.left(connection)
        status = "pending" if row is None else "finished" if row.finished else "in progress"
        if left == 0:
            status = "finished"
        return {**named, "status": status, "changed": row.changed if row else 0, "left": left}

    def _count_misfits(self, audit: str) -> int | None:
        try:
            with self._database.read() as connection:
                return int(connection.execute(sa.text(audit)).scalar_one())
        except StoreError:  # its tables do not exist yet
            return None
