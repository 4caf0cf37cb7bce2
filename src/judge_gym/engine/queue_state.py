"""What is queued and what is executed, for those who only show it.

It reads the tables that DBOS documents, since importing DBOS takes longer than most commands that
ask, and opening its client would create what is only to be looked at.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge_gym.engine.orders import run_number
from judge_gym.store import Database

ACTIVE = "status IN ('PENDING', 'ENQUEUED')"


class QueueState:
    """Counts and lists what waits in the queue of a lab and what processes have begun."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def executing(self) -> set[int]:
        """Returns the runs that a process has begun and not ended; negated for suite runs."""
        rows = self._rows(
            "SELECT workflow_uuid FROM workflow_status WHERE name = 'run' AND status = 'PENDING'"
        )
        return {run_number(id) for (id,) in rows}

    def protocols(self) -> dict[int, int]:
        """Returns the protocol under which each run is queued or executed."""
        rows = self._rows(
            "SELECT workflow_uuid, application_version FROM workflow_status "
            f"WHERE name = 'run' AND {ACTIVE}"
        )
        return {run_number(id): int(protocol) for id, protocol in rows}

    def depth(self) -> dict[tuple[str, bool], int]:
        """Returns how many runs, shards and analyses are queued, and how many are executed."""
        rows = self._rows(
            "SELECT name, status, count(*) FROM workflow_status "
            f"WHERE {ACTIVE} GROUP BY name, status"
        )
        return {(name, status == "PENDING"): count for name, status, count in rows}

    def _rows(self, query: str) -> Sequence[Any]:
        """Returns the rows of a query; none before anything was queued."""
        on_file = self._database.file is not None
        engine = self._database.sibling_engine("dbos") if on_file else self._database.engine
        try:
            if on_file and not Path(str(engine.url.database)).exists():
                return []
            with self._database.plain_errors(engine), engine.connect() as connection:
                if not on_file:
                    table = "SELECT to_regclass('dbos.workflow_status')"
                    if connection.exec_driver_sql(table).scalar() is None:
                        return []
                    connection.exec_driver_sql("SET LOCAL search_path TO dbos")
                return connection.exec_driver_sql(query).all()
        finally:
            if on_file:
                engine.dispose()
