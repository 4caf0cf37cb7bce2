"""Posting a suite run to a remote lab while it goes on; the rows there say what is missing.

Nothing is written down here of what was posted: whoever gives the same command again asks the
remote lab what it has, and posts the rest. It takes each result once, by the time it was made.
"""

import threading
from collections.abc import Sequence
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

LOOK = 1.0
"""Seconds between two looks at what has come meanwhile."""
LONGEST = 30.0
"""Seconds to wait at most while the remote lab is away."""
BATCH = 4_000_000
"""Characters of evals' files that are sent at once."""
ALONE = (ConflictError, DesignError, TooLargeError)
"""What concerns the result that was sent, and not the next one."""
Target = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Posted:
    """How far a run has come to a remote lab."""

    lab: str
    run: int | None
    """Its number there; None where it has not come so far."""
    there: int
    """Results of this run that are there."""
    left: int
    """Results that are here alone."""
    refused: dict[str, str] = field(default_factory=dict)
    """By eval: why the remote lab does not take it."""
    fault: str = ""
    """Why it came no further."""

    @property
    def whole(self) -> bool:
        """Whether nothing is missing there."""
        return not self.left


class LocalRuns(Protocol):
    """Where the runs are that are posted: `lab.suites`."""

    def list_tasks(self, suite: str, version: str) -> Sequence[str]:
        """Returns the paths of a version's evals."""

    def find_task(self, run: SuiteRun, path: str) -> EvalSource:
        """Returns the files behind an eval."""

    def results(self, run: int) -> Sequence[SuiteResult]:
        """Returns the results of a run, without files."""

    def find_result(self, eval: int) -> SuiteResult:
        """Returns a result with its files."""


class Poster:
    """Posts one run, from `follow` to `finish`.

    Args:
        runs: where the run is: `lab.suites`.
        client: the remote lab.
    """

    def __init__(self, runs: LocalRuns, client: Client) -> None:
        self._runs = runs
        self._client = client
        self._run: SuiteRun | None = None
        self._remote: int | None = None
        self._there: dict[Target, datetime] = {}
        self._refused: dict[Target, str] = {}
        self._fault: JudgeGymError | None = None
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Poster":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def fault(self) -> str:
        """Why it comes no further for now; empty where it does."""
        return self._fault.message if self._fault else ""

    def follow(self, run: SuiteRun) -> None:
        """Begin; raises what no patience mends, such as a token that may not write."""
        self._run = run
        self._post()
        if self._fault is not None and not self._fault.retry:
            raise self._fault
        self._thread = threading.Thread(target=self._keep_on, name="posting", daemon=True)
        self._thread.start()

    def finish(self) -> Posted:
        """Post what is left, and tell how far it came."""
        self._stop()
        assert self._run is not None
        if self._fault is None or self._fault.retry:
            self._post()
        rows = self._rows()
        there = sum(self._there.get(_target(row)) == row.at for row in rows)
        return Posted(
            self._client.url,
            self._remote,
            there,
            len(rows) - there,
            {f"{path}, replicate {n}": why for (path, n), why in self._refused.items()},
            self.fault,
        )

    def _stop(self) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _keep_on(self) -> None:
        wait = LOOK
        while not self._end.wait(wait):
            self._post()
            if self._fault is not None and not self._fault.retry:
                return
            asked = getattr(self._fault, "wait", None) or 0.0
            wait = min(max(2 * wait, asked), LONGEST) if self._fault else LOOK

    def _post(self) -> None:
        """Post what is not there yet, as far as it comes."""
        try:
            self._fault = None
            if self._remote is None:
                self._remote = self._begin()
            for row in self._rows():
                if self._there.get(_target(row)) != row.at and _target(row) not in self._refused:
                    self._send(self._remote, row)
        except JudgeGymError as fault:
            self._fault = fault

    def _begin(self) -> int:
        """The run's number there; the files of all evals of its version come first."""
        run, client = self._run, self._client
        assert run is not None
        known = set(client.suite_tasks(run.suite, run.version))
        batch: list[dict[str, Any]] = []
        size = 0
        for path in self._runs.list_tasks(run.suite, run.version):
            if path in known:
                continue
            source = asdict(self._runs.find_task(run, path))
            length = sum(map(len, _texts(source)))
            if batch and size + length > BATCH:
                client.keep_tasks(run.suite, run.version, batch)
                batch, size = [], 0
            batch.append(source)
            size += length
        if batch:
            client.keep_tasks(run.suite, run.version, batch)
        made = client.keep_run(
            run.suite,
            run.version,
            run.model,
            run.experiment,
            run.condition,
            run.series,
            replicates=run.replicates,
            evals=run.evals,
            created=run.created,
        )
        number = int(made["run"])
        self._there = {
            (row["path"], row["replicate"]): datetime.fromisoformat(row["at"])
            for row in client.suite_run(number)["evals"]
        }
        return number

    def _send(self, run: int, row: SuiteResult) -> None:
        try:
            self._client.keep_eval(run, self._runs.find_result(row.id).result, row.at)
        except ALONE as fault:
            self._refused[_target(row)] = fault.message
        else:
            self._there[_target(row)] = row.at

    def _rows(self) -> Sequence[SuiteResult]:
        assert self._run is not None
        return self._runs.results(self._run.id)


def _target(row: SuiteResult) -> Target:
    return row.result.path, row.result.replicate


def _texts(source: dict[str, Any]) -> list[str]:
    return [
        source["task"],
        source["gaps"],
        *(text for part in ("answer", "grader") for text in source[part].values()),
    ]
