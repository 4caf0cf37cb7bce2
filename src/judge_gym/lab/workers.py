"""The processes that execute queued runs."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from judge_gym.engine import Engine, RunProgress
from judge_gym.errors import ConflictError
from judge_gym.records.environment import DATABASE_URL, WORKER_LOG
from judge_gym.store import Store
from judge_gym.store.database import DEFAULT

if TYPE_CHECKING:
    from judge_gym.engine.workflow import Analyze


class Workers:
    """Executes queued runs in this process, or starts a process that does."""

    def __init__(self, store: Store, engine: Engine, *, analyze: "Analyze") -> None:
        self._store = store
        self._engine = engine
        self._analyze = analyze

    def execute(
        self,
        *,
        until_idle: bool = False,
        on_start: Callable[[str], None] = lambda name: None,
        watch: Callable[[Mapping[int, RunProgress]], None] = lambda progress: None,
    ) -> Mapping[int, RunProgress]:
        """Executes queued runs until interrupted and returns the progress of each."""
        return self._engine.work(
            until_idle=until_idle, on_start=on_start, watch=watch, analyze=self._analyze
        )

    def adopt(self, *, cancel: bool = False) -> int:
        """Confirms the use of this copy of a database and counts the runs queued in it."""
        return self._engine.adopt(cancel=cancel)

    def is_idle(self) -> bool:
        """Whether no queued run waits or is in progress."""
        return self._engine.idle()

    def other_versions(self) -> Sequence[str]:
        """Lists what is queued for another version of judge-gym, which this one leaves alone."""
        return self._engine.other_versions()

    def expect(
        self, coming: Callable[[], bool], failing: Callable[[], bool] = lambda: False
    ) -> None:
        """Tells progress how to know that a worker is about to start, or that workers fail."""
        self._store.progress.expect_worker(coming, failing)

    def start(self, options: Sequence[str] = ()) -> "subprocess.Popen[bytes] | None":
        """Starts a process that executes what is queued, unless one is running."""
        if self._engine.served_elsewhere():
            return None
        try:
            with self._engine.lock():
                pass
        except ConflictError:
            return None
        url = self._store.database.url.render_as_string(hide_password=False)
        self.log_file().parent.mkdir(parents=True, exist_ok=True)
        with self.log_file().open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "judge_gym", *options, "worker", "--until-idle"],
                env={**os.environ, DATABASE_URL: url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C belongs to the process that started it
            )

    def log_file(self) -> Path:
        """Locates the file that a worker started here writes to."""
        file = self._store.database.file
        beside = file.with_suffix(".worker.log") if file else DEFAULT.with_name("worker.log")
        return Path(os.environ.get(WORKER_LOG) or beside)

    def has_abandoned(self) -> bool:
        """Whether queued runs have begun and not ended, perhaps because their workers died.

        It costs little where nothing has begun.
        """
        return self._store.events.any_in_progress() and not self.is_idle()
