"""Closes connections on which no request arrives."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 20.0
"""How long the head of a request may take to arrive, from its first byte or the connection's."""


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with a time limit on a request's head, which uvicorn (0.54) does not have.

    Without it a client that connects and sends nothing, or half a head, keeps its connection.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Starts the time of the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Starts the time of a request that has begun, and ends it once its head is complete."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the time."""
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
