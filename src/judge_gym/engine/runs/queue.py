"""The durable queue of a lab: DBOS in a file beside the lab's, or in the lab's own Postgres."""

import itertools
import logging
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, WorkflowStatus
from filelock import FileLock

from judge_gym.engine.runs.orders import Outcome, WorkOrder
from judge_gym.errors import ConflictError
from judge_gym.store import Database

PROTOCOL = "1"
"""What a run's workflow and its shards mean; it changes when an older one cannot be continued."""
NAME = "judge-gym"
RUNS, SHARDS = "runs", "shards"
AT_ONCE = {RUNS: 8, SHARDS: 4}
"""How many of each a process carries out side by side: of shards no more than a thousand calls in
flight need, since what one has taken the others cannot do."""
POLL = 0.2
"""Seconds between looks at the queue."""
ACTIVE = ("PENDING", "ENQUEUED")


class RunQueue:
    """The queue, for whoever starts, follows or steers runs."""

    def __init__(self, database: Database) -> None:
        logging.getLogger("dbos").handlers[:] = [logging.NullHandler()]
        self._database = database
        self.engine = database.beside("dbos")
        with self._database.plainly():
            if database.file is not None:
                _make(Path(str(self.engine.url.database)))
            else:
                DBOS.migrate(self.engine.url.render_as_string(hide_password=False))
            self.client = DBOSClient(
                system_database_engine=self.engine,
                serializer=DBOSPortableJSONSerializer(),
                application_name=NAME,
                retry_connection_errors=False,  # it would block for up to a minute at a time
            )
            for queue in (RUNS, SHARDS):
                self.client.register_queue(
                    queue,
                    worker_concurrency=AT_ONCE[queue],
                    polling_interval_sec=POLL,
                    on_conflict="always_update",
                )

    @property
    def protocol(self) -> int:
        """That of this version."""
        return int(PROTOCOL)

    def close(self) -> None:
        """Release the connections."""
        self.client.destroy()
        self.engine.dispose()

    def config(self, executor: str) -> DBOSConfig:
        """DBOS for a process that carries out what is queued."""
        return DBOSConfig(
            name=NAME,
            system_database_url=self.engine.url.render_as_string(hide_password=False),
            system_database_engine=self.engine,
            application_version=PROTOCOL,
            executor_id=executor,
            log_level="WARNING",
            notification_listener_polling_interval_sec=POLL,
            serializer=DBOSPortableJSONSerializer(),
        )

    # --- runs ------------------------------------------------------------------------------------

    def begin(self, order: WorkOrder) -> tuple[str, bool]:
        """Queue a run, or find the work on it that goes on; its id, and whether it is new.

        A run that ended is begun again under the next number, since DBOS keeps how each ended.
        Two who begin at once compute the same number, and so it is one.
        """
        rows = self._rows(workflow_id_prefix=f"{order.run}.", name="run")
        strange = [row for row in rows if row.app_version != PROTOCOL]
        self._give_up([row for row in strange if row.status in ACTIVE])
        known = {row.workflow_id: row.status for row in rows}
        known.update({row.workflow_id: "CANCELLED" for row in strange})
        numbered = (f"{order.run}.{number}" for number in itertools.count(1))
        id = next(id for id in numbered if known.get(id) in (None, *ACTIVE))
        options: Any = {
            "workflow_name": "run",
            "queue_name": RUNS,
            "workflow_id": id,
            "app_version": PROTOCOL,
        }
        with self._database.plainly():
            self.client.enqueue(options, order.to_json())
        return id, id not in known

    def order(self, id: str) -> WorkOrder:
        """What was ordered of a run."""
        [row] = self.client.list_workflows(workflow_ids=[id], load_output=False)
        assert row.input is not None
        return WorkOrder.of(row.input["args"][0])

    def _give_up(self, rows: Sequence[WorkflowStatus]) -> None:
        """End what was begun under another protocol: the rows say how to go on from there."""
        for row in rows:
            if self._database.file is None and row.status == "PENDING":
                raise ConflictError(
                    f"run {row.workflow_id} is carried out by a worker of another version "
                    f"(protocol {row.app_version}, this one is {PROTOCOL}); end it first"
                )
        self.drop([row.workflow_id for row in rows])

    def outcomes(self, ids: Collection[str]) -> dict[str, Outcome]:
        """How runs ended; those that go on are left out."""
        found = {}
        for row in self._rows(workflow_ids=list(ids), load_output=True):
            if row.status == "SUCCESS":
                found[row.workflow_id] = Outcome(**dict(row.output or {}))
            elif row.status not in ACTIVE:
                said = "the work was ended from outside; the same command goes on"
                found[row.workflow_id] = Outcome("stopped", said)
        return found

    def active(self, *, executor: str | None = None) -> list[WorkflowStatus]:
        """What was begun and has not ended, in one process or in all."""
        rows = self._rows(status=["PENDING"])
        return [row for row in rows if executor in (None, row.executor_id)]

    def goes_on(self, ids: Collection[str]) -> bool:
        """Whether any of some workflows is queued or carried out."""
        return bool(ids) and bool(self._rows(status=list(ACTIVE), workflow_ids=list(ids)))

    def idle(self) -> bool:
        """Whether nothing waits or goes on that this protocol can carry out."""
        rows = self._rows(status=list(ACTIVE))
        return all(row.app_version != PROTOCOL for row in rows)

    def strange(self) -> list[WorkflowStatus]:
        """What waits for a worker of another protocol."""
        return [row for row in self._rows(status=list(ACTIVE)) if row.app_version != PROTOCOL]

    def again(self, rows: Iterable[WorkflowStatus]) -> None:
        """Queue what a dead process was at."""
        for queue, name in ((RUNS, "run"), (SHARDS, "shard")):
            ids = [row.workflow_id for row in rows if row.name == name]
            if ids:
                with self._database.plainly():
                    self.client.resume_workflows(ids, queue_name=queue)

    def drop(self, runs: Collection[str]) -> None:
        """End the work on runs that nobody is at, with all of its shards."""
        for run in runs:
            shards = self._rows(status=list(ACTIVE), workflow_id_prefix=f"{run}/")
            self._cancel([run, *(row.workflow_id for row in shards)])

    def drop_waiting(self, ids: Collection[str]) -> None:
        """Take shards off the queue that nobody has begun."""
        waiting = self._rows(status=["ENQUEUED"], workflow_ids=list(ids))
        self._cancel([row.workflow_id for row in waiting])

    def _cancel(self, ids: list[str]) -> None:
        with self._database.plainly():
            self.client.cancel_workflows(ids)

    def _rows(self, *, load_output: bool = False, **chosen: Any) -> list[WorkflowStatus]:
        with self._database.plainly():
            return self.client.list_workflows(load_input=False, load_output=load_output, **chosen)


def parent(id: str) -> str:
    """The run that a shard belongs to.

    >>> parent("7.1/score/3"), parent("7.1")
    ('7.1', '7.1')
    """
    return id.partition("/")[0]


def _make(path: Path) -> None:
    """Make DBOS's file aside and move it into its place.

    Its schema is not made in one transaction: a process that is killed meanwhile, or a second one
    that is at it too, would leave a file that can never be opened.
    """
    with FileLock(f"{path}.lock"):
        if path.exists():
            return
        new = path.with_name(f"{path.name}.new")
        for left in path.parent.glob(f"{new.name}*"):
            left.unlink()
        DBOS.migrate(f"sqlite:///{new}")
        os.replace(new, path)
