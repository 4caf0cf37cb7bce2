"""Who acts: events record it, so that pages and logs say who started, paused or changed a run."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_actor: ContextVar[str] = ContextVar("actor")
_agent: ContextVar[bool] = ContextVar("agent", default=False)


def user_name() -> str:
    """The name of the user of this machine under whom the process runs; empty if unknown."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no entry for its user
        return ""


def machine_user() -> str:
    """Describes the user of this machine under whom the process runs."""
    name = user_name()
    return f"user {name}" if name else "the user of this machine"


def current_actor() -> str:
    """Who acts: the sender of the request that is handled, or the user of this machine."""
    return _actor.get(None) or machine_user()


def by_agent() -> bool:
    """Whether an agent asks, over MCP."""
    return _agent.get()


def act_as(actor: str) -> None:
    """Sets who acts from now on in this task and what it calls."""
    _actor.set(actor)


@contextmanager
def for_agent() -> Iterator[None]:
    """Marks what is asked within the context as asked by an agent."""
    before = _agent.set(True)
    try:
        yield
    finally:
        _agent.reset(before)
