"""An endpoint that is down is tried again with single calls, and its run goes on by itself."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Scripted
from engines import replace_engine
from judge_gym.engine import Engine, controls, worker, workflow
from judge_gym.engine.calls import circuit_breaker, retry
from judge_gym.engine.calls.circuit_breaker import Circuit, EndpointDown
from judge_gym.errors import UnavailableError
from judge_gym.lab import Lab
from judge_gym.models.model_card import Limits
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import Completion, Request
from judge_gym.store import Event

WriteStudy = Callable[..., Path]


class Down(Scripted):
    """Simulated judges whose verdicts fail until some trials of their endpoint have failed."""

    def __init__(self, lab: Lab, failing: int) -> None:
        super().__init__(lambda request: "")
        self.lab, self.failing = lab, failing
        self.failed_by_trial: list[int] = []
        """Calls that failed before the first trial, in the first trial, and so on."""

    async def complete(self, request: Request) -> Completion:
        if "VERDICT: [" not in request.messages[-1].content:
            return await SimulatedModel(request.model).complete(request)
        trials = sum(event.kind == "waiting" for event in events(self.lab))
        if trials <= self.failing:
            self.failed_by_trial += [0] * (trials + 1 - len(self.failed_by_trial))
            self.failed_by_trial[trials] += 1
            raise UnavailableError("HTTP 503")
        return await SimulatedModel(request.model).complete(request)


def events(lab: Lab) -> list[Event]:
    return lab.store.events.since(0, range(1, 9))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that a test can wait for."""
    monkeypatch.setattr(retry, "BACKOFF", 0.001)
    monkeypatch.setattr(worker, "SWEEP", 0.02)
    monkeypatch.setattr(circuit_breaker, "FIRST_WAIT", 0.02)


@pytest.fixture
def study(write_study: WriteStudy) -> Path:
    return write_study(samples=20, judges=["sim:balanced"], probe=False)


def test_a_worker_tries_an_endpoint_with_one_call_each_time_and_completes_the_run(
    lab: Lab, study: Path
) -> None:
    models = Down(lab, failing=2)
    replace_engine(lab, Engine(lab.store, models))
    lab.runs.start(study)
    lab.workers.execute(until_idle=True)
    assert {run["status"] for run in lab.runs.status("small")["runs"]} == {"complete"}
    assert models.failed_by_trial[1:] == [1, 1]
    waits = [event.detail["wait"] for event in events(lab) if event.kind == "waiting"]
    assert waits == [0.02, 0.04, 0.08]


def stop_at_the_first_wait(lab: Lab, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a worker end while its run waits for the endpoint."""
    with monkeypatch.context() as patched:
        patched.setattr(lab.store.events, "retries", list)
        replace_engine(lab, Engine(lab.store, Down(lab, failing=1)))
        lab.runs.start(study)
        lab.workers.execute(until_idle=True)


def test_another_worker_goes_on_after_a_restart(
    lab: Lab, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at_the_first_wait(lab, study, monkeypatch)
    assert not lab.workers.is_idle()
    [run] = lab.runs.status("small")["runs"]
    assert run["in_progress"] and "no worker is running" in run["message"]
    [waiting] = lab.store.events.retries()
    assert "HTTP 503" in waiting.message and "retrying at" in waiting.message
    models = Down(lab, failing=1)
    replace_engine(lab, Engine(lab.store, models))
    lab.workers.execute(until_idle=True)
    assert {run["status"] for run in lab.runs.status("small")["runs"]} == {"complete"}
    assert models.failed_by_trial == [0, 1], "the new worker, too, tries with a single call"


def test_a_run_that_the_user_paused_meanwhile_does_not_go_on(
    lab: Lab, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at_the_first_wait(lab, study, monkeypatch)
    lab.runs.pause("small")
    assert lab.workers.is_idle()
    replace_engine(lab, Engine(lab.store, Down(lab, failing=0)))
    lab.workers.execute(until_idle=True)
    assert {run["status"] for run in lab.runs.status("small")["runs"]} == {"paused"}


def test_a_pause_by_the_user_wins_over_an_endpoint_that_fails_at_the_same_time(
    lab: Lab, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "LISTEN", 60.0)  # the pause is not noticed before the failures

    class PausedMeanwhile(Down):
        async def complete(self, request: Request) -> Completion:
            if not self.failed_by_trial and "VERDICT: [" in request.messages[-1].content:
                lab.runs.pause("small")
            return await super().complete(request)

    replace_engine(lab, Engine(lab.store, PausedMeanwhile(lab, failing=0)))
    lab.runs.start(study)
    lab.workers.execute(until_idle=True)
    assert {run["status"] for run in lab.runs.status("small")["runs"]} == {"paused"}
    assert [event.kind for event in events(lab)] == ["started", "paused"]


def test_a_run_resumed_while_its_pause_takes_effect_goes_on(
    lab: Lab, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "LISTEN", 0.005)
    apply, record_end = controls.Controls._apply, workflow.Workflows._record_end
    applied: list[str] = []

    def note(self: controls.Controls, event: Event) -> None:
        apply(self, event)
        applied.append(event.kind)

    def resume_first(self: workflow.Workflows, *ended: Any) -> None:
        if applied[-1] == "paused":
            lab.runs.resume("small")
        record_end(self, *ended)

    monkeypatch.setattr(controls.Controls, "_apply", note)
    monkeypatch.setattr(workflow.Workflows, "_record_end", resume_first)

    class PausedMeanwhile(Scripted):
        async def complete(self, request: Request) -> Completion:
            if "paused" not in applied and "VERDICT: [" in request.messages[-1].content:
                lab.runs.pause("small")
                while "paused" not in applied:
                    await asyncio.sleep(0.005)
            return await SimulatedModel(request.model).complete(request)

    models = PausedMeanwhile(lambda request: "")
    replace_engine(lab, Engine(lab.store, models, limits=Limits(concurrency=1)))
    lab.runs.start(study)
    lab.workers.execute(until_idle=True)
    assert {run["status"] for run in lab.runs.status("small")["runs"]} == {"complete"}
    kinds = [event.kind for event in events(lab)]
    assert kinds == ["started", "paused", "started", "waiting", "started", "ended"]


def test_a_command_ends_and_no_worker_continues_what_it_followed(lab: Lab, study: Path) -> None:
    replace_engine(lab, Engine(lab.store, Down(lab, failing=0)))
    result = lab.runs.run(study)
    assert result.status not in ("complete", "failed")
    assert any("the same command continues" in note for note in result.warnings)
    assert lab.store.events.retries() == [] and lab.workers.is_idle()
    assert lab.runs.run(study).status == "complete"


def test_a_failed_trial_pauses_at_once_and_for_twice_as_long() -> None:
    tried = Circuit("there")
    for _ in range(circuit_breaker.FAILURES_IN_A_ROW):
        tried.refuse()
        tried.fail("HTTP 503")
    with pytest.raises(EndpointDown, match="failed 20 times in a row, last: HTTP 503"):
        tried.refuse()
    tried.try_again(15.0)
    tried.refuse()
    tried.fail("HTTP 502")
    with pytest.raises(EndpointDown, match="there failed again, last: HTTP 502") as raised:
        tried.refuse()
    assert raised.value.trial == {"endpoint": "there", "wait": 30.0}


def test_calls_wait_for_the_one_that_tries_the_endpoint() -> None:
    async def scenario() -> list[str]:
        tried, order = Circuit("there"), []
        tried.try_again(1.0)

        async def call(name: str) -> None:
            trial = await tried.enter()
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            if trial is not None:
                order.append(f"{name} answers")
                tried.succeed()
                trial.release()

        await asyncio.gather(*map(call, "abc"))
        return order

    order = asyncio.run(scenario())
    assert order[:2] == ["a begins", "a answers"] and set(order[2:]) == {"b begins", "c begins"}
