"""The lane to OpenAI-compatible endpoints: what is sent, and what is made of each answer."""

import asyncio
import base64
import json
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge_gym.errors import (
    Bill,
    DesignError,
    ProviderError,
    RateLimitError,
    RejectedError,
    UnavailableError,
)
from judge_gym.models import Model, http_model
from judge_gym.models.http_model import HttpModel
from judge_gym.models.model_card import Structured
from judge_gym.models.quota_headers import Quota, Remaining, quota_listener
from judge_gym.records import Completion, Draw, Message, Request
from tables import each_row
from web import JSON, Answer, Route, Web

PATH = "/v1/chat/completions"
KEY = "sk-lab-0123456789abcdef"
SCHEMA = {"type": "object", "properties": {"verdict": {"enum": ["A", "B"]}}}
MESSAGES = (Message("system", ("Be brief.",)), Message("user", ("Which ", "one?")))
QUESTION = Request("lab:llama", MESSAGES, Draw("7"))


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as opened:
        yield opened


def made(web: Web, *answers: Route, **options: Any) -> HttpModel:
    web.on(PATH, *answers)
    return HttpModel("lab:llama", f"{web.url}/v1", "llama", **options)


def ask(model: Model, request: Request = QUESTION) -> Completion:
    async def once() -> Completion:
        return await model.complete(request)

    return asyncio.run(once())


def said(message: Mapping[str, Any] | None = None, **changes: Any) -> Answer:
    """An answer with a message; what changes is part of the choice or of the whole."""
    choice = {"message": message or {"role": "assistant", "content": "VERDICT: A"}}
    choice["finish_reason"] = changes.pop("finish", "stop")
    whole = {"model": "llama-3", "choices": [choice], **changes}
    return Answer(json.dumps(whole), type=JSON)


def price(read: int, wrote: int, cached: int) -> float:
    return read - cached / 2 + 2.0 * wrote


def error(status: int, body: Any = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(body or {}), status, JSON, named)


def sent(web: Web) -> Any:
    return json.loads(web.asked[-1].body)


Stream = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def ask_stream(answer: Stream, *keys: str, timeout: float = 60) -> int:
    """Ask a server of bare streams once with each key; how many connections it took."""
    ended: list[asyncio.Event] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(end := asyncio.Event())
        try:
            await answer(reader, writer)
        finally:
            writer.close()
            end.set()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        try:
            for key in keys:
                await HttpModel("lab:llama", url, "llama", key, timeout=timeout).complete(QUESTION)
        finally:
            await asyncio.get_running_loop().shutdown_asyncgens()  # closes the connections
            await asyncio.gather(*(end.wait() for end in ended))
    return len(ended)


# --- what is sent --------------------------------------------------------------------------------


def test_a_plain_question_sends_model_messages_and_length_alone(web: Web) -> None:
    ask(made(web, said()))
    assert sent(web) == {
        "model": "llama",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Which one?"},
        ],
        "max_tokens": 2048,
    }
    assert web.asked[0].method == "POST"
    assert web.asked[0].headers["content-type"] == JSON
    assert "authorization" not in web.asked[0].headers


def test_a_temperature_is_sent_where_it_is_set(web: Web) -> None:
    ask(made(web, said()), Request("lab:llama", MESSAGES, Draw("7"), temperature=0.0))
    assert sent(web)["temperature"] == 0.0


def test_every_part_of_a_draw_changes_the_seed(web: Web) -> None:
    model = made(web, said(), seeded=True)
    draws = [Draw("7"), Draw("8"), Draw("7", 1), Draw("7", 0, 1), Draw("7")]
    seeds = []
    for draw in draws:
        ask(model, Request("lab:llama", MESSAGES, draw))
        seeds.append(sent(web)["seed"])
    assert seeds[0] == seeds[-1]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**31 for seed in seeds)


@pytest.mark.parametrize(
    ("structured", "parts"),
    [("native", {"response_format"}), ("tool", {"tools", "tool_choice"}), ("prompted", set())],
)
def test_a_schema_is_sent_as_the_mode_has_it(
    web: Web, structured: Structured, parts: set[str]
) -> None:
    model = made(web, said(), structured=structured)
    ask(model, Request("lab:llama", MESSAGES, Draw("7"), schema=SCHEMA))
    body = sent(web)
    assert set(body) == {"model", "messages", "max_tokens"} | parts
    if structured == "native":
        form = body["response_format"]
        assert form["type"] == "json_schema"
        assert form["json_schema"]["schema"] == SCHEMA
    if structured == "tool":
        [tool] = body["tools"]
        assert tool["function"]["parameters"] == SCHEMA
        assert body["tool_choice"]["function"]["name"] == tool["function"]["name"]
    ask(model)
    assert set(sent(web)) == {"model", "messages", "max_tokens"}, "no schema, nothing of it"


def test_a_key_is_a_bearer_token(web: Web) -> None:
    ask(made(web, said(), key=KEY))
    assert web.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_query_of_the_base_url_is_kept_behind_the_path(web: Web) -> None:
    web.on(PATH, said())
    ask(HttpModel("lab:llama", f"{web.url}/v1/?api-version=3", "llama"))
    assert web.asked[0].path == PATH
    assert web.asked[0].query == {"api-version": "3"}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(st.lists(st.text(st.characters(exclude_categories=())), min_size=1, max_size=4))
def test_any_text_arrives_as_it_was(texts: list[str]) -> None:
    with Web() as web:
        ask(made(web, said()), Request("lab:llama", (Message("user", tuple(texts)),), Draw("7")))
        assert sent(web)["messages"] == [{"role": "user", "content": "".join(texts)}]


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("tool_calls", "stop"),
        (None, "stop"),
        (["odd"], "stop"),
        ("length", "length"),
        ("content_filter", "refusal"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("SAFETY", "refusal"),
    ],
)
def test_an_answer_says_how_it_ended(web: Web, reason: Any, finish: str) -> None:
    answer = ask(made(web, said(finish=reason)))
    assert (answer.text, answer.finish) == ("VERDICT: A", finish)


def test_a_refusal_is_an_answer_with_the_words_of_the_refusal(web: Web) -> None:
    answer = ask(made(web, said({"content": None, "refusal": "I can't judge this."})))
    assert (answer.text, answer.finish) == ("I can't judge this.", "refusal")


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("end", ["stop", "length"])
def test_an_answer_in_the_reasoning_is_none(web: Web, field: str, end: str) -> None:
    answer = ask(made(web, said({"content": "", field: "VERDICT: B"}, finish=end)))
    assert (answer.text, answer.finish) == ("", end)


def test_a_content_in_parts_is_put_together(web: Web) -> None:
    parts = [
        {"type": "text", "text": "VERDICT"},
        {"type": "image"},
        {"type": "text", "text": ": A"},
    ]
    assert ask(made(web, said({"content": parts}))).text == "VERDICT: A"


@pytest.mark.parametrize("arguments", ['{"verdict": "B"}', {"verdict": "B"}])
def test_the_arguments_of_the_tool_are_the_answer(web: Web, arguments: Any) -> None:
    call = {"function": {"name": "answer", "arguments": arguments}}
    model = made(web, said({"content": None, "tool_calls": [call]}), structured="tool")
    assert json.loads(ask(model).text) == {"verdict": "B"}


def test_a_tool_that_is_not_called_leaves_the_text(web: Web) -> None:
    model = made(web, said({"content": "A", "tool_calls": []}), structured="tool")
    assert ask(model).text == "A"


def test_tokens_and_model_are_those_that_the_answer_names(web: Web) -> None:
    usage = {"prompt_tokens": 120, "completion_tokens": 30}
    answer = ask(made(web, said(usage=usage), price=price))
    assert (answer.input_tokens, answer.output_tokens, answer.usd) == (120, 30, 180.0)
    assert (answer.model, answer.cached_tokens) == ("llama-3", 0)


@pytest.mark.parametrize(("told", "cached"), [(100, 100), (500, 120), (None, 0), ("x", 0)])
def test_tokens_from_the_cache_are_counted_and_priced(web: Web, told: Any, cached: int) -> None:
    usage = {
        "prompt_tokens": 120,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": told},
    }
    answer = ask(made(web, said(usage=usage), price=price))
    assert (answer.cached_tokens, answer.usd) == (cached, 180.0 - cached / 2)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": "x"}])
def test_unreported_tokens_are_a_quarter_of_the_characters(web: Web, usage: Any) -> None:
    answer = ask(made(web, said(usage=usage)))
    assert (answer.input_tokens, answer.output_tokens) == (len("Be brief.Which one?") // 4, 2)
    assert answer.usd is None


def test_an_answer_without_a_model_is_from_the_one_that_was_asked(web: Web) -> None:
    assert ask(made(web, said(model=None))).model == "llama"


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [(status, UnavailableError) for status in (408, 409, 500, 502, 503, 504, 529)]
    + [(status, RejectedError) for status in (302, 400, 401, 402, 403, 404, 413, 422)]
    + [(429, RateLimitError)],
)
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "It is\nfull"}},
        {"error": "It is full"},
        {"object": "error", "message": "It is full"},
        {"detail": "It is full"},
    ],
)
def test_a_status_says_whether_asking_again_helps(
    web: Web, status: int, kind: type[ProviderError], body: Any
) -> None:
    with pytest.raises(ProviderError) as raised:
        ask(made(web, error(status, body, Location="/elsewhere")))
    assert type(raised.value) is kind
    assert str(raised.value) == f"lab:llama at {web.url}/v1 answered {status}: It is full"
    assert web.paths() == [PATH], "nothing is followed or repeated"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.25"}, 0.25),
        ({"Retry-After": "2", "retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "2", "retry-after-ms": "soon"}, 2.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "later"}, None),
        ({}, None),
    ],
)
def test_a_rate_limit_carries_the_wait_that_is_asked_for(
    web: Web, headers: dict[str, str], wait: float | None
) -> None:
    with pytest.raises(RateLimitError) as raised:
        ask(made(web, Answer("{}", 429, JSON, headers)))
    assert raised.value.wait == wait


def test_a_wait_may_be_a_date(web: Web) -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    with pytest.raises(RateLimitError) as raised:
        ask(made(web, error(429, Retry_After=until)))
    assert raised.value.wait is not None
    assert 25 < raised.value.wait <= 30


@pytest.mark.parametrize("status", [500, 503, 529])
@pytest.mark.parametrize(("headers", "wait"), [({"Retry-After": "7"}, 7.0), ({}, None)])
def test_a_server_that_is_overloaded_may_ask_to_wait(
    web: Web, status: int, headers: dict[str, str], wait: float | None
) -> None:
    with pytest.raises(UnavailableError) as raised:
        ask(made(web, Answer("{}", status, JSON, headers)))
    assert raised.value.wait == wait


USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 20},
}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(json.dumps({"choices": [], "usage": USAGE}), type=JSON),
        Answer(json.dumps({"choices": None, "usage": USAGE}), type=JSON),
        said(finish="abort", usage=USAGE),
        said(finish="error", usage=USAGE),
        error(200, {"error": {"message": "upstream", "code": 502}, "usage": USAGE}),
        error(200, {"error": {"message": "too long", "code": 400}, "usage": USAGE}),
    ],
)
def test_a_reply_without_an_answer_is_billed_where_it_says_its_usage(
    web: Web, answer: Answer
) -> None:
    with pytest.raises(ProviderError) as raised:
        ask(made(web, answer, price=price))
    assert raised.value.bill == Bill(120, 30, 20, 170.0)
    with pytest.raises(ProviderError) as raised:
        ask(made(web, answer))
    assert raised.value.bill == Bill(120, 30, 20, None)


@pytest.mark.parametrize("usage", [None, {}, [], {"prompt_tokens": "x"}])
def test_a_reply_without_an_answer_and_without_usage_has_no_bill(web: Web, usage: Any) -> None:
    with pytest.raises(UnavailableError) as raised:
        ask(made(web, said(finish="error", usage=usage), price=price))
    assert raised.value.bill is None


def test_an_account_without_credit_is_not_waited_for(web: Web) -> None:
    body = {"error": {"message": "pay first", "code": "insufficient_quota"}}
    with pytest.raises(RejectedError, match="pay first"):
        ask(made(web, error(429, body)))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (429, RateLimitError),
        (503, UnavailableError),
        (None, UnavailableError),
        (400, RejectedError),
    ],
)
def test_a_gateway_may_say_error_with_a_200(
    web: Web, code: int | None, kind: type[ProviderError]
) -> None:
    with pytest.raises(kind, match="upstream"):
        ask(made(web, error(200, {"error": {"message": "upstream", "code": code}})))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer("<html>Please wait</html>"), "gave no JSON .text/html, 24 bytes"),
        (Answer('{"choices": [', type=JSON), "gave no JSON"),
        (Answer("", type=JSON), "gave no JSON"),
        (Answer(b"\xff\xfe\x00", type=JSON), "gave no JSON"),
        (Answer("[" * 100_000, type=JSON), "gave no JSON"),
        (Answer("[1]", type=JSON), "no choices"),
        (Answer("7", type=JSON), "no choices"),
        (Answer('{"choices": []}', type=JSON), "no choices"),
        (Answer('{"choices": null}', type=JSON), "no choices"),
        (Answer('{"choices": [7]}', type=JSON), "no choices"),
        (Answer('{"choices": [{"message": null}]}', type=JSON), "no choices"),
        (said(finish="abort"), "aborted its answer .abort."),
        (Answer('{"choices"', type=JSON, missing=20), "half an answer"),
        (Answer("<h1>Bad gateway</h1>", 502), "answered 502$"),
    ],
)
def test_what_cannot_be_read_may_be_asked_for_again(web: Web, answer: Answer, words: str) -> None:
    with pytest.raises(UnavailableError, match=words):
        ask(made(web, answer))


def test_a_call_has_a_hard_deadline(web: Web) -> None:
    with pytest.raises(UnavailableError, match=r"lab:llama at .* took over 0\.2 s"):
        ask(made(web, Answer("{}", delay=5), timeout=0.2))


def test_the_deadline_holds_for_an_answer_that_has_begun() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n"

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(head)
        while not (reader.at_eof() or writer.is_closing()):  # closed, or reset
            writer.write(b" ")
            await asyncio.sleep(0.05)

    began = time.monotonic()
    with pytest.raises(UnavailableError, match="took over"):
        asyncio.run(ask_stream(drip, "", timeout=0.3))
    assert time.monotonic() - began < 60


def test_connections_are_used_again() -> None:
    body = said().body
    assert isinstance(body, str)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            writer.write(f"{head}{body}".encode())

    assert asyncio.run(ask_stream(answer, "", KEY, "", KEY)) == 1


def test_a_server_that_is_not_there_may_come_back() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening, so nobody else can be there
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(UnavailableError, match="cannot be reached"):
            ask(HttpModel("lab:llama", url, "llama"))


def test_no_secret_is_in_an_error_or_a_repr(web: Web) -> None:
    padding = "x" * 180  # a message that is cut must not leave the head of a key
    for said_of_it in (f"bad key {KEY}", f"{padding} {KEY}", f"{KEY}{KEY}"):
        model = made(web, error(401, {"error": {"message": said_of_it}}), key=KEY)
        with pytest.raises(RejectedError) as raised:
            ask(model)
        for text in (str(raised.value), repr(raised.value), repr(model)):
            assert "sk-" not in text
            assert "0123" not in text
    address = web.url.replace("http://", "http://user:hunter2@") + "/v1?token=s3cret"
    model = HttpModel("lab:llama", address, "llama")
    web.on(PATH, error(400, {"error": {"message": f"no access to {address}"}}))
    with pytest.raises(RejectedError) as raised:
        ask(model)
    assert web.asked[-1].headers["authorization"].startswith("Basic ")
    assert "no access to" in str(raised.value)
    assert not any(word in f"{raised.value!r} {model!r}" for word in ("hunter2", "s3cret"))


@pytest.mark.parametrize(
    "answer",
    [
        Answer("no JSON", type=KEY),
        Answer("{}", type=JSON, headers={"Content-Encoding": KEY}),
    ],
)
def test_no_secret_in_a_header_is_in_an_error(web: Web, answer: Answer) -> None:
    with pytest.raises(ProviderError) as failure:
        ask(made(web, answer, key=KEY))
    assert KEY not in str(failure.value)


def test_a_secret_that_is_echoed_in_another_form_is_scrubbed(web: Web) -> None:
    key = "sk/lab+0123=="
    header = base64.b64encode(b"user:hunter2").decode()
    echo = f"{quote(key, safe='')} {quote_plus(key)} Authorization: Bearer {key}, Basic {header}"
    with pytest.raises(RejectedError) as raised:
        ask(made(web, error(401, {"error": {"message": f"not valid: {echo}"}}), key=key))
    assert "not valid" in str(raised.value) and "0123" not in repr(raised.value)
    address = web.url.replace("http://", "http://user:hunter2@") + "/v1"
    with pytest.raises(RejectedError) as raised:
        ask(HttpModel("lab:llama", address, "llama"))
    assert "not valid" in str(raised.value) and header not in repr(raised.value)


def test_a_long_complaint_is_shortened(web: Web) -> None:
    with pytest.raises(RejectedError) as raised:
        ask(made(web, error(400, {"error": {"message": "too long " * 10_000}})))
    assert len(str(raised.value)) < 300


@each_row(
    ("base_url", "options"),
    [
        ("localhost:8000/v1", {}),
        ("ftp://localhost/v1", {}),
        ("http://", {}),
        ("http://[::1/v1", {}),
        ("http://localhost:port/v1", {}),
        ("http://user:hunter2@localhost/v1", {"key": KEY}),
        ("http://localhost/v1", {"key": f"{KEY}\n"}),
        ("http://localhost/v1", {"structured": "json"}),
    ],
)
def test_what_cannot_be_called_is_refused_at_once(base_url: str, options: Any) -> None:
    with pytest.raises(DesignError, match="lab:llama") as refusal:
        HttpModel("lab:llama", base_url, "llama", **options)
    assert "hunter2" not in str(refusal.value)
    assert KEY not in str(refusal.value)


# --- quota and sessions --------------------------------------------------------------------------


def test_the_quota_that_is_left_is_handed_on_with_answers_and_errors(web: Web) -> None:
    told: list[Quota] = []
    headers = {"X-RateLimit-Remaining-Requests": "3", "x-ratelimit-reset-requests": "1s"}
    good = Answer(said().body, type=JSON, headers=headers)
    model = made(web, good, Answer("{}", 429, JSON, headers), said(), good)
    with quota_listener(told.append):
        ask(model)
        with pytest.raises(RateLimitError):
            ask(model)
        ask(model)
    ask(model)
    left = {"requests": Remaining(3, 1)}
    assert told == [left, left], "an answer without such headers tells nothing"


def test_models_share_one_session_which_ends_with_its_loop(web: Web) -> None:
    models = [made(web, said(), key=key) for key in ("", KEY)]

    async def both() -> int:
        await asyncio.gather(*(model.complete(QUESTION) for model in models * 2))
        return len(http_model._sessions._opened)

    assert [asyncio.run(both()), asyncio.run(both())] == [1, 1]
    assert not http_model._sessions._opened


def test_a_call_can_be_cancelled(web: Web) -> None:
    model = made(web, Answer("{}", delay=5))

    async def cancelled() -> None:
        task = asyncio.create_task(model.complete(QUESTION))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
