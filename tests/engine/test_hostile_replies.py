"""Replies that no decent server sends: each ends as a record, and the rest of the run goes on."""

import asyncio
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from conftest import Scripted
from engines import replace_engine
from judge_gym.engine import Engine
from judge_gym.engine.calls import ask, retry
from judge_gym.errors import BudgetError
from judge_gym.lab import Lab
from judge_gym.models import ModelCard
from judge_gym.models.http_model import HttpModel
from judge_gym.models.simulated import SimulatedModel
from judge_gym.models.simulated.openai_format import read_request, write_completion
from judge_gym.store import tables as t
from web import JSON, Answer, Asked, Web

pytestmark = pytest.mark.slow

CHAT = "/v1/chat/completions"
WriteStudy = Callable[..., Path]
FEW: dict[str, Any] = {"samples": 1, "judges": ["sim:balanced"], "probe": False}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BACKOFF", 0.001)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as opened:
        yield opened


class Endpoint(Scripted):
    """Judges behind one endpoint of the user; the card decides what may be left to the prompt."""

    def __init__(self, url: str, *, may_prompt: bool = True) -> None:
        super().__init__(lambda request: "")
        self.url, self.may_prompt = f"{url}/v1", may_prompt

    def card(self, id: str) -> ModelCard:
        return replace(super().card(id), simulated=False, own=True, endpoint=self.url)

    def open(self, id: str) -> Any:
        return HttpModel(id, self.url, id, may_prompt=self.may_prompt)


def reply(asked: Asked, **changes: Any) -> Answer:
    """Returns a simulated judge's reply, with changed keys."""
    read = read_request(asked.body)
    done = asyncio.run(SimulatedModel(read.request.model).complete(read.request))
    whole = write_completion(done, "x" * 24, read.tool) | changes
    return Answer(json.dumps(whole), type=JSON)


def is_scoring(asked: Asked) -> bool:
    return "VERDICT" in asked.body.decode() or "response_format" in json.loads(asked.body)


def run(lab: Lab, study: Path, models: Scripted) -> Any:
    replace_engine(lab, Engine(lab.store, models))
    return lab.runs.run(study)


def attempts(lab: Lab) -> list[Any]:
    with lab.store.database.read() as connection:
        return list(connection.execute(sa.select(t.attempts).order_by(t.attempts.c.id)))


@pytest.mark.parametrize("count", [10**30, -5, 1.5, "many", True, None, {"a": 1}])
def test_an_implausible_token_count_is_stored_as_an_estimate(
    lab: Lab, write_study: WriteStudy, web: Web, count: object
) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": count}
    web.on(CHAT, lambda asked: reply(asked, usage=usage, model="m" * 100_000))
    assert run(lab, write_study(**FEW), Endpoint(web.url)).status == "complete"
    rows = attempts(lab)
    assert all(row.completed and 0 <= row.input_tokens < 10_000 for row in rows)
    assert {len(row.reported_model) for row in rows} == {ask.MAX_NAME}
    asked = len(web.asked)
    assert run(lab, write_study(**FEW), Endpoint(web.url)).status == "complete"
    assert len(web.asked) == asked, "nothing is paid for again"


BOMB = gzip.compress(b" " * 16 * 1024**2, compresslevel=1)


@pytest.mark.parametrize(
    ("hostile", "message"),
    [
        (Answer(b"x" * 1024**2, type=JSON, repeat=20), "more than 8 MB"),
        (Answer(BOMB, type=JSON, headers={"Content-Encoding": "gzip"}), "more than 8 MB"),
        (Answer(b"{}", type=JSON, headers={"Content-Encoding": "br"}), "encoded as 'br'"),
        (Answer(b"no gzip", type=JSON, headers={"Content-Encoding": "gzip"}), "decompressed"),
    ],
)
def test_a_body_that_is_too_large_or_unreadable_is_a_failed_call_and_not_asked_again(
    lab: Lab, write_study: WriteStudy, web: Web, hostile: Answer, message: str
) -> None:
    web.on(CHAT, lambda asked: hostile if is_scoring(asked) else reply(asked))
    result = run(lab, write_study(**FEW), Endpoint(web.url))
    scoring = [asked for asked in web.asked if is_scoring(asked)]
    failed = [row for row in attempts(lab) if not row.completed]
    assert result.status in ("failed", "complete-with-failures")
    assert len(failed) == len(scoring) > 1
    assert all(message in row.error for row in failed)
    assert any(message in note for note in result.warnings), "the end of the run says why"


def test_a_text_that_is_longer_than_its_tokens_can_be_is_cut_and_counts_as_truncated(
    lab: Lab, write_study: WriteStudy, web: Web
) -> None:
    def long(asked: Asked) -> Answer:
        message = {"role": "assistant", "content": "VERDICT: A" + "x" * 1024**2}
        return reply(asked, choices=[{"message": message, "finish_reason": "stop"}])

    web.on(CHAT, lambda asked: long(asked) if is_scoring(asked) else reply(asked))
    result = run(lab, write_study(**FEW), Endpoint(web.url))
    assert result.runs[0].counts.keys() == {"truncated"}
    with lab.store.database.read() as connection:
        assert connection.scalar(sa.select(sa.func.max(sa.func.length(t.texts.c.body)))) == (
            2048 * ask.LONGEST_TOKEN
        )


def test_a_compressed_reply_is_read(lab: Lab, write_study: WriteStudy, web: Web) -> None:
    def packed(asked: Asked) -> Answer:
        body = reply(asked).body
        assert isinstance(body, str)
        headers = {"Content-Encoding": "gzip"}
        return Answer(gzip.compress(body.encode()), type=JSON, headers=headers)

    web.on(CHAT, packed)
    assert run(lab, write_study(**FEW), Endpoint(web.url)).status == "complete"
    assert {asked.headers["accept-encoding"] for asked in web.asked} == {"gzip, deflate"}


@pytest.mark.parametrize("wait", ["inf", "1e300", "31536000000", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_wait_without_end_pauses_the_share_with_words(
    lab: Lab, write_study: WriteStudy, web: Web, wait: str
) -> None:
    web.on(CHAT, Answer('{"error": "busy"}', 429, JSON, {"Retry-After": wait}))
    result = run(lab, write_study(**FEW), Endpoint(web.url))
    assert result.status not in ("complete", "failed")
    assert any("asks to wait more than a day (" in note for note in result.warnings)
    assert any("busy" in note for note in result.warnings), "in the server's own words"


REFUSAL = {
    "error": {"message": "[{'loc': ['response_format'], 'msg': 'value is not a valid dict'}]"}
}


def refusing(asked: Asked) -> Answer:
    """A server that knows no schema and answers 500, as some builds of llama.cpp do."""
    if "response_format" in json.loads(asked.body):
        return Answer(json.dumps(REFUSAL), 500, JSON)
    return reply(asked)


def test_a_refused_schema_is_left_to_the_prompt_where_the_entry_allows_it(
    lab: Lab, write_study: WriteStudy, web: Web
) -> None:
    web.on(CHAT, refusing)
    study = write_study(**FEW, vary={"verdict.output": ["json"]})
    assert run(lab, study, Endpoint(web.url)).status == "complete"
    refused = [asked for asked in web.asked if "response_format" in json.loads(asked.body)]
    assert 1 <= len(refused) < 10, "it is not sent once it was refused"
    assert all(row.completed for row in attempts(lab))


def test_a_refused_parameter_stops_its_design_alone_and_names_the_remedy(
    lab: Lab, write_study: WriteStudy, web: Web
) -> None:
    web.on(CHAT, refusing)
    study = write_study(**FEW, vary={"verdict.output": ["suffix", "json"]})
    result = run(lab, study, Endpoint(web.url, may_prompt=False))
    ended = {"json" in each.tag: each for each in result.runs}
    assert ended[False].status == "complete"
    assert ended[True].status not in ("complete", "failed")
    shown = " ".join(result.warnings)
    assert "value is not a valid dict" in shown and 'structured = "prompted"' in shown


def test_refused_connections_use_no_budget_of_calls(lab: Lab, write_study: WriteStudy) -> None:
    with Web() as closed:
        url = closed.url
    result = run(lab, write_study(**FEW, budget={"calls": 3}), Endpoint(url))
    assert not isinstance(result.stopped, BudgetError)
    assert any("cannot be reached" in note for note in result.warnings), "the last error is named"
    rows = attempts(lab)
    assert len(rows) > 3 and all(row.unsent and not row.completed for row in rows)


def test_what_fails_for_one_design_does_not_pause_another_at_the_same_endpoint(
    lab: Lab, write_study: WriteStudy, web: Web
) -> None:
    def fails_for_json(asked: Asked) -> Answer:
        schema = "response_format" in json.loads(asked.body)
        return Answer('{"error": "boom"}', 503, JSON) if schema else reply(asked)

    web.on(CHAT, fails_for_json)
    study = write_study(
        samples=8, judges=["sim:balanced"], probe=False, vary={"verdict.output": ["suffix", "json"]}
    )
    result = run(lab, study, Endpoint(web.url))
    ended = {"json" in each.tag: each.status for each in result.runs}
    assert ended[False] == "complete" and ended[True] != "complete"
    assert any("last: " in note and "boom" in note for note in result.warnings)
