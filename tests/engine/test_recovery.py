"""Real processes, killed, interrupted and run against each other: nothing is lost or paid twice."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge_gym.errors import DesignError
from judge_gym.lab import Lab

WriteStudy = Callable[..., Path]
KEYS = ["tag", "rubric_author", "evidence_title", "replicate", "is_swap"]
KEPT = [*KEYS, "status", "stages", "display", "probe", "probe_status"]
PATIENCE = 240.0


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that takes a few seconds, with every kind of answer in it."""
    folder = tmp_path_factory.mktemp("big")
    words = ("routine", "delayed", "warned", "fined", "dismissed", "banned")
    lines = [{"title": w, "text": f"The panel was {w} and the mayor {w}, it said."} for w in words]
    (folder / "evidence.jsonl").write_text("\n".join(map(json.dumps, lines)))
    study = {
        "study": "big",
        "seed": 5,
        "samples": 25,
        "evidence": {"here": {"files": "evidence.jsonl", "window": {"country": "Valdoria"}}},
        "protocol": "contested-concepts",
        "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "here"}],
        "judges": ["sim:sloppy", "sim:cautious"],
        "design": {"evidence.editor": "sim:editor", "rubric.critic": "sim:critic"},
        "swap": "all",
    }
    (folder / "study.yaml").write_text(json.dumps(study))  # JSON is YAML
    return folder / "study.yaml"


@pytest.fixture(scope="module")
def reference(big: Path) -> tuple[pd.DataFrame, int]:
    """What an undisturbed run leaves: its samples, and how many calls it took."""
    with Lab.open(f"sqlite:///{big.parent / 'reference.db'}") as lab:
        assert lab.runs.run(big).status == "complete"
        return tidy(lab), attempts(big.parent / "reference.db")


def tidy(lab: Lab) -> pd.DataFrame:
    frame: pd.DataFrame = lab.experiments.samples("big")[KEPT]
    return frame.sort_values(KEYS, ignore_index=True)


def left_in(file: Path) -> pd.DataFrame:
    with Lab.open(f"sqlite:///{file}") as lab:
        return tidy(lab)


def attempts(file: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM attempts").fetchone()[0])
    except sqlite3.OperationalError:  # it has not come to that yet
        return 0


def completed_twice(file: Path) -> int:
    query = "SELECT call_id FROM attempts WHERE completed GROUP BY call_id HAVING count(*) > 1"
    with closing(sqlite3.connect(file)) as connection:
        return len(connection.execute(query).fetchall())


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts judge-gym as a process of its own on `lab.db`; whatever is left of them is ended."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "JUDGE_GYM_DATABASE_URL": f"sqlite:///{tmp_path / 'lab.db'}"}
        process = subprocess.Popen(
            [sys.executable, "-m", "judge_gym", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(process: "subprocess.Popen[str]", file: Path, enough: int) -> int:
    """Wait until that many attempts are recorded; how many there are."""
    deadline = time.monotonic() + PATIENCE
    while (found := attempts(file)) < enough:
        assert process.poll() is None, f"it ended with {found} attempts: {process.communicate()}"
        assert time.monotonic() < deadline, f"{found} attempts after {PATIENCE} s"
        time.sleep(0.005)
    return found


@pytest.mark.slow
def test_a_run_that_is_killed_repeatedly_ends_with_the_rows_of_an_undisturbed_one(
    big: Path, reference: tuple[pd.DataFrame, int], tmp_path: Path, start: Start
) -> None:
    expected, calls = reference
    file = tmp_path / "lab.db"
    for seconds in (0.0, 0.25, 0.45):
        process = start("run", str(big))
        time.sleep(seconds)
        process.kill()
        process.wait()
    before, at_work = attempts(file), 0
    for enough in (3, 12, calls // 5, calls // 2, calls * 3 // 4):
        if before < enough:
            process = start("run", str(big))
            wait_for(process, file, enough)
            process.kill()
            process.wait()
            at_work += before < attempts(file) < calls
            before = attempts(file)
    assert at_work >= 3, "it was to be killed at work"
    last = start("run", str(big), "--json")
    said, complaint = last.communicate()
    assert last.returncode == 0, complaint
    assert json.loads(said)["status"] == "complete"
    pd.testing.assert_frame_equal(left_in(file), expected)
    assert completed_twice(file) == 0
    assert attempts(file) == calls
    assert sum(run["calls"] for run in json.loads(said)["runs"]) == calls - before


@pytest.mark.slow
def test_ctrl_c_says_how_to_continue_and_continuing_pays_only_the_rest(
    big: Path, reference: tuple[pd.DataFrame, int], tmp_path: Path, start: Start
) -> None:
    expected, calls = reference
    file = tmp_path / "lab.db"
    process = start("run", str(big))
    wait_for(process, file, calls // 3)
    process.send_signal(signal.SIGINT)
    said, complaint = process.communicate()
    assert process.returncode == 130
    assert f"judge-gym run {big}" in complaint
    assert "Traceback" not in complaint
    before = attempts(file)
    assert before < calls
    again = start("run", str(big), "--json")
    said, complaint = again.communicate()
    assert again.returncode == 0, complaint
    assert sum(run["calls"] for run in json.loads(said)["runs"]) == calls - before
    pd.testing.assert_frame_equal(left_in(file), expected)
    assert (attempts(file), completed_twice(file)) == (calls, 0)


@pytest.mark.slow
def test_a_second_ctrl_c_ends_at_once_and_loses_nothing_recorded(
    big: Path, reference: tuple[pd.DataFrame, int], tmp_path: Path, start: Start
) -> None:
    expected, calls = reference
    file = tmp_path / "lab.db"
    process = start("run", str(big))
    wait_for(process, file, calls // 3)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
    _, complaint = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in complaint
    again = start("run", str(big))
    assert again.wait() == 0
    pd.testing.assert_frame_equal(left_in(file), expected)
    assert (attempts(file), completed_twice(file)) == (calls, 0)


@contextmanager
def held(process: "subprocess.Popen[str]", file: Path) -> Iterator[None]:
    """Hold a process at its work, at a moment when it is not writing."""
    while True:
        process.send_signal(signal.SIGSTOP)
        try:
            with closing(sqlite3.connect(file, timeout=0.05, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
            break
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.002)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@pytest.mark.slow
def test_two_processes_that_start_the_same_study_pay_once(
    big: Path, reference: tuple[pd.DataFrame, int], tmp_path: Path, start: Start
) -> None:
    expected, calls = reference
    file = tmp_path / "lab.db"
    first = start("run", str(big))
    wait_for(first, file, 1)
    with held(first, file):
        second = start("run", str(big), "--json")
        looking = start("status", "big", "--json")
        assert looking.wait() == 0, "looking is always allowed"
        forgetting = start("cleanup", "big/fascism/here/sim:sloppy")
        assert "use `force`" in forgetting.communicate()[1]
        assert forgetting.returncode == 2
    for process in (first, second):
        _, complaint = process.communicate()
        assert process.returncode == 0, complaint
        assert "Traceback" not in complaint
    pd.testing.assert_frame_equal(left_in(file), expected)
    assert (attempts(file), completed_twice(file)) == (calls, 0)


@pytest.mark.slow
def test_a_following_process_continues_when_the_other_is_killed(
    big: Path, reference: tuple[pd.DataFrame, int], tmp_path: Path, start: Start
) -> None:
    expected, calls = reference
    file = tmp_path / "lab.db"
    first = start("run", str(big))
    wait_for(first, file, calls // 4)
    second = start("run", str(big), "--json")
    time.sleep(1.0)
    first.kill()
    first.wait()
    said, complaint = second.communicate()
    assert second.returncode == 0, complaint
    assert json.loads(said)["status"] == "complete"
    pd.testing.assert_frame_equal(left_in(file), expected)
    assert (attempts(file), completed_twice(file)) == (calls, 0)


def test_a_model_that_cannot_be_called_leaves_the_run_unchanged(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.runs.run(write_study())
    before = progress(lab)
    with pytest.raises(DesignError, match=r"openai:gpt-5\.2 cannot be called"):
        lab.runs.run("small", workflows=["swap"], rivals=["openai:gpt-5.2"])
    assert progress(lab) == before
    assert lab.runs.run("small").status == "complete"


def progress(lab: Lab) -> list[Any]:
    return [lab.store.progress.of_tag(row["tag"]) for row in lab.store.experiments.rows()]
