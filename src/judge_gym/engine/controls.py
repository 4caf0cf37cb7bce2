"""Applies to this process what commands say about runs: pause, cancel, start again, new limits.

A command writes an event, and every process that executes the run reads it within a second. The
latest event of a run decides, whoever executes it.
"""

import asyncio
import time
from collections import Counter

from judge_gym.engine.calls.ask import Asker
from judge_gym.engine.calls.stopped import Stopped
from judge_gym.engine.orders import Cancelled, Paused
from judge_gym.errors import DatabaseFull, DatabaseGone
from judge_gym.store import Event, Store

LISTEN = 0.5
"""Seconds between two queries of the events of runs."""
REPORT = 1.0
"""Seconds between two reports of the calls in flight."""


class Controls:
    """Follows the events of the runs that this process executes."""

    def __init__(self, store: Store, asker: Asker, worker: str) -> None:
        self._store = store
        self._asker = asker
        self._worker = worker
        self._last_event = 0
        self._applied: dict[int, int] = {}
        """The last event that was applied, by run."""

    def start(self) -> None:
        """Notes where the events begin that `listen` reads.

        It must be called before any run is taken up, or an event between the two would be missed.
        """
        # An event is read twice rather than never; `_apply` knows the second time.
        self._last_event = self._store.events.last_id()

    def take_up(self, run_id: int, *, again: bool) -> None:
        """Applies the latest event of a run and the budgets as they are; `listen` the later ones.

        Raises:
            Paused: or Cancelled, even where others have paid for all answers of the run.
        """
        # A command may have raised the budget without an event that this process applied.
        self._asker.reload_budgets()
        if again or run_id not in self._applied or self._asker.stopped(run_id):
            latest = self._store.events.latest(run_id)
            if latest is not None and latest.kind == "waiting":
                # For a process like this one, or for an endpoint that is tried again now.
                detail = {"trial": latest.detail} if "endpoint" in latest.detail else {}
                message = f"taken up by {self._worker}"
                self._store.events.record([run_id], "started", message, detail)
                latest = self._store.events.latest(run_id)
            # From now on `listen` asks for its events: nothing lies between the two queries.
            self._applied.setdefault(run_id, 0)
            if latest is not None:
                self._apply(latest)
        if isinstance(held := self._asker.held(run_id), Paused | Cancelled):
            # A command that is interrupted records a pause, and ends as interrupted all the same.
            ending = self._asker.error
            raise ending if isinstance(ending, Stopped) else held

    async def listen(self) -> None:
        """Applies events as they come, and reports the calls in flight, until it is cancelled."""
        reported, due = Counter[tuple[str, str]](), 0.0
        while True:
            await asyncio.sleep(LISTEN)
            try:
                calls = +self._asker.begun
                if (calls or reported) and time.monotonic() >= due:
                    reported, due = calls, time.monotonic() + REPORT
                    await asyncio.to_thread(self._store.in_flight.report, self._worker, calls)
                since, runs = self._last_event, set(self._applied)
                for event in await asyncio.to_thread(self._store.events.since, since, runs):
                    # One by one: if applying one fails, the next look begins with it again.
                    self._last_event = event.id
                    self._apply(event)
            except DatabaseGone:
                continue
            except DatabaseFull as error:
                self._asker.stop(error)

    def _apply(self, event: Event) -> None:
        # `take_up` and `listen` may both read an event; an older one must not undo a later one.
        if event.id <= self._applied[event.run_id]:
            return
        self._applied[event.run_id] = event.id
        match event.kind:
            case "paused":
                self._asker.hold(event.run_id, Paused(event.message or "paused"))
            case "cancelled":
                self._asker.hold(event.run_id, Cancelled(event.message or "cancelled"))
            case "started":
                self._asker.release(event.run_id, event.detail.get("trial"))
            case "retuned":
                self._asker.retune(event.detail)
