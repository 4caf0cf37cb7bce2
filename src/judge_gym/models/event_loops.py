"""Keeps one resource per event loop, such as a connection, and closes it with the loop."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import AsyncExitStack
from typing import Generic, TypeVar

T = TypeVar("T")
_Place = tuple[asyncio.AbstractEventLoop, Hashable]


class LoopResources(Generic[T]):
    """Resources by event loop and key; a loop that ends closes its own."""

    def __init__(self) -> None:
        self._opened: dict[_Place, tuple[T, AsyncGenerator[T]]] = {}

    async def get(self, open_: Callable[[AsyncExitStack], Awaitable[T]], key: Hashable = None) -> T:
        """Returns the running loop's resource; the first call opens it in the given stack."""
        loop_and_key = (asyncio.get_running_loop(), key)
        if loop_and_key not in self._opened:
            lifetime = self._lifetime(loop_and_key, open_)
            self._opened[loop_and_key] = (await anext(lifetime), lifetime)
        return self._opened[loop_and_key][0]

    async def _lifetime(
        self, place: _Place, open_: Callable[[AsyncExitStack], Awaitable[T]]
    ) -> AsyncGenerator[T]:
        """Holds a resource open until its loop ends, which closes all asynchronous generators.

        It closes them concurrently, so a resource within must not be such a generator.
        """
        try:
            async with AsyncExitStack() as stack:
                yield await open_(stack)
        finally:
            self._opened.pop(place, None)
