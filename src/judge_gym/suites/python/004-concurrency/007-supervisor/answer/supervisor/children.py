"""What is supervised, and what happens to it."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Child:
    """A coroutine that can be started again."""

    name: str
    start: Callable[[], Coroutine[Any, Any, None]]
    restart: Literal["always", "on-failure", "never"] = "always"


@dataclass(frozen=True)
class Event:
    """What happened to a child."""

    kind: Literal["started", "returned", "failed", "stopped"]
    name: str
