"""Asks several servers, one after the other, until one answers."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def hedged(
    attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]],
    delay: float,
    sleep: Callable[[float], Coroutine[Any, Any, None]],
) -> T:
    """Returns the first success; starts another attempt after a delay or a failure."""
    if not attempts:
        return None
    running: dict[asyncio.Task[T], int] = {}
    timers: set[asyncio.Task[None]] = set()
    cancelled: list[asyncio.Task[None]] = []
    errors: dict[int, Exception] = {}
    started = 0

    def start() -> None:
        nonlocal started
        running[asyncio.create_task(attempts[started]())] = started
        started += 1
        for timer in timers:
            timer.cancel()
        cancelled.extend(timers)
        timers.clear()
        if started < len(attempts):
            timers.add(asyncio.create_task(sleep(delay)))

    start()
    try:
        while running:
            tasks: set[asyncio.Task[Any]] = {*running, *timers}
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = sorted((task for task in running if task in done), key=running.__getitem__)
            for task in ended:
                if task.exception() is None:
                    return task.result()
            failures = 0
            for task in ended:
                error = task.exception()
                if isinstance(error, Exception):
                    errors[running.pop(task)] = error
                    failures += 1
                elif error is not None:
                    raise error
            if not failures and timers & done:
                failures = 1
            for _ in range(min(failures, len(attempts) - started)):
                start()
        raise ExceptionGroup("all attempts failed", [errors[index] for index in sorted(errors)])
    finally:
        others: list[asyncio.Task[Any]] = [*running, *timers, *cancelled]
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
