"""Hosted models through pydantic-ai's direct request API; the SDKs load when one is opened.

A call is one attempt: the SDKs repeat nothing, so that everything that was paid for is on record.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from judge_gym.errors import Bill, ProviderError, RateLimitError, UnavailableError
from judge_gym.models import quotas, replies
from judge_gym.models.cards import ModelCard, searchless
from judge_gym.models.faults import translated
from judge_gym.models.scrubbing import Scrubber
from judge_gym.models.sdks import OPENERS, Connection, hearing
from judge_gym.models.searching import SETTINGS, joined, paid_for, searches_of
from judge_gym.records import Completion, Draw, Finish, Message, Request, digest
from judge_gym.records.searches import with_searches

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

Lane = tuple[asyncio.AbstractEventLoop, bool]
"""A connection's event loop, and whether it is one that can search."""
ANSWER = "answer"
"""What the schema is called, where a schema or a tool needs a name."""
FINISHES: dict[str | None, Finish] = {"length": "length", "content_filter": "refusal"}
"""Ends of an answer that are not its own."""
TURNS = 10
"""How often a model that pauses in the midst of its searches is told to go on."""


class HostedModel:
    """A model of a provider that pydantic-ai knows.

    Args:
        card: what is known of it.
        key: the provider's; it appears in no text that this class makes.
        base_url: where the provider is asked, if not at home; it may hold a user and a password.

    Raises:
        ImportError: where the provider's SDK is not installed.
    """

    def __init__(self, card: ModelCard, key: str, base_url: str = "") -> None:
        self.id = card.id
        self._card = card
        self._cards = {False: card}
        if card.searches:
            self._cards[True] = card
        if card.searches and card.provider == "openai":  # only its newer API searches
            self._cards[True] = replace(card, api="responses", takes_seed=False)
        opener = OPENERS[card.provider]
        self._connect = {lane: opener(asked, key, base_url) for lane, asked in self._cards.items()}
        self._scrub = Scrubber(key, base_url)
        self._connected: dict[Lane, tuple[Model, AsyncGenerator[None]]] = {}

    def __repr__(self) -> str:
        return f"HostedModel({self.id})"

    async def complete(self, request: Request) -> Completion:
        """The provider's answer.

        What a model thinks is no part of its text: an answer that is in its thoughts alone is
        empty, because it was not given. What it searched stands at the head of its text.
        """
        if request.web_search and not self._card.searches:
            raise searchless(self._card)
        model, messages = await self._model(request.web_search), conversation(request.messages)
        answered = await self._turn(model, messages, request)
        for _ in range(TURNS):
            if answered.state != "suspended":
                break
            more = await self._turn(model, [*messages, answered], request, answered)
            answered = replace(
                more, parts=[*answered.parts, *more.parts], usage=answered.usage + more.usage
            )
        return self._completion(request, answered)

    async def _turn(
        self,
        model: "Model",
        messages: "list[ModelMessage]",
        request: Request,
        before: "ModelResponse | None" = None,
    ) -> "ModelResponse":
        """One reply; `before` is what it goes on with, which is paid for whatever becomes of it."""
        from pydantic_ai.direct import model_request

        with hearing() as heard:
            try:
                return await model_request(
                    model,
                    messages,
                    model_settings=self._settings(request),
                    model_request_parameters=self._parameters(request),
                )
            except Exception as fault:  # SDKs raise anything where an answer makes no sense to them
                bill = replies.bill(heard.body, self._card.price)
                if before is not None:
                    bill = _sum([bill, self._bill(before)])
                told: ProviderError = translated(self.id, fault, self._scrub, bill)
                if before is not None and isinstance(told, RateLimitError):
                    # Not as if nothing had been asked: the beginning is paid for.
                    told = UnavailableError(told.message, wait=told.wait, bill=bill)
                raise told from None  # not from the fault: its words may hold the key
            finally:
                quotas.tell(heard.headers)

    async def _model(self, searches: bool) -> "Model":
        """The connection of the running event loop."""
        lane = (asyncio.get_running_loop(), searches)
        if lane not in self._connected:
            made = self._connect[searches]()
            life = self._life(lane, made)
            self._connected[lane] = (made.model, life)
            await anext(life)
        return self._connected[lane][0]

    async def _life(self, lane: Lane, made: Connection) -> AsyncGenerator[None]:
        """Holds a connection open. A loop that ends closes its generators, and so this one."""
        try:
            yield
        finally:
            self._connected.pop(lane, None)
            await made.close()

    def _settings(self, request: Request) -> "ModelSettings":
        settings: ModelSettings = {
            "max_tokens": request.max_tokens,
            "request_timeout": self._card.deadline,
        }
        if request.temperature is not None and self._card.takes_temperature:
            settings["temperature"] = request.temperature
        if self._cards[request.web_search].takes_seed:
            settings["seed"] = seed(request.draw)
        searching = SETTINGS.get(self._card.provider, {}) if request.web_search else {}
        return cast("ModelSettings", {**settings, **searching})

    def _parameters(self, request: Request) -> "ModelRequestParameters":
        from pydantic_ai.messages import InstructionPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.native_tools import AbstractNativeTool, WebSearchTool
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.tools import ToolDefinition

        system = [message.content for message in request.messages if message.role == "system"]
        instructions = [InstructionPart(content=text) for text in system]
        tools: list[AbstractNativeTool] = [WebSearchTool()] if request.web_search else []
        if request.schema is None or self._card.structured == "prompted":
            return ModelRequestParameters(instruction_parts=instructions, native_tools=tools)
        schema = dict(request.schema)
        if self._card.structured == "tool":
            tool = ToolDefinition(name=ANSWER, parameters_json_schema=schema, kind="output")
            return ModelRequestParameters(
                instruction_parts=instructions,
                native_tools=tools,
                output_mode="tool",
                output_tools=[tool],
                allow_text_output=False,
            )
        return ModelRequestParameters(
            instruction_parts=instructions,
            native_tools=tools,
            output_mode="native",
            output_object=OutputObjectDefinition(schema, name=ANSWER),
            prompted_output_template=False,  # nothing is asked that is not in the ledger
        )

    def _bill(self, response: "ModelResponse") -> Bill | None:
        """What a reply cost, searches included; None where it does not say."""
        usage = response.usage
        tokens = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
        if searches := paid_for(self._card.provider, response):
            # A router says what the whole came to, which no price list of ours could.
            routed = (response.provider_details or {}).get("cost")
            usd = self._card.price(*tokens, searches)
            return Bill(*tokens, float(routed) if isinstance(routed, int | float) else usd)
        return Bill(*tokens, self._card.price(*tokens)) if any(tokens) else None

    def _completion(self, request: Request, response: "ModelResponse") -> Completion:
        from pydantic_ai.messages import ToolCallPart

        details, bill = response.provider_details or {}, self._bill(response)
        if response.state == "suspended":
            raise UnavailableError(f"{self.id} did not come to an end of its searches", bill=bill)
        if response.finish_reason == "error":
            end = details.get("finish_reason", "error")
            raise UnavailableError(f"{self.id} broke its answer off ({end})", bill=bill)
        if not (response.parts or response.finish_reason or details):
            raise UnavailableError(f"{self.id} gave no answer that can be read", bill=bill)
        called = [part for part in response.parts if isinstance(part, ToolCallPart)]
        text = _arguments(called[0].args) if called else joined(response.parts)
        finish = FINISHES.get(response.finish_reason, "stop")
        if finish == "refusal":
            text = text or str(details.get("refusal") or "")
        if request.web_search:
            text = with_searches(searches_of(response), text)
        read, wrote, cached, usd = bill or Bill(0, 0, 0, self._card.price(0, 0))
        reported = response.model_name or self._card.name
        return Completion(text, finish, reported, read, wrote, usd, cached)


def _sum(bills: Sequence[Bill | None]) -> Bill | None:
    """Bills as one; its price is unknown where one of theirs is."""
    known = [bill for bill in bills if bill is not None]
    if not known:
        return None
    read, wrote, cached, prices = zip(*known, strict=True)
    usd = sum(prices) if None not in prices else None
    return Bill(sum(read), sum(wrote), sum(cached), usd)


def conversation(messages: Sequence[Message]) -> "list[ModelMessage]":
    """The turns as pydantic-ai has them; instructions travel beside them."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    return [
        ModelRequest([UserPromptPart(message.content)])
        if message.role == "user"
        else ModelResponse([TextPart(message.content)])
        for message in messages
        if message.role != "system"
    ]


def _arguments(given: str | Mapping[str, Any] | None) -> str:
    """What a tool was called with, as it came."""
    return given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)


def seed(draw: Draw) -> int:
    """A draw as a seed: every part of it, or a second ask would repeat the first.

    >>> seed(Draw("7")) == seed(Draw("7", 0, 0)) != seed(Draw("7", 0, 1))
    True
    """
    return int(digest([draw.series, draw.index, draw.ask])[:8], 16) >> 1
