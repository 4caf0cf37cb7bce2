"""Makes the application."""

from collections.abc import Callable, Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from notes.api import Api


def make_app(
    clock: Callable[[], float], secret: bytes
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    """Returns an application with notes of its own."""
    return Api(clock, secret)
