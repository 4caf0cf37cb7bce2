"""A lock for readers and writers that serves them in the order of their requests."""

import asyncio
from collections import deque


class FairLock:
    """Held by several readers or by one writer."""

    def __init__(self) -> None:
        self._readers = 0
        self._writing = False
        self._queue: deque[tuple[asyncio.Future[None], bool]] = deque()

    @property
    def readers(self) -> int:
        """How many readers hold the lock."""
        return self._readers

    @property
    def writing(self) -> bool:
        """Whether a writer holds the lock."""
        return self._writing

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    async def acquire_read(self) -> None:
        """Waits for a read lock."""
        await self._acquire(write=False)

    async def acquire_write(self) -> None:
        """Waits for the write lock."""
        await self._acquire(write=True)

    def release_read(self) -> None:
        """Gives a read lock back."""
        if not self._readers:
            raise RuntimeError("no reader holds the lock")
        self._readers -= 1
        self._grant()

    def release_write(self) -> None:
        """Gives the write lock back."""
        if not self._writing:
            raise RuntimeError("no writer holds the lock")
        self._writing = False
        self._grant()

    def downgrade(self) -> None:
        """Turns the write lock into a read lock."""
        if not self._writing:
            raise RuntimeError("no writer holds the lock")
        self._writing = False
        self._readers = 1
        self._grant()

    async def _acquire(self, write: bool) -> None:
        if not self._queue and self._allows(write):
            self._take(write)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        request = (granted, write)
        self._queue.append(request)
        try:
            await granted
        except asyncio.CancelledError:
            if request in self._queue:
                self._queue.remove(request)
            elif write:
                self.release_write()
            else:
                self.release_read()
            raise

    def _allows(self, write: bool) -> bool:
        return not self._writing and not (write and self._readers)

    def _take(self, write: bool) -> None:
        if write:
            self._writing = True
        else:
            self._readers += 1

    def _grant(self) -> None:
        while self._queue and self._allows(self._queue[0][1]):
            granted, write = self._queue.popleft()
            self._take(write)
            granted.set_result(None)
