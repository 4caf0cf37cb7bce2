"""Simulated judges over the OpenAI wire format: the same answers, and troubles as they are told."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Call
from judge_gym.axes import Design
from judge_gym.errors import (
    ConflictError,
    DesignError,
    ProviderError,
    RateLimitError,
    RejectedError,
    UnavailableError,
)
from judge_gym.models.http_model import HttpModel
from judge_gym.models.model_card import Structured
from judge_gym.models.quota_headers import Quota, quota_listener
from judge_gym.models.simulated import CODERS, PRESETS, SimulatedModel
from judge_gym.models.simulated.faults import KINDS, Allowance, Faults
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.records import Completion, Draw, Evidence, OrdinalRubric, Request
from judge_gym.records import RubricStage as Stage
from judge_gym.stages import Scorer, ScoreTarget
from tables import each_row

if TYPE_CHECKING:  # every process that collects tests imports this module, few use the SDK
    from openai import OpenAI

KEY = "sk-sim-0123456789"
HARSH = "Judges were dismissed by decree, an editor was detained and a newspaper was banned."
RUBRIC = OrdinalRubric(
    tuple(
        Stage(f"Level {cue}", (f'Described as "{cue}"',)) for cue in ("upheld", "fined", "banned")
    ),
    "provided",
    "fascism",
    "Valdoria",
)


def question(
    model: str = "balanced", text: str = HARSH, replicate: int = 0, output: str = "suffix"
) -> Request:
    """What the real scorer asks."""
    design = Design.of({"judge.model": f"sim:{model}", "verdict.output": output})
    scorer = Scorer(design, 3, "s")
    target = ScoreTarget(RUBRIC, Evidence("An item", text), text, replicate)
    return scorer.requests([target])[0]


def body(request: Request, **more: Any) -> dict[str, Any]:
    messages = [{"role": m.role, "content": m.content} for m in request.messages]
    return {"model": request.model, "messages": messages, **more}


def wired(url: str, request: Request, **options: Any) -> HttpModel:
    usual: dict[str, Any] = {"seeded": True, "price": lambda *tokens: 0.0}
    return HttpModel(request.model, url, request.model, **{**usual, **options})


Outcome = Completion | ProviderError


def ask(url: str, requests: Sequence[Request], **options: Any) -> list[Outcome]:
    """What becomes of requests that are all in flight at once."""

    async def one(request: Request) -> Outcome:
        try:
            return await wired(url, request, **options).complete(request)
        except ProviderError as fault:
            return fault

    async def all_of_them() -> list[Outcome]:
        return await asyncio.gather(*map(one, requests))

    return asyncio.run(all_of_them())


def directly(request: Request) -> Completion:
    """The answer without a server between; the draw travels as a seed."""
    asked = replace(request, draw=Draw("", request.draw.seed))
    return asyncio.run(SimulatedModel(request.model).complete(asked))


class Reply(NamedTuple):
    status: int
    json: Any


def http(url: str, data: Any = None) -> Reply:
    sent = data if isinstance(data, bytes | None) else json.dumps(data).encode()
    request = urllib.request.Request(url, sent, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return Reply(answer.status, json.load(answer))
    except urllib.error.HTTPError as answer:
        with answer:
            return Reply(answer.code, json.load(answer))


def stats(url: str) -> Any:
    return http(url.removesuffix("/v1") + "/stats").json


@contextmanager
def serving(faults: str = "", **options: Any) -> Iterator[str]:
    with serve(SimulatedServer(faults=Faults.parse(faults), **options)) as url:
        yield url


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    """A server without troubles."""
    with serving() as url:
        yield url


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*PRESETS, "strict?noise=0.4&bias=0.2"])
@pytest.mark.parametrize("output", ["suffix", "json"])
def test_a_served_judge_answers_as_it_does_directly(plain: str, model: str, output: str) -> None:
    requests = [question(model, replicate=n, output=output) for n in range(4)]
    assert ask(plain, requests) == [directly(request) for request in requests]


@settings(max_examples=40, deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=()), min_size=1, max_size=60),
    index=st.integers(0, 2**20),
    temperature=st.none() | st.sampled_from([0, 1, 0.5]),
)
def test_any_evidence_is_answered_as_it_is_directly(
    plain: str, text: str, index: int, temperature: float | None
) -> None:
    asked = replace(question(text=f"{HARSH} {text}"), draw=Draw("x", index))
    asked = replace(asked, temperature=None if temperature is None else float(temperature))
    assert ask(plain, [asked]) == [directly(asked)]


@pytest.mark.parametrize("structured", ["native", "tool"])
def test_a_schema_is_understood_in_either_form(plain: str, structured: Structured) -> None:
    request = question(output="json")
    assert request.schema is not None
    [answer] = ask(plain, [request], structured=structured)
    assert answer == directly(request)
    assert isinstance(answer, Completion)
    assert set(json.loads(answer.text)) == {"reasoning", "verdict"}


@pytest.mark.parametrize(
    ("model", "finish"), [("judge?refuse=1", "refusal"), ("judge?truncate=1", "length")]
)
@pytest.mark.parametrize("structured", ["native", "tool"])
def test_an_answer_that_is_none_keeps_its_end(
    plain: str, model: str, finish: str, structured: Structured
) -> None:
    request = question(model, output="json")
    [answer] = ask(plain, [request], structured=structured)
    assert answer == directly(request)
    assert isinstance(answer, Completion)
    assert answer.finish == finish


def test_a_judge_that_fails_is_a_servers_fault(plain: str) -> None:
    [fault] = ask(plain, [question("judge?fail=1")])
    assert type(fault) is UnavailableError


def test_the_seed_is_the_draw_and_the_model_may_leave_out_its_provider(plain: str) -> None:
    request = question("hasty")
    url = f"{plain}/chat/completions"
    texts = []
    for number in range(12):
        reply = http(url, body(request, seed=number) | {"model": "hasty"})
        texts.append(reply.json["choices"][0]["message"]["content"])
        direct = replace(request, draw=Draw("", number))
        assert texts[-1] == asyncio.run(SimulatedModel("sim:hasty").complete(direct)).text
        assert reply.json["model"] == "sim:hasty"
    assert len(set(texts)) > 1
    unseeded = http(url, body(request)).json["choices"][0]["message"]["content"]
    assert unseeded == texts[0]


def test_a_completion_has_the_shape_of_openai(plain: str) -> None:
    reply = http(f"{plain}/chat/completions", body(question()))
    assert reply.json["object"] == "chat.completion"
    assert reply.json["system_fingerprint"]
    usage = reply.json["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    [choice] = reply.json["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["role"] == "assistant"


def test_contents_may_come_in_parts_and_from_a_developer(plain: str) -> None:
    request = question()
    parts = [
        {"role": "developer" if m.role == "system" else m.role}
        | {
            "content": [
                {"type": "text", "text": m.content[:9]},
                {"type": "text", "text": m.content[9:]},
            ]
        }
        for m in request.messages
    ]
    url = f"{plain}/chat/completions"
    whole = http(url, body(request)).json["choices"]
    assert http(url, {"model": request.model, "messages": parts}).json["choices"] == whole


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"stream": True}, 400, "stream"),
        ({"n": 2}, 400, "'n' is 2"),
        ({"model": "gpt-5.2"}, 404, "unknown"),
        ({"model": "strict?noise=9"}, 404, "noise"),
        ({"model": None}, 400, "'model'"),
        ({"messages": []}, 400, "at least one"),
        ({"messages": "hello"}, 400, "at least one"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, "developer"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "text"),
        ({"messages": [{"role": "user", "content": 7}]}, 400, "text"),
        ({"messages": [{"role": "user", "content": "hello"}]}, 400, "no stages"),
        ({"seed": "one"}, 400, "'seed' is 'one'"),
        ({"max_tokens": 0}, 400, "'max_tokens' is 0"),
        ({"temperature": True}, 400, "'temperature' is True"),
        ({"response_format": {"type": "json_schema"}}, 400, "JSON Schema"),
        ({"tools": [{"type": "function"}]}, 400, "JSON Schema"),
    ],
)
def test_what_cannot_be_answered_gets_an_error_object(
    plain: str, changes: dict[str, Any], status: int, words: str
) -> None:
    reply = http(f"{plain}/chat/completions", body(question()) | changes)
    assert reply.status == status
    assert words in reply.json["error"]["message"]
    assert reply.json["error"]["type"] == "invalid_request_error"
    assert "code" in reply.json["error"]


@pytest.mark.parametrize("sent", [b"{", b"[]", b"\xff"])
def test_a_body_that_is_no_json_object_gets_an_error_object(plain: str, sent: bytes) -> None:
    reply = http(f"{plain}/chat/completions", sent)
    assert reply.status == 400
    assert "the body is not" in reply.json["error"]["message"]


def test_an_unknown_address_gets_an_error_object(plain: str) -> None:
    reply = http(f"{plain}/embeddings", {})
    assert reply.status == 404
    assert "POST /v1/embeddings" in reply.json["error"]["message"]


# --- troubles ------------------------------------------------------------------------------------


@each_row(
    ("fault", "kind"),
    [("429", RateLimitError), ("400", RejectedError)]
    + [(name, UnavailableError) for name in ("500", "502", "503", *KINDS)],
)
def test_every_fault_is_an_error_of_its_kind_and_the_next_attempt_is_answered(
    fault: str, kind: type[ProviderError]
) -> None:
    request = question()
    with serving(f"{fault}@1") as url:
        [first] = ask(url, [request], timeout=0.3 if fault == "stall" else 60)
        [second] = ask(url, [request])
        counted = stats(url)
    assert type(first) is kind
    assert second == directly(request)
    assert counted["outcomes"] == {fault: 1, "answered": 1}
    assert counted["bodies"] == {"distinct": 1, "answered": 1, "repeated": 0}
    if isinstance(first, RateLimitError):
        assert first.wait == 0.1


def test_faults_depend_on_seed_and_request_and_not_on_the_order() -> None:
    requests = [question(replicate=n) for n in range(60)]

    def outcomes(asked: Sequence[Request], **options: Any) -> dict[int, str]:
        with serving("500=0.3, empty=0.2", **options) as url:
            answers = ask(url, asked)
        said = [
            "" if isinstance(answer, Completion) else answer.message.partition("/v1")[2]
            for answer in answers
        ]
        return dict(zip((request.draw.index for request in asked), said, strict=True))

    shuffled = random.Random(3).sample(requests, len(requests))
    first = outcomes(requests)
    assert outcomes(shuffled, jitter=0.05) == first
    assert outcomes(requests, seed=1) != first
    assert {"", " gave no choices"} < set(first.values())
    assert 15 <= sum(map(bool, first.values())) <= 45


def test_a_fault_at_random_ends_with_the_next_attempts() -> None:
    requests = [question(replicate=n) for n in range(30)]
    with serving("429=0.3,502=0.2,reset=0.1,truncated=0.1,html=0.1") as url:
        waiting, rounds = requests, 0
        while waiting:
            answers = ask(url, waiting)
            pairs = zip(waiting, answers, strict=True)
            waiting = [r for r, answer in pairs if isinstance(answer, ProviderError)]
            rounds += 1
        counted = stats(url)
    assert rounds > 2
    assert counted["bodies"] == {"distinct": 30, "answered": 30, "repeated": 0}
    assert counted["outcomes"]["answered"] == 30
    assert sum(counted["outcomes"].values()) == counted["requests"]


def test_what_is_answered_twice_is_counted() -> None:
    with serving() as url:
        ask(url, [question()] * 3 + [question(replicate=1)])
        assert stats(url)["bodies"] == {"distinct": 2, "answered": 2, "repeated": 2}


def test_a_client_that_leaves_is_counted() -> None:
    with serving(latency=600) as url:
        [fault] = ask(url, [question()], timeout=2.0)
        assert isinstance(fault, UnavailableError)
        while not (outcomes := stats(url)["outcomes"]):
            time.sleep(0.01)
    assert outcomes == {"abandoned": 1}


@each_row(
    ("text", "words"),
    [
        ("flood=0.1", "unknown fault 'flood'; choose 'a status from 400 to 599', 'reset'"),
        ("200=0.1", "unknown fault '200'"),
        ("500", "'500' is neither"),
        ("500=often", "'500=often' is neither"),
        ("500@1.5", "'500@1.5' is neither"),
        ("500@0", "counted from 1"),
        ("500=0.7,502=0.7", "between 0 and 1"),
        ("500=-1", "between 0 and 1"),
        ("500=nan", "between 0 and 1"),
    ],
)
def test_faults_that_make_no_sense_are_refused(text: str, words: str) -> None:
    with pytest.raises(DesignError) as refusal:
        Faults.parse(text)
    assert words in str(refusal.value)


# --- speed and limits ----------------------------------------------------------------------------


def test_64_calls_are_in_flight_at_once() -> None:
    requests = [question(replicate=n) for n in range(128)]
    with serving(latency=0.4) as url:
        began = time.monotonic()
        answers = ask(url, requests[:64]) + ask(url, requests[64:])
        took = time.monotonic() - began
        counted = stats(url)
    assert answers == [directly(request) for request in requests]
    assert 0.8 <= took < 30, "one after the other would take 51 s"
    assert counted["bodies"] == {"distinct": 128, "answered": 128, "repeated": 0}


@pytest.mark.parametrize("limit", ["rpm", "tpm"])
def test_a_limit_that_is_reached_is_a_429_with_a_wait(limit: str) -> None:
    told: list[Quota] = []
    limits: dict[str, Any] = {limit: 2}
    with serving(**limits) as url, quota_listener(told.append):
        outcomes = [ask(url, [question(replicate=n)])[0] for n in range(3)]
        counted = stats(url)
    refused = [fault for fault in outcomes if isinstance(fault, RateLimitError)]
    assert len(refused) == {"rpm": 1, "tpm": 2}[limit], "a large demand puts tokens into debt"
    assert refused[0].wait is not None
    assert refused[0].wait > 20
    assert counted["outcomes"] == {"429": len(refused), "answered": 3 - len(refused)}
    what = {"rpm": "requests", "tpm": "tokens"}[limit]
    assert [set(quota) for quota in told] == [{what}] * (3 - len(refused))
    assert told[-1][what].amount == 0
    assert told[-1][what].seconds > 50


def test_an_allowance_refills_up_to_a_minutes_worth() -> None:
    now = 100.0
    allowance = Allowance(60, clock=lambda: now)
    allowance.take(59)
    assert allowance.wait() == 0
    allowance.take(3)
    assert allowance.wait() == 3
    now += 2
    assert allowance.wait() == 1
    assert allowance.headers("tokens")["x-ratelimit-remaining-tokens"] == "0"
    now += 600
    left = {"limit": "60", "remaining": "60", "reset": "0.000s"}
    assert allowance.headers("x") == {f"x-ratelimit-{k}-x": v for k, v in left.items()}


def test_no_limit_has_no_headers() -> None:
    allowance = Allowance(None)
    allowance.take(1e9)
    assert (allowance.wait(), allowance.headers("requests")) == (0.0, {})


@pytest.mark.parametrize("given_key", ["", "sk-wrong"])
def test_a_wrong_key_is_rejected_and_not_repeated(given_key: str) -> None:
    with serving(key=KEY) as url:
        [fault] = ask(url, [question()], key=given_key)
        assert http(f"{url}/models").status == 401
        [good] = ask(url, [question()], key=KEY)
    assert type(fault) is RejectedError
    assert "401" in str(fault)
    assert KEY not in str(fault)
    assert "sk-wrong" not in str(fault)
    assert isinstance(good, Completion)


# --- the official client -------------------------------------------------------------------------


@contextmanager
def process(*options: str) -> Iterator[str]:
    """`judge-gym sim serve` as a process of its own; its base URL."""
    code = "from judge_gym.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "sim", "serve", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "SIM_KEY": KEY},
        text=True,
    ) as served:
        assert served.stdout is not None
        try:
            yield served.stdout.readline().strip()
        finally:
            served.terminate()


def official(url: str, key: str = KEY) -> "OpenAI":
    from openai import OpenAI

    return OpenAI(base_url=url, api_key=key, max_retries=0)


def test_the_official_client_works_unchanged() -> None:
    import openai

    request = question()
    asked: Any = body(request)["messages"]
    with process("--key-env", "SIM_KEY") as url, official(url) as client:
        assert {model.id for model in client.models.list()} == {
            f"sim:{name}" for name in (*PRESETS, *CODERS)
        }
        done = client.chat.completions.create(model="sim:balanced", messages=asked, seed=7)
        said = done.choices[0].message.content
        assert said and "VERDICT" in said
        assert (done.model, done.choices[0].finish_reason) == ("sim:balanced", "stop")
        assert done.usage and done.usage.total_tokens > done.usage.completion_tokens > 0
        again = client.chat.completions.create(model="sim:balanced", messages=asked, seed=7)
        assert again.choices[0].message.content == said
        with official(url, "sk-wrong") as stranger, pytest.raises(openai.AuthenticationError):
            stranger.models.list()
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="sim:nobody", messages=asked)


def test_the_official_client_gets_what_a_schema_asks_for() -> None:
    request = question(output="json")
    schema: Any = {"name": "answer", "schema": request.schema, "strict": True}
    asked: Any = body(request)["messages"]
    with process() as url, official(url) as client:
        done = client.chat.completions.create(
            model="sim:balanced",
            messages=asked,
            response_format={"type": "json_schema", "json_schema": schema},
        )
    said = json.loads(done.choices[0].message.content or "")
    assert request.schema is not None
    assert set(said) == set(request.schema["required"])


def test_official_client_reads_how_long_to_wait() -> None:
    import openai

    asked: Any = body(question())["messages"]
    with process("--rpm", "1") as url, official(url) as client:
        first = client.chat.completions.with_raw_response.create(
            model="sim:balanced", messages=asked
        )
        assert first.headers["x-ratelimit-remaining-requests"] == "0"
        with pytest.raises(openai.RateLimitError) as refused:
            client.chat.completions.create(model="sim:balanced", messages=asked)
    assert refused.value.code == "rate_limit_exceeded"
    assert 50 <= int(refused.value.response.headers["retry-after"]) <= 60


def test_a_port_that_is_taken_is_named(plain: str) -> None:
    port = int(plain.split(":")[2].removesuffix("/v1"))
    with (
        pytest.raises(ConflictError, match=f"127.0.0.1, port {port}"),
        serve(SimulatedServer(), port=port),
    ):
        pass


# --- the official client -------------------------------------------------------------------------


def test_the_official_client_lists_models_and_is_answered(plain: str) -> None:
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    request = question(output="json")
    with openai.OpenAI(base_url=plain, api_key="any", max_retries=0) as client:
        assert {model.id for model in client.models.list()} == {
            f"sim:{name}" for name in (*PRESETS, *CODERS)
        }
        form = {"name": "answer", "schema": request.schema, "strict": True}
        answer = client.chat.completions.create(
            **body(request, seed=5, temperature=0.5, max_tokens=100),
            response_format={"type": "json_schema", "json_schema": form},
        )
    direct = replace(request, draw=Draw("", 5), temperature=0.5, max_tokens=100)
    expected = asyncio.run(SimulatedModel(request.model).complete(direct))
    assert answer.choices[0].message.content == expected.text
    assert answer.model == request.model
    assert answer.usage.prompt_tokens == expected.input_tokens
    assert answer.system_fingerprint


def test_the_official_client_knows_the_errors() -> None:
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    asked = body(question())
    with (
        serving("429@1, 500@2", key=KEY) as url,
        openai.OpenAI(base_url=url, api_key=KEY, max_retries=0) as client,
        openai.OpenAI(base_url=url, api_key="sk-wrong", max_retries=0) as stranger,
    ):
        with pytest.raises(openai.AuthenticationError) as refused:
            stranger.models.list()
        assert refused.value.code == "invalid_api_key"
        with pytest.raises(openai.RateLimitError) as limited:
            client.chat.completions.create(**asked)
        assert limited.value.code == "rate_limit_exceeded"
        assert limited.value.response.headers["retry-after"] == "1"
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(**asked)
        with pytest.raises(openai.BadRequestError, match="stream"):
            client.chat.completions.create(**asked, stream=True)
        with pytest.raises(openai.NotFoundError) as missing:
            client.chat.completions.create(**asked | {"model": "gpt-5.2"})
        assert missing.value.code == "model_not_found"


def test_the_official_client_gets_past_a_rate_limit_by_itself() -> None:
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    with serving("429@1") as url, openai.OpenAI(base_url=url, api_key="any") as client:
        assert client.chat.completions.create(**body(question())).choices
        assert stats(url)["outcomes"] == {"429": 1, "answered": 1}


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_command_prints_the_url_and_stops_on_a_signal(ending: signal.Signals) -> None:
    words = ["sim", "serve", "--port", "0", "--key-env", "SIM_KEY", "--faults", "503@1"]
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "judge_gym", *words],
        env={**os.environ, "SIM_KEY": KEY},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        [first] = ask(url, [question()], key=KEY)
        [second] = ask(url, [question()], key=KEY)
        process.send_signal(ending)
        assert process.wait(120) == 0
        assert process.stderr.read() == ""
    assert isinstance(first, UnavailableError)
    assert second == directly(question())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY, which is not set"),
        (["--faults", "flood=1"], "unknown fault 'flood'"),
        (["--host", "192.0.2.1", "--port", "0"], "cannot listen on 192.0.2.1"),
    ],
)
def test_the_command_refuses_what_it_cannot_serve(
    call: Call, words: list[str], complaint: str
) -> None:
    said = call("sim", "serve", *words)
    assert said.code == 2
    assert complaint in said.err
