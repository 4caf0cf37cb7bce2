"""Who may work on a lab: on a file one process, held by a lock beside it."""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from judge_gym.errors import ConflictError
from judge_gym.store import Database


class Taken(ConflictError):
    """Another process is at work."""


@contextmanager
def lab_lock(database: Database) -> Iterator[None]:
    """Work on a lab; refused at once where another process does."""
    try:
        with FileLock(f"{database.file}.lock").acquire(timeout=0):
            yield
    except Timeout:
        raise Taken(
            f"another judge-gym is at work on {database.shown}; wait for it or stop it"
        ) from None
