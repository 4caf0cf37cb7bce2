"""Has what is ordered carried out: by a worker process, while nobody else works on the lab.

A process of its own, so that requests and calls do not take each other's time.
"""

import logging
import subprocess
import threading

from judge_gym.errors import DatabaseGone
from judge_gym.lab import Lab
from judge_gym.steering import begin_worker

NAP = 2.0
"""Seconds before the next try where somebody else is at work, or a worker failed."""
TRIES = 3
"""How often a worker may fail in a row."""
GRACE = 30.0
"""Seconds for the calls in flight when the server ends."""


class Crew:
    """A worker when there is work.

    Args:
        lab: whose runs are carried out.
        options: of every verb, for the worker: `--rpm 100`.
    """

    def __init__(self, lab: Lab, options: tuple[str, ...] = ()) -> None:
        self._lab = lab
        self._options = options
        self._wanted = threading.Event()
        self._over = threading.Event()
        self._worker: subprocess.Popen[bytes] | None = None
        self._beginning = False
        self._thread = threading.Thread(target=self._attend, name="crew", daemon=True)

    def start(self) -> None:
        """Begin to attend; what was ordered before goes on."""
        self._lab.store.progress.worker_coming = self._coming
        self._thread.start()

    def call(self) -> None:
        """Something was ordered: a worker looks for it, also if one is about to end just now."""
        self._wanted.set()

    def stop(self) -> None:
        """End; calls in flight are awaited and recorded, what is left stays ordered."""
        self._over.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join()

    def _coming(self) -> bool:
        """Whether a worker is called for or begun; that it is at work is seen by its lock."""
        begun = self._worker is not None and self._worker.poll() is None
        return not self._over.is_set() and (begun or self._beginning or self._wanted.is_set())

    def _attend(self) -> None:
        failed = 0
        if self._left():
            self._wanted.set()
        while not self._over.is_set():
            self._wanted.wait()
            if self._over.is_set():
                return
            self._beginning = True
            self._wanted.clear()  # what is ordered from now on may come too late for this worker
            self._worker = worker = self._begun()
            self._beginning = False
            if worker is None:
                self._wanted.set()
                self._over.wait(NAP)
                continue
            failed = 0 if self._ends(worker) == 0 else failed + 1
            if 0 < failed < TRIES:
                self._over.wait(NAP)
                self._wanted.set()
            elif failed:
                logging.getLogger("judge_gym.web").error("workers fail; see the worker's log")
                failed = 0

    def _left(self) -> bool:
        """Whether something was ordered before; perhaps, where the database is away."""
        try:
            return not self._lab.engine.idle()
        except DatabaseGone:
            return True

    def _begun(self) -> "subprocess.Popen[bytes] | None":
        try:
            return begin_worker(self._lab, self._options)
        except DatabaseGone:
            return None

    def _ends(self, process: "subprocess.Popen[bytes]") -> int:
        """Wait for a worker to do all there is; how it ended."""
        while True:
            try:
                return process.wait(0.2)
            except subprocess.TimeoutExpired:
                if self._over.is_set():
                    return _ended(process)


def _ended(process: "subprocess.Popen[bytes]") -> int:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return 0
