"""Hosted models against servers on loopback that speak each provider's format."""

import asyncio
import base64
import gc
import json
import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from judge_gym.errors import (
    Bill,
    DesignError,
    JudgeGymError,
    ProviderError,
    RateLimitError,
    RejectedError,
    UnavailableError,
)
from judge_gym.models import Registry
from judge_gym.models.hosted_model import HostedModel
from judge_gym.models.quota_headers import Quota, Remaining, quota_listener
from judge_gym.records import Completion, Draw, Message, Request
from web import HTML, JSON, Answer, Asked, Web

# Anthropic's SDK warns of models that will be withdrawn; what is asked of them is the same.
pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")
KEY = "sk-very-secret-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "verdict": {"type": "string", "enum": ["A", "B"]},
    },
    "required": ["reasoning", "verdict"],
    "additionalProperties": False,
}
SAID = '{"reasoning": "clear", "verdict": "A"}'


@dataclass(frozen=True)
class Dialect:
    """How a provider is found, and how it says things."""

    model: str
    path: str
    reported: str
    base: str = ""

    @property
    def provider(self) -> str:
        return self.model.partition(":")[0]

    def says(
        self, text: str | None = "VERDICT: A", end: str = "", thoughts: str = "", **more: Any
    ) -> dict[str, Any]:
        """A whole answer of 100 tokens in and 10 out."""
        raise NotImplementedError

    def complains(self, status: int, message: str) -> dict[str, Any]:
        raise NotImplementedError


class Chat(Dialect):
    """OpenAI's chat completions, which OpenRouter speaks as well."""

    def says(
        self, text: str | None = "VERDICT: A", end: str = "", thoughts: str = "", **more: Any
    ) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, **more}
        if thoughts:
            message["reasoning_content"] = thoughts
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_760_000_000,
            "model": self.reported,
            "provider": "OpenAI",
            "choices": [{"index": 0, "finish_reason": end or "stop", "message": message}],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 110,
                "prompt_tokens_details": {"cached_tokens": 40},
            },
        }

    def complains(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": "error", "param": None, "code": status}}


class Anthropic(Dialect):
    def says(
        self, text: str | None = "VERDICT: A", end: str = "", thoughts: str = "", **more: Any
    ) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if thoughts:
            content.append({"type": "thinking", "thinking": thoughts, "signature": "s"})
        if text:
            content.append({"type": "text", "text": text})
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.reported,
            "content": content,
            "stop_reason": end or "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 10},
            **more,
        }

    def complains(self, status: int, message: str) -> dict[str, Any]:
        kind = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        return {
            "type": "error",
            "error": {"type": kind.get(status, "api_error"), "message": message},
        }


class Google(Dialect):
    def says(
        self, text: str | None = "VERDICT: A", end: str = "", thoughts: str = "", **more: Any
    ) -> dict[str, Any]:
        parts: list[dict[str, Any]] = []
        if thoughts:
            parts.append({"text": thoughts, "thought": True})
        if text:
            parts.append({"text": text})
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": end or "STOP"}
        return {
            "candidates": [candidate],
            "usageMetadata": {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 40,
                "candidatesTokenCount": 10,
                "totalTokenCount": 110,
            },
            "modelVersion": self.reported,
            "responseId": "r1",
            **more,
        }

    def complains(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": "FAILED"}}


OPENAI = Chat("openai:gpt-5.2", "/v1/chat/completions", "gpt-5.2-2025-12-11", base="/v1")
OPENROUTER = Chat(
    "openrouter:openai/gpt-5.2", "/api/v1/chat/completions", "openai/gpt-5.2", base="/api/v1"
)
ANTHROPIC = Anthropic("anthropic:claude-sonnet-4-5", "/v1/messages", "claude-sonnet-4-5-20250929")
GOOGLE = Google(
    "google:gemini-2.5-flash",
    "/v1/models/gemini-2.5-flash:generateContent",
    "gemini-2.5-flash-001",
)
DIALECTS = [OPENAI, OPENROUTER, ANTHROPIC, GOOGLE]
each = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.provider)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A server that stands for every provider."""
    with Web() as made:
        for dialect in DIALECTS:
            name = dialect.provider.upper()
            monkeypatch.setenv(f"{name}_API_KEY", KEY)
            base = "GOOGLE_GEMINI_BASE_URL" if name == "GOOGLE" else f"{name}_BASE_URL"
            monkeypatch.setenv(base, made.url + dialect.base)
        yield made


def request(model: str, **changes: Any) -> Request:
    """A conversation with a system message and three turns."""
    messages = (
        Message("system", ("You are ", "a judge.")),
        Message("user", ("First ", "question")),
        Message("assistant", ("First answer",)),
        Message("user", ("Second question",)),
    )
    return replace(
        Request(model, messages, Draw("7", 1, 0), temperature=0.5, max_tokens=99), **changes
    )


def ask(model: str, **changes: Any) -> Completion:
    return asyncio.run(Registry().open(model).complete(request(model, **changes)))


def answer(web: Web, dialect: Dialect, body: Any, **more: Any) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    web.on(dialect.path, Answer(text, **{"type": JSON, **more}))


def sent(web: Web) -> Any:
    return json.loads(web.asked[-1].body)


# --- what is sent --------------------------------------------------------------------------------


@each
def test_an_answer_is_a_completion_with_what_it_cost_and_who_gave_it(
    web: Web, dialect: Dialect
) -> None:
    answer(web, dialect, dialect.says())
    done = ask(dialect.model)
    assert done == Completion("VERDICT: A", "stop", dialect.reported, 100, 10, done.usd, 40)
    card = Registry().card(dialect.model)
    assert done.usd == card.price(100, 10, 40)
    assert 0 < (done.usd or 0) < (card.price(100, 10) or 0), "cached tokens cost less"


@each
def test_every_header_is_sent_once(web: Web, dialect: Dialect) -> None:
    """A strict server answers 400 to two user agents, which Google's SDK and pydantic-ai add."""
    answer(web, dialect, dialect.says())
    ask(dialect.model)
    names = web.asked[-1].header_names
    assert len(names) == len(set(names)), sorted(names)
    assert "pydantic-ai" in web.asked[-1].headers["user-agent"]


def test_openai_is_sent_the_turns_as_they_are(web: Web) -> None:
    answer(web, OPENAI, OPENAI.says())
    ask(OPENAI.model)
    assert web.asked[-1].headers["authorization"] == f"Bearer {KEY}"
    assert sent(web) == {
        "model": "gpt-5.2",
        "stream": False,
        "messages": [
            {"role": "system", "content": "You are a judge."},
            {"role": "user", "content": "First question"},
            {"role": "assistant", "content": "First answer"},
            {"role": "user", "content": "Second question"},
        ],
        "max_completion_tokens": 99,
        "temperature": 0.5,
    }


def test_anthropic_is_sent_the_turns_as_they_are(web: Web) -> None:
    answer(web, ANTHROPIC, ANTHROPIC.says())
    ask(ANTHROPIC.model)
    body = sent(web)
    assert KEY in (web.asked[-1].headers.get("x-api-key") or web.asked[-1].headers["authorization"])
    assert "".join(part["text"] for part in body["system"]) == "You are a judge."
    assert [(turn["role"], turn["content"][0]["text"]) for turn in body["messages"]] == [
        ("user", "First question"),
        ("assistant", "First answer"),
        ("user", "Second question"),
    ]
    assert (body["max_tokens"], body["temperature"]) == (99, 0.5)
    assert "seed" not in body, "it takes none"


def test_google_is_sent_the_turns_as_they_are(web: Web) -> None:
    answer(web, GOOGLE, GOOGLE.says())
    ask(GOOGLE.model)
    body = sent(web)
    assert web.asked[-1].headers["x-goog-api-key"] == KEY
    assert KEY not in web.asked[-1].path
    assert body["systemInstruction"]["parts"] == [{"text": "You are a judge."}]
    assert [(turn["role"], turn["parts"]) for turn in body["contents"]] == [
        ("user", [{"text": "First question"}]),
        ("model", [{"text": "First answer"}]),
        ("user", [{"text": "Second question"}]),
    ]
    settings = body["generationConfig"]
    assert (settings["maxOutputTokens"], settings["temperature"]) == (99, 0.5)
    assert settings["seed"] == Draw("7", 1, 0).seed


def test_a_reasoning_model_is_sent_no_temperature_and_no_seed(web: Web) -> None:
    answer(web, OPENAI, OPENAI.says())
    ask("openai:o3")
    assert not {"temperature", "seed"} & set(sent(web))


def test_an_unset_temperature_is_not_sent(web: Web) -> None:
    answer(web, OPENAI, OPENAI.says())
    ask(OPENAI.model, temperature=None)
    assert "temperature" not in sent(web)


def test_draws_have_seeds_of_their_own() -> None:
    draws = [Draw("7"), Draw("7", 1), Draw("7", 0, 1), Draw("8")]
    assert len({draw.seed for draw in draws}) == 4
    assert all(0 <= draw.seed < 2**31 for draw in draws)


# --- structured output ---------------------------------------------------------------------------


@each
def test_a_schema_is_enforced_by_the_provider(web: Web, dialect: Dialect) -> None:
    answer(web, dialect, dialect.says(SAID))
    done = ask(dialect.model, schema=SCHEMA)
    assert (done.text, done.finish) == (SAID, "stop")
    body = sent(web)
    schema = {
        "openai": lambda: body["response_format"]["json_schema"]["schema"],
        "openrouter": lambda: body["response_format"]["json_schema"]["schema"],
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "google": lambda: body["generationConfig"]["responseJsonSchema"],
    }[dialect.provider]()
    assert schema["properties"]["verdict"]["enum"] == ["A", "B"]
    assert set(schema["required"]) == {"reasoning", "verdict"}
    assert b"First question" in web.asked[-1].body
    told = web.asked[-1].body.replace(json.dumps(schema).encode(), b"")
    assert b"Respond with JSON" not in told, "nothing is asked that is not in the ledger"


def test_a_model_without_native_output_calls_a_tool(web: Web) -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "answer", "arguments": SAID},
    }
    answer(web, OPENAI, OPENAI.says(None, "tool_calls", tool_calls=[call]))
    done = ask("openai:gpt-4-0613", schema=SCHEMA)
    assert (done.text, done.finish) == (SAID, "stop")
    body = sent(web)
    assert body["tool_choice"] == "required"
    [tool] = body["tools"]
    assert tool["function"]["parameters"]["required"] == ["reasoning", "verdict"]


def test_anthropic_calls_a_tool_where_it_has_no_native_output(web: Web) -> None:
    told = ANTHROPIC.says("", "tool_use")
    told["content"] = [
        {"type": "tool_use", "id": "t1", "name": "answer", "input": json.loads(SAID)}
    ]
    answer(web, ANTHROPIC, told)
    done = ask("anthropic:claude-opus-4-0", schema=SCHEMA)
    assert json.loads(done.text) == json.loads(SAID)
    assert sent(web)["tool_choice"]["type"] == "any"


def test_a_prompted_model_is_sent_nothing_but_the_prompt(web: Web) -> None:
    answer(web, OPENROUTER, OPENROUTER.says(SAID))
    done = ask("openrouter:meta-llama/llama-3.3-70b-instruct", schema=SCHEMA)
    assert done.text == SAID
    assert not {"response_format", "tools"} & set(sent(web))
    assert sent(web)["messages"][0]["content"] == "You are a judge."


# --- how an answer ended -------------------------------------------------------------------------

ENDINGS: list[tuple[Dialect, dict[str, Any], str, str]] = [
    (OPENAI, OPENAI.says(None, refusal="I cannot judge that."), "refusal", "I cannot judge that."),
    (OPENAI, OPENAI.says("Half a", "content_filter"), "refusal", "Half a"),
    (OPENAI, OPENAI.says("", "content_filter"), "refusal", ""),
    (OPENAI, OPENAI.says("The evidence", "length"), "length", "The evidence"),
    (OPENAI, OPENAI.says("", "length"), "length", ""),
    (OPENAI, OPENAI.says(""), "stop", ""),
    (OPENAI, OPENAI.says(None), "stop", ""),
    (OPENAI, OPENAI.says("", thoughts="VERDICT: A"), "stop", ""),
    (OPENAI, OPENAI.says("VERDICT: B", thoughts="VERDICT: A"), "stop", "VERDICT: B"),
    (OPENROUTER, OPENROUTER.says("", "content_filter"), "refusal", ""),
    (OPENROUTER, OPENROUTER.says("The", "length"), "length", "The"),
    (OPENROUTER, OPENROUTER.says("", reasoning="VERDICT: A"), "stop", ""),
    (ANTHROPIC, ANTHROPIC.says("", "refusal"), "refusal", ""),
    (ANTHROPIC, ANTHROPIC.says("I will not", "refusal"), "refusal", "I will not"),
    (ANTHROPIC, ANTHROPIC.says("The evidence", "max_tokens"), "length", "The evidence"),
    (ANTHROPIC, ANTHROPIC.says(""), "stop", ""),
    (ANTHROPIC, ANTHROPIC.says("", thoughts="VERDICT: A"), "stop", ""),
    (ANTHROPIC, ANTHROPIC.says("", "max_tokens", thoughts="VERDICT: A"), "length", ""),
    (GOOGLE, GOOGLE.says("", "SAFETY"), "refusal", ""),
    (GOOGLE, GOOGLE.says("", "PROHIBITED_CONTENT"), "refusal", ""),
    (
        GOOGLE,
        GOOGLE.says(candidates=[], promptFeedback={"blockReason": "SAFETY"}),
        "refusal",
        "",
    ),
    (GOOGLE, GOOGLE.says("The evidence", "MAX_TOKENS"), "length", "The evidence"),
    (GOOGLE, GOOGLE.says(""), "stop", ""),
    (GOOGLE, GOOGLE.says("", thoughts="VERDICT: A"), "stop", ""),
]


@pytest.mark.parametrize(("dialect", "body", "finish", "text"), ENDINGS)
def test_what_the_provider_says_of_the_end_counts(
    web: Web, dialect: Dialect, body: dict[str, Any], finish: str, text: str
) -> None:
    answer(web, dialect, body)
    done = ask(dialect.model)
    assert (done.finish, done.text) == (finish, text)
    assert done.model == dialect.reported


def test_an_answer_that_the_provider_broke_off_is_no_answer(web: Web) -> None:
    answer(web, OPENROUTER, OPENROUTER.says("VERD", "error"))
    with pytest.raises(UnavailableError, match="aborted its answer") as fault:
        ask(OPENROUTER.model)
    assert fault.value.bill == bill(OPENROUTER), "it is paid for all the same"


def bill(dialect: Dialect) -> Bill:
    """What every answer here costs."""
    return Bill(100, 10, 40, Registry().card(dialect.model).price(100, 10, 40))


@pytest.mark.parametrize("dialect", [OPENAI, OPENROUTER], ids=lambda dialect: dialect.provider)
@pytest.mark.parametrize("choices", [[], None, [{"index": 0, "message": None}]])
def test_a_reply_without_an_answer_is_billed_where_it_says_its_usage(
    web: Web, dialect: Dialect, choices: Any
) -> None:
    answer(web, dialect, {**dialect.says(), "choices": choices})
    with pytest.raises(UnavailableError) as fault:
        ask(dialect.model)
    assert fault.value.bill == bill(dialect)
    answer(web, dialect, {**dialect.says(), "choices": choices, "usage": None})
    with pytest.raises(UnavailableError) as fault:
        ask(dialect.model)
    assert fault.value.bill is None


# --- no answer -----------------------------------------------------------------------------------

ECHO = f"the key {KEY} is not valid for this"


@each
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, RejectedError),
        (401, RejectedError),
        (403, RejectedError),
        (404, RejectedError),
        (429, RateLimitError),
        (500, UnavailableError),
        (503, UnavailableError),
    ],
)
def test_a_status_becomes_an_error_that_says_whether_to_ask_again(
    web: Web, dialect: Dialect, status: int, error: type[ProviderError]
) -> None:
    answer(web, dialect, dialect.complains(status, ECHO), status=status)
    with pytest.raises(error) as fault:
        ask(dialect.model)
    assert type(fault.value) is error
    assert dialect.model in fault.value.message and str(status) in fault.value.message
    assert "is not valid for this" in fault.value.message
    assert KEY not in fault.value.message and KEY not in repr(fault.value)
    assert len(web.asked) == 1, "the SDK repeats nothing"


@each
def test_a_provider_says_how_long_to_wait(web: Web, dialect: Dialect) -> None:
    body = dialect.complains(429, "slow down")
    for wait in ("17", "inf", "1e12"):
        answer(web, dialect, body, status=429, headers={"Retry-After": wait})
        with pytest.raises(RateLimitError) as fault:
            ask(dialect.model)
        assert fault.value.wait == float(wait)
    assert len(web.asked) == 3


@each
@pytest.mark.parametrize("status", [503, 529])
def test_a_provider_that_is_overloaded_says_how_long_to_wait(
    web: Web, dialect: Dialect, status: int
) -> None:
    body = dialect.complains(status, "overloaded")
    answer(web, dialect, body, status=status, headers={"Retry-After": "17"})
    with pytest.raises(UnavailableError) as fault:
        ask(dialect.model)
    assert fault.value.wait == 17.0
    answer(web, dialect, body, status=status)
    with pytest.raises(UnavailableError) as fault:
        ask(dialect.model)
    assert fault.value.wait is None
    assert len(web.asked) == 2, "the SDK repeats nothing"


@pytest.mark.parametrize("dialect", [OPENAI, OPENROUTER, ANTHROPIC], ids=lambda d: d.provider)
def test_the_quota_that_is_left_is_handed_on_with_answers_and_errors(
    web: Web, dialect: Dialect
) -> None:
    style = "anthropic-ratelimit-tokens-{}" if dialect is ANTHROPIC else "x-ratelimit-{}-tokens"
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    headers = {
        style.format("remaining"): "700",
        style.format("reset"): until if dialect is ANTHROPIC else "1h",
    }
    told: list[Quota] = []
    model = Registry().open(dialect.model)

    async def three() -> None:
        answer(web, dialect, dialect.says(), headers=headers)
        with quota_listener(told.append):
            await model.complete(request(dialect.model))
            answer(web, dialect, dialect.complains(500, "no"), status=500, headers=headers)
            with pytest.raises(UnavailableError):
                await model.complete(request(dialect.model))
            answer(web, dialect, dialect.says())
            await model.complete(request(dialect.model))

    asyncio.run(three())
    assert [quota["tokens"].amount for quota in told] == [700, 700]
    # Counted from a clock time, on a machine that may be busy for minutes.
    assert all(3000 < quota["tokens"].seconds <= 3601 for quota in told)


def test_concurrent_calls_each_report_their_own_answer(web: Web) -> None:
    def echo(asked: Asked) -> Answer:
        said = json.loads(asked.body)["messages"][-1]["content"]
        left = {"x-ratelimit-remaining-requests": said, "x-ratelimit-reset-requests": "1s"}
        return Answer(json.dumps(OPENAI.says(said)), type=JSON, headers=left)

    web.on(OPENAI.path, echo)
    model = Registry().open(OPENAI.model)

    async def call(number: int) -> tuple[str, list[Quota]]:
        told: list[Quota] = []
        asked = request(OPENAI.model, messages=(Message("user", (str(number),)),))
        with quota_listener(told.append):
            return (await model.complete(asked)).text, told

    async def many() -> list[tuple[str, list[Quota]]]:
        return list(await asyncio.gather(*map(call, range(8))))

    expected = [(str(number), [{"requests": Remaining(number, 1)}]) for number in range(8)]
    assert asyncio.run(many()) == expected


def test_money_that_has_run_out_is_not_waited_for(web: Web) -> None:
    body = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    answer(web, OPENAI, body, status=429)
    with pytest.raises(RejectedError, match="exceeded your quota"):
        ask(OPENAI.model)


@each
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("<html><body>Bad gateway</body></html>", HTML),
        ('{"id": "1", "choices": [{"mess', JSON),
        ("", JSON),
        ("[]", JSON),
        ("{}", JSON),
        ('"ready"', JSON),
    ],
    ids=["html", "truncated", "nothing", "list", "empty", "string"],
)
def test_an_answer_that_cannot_be_read_is_none(
    web: Web, dialect: Dialect, body: str, kind: str
) -> None:
    answer(web, dialect, body, type=kind)
    with pytest.raises(UnavailableError) as fault:
        ask(dialect.model)
    assert dialect.model in fault.value.message
    assert len(web.asked) == 1


@each
def test_a_page_of_an_error_is_shortened(web: Web, dialect: Dialect) -> None:
    answer(web, dialect, f"<html>{KEY}{'x' * 5000}</html>", type=HTML, status=502)
    with pytest.raises(UnavailableError) as fault:
        ask(dialect.model)
    assert len(fault.value.message) < 500
    assert KEY not in fault.value.message


@each
def test_half_an_answer_is_none(web: Web, dialect: Dialect) -> None:
    answer(web, dialect, dialect.says(), missing=50)
    with pytest.raises(UnavailableError):
        ask(dialect.model)


@each
def test_a_call_that_takes_too_long_is_given_up(web: Web, dialect: Dialect) -> None:
    answer(web, dialect, dialect.says(), delay=30.0)
    card = replace(Registry().card(dialect.model), deadline=0.3)
    started = time.monotonic()
    with pytest.raises(UnavailableError, match="in time"):
        base_url = web.url + dialect.base
        asyncio.run(HostedModel(card, KEY, base_url).complete(request(dialect.model)))
    assert time.monotonic() - started < 25
    assert len(web.asked) == 1


@each
def test_a_server_that_is_not_there_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, web: Web, dialect: Dialect
) -> None:
    base = "GOOGLE_GEMINI" if dialect is GOOGLE else dialect.provider.upper()
    monkeypatch.setenv(f"{base}_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(UnavailableError):
        ask(dialect.model)


# --- connections and secrets ---------------------------------------------------------------------


def test_a_model_answers_in_one_loop_after_the_other_and_many_at_once(web: Web) -> None:
    def echo(asked: Asked) -> Answer:
        said = json.loads(asked.body)["messages"][-1]["content"]
        return Answer(json.dumps(OPENAI.says(said)), type=JSON)

    web.on(OPENAI.path, echo)
    model = Registry().open(OPENAI.model)

    async def many() -> list[str]:
        asked = [
            request(OPENAI.model, messages=(Message("user", (str(number),)),))
            for number in range(4)
        ]
        return [done.text for done in await asyncio.gather(*map(model.complete, asked))]

    for _ in range(3):
        assert asyncio.run(many()) == [str(number) for number in range(4)]


@each
@pytest.mark.filterwarnings("error")
def test_connections_close_with_their_loop_after_an_answer_and_after_ctrl_c(
    web: Web, dialect: Dialect, caplog: pytest.LogCaptureFixture
) -> None:
    answer(web, dialect, dialect.says())
    gc.freeze()  # so that only what is new is looked at, which is fast
    try:
        ask(dialect.model)

        async def interrupted() -> None:
            await Registry().open(dialect.model).complete(request(dialect.model))
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            asyncio.run(interrupted())
        gc.collect()  # a session that was left open would warn now
    finally:
        gc.unfreeze()
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


@each
def test_a_password_in_the_base_url_is_sent_and_found_nowhere(
    web: Web,
    dialect: Dialect,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    name = "GOOGLE_GEMINI" if dialect is GOOGLE else dialect.provider.upper()
    there = web.url.replace("http://", "http://user:hunter%402@") + dialect.base
    monkeypatch.setenv(f"{name}_BASE_URL", there)
    basic = base64.b64encode(b"user:hunter@2").decode()
    answer(web, dialect, dialect.says())
    model = Registry().open(dialect.model)
    assert asyncio.run(model.complete(request(dialect.model))).text == "VERDICT: A"
    assert web.asked[-1].headers["authorization"] == f"Basic {basic}"
    texts = [repr(model), repr(vars(model)), repr(Registry().card(dialect.model))]
    for status in (401, 503, 200):
        echo = dialect.complains(status, f"no access to {there} with Basic {basic} {quote(KEY)}")
        answer(web, dialect, echo, status=status)
        with pytest.raises(ProviderError) as fault:
            ask(dialect.model)
        texts.append("".join(traceback.format_exception(fault.value)))
    for text in (*texts, caplog.text):
        assert not [word for word in ("hunter", basic, KEY) if word in text]


def test_a_base_url_with_a_query_is_refused_without_its_words(
    monkeypatch: pytest.MonkeyPatch, web: Web
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", web.url + "/v1?key=hunter2")
    with pytest.raises(DesignError, match="OPENAI_BASE_URL has a query") as refusal:
        Registry().open(OPENAI.model)
    assert "hunter2" not in repr(refusal.value)


@each
def test_a_key_is_in_no_repr(web: Web, dialect: Dialect) -> None:
    registry = Registry()
    model = registry.open(dialect.model)
    assert KEY not in repr(model) + repr(registry.card(dialect.model)) + repr(vars(model))


def test_the_key_of_xai_is_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XAI_API_KEY", KEY)
    model = Registry().open("xai:grok-4-0709")
    assert isinstance(model, HostedModel)
    assert KEY not in repr(model) + repr(vars(model))


def test_a_base_url_is_part_of_the_ledgers_key_without_its_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = Registry().card(OPENAI.model)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:secret@proxy/v1?key=secret")
    proxied = Registry().card(OPENAI.model)
    assert (plain.endpoint, proxied.endpoint) == ("", "https://proxy/v1")
    asked = request(OPENAI.model)
    assert asked.key(plain.endpoint) != asked.key(proxied.endpoint)


def test_a_provider_at_home_is_the_same_however_it_was_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1/")
    assert Registry().card(OPENAI.model).endpoint == ""


# --- what is missing -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("openai:gpt-5.2", ["OPENAI_API_KEY"]),
        ("anthropic:claude-sonnet-4-5", ["ANTHROPIC_API_KEY"]),
        ("google:gemini-2.5-flash", ["GOOGLE_API_KEY", "GEMINI_API_KEY"]),
        ("xai:grok-4-0709", ["XAI_API_KEY"]),
        ("openrouter:openai/gpt-5.2", ["OPENROUTER_API_KEY"]),
    ],
)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, model: str, names: list[str], value: str | None
) -> None:
    for name in names:
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(DesignError, match=f"{model} cannot be called: set ") as refusal:
        Registry().open(model)
    assert all(name in refusal.value.message for name in names)


@pytest.mark.parametrize("missing", ["pydantic_ai", "anthropic"])
def test_a_missing_sdk_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for name in [*sys.modules]:
        if name.split(".")[0] == missing:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(DesignError, match=r" install .*\[providers\]") as refusal:
        Registry().open("anthropic:claude-sonnet-4-5")
    message = refusal.value.message
    assert isinstance(refusal.value, JudgeGymError) and KEY not in message
    assert f"no module {missing}" in message and "None" not in message


@pytest.mark.slow
def test_only_the_sdk_of_a_model_that_is_opened_is_loaded() -> None:
    code = (
        "import sys, os, asyncio, judge_gym.lab, judge_gym.cli; judge_gym.cli.load_app();"
        "from judge_gym.models import Registry; r = Registry(); r.open('sim:strict');"
        "r.card('openai:gpt-5.2').price(1, 1); r.card('anthropic:claude-sonnet-4-5');"
        "sdks = 'pydantic_ai', 'anthropic', 'openai', 'google.genai', 'xai_sdk', 'grpc';"
        "print(*[name for name in sdks if name in sys.modules]);"
        "os.environ['ANTHROPIC_API_KEY'] = 'k'; r.open('anthropic:claude-sonnet-4-5');"
        "print(*[name for name in sdks if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["", "pydantic_ai anthropic"]


# --- xAI -----------------------------------------------------------------------------------------


class Grok:
    """A gRPC server on loopback, as xAI's SDK expects one; it answers or aborts as it is told."""

    def __init__(self, said: Any = None, code: Any = None) -> None:
        self.said, self.code = said, code
        self.asked: list[Any] = []

    def ask(self, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Completion:
        import grpc
        import xai_sdk
        from xai_sdk.proto import chat_pb2_grpc

        keeper = self

        class Chat(chat_pb2_grpc.ChatServicer):  # type: ignore[misc]
            async def GetCompletion(self, request: Any, context: Any) -> Any:
                keeper.asked.append(request)
                if keeper.code is not None:
                    await context.abort(keeper.code, f"no: {KEY}")
                return keeper.said

        async def serve_and_ask() -> Completion:
            server = grpc.aio.server()
            chat_pb2_grpc.add_ChatServicer_to_server(Chat(), server)
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            here = {"api_host": f"127.0.0.1:{port}", "use_insecure_channel": True}
            monkeypatch.setattr(xai_sdk, "AsyncClient", partial(xai_sdk.AsyncClient, **here))
            monkeypatch.setenv("XAI_API_KEY", KEY)
            try:
                asked = request("xai:grok-4-0709", **changes)
                return await Registry().open(asked.model).complete(asked)
            finally:
                await server.stop(None)

        return asyncio.run(serve_and_ask())


def grok_says(text: str, end: str = "REASON_STOP", thoughts: str = "") -> Any:
    from xai_sdk.proto import chat_pb2, sample_pb2, usage_pb2

    message = chat_pb2.CompletionMessage(
        content=text, reasoning_content=thoughts, role=chat_pb2.MessageRole.ROLE_ASSISTANT
    )
    output = chat_pb2.CompletionOutput(
        index=0, message=message, finish_reason=sample_pb2.FinishReason.Value(end)
    )
    return chat_pb2.GetChatCompletionResponse(
        id="1",
        model="grok-4-0709",
        outputs=[output],
        usage=usage_pb2.SamplingUsage(prompt_tokens=100, completion_tokens=10, total_tokens=110),
    )


def test_xai_answers_over_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    grok = Grok(grok_says("VERDICT: A"))
    done = grok.ask(monkeypatch)
    assert (done.text, done.finish, done.model) == ("VERDICT: A", "stop", "grok-4-0709")
    assert (done.input_tokens, done.output_tokens) == (100, 10)
    [asked] = grok.asked
    assert [message.content[0].text for message in asked.messages] == [
        "You are a judge.",
        "First question",
        "First answer",
        "Second question",
    ]
    assert (asked.max_tokens, asked.temperature) == (99, 0.5)
    assert asked.seed == Draw("7", 1, 0).seed


def test_xai_is_sent_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    grok = Grok(grok_says(SAID))
    assert grok.ask(monkeypatch, schema=SCHEMA).text == SAID
    assert json.loads(grok.asked[0].response_format.schema)["required"] == SCHEMA["required"]


@pytest.mark.parametrize(
    ("end", "thoughts", "finish"), [("REASON_MAX_LEN", "", "length"), ("REASON_STOP", "A", "stop")]
)
def test_xai_says_how_an_answer_ended(
    monkeypatch: pytest.MonkeyPatch, end: str, thoughts: str, finish: str
) -> None:
    done = Grok(grok_says("", end, thoughts)).ask(monkeypatch)
    assert (done.text, done.finish) == ("", finish)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("UNAUTHENTICATED", RejectedError),
        ("NOT_FOUND", RejectedError),
        ("RESOURCE_EXHAUSTED", RateLimitError),
        ("UNAVAILABLE", UnavailableError),
        ("INTERNAL", UnavailableError),
    ],
)
def test_a_code_of_xai_becomes_an_error(
    monkeypatch: pytest.MonkeyPatch, code: str, error: type[ProviderError]
) -> None:
    import grpc

    grok = Grok(code=grpc.StatusCode[code])
    with pytest.raises(error) as fault:
        grok.ask(monkeypatch)
    assert type(fault.value) is error
    assert KEY not in fault.value.message
    assert len(grok.asked) == 1, "the SDK repeats nothing"


# --- the responses API ---------------------------------------------------------------------------


def responses_says(content: dict[str, Any], **more: Any) -> dict[str, Any]:
    thought = {"type": "reasoning", "id": "r1", "summary": []}
    message = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": "completed",
        "model": "o3-pro-2025-06-10",
        "output": [thought, message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 110,
        },
        **more,
    }


CUT_OFF = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


@pytest.mark.parametrize(
    ("content", "more", "finish", "text"),
    [
        (
            {"type": "output_text", "text": "VERDICT: A", "annotations": []},
            {},
            "stop",
            "VERDICT: A",
        ),
        ({"type": "output_text", "text": "The", "annotations": []}, CUT_OFF, "length", "The"),
        ({"type": "refusal", "refusal": "I cannot."}, {}, "refusal", "I cannot."),
    ],
)
def test_a_model_of_the_responses_api_answers(
    web: Web, content: dict[str, Any], more: dict[str, Any], finish: str, text: str
) -> None:
    web.on("/v1/responses", Answer(json.dumps(responses_says(content, **more)), type=JSON))
    done = ask("openai:o3-pro", schema=SCHEMA)
    assert (done.finish, done.text, done.model) == (finish, text, "o3-pro-2025-06-10")
    body = sent(web)
    assert body["instructions"] == "You are a judge."
    assert body["text"]["format"]["schema"]["required"] == SCHEMA["required"]
    assert not {"temperature", "seed"} & set(body)
