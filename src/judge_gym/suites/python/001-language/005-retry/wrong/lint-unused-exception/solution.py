"""Trying again."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def retry(
    times: int, *on: type[BaseException]
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Call a function again while it raises one of the named exceptions."""
    if times < 1:
        raise ValueError(f"a function is called at least once, not {times} times")

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @wraps(function)
        def again(*args: Any, **kwargs: Any) -> T:
            for _ in range(times - 1):
                try:
                    return function(*args, **kwargs)
                except on as fault:
                    continue
            return function(*args, **kwargs)

        return again

    return decorate
