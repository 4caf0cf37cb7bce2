"""Analyses of suite runs that were queued: what was asked for, and how each ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from judge_gym.errors import NotFoundError
from judge_gym.store.database import Database
from judge_gym.store.tables import analyses


@dataclass(frozen=True, slots=True)
class AnalysisRecord:
    """A queued analysis."""

    id: int
    run_id: int
    """The suite run."""
    request: Mapping[str, Any]
    """The arguments with which it was started."""
    started: datetime
    ended: datetime | None
    result: Mapping[str, Any] | None
    """What it found; None if it has not ended, or failed."""
    error: str
    """Why it failed; empty otherwise."""

    @property
    def status(self) -> str:
        """Whether it is in progress, complete or failed."""
        if self.ended is None:
            return "in progress"
        return "failed" if self.error else "complete"


class Analyses:
    """Saves and finds analyses."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, run_id: int, request: Mapping[str, Any]) -> int:
        """Saves an analysis that is to be performed, and returns its number."""
        row = {
            "run_id": run_id,
            "request": dict(request),
            "started": datetime.now(UTC),
            "error": "",
        }
        with self._database.begin() as connection:
            inserted = connection.execute(analyses.insert().values(row)).inserted_primary_key
        assert inserted is not None
        return int(inserted[0])

    def end(self, id: int, result: Mapping[str, Any] | None, error: str = "") -> None:
        """Records how an analysis ended."""
        values = {
            "ended": datetime.now(UTC),
            "result": dict(result) if result else None,
            "error": error,
        }
        with self._database.begin() as connection:
            connection.execute(analyses.update().where(analyses.c.id == id).values(values))

    def find(self, id: int) -> AnalysisRecord:
        """Returns an analysis by its number."""
        rows = self._database.rows(sa.select(analyses).where(analyses.c.id == id))
        if not rows:
            ids = [str(record.id) for record in self.find_all()]
            hint = f"there are {', '.join(ids)}" if ids else "there is none yet"
            raise NotFoundError(f"there is no analysis {id}; {hint}", choices=ids)
        return AnalysisRecord(**rows[0])

    def find_all(self, run_id: int | None = None) -> list[AnalysisRecord]:
        """Returns all analyses, or those of a suite run, oldest first."""
        query = sa.select(analyses).order_by(analyses.c.id)
        query = query if run_id is None else query.where(analyses.c.run_id == run_id)
        return [AnalysisRecord(**row) for row in self._database.rows(query)]

    def unfinished(self) -> list[AnalysisRecord]:
        """Returns the analyses that have not ended."""
        return [record for record in self.find_all() if record.ended is None]
