"""Runs jobs by handlers."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from jobs.model import LeaseLost, Reject
from jobs.queue import Queue


class Worker:
    """Takes jobs from a queue, one at a time."""

    def __init__(
        self, queue: Queue, handlers: Mapping[str, Callable[[dict[str, Any]], None]]
    ) -> None:
        self._queue = queue
        self._handlers = handlers

    def run_once(self) -> bool:
        """Runs a job, if one is due; returns whether there was one."""
        lease = self._queue.take()
        if lease is None:
            return False
        job = lease.job
        with suppress(LeaseLost):
            handler = self._handlers.get(job.kind)
            if handler is None:
                lease.reject(f"no handler for {job.kind}")
                return True
            try:
                handler(job.payload)
            except Reject as error:
                lease.reject(str(error))
            except Exception as error:
                lease.fail(f"{type(error).__name__}: {error}")
            except BaseException:
                with suppress(LeaseLost):
                    lease.release()
                raise
            else:
                lease.done()
        return True
