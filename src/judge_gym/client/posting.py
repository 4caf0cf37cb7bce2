"""Posts a suite run to a remote lab while it is in progress.

A run that is started in the remote lab would use the keys, the sandbox and the tools of its server;
one that is posted uses those of this machine, and the remote lab only compares the results.

Nothing is stored here about what was posted: the same command, given again, asks the remote lab
what it has and posts the rest. The remote lab stores each result once, by the time it was made.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Protocol

from judge_gym.client import Client
from judge_gym.errors import (
    ConflictError,
    DesignError,
    JudgeGymError,
    TooLargeError,
)
from judge_gym.records import EvalSource, SuiteResult, SuiteRun

PERIOD = 1.0
"""Seconds between two checks for new results."""
MAX_WAIT = 30.0
"""Seconds to wait at most while the remote lab does not answer."""
BATCH = 4_000_000
"""Characters of evals' files that are sent at once."""
REFUSALS = (ConflictError, DesignError, TooLargeError)
"""Errors that concern one result and not the next one."""
Target = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Posted:
    """How much of a run a remote lab has."""

    lab: str
    run: int | None
    """The run's number in the remote lab; None before it has one."""
    stored: int
    """Results of this run that the remote lab has."""
    missing: int
    """Results that only this lab has."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why the remote lab refuses a result, by eval."""
    error: str = ""
    """Why posting stopped."""


class LocalRuns(Protocol):
    """Where the runs are that are posted: `lab.suites`."""

    def list_tasks(self, suite: str, version: str) -> Sequence[str]:
        """Lists the paths of a version's evals."""

    def find_task(self, run: SuiteRun, path: str) -> EvalSource:
        """Reads the files behind an eval."""

    def results(self, run: int) -> Sequence[SuiteResult]:
        """Reads the results of a run, without files."""

    def find_result(self, eval: int) -> SuiteResult:
        """Reads a result with its files."""


class Poster:
    """Posts one run, from its opening to `finish`."""

    def __init__(self, runs: LocalRuns, client: Client, run: SuiteRun) -> None:
        self._runs = runs
        self._client = client
        self._run = run
        self._remote: int | None = None
        self._posted: dict[Target, datetime] = {}
        self._refused: dict[Target, str] = {}
        self._error: JudgeGymError | None = None
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Poster":
        """Starts posting, or raises an error that no retry solves, such as a read-only token."""
        self._post()
        if self._error is not None and not self._error.retry:
            raise self._error
        self._thread = threading.Thread(target=self._repeat, name="posting", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def error(self) -> str:
        """Why posting does not succeed at present, empty where it does."""
        return self._error.message if self._error else ""

    def finish(self) -> Posted:
        """Posts the remaining results and returns how many the remote lab has."""
        self._stop()
        if self._error is None or self._error.retry:
            self._post()
        rows = self._runs.results(self._run.id)
        stored = sum(self._posted.get(_target(row)) == row.at for row in rows)
        return Posted(
            self._client.url,
            self._remote,
            stored,
            len(rows) - stored,
            {f"{path}, replicate {n}": why for (path, n), why in self._refused.items()},
            self.error,
        )

    def _stop(self) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _repeat(self) -> None:
        wait = PERIOD
        while not self._end.wait(wait):
            self._post()
            if self._error is not None and not self._error.retry:
                return
            requested = getattr(self._error, "wait", None) or 0.0
            wait = min(max(2 * wait, requested), MAX_WAIT) if self._error else PERIOD

    def _post(self) -> None:
        """Posts results that the remote lab does not have yet, until an error."""
        try:
            self._error = None
            if self._remote is None:
                self._remote = self._open()
            for row in self._runs.results(self._run.id):
                if self._posted.get(_target(row)) != row.at and _target(row) not in self._refused:
                    self._send(self._remote, row)
        except JudgeGymError as error:
            self._error = error

    def _open(self) -> int:
        """Opens the run in the remote lab, after posting the files of its evals."""
        run, suites = self._run, self._client.suites
        post_tasks(
            self._client,
            run.suite,
            run.version,
            self._runs.list_tasks(run.suite, run.version),
            lambda path: self._runs.find_task(run, path),
        )
        for replicates in sorted({*run.replicates_of.values()}):
            number = suites.save_run(
                run.suite,
                run.version,
                run.model,
                [path for path, n in run.replicates_of.items() if n == replicates],
                condition=run.condition,
                settings=run.settings,
                series=run.series,
                replicates=replicates,
                created=run.created,
            )
        evals = suites.show_run(number)["evals"]
        self._posted = {(row["path"], row["replicate"]): row["at"] for row in evals}
        return number

    def _send(self, run: int, row: SuiteResult) -> None:
        result = asdict(self._runs.find_result(row.id).result)
        del result["call_id"]
        try:
            self._client.suites.save_eval(run, at=row.at, **result)
        except REFUSALS as error:
            self._refused[_target(row)] = error.message
        else:
            self._posted[_target(row)] = row.at


def post_tasks(
    client: Client,
    suite: str,
    version: str,
    paths: Sequence[str],
    source: Callable[[str], EvalSource],
) -> None:
    """Posts the files of evals that a remote lab lacks.

    Those of one eval are posted in any case: stored files do not change, and a token that may not
    write is refused.

    Args:
        client: the remote lab.
        suite: the name of the suite.
        version: of the suite.
        paths: of all its evals.
        source: returns the files of an eval by its path.
    """
    stored = set(client.suites.list_tasks(suite, version))
    batch: list[dict[str, Any]] = []
    size = 0
    for path in [path for path in paths if path not in stored] or paths[:1]:
        files = asdict(source(path))
        length = sum(map(len, _texts(files)))
        if batch and size + length > BATCH:
            client.suites.save_tasks(suite, version, batch)
            batch, size = [], 0
        batch.append(files)
        size += length
    client.suites.save_tasks(suite, version, batch)


def _target(row: SuiteResult) -> Target:
    return row.result.path, row.result.replicate


def _texts(source: dict[str, Any]) -> list[str]:
    return [
        source["task"],
        source["gaps"],
        *(text for part in ("answer", "grader") for text in source[part].values()),
    ]
