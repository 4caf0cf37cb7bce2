"""Keeps a worker process running while the lab has queued runs and no other worker has taken them.

The worker is a process of its own, so that HTTP requests and model calls do not slow each other.
"""

import logging
import subprocess
import threading
import time

from judge_gym.errors import DatabaseGone, JudgeGymError
from judge_gym.lab import Lab

RETRY_SECONDS = 2.0
"""Pause before the next attempt while another worker is running, or after a worker failed."""
LOOK_SECONDS = 10.0
"""Pause between two searches for runs that workers of others have abandoned."""
SETTLED_SECONDS = 15.0
"""How long a worker must run after one that failed until workers count as working again."""
MAX_FAILURES = 3
"""Failures in a row after which no new worker is started until one is requested."""
GRACE_SECONDS = 30.0
"""Time for the calls in flight when the server ends."""


class WorkerSupervisor:
    """Starts a worker process whenever there is work."""

    def __init__(self, lab: Lab, options: tuple[str, ...] = ()) -> None:
        self._lab = lab
        self._options = options
        self._requested = threading.Event()
        self._stopping = threading.Event()
        self._worker: subprocess.Popen[bytes] | None = None
        self._starting = False
        self._failing = False
        self._thread = threading.Thread(target=self._supervise, name="supervisor", daemon=True)

    def start(self) -> None:
        """Starts supervising; runs that were queued earlier continue."""
        self._lab.workers.expect(self._worker_expected, lambda: self._failing)
        self._thread.start()

    def request_worker(self) -> None:
        """Asks for a worker to look for queued runs, even if one is about to end just now."""
        self._requested.set()

    def stop(self) -> None:
        """Stops; calls in flight are awaited and recorded, and what is left stays queued."""
        self._stopping.set()
        self._requested.set()
        if self._thread.is_alive():
            self._thread.join()

    def _worker_expected(self) -> bool:
        """Returns whether a worker is requested or starting; a working one is seen by its lock."""
        running = self._worker is not None and self._worker.poll() is None
        expected = running or self._starting or self._requested.is_set()
        return expected and not self._stopping.is_set()

    def _supervise(self) -> None:
        failures = 0
        if self._has_queued_runs():
            self._requested.set()
        while not self._stopping.is_set():
            requested = self._requested.wait(LOOK_SECONDS)
            if self._stopping.is_set():
                return
            if not requested and not self._has_abandoned_runs():
                continue
            self._starting = True
            self._requested.clear()  # this worker may miss what is queued from now on
            self._worker = worker = self._start_worker()
            self._starting = False
            if worker is None:
                self._requested.set()
                self._stopping.wait(RETRY_SECONDS)
                continue
            self._failing = self._wait_for(worker) != 0
            failures = failures + 1 if self._failing else 0
            if 0 < failures < MAX_FAILURES:
                self._stopping.wait(RETRY_SECONDS)
                self._requested.set()
            elif failures:
                log = self._lab.workers.log_file()
                logging.getLogger("judge_gym.web").error(f"workers fail; their log is {log}")
                failures = 0

    def _has_queued_runs(self) -> bool:
        """Returns whether runs are queued; True if the database cannot be asked."""
        try:
            return not self._lab.workers.is_idle()
        except DatabaseGone:
            return True

    def _has_abandoned_runs(self) -> bool:
        try:
            return self._lab.workers.has_abandoned()
        except JudgeGymError:  # away, without room or production by now: perhaps later
            return False

    def _start_worker(self) -> "subprocess.Popen[bytes] | None":
        try:
            return self._lab.workers.start(self._options)
        except DatabaseGone:
            return None

    def _wait_for(self, process: "subprocess.Popen[bytes]") -> int:
        """Waits until a worker ends, or ends it when the server stops; returns its exit code."""
        started = time.monotonic()
        while True:
            try:
                return process.wait(0.2)
            except subprocess.TimeoutExpired:
                if time.monotonic() > started + SETTLED_SECONDS:
                    self._failing = False
                if self._stopping.is_set():
                    return _terminate(process)


def _terminate(process: "subprocess.Popen[bytes]") -> int:
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return 0
