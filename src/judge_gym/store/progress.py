"""How far runs are, and why targets failed: derived from rows, mostly from indexes alone."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import sqlalchemy as sa

from judge_gym.axes import Design, complete
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.events import Event, Events
from judge_gym.store.ledger import latest_attempt
from judge_gym.store.locks import at_work, is_free
from judge_gym.store.verdicts import UNANSWERED

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
NO_WORKER = (
    "no worker is running: continue with judge-gym resume, or start a worker with judge-gym worker"
)
STARTING = "a worker is starting"
QUEUED = sa.text(
    "SELECT workflow_uuid, application_version FROM dbos.workflow_status "
    "WHERE name = 'run' AND status IN ('PENDING', 'ENQUEUED')"
)
"""The runs that are queued or carried out on a server, and the protocol of each."""
CHUNK = 10_000
"""Tags per statement; databases take a limited number of parameters."""
SIDES = (False, True)
"""A judge's own rubric, and a rival's."""


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


class ProgressQueries:
    """Reads how far runs are; the number of statements does not depend on how many runs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events = Events(database)
        self.worker_coming: Callable[[], bool] = lambda: False
        """Whether a worker was started that is not ready yet; set by whoever starts workers."""

    def of_tag(self, tag: str) -> list[Progress]:
        """Returns the progress of an experiment's runs, newest last, without superseded ones."""
        return self.of_tags([tag])[tag]

    def of_tags(self, tags: Sequence[str]) -> dict[str, list[Progress]]:
        """Returns the progress of experiments' runs by tag, newest last, without superseded ones.

        A run that should continue while no worker takes it has a message that says so.
        """
        found: dict[str, list[Progress]] = {tag: [] for tag in tags}
        for start in range(0, len(tags), CHUNK):
            some = t.tags.c.tag.in_(tags[start : start + CHUNK])
            for progress in self._read(sa.and_(some, t.runs.c.superseded.is_(None))):
                found[progress.tag].append(progress)
        started = [
            one.run_id
            for runs in found.values()
            for one in runs
            if one.event is not None and one.event.kind == "started" and not one.ended
        ]
        reasons = self.why_waiting(started)
        for runs in found.values():
            runs[:] = [_with_message(one, reasons.get(one.run_id)) for one in runs]
        return found

    def of_run(self, run_id: int, tag: str) -> Progress:
        """Returns the progress of one run, under the tag that it was started by."""
        [progress] = self._read(sa.and_(t.runs.c.id == run_id, t.tags.c.tag == tag))
        return progress

    def has_worker(self) -> bool:
        """Returns whether a worker is running on the lab."""
        file = self._database.file
        return bool(at_work(self._database)) if file is None else not is_free(file)

    def why_waiting(self, started: Sequence[int]) -> dict[int, str]:
        """Returns what runs wait for that were started and have not ended, by run.

        Args:
            started: their numbers; minus its number for a suite run.
        """
        if not started:
            return {}
        idle = STARTING if self.worker_coming() else NO_WORKER
        if self._database.file is not None:
            return {} if self.has_worker() else dict.fromkeys(started, idle)
        working = at_work(self._database)
        if not working:
            return dict.fromkeys(started, idle)
        running = f"those running are of protocol {', '.join(map(str, sorted(working)))}"
        return {
            run_id: f"it waits for a worker of protocol {asked}; {running}"
            for run_id, asked in self._queued_protocols(started).items()
            if asked not in working
        }

    def _queued_protocols(self, run_ids: Collection[int]) -> dict[int, int]:
        """Returns the protocol under which each run is queued or carried out, on a server."""
        with self._database.read() as connection:
            if connection.scalar(sa.text("SELECT to_regclass('dbos.workflow_status')")) is None:
                return {}
            rows = connection.execute(QUEUED).all()
        queued = {int(id.partition(".")[0]): int(protocol) for id, protocol in rows}
        return {id: queued[id] for id in run_ids if id in queued}

    def _read(self, which: sa.ColumnElement[bool]) -> list[Progress]:
        e = t.experiments.c
        query = (
            sa.select(t.runs, t.tags.c.tag, e.pool_id, e.design, e.rubric_id)
            .join(t.experiments, e.digest == t.runs.c.digest)
            .join(t.tags, t.tags.c.digest == t.runs.c.digest)
            .where(which)
            .order_by(t.runs.c.id)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
            counts = _counts(connection, rows)
        events = self._events.latest_by_run({row["id"] for row in rows})
        return [_progress(row, counts, events.get(row["id"])) for row in rows]

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

    def failures(self, run_ids: Collection[int], most: int = 10) -> dict[int, list[dict[str, Any]]]:
        """Returns by run why calls failed: the last error of each target, by stage, counted."""
        found: dict[int, list[dict[str, Any]]] = {id: [] for id in run_ids}
        both = t.samples.c.is_swap.in_((False, True))  # leads the index to the status
        for stage, table, also in (("score", t.samples, [both]), ("probe", t.probes, [])):
            query = (
                sa.select(table.c.run_id, t.attempts.c.error, sa.func.count().label("count"))
                .select_from(table)
                .join(
                    t.attempts,
                    t.attempts.c.id == latest_attempt(table.c.call_id, completed=False),
                )
                .where(table.c.run_id.in_(run_ids), table.c.status == "provider_error", *also)
                .group_by(table.c.run_id, t.attempts.c.error)
                .order_by(sa.func.count().desc())
            )
            shown: Counter[int] = Counter()
            with self._database.read() as connection:
                for run_id, error, count in connection.execute(query):
                    shown[run_id] += 1
                    if shown[run_id] <= most:
                        reason = {"stage": stage, "reason": error or "unknown", "count": count}
                        found[run_id].append(reason)
        return found


@dataclass(frozen=True, slots=True)
class _Counts:
    """What the rows of several runs add up to."""

    items: Mapping[int, int]
    """Items by pool."""
    paired: Mapping[int, bool]
    """By pool, whether its items are pairs."""
    views: Mapping[tuple[int, str], Mapping[str, int]]
    """Views by pool and maker, then by status."""
    rubrics: Mapping[int, Sequence[tuple[bool, str, int]]]
    """Rubrics by run: whether of a rival, status, how many."""
    samples: Mapping[int, Sequence[tuple[bool, str, int]]]
    """Samples by run: whether under a rival's rubric, status, how many."""
    probes: Mapping[int, Mapping[str, int]]
    """Probes by run, then by status."""


def _counts(connection: sa.Connection, rows: Sequence[sa.RowMapping]) -> _Counts:
    runs, pools = {row["id"] for row in rows}, {row["pool_id"] for row in rows}
    makers = {row["view_maker"] for row in rows if row["view_maker"]}
    p, v, s, r, n = t.pool_items.c, t.views.c, t.samples.c, t.rubrics.c, sa.func.count()
    of_pools = p.pool_id.in_(pools)
    items = sa.select(p.pool_id, n).where(of_pools).group_by(p.pool_id)
    first = sa.select(p.pool_id, t.evidence.c.pair).join(t.evidence).where(of_pools)
    views = (
        sa.select(p.pool_id, v.maker, v.status, n)
        .join(t.views, v.evidence_id == p.evidence_id)
        .where(of_pools, v.maker.in_(makers))
        .group_by(p.pool_id, v.maker, v.status)
    )
    swap, used_by = t.run_rubrics.c.is_swap, t.run_rubrics.c.run_id
    rubrics = sa.select(used_by, swap, r.status, n).join(t.rubrics).where(used_by.in_(runs))
    samples = sa.select(s.run_id, s.is_swap, s.status, n).where(s.run_id.in_(runs))
    probed = t.probes.c.run_id
    probes = sa.select(probed, t.probes.c.status, n).where(probed.in_(runs))

    by_maker: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
    if makers:
        for pool, maker, status, count in connection.execute(views):
            by_maker[pool, maker][status] = count
    written, scored = defaultdict(list), defaultdict(list)
    for run, *counted in connection.execute(rubrics.group_by(used_by, swap, r.status)):
        written[run].append(tuple(counted))
    for run, *counted in connection.execute(samples.group_by(s.run_id, s.is_swap, s.status)):
        scored[run].append(tuple(counted))
    by_run: dict[int, dict[str, int]] = defaultdict(dict)
    for run, status, count in connection.execute(probes.group_by(probed, t.probes.c.status)):
        by_run[run][status] = count
    return _Counts(
        {pool: count for pool, count in connection.execute(items)},
        {pool: pair for pool, pair in connection.execute(first.where(p.position == 0))},
        by_maker,
        written,
        scored,
        by_run,
    )


def _progress(run: sa.RowMapping, counts: _Counts, event: Event | None) -> Progress:
    items = counts.items.get(run["pool_id"], 0)
    views = counts.views.get((run["pool_id"], run["view_maker"] or ""), {})
    rubrics, samples = counts.rubrics.get(run["id"], ()), counts.samples.get(run["id"], ())
    probes = counts.probes.get(run["id"], {})
    statuses: Counter[str] = Counter()
    for _, status, count in samples:
        statuses[status] += count
    design = complete(run["design"])
    orders = 1
    if counts.paired.get(run["pool_id"]):
        orders = len(Design.of(design).presentation.resolve().flips)
    own = 1 if run["rubric_id"] else design["rubric.draws"]
    rivals = own * len(run["rivals"])
    unseen = sum(count for status, count in views.items() if status != "scored")
    unwritten = {swap: _count(rubrics, swap, lambda status: status != "scored") for swap in SIDES}
    failed = {swap: _count(samples, swap, lambda status: status in UNANSWERED) for swap in SIDES}
    # What has no view or no rubric cannot be scored.
    cells = (items - unseen) * run["samples"] * orders
    return Progress(
        run["id"],
        run["tag"],
        run["series"],
        wanted={
            "evidence": items if run["view_maker"] else 0,
            "rubric": own,
            "score": (own - unwritten[False]) * cells,
            "swap": (rivals - unwritten[True]) * cells,
            "probe": statuses["scored"] if run["probe"] else 0,
        },
        done={
            "evidence": sum(views.values()),
            "rubric": _count(rubrics, False),
            "score": _count(samples, False),
            "swap": _count(samples, True),
            "probe": sum(probes.values()),
        },
        failed={
            "evidence": unseen,
            "rubric": unwritten[False],
            "score": failed[False],
            "swap": unwritten[True] + failed[True],
            "probe": probes.get("provider_error", 0),
        },
        statuses=dict(statuses),
        tolerance=run["tolerance"],
        event=event,
    )


def _count(
    rows: Sequence[tuple[bool, str, int]],
    is_swap: bool,
    keeps: Callable[[str], bool] = lambda status: True,
) -> int:
    return sum(count for swap, status, count in rows if swap == is_swap and keeps(status))


def _with_message(progress: Progress, message: str | None) -> Progress:
    if message is None or progress.event is None:
        return progress
    return replace(progress, event=replace(progress.event, said=message))
