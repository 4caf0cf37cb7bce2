"""How far runs are, and why targets failed: derived from rows, mostly from indexes alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import sqlalchemy as sa

from judge_gym.axes import Design, complete
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.events import Event, Events
from judge_gym.store.ledger import latest_attempt
from judge_gym.store.locks import at_work, is_free

RunStatus = Literal[
    "pending",
    "evidence-done",
    "rubric-done",
    "scoring",
    "probing",
    "complete",
    "complete-with-failures",
    "paused",
    "over-budget",
    "failed",
    "cancelled",
]
STOPS: dict[str, RunStatus] = {
    "paused": "paused",
    "over-budget": "over-budget",
    "failed": "failed",
    "cancelled": "cancelled",
}
"""Events that leave an unfinished run as they say, until it is started again."""
UNATTENDED = (
    "nobody is at work on it: go on with judge-gym resume, or start a worker with judge-gym worker"
)
STARTING = "a worker is starting"
QUEUED = sa.text(
    "SELECT application_version FROM dbos.workflow_status WHERE workflow_uuid LIKE :ids "
    "AND name = 'run' AND status IN ('PENDING', 'ENQUEUED') LIMIT 1"
)
"""The protocol under which a run is queued or carried out, on a server."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: per stage, what is wanted, what is there, and what brought no answer."""

    run_id: int
    tag: str
    series: str
    wanted: Mapping[str, int]
    done: Mapping[str, int]
    failed: Mapping[str, int]
    statuses: Mapping[str, int]
    """Samples by verdict status."""
    tolerance: float
    event: Event | None = None
    """What happened to it last."""

    @property
    def status(self) -> RunStatus:
        """The first thing that is true, from the end of the pipeline backwards."""
        if not self.wanted["score"]:  # no rubric, or nothing to read: there is nothing to score
            return "failed"
        short = {stage for stage in self.wanted if self.done[stage] < self.wanted[stage]}
        if not short and self.failed_share > self.tolerance:
            return "failed"
        if not short:
            return "complete-with-failures" if any(self.failed.values()) else "complete"
        if self.event is not None and self.event.kind in STOPS:
            return STOPS[self.event.kind]
        if short == {"probe"}:
            return "probing"
        if self.done["score"] or self.done["swap"]:
            return "scoring"
        if "rubric" not in short:
            return "rubric-done" if "evidence" not in short else "pending"
        return "evidence-done" if "evidence" not in short and self.wanted["evidence"] else "pending"

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do, or nothing is to be done."""
        return self.status in ("complete", "complete-with-failures", *STOPS.values())

    @property
    def failed_share(self) -> float:
        """The share of targets that no attempt brought an answer for."""
        return sum(self.failed.values()) / max(1, sum(self.wanted.values()))


class Progresses:
    """Read-only questions about runs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events = Events(database)
        self.worker_coming: Callable[[], bool] = lambda: False
        """Whether a worker was begun that is not at work yet; whoever begins workers says so."""

    def of_tag(self, tag: str) -> list[Progress]:
        """The runs of an experiment, newest last; superseded ones are left out."""
        wanted = t.runs.c.digest.in_(sa.select(t.tags.c.digest).where(t.tags.c.tag == tag))
        found = self._found(tag, sa.and_(wanted, t.runs.c.superseded.is_(None)))
        return [self._attended(progress) for progress in found]

    def _attended(self, progress: Progress) -> Progress:
        """Say of a run that is to go on, and that nobody is at, what it waits for."""
        event = progress.event
        if event is None or event.kind != "started" or progress.ended:
            return progress
        said = self._waits(progress.run_id)
        return replace(progress, event=replace(event, said=said)) if said else progress

    def attended(self) -> bool:
        """Whether somebody is at work on the lab."""
        file = self._database.file
        return bool(at_work(self._database)) if file is None else not is_free(file)

    def _waits(self, run_id: int) -> str:
        if self._database.file is not None:
            return "" if self.attended() else self._unattended()
        working = at_work(self._database)
        if not working:
            return self._unattended()
        with self._database.read() as connection:
            if connection.scalar(sa.text("SELECT to_regclass('dbos.workflow_status')")) is None:
                return ""
            asked = connection.scalar(QUEUED, {"ids": f"{run_id}.%"})
        if asked is None or int(asked) in working:
            return ""
        others = ", ".join(map(str, sorted(working)))
        return f"it waits for a worker of protocol {asked}; those at work are of protocol {others}"

    def _unattended(self) -> str:
        return STARTING if self.worker_coming() else UNATTENDED

    def of_run(self, run_id: int, tag: str) -> Progress:
        """How far one run is, under the tag that it was started by."""
        [progress] = self._found(tag, t.runs.c.id == run_id)
        return progress

    def _found(self, tag: str, which: sa.ColumnElement[bool]) -> list[Progress]:
        e = t.experiments.c
        query = (
            sa.select(t.runs, e.pool_id, e.design, e.rubric_id)
            .join(t.experiments, e.digest == t.runs.c.digest)
            .where(which)
            .order_by(t.runs.c.id)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
            return [self._of(connection, tag, row) for row in rows]

    def _of(self, connection: sa.Connection, tag: str, run: sa.RowMapping) -> Progress:
        items = (
            connection.scalar(
                sa.select(sa.func.count()).where(t.pool_items.c.pool_id == run["pool_id"])
            )
            or 0
        )
        views = _by_status(
            connection,
            sa.select(t.views.c.status, sa.func.count())
            .join(t.pool_items, t.pool_items.c.evidence_id == t.views.c.evidence_id)
            .where(t.pool_items.c.pool_id == run["pool_id"], t.views.c.maker == run["view_maker"])
            .group_by(t.views.c.status),
        )
        rubrics = connection.execute(
            sa.select(t.run_rubrics.c.is_swap, t.rubrics.c.status, sa.func.count())
            .join(t.rubrics, t.run_rubrics.c.rubric_id == t.rubrics.c.id)
            .where(t.run_rubrics.c.run_id == run["id"])
            .group_by(t.run_rubrics.c.is_swap, t.rubrics.c.status)
        ).all()
        s = t.samples.c
        counted = connection.execute(
            sa.select(s.is_swap, s.status, sa.func.count())
            .where(s.run_id == run["id"])
            .group_by(s.is_swap, s.status)
        ).all()
        probes = _by_status(
            connection,
            sa.select(t.probes.c.status, sa.func.count())
            .where(t.probes.c.run_id == run["id"])
            .group_by(t.probes.c.status),
        )
        statuses: dict[str, int] = {}
        for _, status, count in counted:
            statuses[status] = statuses.get(status, 0) + count
        orders = _orders(connection, run["pool_id"], run["design"])
        draws = 1 if run["rubric_id"] else complete(run["design"])["rubric.draws"]
        own, rivals = draws, draws * len(run["rivals"])
        unseen = sum(count for status, count in views.items() if status != "scored")
        unwritten = _matching(rubrics, False, failed=True), _matching(rubrics, True, failed=True)
        # What has no view or no rubric cannot be scored.
        cells = (items - unseen) * run["samples"] * orders
        wanted = {
            "evidence": items if run["view_maker"] else 0,
            "rubric": own,
            "score": (own - unwritten[0]) * cells,
            "swap": (rivals - unwritten[1]) * cells,
            "probe": statuses.get("scored", 0) if run["probe"] else 0,
        }
        done = {
            "evidence": sum(views.values()),
            "rubric": _matching(rubrics, False),
            "score": _matching(counted, False),
            "swap": _matching(counted, True),
            "probe": sum(probes.values()),
        }
        failed = {
            "evidence": unseen,
            "rubric": unwritten[0],
            "score": sum(
                n for swap, status, n in counted if not swap and status == "provider_error"
            ),
            "swap": unwritten[1]
            + sum(n for swap, status, n in counted if swap and status == "provider_error"),
            "probe": probes.get("provider_error", 0),
        }
        return Progress(
            run["id"],
            tag,
            run["series"],
            wanted,
            done,
            failed,
            statuses,
            run["tolerance"],
            self._events.latest(run["id"]),
        )

    def uncriticised(self, run_id: int) -> bool:
        """Whether a rubric that was written for a run has no critic's answer."""
        answered = sa.and_(
            t.critiques.c.rubric_id == t.rubrics.c.id,
            t.critiques.c.maker == t.runs.c.critic_maker,
            t.critiques.c.status != "provider_error",
        )
        query = (
            sa.select(t.rubrics.c.id)
            .join(t.run_rubrics, t.run_rubrics.c.rubric_id == t.rubrics.c.id)
            .join(t.runs, t.runs.c.id == t.run_rubrics.c.run_id)
            .outerjoin(t.critiques, answered)
            .where(t.runs.c.id == run_id, t.runs.c.critic_maker.is_not(None))
            .where(t.rubrics.c.status == "scored", t.critiques.c.id.is_(None))
        )
        with self._database.read() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def failures(self, run_id: int, most: int = 10) -> list[dict[str, Any]]:
        """Why targets of a run have no answer: the last error of each, by stage, counted."""
        found = []
        both = t.samples.c.is_swap.in_((False, True))  # which leads the index to the status
        for stage, table, also in (("score", t.samples, [both]), ("probe", t.probes, [])):
            query = (
                sa.select(t.attempts.c.error, sa.func.count().label("count"))
                .select_from(table)
                .join(
                    t.attempts,
                    t.attempts.c.id == latest_attempt(table.c.call_id, completed=False),
                )
                .where(table.c.run_id == run_id, table.c.status == "provider_error", *also)
                .group_by(t.attempts.c.error)
                .order_by(sa.func.count().desc())
                .limit(most)
            )
            with self._database.read() as connection:
                for error, count in connection.execute(query):
                    found.append({"stage": stage, "reason": error or "unknown", "count": count})
        return found


def _orders(connection: sa.Connection, pool_id: int, design: Mapping[str, Any]) -> int:
    """In how many orders an item is shown: a pair in both, unless the design says otherwise."""
    pair = (
        sa.select(t.evidence.c.pair)
        .join(t.pool_items, t.pool_items.c.evidence_id == t.evidence.c.id)
        .where(t.pool_items.c.pool_id == pool_id)
    )
    if not connection.scalar(pair.limit(1)):
        return 1
    return len(Design.of(complete(design)).presentation.resolve().flips)


def _matching(rows: Sequence[Any], is_swap: bool, *, failed: bool = False) -> int:
    """Count rows of (is_swap, status, count)."""
    return sum(
        n for swap, status, n in rows if swap == is_swap and not (failed and status == "scored")
    )


def _by_status(connection: sa.Connection, query: sa.Select[Any]) -> dict[str, int]:
    return {status: count for status, count in connection.execute(query)}
