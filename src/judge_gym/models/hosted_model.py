"""Calls hosted models through pydantic-ai's direct request API.

A provider's SDK is imported when one of its models is opened. A call is one attempt: the SDKs do
not retry, so that everything that was paid for is recorded.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from judge_gym.errors import (
    Bill,
    ProviderError,
    RateLimitError,
    RejectedError,
    UnavailableError,
)
from judge_gym.models import quota_headers, replies
from judge_gym.models.event_loops import LoopResources
from judge_gym.models.http_model import ANSWER
from judge_gym.models.model_card import ModelCard
from judge_gym.models.providers import Received, open_provider, received
from judge_gym.models.redaction import Redactor
from judge_gym.models.web_search import SETTINGS, charged_searches, joined_text, searches_of
from judge_gym.records import Completion, Message, Request
from judge_gym.records.searches import with_searches

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

TURNS = 10
"""How often a model that pauses between its searches is asked to continue."""


class HostedModel:
    """A model of a provider that pydantic-ai knows.

    Args:
        card: what is known about it.
        key: the provider's key; it appears in no text that this class writes.
        base_url: where the provider is called, if not at its own URL; it may contain a user and
            a password.

    Raises:
        ImportError: the provider's SDK is not installed.
    """

    def __init__(self, card: ModelCard, key: str, base_url: str = "") -> None:
        self.id = card.id
        self._card = card
        self._cards = {False: card}
        if card.searches:
            self._cards[True] = card
        if card.searches and card.provider == "openai":  # only its newer API searches
            self._cards[True] = replace(card, api="responses", takes_seed=False)
        self._connect = {
            searches: open_provider(model_card, key, base_url)
            for searches, model_card in self._cards.items()
        }
        self._redact = Redactor(key, base_url)
        self._connections: LoopResources[Model] = LoopResources()

    def __repr__(self) -> str:
        return f"HostedModel({self.id})"

    async def complete(self, request: Request) -> Completion:
        """Returns the provider's answer.

        A model's reasoning is not part of its text: an answer that is only in the reasoning is
        empty. Its web searches are listed at the head of the text.
        """
        if request.web_search and not self._card.searches:
            raise RejectedError(f"{self.id} cannot search the web")
        connect = self._connect[request.web_search]
        model = await self._connections.get(connect, request.web_search)
        messages = conversation(request.messages)
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
        """Returns one reply; `before` is the one that it continues, which is already paid for."""
        from pydantic_ai.direct import model_request

        async with received() as response:
            try:
                return await model_request(
                    model,
                    messages,
                    model_settings=self._settings(request),
                    model_request_parameters=self._parameters(request),
                )
            except Exception as raised:  # SDKs raise anything for an answer that they cannot read
                error = self._error(raised, response, before)
                chain: BaseException | None = raised
                while chain is not None:  # or frames would keep its copies of the whole body
                    chain.__traceback__, chain = None, chain.__cause__ or chain.__context__
            finally:
                quota_headers.report(response.headers)
        raise error  # not from what was raised: that may hold the key, and holds the whole body

    def _error(
        self, raised: Exception, response: Received, before: "ModelResponse | None"
    ) -> ProviderError:
        """Returns our error for what an SDK raised."""
        if response.unreadable:
            return RejectedError(f"{self.id}: {response.unreadable}")
        bill = replies.bill(response.body, self._card.price)
        if before is not None:
            bill = _sum([bill, self._bill(before)])
        error = replies.translated(self.id, raised, self._redact, response.headers, bill)
        if before is not None and isinstance(error, RateLimitError):
            # Not as if nothing had been asked: the beginning is paid for.
            return UnavailableError(error.message, wait=error.wait, bill=bill)
        return error

    def _settings(self, request: Request) -> "ModelSettings":
        settings: ModelSettings = {
            "max_tokens": request.max_tokens,
            "request_timeout": self._card.deadline,
        }
        if request.temperature is not None and self._card.takes_temperature:
            settings["temperature"] = request.temperature
        if self._cards[request.web_search].takes_seed:
            settings["seed"] = request.draw.seed
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
            prompted_output_template=False,  # the prompt must be what the ledger has
        )

    def _bill(self, response: "ModelResponse") -> Bill | None:
        """Returns the cost of a reply with its searches; None where it reports no usage."""
        usage = response.usage
        tokens = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
        if searches := charged_searches(self._card.provider, response):
            # A router reports the total, which no price list of ours has.
            routed = (response.provider_details or {}).get("cost")
            usd = self._card.price(*tokens, searches)
            return Bill(*tokens, float(routed) if isinstance(routed, int | float) else usd)
        return Bill(*tokens, self._card.price(*tokens)) if any(tokens) else None

    def _completion(self, request: Request, response: "ModelResponse") -> Completion:
        from pydantic_ai.messages import ToolCallPart

        details, bill = response.provider_details or {}, self._bill(response)
        if response.state == "suspended":
            raise UnavailableError(f"{self.id} did not finish its searches", bill=bill)
        if response.finish_reason == "error":
            end = details.get("finish_reason", "error")
            raise UnavailableError(f"{self.id} aborted its answer ({end})", bill=bill)
        if not (response.parts or response.finish_reason or details):
            raise UnavailableError(f"{self.id} gave an unreadable answer", bill=bill)
        called = [part for part in response.parts if isinstance(part, ToolCallPart)]
        text = _arguments(called[0].args) if called else joined_text(response.parts)
        finish = replies.FINISHES.get(response.finish_reason, "stop")
        if finish == "refusal":
            text = text or str(details.get("refusal") or "")
        if request.web_search:
            text = with_searches(searches_of(response), text)
        read, wrote, cached, usd = bill or Bill(0, 0, 0, self._card.price(0, 0))
        reported = response.model_name or self._card.name
        return Completion(text, finish, reported, read, wrote, usd, cached)


def _sum(bills: Sequence[Bill | None]) -> Bill | None:
    """Returns the sum of bills; its price is unknown where one of theirs is."""
    bills_with_usage = [bill for bill in bills if bill is not None]
    if not bills_with_usage:
        return None
    read, wrote, cached, prices = zip(*bills_with_usage, strict=True)
    usd = sum(prices) if None not in prices else None
    return Bill(sum(read), sum(wrote), sum(cached), usd)


def conversation(messages: Sequence[Message]) -> "list[ModelMessage]":
    """Returns the turns as messages of pydantic-ai, without the system's instructions."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    return [
        ModelRequest([UserPromptPart(message.content)])
        if message.role == "user"
        else ModelResponse([TextPart(message.content)])
        for message in messages
        if message.role != "system"
    ]


def _arguments(given: str | Mapping[str, Any] | None) -> str:
    """Returns the arguments of a tool call as text."""
    return given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
