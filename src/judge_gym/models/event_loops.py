"""Keeps one resource per event loop, such as a connection, and closes it with the loop."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

T = TypeVar("T")
_Place = tuple[asyncio.AbstractEventLoop, Hashable]


class LoopResources(Generic[T]):
    """Resources by event loop and key; a loop that ends closes its own."""

    def __init__(self) -> None:
        self._opened: dict[_Place, tuple[T, AsyncGenerator[T]]] = {}

    async def get(
        self, open_: Callable[[], AbstractAsyncContextManager[T]], key: Hashable = None
    ) -> T:
        """Returns the running loop's resource, opened by the first call."""
        place = (asyncio.get_running_loop(), key)
        if place not in self._opened:
            lifetime = self._lifetime(place, open_)
            self._opened[place] = (await anext(lifetime), lifetime)
        return self._opened[place][0]

    async def _lifetime(
        self, place: _Place, open_: Callable[[], AbstractAsyncContextManager[T]]
    ) -> AsyncGenerator[T]:
        """Holds a resource open: a loop that ends closes its asynchronous generators."""
        try:
            async with open_() as resource:
                yield resource
        finally:
            self._opened.pop(place, None)
