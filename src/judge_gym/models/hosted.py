"""Hosted models through pydantic-ai's direct request API; the SDKs load when one is opened.

A call is one attempt: the SDKs repeat nothing, so that everything that was paid for is on record.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge_gym.errors import Bill, UnavailableError
from judge_gym.models import quotas, replies
from judge_gym.models.cards import ModelCard
from judge_gym.models.faults import translated
from judge_gym.models.scrubbing import Scrubber
from judge_gym.models.sdks import OPENERS, Connection, hearing
from judge_gym.records import Completion, Draw, Finish, Message, Request, digest

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

ANSWER = "answer"
"""What the schema is called, where a schema or a tool needs a name."""
FINISHES: dict[str | None, Finish] = {"length": "length", "content_filter": "refusal"}
"""Ends of an answer that are not its own."""


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
        self._connect = OPENERS[card.provider](card, key, base_url)
        self._scrub = Scrubber(key, base_url)
        self._connected: dict[asyncio.AbstractEventLoop, tuple[Model, AsyncGenerator[None]]] = {}

    def __repr__(self) -> str:
        return f"HostedModel({self.id})"

    async def complete(self, request: Request) -> Completion:
        """The provider's answer.

        What a model thinks is no part of its text: an answer that is in its thoughts alone is
        empty, because it was not given.
        """
        from pydantic_ai.direct import model_request

        model, messages = await self._model(), conversation(request.messages)
        settings, parameters = self._settings(request), self._parameters(request)
        with hearing() as heard:
            try:
                response = await model_request(
                    model,
                    messages,
                    model_settings=settings,
                    model_request_parameters=parameters,
                )
            except Exception as fault:  # SDKs raise anything where an answer makes no sense to them
                bill = replies.bill(heard.body, self._card.price)
                # Not from the fault: its words may hold the key.
                raise translated(self.id, fault, self._scrub, bill) from None
            finally:
                quotas.tell(heard.headers)
        return self._completion(response)

    async def _model(self) -> "Model":
        """The connection of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._connected:
            made = self._connect()
            life = self._life(loop, made)
            self._connected[loop] = (made.model, life)
            await anext(life)
        return self._connected[loop][0]

    async def _life(
        self, loop: asyncio.AbstractEventLoop, made: Connection
    ) -> AsyncGenerator[None]:
        """Holds a connection open. A loop that ends closes its generators, and so this one."""
        try:
            yield
        finally:
            self._connected.pop(loop, None)
            await made.close()

    def _settings(self, request: Request) -> "ModelSettings":
        settings: ModelSettings = {
            "max_tokens": request.max_tokens,
            "request_timeout": self._card.deadline,
        }
        if request.temperature is not None and self._card.takes_temperature:
            settings["temperature"] = request.temperature
        if self._card.takes_seed:
            settings["seed"] = seed(request.draw)
        return settings

    def _parameters(self, request: Request) -> "ModelRequestParameters":
        from pydantic_ai.messages import InstructionPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.tools import ToolDefinition

        system = [message.content for message in request.messages if message.role == "system"]
        instructions = [InstructionPart(content=text) for text in system]
        if request.schema is None or self._card.structured == "prompted":
            return ModelRequestParameters(instruction_parts=instructions)
        schema = dict(request.schema)
        if self._card.structured == "tool":
            tool = ToolDefinition(name=ANSWER, parameters_json_schema=schema, kind="output")
            return ModelRequestParameters(
                instruction_parts=instructions,
                output_mode="tool",
                output_tools=[tool],
                allow_text_output=False,
            )
        return ModelRequestParameters(
            instruction_parts=instructions,
            output_mode="native",
            output_object=OutputObjectDefinition(schema, name=ANSWER),
            prompted_output_template=False,  # nothing is asked that is not in the ledger
        )

    def _completion(self, response: "ModelResponse") -> Completion:
        from pydantic_ai.messages import TextPart, ToolCallPart

        details, usage = response.provider_details or {}, response.usage
        tokens = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
        usd = self._card.price(*tokens)
        bill = Bill(*tokens, usd) if any(tokens) else None
        if response.finish_reason == "error":
            end = details.get("finish_reason", "error")
            raise UnavailableError(f"{self.id} broke its answer off ({end})", bill=bill)
        if not (response.parts or response.finish_reason or details):
            raise UnavailableError(f"{self.id} gave no answer that can be read", bill=bill)
        called = [part for part in response.parts if isinstance(part, ToolCallPart)]
        texts = [part.content for part in response.parts if isinstance(part, TextPart)]
        text = _arguments(called[0].args) if called else "".join(texts)
        finish = FINISHES.get(response.finish_reason, "stop")
        if finish == "refusal":
            text = text or str(details.get("refusal") or "")
        read, wrote, cached = tokens
        reported = response.model_name or self._card.name
        return Completion(text, finish, reported, read, wrote, usd, cached)


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
