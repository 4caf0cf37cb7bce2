"""Records attempts in groups: what arrives while one group is written makes the next."""

import asyncio
import threading
import time
from dataclasses import replace

from judge_gym.errors import DatabaseGone, StoreError
from judge_gym.store import Answer, Attempt, Ledger

OUTAGE = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds of the successive waits for a database server that is away."""
LAST_WAIT = 2.0
"""Seconds of the last wait, once the process ends: it must end soon when it is told to."""
PAUSE = 0.01
"""Seconds for which answers are collected before a group is written in one commit. A commit takes
about as long as ten answers in it, and a model much longer than the pause."""


class Recorder:
    """Writes to the ledger in a thread, one group after the other, while other calls proceed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: list[tuple[Attempt, asyncio.Future[Answer]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._ending = threading.Event()

    def end(self) -> None:
        """Shortens the wait for a database server that is away, since the process ends."""
        self._ending.set()

    async def record(self, attempt: Attempt) -> Answer:
        """Returns when the attempt is committed."""
        loop = asyncio.get_running_loop()
        committed: asyncio.Future[Answer] = loop.create_future()
        # The loop is the only one that touches the list: a group is taken from it between two
        # awaits.
        self._waiting.append((attempt, committed))
        if self._writer is None:
            self._writer = loop.create_task(self._write())
        return await committed

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                await asyncio.sleep(PAUSE)
                # Swapped, not copied: what arrives from now on, while the thread writes, is the
                # next group.
                group, self._waiting = self._waiting, []
                # One writer at a time: SQLite has one write lock, and on Postgres two groups that
                # share a text would wait for each other.
                work = loop.run_in_executor(None, self._commit, [attempt for attempt, _ in group])
                results = await asyncio.shield(work)  # a started write is finished
                for (_, committed), result in zip(group, results, strict=True):
                    if committed.done():  # nothing waits for it any more
                        continue
                    if isinstance(result, Answer):
                        committed.set_result(result)
                    else:
                        committed.set_exception(result)
        finally:
            self._writer = None
            if self._waiting:  # the process ends: what was paid for is written all the same
                self._commit([attempt for attempt, _ in self._waiting])

    def _commit(
        self, group: list[Attempt], outage: tuple[float, ...] = OUTAGE
    ) -> list[Answer | Exception]:
        """Writes a group; where one attempt cannot be written, the others are."""
        try:
            return list(self._ledger.record(group, retry=outage != OUTAGE))
        except DatabaseGone as error:  # what is paid for waits until the server is back
            if not outage:
                return [error] * len(group)
            if self._ending.wait(outage[0]):
                time.sleep(LAST_WAIT)
                return self._commit(group, ())
            return self._commit(group, outage[1:])
        except StoreError as error:  # the database itself: none can be written
            return [error] * len(group)
        except Exception as error:  # such as a text that no database accepts
            if len(group) == 1 and group[0].completion is None:
                return [error]
            if len(group) == 1:  # the answer cannot be kept, the attempt can: others go on
                message = f"the answer cannot be stored ({type(error).__name__})"
                failed = replace(group[0], completion=None, error=message)
                return self._commit([failed], outage)
            # The transaction of the group was rolled back as a whole; each attempt is tried alone,
            # so that one text which cannot be stored costs no other its answer.
            return [result for attempt in group for result in self._commit([attempt], outage)]
