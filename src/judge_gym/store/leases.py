"""Leases: the parts of limits and budgets that worker processes hold.

They exist on Postgres only; a lab in a file has one process. Processes renew them about once a
second, whatever the number of calls.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from judge_gym.store.database import Database
from judge_gym.store.tables import leases

T = TypeVar("T")

LAPSE = 30.0
"""Seconds without a renewal after which a process counts as dead and holds nothing."""
LOCKS = 7105_002
"""The first number of the Postgres advisory locks of scopes."""


class Leases:
    """The leases of one process.

    Args:
        database: of the lab.
        holder: the unique name of this process.
    """

    def __init__(self, database: Database, holder: str) -> None:
        self._database = database
        self._holder = holder
        self._held: set[str] = set()
        self.dead: set[str] = set()
        """Processes that are known to be dead, and hold nothing even if they renewed just now."""

    def change(
        self,
        scope: str,
        function: Callable[[dict[str, Any], dict[str, Any], Sequence[dict[str, Any]], float], T],
    ) -> T:
        """Changes the leases of a scope under its lock, and returns the function's result.

        Args:
            scope: the name of what is shared.
            function: called with the common state, the state of this process, the states of the
                other living processes, and the server's time in seconds. It changes the first two
                in place; a process with an empty state holds nothing.
        """
        self._held.add(scope)
        with self._database.begin() as connection:
            lock = sa.func.pg_advisory_xact_lock(LOCKS, sa.func.hashtext(scope))
            connection.execute(sa.select(lock))
            # The clock of the server, since those of the processes differ.
            time = sa.extract("epoch", sa.func.clock_timestamp()).cast(sa.Float)
            now: float = connection.execute(sa.select(time)).scalar_one()
            stored = (
                connection.scalar(sa.select(leases.c.state).where(leases.c.scope == scope)) or {}
            )
            common, holders = stored.get("common", {}), stored.get("holders", {})
            # Read under the lock of the scope, which is held until the commit: rounds of all
            # processes come one after the other, so that each sees what the last one took.
            mine = holders.pop(self._holder, {})
            living = {
                name: lease
                for name, lease in holders.items()
                if lease["at"] > now - LAPSE and name not in self.dead
            }
            result = function(common, mine, list(living.values()), now)
            if mine:
                living[self._holder] = mine | {"at": now}
            new = {"state": {"common": common, "holders": living}}
            insert = self._database.insert(leases).values(scope=scope, **new)
            connection.execute(insert.on_conflict_do_update(index_elements=["scope"], set_=new))
        return result

    def holders(self) -> set[str]:
        """Returns the processes that hold anything."""
        states = self._database.scalars(sa.select(leases.c.state))
        return {name for state in states for name in state["holders"]}

    def release(self) -> None:
        """Releases everything that this process holds."""
        # In order, so that two processes that end at once cannot wait for each other.
        for scope in sorted(self._held):
            self.change(scope, lambda common, mine, others, now: mine.clear())
