"""Study files as they were last run, their budgets, and how many experiments each has."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import Ledger


class Studies:
    """The records of studies."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

    def save(self, name: str, file: str, budget: Mapping[str, Any]) -> None:
        """Saves a study file and its budget, as they are run now."""
        with self._database.begin() as connection:
            row = {"name": name, "file": self._ledger.keep(connection, file), "budget": budget}
            insert = self._database.insert(t.studies).values(row)
            connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_=row))

    def save_budget(self, study: str, budget: Mapping[str, Any]) -> None:
        """Saves what a study may spend from now on."""
        with self._database.begin() as connection:
            row = {"name": study, "file": self._ledger.keep(connection, ""), "budget": budget}
            insert = self._database.insert(t.studies).values(row)
            change = {"budget": row["budget"]}
            connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_=change))

    def budget(self, study: str) -> Mapping[str, Any]:
        """Returns the budget of a study as it was last run; empty where there is none."""
        with self._database.read() as connection:
            query = sa.select(t.studies.c.budget).where(t.studies.c.name == study)
            return connection.scalar(query) or {}

    def file(self, name: str) -> str | None:
        """Returns a study file as it was last run; None where none was kept."""
        query = (
            sa.select(t.texts.c.body)
            .join(t.studies, t.studies.c.file == t.texts.c.hash)
            .where(t.studies.c.name == name)
        )
        with self._database.read() as connection:
            return connection.scalar(query) or None

    def rows(self) -> list[dict[str, Any]]:
        """Returns studies with their number of experiments, and whether their file is kept."""
        files = (
            sa.select(sa.func.length(t.texts.c.body) > 0)
            .join(t.studies, t.studies.c.file == t.texts.c.hash)
            .where(t.studies.c.name == t.tags.c.study)
            .scalar_subquery()
        )
        query = (
            sa.select(
                t.tags.c.study,
                sa.func.count().label("experiments"),
                sa.func.coalesce(files, sa.false()).label("file"),
            )
            .where(t.tags.c.study != "")
            .group_by(t.tags.c.study)
            .order_by(t.tags.c.study)
        )
        with self._database.read() as connection:
            return [
                {**row, "file": bool(row["file"])} for row in connection.execute(query).mappings()
            ]

    def counts(self) -> dict[str, int]:
        """Returns how many experiments each study has; those of no study have an empty name."""
        query = sa.select(t.tags.c.study, sa.func.count()).group_by(t.tags.c.study)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(t.tags.c.study))
            return {study: count for study, count in rows}

    def fingerprint(self, study: str) -> tuple[int, ...]:
        """Returns numbers that differ once anything was added that a study's report shows."""
        mine = sa.select(t.tags.c.digest).where(t.tags.c.study == study)
        runs = sa.select(t.runs.c.id).where(
            t.runs.c.digest.in_(mine), t.runs.c.superseded.is_(None)
        )
        counted = (t.samples, t.probes, t.events)
        queries = [sa.select(sa.func.count()).where(table.c.run_id.in_(runs)) for table in counted]
        queries += [
            sa.select(sa.func.count()).select_from(mine.subquery()),
            sa.select(sa.func.count()).select_from(t.labels),
        ]
        with self._database.read() as connection:
            return tuple(int(connection.scalar(query) or 0) for query in queries)
