"""Web searches against servers on loopback that speak each provider's format."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError, RejectedError, UnavailableError
from judge_gym.lab import Lab
from judge_gym.models import Registry
from judge_gym.records import Completion, Draw, Message, Request
from judge_gym.records.searches import Search, split_searches
from suite_folders import write_suite
from web import JSON, Answer, Asked, Web

# Anthropic's SDK warns of models that will be withdrawn; what is asked of them is the same.
pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")
PAGES = ("https://docs.example/slug", "https://forum.example/q/1")
FILES = "# Files\n## value.py\n```\nVALUE = 1000\n```\n"
USAGE = {"input_tokens": 5000, "output_tokens": 100}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A server that stands for every provider."""
    with Web() as made:
        bases = {
            "OPENAI": "OPENAI_BASE_URL",
            "ANTHROPIC": "ANTHROPIC_BASE_URL",
            "GOOGLE": "GOOGLE_GEMINI_BASE_URL",
            "OPENROUTER": "OPENROUTER_BASE_URL",
        }
        paths = {"OPENAI": "/v1", "OPENROUTER": "/api/v1"}
        for name, variable in bases.items():
            monkeypatch.setenv(f"{name}_API_KEY", "sk-secret")
            monkeypatch.setenv(variable, made.url + paths.get(name, ""))
        yield made


def ask(model: str, web_search: bool = True) -> Completion:
    messages = (Message("system", ("Be careful.",)), Message("user", ("Write slug().",)))
    asked = Request(model, messages, Draw("7"), max_tokens=99, web_search=web_search)
    return asyncio.run(Registry().open(model).complete(asked))


def answered(web: Web, path: str, *bodies: Any) -> None:
    web.on(path, *(Answer(json.dumps(body), type=JSON) for body in bodies))


def sent(web: Web) -> Any:
    return json.loads(web.asked[-1].body)


# --- OpenAI --------------------------------------------------------------------------------------


def responses(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    """A reply of OpenAI's responses API, with searches before the text."""
    items = [
        {"type": "web_search_call", "id": f"ws_{n}", "status": "completed", "action": call}
        for n, call in enumerate(calls)
    ]
    cited = {"type": "url_citation", "start_index": 0, "end_index": 1, "url": PAGES[0]}
    content = {"type": "output_text", "text": text, "annotations": [{**cited, "title": "Slug"}]}
    message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": "completed",
        "model": "gpt-5.2-2025-12-11",
        "output": [*items, {**message, "content": [content]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {**USAGE, "total_tokens": 5100, "input_tokens_details": {"cached_tokens": 0}},
    }


def search(query: str, *pages: str) -> dict[str, Any]:
    sources = [{"type": "url", "url": page} for page in pages]
    return {"type": "search", "query": query, "sources": sources}


def test_openai_is_given_its_search_and_tells_what_it_searched(web: Web) -> None:
    opened = {"type": "open_page", "url": PAGES[1]}
    answered(web, "/v1/responses", responses(FILES, search("python slug", *PAGES), opened))
    done = ask("openai:gpt-5.2")
    body = sent(web)
    assert [tool["type"] for tool in body["tools"]] == ["web_search"]
    assert "web_search_call.action.sources" in body["include"], "or the pages are not named"
    assert "seed" not in body, "this API takes none"
    found, text = split_searches(done.text)
    assert found == (Search("python slug", PAGES), Search(PAGES[1]))
    assert text == FILES
    card = Registry().card("openai:gpt-5.2")
    tokens = 5000 * 1.75 / 1e6 + 100 * 14 / 1e6
    assert done.usd == pytest.approx(tokens + 10 / 1000), "one search at 10 USD a thousand"
    assert card.price(5000, 100) == pytest.approx(tokens)


def test_without_a_search_the_same_model_is_asked_as_before(web: Web) -> None:
    chat = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "gpt-5.2-2025-12-11",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "A"}}
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    }
    answered(web, "/v1/chat/completions", chat)
    assert ask("openai:gpt-5.2", web_search=False).text == "A"
    assert not {"tools", "web_search_options"} & set(sent(web))


# --- Anthropic -----------------------------------------------------------------------------------


def claude(content: list[dict[str, Any]], searches: int, end: str = "end_turn") -> dict[str, Any]:
    return {
        "id": f"msg_{len(content)}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": content,
        "stop_reason": end,
        "stop_sequence": None,
        "usage": {**USAGE, "server_tool_use": {"web_search_requests": searches}},
    }


def looked_up(query: str, result: Any, number: int = 1) -> list[dict[str, Any]]:
    id = f"srvtoolu_{number}"
    return [
        {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": query}},
        {"type": "web_search_tool_result", "tool_use_id": id, "content": result},
    ]


def page(url: str) -> dict[str, Any]:
    kind = {"type": "web_search_result", "encrypted_content": "x", "page_age": None}
    return {**kind, "url": url, "title": "A page"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_anthropic_searches_and_its_fragments_become_one_text(web: Web) -> None:
    before, fragments = (
        text("I will look."),
        [text("# Files\n## value.py\n```\nVALUE "), text("= 1")],
    )
    blocks = [before, *looked_up("python slug", [page(url) for url in PAGES]), *fragments]
    answered(web, "/v1/messages", claude([*blocks, text("000\n```\n")], 1))
    done = ask("anthropic:claude-sonnet-4-5")
    [tool] = sent(web)["tools"]
    assert (tool["type"].rpartition("_")[0], tool["name"]) == ("web_search", "web_search")
    found, said = split_searches(done.text)
    assert found == (Search("python slug", PAGES),)
    assert said == f"I will look.\n\n{FILES}", "a heading after a search begins a line"
    assert done.usd == pytest.approx(5000 * 3 / 1e6 + 100 * 15 / 1e6 + 10 / 1000)


def test_failed_search_is_reported_with_its_reason(web: Web) -> None:
    error = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    answered(web, "/v1/messages", claude([*looked_up("slug", error), text("Done.")], 0))
    done = ask("anthropic:claude-sonnet-4-5")
    assert split_searches(done.text) == ((Search("slug", error="unavailable"),), "Done.")
    assert done.usd == pytest.approx(5000 * 3 / 1e6 + 100 * 15 / 1e6), "it is not charged for"


def test_a_turn_that_pauses_is_gone_on_with_and_paid_for_whole(web: Web) -> None:
    first = claude(looked_up("slug", [page(PAGES[0])]), 1, "pause_turn")
    second = claude([*looked_up("slug edge cases", [page(PAGES[1])], 2), text(FILES)], 1)
    answered(web, "/v1/messages", first, second)
    done = ask("anthropic:claude-sonnet-4-5")
    assert len(web.asked) == 2
    assert sent(web)["messages"][-1]["role"] == "assistant", "it is shown how far it had come"
    found, said = split_searches(done.text)
    assert [one.query for one in found] == ["slug", "slug edge cases"]
    assert said == FILES
    assert (done.input_tokens, done.output_tokens) == (10_000, 200)
    assert done.usd == pytest.approx(2 * (5000 * 3 / 1e6 + 100 * 15 / 1e6 + 10 / 1000))


def test_a_turn_that_never_ends_is_no_answer_and_its_price_is_kept(web: Web) -> None:
    answered(web, "/v1/messages", claude(looked_up("slug", [page(PAGES[0])]), 1, "pause_turn"))
    with pytest.raises(UnavailableError, match="did not finish its searches") as caught:
        ask("anthropic:claude-sonnet-4-5")
    assert caught.value.bill is not None
    assert caught.value.bill.input_tokens == 5000 * len(web.asked) > 5000


@pytest.mark.parametrize("status", [500, 429])
def test_what_a_paused_turn_cost_is_kept_where_the_next_one_fails(web: Web, status: int) -> None:
    paused = claude(looked_up("slug", [page(PAGES[0])]), 1, "pause_turn")
    broken = Answer('{"type": "error", "error": {"type": "api_error", "message": "no"}}', status)
    web.on("/v1/messages", Answer(json.dumps(paused), type=JSON), broken)
    with pytest.raises(UnavailableError) as caught:
        ask("anthropic:claude-sonnet-4-5")
    assert caught.value.bill is not None
    assert caught.value.bill.input_tokens == 5000


# --- Google, OpenRouter, xAI ---------------------------------------------------------------------


def test_google_searches_and_names_its_sources(web: Web) -> None:
    grounding = {
        "webSearchQueries": ["python slug", "slugify"],
        "groundingChunks": [{"web": {"uri": url, "title": "A page"}} for url in PAGES],
    }
    content = {"role": "model", "parts": [{"text": FILES}]}
    candidate = {"content": content, "finishReason": "STOP", "groundingMetadata": grounding}
    counts = {"promptTokenCount": 5000, "candidatesTokenCount": 100, "totalTokenCount": 5100}
    said = {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "gemini-2.5-flash"}
    answered(web, "/v1/models/gemini-2.5-flash:generateContent", said)
    done = ask("google:gemini-2.5-flash")
    assert [list(tool) for tool in sent(web)["tools"]] == [["googleSearch"]]
    assert split_searches(done.text) == ((Search("python slug; slugify", PAGES),), FILES)
    plain = Registry().card("google:gemini-2.5-flash").price(5000, 100)
    assert done.usd == pytest.approx((plain or 0) + 35 / 1000), "Gemini 2.5 is paid by the prompt"


def routed(**usage: Any) -> dict[str, Any]:
    cited = [{"type": "url_citation", "url_citation": {"url": url, "title": "t"}} for url in PAGES]
    for one in cited:
        one["url_citation"] |= {"start_index": 0, "end_index": 1}  # type: ignore[operator]
    message = {"role": "assistant", "content": FILES, "annotations": cited}
    return {
        "id": "gen-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "openai/gpt-5.2",
        "provider": "OpenAI",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6, **usage},
    }


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        ({"cost": 0.0421, "server_tool_use_details": {"web_search_requests": 2}}, 0.0421),
        ({}, None),  # it searched, and nobody says at what price
    ],
)
def test_a_router_says_what_an_answer_rests_on_and_what_it_cost(
    web: Web, usage: dict[str, Any], usd: float | None
) -> None:
    answered(web, "/api/v1/chat/completions", routed(**usage))
    done = ask("openrouter:openai/gpt-5.2")
    assert [tool["type"] for tool in sent(web)["tools"]] == ["openrouter:web_search"]
    assert split_searches(done.text) == ((Search("", PAGES),), FILES)
    assert done.usd == usd


def test_xai_is_given_its_search_over_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    import grpc
    import xai_sdk
    from xai_sdk.proto import chat_pb2, chat_pb2_grpc, sample_pb2, usage_pb2

    asked: list[Any] = []
    message = chat_pb2.CompletionMessage(content=FILES, role=chat_pb2.MessageRole.ROLE_ASSISTANT)
    call = chat_pb2.ToolCall(
        id="ws_1",
        type=chat_pb2.ToolCallType.TOOL_CALL_TYPE_WEB_SEARCH_TOOL,
        status=chat_pb2.ToolCallStatus.TOOL_CALL_STATUS_COMPLETED,
        function=chat_pb2.FunctionCall(name="web_search", arguments='{"query": "python slug"}'),
    )
    looked = chat_pb2.CompletionMessage(tool_calls=[call], role=chat_pb2.MessageRole.ROLE_ASSISTANT)
    stop = sample_pb2.FinishReason.Value("REASON_STOP")
    outputs = [
        chat_pb2.CompletionOutput(index=0, message=looked),
        chat_pb2.CompletionOutput(index=0, message=message, finish_reason=stop),
    ]
    used = usage_pb2.SamplingUsage(
        prompt_tokens=5000,
        completion_tokens=100,
        total_tokens=5100,
        server_side_tools_used=[usage_pb2.ServerSideTool.SERVER_SIDE_TOOL_WEB_SEARCH],
    )
    said = chat_pb2.GetChatCompletionResponse(
        id="1", model="grok-4-0709", outputs=outputs, usage=used
    )

    class Chat(chat_pb2_grpc.ChatServicer):  # type: ignore[misc]
        async def GetCompletion(self, request: Any, context: Any) -> Any:
            asked.append(request)
            return said

    async def serve_and_ask() -> Completion:
        server = grpc.aio.server()
        chat_pb2_grpc.add_ChatServicer_to_server(Chat(), server)
        here = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        client = partial(xai_sdk.AsyncClient, api_host=here, use_insecure_channel=True)
        monkeypatch.setattr(xai_sdk, "AsyncClient", client)
        monkeypatch.setenv("XAI_API_KEY", "sk-secret")
        model = Registry().open("xai:grok-4-0709", web_search=True)
        question = (Message("user", ("Write slug().",)),)
        try:
            return await model.complete(Request(model.id, question, Draw("7"), web_search=True))
        finally:
            await server.stop(None)

    done = asyncio.run(serve_and_ask())
    assert [tool.WhichOneof("tool") for tool in asked[0].tools] == ["web_search"]
    found, rest = split_searches(done.text)
    assert ([one.query for one in found], rest) == (["python slug"], FILES)
    assert done.usd is None, "the price data knows no price of xAI's searches"


# --- who cannot ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("sim:balanced", "a simulated judge"),
        ("lab:llama", "your own servers are called without tools"),
        ("openai:gpt-3.5-turbo", "does not set web_search = true"),
        ("anthropic:claude-3-opus-20240229", "does not set web_search = true"),
    ],
)
def test_a_model_that_cannot_search_is_refused_when_it_is_opened(
    web: Web, tmp_path: Path, model: str, why: str
) -> None:
    endpoint = f'[endpoints.lab]\nbase_url = "{web.url}/v1"\nweb_search = true\n'
    (tmp_path / "judge-gym.models.toml").write_text(endpoint)
    registry = Registry(tmp_path)
    registry.open(model)
    with pytest.raises(DesignError, match=why) as caught:
        registry.open(model, web_search=True)
    assert "openai:NAME" in caught.value.choices
    asked = Request(model, (Message("user", ("Why?",)),), Draw("7"), web_search=True)
    with pytest.raises((DesignError, RejectedError), match="cannot search the web"):
        asyncio.run(registry.open(model).complete(asked))
    assert web.asked == []


def test_an_entry_says_who_can_search_and_at_what_price(web: Web, tmp_path: Path) -> None:
    (tmp_path / "judge-gym.models.toml").write_text(
        '[models."openai:gpt-3.5-turbo"]\nweb_search = true\n'
        "prices = {input = 1.0, output = 2.0, search = 5.0}\n"
    )
    card = Registry(tmp_path).card("openai:gpt-3.5-turbo")
    assert card.searches
    assert card.price(1_000_000, 0, searches=3) == pytest.approx(1.0 + 0.015)


# --- a suite -------------------------------------------------------------------------------------


def solving(*searched: str) -> Callable[[Asked], Answer]:
    """A model that searches, and writes what the task asks for."""

    def answer(asked: Asked) -> Answer:
        [line] = re.findall(rb"VALUE = \d+", asked.body)
        files = FILES.replace("VALUE = 1000", line.decode())
        return Answer(json.dumps(responses(files, *map(search, searched))), type=JSON)

    return answer


def test_a_suite_under_web_search_asks_once_and_shows_what_was_searched(
    web: Web, tmp_path: Path
) -> None:
    suite = write_suite(tmp_path / "tiny", 2)
    web.on("/v1/responses", solving("python value", "value types"))
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        run = partial(lab.suites.run, suite, "openai:gpt-5.2", condition="web_search")
        made = run()
        assert (made.score.passed, len(web.asked)) == (2, 2)
        assert made.score.usd == pytest.approx(2 * (5000 * 1.75 / 1e6 + 100 * 14 / 1e6 + 2 * 0.01))
        assert run().score.passed == 2
        assert run(series="again", evals=["/001-"]).score.passed == 1
        assert len(web.asked) == 3, "what was asked is not asked again, a new series is"
        [first, *_] = made.results
        steps = lab.suites.show_eval(first.id)["steps"]
        assert [step["name"] for step in steps][:2] == ["search", "filesystem"]
        assert steps[0]["reason"] == "2 searches"
        assert steps[0]["output"].split("\n") == ["? python value", "? value types"]


def test_a_budget_in_money_is_refused_where_searches_have_no_price(
    web: Web, tmp_path: Path
) -> None:
    suite = write_suite(tmp_path / "tiny", 1)
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        run = partial(lab.suites.run, suite, "openrouter:openai/gpt-5.2", budget={"usd": 1.0})
        with pytest.raises(DesignError, match="the price of a search by openrouter"):
            run(condition="web_search")
    assert web.asked == []
