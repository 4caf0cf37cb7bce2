"""Runs children, and restarts those that end."""

from supervisor.children import Child, Event
from supervisor.tree import Supervisor, TooManyRestarts

__all__ = ["Child", "Event", "Supervisor", "TooManyRestarts"]
