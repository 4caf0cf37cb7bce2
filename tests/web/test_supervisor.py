"""The server's worker: it starts when there is work, waits for others, and ends with the server."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judge_gym.lab import Lab
from judge_gym.web import supervisor as module
from judge_gym.web.supervisor import MAX_FAILURES, WorkerSupervisor
from lab_server import create, fill
from stores import blank

pytestmark = pytest.mark.slow

Process = subprocess.Popen[bytes]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with Lab.open(blank(tmp_path / "lab.db")) as opened:
        create(opened, fill(opened, tmp_path), "pilot")
        yield opened


class Workers:
    """Stands in for `workers.start`: each process does nothing and exits with `code`."""

    def __init__(self) -> None:
        self.started = 0
        self.code = 0
        self.refused = 0
        self.other_at_work = False
        self.on_start: Callable[[], None] = lambda: None

    def begin(self, options: tuple[str, ...]) -> Process | None:
        if self.other_at_work:
            self.refused += 1
            return None
        self.started += 1
        self.on_start()
        return subprocess.Popen([sys.executable, "-Sc", f"raise SystemExit({self.code})"])


@pytest.fixture
def workers(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Workers:
    workers = Workers()
    monkeypatch.setattr(lab.workers, "start", workers.begin)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    return workers


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 240
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def message(lab: Lab) -> str:
    return str(lab.get_experiment_summary("pilot")["runs"][-1]["message"])


def test_queued_runs_are_executed_and_the_status_says_that_a_worker_is_starting(lab: Lab) -> None:
    lab.runs.start("pilot", samples=1)
    assert "no worker is running" in message(lab)
    supervisor = WorkerSupervisor(lab)
    supervisor.request_worker()
    supervisor.start()
    seen = set()

    def finished() -> bool:
        seen.add(message(lab))
        return bool(lab.get_experiment_summary("pilot")["status"] == "complete")

    until(finished)
    supervisor.stop()
    assert seen <= {"a worker is starting", ""} and "a worker is starting" in seen
    lab.runs.start("pilot", samples=2)
    assert "no worker is running" in message(lab), "the supervisor has ended"


def test_a_worker_ends_with_its_server(lab: Lab) -> None:
    lab.runs.start("pilot", samples=2000)
    supervisor = WorkerSupervisor(lab)
    supervisor.start()  # finds what was queued before
    until(lambda: bool(lab.list_experiment_samples("pilot")))
    supervisor.stop()
    with lab.engine.lock():  # no worker holds it any more
        held = len(lab.list_experiment_samples("pilot"))
    assert 0 < held < 6000
    assert not lab.engine.idle(), "what is left stays queued"


def test_no_worker_is_started_without_work(lab: Lab, workers: Workers) -> None:
    supervisor = WorkerSupervisor(lab)
    supervisor.start()
    supervisor.stop()
    assert workers.started == 0


def test_it_waits_for_another_worker(lab: Lab, workers: Workers) -> None:
    workers.other_at_work = True
    supervisor = WorkerSupervisor(lab)
    supervisor.start()
    supervisor.request_worker()
    until(lambda: workers.refused >= 3)
    assert workers.started == 0
    workers.other_at_work = False
    until(lambda: workers.started == 1)
    supervisor.stop()
    assert workers.started == 1


def test_a_request_while_a_worker_is_about_to_end_starts_another(
    lab: Lab, workers: Workers
) -> None:
    supervisor = WorkerSupervisor(lab)

    def request_once() -> None:
        if workers.started == 1:
            supervisor.request_worker()  # as an HTTP request would

    workers.on_start = request_once
    supervisor.start()
    supervisor.request_worker()
    until(lambda: workers.started == 2)
    supervisor.stop()


def test_a_worker_that_fails_is_restarted_a_few_times(
    lab: Lab, workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    workers.code = 2
    supervisor = WorkerSupervisor(lab)
    supervisor.start()
    supervisor.request_worker()
    until(lambda: "workers fail" in caplog.text)
    supervisor.stop()
    assert workers.started == MAX_FAILURES


def test_a_lab_whose_workers_fail_is_not_ready_until_they_work(lab: Lab, workers: Workers) -> None:
    workers.code = 1
    lab.runs.start("pilot", samples=1)
    supervisor = WorkerSupervisor(lab)
    supervisor.start()
    until(lambda: workers.started == 2)
    for _ in range(20):  # while workers start and end
        assert any(
            "workers end with an error" in text for text in lab.serving.readiness()["reasons"]
        )
        time.sleep(0.01)
    workers.code = 0
    supervisor.request_worker()
    until(lambda: not any("with an error" in text for text in lab.serving.readiness()["reasons"]))
    supervisor.stop()
