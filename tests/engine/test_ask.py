"""Asking: patience with providers, each attempt on record, one endpoint's trouble not another's."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import web as served
from conftest import Scripted
from engines import replace_engine
from judge_gym.engine import Engine, controls
from judge_gym.engine.calls import retry
from judge_gym.errors import BudgetError, RateLimitError, RejectedError, UnavailableError
from judge_gym.lab import Lab
from judge_gym.models import ModelCard
from judge_gym.models.http_model import HttpModel
from judge_gym.models.model_card import Limits
from judge_gym.models.prices import Prices
from judge_gym.models.simulated import SimulatedModel
from judge_gym.models.simulated.openai_format import read_request, write_completion
from judge_gym.records import Completion, Request
from judge_gym.store import tables as t
from web import Asked, Web

WriteStudy = Callable[..., Path]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that a test can wait for."""
    monkeypatch.setattr(retry, "BACKOFF", 0.001)


class Faulty(Scripted):
    """Simulated judges with faults: of each request, the first few attempts fail as told."""

    def __init__(self, *faults: Exception, only: str = "") -> None:
        super().__init__(lambda request: "")
        self.faults, self.only = faults, only
        self.tried: Counter[str] = Counter()

    async def complete(self, request: Request) -> Completion:
        key = request.key()
        self.tried[key] += 1
        if self.tried[key] <= len(self.faults) and request.model.startswith(self.only):
            raise self.faults[self.tried[key] - 1]
        return await SimulatedModel(request.model).complete(request)


def run(lab: Lab, study: Path, models: Faulty) -> tuple[str, list[tuple[bool, str | None]]]:
    replace_engine(lab, Engine(lab.store, models))
    status = lab.runs.run(study).status
    query = sa.select(t.attempts.c.completed, t.attempts.c.error).order_by(t.attempts.c.id)
    with lab.store.database.read() as connection:
        return status, [(row.completed, row.error) for row in connection.execute(query)]


def test_a_temporary_error_is_retried_and_every_attempt_recorded(
    lab: Lab, write_study: WriteStudy
) -> None:
    models = Faulty(UnavailableError("timed out"), UnavailableError("HTTP 500"))
    status, attempts = run(lab, write_study(samples=1), models)
    assert status == "complete"
    outcomes = Counter(attempts)
    calls = len(models.tried)
    assert outcomes == {
        (True, None): calls,
        (False, "timed out"): calls,
        (False, "HTTP 500"): calls,
    }


def test_each_models_answers_and_last_error_are_counted(lab: Lab, write_study: WriteStudy) -> None:
    models = Faulty(UnavailableError("HTTP 500"), only="sim:balanced")
    run(lab, write_study(samples=1, judges=["sim:balanced"]), models)
    found = {row["model"]: row for row in lab.pages.study_models("small")}
    judge = found.pop("sim:balanced")
    assert judge["paid"] == 2 * judge["answered"] > 0, "each call failed once"
    assert 0 <= judge["last_minute"] <= judge["answered"] and judge["last_error"] == "HTTP 500"
    assert found and all(row["last_error"] is None for row in found.values())


def test_a_call_fails_after_five_attempts(lab: Lab, write_study: WriteStudy) -> None:
    models = Faulty(*[UnavailableError("HTTP 500")] * 9, only="sim:strict")
    study = write_study(samples=1, judges=["sim:balanced"], design={
        "evidence.editor": "sim:strict", "rubric.critic": "sim:critic"})  # fmt: skip
    run(lab, study, models)
    failing = [count for key, count in models.tried.items() if count > 1]
    assert failing and set(failing) == {5}


def test_a_rejected_request_is_not_retried(lab: Lab, write_study: WriteStudy) -> None:
    models = Faulty(RejectedError("context too long"))
    _, attempts = run(lab, write_study(samples=1, judges=["sim:balanced"]), models)
    assert set(models.tried.values()) == {1}
    assert (False, "context too long") in attempts


def test_a_wait_that_a_provider_asks_for_costs_no_attempt(
    lab: Lab, write_study: WriteStudy
) -> None:
    models = Faulty(*[RateLimitError("slow down", wait=0.001)] * 8)
    status, attempts = run(lab, write_study(samples=1), models)
    assert status == "complete"
    assert {completed for completed, _ in attempts} == {True}
    assert set(models.tried.values()) == {9}


def test_a_provider_that_asks_for_an_hour_pauses_its_share_and_others_go_on(
    lab: Lab, write_study: WriteStudy
) -> None:
    models = Faulty(*[RateLimitError("quota", wait=3600.0)] * 99, only="sim:strict")
    replace_engine(lab, Engine(lab.store, models))
    result = lab.runs.run(write_study(samples=1))
    statuses = {run.tag.split("/")[-1]: run.status for run in result.runs}
    assert statuses["sim:balanced"] == "complete"
    assert statuses["sim:strict"] not in ("complete", "failed")
    assert any("sim:strict" in note and "3600 s" in note for note in result.warnings)
    replace_engine(lab, Engine(lab.store, Faulty()))
    assert lab.runs.run(write_study(samples=1)).status == "complete", "the same command goes on"


# --- over HTTP: what servers say of waiting and of cost ------------------------------------------

CHAT = "/v1/chat/completions"
PRICES = Prices(input=2.0, output=8.0, cached=1.0)


class Wired(Scripted):
    """Judges behind an endpoint of the user's own."""

    def __init__(self, web: Web) -> None:
        super().__init__(lambda request: "")
        self.url = f"{web.url}/v1"

    def card(self, id: str) -> ModelCard:
        own = replace(super().card(id), simulated=False, own=True, endpoint=self.url)
        return replace(own, prices=PRICES)

    def open(self, id: str) -> Any:
        return HttpModel(id, self.url, id, price=self.card(id).price)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as opened:
        yield opened


def judged(asked: Asked, **headers: str) -> served.Answer:
    """What a simulated judge says."""
    read = read_request(asked.body)
    done = asyncio.run(SimulatedModel(read.request.model).complete(read.request))
    said = json.dumps(write_completion(done, "x" * 24, read.tool))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return served.Answer(said, type=served.JSON, headers=named)


ALONE = Limits(concurrency=1)
FEW = {"samples": 1, "judges": ["sim:balanced"], "probe": False}


def gaps(web: Web) -> list[float]:
    times = [asked.at for asked in web.asked]
    return [after - before for before, after in pairwise(times)]


@pytest.mark.parametrize("kind", ["requests", "tokens"])
def test_no_call_begins_before_the_reset_that_an_answer_tells(
    lab: Lab, write_study: WriteStudy, web: Web, kind: str
) -> None:
    left = {f"x_ratelimit_remaining_{kind}": "0", f"x_ratelimit_reset_{kind}": "200ms"}
    web.on(CHAT, lambda asked: judged(asked, **left))
    replace_engine(lab, Engine(lab.store, Wired(web), limits=ALONE))
    assert lab.runs.run(write_study(**FEW)).status == "complete"
    assert len(web.asked) >= 6
    assert min(gaps(web)) >= 0.2


def test_an_endpoint_without_such_headers_is_asked_as_before(
    lab: Lab, write_study: WriteStudy, web: Web
) -> None:
    web.on(CHAT, judged)
    replace_engine(lab, Engine(lab.store, Wired(web), limits=ALONE))
    assert lab.runs.run(write_study(**FEW)).status == "complete"
    assert min(gaps(web)) < 0.2


def test_a_reset_far_away_pauses_the_endpoint(lab: Lab, write_study: WriteStudy, web: Web) -> None:
    left = {"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "6m0s"}
    web.on(CHAT, lambda asked: judged(asked, **left))
    replace_engine(lab, Engine(lab.store, Wired(web), limits=ALONE))
    result = lab.runs.run(write_study(**FEW))
    assert len(web.asked) == 1
    assert result.status not in ("complete", "failed")
    assert any("360 s" in note for note in result.warnings)


@pytest.mark.parametrize("status", [503, 529])
def test_an_overloaded_endpoint_rests_as_a_whole_and_the_attempt_is_on_record(
    lab: Lab, write_study: WriteStudy, web: Web, status: int
) -> None:
    overloaded = served.Answer("{}", status, served.JSON, {"retry-after-ms": "600"})
    web.on(CHAT, overloaded, judged)
    replace_engine(lab, Engine(lab.store, Wired(web), limits=Limits(concurrency=4)))
    assert lab.runs.run(write_study(**FEW)).status == "complete"
    first = web.asked[0].at
    assert not [asked for asked in web.asked if first + 0.3 < asked.at < first + 0.6]
    with lab.store.database.read() as connection:
        rows = connection.execute(sa.select(t.attempts).where(~t.attempts.c.completed)).all()
    [failed] = rows
    assert f"answered {status}" in failed.error


def test_an_overloaded_endpoint_that_asks_for_an_hour_is_paused(
    lab: Lab, write_study: WriteStudy, web: Web
) -> None:
    web.on(CHAT, served.Answer("{}", 503, served.JSON, {"Retry-After": "3600"}))
    replace_engine(lab, Engine(lab.store, Wired(web), limits=ALONE))
    result = lab.runs.run(write_study(**FEW))
    assert any("3600 s" in note for note in result.warnings)
    assert len(web.asked) == 1, "no call begins"
    assert sum(row["attempts"] for row in lab.reports.usage("small")) == 1


EMPTY = {
    "choices": [],
    "usage": {
        "prompt_tokens": 1000,
        "completion_tokens": 500,
        "prompt_tokens_details": {"cached_tokens": 400},
    },
}


def test_a_reply_without_an_answer_is_counted_with_what_it_cost(
    lab: Lab, write_study: WriteStudy, web: Web
) -> None:
    web.on(CHAT, served.Answer(json.dumps(EMPTY), type=served.JSON), judged)
    replace_engine(lab, Engine(lab.store, Wired(web), limits=ALONE))
    assert lab.runs.run(write_study(**FEW)).status == "complete"
    columns = t.attempts.c
    with lab.store.database.read() as connection:
        rows = connection.execute(sa.select(t.attempts).where(~columns.completed)).all()
    [failed] = rows
    cost = (600 * 2.0 + 400 * 1.0 + 500 * 8.0) / 1e6
    assert (failed.input_tokens, failed.output_tokens, failed.cached_tokens) == (1000, 500, 400)
    assert failed.usd == pytest.approx(cost)


def test_a_budget_counts_replies_without_an_answer(
    lab: Lab, write_study: WriteStudy, web: Web
) -> None:
    web.on(CHAT, served.Answer(json.dumps(EMPTY), type=served.JSON))
    replace_engine(lab, Engine(lab.store, Wired(web), limits=ALONE))
    stopped = lab.runs.run(write_study(**FEW, budget={"tokens": 6000}))
    assert isinstance(stopped.stopped, BudgetError)
    asked = len(web.asked)
    assert 1 <= asked <= 4, "each took 1,500 tokens, and brought nothing"
    rows = lab.reports.usage("small")
    assert sum(row["input_tokens"] + row["output_tokens"] for row in rows) == 1500 * asked


class Hosted(Faulty):
    """Judges that count as hosted, with a ceiling over all of them."""

    hosted_limits = Limits(concurrency=None, rpm=600)

    def __init__(self) -> None:
        super().__init__()
        self.began: list[float] = []

    def card(self, id: str) -> ModelCard:
        return replace(super().card(id), simulated=False)

    async def complete(self, request: Request) -> Completion:
        self.began.append(time.monotonic())
        return await super().complete(request)


@pytest.mark.parametrize("stated", [None, Limits(rpm=1200)])
def test_the_ceiling_over_hosted_providers_holds_unless_limits_are_given(
    lab: Lab, write_study: WriteStudy, stated: Limits | None
) -> None:
    models = Hosted()
    replace_engine(lab, Engine(lab.store, models, limits=stated))
    lab.runs.run(write_study(samples=1, judges=["sim:balanced"], probe=False))
    per_second = (stated or models.hosted_limits).rpm or 0
    lasted = models.began[-1] - models.began[0]
    allowed = lasted * per_second / 60 + per_second / 60 + 1
    assert len(models.began) <= allowed + 1


def test_an_endpoint_that_fails_repeatedly_is_paused(lab: Lab, write_study: WriteStudy) -> None:
    class Down(Faulty):
        def card(self, id: str) -> ModelCard:
            return replace(super().card(id), endpoint=f"http://{id.partition(':')[2]}")

        async def complete(self, request: Request) -> Completion:
            scoring = "VERDICT: [" in request.messages[-1].content
            if not scoring:
                return await SimulatedModel(request.model).complete(request)
            return await super().complete(request)

    models = Down(*[UnavailableError("HTTP 503")] * 99, only="sim:strict")
    replace_engine(lab, Engine(lab.store, models))
    result = lab.runs.run(write_study(samples=5))
    asked = sum(count for key, count in models.tried.items() if count > 1)
    assert any("failed 20 times in a row" in note for note in result.warnings)
    assert {run.status for run in result.runs if "balanced" in run.tag} == {"complete"}
    assert asked < 20 + 64


@pytest.mark.postgres
def test_calls_in_flight_in_one_process_are_seen_by_others(
    lab: Lab, write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "LISTEN", 0.01)
    monkeypatch.setattr(controls, "REPORT", 0.01)
    seen: list[dict[str, int]] = []

    class Watched(Faulty):
        async def complete(self, request: Request) -> Completion:
            scoring = "VERDICT: [" in request.messages[-1].content
            async with asyncio.timeout(60):
                while scoring and not any(row.get("sim:balanced") == 6 for row in seen):
                    rows = await asyncio.to_thread(lab.pages.study_models, "small")
                    seen.append({row["model"]: row["in_flight"] for row in rows})
                    await asyncio.sleep(0.01)
            return await super().complete(request)

    run(lab, write_study(samples=2, judges=["sim:balanced"], probe=False), Watched())
    assert max(row["sim:balanced"] for row in seen) == 6
    assert {row["in_flight"] for row in lab.pages.study_models("small")} == {0}
