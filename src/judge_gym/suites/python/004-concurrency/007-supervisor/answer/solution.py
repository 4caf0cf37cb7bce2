"""The supervisor's names."""

from supervisor import Child, Event, Supervisor, TooManyRestarts

__all__ = ["Child", "Event", "Supervisor", "TooManyRestarts"]
