"""How a connection to each provider is made; a provider's SDK loads when one of its models is.

An opener imports and returns what makes a connection, so that a missing SDK is found before any
call is made, and a connection in the event loop that uses it.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from judge_gym.models.cards import ModelCard

if TYPE_CHECKING:
    from pydantic_ai.models import Model

Connect = Callable[[], "Model"]
Opener = Callable[[ModelCard, str], Connect]


def _openai(card: ModelCard, key: str) -> Connect:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIResponsesModel if card.api == "responses" else OpenAIChatModel
    return lambda: model(card.name, provider=OpenAIProvider(api_key=key), profile=_profile())


def _anthropic(card: ModelCard, key: str) -> Connect:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return lambda: AnthropicModel(
        card.name, provider=AnthropicProvider(api_key=key), profile=_profile()
    )


def _google(card: ModelCard, key: str) -> Connect:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return lambda: GoogleModel(card.name, provider=GoogleProvider(api_key=key), profile=_profile())


def _xai(card: ModelCard, key: str) -> Connect:
    from pydantic_ai.models.xai import XaiModel
    from pydantic_ai.providers.xai import XaiProvider
    from xai_sdk import AsyncClient

    class Provider(XaiProvider):
        """Closes its channel, which pydantic-ai leaves open."""

        async def __aexit__(self, *_: Any) -> None:
            await self.client.close()

    def connect() -> "Model":
        once = [("grpc.enable_retries", 0)]
        client = AsyncClient(api_key=key, timeout=card.deadline, channel_options=once)
        return XaiModel(card.name, provider=Provider(xai_client=client), profile=_profile())

    return connect


def _openrouter(card: ModelCard, key: str) -> Connect:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    class Provider(OpenRouterProvider):
        """Reads its address from the environment, as its siblings do."""

        @property
        def base_url(self) -> str:
            return os.environ.get("OPENROUTER_BASE_URL") or super().base_url

    return lambda: OpenRouterModel(card.name, provider=Provider(api_key=key), profile=_profile())


def _profile() -> Any:
    """The registry says which models enforce a schema; pydantic-ai takes its word."""
    from pydantic_ai.profiles import ModelProfile

    return ModelProfile(supports_json_schema_output=True)


OPENERS: dict[str, Opener] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "google": _google,
    "xai": _xai,
    "openrouter": _openrouter,
}
