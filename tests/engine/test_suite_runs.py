"""Suite runs on the engine: killed, interrupted, paused, shared by workers, left waiting."""

import asyncio
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import postgres
from commands import Bench, Process, ended, ready, served, wait
from conftest import Call, Scripted, succeed
from engines import replace_engine
from judge_gym.engine import Engine, worker
from judge_gym.engine.calls import circuit_breaker, retry
from judge_gym.engine.controls import Controls
from judge_gym.errors import BudgetError, DesignError, RateLimitError, UnavailableError
from judge_gym.lab import Lab
from judge_gym.models.model_card import Limits
from judge_gym.records import Completion, Request, SuiteRun
from judge_gym.records.outcomes import Outcome
from judge_gym.store import Event
from judge_gym.store.tables import suite_results
from judge_gym.suites import CONDITIONS, load_suite
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


@pytest.mark.slow
def test_a_killed_and_resumed_run_ends_like_an_undisturbed_one(bench: Bench) -> None:
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

    [run] = bench.json(*command)["runs"]
    assert (run["run"], run["status"], run["targets"]) == (1, "complete", EVALS)
    assert results(bench) == EVALS, "what was judged is not judged again"
    assert bench.answered_twice() == 0
    stats = bench.stats()
    assert stats["bodies"]["answered"] == EVALS
    # What was on its way when the process died cannot be on record.
    assert stats["bodies"]["repeated"] <= FLYING

    peace = Bench(bench.folder, f"{bench.database}.peace", bench.endpoint)
    assert peace.json(*command)["runs"][0]["counts"] == run["counts"]
    resumed, undisturbed = outcomes(bench), outcomes(peace)
    peace.close()
    assert resumed == undisturbed
    assert {outcome.kind for _, _, outcome in resumed} == {"passed", "failed"}


@pytest.mark.slow
def test_ctrl_c_ends_the_sandboxes_and_repeats_no_call(bench: Bench) -> None:
    suite = write_suite(bench.folder / "tiny", 24, seconds=600)
    grader = "sleep 600\n"
    for number in range(12):
        script = suite / f"001-values/{13 + number:03}-value/grader/check.sh"
        script.write_text(grader)
    model = f"lab:{known_by(suite, logic=0, syntax=0, missing=0)}"
    command = ("suite", "run", suite, "--model", model, "--jobs", "4")
    quick = [word for path in ("/00", "/010", "/011", "/012") for word in ("--evals", path)]
    bench.call(*command, *quick)
    process = bench.start(*command)
    wait(lambda: bench.attempts() == 24 and len(children(process)) >= 4, process)
    started = children(process)
    process.send_signal(signal.SIGINT)
    said = ended(process, 130)
    assert "continue with: judge-gym suite run" in said
    wait(lambda: not alive(started))
    asked = bench.stats()
    assert (asked["requests"], asked["bodies"]["repeated"]) == (24, 0)
    assert [outcome.kind for _, _, outcome in outcomes(bench)] == ["passed"] * 12


# --- in this process -----------------------------------------------------------------------------

PROSE = "I would rather not write any code."
"""A reply without a file: it fails before it needs a sandbox."""


class Slow(Scripted):
    """Answers one call after the other, and calls a function before the one of a number."""

    def __init__(self, number: int, then: "threading.Event | None" = None) -> None:
        super().__init__(lambda request: PROSE)
        self.number = number
        self.reached = threading.Event()
        self.proceed = then or threading.Event()

    async def complete(self, request: Request) -> Completion:
        answer = await super().complete(request)
        if len(self.asked) == self.number:
            self.reached.set()
            while not self.proceed.is_set():
                await asyncio.sleep(0.01)
        return answer


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "tiny", 8)


def stored(lab: Lab, suite: Path, evals: int = 8, model: str = "") -> SuiteRun:
    """A run with its row, which nothing has executed yet."""
    loaded, condition = load_suite(suite), CONDITIONS["default"]
    lab.store.suites.save_tasks(loaded.name, loaded.version, [task.source for task in loaded.evals])
    return lab.store.suites.save_run(
        loaded.name,
        loaded.version,
        model or f"sim:{known_by(suite)}",
        condition.name,
        condition.key,
        "0",
        replicates=1,
        evals=[task.path for task in loaded.evals[:evals]],
    )


def message(lab: Lab, run: SuiteRun) -> str:
    [row] = lab.runs.status(f"suite:{run.id}")["runs"]
    return str(row["message"])


@pytest.mark.parametrize(("verb", "status"), [("pause", "paused"), ("cancel", "cancelled")])
def test_a_run_is_paused_or_cancelled_from_elsewhere_and_then_repeats_nothing(
    lab: Lab, suite: Path, monkeypatch: pytest.MonkeyPatch, verb: str, status: str
) -> None:
    applied, seen = threading.Event(), threading.Event()
    in_progress = []
    apply = Controls._apply

    def note(self: Controls, event: Event) -> None:
        apply(self, event)
        if event.kind == status:
            assert seen.wait(60)
            applied.set()

    monkeypatch.setattr(Controls, "_apply", note)
    models = Slow(3, applied)
    replace_engine(lab, Engine(lab.store, models, limits=Limits(concurrency=1)))

    def control() -> None:
        models.reached.wait()
        assert getattr(lab.runs, verb)("suite:1") == ["suite:1"]
        in_progress.append(lab.runs.status("suite:1")["runs"][0]["in_progress"])
        seen.set()

    elsewhere = threading.Thread(target=control)
    elsewhere.start()
    report = lab.suites.run(suite, f"sim:{known_by(suite)}")
    elsewhere.join()
    assert (report.status, len(models.asked), len(report.results)) == (status, 3, 2)
    assert in_progress == [True], "the third call was in flight"
    [row] = lab.runs.status("suite:1")["runs"]
    assert not row["in_progress"]
    assert (row["status"], row["done"], row["targets"]) == (status, {"evals": 2}, {"evals": 8})
    models.number = 0
    assert lab.suites.resume(1).status == "complete"
    assert len(models.asked) == 8, "the third answer was in the ledger"


def test_a_budget_stops_a_run_and_a_raised_one_continues_it(lab: Lab, suite: Path) -> None:
    models = Scripted(lambda request: PROSE)
    replace_engine(lab, Engine(lab.store, models))
    report = lab.suites.run(suite, f"sim:{known_by(suite)}", budget={"calls": 3})
    assert isinstance(report.stopped, BudgetError)
    assert (report.status, len(report.results), len(models.asked)) == ("over-budget", 3, 3)
    with pytest.raises(
        BudgetError, match=r"3 calls is reached.*nothing was started.*'calls': 'LIMIT'"
    ):
        lab.runs.resume("suite:1")
    lab.runs.retune("suite:1", budget={"calls": 100})
    assert lab.runs.resume("suite:1") == ["suite:1"]
    lab.engine.work(until_idle=True)
    assert (lab.suites.report(1).status, len(models.asked)) == ("complete", 8)


class DownAtFirst(Scripted):
    """Fails every call until its run waits for the endpoint, and the first call after that."""

    def __init__(self, lab: Lab, run: SuiteRun) -> None:
        super().__init__(lambda request: PROSE)
        self.lab, self.run = lab, run
        self.failed_by_trial = Counter[int]()

    async def complete(self, request: Request) -> Completion:
        events = self.lab.store.events.since(0, [self.run.payer])
        trial = sum(event.kind == "waiting" for event in events)
        if trial < 2:
            self.failed_by_trial[trial] += 1
            raise UnavailableError("HTTP 503")
        return await super().complete(request)


def test_a_worker_tries_the_endpoint_of_a_suite_run_again_and_completes_the_run(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(retry, "BACKOFF", 0.001)
    monkeypatch.setattr(worker, "SWEEP", 0.02)
    monkeypatch.setattr(circuit_breaker, "FIRST_WAIT", 0.02)
    run = stored(lab, write_suite(tmp_path / "tiny", 24), 24)
    models = DownAtFirst(lab, run)
    replace_engine(lab, Engine(lab.store, models))
    lab.engine.start_suites([run])
    with monkeypatch.context() as patched:
        patched.setattr(lab.store.events, "retries", list)  # the worker ends meanwhile
        lab.engine.work(until_idle=True)
    report = lab.suites.report(run.id)
    assert report.score.inconclusive == {"infrastructure": 24}
    assert (report.status, report.in_progress, report.failed) == ("unfinished", True, False)
    assert "HTTP 503" in message(lab, run) and "retrying at" in message(lab, run)
    lab.engine.work(until_idle=True)
    assert (lab.suites.report(run.id).status, len(models.asked)) == ("complete", 24)
    assert models.failed_by_trial[1] == 1, "an endpoint is tried with one call"


def test_a_suite_run_that_waits_for_its_endpoint_can_be_paused(
    lab: Lab, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = stored(lab, suite)
    limit = Scripted(lambda request: RateLimitError("come back tomorrow", wait=80_000))
    replace_engine(lab, Engine(lab.store, limit))
    lab.engine.start_suites([run])
    with monkeypatch.context() as patched:
        patched.setattr(lab.store.events, "retries", list)
        lab.engine.work(until_idle=True)
    assert not lab.engine.idle()
    assert lab.runs.pause(f"suite:{run.id}") == [f"suite:{run.id}"]
    assert lab.engine.idle()


def test_a_worker_without_the_suite_leaves_a_run_waiting_and_status_says_why(
    lab: Lab, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Scripted(lambda request: PROSE)
    replace_engine(lab, Engine(lab.store, models))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run = stored(lab, suite)
    lab.engine.start_suites([run])
    assert "no worker is running" in message(lab, run)
    assert lab.engine.idle(), "there is nothing to do for a worker of this machine"
    lab.engine.work(until_idle=True)
    assert "cannot take it: the suite 'tiny' is not here" in message(lab, run)
    with pytest.raises(DesignError, match="the suite 'tiny' is not here"):
        lab.suites.resume(run.id)
    monkeypatch.chdir(tmp_path)
    (suite / "guidelines.md").write_text("# Guidelines\n\n## Style\nOther words.\n")
    replace_engine(lab, Engine(lab.store, models))
    lab.runs.resume(f"suite:{run.id}")
    lab.engine.work(until_idle=True)
    assert f"and the run is of version {run.version}" in message(lab, run)
    assert models.asked == []
    shutil.rmtree(suite)
    write_suite(suite, 8)
    replace_engine(lab, Engine(lab.store, models))
    lab.engine.work(until_idle=True)
    assert (lab.suites.report(run.id).status, message(lab, run)) == ("complete", "")


def test_a_worker_without_a_sandbox_leaves_a_run_waiting(
    lab: Lab, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("judge_gym.suites.sandbox.isolations", lambda: ())
    run = stored(lab, suite)
    lab.engine.start_suites([run])
    lab.engine.work(until_idle=True)
    assert "cannot take it: no sandbox works here" in message(lab, run)


def test_a_busy_worker_takes_a_suite_run_that_is_started_later(
    lab: Lab, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models = Slow(1)
    replace_engine(lab, Engine(lab.store, models))
    first = stored(lab, suite, 1)
    lab.engine.start_suites([first])
    other = write_suite(tmp_path / "other", 3, name="other")

    def start_other() -> None:
        models.reached.wait()
        lab.engine.start_suites([stored(lab, other, 3)])
        wait(lambda: len(models.asked) == 4)
        models.proceed.set()

    elsewhere = threading.Thread(target=start_other)
    elsewhere.start()
    lab.engine.work(until_idle=True)
    elsewhere.join()
    assert [report.status for report in lab.suites.reports()] == ["complete", "complete"]


def test_a_second_command_follows_the_first_and_pays_nothing(lab: Lab, suite: Path) -> None:
    models = Slow(2)
    replace_engine(lab, Engine(lab.store, models))
    ended: list[str] = []

    def follow() -> None:
        models.reached.wait()
        with Lab.open(lab.store.database.url.render_as_string()) as second:
            replace_engine(second, Engine(second.store, Scripted(lambda request: "never asked")))
            watched = second.suites.run(
                suite, f"sim:{known_by(suite)}", watch=lambda progress: models.proceed.set()
            )
            ended.append(watched.status)

    elsewhere = threading.Thread(target=follow)
    elsewhere.start()
    report = lab.suites.run(suite, f"sim:{known_by(suite)}")
    elsewhere.join()
    assert (report.status, ended, len(models.asked)) == ("complete", ["complete"], 8)


def test_the_commands_of_runs_take_a_suite_run(
    call: Call, suite: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_GYM_DATABASE_URL", lab.store.database.url.render_as_string())
    run = stored(lab, suite)
    lab.engine.start_suites([run])
    assert succeed(call("pause", "suite:1", "--json")).json == {"paused": ["suite:1"]}
    shown = succeed(call("status", "suite:1"))
    assert "paused" in shown.out and "0/8" in shown.out
    assert succeed(call("resume", "suite:1", "--json")).json["status"] == "complete"
    [row] = succeed(call("status", "suite:1", "--json")).json
    assert (row["status"], row["done"], row["in_progress"]) == ("complete", {"evals": 8}, False)
    assert succeed(call("cancel", "suite:1", "--json")).json == {"cancelled": []}
    assert call("pause", "suite:x").code == 2
    assert call("status", "suite:9").code == 2


# --- workers on Postgres -------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Bench]:
    with served("--latency", "0.4") as url:
        made = Bench(tmp_path, postgres.fresh_url(), url)
        yield made
        made.close()


def executors(bench: Bench) -> set[str]:
    """The workers that have executed shards."""
    query = sa.text("SELECT DISTINCT executor_id FROM dbos.workflow_status WHERE name = 'shard'")
    with bench.store.database.read() as connection:
        return {id for id in connection.scalars(query) if id}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kill", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["both end", "one is killed"]
)
def test_two_workers_share_a_run_and_one_continues_what_a_killed_one_left(
    server: Bench, monkeypatch: pytest.MonkeyPatch, kill: bool
) -> None:
    evals = 120
    suite = write_suite(server.folder / "tiny", evals)
    monkeypatch.chdir(server.folder)
    workers = [ready(server), ready(server)]
    with Lab.open(server.database) as lab:
        run = stored(lab, suite, evals, f"lab:{known_by(suite, 'coder-strong', prose=0.6)}")
        lab.engine.start_suites([run])
        wait(lambda: len(executors(server)) == 2, *workers)
        if kill:
            workers[0].kill()
            workers.pop(0)
        wait(lambda: lab.suites.report(run.id).status == "complete", *workers)
    stats = server.stats()
    lost = stats["requests"] - evals
    assert (stats["bodies"]["distinct"], lost <= (FLYING if kill else 0)) == (evals, True)
    if not kill:
        assert (results(server), server.answered_twice()) == (evals, 0)
