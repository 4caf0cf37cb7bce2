"""Ctrl-C: the first lets calls in flight finish, the second ends at once."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def first_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Lets calls in flight finish on the first Ctrl-C or SIGTERM; the second ends at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt() -> None:
        stop()
        if task is not None:
            for number in SIGNALS:
                loop.add_signal_handler(number, task.cancel)

    for number in SIGNALS:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def run_in_loop(work: Coroutine[Any, Any, T], stop: Callable[[], None] = lambda: None) -> T:
    """Runs a coroutine to its end, also in a notebook, whose thread has a running loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(asyncio.run, work)
        try:
            return future.result()
        except KeyboardInterrupt:
            stop()
            return future.result()
