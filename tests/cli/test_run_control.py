"""Commands that control runs from other processes: start, pause, cancel, retune, retry."""

import contextlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import PATIENCE, Bench, Process, Reference, ended, served, undisturbed, wait
from commands import write_study as write
from judge_gym.lab import Lab
from judge_gym.records.actors import machine_user

pytestmark = pytest.mark.slow

CHANGES = {"judges": ["lab:balanced", "lab:strict"], "samples": 12, "swap": "none"}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return undisturbed(tmp_path_factory.mktemp("reference"), **CHANGES)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with served("--latency", "0.25") as url:
        opened = Bench(tmp_path, f"sqlite:///{tmp_path / 'lab.db'}", url)
        yield opened
        opened.call("cancel", "big")  # the worker in the background ends by itself
        opened.close()


@pytest.fixture
def study(bench: Bench) -> Path:
    return write(bench.folder, **CHANGES)


SLOWLY = ("--rpm", "900")
"""So that there is time to pause it, or to change its budget, on a busy machine too."""


def whole(bench: Bench, reference: Reference) -> None:
    """Everything is there, and was paid for once."""
    assert bench.statuses() == {"complete"}
    assert bench.rows() == reference.rows
    stats = bench.stats()
    assert stats["requests"] == stats["bodies"]["distinct"] == bench.attempts() == reference.calls


def test_start_returns_at_once_and_status_follows(
    bench: Bench, study: Path, reference: Reference
) -> None:
    started = bench.json("run", "--background", study)
    assert len(started["started"]) == 2
    follower = bench.start("status", "big", "--watch")
    assert bench.statuses() & {"pending", "evidence-done", "rubric-done", "scoring", "probing"}
    watching = ended(follower)
    assert watching.count("complete") >= 2, "it looks until both have ended"
    whole(bench, reference)
    assert "worked on 2 runs" in Path(started["log"]).read_text()


def test_pause_stops_and_resume_continues(bench: Bench, study: Path, reference: Reference) -> None:
    bench.call(*SLOWLY, "run", "--background", study)
    bench.wait_for(reference.calls // 8)
    assert len(bench.json("pause", "big")["paused"]) == 2
    still(bench, reference)
    assert bench.statuses() == {"paused"}
    assert f"Paused by {machine_user()}" in bench.call("status", "big")
    assert bench.json("resume", "big")["status"] == "complete"
    assert bench.json("pause", "big")["paused"] == []
    whole(bench, reference)


def test_pause_stops_a_run_in_another_process(
    bench: Bench, study: Path, reference: Reference
) -> None:
    running = bench.start(*SLOWLY, "run", study)
    bench.wait_for(reference.calls // 8, running)
    bench.call("pause", "big")
    assert f"Paused by {machine_user()}; continue with: judge-gym --rpm 900 run" in ended(
        running, 3
    )
    assert bench.statuses() == {"paused"}
    bench.call("run", study)
    whole(bench, reference)


def test_cancel_stops_a_study_and_run_starts_again(
    bench: Bench, study: Path, reference: Reference
) -> None:
    bench.call(*SLOWLY, "run", "--background", study)
    bench.wait_for(reference.calls // 8)
    bench.call("cancel", "big")
    still(bench, reference)
    assert bench.statuses() == {"cancelled"}
    bench.call("run", study)
    whole(bench, reference)


def still(bench: Bench, reference: Reference) -> None:
    """Wait until calls in flight have landed, and nobody works any more."""
    waiting: Process = bench.start("worker", "--until-idle")
    waiting.communicate(timeout=PATIENCE)
    wait(lambda: bench.stats()["requests"] == bench.attempts())
    assert bench.attempts() < reference.calls


def test_pause_after_stops_when_a_step_is_done(
    bench: Bench, study: Path, reference: Reference
) -> None:
    said = bench.call("run", study, "--pause-after", "rubric", code=3)
    assert "paused after rubric, as ordered" in said
    found = bench.rows()
    assert found["rubrics"] == reference.rows["rubrics"]
    assert found["samples"] == []
    assert bench.statuses() == {"paused"}
    bench.call("resume", "big")
    whole(bench, reference)


def test_a_raised_budget_lets_a_run_continue(
    bench: Bench, study: Path, reference: Reference
) -> None:
    half = f"calls={reference.calls // 2}"
    running = bench.start(*SLOWLY, "run", study, "--budget", half, "--json")
    bench.wait_for(reference.calls // 8, running)
    bench.call("--rpm", "60000", "retune", "big", "--budget", f"calls={reference.calls}")
    ended(running)
    whole(bench, reference)


def test_a_lowered_budget_stops_a_run(bench: Bench, study: Path, reference: Reference) -> None:
    running = bench.start(*SLOWLY, "run", study)
    bench.wait_for(reference.calls // 8, running)
    said = bench.call("retune", "big", "--budget", f"calls={reference.calls // 2}")
    assert f"from now on: calls {reference.calls // 2:,}" in said
    assert "continue with" in ended(running, 3)
    assert bench.attempts() <= reference.calls // 2
    assert bench.statuses() == {"over-budget"}
    bench.call("resume", "big", "--budget", f"calls={reference.calls}")
    whole(bench, reference)


def test_retry_repeats_failed_calls_only(tmp_path: Path, reference: Reference) -> None:
    study = write(tmp_path, **CHANGES, tolerance=0.5)
    database = f"sqlite:///{tmp_path / 'lab.db'}"
    with served() as url:
        port = url.rsplit(":", 1)[1].split("/")[0]
        bench = Bench(tmp_path, database, url)
        bench.call("run", study, "--pause-after", "rubric", code=3)
        bench.close()
    with served("--port", port, "--faults", "400=0.1", "--seed", "3") as url:
        bench = Bench(tmp_path, database, url)
        bench.call("run", study)
        assert bench.statuses() == {"complete-with-failures"}
        failed = bench.stats()["outcomes"]["400"]
        assert "a fault 400 (simulated)" in bench.call("status", "big")
        bench.close()
    with served("--port", port) as url:
        bench = Bench(tmp_path, database, url)
        bench.call("retry", "big")
        asked = bench.stats()["requests"]
        bench.call("resume", "big")
        assert bench.statuses() == {"complete"}
        assert bench.rows() == reference.rows
        assert bench.answered_twice() == 0
        assert bench.attempts() == reference.calls + failed
        assert asked >= failed > 0
        bench.close()


@pytest.mark.parametrize("command", ["run", "worker"])
def test_ctrl_c_says_at_once_what_is_awaited_and_the_second_ends(
    tmp_path: Path, command: str
) -> None:
    with served("--latency", "8") as url:
        bench = Bench(tmp_path, f"sqlite:///{tmp_path / 'lab.db'}", url)
        study = write(bench.folder, **CHANGES)
        if command == "worker":
            with contextlib.chdir(bench.folder), Lab.open(bench.database) as lab:
                lab.runs.start(study)
        process = bench.start(*(["worker"] if command == "worker" else ["run", study]))
        wait(lambda: bench.stats()["requests"] > 0, process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        line = next(line for line in process.stderr if "stopping" in line)
        assert re.search(r"stopping: \d+ calls? in flight", line) and "Ctrl-C again" in line
        assert process.poll() is None, "it still waits for them"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        bench.close()
