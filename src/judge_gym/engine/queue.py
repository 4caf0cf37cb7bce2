"""The durable queue of a lab: DBOS in a file beside the lab's, or in the lab's own Postgres.

What DBOS does itself: it keeps what is queued and begun, hands each workflow to one process that
serves its queue and has its version, limits how many of a queue and of a study (its partitions) a
process executes, continues what a process of the same name had begun, and cancels a run with its
shards. What we have beside it, and why:

- Locks, and queueing again the work of a dead process (`liveness`). Only its hosted service knows
  which processes are alive, and `recover_pending_workflows` is private.
- Counting workflows whose end an outage kept from being recorded (`liveness.Sweeper`). DBOS looks
  for them when the process starts again, and a worker may run for months.
- The protocol. It is DBOS' application version, by which older work is left alone; that a command
  gives up such work and continues from the lab's rows is ours (`RunQueue.add`).
- Numbers of workflows (`RunQueue.add`), since an id cannot be used again once its workflow ended.
- Queues by models, endpoints and suite (`capabilities`), which a process serves as they appear.
- Limits of calls, tokens and money (`calls`). DBOS limits how often workflows begin, and one of
  ours makes hundreds of calls.
- The creation of its file (`_create`), which DBOS does in several transactions.
"""

import itertools
import logging
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, WorkflowStatus
from filelock import FileLock

from judge_gym.engine.orders import ANALYSES, Outcome, WorkOrder
from judge_gym.errors import ConflictError
from judge_gym.store import Database
from judge_gym.store.database import create_private

PROTOCOL = "5"
"""The meaning of stored orders, shards and outcomes. It is raised when this version cannot continue
what an older one stored."""
NAME = "judge-gym"
RUNS, SHARDS = "runs", "shards"
AT_ONCE = {RUNS: 8, SHARDS: 4, ANALYSES: 1}
"""How many of each a process executes at once of one study. Few shards, which make for a thousand
calls in flight: what one process has taken the others cannot do."""
STUDIES = 3
"""How many studies a process executes in full at once; what others have taken, a study need not
wait for."""
EVAL_SHARDS_AT_ONCE = 16
"""Shards of a suite that a process executes at once; they hold few evals each."""
POLL = 0.2
"""Seconds between two polls of the queue."""
SERVER_POLL = 0.5
"""Seconds between two polls on a server, where each of many workers polls."""
ACTIVE = ("PENDING", "ENQUEUED")


class RunQueue:
    """The queue, for every process that starts, executes or follows runs."""

    def __init__(self, database: Database) -> None:
        logging.getLogger("dbos").handlers[:] = [logging.NullHandler()]
        self._database = database
        self._poll = POLL if database.file is not None else SERVER_POLL
        # The one process that works on a file executes shards itself (`Workflows._perform_here`).
        self._has_shards = database.file is None
        self.engine = database.sibling_engine("dbos")
        with self._database.plain_errors(self.engine):
            if database.file is not None:
                _create(Path(str(self.engine.url.database)))
            else:
                DBOS.migrate(self.engine.url.render_as_string(hide_password=False))
            self.client = DBOSClient(
                system_database_engine=self.engine,
                serializer=DBOSPortableJSONSerializer(),
                application_name=NAME,
                retry_connection_errors=False,  # it would block for up to a minute at a time
            )
            for name, at_once in AT_ONCE.items():
                if name != SHARDS or self._has_shards:
                    self._register(name, at_once)

    def _register(self, name: str, at_once: int) -> None:
        self.client.register_queue(
            name,
            worker_concurrency=STUDIES * at_once,
            partition_worker_concurrency=at_once,
            polling_interval_sec=self._poll,
            on_conflict="always_update",
        )

    @property
    def protocol(self) -> int:
        """The protocol of this version."""
        return int(PROTOCOL)

    def close(self) -> None:
        """Releases the connections."""
        self.client.destroy()
        self.engine.dispose()

    def config(self, executor: str) -> DBOSConfig:
        """Returns the settings of DBOS for a process that executes what is queued."""
        return DBOSConfig(
            name=NAME,
            system_database_url=self.engine.url.render_as_string(hide_password=False),
            system_database_engine=self.engine,
            application_version=PROTOCOL,
            executor_id=executor,
            log_level="WARNING",
            notification_listener_polling_interval_sec=self._poll,
            serializer=DBOSPortableJSONSerializer(),
        )

    # --- runs ------------------------------------------------------------------------------------

    def add(self, order: WorkOrder) -> tuple[str, bool]:
        """Queues a run, or finds its unfinished workflow; returns its id and whether it is new.

        A run that ended is queued again under the next number, since DBOS keeps how each ended.
        Two processes that queue it at once compute the same number, so that it is one workflow.
        """
        # No lock is needed: the id is computed from what is there, and DBOS ignores an id that it
        # has.
        rows = self._rows(workflow_id_prefix=f"{order.run}.", name="run")
        older = [row for row in rows if row.app_version != PROTOCOL]
        self._give_up([row for row in older if row.status in ACTIVE])
        statuses = {row.workflow_id: row.status for row in rows}
        statuses.update({row.workflow_id: "CANCELLED" for row in older})
        numbered = (f"{order.run}.{number}" for number in itertools.count(1))
        id = next(id for id in numbered if statuses.get(id) in (None, *ACTIVE))
        options: Any = {
            "workflow_name": "run",
            "queue_name": order.queues[0],
            "queue_partition_key": order.study,
            "workflow_id": id,
            "app_version": PROTOCOL,
        }
        with self._database.plain_errors(self.engine):
            self.client.enqueue(options, order.to_json())
        return id, id not in statuses

    def add_analysis(self, number: int) -> None:
        """Queues an analysis of a suite run; only workers serve this queue."""
        options: Any = {
            "workflow_name": "analysis",
            "queue_name": ANALYSES,
            "queue_partition_key": str(number),
            "workflow_id": f"analysis-{number}",
            "app_version": PROTOCOL,
        }
        with self._database.plain_errors(self.engine):
            self.client.enqueue(options, number)

    def add_again(self, run: int) -> None:
        """Queues a run as it was ordered last."""
        if (order := self.last_order(run)) is not None:
            self.add(order)

    def register(self, orders: Iterable[WorkOrder]) -> None:
        """Creates the queues that orders need; it blocks, so no loop may run."""
        needed = {order.queues: order.suite is not None for order in orders}
        with self._database.plain_errors(self.engine):
            for (runs, shards), of_suite in needed.items():
                self._register(runs, AT_ONCE[RUNS])
                if self._has_shards:
                    self._register(shards, shards_at_once(of_suite=of_suite))

    def order(self, id: str) -> WorkOrder:
        """Returns the order of a queued run or shard."""
        [row] = self.client.list_workflows(workflow_ids=[id], load_output=False)
        assert row.input is not None
        return WorkOrder.from_json(row.input["args"][0])

    def active_order(self, run: int) -> WorkOrder | None:
        """Returns the order under which a run is queued or executed; None where it is neither."""
        rows = self._rows(workflow_id_prefix=f"{run}.", name="run", status=list(ACTIVE))
        ids = [row.workflow_id for row in rows if row.app_version == PROTOCOL]
        return self.order(ids[0]) if ids else None

    def last_order(self, run: int) -> WorkOrder | None:
        """Returns the last order of this protocol for a run; None where there is none."""
        rows = self._rows(workflow_id_prefix=f"{run}.", name="run")
        ids = [row.workflow_id for row in rows if row.app_version == PROTOCOL]
        latest = max(ids, key=lambda id: int(id.partition(".")[2]), default=None)
        return self.order(latest) if latest is not None else None

    def unfinished(self) -> dict[str, list[WorkflowStatus]]:
        """Returns the workflows that are queued, or that a process has begun, by queue.

        The latter are among them since that process may be dead.
        """
        unfinished: dict[str, list[WorkflowStatus]] = {}
        for row in self._rows(status=list(ACTIVE)):
            if row.queue_name and row.app_version == PROTOCOL:
                unfinished.setdefault(row.queue_name, []).append(row)
        return unfinished

    def _give_up(self, rows: Sequence[WorkflowStatus]) -> None:
        """Ends workflows of another protocol: the lab's rows show how to continue the runs."""
        for row in rows:
            if self._database.file is None and row.status == "PENDING":
                raise ConflictError(
                    f"run {row.workflow_id} is executed by a worker of another version "
                    f"(protocol {row.app_version}, this one is {PROTOCOL}); stop it first"
                )
        self.drop([row.workflow_id for row in rows])

    def outcomes(self, ids: Collection[str]) -> dict[str, Outcome]:
        """Returns how workflows ended; unfinished ones are left out."""
        ended = {}
        for row in self._rows(workflow_ids=list(ids), load_output=True):
            if row.status == "SUCCESS":
                ended[row.workflow_id] = Outcome(**dict(row.output or {}))
            elif row.status not in ACTIVE:
                message = "the work was ended from outside; the same command continues it"
                ended[row.workflow_id] = Outcome("stopped", message)
        return ended

    def active_runs(self) -> list[str]:
        """Returns the ids of the runs that are queued or executed."""
        return [row.workflow_id for row in self._rows(status=list(ACTIVE), name="run")]

    def executing(self) -> list[WorkflowStatus]:
        """Returns the workflows that processes have started and not ended, analyses included."""
        return self._rows(status=["PENDING"])

    def any_active(self, ids: Collection[str]) -> bool:
        """Whether any of these workflows is queued or executed."""
        return bool(ids) and bool(self._rows(status=list(ACTIVE), workflow_ids=list(ids)))

    def other_versions(self) -> list[WorkflowStatus]:
        """Returns what waits for a worker of another protocol."""
        return [row for row in self._rows(status=list(ACTIVE)) if row.app_version != PROTOCOL]

    def requeue(self, rows: Iterable[WorkflowStatus]) -> None:
        """Queues workflows of a dead process again."""
        by_queue: dict[str, list[str]] = {}
        for row in rows:
            by_queue.setdefault(str(row.queue_name), []).append(row.workflow_id)
        with self._database.plain_errors(self.engine):
            for queue, ids in by_queue.items():
                # By its id, so that the same workflow continues: shards that have ended do not run
                # again.
                self.client.resume_workflows(ids, queue_name=queue)

    def drop(self, runs: Collection[str]) -> None:
        """Ends runs that no process executes, with all of their shards."""
        with self._database.plain_errors(self.engine):
            self.client.cancel_workflows(list(runs), cancel_children=True)

    def drop_waiting(self, ids: Collection[str]) -> None:
        """Removes shards from the queue that no process has started."""
        waiting = self._rows(status=["ENQUEUED"], workflow_ids=list(ids))
        with self._database.plain_errors(self.engine):
            self.client.cancel_workflows([row.workflow_id for row in waiting])

    def _rows(self, *, load_output: bool = False, **chosen: Any) -> list[WorkflowStatus]:
        with self._database.plain_errors(self.engine):
            return self.client.list_workflows(load_input=False, load_output=load_output, **chosen)


def serve_more_queues(dbos: DBOS, names: Sequence[str]) -> None:
    """Serves further queues, within a second, in a process in which DBOS was launched.

    It uses the one private name of DBOS that we know of, because no public one does this: DBOS
    reads this list again every second, but `listen_queues` takes names before the launch only, a
    process that never calls it serves every queue, also those whose models it lacks, and launching
    again would end what is executed here: a study would wait for the slowest call of another.
    """
    if dbos._listening_queues is not None:
        dbos._listening_queues += names


def shards_at_once(*, of_suite: bool) -> int:
    """Returns how many shards of one study, or of a suite run, a process executes at once."""
    return EVAL_SHARDS_AT_ONCE if of_suite else AT_ONCE[SHARDS]


def _create(path: Path) -> None:
    """Creates DBOS's file under another name and moves it into place.

    Its schema is not created in one transaction: a process that is killed meanwhile, or a second
    one that does the same, would leave a file that can never be opened.
    """
    with FileLock(f"{path}.lock"):
        if path.exists():
            return
        # What a killed process left is of no use, since its schema may be half of one.
        new = path.with_name(f"{path.name}.new")
        for left in path.parent.glob(f"{new.name}*"):
            left.unlink()
        create_private(new)
        DBOS.migrate(f"sqlite:///{new}")
        os.replace(new, path)
