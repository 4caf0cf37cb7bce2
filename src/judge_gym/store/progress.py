"""The progress of runs, and why calls failed: derived from rows, mostly from indexes alone."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import sqlalchemy as sa

from judge_gym.axes import RECORDED, Design, complete
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.events import Event, Events
from judge_gym.store.identity import COPY, Identity
from judge_gym.store.in_flight import InFlight
from judge_gym.store.ledger import latest_attempt
from judge_gym.store.locks import SILENCE, count_workers, is_free, running_protocols
from judge_gym.store.verdicts import FAILED

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
"""The statuses of unfinished runs that such an event stopped, until they are started again."""
NO_WORKER = (
    "no worker is running: continue with judge-gym resume, or start a worker with judge-gym worker"
)
STARTING = "a worker is starting"
AFTER_HUNG = "end that process; the next worker, or judge-gym resume, takes up its work"
CHUNK = 10_000
"""Tags per statement; databases limit the number of parameters."""
SWAPS = (False, True)
"""Samples with the judge's own rubric, and with a rival's."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: by workflow, the targets, the finished ones, and the failed calls.

    The number of targets is fixed when the run starts. A target that turns out to need no call,
    such as the probe of a verdict that is not scored, is finished.
    """

    run_id: int
    tag: str
    series: str
    targets: Mapping[str, int]
    done: Mapping[str, int]
    failed: Mapping[str, int]
    statuses: Mapping[str, int]
    """Samples by verdict status."""
    tolerance: float
    event: Event | None = None
    """Its last event."""
    not_needed: Mapping[str, int] = field(default_factory=dict)
    """Of the finished targets, those that need no call."""
    executing: bool = False
    """Whether it was stopped, and calls in flight are still awaited."""

    @property
    def status(self) -> RunStatus:
        """The status, from the last workflow backwards."""
        missing = {name for name in self.targets if self.done[name] < self.targets[name]}
        if self.event is not None and self.event.kind == "started":
            missing |= {name for name in self.targets if self.failed[name]}  # they are asked again
        elif not self._scorable:
            return "failed"
        if not missing and self.failed_share > self.tolerance:
            return "failed"
        if not missing:
            return "complete-with-failures" if any(self.failed.values()) else "complete"
        if self.event is not None and self.event.kind in STOPS:
            return STOPS[self.event.kind]
        if missing == {"probe"}:
            return "probing"
        if any(self.done[name] > self.not_needed.get(name, 0) for name in ("score", "swap")):
            return "scoring"
        # A judge that reads the texts as they are needs no views: its frozen pool is all of W1.
        if "evidence" in missing:
            return "pending"
        return "evidence-done" if "rubric" in missing else "rubric-done"

    @property
    def complete(self) -> bool:
        """Whether every target has its answer, few enough of them failed."""
        return self.status in ("complete", "complete-with-failures")

    @property
    def message(self) -> str:
        """Why it waits, stopped or failed."""
        event = self.event.message if self.event is not None else ""
        if self.status != "failed" or (self.event is not None and self.event.kind == "failed"):
            return event
        if not self._scorable:
            missing = "rubric" if self.failed["rubric"] else "view of an item"
            return f"nothing can be scored: there is no {missing}"
        lost, total = sum(self.failed.values()), self._needed
        return (
            f"{lost} of {total} calls failed, more than the tolerance of "
            f"{100 * self.tolerance:g} %; ask them again with judge-gym retry"
        )

    @property
    def ended(self) -> bool:
        """Whether it is complete or was stopped."""
        return self.status in ("complete", "complete-with-failures", *STOPS.values())

    @property
    def started(self) -> bool:
        """Whether it was started and not stopped since; perhaps it tries an endpoint later."""
        event = self.event
        return event is not None and (event.kind == "started" or "retry_at" in event.detail)

    @property
    def failed_share(self) -> float:
        """The share of targets whose calls failed."""
        return sum(self.failed.values()) / max(1, self._needed)

    @property
    def _scorable(self) -> bool:
        """Whether anything can be scored: there are a rubric and a view."""
        return self.targets["score"] > self.not_needed.get("score", 0)

    @property
    def _needed(self) -> int:
        """Targets that need a call."""
        return sum(self.targets.values()) - sum(self.not_needed.values())


class QueueView(Protocol):
    """What is queued and executed, which the engine knows and the store is given."""

    def executing(self) -> set[int]:
        """Returns the runs that a process has begun and not ended."""
        ...

    def protocols(self) -> dict[int, int]:
        """Returns the protocol under which each run is queued or executed."""
        ...

    def depth(self) -> dict[tuple[str, bool], int]:
        """Returns how many runs, shards and analyses are queued, and how many are executed."""
        ...


class NoQueue:
    """Nothing is queued: of a store that no engine works on."""

    def __init__(self, database: Database) -> None:
        pass

    def executing(self) -> set[int]:
        """Returns nothing."""
        return set()

    def protocols(self) -> dict[int, int]:
        """Returns nothing."""
        return {}

    def depth(self) -> dict[tuple[str, bool], int]:
        """Returns nothing."""
        return {}


class ProgressQueries:
    """Reads the progress of runs, with a number of statements that does not depend on theirs."""

    def __init__(self, database: Database, queue: QueueView) -> None:
        self._database = database
        self._queue = queue
        self._events = Events(database)
        self._identity = Identity(database)
        self._worker_coming: Callable[[], bool] = lambda: False
        self._worker_failing: Callable[[], bool] = lambda: False

    def expect_worker(self, coming: Callable[[], bool], failing: Callable[[], bool]) -> None:
        """Takes from the process that starts workers whether one is coming, and how the last ended.

        Args:
            coming: returns whether a worker was started that is not ready yet.
            failing: returns whether the last worker ended with an error.
        """
        self._worker_coming, self._worker_failing = coming, failing

    def worker_coming(self) -> bool:
        """Returns whether this process has started a worker that is not ready yet."""
        return self._worker_coming()

    def worker_failing(self) -> bool:
        """Returns whether the worker that this process started last ended with an error."""
        return self._worker_failing()

    def of_tag(self, tag: str) -> list[Progress]:
        """Returns the progress of an experiment's runs, newest last, without superseded ones."""
        return self.of_tags([tag])[tag]

    def of_tags(self, tags: Sequence[str]) -> dict[str, list[Progress]]:
        """Returns the progress of experiments' runs by tag, newest last, without superseded ones.

        A run that should continue while no worker takes it has a message that says so.
        """
        by_tag: dict[str, list[Progress]] = {tag: [] for tag in tags}
        for start in range(0, len(tags), CHUNK):
            some = t.tags.c.tag.in_(tags[start : start + CHUNK])
            for progress in self._read(RUNS.where(some, t.runs.c.superseded.is_(None))):
                by_tag[progress.tag].append(progress)
        started = [
            run.run_id for runs in by_tag.values() for run in runs if run.started and not run.ended
        ]
        over_budget = [
            run.run_id for runs in by_tag.values() for run in runs if run.status == "over-budget"
        ]
        changes = self._events.since_state("retuned", over_budget)
        reasons = self.why_waiting(started) | {
            run: f"its limits were changed ({change}): continue with judge-gym resume"
            for run, change in changes.items()
        }
        stopped = [
            run.run_id for runs in by_tag.values() for run in runs if run.status in STOPS.values()
        ]
        executing = self.executing(stopped)
        for runs in by_tag.values():
            runs[:] = [
                replace(
                    _with_message(run, reasons.get(run.run_id)),
                    executing=run.run_id in executing,
                )
                for run in runs
            ]
        return by_tag

    def of_run(self, run_id: int, tag: str) -> Progress:
        """Returns the progress of one run, under the tag that it was started by."""
        [progress] = self._read(ONE_RUN, {"run": run_id, "tag": tag})
        return progress

    def has_worker(self) -> bool:
        """Returns whether a worker is running on the lab."""
        file = self._database.file
        if file is not None:
            return not is_free(file)
        return any(not worker.hung for worker in running_protocols(self._database).values())

    def why_waiting(self, started: Sequence[int]) -> dict[int, str]:
        """Returns why runs wait that were started and have not ended, by (negated suite) run."""
        if not started:
            return {}
        if self._identity.is_copy():
            return dict.fromkeys(started, COPY)
        idle = STARTING if self.worker_coming() else NO_WORKER
        if self._database.file is not None:
            if self.has_worker():
                return self._why_hung(started)
            return dict.fromkeys(started, idle)
        workers = running_protocols(self._database)
        working = {protocol for protocol, worker in workers.items() if not worker.hung}
        if not working:
            hung = [f"the worker {worker}, hangs" for worker in workers.values()]
            return dict.fromkeys(started, "; ".join([*hung, AFTER_HUNG]) if hung else idle)
        running = f"those running are of protocol {', '.join(map(str, sorted(working)))}"
        protocols = self._queue.protocols()
        return self._events.since_state("taken-over", started) | {
            run_id: f"it waits for a worker of protocol {protocols[run_id]}; {running}"
            for run_id in started
            if run_id in protocols and protocols[run_id] not in working
        }

    def _why_hung(self, started: Sequence[int]) -> dict[int, str]:
        """Returns why runs wait whose process on a file makes calls and does not report them."""
        silences = InFlight(self._database).silences()
        hung = [
            f"the worker {name}, silent for {silence:.0f} s, hangs"
            for name, silence in silences.items()
            if silence > SILENCE
        ]
        return dict.fromkeys(started, "; ".join([*hung, AFTER_HUNG])) if hung else {}

    def executing(self, run_ids: Collection[int]) -> set[int]:
        """Returns those of some runs whose workflow a process has begun and not ended.

        Args:
            run_ids: their numbers; negated for a suite run.
        """
        if not run_ids or not self.has_worker():
            return set()
        return self._queue.executing() & set(run_ids)

    def queue_depth(self) -> dict[tuple[str, bool], int]:
        """Returns how many runs, shards and analyses are queued, and how many are executed."""
        return self._queue.depth()

    def count_workers(self) -> int:
        """Returns how many processes execute what is queued."""
        if self._database.file is not None:
            return int(self.has_worker())
        return count_workers(self._database)

    def _read(
        self, query: sa.Select[Any], values: Mapping[str, Any] | None = None
    ) -> list[Progress]:
        with self._database.read() as connection:
            rows = connection.execute(query, values).mappings().all()
        # Before the counts: a run that is read as ended is then never counted as it was before.
        events = {
            run: replace(event, message=event.reason)
            for run, event in self._events.latest_by_run({row["id"] for row in rows}).items()
        }
        with self._database.read() as connection:
            counts = _counts(connection, rows)
        return [_progress(row, counts, events.get(row["id"])) for row in rows]

    def uncriticised(self, run_id: int) -> bool:
        """Returns whether a rubric of a run has no answer of its critic."""
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
        return self._database.first(query.limit(1)) is not None

    def failures(
        self, run_ids: Collection[int], limit: int = 10
    ) -> dict[int, list[dict[str, Any]]]:
        """Returns why calls of runs failed: the numbers of their last errors, by stage."""
        reasons: dict[int, list[dict[str, Any]]] = {id: [] for id in run_ids}
        both = t.samples.c.is_swap.in_(SWAPS)  # so that the index can be used
        for stage, table, conditions in (("score", t.samples, [both]), ("probe", t.probes, [])):
            query = (
                sa.select(table.c.run_id, t.attempts.c.error, sa.func.count().label("count"))
                .select_from(table)
                .join(
                    t.attempts,
                    t.attempts.c.id == latest_attempt(table.c.call_id, completed=False),
                )
                .where(table.c.run_id.in_(run_ids), table.c.status == "provider_error", *conditions)
                .group_by(table.c.run_id, t.attempts.c.error)
                .order_by(sa.func.count().desc())
            )
            counts: Counter[int] = Counter()
            with self._database.read() as connection:
                for run_id, error, count in connection.execute(query):
                    counts[run_id] += 1
                    if counts[run_id] <= limit:
                        reason = {"stage": stage, "reason": error or "unknown", "count": count}
                        reasons[run_id].append(reason)
        return reasons


@dataclass(frozen=True, slots=True)
class _Counts:
    """The numbers of rows of several runs."""

    items: Mapping[int, int]
    """Items by pool."""
    paired: Mapping[int, bool]
    """Whether the items are pairs, by pool."""
    views: Mapping[tuple[int, str], Mapping[str, int]]
    """Views by pool and maker, then by status."""
    rubrics: Mapping[int, Sequence[tuple[bool, str, int]]]
    """Rubrics by run: whether a rival's, status, number."""
    samples: Mapping[int, Sequence[tuple[bool, str, int]]]
    """Samples by run: whether with a rival's rubric, status, number."""
    probes: Mapping[int, Mapping[str, int]]
    """Probes by run, then by status."""


def _statements() -> dict[str, sa.Select[Any]]:
    """Returns the statements of `_counts`, by table."""
    p, v, s, r, n = t.pool_items.c, t.views.c, t.samples.c, t.rubrics.c, sa.func.count()
    runs: sa.BindParameter[Any] = sa.bindparam("runs", expanding=True)
    pools: sa.BindParameter[Any] = sa.bindparam("pools", expanding=True)
    makers: sa.BindParameter[Any] = sa.bindparam("makers", expanding=True)
    swap, used_by, probed = t.run_rubrics.c.is_swap, t.run_rubrics.c.run_id, t.probes.c
    of_pools = p.pool_id.in_(pools)
    return {
        "items": sa.select(p.pool_id, n).where(of_pools).group_by(p.pool_id),
        "paired": sa.select(p.pool_id, t.evidence.c.pair)
        .join(t.evidence)
        .where(of_pools, p.position == 0),
        "views": sa.select(p.pool_id, v.maker, v.status, n)
        .join(t.views, v.evidence_id == p.evidence_id)
        .where(of_pools, v.maker.in_(makers))
        .group_by(p.pool_id, v.maker, v.status),
        "rubrics": sa.select(used_by, swap, r.status, n)
        .join(t.rubrics)
        .where(used_by.in_(runs))
        .group_by(used_by, swap, r.status),
        "samples": sa.select(s.run_id, s.is_swap, s.status, n)
        .where(s.run_id.in_(runs))
        .group_by(s.run_id, s.is_swap, s.status),
        "probes": sa.select(probed.run_id, probed.status, n)
        .where(probed.run_id.in_(runs))
        .group_by(probed.run_id, probed.status),
    }


# Statements are built once, since every step of every run counts what is done.
STATEMENTS = _statements()
RUNS = (
    sa.select(
        t.runs,
        t.tags.c.tag,
        t.experiments.c.pool_id,
        t.experiments.c.design,
        t.experiments.c.rubric_id,
    )
    .join(t.experiments, t.experiments.c.digest == t.runs.c.digest)
    .join(t.tags, t.NAMED_RUNS)
    .order_by(t.runs.c.id)
)
ONE_RUN = RUNS.where(t.runs.c.id == sa.bindparam("run"), t.tags.c.tag == sa.bindparam("tag"))


def _counts(connection: sa.Connection, rows: Sequence[sa.RowMapping]) -> _Counts:
    of_runs = {"runs": [*{row["id"] for row in rows}]}
    of_pools = {"pools": [*{row["pool_id"] for row in rows}]}
    makers = {row["view_maker"] for row in rows if row["view_maker"]}

    by_maker: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
    if makers:
        for pool, maker, status, count in connection.execute(
            STATEMENTS["views"], {**of_pools, "makers": [*makers]}
        ):
            by_maker[pool, maker][status] = count
    written, scored = defaultdict(list), defaultdict(list)
    for run, *counted in connection.execute(STATEMENTS["rubrics"], of_runs):
        written[run].append(tuple(counted))
    for run, *counted in connection.execute(STATEMENTS["samples"], of_runs):
        scored[run].append(tuple(counted))
    by_run: dict[int, dict[str, int]] = defaultdict(dict)
    for run, status, count in connection.execute(STATEMENTS["probes"], of_runs):
        by_run[run][status] = count
    return _Counts(
        {pool: count for pool, count in connection.execute(STATEMENTS["items"], of_pools)},
        {pool: pair for pool, pair in connection.execute(STATEMENTS["paired"], of_pools)},
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
    own_rubrics = 1 if run["rubric_id"] else design["rubric.draws"]
    rivals = own_rubrics * len(run["rivals"])
    no_view = sum(count for status, count in views.items() if status != "scored")
    no_rubric = {swap: _count(rubrics, swap, lambda status: status != "scored") for swap in SWAPS}
    failed = {swap: _count(samples, swap, lambda status: status in FAILED) for swap in SWAPS}
    # Items without a view, and rubrics that were not written, cannot be scored.
    repeats = run["samples"] * orders
    possible = (items - no_view) * repeats
    scores, swaps = own_rubrics * items * repeats, rivals * items * repeats
    if RECORDED in design:  # others chose what was asked, and none of it is missing
        scores = possible = _count(samples, False)
    not_needed = {
        "score": scores - (own_rubrics - no_rubric[False]) * possible,
        "swap": swaps - (rivals - no_rubric[True]) * possible,
    }
    not_scored = sum(statuses.values()) - statuses["scored"]
    not_needed["probe"] = (sum(not_needed.values()) + not_scored) if run["probe"] else 0
    return Progress(
        run["id"],
        run["tag"],
        run["series"],
        targets={
            "evidence": items if run["view_maker"] else 0,
            "rubric": own_rubrics,
            "score": scores,
            "swap": swaps,
            "probe": scores + swaps if run["probe"] else 0,
        },
        done={
            "evidence": sum(views.values()),
            "rubric": _count(rubrics, False),
            "score": _count(samples, False) + not_needed["score"],
            "swap": _count(samples, True) + not_needed["swap"],
            "probe": sum(probes.values()) + not_needed["probe"],
        },
        failed={
            "evidence": no_view,
            "rubric": no_rubric[False],
            "score": failed[False],
            "swap": no_rubric[True] + failed[True],
            "probe": probes.get("provider_error", 0),
        },
        statuses=dict(statuses),
        tolerance=run["tolerance"],
        event=event,
        not_needed=not_needed,
    )


def _count(
    rows: Sequence[tuple[bool, str, int]],
    is_swap: bool,
    condition: Callable[[str], bool] = lambda status: True,
) -> int:
    return sum(count for swap, status, count in rows if swap == is_swap and condition(status))


def _with_message(progress: Progress, message: str | None) -> Progress:
    if message is None or progress.event is None:
        return progress
    return replace(progress, event=replace(progress.event, message=message))
