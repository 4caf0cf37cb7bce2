"""Decides which queues this process can serve: those whose models and suite it has.

Each order names the models that it calls and where, and a suite run its suite. Orders that need the
same share queues, which only processes serve that have all of it: an endpoint that is configured
here, a key that is set, a suite at the run's version. Other orders are left to other workers.
"""

import time
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from judge_gym.engine.calls.ask import Models
from judge_gym.engine.orders import ANALYSES, WorkOrder
from judge_gym.errors import DesignError
from judge_gym.store import Store

if TYPE_CHECKING:
    from judge_gym.engine.queue import RunQueue
    from judge_gym.engine.suites import SuiteFinder

LOOK_AGAIN = 10.0
"""Seconds after which a queue that could not be served is examined again."""


class Capabilities:
    """What this process can execute."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store = store
        self._models = models
        self._refused: dict[str, tuple[float, str]] = {}
        """The queues that cannot be served, each with when to look again, and why."""

    @cached_property
    def suites(self) -> "SuiteFinder":
        """The suites on this machine."""
        from judge_gym.engine.suites import SuiteFinder

        return SuiteFinder()

    def look(
        self, queue: "RunQueue", served: Collection[str] = ()
    ) -> tuple[list[str], dict[int, str], bool]:
        """Looks at the queues with unfinished work, beside those that a process serves already.

        Returns:
            The further queues that this process can serve; by run, why it cannot serve those of
            the others that no process has started; and whether anything is unfinished, in any
            process, that this one can execute.
        """
        able: list[str] = []
        reasons: dict[int, str] = {}
        unfinished = queue.unfinished()
        for name, rows in unfinished.items():
            if name in served or name in able or name == ANALYSES:
                continue
            until, reason = self._refused.get(name, (0.0, ""))
            if time.monotonic() >= until:
                order = queue.order(rows[0].workflow_id)  # the others of the queue need the same
                reason = self._refusal(order)
                if not reason:
                    able += order.queues
                    continue
                self._refused[name] = (time.monotonic() + LOOK_AGAIN, reason)
            for row in rows:
                if row.name == "run" and row.status == "ENQUEUED":
                    reasons[int(row.workflow_id.partition(".")[0])] = reason
        return able, reasons, not unfinished.keys().isdisjoint([*served, *able])

    def _refusal(self, order: WorkOrder) -> str:
        """Returns why this process cannot execute an order; empty where it can."""
        try:
            for model, endpoint in order.models.items():
                card = self._models.card(model)
                if card.endpoint != endpoint:
                    return f"{model} is ordered at {endpoint}, and here it is at {card.endpoint}"
                if not order.offline:
                    self._models.open(model)
            if order.suite is not None:
                self.suites.find(self._store.suites.find_run(-order.run), order.suite)
        except DesignError as error:
            return error.message
        return ""
