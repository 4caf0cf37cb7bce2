"""Streams the progress of runs and what happens to them, as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio.to_thread
from fastapi.sse import ServerSentEvent

from judge_gym.errors import BusyError
from judge_gym.lab import Lab
from judge_gym.store import Event
from judge_gym.store.events import STATES

PERIOD = 1.0
"""Seconds between two queries."""
REST_FACTOR = 4
"""After a slow query, the next one waits this many times as long as it took."""
MAX_STREAMS = 200
"""Streams that may be open at once."""
SUITE_RUN = "suite:"
"""The beginning of a target that names a suite run."""
STATUS_KEYS = ("tag", "study", "status", "runs")


@dataclass(slots=True)
class _Snapshot:
    """The last query about a target, shared by all streams that follow it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    rows: Sequence[Mapping[str, Any]] = ()
    started: float = float("-inf")
    """When the query that returned the rows started."""
    fresh_until: float = float("-inf")
    streams: int = 0


class RunWatcher:
    """Queries the lab once for all streams that follow the same target."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._snapshots: dict[str | None, _Snapshot] = {}
        self._closed = False

    def close(self) -> None:
        """Ends every stream before its next query, since the server is about to stop."""
        self._closed = True

    def check_capacity(self) -> None:
        """Raises an error if no further stream may be opened."""
        if sum(snapshot.streams for snapshot in self._snapshots.values()) >= MAX_STREAMS:
            raise BusyError(f"{MAX_STREAMS} event streams are open already", wait=PERIOD)

    def query(self, target: str | None) -> Sequence[Mapping[str, Any]]:
        """Returns the experiments of a study, the one of a tag, or all, with their progress.

        A suite run, `suite:NUMBER`, is returned as an experiment of one run.
        """
        if target is None:
            return self._lab.experiments.list()
        if target.startswith(SUITE_RUN):
            [state] = self._lab.runs.status(target)["runs"]
            run = {**state, "run": -state["run"]}  # as events name it
            return [{"tag": target, "study": None, "status": state["status"], "runs": [run]}]
        rows = self._lab.experiments.list(study=target)
        return rows or [self._lab.experiments.show(target)]

    async def follow(self, target: str | None, after: int) -> AsyncIterator[ServerSentEvent]:
        """Yields a target's events after a given one, and each change of its experiments' status.

        Only events carry an id, so a client that reconnects misses none of them. `end` reports
        that no run is in progress; the stream stays open, since a run may be started again.
        """
        snapshot = self._snapshots.setdefault(target, _Snapshot())
        snapshot.streams += 1
        sent: dict[str, Any] = {}
        last_kind: dict[int, str] = {}
        last_id, ended = 0, False
        try:
            while not self._closed:
                rows = await self._rows(target, snapshot)
                tags = {run["run"]: row["tag"] for row in rows for run in row["runs"]}
                events = await anyio.to_thread.run_sync(self._lab.pages.events, last_id, list(tags))
                events_at = time.monotonic()
                for event in events:
                    last_id = event.id
                    if event.kind in STATES:
                        last_kind[event.run_id] = event.kind
                    if event.id > after:
                        data = _payload(event, tags[event.run_id])
                        yield ServerSentEvent(event="event", id=str(event.id), data=data)
                in_progress = any(last_kind.get(run) in (None, "started") for run in tags)
                ends_now = bool(tags) and not in_progress and not ended
                if ends_now:  # the rows may be older than the last event
                    rows = await self._rows(target, snapshot, since=events_at)
                for row in rows:
                    status = {name: row[name] for name in STATUS_KEYS}
                    if sent.get(row["tag"]) != status:
                        sent[row["tag"]] = status
                        yield ServerSentEvent(event="status", data=status)
                if ends_now:
                    statuses = {row["tag"]: row["status"] for row in rows}
                    yield ServerSentEvent(event="end", data=statuses)
                ended = not in_progress
                await asyncio.sleep(PERIOD)
        finally:
            snapshot.streams -= 1
            if not snapshot.streams:
                self._snapshots.pop(target, None)

    async def _rows(
        self, target: str | None, snapshot: _Snapshot, since: float = float("-inf")
    ) -> Sequence[Mapping[str, Any]]:
        """Returns a target's rows; queries again if they are stale or older than `since`."""
        async with snapshot.lock:
            if snapshot.started < since or time.monotonic() >= snapshot.fresh_until:
                snapshot.started = started = time.monotonic()
                snapshot.rows = await anyio.to_thread.run_sync(self.query, target)
                took = time.monotonic() - started
                snapshot.fresh_until = started + took + max(PERIOD, REST_FACTOR * took) * 0.9
            return snapshot.rows


def _payload(event: Event, tag: str) -> dict[str, Any]:
    return {
        "id": event.id,
        "at": event.at.isoformat(),
        "kind": event.kind,
        "message": event.text,
        "actor": event.actor,
        "run": abs(event.run_id),
        "tag": tag,
    }
