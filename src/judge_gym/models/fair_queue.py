"""Lets payers take turns: what one waits for does not stand behind all that another waits for."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items of payers, taken from each payer in turn.

    >>> queue = FairQueue()
    >>> for payer, item in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5)]:
    ...     queue.append(payer, item)
    >>> list(queue), [queue.popleft() for _ in range(len(queue))]
    ([1, 4, 2, 5, 3], [1, 4, 2, 5, 3])
    """

    def __init__(self) -> None:
        self._payers: dict[str, deque[T]] = {}
        """In the order of their turns; a payer without an item is not among them."""

    def append(self, payer: str, item: T) -> None:
        """Adds an item behind those of the same payer."""
        self._payers.setdefault(payer, deque()).append(item)

    def popleft(self) -> T:
        """Removes and returns the next item; the next turn of its payer is the last."""
        payer = next(iter(self._payers))
        items = self._payers.pop(payer)
        item = items.popleft()
        if items:
            self._payers[payer] = items
        return item

    def remove(self, item: T) -> None:
        """Removes an item that is here, and gives its payer's turn away as if it was taken."""
        payer = next(payer for payer, items in self._payers.items() if item in items)
        items = self._payers.pop(payer)
        items.remove(item)
        if items:
            self._payers[payer] = items

    def __contains__(self, item: T) -> bool:
        return any(item in items for items in self._payers.values())

    def __iter__(self) -> Iterator[T]:
        left = [iter(items) for items in self._payers.values()]
        while left:
            turn, left = left, []
            for items in turn:
                for item in items:
                    yield item
                    left.append(items)
                    break

    def __bool__(self) -> bool:
        return bool(self._payers)

    def __len__(self) -> int:
        return sum(map(len, self._payers.values()))


class Slots:
    """A number of slots that calls hold while they are in flight, each payer in turn.

    Args:
        limit: the number, which may be changed, followed by `fill`.
        on_wait: called when a call has to wait, and none did before.
    """

    def __init__(self, limit: int, on_wait: Callable[[], None] = lambda: None) -> None:
        self.limit = limit
        self.in_flight = 0
        self.waiting: FairQueue[asyncio.Future[None]] = FairQueue()
        self._on_wait = on_wait

    def hold(self, payer: str = "") -> "_Held":
        """Returns a context that holds a slot, and waits for it where none is free."""
        return _Held(self, payer)

    async def take(self, payer: str) -> None:
        """Takes a slot, and waits for it where none is free."""
        if self.in_flight < self.limit and not self.waiting:
            self.in_flight += 1
            return
        slot = asyncio.get_running_loop().create_future()
        first = not self.waiting
        self.waiting.append(payer, slot)
        if first:
            self._on_wait()
        try:
            await slot
        except asyncio.CancelledError:
            if slot in self.waiting:
                self.waiting.remove(slot)
            elif not slot.cancelled():  # it was free already
                self.give_back()
            raise

    def give_back(self) -> None:
        """Gives a slot back, to a call that waits if there is one."""
        self.in_flight -= 1
        self.fill()

    def fill(self) -> None:
        """Gives free slots to calls that wait."""
        while self.waiting and self.in_flight < self.limit:
            slot = self.waiting.popleft()
            if not slot.done():  # otherwise the call was cancelled
                self.in_flight += 1
                slot.set_result(None)

    def fail(self, error: Exception) -> None:
        """Ends the calls that wait with an error."""
        while self.waiting:
            slot = self.waiting.popleft()
            if not slot.done():
                slot.set_exception(error)


class _Held:
    """A slot of a payer; a class, since every call enters two, and a generator takes longer."""

    __slots__ = ("_payer", "_slots")

    def __init__(self, slots: Slots, payer: str) -> None:
        self._slots = slots
        self._payer = payer

    async def __aenter__(self) -> None:
        await self._slots.take(self._payer)

    async def __aexit__(self, *_: object) -> None:
        self._slots.give_back()
