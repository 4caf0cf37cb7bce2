"""Jobs, and what can go wrong with them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """Something to do, and how often it has failed."""

    id: str
    kind: str
    payload: dict[str, Any]
    attempts: int = 0


class DuplicateJob(ValueError):
    """A job's id was used before."""


class LeaseLost(RuntimeError):
    """A lease has expired or has ended."""


class Reject(Exception):
    """Raised by a handler for a job that must not be tried again."""
