"""The worker of a server: there when there is work, patient, and gone when the server goes."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judge_gym.lab import Lab
from judge_gym.web import crew as crewing
from judge_gym.web.crew import Crew
from served import create, fill
from stores import blank


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with Lab.open(blank(tmp_path / "lab.db")) as opened:
        create(opened, fill(opened, tmp_path), "pilot")
        yield opened


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 240
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def complete(lab: Lab) -> bool:
    return bool(lab.get_experiment_summary("pilot")["status"] == "complete")


def test_what_was_ordered_before_goes_on(lab: Lab) -> None:
    lab.start("pilot", samples=1)
    crew = Crew(lab)
    crew.start()
    until(lambda: complete(lab))
    crew.stop()


def test_a_worker_that_is_called_for_is_said_to_start(lab: Lab) -> None:
    def said() -> str:
        return str(lab.get_experiment_summary("pilot")["runs"][-1]["said"])

    lab.start("pilot", samples=1)
    assert "nobody is at work" in said()
    crew = Crew(lab)
    crew.call()
    crew.start()
    seen = set()

    def finished() -> bool:
        seen.add(said())
        return complete(lab)

    until(finished)
    crew.stop()
    assert seen <= {"a worker is starting", ""} and "a worker is starting" in seen
    lab.start("pilot", samples=2)
    assert "nobody is at work" in said(), "the crew has gone"


def test_it_waits_for_whoever_is_at_work(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crewing, "NAP", 0.1)
    crew = Crew(lab)
    worked: list[int] = []

    def work(process: "subprocess.Popen[bytes]") -> int:
        worked.append(1)
        return process.wait()

    monkeypatch.setattr(crew, "_ends", work)
    with lab.engine.lock():
        crew.start()
        crew.call()
        time.sleep(0.5)
        assert worked == []
    until(lambda: len(worked) == 1)
    crew.stop()
    assert len(worked) == 1


def test_a_call_while_a_worker_is_about_to_end_begins_another(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = Crew(lab)
    worked = []

    def work(process: "subprocess.Popen[bytes]") -> int:
        worked.append(1)
        if len(worked) == 1:
            crew.call()  # as from a request
        return process.wait()

    monkeypatch.setattr(crew, "_ends", work)
    crew.start()
    crew.call()
    until(lambda: len(worked) == 2)
    crew.stop()


def test_a_worker_that_fails_is_tried_a_few_times(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(crewing, "NAP", 0.01)
    crew = Crew(lab, ("--no-such-option",))
    crew.start()
    crew.call()
    until(lambda: "workers fail" in caplog.text)
    crew.stop()
    log = lab.store.database.file
    assert log is not None
    assert log.with_suffix(".worker.log").read_text().count("no-such-option") >= crewing.TRIES


def test_a_worker_ends_with_its_server(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.start("pilot", samples=2000)
    crew = Crew(lab)
    crew.start()
    until(lambda: bool(lab.list_experiment_samples("pilot")))
    crew.stop()
    with lab.engine.lock():  # nobody is at work any more
        held = len(lab.list_experiment_samples("pilot"))
    assert 0 < held < 6000
    assert not lab.engine.idle(), "what is left stays ordered"
