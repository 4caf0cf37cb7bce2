"""What worker processes agree on while they work: who holds how much of a limit or a budget.

On Postgres only; a lab in a file has one process. It is agreed on about once a second, so that
neither a row nor a lock is hot, whatever the number of calls.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from judge_gym.store.database import Database
from judge_gym.store.tables import leases

T = TypeVar("T")

LAPSE = 30.0
"""Seconds after which a process that says nothing is taken to be dead, and holds nothing."""
LOCKS = 7105_002
"""Postgres's number for the locks of scopes; the second number is the scope's."""


class Leases:
    """What this process shares with others.

    Args:
        database: that of the lab.
        holder: the name of this process, which no other has.
    """

    def __init__(self, database: Database, holder: str) -> None:
        self._database = database
        self._holder = holder
        self._held: set[str] = set()
        self.gone: set[str] = set()
        """Processes that are known to be dead: they hold nothing, though they said so just now."""

    def change(
        self,
        scope: str,
        how: Callable[[dict[str, Any], dict[str, Any], Sequence[dict[str, Any]], float], T],
    ) -> T:
        """Change what is shared in a scope, while nobody else does.

        Args:
            scope: what is shared.
            how: is given what all have in common, what this process holds, what each other living
                process holds, and the time in seconds by a clock that all share. It changes the
                first two in place; a process whose part is left empty holds nothing.

        Returns:
            What `how` returns.
        """
        self._held.add(scope)
        with self._database.begin() as connection:
            lock = sa.func.pg_advisory_xact_lock(LOCKS, sa.func.hashtext(scope))
            connection.execute(sa.select(lock))
            time = sa.extract("epoch", sa.func.clock_timestamp()).cast(sa.Float)
            now: float = connection.execute(sa.select(time)).scalar_one()
            kept = connection.scalar(sa.select(leases.c.state).where(leases.c.scope == scope))
            common, parts = (kept or {}).get("common", {}), (kept or {}).get("holders", {})
            mine = parts.pop(self._holder, {})
            living = {
                name: part
                for name, part in parts.items()
                if part["at"] > now - LAPSE and name not in self.gone
            }
            result = how(common, mine, list(living.values()), now)
            if mine:
                living[self._holder] = mine | {"at": now}
            state = {"common": common, "holders": living}
            insert = self._database.insert(leases).values(scope=scope, state=state)
            connection.execute(
                insert.on_conflict_do_update(index_elements=["scope"], set_={"state": state})
            )
        return result

    def holders(self) -> set[str]:
        """The processes that hold anything."""
        with self._database.read() as connection:
            states = connection.scalars(sa.select(leases.c.state)).all()
        return {name for state in states for name in state["holders"]}

    def leave(self) -> None:
        """Hold nothing any more: this process ends."""
        for scope in sorted(self._held):
            self.change(scope, lambda common, mine, others, now: mine.clear())
