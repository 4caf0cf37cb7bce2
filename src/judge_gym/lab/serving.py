"""What a server asks of the lab that it serves."""

from judge_gym.errors import ConflictError, NotFoundError, StoreError
from judge_gym.models import Registry
from judge_gym.records.responses import Readiness, WorkerState
from judge_gym.store import LabMetrics, Store
from judge_gym.store.identity import COPY


class Serving:
    """Says whether a lab can be served and written to, and counts its work for monitoring."""

    def __init__(self, store: Store, models: Registry) -> None:
        self._store = store
        self._models = models

    def may_write(self) -> bool:
        """Whether this session may write to the database, which must answer.

        A production database needs a session of that profile.
        """
        database = self._store.database
        return database.profile == "prod" or database.read_profile() != "prod"

    def readiness(self) -> Readiness:
        """Checks whether the lab can serve and execute, and why not, without names or numbers.

        The database must answer, fit this version and be no unconfirmed copy; where anything is
        queued, a worker must be running or about to start.
        """
        progress, reasons = self._store.progress, []
        worker: WorkerState = "not needed"
        try:
            self._store.database.refuse_unfit()
            if self._store.identity.is_copy():
                reasons.append(COPY)
            if progress.has_worker():
                worker = "running"
            elif progress.queue_depth():
                worker = "starting" if progress.worker_coming() else "missing"
        except StoreError:
            reasons.append("the database does not answer")
        except (ConflictError, NotFoundError):
            reasons.append(
                "the database's schema does not fit this version: see 'judge-gym db status'"
            )
        if worker != "not needed" and progress.worker_failing():
            reasons.append("workers end with an error, which their log says, such as a full disk")
        if worker == "missing":
            reasons.append(
                "runs are queued, and no worker is running: start one with 'judge-gym worker'"
            )
        return {"ready": not reasons, "reasons": reasons, "worker": worker}

    def metrics(self) -> LabMetrics:
        """Counts calls with their latency and cost, queued runs and workers."""
        return self._store.metrics.read()

    def refuse_model_paths(self) -> None:
        """Refuses `local:PATH` from now on: who asks may be on another machine."""
        self._models.takes_paths = False
