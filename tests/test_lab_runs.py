"""Control of runs from Python: start, pause, resume, cancel, retry, retune."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Scripted
from engines import replace_engine
from judge_gym.engine import Engine, Workflow, queue, steps
from judge_gym.errors import ConflictError, DesignError, NotFoundError, RejectedError
from judge_gym.lab import Lab
from judge_gym.models import ModelCard
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import Completion, Request
from stores import blank

WriteStudy = Callable[..., Path]


class Counting(Scripted):
    """Simulated judges that count requests and reject some of them."""

    def __init__(self, refuses: Callable[[Request], bool] = lambda request: False) -> None:
        super().__init__(lambda request: "")
        self.refuses = refuses
        self.tried: Counter[str] = Counter()

    async def complete(self, request: Request) -> Completion:
        self.tried[request.key()] += 1
        if self.refuses(request):
            raise RejectedError("no such deployment")
        return await SimulatedModel(request.model).complete(request)


def statuses(lab: Lab) -> set[str]:
    return {row["status"] for row in lab.list_experiments(study="small")}


@pytest.mark.postgres
def test_a_started_run_is_executed_by_a_worker(lab: Lab, write_study: WriteStudy) -> None:
    tags = lab.runs.start(write_study())
    assert len(tags) == 2 and statuses(lab) == {"pending"}
    done = lab.engine.work(until_idle=True)
    assert statuses(lab) == {"complete"}
    assert sum(tally.paid for tally in done.values()) == sum(
        row["attempts"] for row in lab.reports.usage("small")
    )
    assert sum(run.calls for run in lab.runs.run("small").runs) == 0


def test_starting_a_study_twice_pays_once(lab: Lab, write_study: WriteStudy) -> None:
    models = Counting()
    replace_engine(lab, Engine(lab.store, models))
    for _ in range(2):
        lab.runs.start(write_study())
    lab.engine.work(until_idle=True)
    assert set(models.tried.values()) == {1}
    assert statuses(lab) == {"complete"}


@pytest.mark.postgres
def test_a_study_larger_than_a_shard_is_split(lab: Lab, write_study: WriteStudy) -> None:
    models = Counting()
    replace_engine(lab, Engine(lab.store, models))
    study = write_study(samples=200, judges=["sim:balanced"])
    assert lab.runs.run(study).status == "complete"
    assert set(models.tried.values()) == {1}
    frame = lab.experiments.samples("small")
    assert len(frame) == 600 and not frame.duplicated(["evidence", "replicate"]).any()


def test_the_shards_of_a_small_study_do_not_wait_for_those_of_a_large_one(
    lab: Lab, write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "SHARD", 4)
    small = 0

    class Occupied(Counting):
        """The verdicts of a large study arrive after all those of a small one."""

        def card(self, id: str) -> ModelCard:
            return replace(super().card(id), endpoint=f"http://{id.partition(':')[2]}")

        async def complete(self, request: Request) -> Completion:
            nonlocal small
            if "VERDICT: [" in request.messages[-1].content:
                small += request.model == "sim:balanced"
                async with asyncio.timeout(60):
                    while small < 9:
                        await asyncio.sleep(0.01)
            return await super().complete(request)

    replace_engine(lab, Engine(lab.store, Occupied()))
    for name, judge, samples in (("large", "sim:strict", 10), ("small", "sim:balanced", 3)):
        lab.runs.start(
            write_study(f"{name}.yaml", study=name, judges=[judge], samples=samples, probe=False)
        )
    lab.engine.work(until_idle=True)
    assert {run["status"] for run in lab.runs.status()["runs"]} == {"complete"}


@pytest.mark.postgres
def test_a_run_paused_before_it_begins_makes_no_calls_until_resumed(
    lab: Lab, write_study: WriteStudy
) -> None:
    models = Counting()
    replace_engine(lab, Engine(lab.store, models))
    lab.runs.start(write_study())
    assert len(lab.runs.pause("small")) == 2
    lab.engine.work(until_idle=True)
    assert (statuses(lab), models.tried) == ({"paused"}, {})
    assert lab.runs.run("small").status == "complete"


@pytest.mark.parametrize(
    ("workflows", "reason"),
    [
        (["score"], "3 of 3 items have no neutralized view by sim:editor"),
        (["evidence", "score"], "sim:balanced has written no rubric of 4 stages"),
    ],
)
def test_a_step_that_lacks_an_earlier_one_is_refused_and_leaves_nothing_behind(
    lab: Lab, write_study: WriteStudy, workflows: list[Workflow], reason: str
) -> None:
    study = write_study()
    for order in (lab.runs.run, lab.runs.start):
        with pytest.raises(ConflictError, match=reason) as refusal:
            order(study, workflows=workflows)
        assert str(study) in refusal.value.message, "its tag is not known to the lab yet"
    assert lab.list_experiments() == [] and lab.experiments.list_studies() == []
    steps: tuple[Workflow, ...] = ("evidence", "rubric", "score")
    for step in steps:
        lab.runs.run(study, workflows=[step])
    assert lab.runs.run(study).status == "complete"


def test_a_model_without_a_price_is_refused_and_leaves_nothing_behind(
    write_study: WriteStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "judge-gym.models.toml").write_text(
        '[endpoints.own]\nbase_url = "http://[::1]:9"\n'
    )
    monkeypatch.chdir(tmp_path)
    with Lab.open(blank(tmp_path / "lab.db")) as lab:
        for order in (lab.runs.run, lab.runs.start):
            with pytest.raises(DesignError, match="price"):
                order(write_study(judges=["own:x"], budget={"usd": 1}))
        assert lab.list_experiments() == []


def test_resume_continues_the_series_that_it_names(lab: Lab, write_study: WriteStudy) -> None:
    study = write_study(samples=1, judges=["sim:balanced"], seed=7)
    for series in (None, "again"):
        lab.runs.start(study, series=series)
    lab.runs.pause("small")
    with pytest.raises(NotFoundError, match="unknown series 'agian'; choose '7' or 'again'"):
        lab.runs.resume("small", series="agian")
    with pytest.raises(NotFoundError, match="'agian'"):
        lab.runs.run_resumed("small", series="agian")
    lab.runs.resume("small", series="again")
    lab.engine.work(until_idle=True)
    found = {run["series"]: run["status"] for run in lab.runs.status("small")["runs"]}
    assert found == {"7": "paused", "again": "complete"}


@pytest.mark.parametrize("stage", ["evidence", "rubric", "score"])
def test_a_run_pauses_after_the_requested_workflow(
    lab: Lab, write_study: WriteStudy, stage: str
) -> None:
    result = lab.runs.run(write_study(), pause_after=stage)  # type: ignore[arg-type]
    assert {run.status for run in result.runs} == {"paused"}
    assert result.stopped is not None and f"paused after {stage}" in result.stopped.message
    [progress] = lab.store.progress.of_tag(result.runs[0].tag)
    order = ["evidence", "rubric", "score", "probe"]
    done = [progress.done[one] == progress.targets[one] > 0 for one in order]
    reached = order.index(stage) + 1
    assert done[:reached] == [True] * reached
    assert progress.done["probe"] == 0
    assert lab.runs.run("small").status == "complete"


@pytest.mark.postgres
def test_a_cancelled_run_has_that_status_and_can_be_run_again(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.runs.run(write_study(), pause_after="rubric")
    lab.runs.cancel("small")
    assert statuses(lab) == {"cancelled"}
    assert lab.runs.run("small").status == "complete"
    assert lab.runs.cancel("small") == [], "what has ended cannot be cancelled"


def test_only_failed_repeats_failed_calls(lab: Lab, write_study: WriteStudy) -> None:
    failing = Counting(lambda request: request.model == "sim:strict" and request.draw.index == 1)
    replace_engine(lab, Engine(lab.store, failing))
    lab.runs.run(write_study(tolerance=1.0))
    [row] = [row for row in lab.list_experiments(study="small") if "strict" in row["tag"]]
    assert row["status"] == "complete-with-failures"
    assert {one["reason"] for one in row["runs"][0]["failures"]} == {"no such deployment"}
    healthy = Counting()
    replace_engine(lab, Engine(lab.store, healthy))
    lab.runs.run("small", only_failed=True)
    failed = {key for key, count in failing.tried.items() if count}
    assert len(healthy.tried) > 0
    asked_before = [key for key in healthy.tried if key in failed]
    assert asked_before, "the verdicts that failed"
    assert statuses(lab) <= {"complete", "probing", "complete-with-failures"}
    assert lab.runs.run("small").status == "complete"


def test_a_run_continues_when_its_budget_is_raised(lab: Lab, write_study: WriteStudy) -> None:
    stopped = lab.runs.run(write_study(budget={"calls": 10}))
    assert statuses(lab) == {"over-budget"}
    assert stopped.left is not None and stopped.left.to_pay > 0
    now = lab.runs.retune("small", budget={"calls": 1000})
    assert now["budget"]["calls"] == 1000
    [said] = {run["message"] for run in lab.runs.status("small")["runs"]}
    assert said == "its limits were changed (budget: calls 1000): continue with judge-gym resume"
    assert lab.runs.run("small").status == "complete"


@pytest.mark.postgres
def test_workers_skip_runs_of_another_protocol_and_a_new_run_replaces_them(
    lab: Lab, write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(queue, "PROTOCOL", "0")
        lab.runs.start(write_study())
    models = Counting()
    replace_engine(lab, Engine(lab.store, models))
    lab.engine.work(until_idle=True)
    assert (models.tried, statuses(lab)) == ({}, {"pending"})
    assert len(lab.engine.other_versions()) == 2
    assert all("protocol 0" in version for version in lab.engine.other_versions())
    assert lab.runs.run("small").status == "complete"
    assert lab.engine.other_versions() == []


def test_unknown_targets_and_limits_are_refused(lab: Lab, write_study: WriteStudy) -> None:
    with pytest.raises(NotFoundError, match="'nothing'"):
        lab.runs.pause("nothing")
    lab.runs.run(write_study())
    with pytest.raises(DesignError, match="unknown limit 'euros'"):
        lab.runs.retune("small", budget={"euros": 3})


def test_failed_calls_that_are_asked_again_are_in_progress_until_a_worker_has_asked_them(
    lab: Lab, write_study: WriteStudy
) -> None:
    """Whoever waits for the retry must not be told the failure that was there before."""
    lab.runs.run(write_study(judges=["sim:balanced?fail=0.5"], samples=2))
    assert statuses(lab) == {"failed"}
    lab.runs.retry("small")
    assert lab.runs.wait("small", timeout=0)["in_progress"] is True
    assert statuses(lab) == {"scoring"}
    lab.workers.execute(until_idle=True)
    ended = lab.runs.wait("small", timeout=0)
    assert ended["in_progress"] is False and statuses(lab) == {"failed"}, "it fails again"
