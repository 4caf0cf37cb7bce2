"""What happened lately: the events of runs and the attempts that failed, newest first."""

from datetime import UTC
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.events import STANDING


class Mark(NamedTuple):
    """Where the next page of the log begins: below these rows of its two tables."""

    event: int
    attempt: int


class Logs:
    """Read-only questions about what happened."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, target: str | None, *, below: Mark | None, limit: int
    ) -> tuple[list[dict[str, Any]], Mark | None]:
        """Events and failed attempts of a study's or an experiment's runs, or of all.

        Args:
            target: the study or tag.
            below: where the page before ended.
            limit: rows at most.
        """
        e, a = t.events.c, t.attempts.c
        tag = (
            sa.select(sa.func.min(t.tags.c.tag))
            .join(t.runs, t.runs.c.digest == t.tags.c.digest)
            .where(t.runs.c.id == e.run_id)
            .scalar_subquery()
        )
        events = sa.select(
            e.id, e.at, e.run_id, tag.label("tag"), e.kind, e.said, e.detail
        ).order_by(e.id.desc())
        attempts = (
            sa.select(a.id, a.at, a.run_id, a.tag, a.stage, t.calls.c.model, a.call_id, a.error)
            .join(t.calls, t.calls.c.id == a.call_id)
            .where(sa.not_(a.completed))
            .order_by(a.id.desc())
        )
        if target is not None:
            named = sa.or_(t.tags.c.study == target, t.tags.c.tag == target)
            digests = sa.select(t.tags.c.digest).where(named)
            runs = sa.select(t.runs.c.id).where(t.runs.c.digest.in_(digests))
            events = events.where(e.run_id.in_(runs))
            attempts = attempts.where(a.run_id.in_(runs))
        if below is not None:
            events = events.where(e.id < below.event)
            attempts = attempts.where(a.id < below.attempt)
        with self._database.read() as connection:
            found = [
                {"what": what, **row}
                for what, query in (("event", events), ("failed attempt", attempts))
                for row in connection.execute(query.limit(limit + 1)).mappings()
            ]
        for row in found:  # SQLite forgets the zone, which is UTC always
            if row["run_id"] < 0:
                row["tag"] = f"suite:{-row['run_id']}"
            row["at"] = row["at"].replace(tzinfo=UTC).isoformat()
        found.sort(key=lambda row: (row["at"], row["id"]), reverse=True)
        rows = found[:limit]
        if len(found) <= limit:
            return rows, None
        top = below or Mark(2**31 - 1, 2**31 - 1)
        lowest = {
            what: min([row["id"] for row in rows if row["what"] == what], default=start)
            for what, start in zip(("event", "failed attempt"), top, strict=True)
        }
        return rows, Mark(*lowest.values())

    def recent(self, limit: int) -> list[str]:
        """Experiments of the newest runs, newest first, each by one of its tags."""
        query = (
            sa.select(sa.func.min(t.tags.c.tag))
            .join(t.runs, t.runs.c.digest == t.tags.c.digest)
            .where(t.runs.c.superseded.is_(None))
            .group_by(t.runs.c.digest)
            .order_by(sa.func.max(t.runs.c.id).desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return list(connection.scalars(query))

    def in_progress(self) -> list[str]:
        """Tags of the experiments with a run that was started and has not ended or stopped."""
        e = t.events.c
        last = (
            sa.select(e.kind)
            .where(e.run_id == t.runs.c.id, e.kind.in_(STANDING))
            .order_by(e.id.desc())
            .limit(1)
            .scalar_subquery()
        )
        query = (
            sa.select(t.tags.c.tag)
            .join(t.runs, t.runs.c.digest == t.tags.c.digest)
            .where(t.runs.c.superseded.is_(None), last == "started")
            .distinct()
            .order_by(t.tags.c.tag)
        )
        with self._database.read() as connection:
            return list(connection.scalars(query))
