"""What goes on, live: how runs stand and what happens to them, as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio.to_thread
from fastapi.sse import ServerSentEvent

from judge_gym.errors import BusyError
from judge_gym.lab import Lab
from judge_gym.store import Event

PERIOD = 1.0
"""Seconds between two looks."""
SHARE = 4
"""A look that takes long is followed by a rest so many times as long."""
WATCHERS = 200
"""So many may watch at once."""
KEPT = ("tag", "study", "status", "runs")


@dataclass(slots=True)
class _Sight:
    """What was seen of a target, for all who watch it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    rows: Sequence[Mapping[str, Any]] = ()
    looked: float = float("-inf")
    """When the look began that found the rows."""
    fresh_until: float = float("-inf")
    watchers: int = 0


class Watch:
    """Looks at the lab once for however many who watch the same.

    Args:
        lab: what is watched.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._sights: dict[str | None, _Sight] = {}
        self._over = False

    def close(self) -> None:
        """End all streams, each at its next look: the server is about to end."""
        self._over = True

    def refuse_crowd(self) -> None:
        """Refuse one more where many watch already."""
        if sum(sight.watchers for sight in self._sights.values()) >= WATCHERS:
            raise BusyError(f"{WATCHERS} watch already", wait=PERIOD)

    def look(self, target: str | None) -> Sequence[Mapping[str, Any]]:
        """Experiments of a study, the one of a tag, or all, with how far their runs are."""
        if target is None:
            return self._lab.experiments.list()
        rows = self._lab.experiments.list(study=target)
        return rows or [self._lab.experiments.show(target)]

    async def follow(self, target: str | None, after: int) -> AsyncIterator[ServerSentEvent]:
        """Events of a target's runs after one, and how its experiments stand whenever it changes.

        Only events carry an id, and so a client that comes back misses none of them. `end` says
        that nothing goes on any more; the stream stays, since something may be started again.
        """
        sight = self._sights.setdefault(target, _Sight())
        sight.watchers += 1
        shown: dict[str, Any] = {}
        stands: dict[int, str] = {}
        heard, ended = 0, False
        try:
            while not self._over:
                rows = await self._seen(target, sight)
                tags = {run["run"]: row["tag"] for row in rows for run in row["runs"]}
                events = await anyio.to_thread.run_sync(self._since, heard, list(tags))
                heard_at = time.monotonic()
                for event in events:
                    heard = event.id
                    if event.kind != "retuned":
                        stands[event.run_id] = event.kind
                    if event.id > after:
                        data = _told(event, tags[event.run_id])
                        yield ServerSentEvent(event="event", id=str(event.id), data=data)
                going = [run for run in tags if stands.get(run) in (None, "started")]
                ends_now = bool(tags) and not going and not ended
                if ends_now:  # the rows may be older than the event that says so
                    rows = await self._seen(target, sight, since=heard_at)
                for row in rows:
                    told = {name: row[name] for name in KEPT}
                    if shown.get(row["tag"]) != told:
                        shown[row["tag"]] = told
                        yield ServerSentEvent(event="status", data=told)
                if ends_now:
                    statuses = {row["tag"]: row["status"] for row in rows}
                    yield ServerSentEvent(event="end", data=statuses)
                ended = not going
                await asyncio.sleep(PERIOD)
        finally:
            sight.watchers -= 1
            if not sight.watchers:
                self._sights.pop(target, None)

    def _since(self, heard: int, runs: Collection[int]) -> Sequence[Event]:
        return self._lab.runs.events(heard, runs)

    async def _seen(
        self, target: str | None, sight: _Sight, since: float = float("-inf")
    ) -> Sequence[Mapping[str, Any]]:
        """Returns the target's rows from the last look, or from a new one if that is stale.

        Args:
            target: what is watched.
            sight: its last look.
            since: a look that began earlier is stale, however recent.
        """
        async with sight.lock:
            if sight.looked < since or time.monotonic() >= sight.fresh_until:
                sight.looked = began = time.monotonic()
                sight.rows = await anyio.to_thread.run_sync(self.look, target)
                took = time.monotonic() - began
                sight.fresh_until = began + took + max(PERIOD, SHARE * took) * 0.9
            return sight.rows


def _told(event: Event, tag: str) -> dict[str, Any]:
    return {
        "id": event.id,
        "at": event.at.isoformat(),
        "kind": event.kind,
        "message": event.message,
        "run": event.run_id,
        "tag": tag,
    }
