"""A study's report, status, budget and controls are its own, whatever it shares with others."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from conftest import OnlySections, Scripted
from engines import replace_engine
from judge_gym.analysis.report import findings, verdicts
from judge_gym.engine import Engine
from judge_gym.errors import BudgetError
from judge_gym.lab import Lab
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import Completion, Request
from judge_gym.store import Progress
from judge_gym.store.tables import attempts

WriteStudy = Callable[..., Path]
JUDGES = ["sim:strict", "sim:balanced"]
ITEMS = 3


@pytest.fixture
def two(write_study: WriteStudy, only_sections: OnlySections) -> tuple[Path, Path]:
    """Two studies with the same experiments; the second asks for more of each."""
    only_sections(verdicts.response_outcomes, verdicts.chosen_stages, findings.cost)
    first = write_study("first.yaml", study="first", judges=JUDGES, samples=2, probe=False)
    second = write_study(
        "second.yaml", study="second", judges=JUDGES, samples=5, probe=True, swap="all"
    )
    return first, second


def shown(lab: Lab, study: str) -> dict[str, Any]:
    """Everything that a reader of a study sees, without what depends on the time."""
    status = lab.runs.status(study)
    return {
        "report": lab.reports.show(study),
        "export": lab.experiments.samples(study).drop(columns=["usd"]).to_csv(),
        "runs": status["runs"],
        "experiments": lab.experiments.list(study=study),
        "log": lab.runs.logs(study),
        "version": lab.pages.study_version(study),
        "paid": [{**row} for row in lab.reports.usage(study)],
    }


def calls_of(lab: Lab, study: str) -> int:
    """The calls that a study paid for."""
    return lab.store.usage.paid(study, 0)[0]


@pytest.mark.slow
def test_a_finished_report_stays_as_it_is_while_others_run_pause_and_extend(
    lab: Lab, two: tuple[Path, Path]
) -> None:
    first, second = two
    assert lab.runs.run(first).status == "complete"
    before = shown(lab, "first")
    assert len(lab.experiments.samples("first")) == ITEMS * len(JUDGES) * 2

    stopped = lab.runs.run(second, budget={"calls": 3})
    assert stopped.status == "over-budget" and calls_of(lab, "second") == 3
    assert shown(lab, "first") == before

    lab.runs.start("second", budget={"calls": 500})
    assert lab.runs.pause("second")
    assert {run["status"] for run in lab.runs.status("second")["runs"]} == {"paused"}
    assert shown(lab, "first") == before

    lab.runs.cancel("second")
    assert lab.runs.run(second, budget={"calls": 500}).status == "complete"
    lab.runs.run(second, samples=6)
    lab.runs.run(second, series="again")
    lab.runs.run(second, new_run=True)
    assert shown(lab, "first") == before


def test_studies_that_ask_the_same_pay_once(lab: Lab, two: tuple[Path, Path]) -> None:
    first, second = two
    lab.runs.run(first)
    lab.runs.run(second)
    with lab.store.database.read() as connection:
        repeated = sa.select(attempts.c.call_id).group_by(attempts.c.call_id)
        assert not connection.execute(repeated.having(sa.func.count() > 1)).all()
    frame = lab.experiments.samples()
    shared = lab.experiments.samples("first")
    assert set(shared["call_id"]) < set(lab.experiments.samples("second")["call_id"])
    assert len(frame) == len(lab.experiments.samples("second")), "a shared sample is listed once"
    parts = [*lab.pages.sample_parts()]
    assert sum(map(len, parts)) == len(frame)


def test_a_pause_stops_only_the_study_that_it_names(lab: Lab, two: tuple[Path, Path]) -> None:
    for file in two:
        lab.runs.start(file)
    lab.runs.pause("first")
    lab.workers.execute(until_idle=True)
    assert {run["status"] for run in lab.runs.status("first")["runs"]} == {"paused"}
    assert {run["status"] for run in lab.runs.status("second")["runs"]} == {"complete"}
    lab.runs.resume("first")
    lab.workers.execute(until_idle=True)
    assert {run["status"] for run in lab.runs.status("first")["runs"]} == {"complete"}
    assert calls_of(lab, "first") == 0, "all its answers were in the ledger"


def test_deleting_an_experiment_of_one_study_leaves_the_other(
    lab: Lab, two: tuple[Path, Path]
) -> None:
    first, second = two
    lab.runs.run(first)
    lab.runs.run(second)
    before = shown(lab, "first")
    for row in lab.studies.find_study("second"):
        assert lab.experiments.cleanup(row["tag"], ledger=True)["samples"]
    assert len(lab.experiments.samples("second")) == 0
    assert shown(lab, "first") == before


# --- plans and controls --------------------------------------------------------------------------


def test_a_plan_names_the_studies_that_it_shares_calls_with(
    lab: Lab, two: tuple[Path, Path]
) -> None:
    first, second = two
    assert not [note for note in lab.runs.plan(first)["warnings"] if "share" in note]
    lab.runs.run(first)
    paid = calls_of(lab, "first")
    assert (
        f"{paid} calls are shared with study 'first', which paid for them"
        in (lab.runs.plan(second)["warnings"])
    )
    lab.runs.start(second)
    unfinished = [note for note in lab.runs.plan(first)["warnings"] if "asks first pays" in note]
    assert {note.split()[0] for note in unfinished} == {
        f"second/fascism/here/{judge}" for judge in JUDGES
    }


def test_resuming_an_exhausted_budget_is_refused_until_it_is_raised(
    lab: Lab, two: tuple[Path, Path]
) -> None:
    first, _ = two
    lab.runs.run(first, budget={"calls": 3})
    with pytest.raises(
        BudgetError, match=r"of 3 calls is reached.*nothing was started.*'calls': 'LIMIT'"
    ):
        lab.runs.resume("first")
    assert {run["status"] for run in lab.runs.status("first")["runs"]} == {"over-budget"}
    lab.runs.resume("first", budget={"calls": 500})
    lab.workers.execute(until_idle=True)
    assert {run["status"] for run in lab.runs.status("first")["runs"]} == {"complete"}


def test_a_changed_budget_is_in_the_log(lab: Lab, two: tuple[Path, Path]) -> None:
    lab.runs.start(two[0])
    lab.runs.retune("first", budget={"calls": 7, "run.usd": 2}, limits={"rpm": 60})
    [event, *_] = [row for row in lab.runs.logs("first") if row.get("kind") == "retuned"]
    assert event["message"] == "budget: calls 7, run.usd 2; limits: rpm 60"
    assert event["detail"]["budget"] == {"calls": 7, "run": {"usd": 2}}


class Held(Scripted):
    """Simulated models, of which one waits for the test before it answers."""

    def __init__(self, model: str) -> None:
        super().__init__(lambda request: None)  # type: ignore[arg-type, return-value]
        self.model = model
        self.waiting, self.release = threading.Event(), threading.Event()

    async def complete(self, request: Request) -> Completion:
        if request.model == self.model:
            self.waiting.set()
            while not self.release.is_set():
                await asyncio.sleep(0.01)
        return await SimulatedModel(request.model).complete(request)


def until(condition: Callable[[], bool]) -> None:
    """Waits for what another thread does."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_worker_keeps_raised_budgets_and_a_pause_ends_when_calls_have_landed(
    lab: Lab, write_study: WriteStudy
) -> None:
    same = {"probe": False, "samples": 2}
    small = write_study("small.yaml", study="small", judges=["sim:balanced"], **same)
    held = write_study("held.yaml", study="held", judges=["sim:strict"], **same)
    models = Held("sim:strict")
    replace_engine(lab, Engine(lab.store, models))
    lab.runs.start(small, budget={"calls": 100})
    lab.runs.retune("small", budget={"calls": 2})
    lab.runs.start(held)

    def operate() -> tuple[list[str], bool]:
        with Lab.open(lab.store.database.url.render_as_string()) as other:

            def status(study: str) -> list[str]:
                return [run["status"] for run in other.runs.status(study)["runs"]]

            try:
                models.waiting.wait(60)
                until(lambda: status("small") == ["over-budget"])
                other.runs.resume("small", budget={"calls": 100})
                until(lambda: status("small") in (["complete"], ["over-budget"]))
                raised = status("small")
                other.runs.pause("held")
                before = other.runs.status("held")["in_progress"]
            finally:
                models.release.set()
            until(lambda: not other.runs.status("held")["in_progress"])
            return raised, before

    with ThreadPoolExecutor(1) as thread:
        operated = thread.submit(operate)
        lab.workers.execute(until_idle=True)
        assert operated.result() == (["complete"], True)


def test_a_failed_run_says_why() -> None:
    none = dict.fromkeys(("evidence", "rubric", "score", "swap", "probe"), 0)
    done = none | {"rubric": 1, "score": 40}
    lost = Progress(1, "tag", "3", done, done, none | {"score": 12}, {}, tolerance=0.05)
    assert lost.status == "failed"
    assert lost.message.startswith("12 of 41 calls failed, more than the tolerance of 5 %")
    unwritten = none | {"rubric": 1}
    unscored = Progress(1, "tag", "3", unwritten, unwritten, unwritten, {}, tolerance=0.05)
    assert (unscored.status, unscored.message) == (
        "failed",
        "nothing can be scored: there is no rubric",
    )
