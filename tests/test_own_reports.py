"""A study's report, status, budget and controls are its own, whatever it shares with others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from judge_gym.lab import Lab
from judge_gym.store.tables import attempts

WriteStudy = Callable[..., Path]
JUDGES = ["sim:strict", "sim:balanced"]
ITEMS = 3


@pytest.fixture
def two(write_study: WriteStudy) -> tuple[Path, Path]:
    """Two studies with the same experiments; the second asks for more of each."""
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
        "version": lab.reports.study_version(study),
        "paid": [{**row} for row in lab.reports.usage(study)],
    }


def calls_of(lab: Lab, study: str) -> int:
    """The calls that a study paid for."""
    return lab.store.usage.paid(study, 0)[0]


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
    assert shown(lab, "first") == before

    assert lab.runs.run(second, budget={"calls": 500}).status == "complete"
    assert shown(lab, "first") == before
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
    parts = [*lab.experiments.sample_parts()]
    assert sum(map(len, parts)) == len(frame)


def test_a_pause_stops_only_the_study_that_it_names(lab: Lab, two: tuple[Path, Path]) -> None:
    for file in two:
        lab.runs.start(file)
    lab.runs.pause("first")
    lab.runs.work(until_idle=True)
    assert {run["status"] for run in lab.runs.status("first")["runs"]} == {"paused"}
    assert {run["status"] for run in lab.runs.status("second")["runs"]} == {"complete"}
    lab.runs.resume("first")
    lab.runs.work(until_idle=True)
    assert {run["status"] for run in lab.runs.status("first")["runs"]} == {"complete"}
    assert calls_of(lab, "first") == 0, "all its answers were in the ledger"


def test_deleting_an_experiment_of_one_study_leaves_the_other(
    lab: Lab, two: tuple[Path, Path]
) -> None:
    first, second = two
    lab.runs.run(first)
    lab.runs.run(second)
    before = shown(lab, "first")
    for row in lab.experiments.find_study("second"):
        assert lab.experiments.cleanup(row["tag"], ledger=True)["samples"]
    assert lab.experiments.find_study("second") == []
    assert shown(lab, "first") == before
