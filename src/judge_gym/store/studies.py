"""Studies: their files as last run, their budgets, and their numbers of experiments."""

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

    def save(self, name: str, budget: Mapping[str, Any], file: str | None = None) -> None:
        """Saves the budget of a study and, where it is given, the text of its file."""
        with self._database.begin() as connection:
            hash = self._ledger.save_text(connection, file or "")
            row = {"name": name, "file": hash, "budget": budget}
            changes = row if file is not None else {"budget": budget}
            insert = self._database.insert(t.studies).values(row)
            connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_=changes))

    def budget(self, study: str) -> Mapping[str, Any]:
        """Returns the budget of a study; empty if it has none."""
        query = sa.select(t.studies.c.budget).where(t.studies.c.name == study)
        return self._database.scalar(query) or {}

    def file(self, name: str) -> str | None:
        """Returns the text of a study file as it was last run; None if none was stored."""
        query = (
            sa.select(t.texts.c.body)
            .join(t.studies, t.studies.c.file == t.texts.c.hash)
            .where(t.studies.c.name == name)
        )
        return self._database.scalar(query) or None

    def rows(self) -> list[dict[str, Any]]:
        """Returns studies with their number of experiments, and whether their file is stored."""
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
        return [{**row, "file": bool(row["file"])} for row in self._database.rows(query)]

    def counts(self) -> dict[str, int]:
        """Returns the number of experiments by study; "" stands for those without a study."""
        query = sa.select(t.tags.c.study, sa.func.count()).group_by(t.tags.c.study)
        return self._database.pairs(query.order_by(t.tags.c.study))

    def fingerprint(self, study: str) -> tuple[int, ...]:
        """Returns numbers that change when something is added to what a study's report shows."""
        mine = sa.select(t.tags.c.digest).where(t.tags.c.study == study)
        runs = (
            sa.select(t.runs.c.id)
            .join(t.tags, t.NAMED_RUNS)
            .where(t.tags.c.study == study, t.runs.c.superseded.is_(None))
        )
        counted = (t.samples, t.probes, t.events)
        queries = [sa.select(sa.func.count()).where(table.c.run_id.in_(runs)) for table in counted]
        queries += [
            sa.select(sa.func.count()).select_from(mine.subquery()),
            sa.select(sa.func.count()).select_from(t.labels),
        ]
        with self._database.read() as connection:
            return tuple(int(connection.scalar(query) or 0) for query in queries)
