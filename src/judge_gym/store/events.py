"""Events: what users and workers did to runs, append-only; and the log of a lab."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, get_args

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.database import Database

Kind = Literal[
    "started",
    "paused",
    "cancelled",
    "over-budget",
    "waiting",
    "failed",
    "retuned",
    "taken-over",
    "ended",
]
STATES = tuple(kind for kind in get_args(Kind) if kind not in ("retuned", "taken-over"))
"""The kinds that change the state of a run."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a run."""

    id: int
    run_id: int
    at: datetime
    kind: Kind
    message: str
    detail: Mapping[str, Any]
    actor: str = ""
    """Who did it; empty where no person did."""

    @property
    def reason(self) -> str:
        """Why a run waits or stopped; empty for one that goes on or has ended."""
        return "" if self.kind in ("started", "ended") else self.message

    @property
    def text(self) -> str:
        """The message, and who did it unless the message says so."""
        if not self.actor or self.actor in self.message:
            return self.message
        return f"{self.message} by {self.actor}".lstrip()


LATEST = sa.select(t.events).where(
    t.events.c.id.in_(
        sa.select(sa.func.max(t.events.c.id))
        .where(
            t.events.c.run_id.in_(sa.bindparam("runs", expanding=True)),
            t.events.c.kind.in_(STATES),
        )
        .group_by(t.events.c.run_id)
    )
)
"""The last event that changed each run's state. Built once, since every step of a run asks."""


class Events:
    """Records and finds events."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(
        self,
        run_ids: Collection[int],
        kind: Kind,
        message: str = "",
        detail: Mapping[str, Any] | None = None,
        *,
        actor: str = "",
    ) -> None:
        """Records an event of runs, with who caused it if a person did."""
        now = datetime.now(UTC)
        rows = [
            {
                "run_id": id,
                "at": now,
                "kind": kind,
                "message": message,
                "detail": dict(detail or {}),
                "actor": actor,
            }
            for id in sorted(run_ids)
        ]
        if rows:
            with self._database.begin() as connection:
                connection.execute(t.events.insert(), rows)

    def latest(self, run_id: int) -> Event | None:
        """Returns the last event that changed a run's state; None if it was never started."""
        return self.latest_by_run([run_id]).get(run_id)

    def latest_by_run(self, run_ids: Collection[int]) -> dict[int, Event]:
        """Returns the last event that changed each run's state, of runs that were started."""
        with self._database.read() as connection:
            rows = connection.execute(LATEST, {"runs": [*run_ids]})
            return {row.run_id: Event(*row) for row in rows}

    def any_in_progress(self) -> bool:
        """Returns whether any run was started, and has neither ended nor stopped."""
        e, later = t.events.c, t.events.alias().c
        changed = sa.exists().where(
            later.run_id == e.run_id, later.id > e.id, later.kind.in_(STATES)
        )
        query = sa.select(e.id).where(e.kind.in_(("started", "waiting")), ~changed)
        return self._database.first(query.limit(1)) is not None

    def retries(self) -> list[Event]:
        """Returns the last events of runs that workers queue again at a later time."""
        return [event for event in self._waiting() if "retry_at" in event.detail]

    def refused(self) -> list[Event]:
        """Returns the last events of runs that wait for a worker that can execute them."""
        return [event for event in self._waiting() if "retry_at" not in event.detail]

    def _waiting(self) -> list[Event]:
        e, later = t.events.c, t.events.alias().c
        changed = sa.exists().where(
            later.run_id == e.run_id, later.id > e.id, later.kind.in_(STATES)
        )
        superseded = sa.select(t.runs.c.id).where(t.runs.c.superseded.is_not(None))
        query = sa.select(t.events).where(
            e.kind == "waiting", e.run_id.not_in(superseded), ~changed
        )
        with self._database.read() as connection:
            return [Event(*row) for row in connection.execute(query)]

    def since_state(self, kind: Kind, run_ids: Collection[int]) -> dict[int, str]:
        """Returns the messages of the last events of a kind after which no run changed its state.

        Args:
            kind: one that changes no state.
            run_ids: the runs; those without such an event are left out.
        """
        e, later = t.events.c, t.events.alias().c
        superseded = sa.exists().where(
            later.run_id == e.run_id, later.id > e.id, later.kind.in_([*STATES, kind])
        )
        query = sa.select(e.run_id, e.message).where(e.run_id.in_(run_ids), e.kind == kind)
        return self._database.pairs(query.where(~superseded)) if run_ids else {}

    def since(self, after: int, run_ids: Collection[int]) -> list[Event]:
        """Returns the events of runs after one of them, oldest first."""
        e = t.events.c
        query = sa.select(t.events).where(e.id > after, e.run_id.in_(run_ids)).order_by(e.id)
        with self._database.read() as connection:
            return [Event(*row) for row in connection.execute(query)]

    def of_study(
        self, study: str, limit: int, before: int | None = None
    ) -> list[tuple[Event, str]]:
        """Returns the events of a study's runs, newest first, each with a tag."""
        e = t.events.c
        query = (
            sa.select(t.events, t.tags.c.tag)
            .join(t.runs, t.runs.c.id == e.run_id)
            .join(t.tags, t.NAMED_RUNS)
            .where(t.tags.c.study == study)
            .order_by(e.id.desc(), t.tags.c.tag)
            .limit(limit)
        )
        if before is not None:
            query = query.where(e.id < before)
        with self._database.read() as connection:
            return [(Event(*row[:-1]), row[-1]) for row in connection.execute(query)]

    def last_id(self) -> int:
        """Returns the id of the newest event of all runs, or 0."""
        return self._database.scalar(sa.select(sa.func.max(t.events.c.id))) or 0


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
        """Returns a page of events and failed attempts, and the cursor of the next page."""
        e, a = t.events.c, t.attempts.c
        tag = (
            sa.select(sa.func.min(t.tags.c.tag))
            .join(t.runs, t.NAMED_RUNS)
            .where(t.runs.c.id == e.run_id)
            .scalar_subquery()
        )
        events = sa.select(
            e.id, e.at, e.run_id, tag.label("tag"), e.kind, e.message, e.detail, e.actor
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
        merged = [
            {"type": type, **row}
            for type, query in (("event", events), ("failed attempt", attempts))
            for row in self._database.rows(query.limit(limit + 1))
        ]
        for row in merged:
            if row["run_id"] < 0:
                row["tag"] = f"suite:{-row['run_id']}"
            row["at"] = row["at"].isoformat()
        merged.sort(key=lambda row: (row["at"], row["id"]), reverse=True)
        rows = merged[:limit]
        if len(merged) <= limit:
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
        query = (
            sa.select(t.tags.c.tag)
            .join(t.runs, t.NAMED_RUNS)
            .where(_in_progress())
            .distinct()
            .order_by(t.tags.c.tag)
        )
        return self._database.scalars(query)

    def budgets_in_progress(self) -> dict[str, Mapping[str, Any]]:
        """Returns the budgets of studies with a run that was started and has not ended."""
        s = t.studies.c
        owners = sa.select(t.runs.c.owner).where(_in_progress())
        return self._database.pairs(sa.select(s.name, s.budget).where(s.name.in_(owners)))


def _in_progress() -> sa.ColumnElement[bool]:
    """Returns the condition of runs that were started and have not ended."""
    e = t.events.c
    last = (
        sa.select(e.kind)
        .where(e.run_id == t.runs.c.id, e.kind.in_(STATES))
        .order_by(e.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return sa.and_(t.runs.c.superseded.is_(None), last == "started")
