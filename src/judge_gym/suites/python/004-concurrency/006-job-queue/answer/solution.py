"""Runs the jobs of standard input, on a clock that jumps."""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from jobs.model import DuplicateJob, Job
from jobs.queue import Queue
from jobs.worker import Worker


class Clock:
    """A time that only moves when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def read_job(line: str) -> Job:
    """Returns the job of a line, or raises ValueError."""
    data = json.loads(line)
    if not isinstance(data, dict):
        raise ValueError("not an object")
    key, kind, payload = data.get("id"), data.get("kind"), data.get("payload")
    if not isinstance(key, str) or not isinstance(kind, str) or not isinstance(payload, dict):
        raise ValueError("a job has id, kind and payload")
    return Job(key, kind, payload)


def fill(queue: Queue, lines: Iterable[str]) -> None:
    """Puts the job of each line, or raises ValueError with the number of the line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            queue.put(read_job(line))
        except (ValueError, DuplicateJob) as error:
            raise ValueError(f"line {number}: {error}") from error


def print_text(payload: dict[str, Any]) -> None:
    """Writes the text of a payload."""
    print(payload["text"])


def flaky(payload: dict[str, Any]) -> None:
    """Fails as often as the payload says."""
    if payload["failures"] > 0:
        payload["failures"] -= 1
        raise RuntimeError("not yet")


def main() -> int:
    """Runs the program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-attempts", type=int, default=3)
    clock = Clock()
    queue = Queue(clock, max_attempts=parser.parse_args().max_attempts)
    try:
        fill(queue, sys.stdin)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    worker = Worker(queue, {"print": print_text, "flaky": flaky})
    while (due := queue.next_due()) is not None:
        clock.now = max(clock.now, due)
        worker.run_once()
    for job, reason in queue.dead:
        print(f"{job.id}: {reason}", file=sys.stderr)
    return 1 if queue.dead else 0


if __name__ == "__main__":
    sys.exit(main())
