"""The log of a lab: events of runs and failed attempts at calls, newest first."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.events import STATES


class LogCursor(NamedTuple):
    """The place after which a page of the log begins: the last id of each of its two tables."""

    event: int
    attempt: int


class Logs:
    """Reads the log, and which experiments ran last."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, target: str | None, *, after: LogCursor | None, limit: int
    ) -> tuple[list[dict[str, Any]], LogCursor | None]:
        """Returns a page of events and failed attempts, and the cursor of the next page.

        Args:
            target: only those of this study or tag.
            after: the cursor of this page; None for the first.
            limit: the size of the page.
        """
        e, a = t.events.c, t.attempts.c
        tag = (
            sa.select(sa.func.min(t.tags.c.tag))
            .join(t.runs, t.NAMED_RUNS)
            .where(t.runs.c.id == e.run_id)
            .scalar_subquery()
        )
        events = sa.select(
            e.id, e.at, e.run_id, tag.label("tag"), e.kind, e.message, e.detail
        ).order_by(e.id.desc())
        attempts = (
            sa.select(a.id, a.at, a.run_id, a.tag, a.stage, t.calls.c.model, a.call_id, a.error)
            .join(t.calls, t.calls.c.id == a.call_id)
            .where(sa.not_(a.completed))
            .order_by(a.id.desc())
        )
        if target is not None:
            named = sa.or_(t.tags.c.study == target, t.tags.c.tag == target)
            runs = sa.select(t.runs.c.id).join(t.tags, t.NAMED_RUNS).where(named)
            events = events.where(e.run_id.in_(runs))
            attempts = attempts.where(a.run_id.in_(runs))
        if after is not None:
            events = events.where(e.id < after.event)
            attempts = attempts.where(a.id < after.attempt)
        found = [
            {"type": type, **row}
            for type, query in (("event", events), ("failed attempt", attempts))
            for row in self._database.rows(query.limit(limit + 1))
        ]
        for row in found:
            if row["run_id"] < 0:
                row["tag"] = f"suite:{-row['run_id']}"
            row["at"] = row["at"].isoformat()
        found.sort(key=lambda row: (row["at"], row["id"]), reverse=True)
        rows = found[:limit]
        if len(found) <= limit:
            return rows, None
        start = after or LogCursor(2**31 - 1, 2**31 - 1)
        last = (
            min([row["id"] for row in rows if row["type"] == type], default=before)
            for type, before in zip(("event", "failed attempt"), start, strict=True)
        )
        return rows, LogCursor(*last)

    def recent(self, limit: int) -> list[str]:
        """Returns the tags of the newest runs, newest first: one for each experiment of a study."""
        query = (
            sa.select(sa.func.min(t.tags.c.tag))
            .join(t.runs, t.NAMED_RUNS)
            .where(t.runs.c.superseded.is_(None))
            .group_by(t.runs.c.digest, t.runs.c.owner)
            .order_by(sa.func.max(t.runs.c.id).desc())
            .limit(limit)
        )
        return self._database.scalars(query)

    def in_progress(self) -> list[str]:
        """Returns the tags of experiments with a run that was started and has not ended."""
        e = t.events.c
        last = (
            sa.select(e.kind)
            .where(e.run_id == t.runs.c.id, e.kind.in_(STATES))
            .order_by(e.id.desc())
            .limit(1)
            .scalar_subquery()
        )
        query = (
            sa.select(t.tags.c.tag)
            .join(t.runs, t.NAMED_RUNS)
            .where(t.runs.c.superseded.is_(None), last == "started")
            .distinct()
            .order_by(t.tags.c.tag)
        )
        return self._database.scalars(query)
