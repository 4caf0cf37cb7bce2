"""A suite run is posted as it comes: nothing twice, nothing lost, whoever goes away meanwhile."""

import os
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from commands import Bench, ended, wait
from commands import served as simulated
from conftest import Call, succeed
from judge_gym.cli.remote import find_eval
from judge_gym.client import Client
from judge_gym.lab import Lab
from judge_gym.web import serve
from lab_server import EASY, ServedLab, serve_lab
from posted_suite_runs import rows_in
from stores import blank
from suite_folders import known_by, write_suite
from workers import write_entry

Rows = list[tuple[str, int, str, datetime]]


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[ServedLab]:
    (tmp_path / "remote").mkdir()
    with serve_lab(tmp_path / "remote", run=False) as opened:
        yield opened


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "tiny", 4)


def weak(suite: Path) -> str:
    return f"sim:{known_by(suite, 'coder-weak')}"


def results(lab: Lab, run: int = 1) -> Rows:
    """What came of a run, by natural keys."""
    rows = lab.store.suites.results(run).get(run, [])
    return [(r.result.path, r.result.replicate, r.result.outcome.kind, r.at) for r in rows]


@pytest.fixture
def here(call: Call, tmp_path: Path) -> Iterator[Lab]:
    """The lab of the commands."""
    with Lab.open(blank(tmp_path / ".judge-gym" / "lab.db")) as opened:
        yield opened


def test_a_whole_run_is_posted_to_the_remote_lab(
    call: Call, here: Lab, remote: ServedLab, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_GYM_TOKEN", remote.local)
    words = ("suite", "run", suite, "--model", weak(suite), "--lab", remote.url)
    [said] = succeed(call(*words, "--json")).json["runs"]
    assert said["posted"]["stored"] == 4
    assert results(remote.lab, said["posted"]["run"]) == results(here)
    with Client(remote.url, remote.read) as client:
        [row] = [
            one for one in client.suites.show_run(1)["evals"] if one["path"].endswith("/001-value")
        ]
        found = client.suites.show_eval(row["eval"])
    assert "VALUE = 1000" in found["task"]
    # The writer's defects depend on the suite's folder: the local result is the reference.
    assert found["files"] == here.suites.show_eval(find_eval(here, row["path"]))["files"]
    again = succeed(call(*words))
    assert "4 of 4 results are in run 1" in again.err
    assert rows_in(remote.lab) == 4, "nothing is posted twice"
    succeed(call(*words, "--replicates", "2"))
    assert rows_in(remote.lab) == 8


def test_results_missed_by_an_unavailable_lab_are_posted_by_the_same_command(
    call: Call, here: Lab, remote: ServedLab, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address is that of nobody at first."""
    monkeypatch.setenv("JUDGE_GYM_TOKEN", _write_token(remote.lab))
    with serve(remote.lab, port=0, work=False) as at:
        free = at.url
    words = ("suite", "run", suite, "--model", weak(suite), "--lab", free)
    said = call(*words)
    assert said.code == 1
    assert f"the lab at {free} cannot be reached: connection refused" in said.err
    assert "urllib3" not in said.err and "HTTPConnection" not in said.err
    assert "are stored in this lab; post them with:" in said.err
    assert len(results(here)) == 4
    assert rows_in(remote.lab) == 0
    paid = here.reports.usage()
    with serve(remote.lab, port=int(free.rpartition(":")[2]), work=False, limits=EASY):
        assert succeed(call(*words, "--json")).json["runs"][0]["posted"]["missing"] == 0
    assert results(remote.lab) == results(here)
    assert here.reports.usage() == paid, "nothing was generated anew"


def test_a_token_that_may_not_write_is_refused_before_any_call(
    call: Call, here: Lab, remote: ServedLab, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("suite", "run", suite, "--model", weak(suite), "--lab", remote.url)
    for token, said in ((remote.read, "may only read"), ("wrong", "unknown or revoked")):
        monkeypatch.setenv("JUDGE_GYM_TOKEN", token)
        refused = call(*words)
        assert refused.code != 0
        assert said in refused.err
    assert (results(here), here.reports.usage(), here.suites.list_runs()) == ([], [], [])


@pytest.mark.slow
def test_the_same_run_of_two_labs_is_not_mixed(
    call: Call, remote: ServedLab, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_GYM_TOKEN", remote.local)
    words = ("suite", "run", suite, "--model", weak(suite), "--lab", remote.url)
    succeed(call(*words))
    kept = results(remote.lab)
    other = ("--db", f"sqlite:///{tmp_path / 'other.db'}")
    said = call(*other, *words)
    assert said.code == 1
    assert "0 of 4 results" in said.err and "another series" in said.err
    assert results(remote.lab) == kept
    [own] = succeed(call(*other, *words, "--series", "mine", "--json")).json["runs"]
    assert (own["posted"]["run"], own["posted"]["stored"]) == (2, 4)


def test_the_schedule_asks_the_remote_lab(
    call: Call, remote: ServedLab, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_GYM_TOKEN", remote.local)
    words = ("schedule", suite, "--lab", remote.url)
    succeed(call(*words, "--model", weak(suite), "--write"))
    [never] = succeed(call(*words, "--json")).json["schedule"]
    assert (never["due"], never["due_from"], never["estimated"]) == (True, None, True)
    made = succeed(call(*words, "--run", "--json")).json
    assert [one["posted"]["stored"] for one in made["runs"]] == [4]
    there = ("--db", f"sqlite:///{suite.parent / 'other.db'}")
    [now] = succeed(call(*there, *words, "--json")).json["schedule"]
    assert (now["model"], now["due"]) == (weak(suite), False), "the remote lab has its run"


@pytest.mark.slow
def test_a_killed_run_continues_without_lost_or_duplicate_results(
    remote: ServedLab, tmp_path: Path
) -> None:
    """Results reach the remote lab while the run goes on, and the rest after it was killed."""
    evals = 12
    suite = write_suite(tmp_path / "many", evals, name="many")
    with simulated() as url:
        bench = Bench(tmp_path, f"sqlite:///{tmp_path / 'lab.db'}", url)
        bench.environment = {"JUDGE_GYM_TOKEN": remote.local}
        words = ("suite", "run", suite, "--model", f"lab:{known_by(suite)}", "--jobs", "1")
        try:
            process = bench.start(*words, "--lab", remote.url)
            wait(lambda: rows_in(remote.lab) > 0, process)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            before = rows_in(remote.lab)
            assert 0 < before <= evals
            said: Any = ended(bench.start(*words, "--lab", remote.url))
            assert f"{evals} of {evals} results are in run 1" in said
            with Lab.open(bench.database) as here:
                assert results(remote.lab) == results(here)
            assert rows_in(remote.lab) == evals
        finally:
            bench.close()


def _write_token(lab: Lab) -> str:
    _, secret = lab.store.tokens.create("poster", "write")
    return secret


def test_the_schedule_of_a_remote_lab_uses_local_first_dates(
    call: Call, remote: ServedLab, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_GYM_TOKEN", remote.local)
    with simulated() as url:
        entry = '[models."lab:coder-strong"]\nfirst_seen = 2020-01-01\n'
        entry += '[schedule]\nmodels = ["lab:coder-strong"]\nusd_per_month = 1\n'
        write_entry(tmp_path, url, entry)
        succeed(call("suite", "list"))
        [here] = succeed(call("schedule", suite, "--json")).json["schedule"]
        [there] = succeed(call("schedule", suite, "--lab", remote.url, "--json")).json["schedule"]
    assert here["model"] == there["model"] == "lab:coder-strong"
    assert there["days"] == pytest.approx(here["days"], rel=1e-3)
    assert there["days"] > 40, "it has been there for years"


def test_a_token_that_is_refused_names_where_it_is_read_from(
    call: Call, remote: ServedLab, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_GYM_TOKEN", "wrong")
    said = call("schedule", suite, "--lab", remote.url)
    assert said.code != 0 and "JUDGE_GYM_TOKEN" in said.err
