"""Keeps processes on one server from paying for the same call at the same time.

A process claims calls in the database before it makes them. What another process has claimed is
awaited: its answer appears in the ledger, or its claim ends with its work or its process.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress

from judge_gym.errors import DatabaseGone
from judge_gym.store import Answer, Claims, Ledger

POLL = 0.5
"""Seconds between two looks at calls that another process makes."""
PATIENCE = 60
"""Looks in a row, a second apart, that may fail because the database is away."""


class ClaimedCalls:
    """Claims the calls of one set of requests; without `claims`, this process is alone.

    Args:
        keys: of the calls.
        claims: of this process.
        ledger: where the answers of others appear.
        refuse: raises why the calls may not be made any more.
    """

    def __init__(
        self,
        keys: Collection[str],
        claims: Claims | None,
        ledger: Ledger,
        refuse: Callable[[], None],
    ) -> None:
        self._claims = claims
        self._ledger = ledger
        self._refuse = refuse
        self._mine: set[str] = set()
        self.answered_by_others: set[str] = set()
        self._settled: dict[str, asyncio.Future[Answer | None]] = {}
        self._task: asyncio.Task[None] | None = None
        if claims is not None and keys:
            loop = asyncio.get_running_loop()
            self._settled = {key: loop.create_future() for key in keys}
            # One task asks for all of them: a query per call would be as many as calls.
            self._task = loop.create_task(self._settle(claims))

    async def other_answer(self, key: str) -> Answer | None:
        """Returns the answer that another process got; None once this one may make the call."""
        return await self._settled[key] if key in self._settled else None

    async def release(self, keys: Collection[str] | None = None) -> None:
        """Releases the claims on calls that were made, or on all."""
        if keys is None and self._task is not None:
            self._task.cancel()
        # Taken out before the thread runs: a second release of the same keys finds nothing to do.
        released = self._mine if keys is None else self._mine & set(keys)
        self._mine = self._mine - released
        if self._claims is not None and released:
            with suppress(DatabaseGone):  # they are released later
                await asyncio.to_thread(self._claims.release, released)

    async def _settle(self, claims: Claims) -> None:
        waiting, missed = set(self._settled), 0
        try:
            while waiting:
                self._refuse()
                try:
                    claimed = await asyncio.to_thread(claims.take, waiting)
                    self._mine |= claimed
                    # After the claim: what another process answered before is there by now.
                    answers = await asyncio.to_thread(self._ledger.find, waiting)
                except DatabaseGone:
                    missed += 1
                    if missed > PATIENCE:
                        raise
                    await asyncio.sleep(1.0)
                    continue
                missed = 0
                # Claimed and answered: the other process recorded its answer and released its claim
                # between our look at the ledger and our claim.
                await self.release(claimed & answers.keys())
                for key in waiting & (claimed | answers.keys()):
                    self._settled[key].set_result(answers.get(key))
                self.answered_by_others |= answers.keys()
                waiting -= claimed | answers.keys()
                if waiting:
                    await asyncio.sleep(POLL)
        except Exception as error:  # it becomes that of each call
            for key in waiting:
                self._settled[key].set_exception(error)
