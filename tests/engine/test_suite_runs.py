"""Suite runs that are killed, interrupted, throttled and cut off, with real processes."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from commands import Bench, Process, ended, served, wait
from judge_gym.records.outcomes import Outcome
from judge_gym.store.suite_tables import suite_results
from suite_folders import known_by, write_suite

EVALS = 200
FLYING = 16
"""The calls in flight that the endpoint's entry allows."""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with served() as url:
        made = Bench(tmp_path, f"sqlite:///{tmp_path / 'lab.db'}", url)
        yield made
        made.close()


def results(bench: Bench) -> int:
    """How many are on record, whatever they are."""
    with bench.store.database.read() as connection:
        return connection.execute(
            sa.select(sa.func.count()).select_from(suite_results)
        ).scalar_one()


def outcomes(bench: Bench) -> list[tuple[str, int, Outcome]]:
    """What came of the one run, without numbers and times."""
    rows = [row.result for row in bench.store.suites.results(1)[1]]
    return sorted(((row.path, row.replicate, row.outcome) for row in rows), key=repr)


def children(process: Process) -> set[int]:
    """Everything that a process started, and what that started."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found, new = set[int](), {process.pid}
    while new:
        new = {pid for pid, parent in pairs if parent in new}
        found |= new
    return found


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def test_a_run_that_is_killed_and_resumed_ends_as_one_in_peace(bench: Bench) -> None:
    suite = write_suite(bench.folder / "tiny", EVALS)
    # Most answers hold no file, so that few of them need a sandbox.
    model = f"lab:{known_by(suite, 'coder-strong', prose=0.6)}"
    command = ("suite", "run", suite, "--model", model, "--jobs", "8")
    process = bench.start(*command)
    wait(lambda: results(bench) >= 40, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    there = results(bench)
    assert 40 <= there < EVALS

    said = bench.json(*command)
    assert (said["run"], said["status"], said["wanted"]) == (1, "complete", EVALS)
    assert results(bench) == EVALS, "what was judged is not judged again"
    assert bench.answered_twice() == 0
    stats = bench.stats()
    assert stats["bodies"]["answered"] == EVALS
    # What was on its way when the process died cannot be on record.
    assert stats["bodies"]["repeated"] <= FLYING

    peace = Bench(bench.folder, f"{bench.database}.peace", bench.endpoint)
    assert peace.json(*command)["counts"] == said["counts"]
    resumed, undisturbed = outcomes(bench), outcomes(peace)
    peace.close()
    assert resumed == undisturbed
    assert {outcome.kind for _, _, outcome in resumed} == {"passed", "failed"}


def test_ctrl_c_ends_cleanly_and_leaves_no_process(bench: Bench) -> None:
    suite = write_suite(bench.folder / "tiny", 24)
    grader = "sleep 600\n"
    for number in range(12):
        script = suite / f"001-values/{13 + number:03}-value/grader/check.sh"
        script.write_text(grader)
    model = f"lab:{known_by(suite, logic=0, syntax=0, missing=0)}"
    command = ("suite", "run", suite, "--model", model, "--jobs", "4")
    process = bench.start(*command)
    wait(lambda: results(bench) >= 12 and len(children(process)) >= 4, process)
    started = children(process)
    process.send_signal(signal.SIGINT)
    said = ended(process, 130)
    assert "go on with: judge-gym suite run" in said
    wait(lambda: not alive(started))
    asked = bench.stats()
    assert (asked["requests"], asked["bodies"]["repeated"]) == (24, 0)
    assert [outcome.kind for _, _, outcome in outcomes(bench)] == ["passed"] * 12
