"""A queue that leases jobs, and tries them again if they fail."""

import heapq
import threading
from collections.abc import Callable
from dataclasses import replace

from jobs.model import DuplicateJob, Job, LeaseLost


class Lease:
    """A job that one worker has for some time."""

    def __init__(self, queue: "Queue", job: Job, until: float, order: int) -> None:
        self.job = job
        self.until = until
        self.order = order
        self._queue = queue

    def done(self) -> None:
        """Removes the job."""
        self._queue._end(self, lambda now: None)

    def extend(self) -> None:
        """Makes the lease hold for its full time from now."""
        self._queue._extend(self)

    def fail(self, reason: str) -> None:
        """Counts a failed attempt; the job is tried again or given up."""
        self._queue._end(self, lambda now: self._queue._retry(self, reason, now))

    def reject(self, reason: str) -> None:
        """Counts a failed attempt, and gives the job up."""
        self._queue._end(self, lambda now: self._queue._bury(self, reason))

    def release(self) -> None:
        """Gives the job back as it was."""
        self._queue._end(self, lambda now: self._queue._push(self.job, now, self.order))


class Queue:
    """Jobs that are due at some time, leased to workers, or dead."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        lease: float = 60,
        max_attempts: int = 3,
        backoff: float = 1,
        max_backoff: float = 60,
    ) -> None:
        self._clock = clock
        self._lease = lease
        self._max_attempts = max_attempts
        self._backoff = backoff
        self._max_backoff = max_backoff
        self._lock = threading.RLock()
        self._ids: set[str] = set()
        self._due: list[tuple[float, int, Job]] = []
        self._leases: set[Lease] = set()
        self.dead: list[tuple[Job, str]] = []

    def put(self, job: Job, delay: float = 0) -> None:
        """Adds a job that is due after a delay."""
        with self._lock:
            if job.id in self._ids:
                raise DuplicateJob(f"there is a job {job.id!r} already")
            self._push(job, self._clock() + delay, len(self._ids))
            self._ids.add(job.id)

    def take(self) -> Lease | None:
        """Leases the job that has been due for the longest."""
        with self._lock:
            now = self._clock()
            self._expire(now)
            if not self._due or self._due[0][0] > now:
                return None
            _, order, job = heapq.heappop(self._due)
            lease = Lease(self, job, now + self._lease, order)
            self._leases.add(lease)
            return lease

    def next_due(self) -> float | None:
        """Returns when a job is due, or a lease will be lost."""
        with self._lock:
            self._expire(self._clock())
            times = [lease.until for lease in self._leases]
            if self._due:
                times.append(self._due[0][0])
            return min(times, default=None)

    def _push(self, job: Job, time: float, order: int) -> None:
        heapq.heappush(self._due, (time, order, job))

    def _expire(self, now: float) -> None:
        lost = [lease for lease in self._leases if lease.until <= now]
        for lease in sorted(lost, key=lambda each: (each.until, each.order)):
            self._leases.remove(lease)
            self._retry(lease, "lease expired", now)

    def _check(self, lease: Lease) -> float:
        now = self._clock()
        self._expire(now)
        if lease not in self._leases:
            raise LeaseLost(f"the lease of {lease.job.id!r} has ended")
        return now

    def _extend(self, lease: Lease) -> None:
        with self._lock:
            lease.until = self._check(lease) + self._lease

    def _end(self, lease: Lease, then: Callable[[float], None]) -> None:
        with self._lock:
            now = self._check(lease)
            self._leases.remove(lease)
            then(now)

    def _retry(self, lease: Lease, reason: str, now: float) -> None:
        attempts = lease.job.attempts + 1
        if attempts >= self._max_attempts:
            self._bury(lease, reason)
            return
        pause = min(self._backoff * 2 ** (attempts - 1), self._max_backoff)
        self._push(replace(lease.job, attempts=attempts), now + pause, lease.order)

    def _bury(self, lease: Lease, reason: str) -> None:
        self.dead.append((replace(lease.job, attempts=lease.job.attempts + 1), reason))
