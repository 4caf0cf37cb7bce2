"""How a connection to each provider is made; a provider's SDK loads when one of its models is.

An opener imports and returns what makes a connection, so that a missing SDK is found before any
call is made, and a connection in the event loop that uses it. The SDKs are told here to repeat
nothing and to follow no redirect. OpenAI's and Anthropic's speak through aiohttp, which takes less
of the CPU than what they use by themselves.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from judge_gym.models.cards import ModelCard
from judge_gym.records import bare_endpoint

if TYPE_CHECKING:
    from httpx2 import Response, Timeout
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model

SECONDS_TO_CONNECT = 10.0
OPENROUTER = "https://openrouter.ai/api/v1"


class Connection(NamedTuple):
    """A model of pydantic-ai, and what closes its connections."""

    model: "Model"
    close: Callable[[], Awaitable[None]]


Connect = Callable[[], Connection]
Opener = Callable[[ModelCard, str, str], Connect]


def _openai(card: ModelCard, key: str, base_url: str) -> Connect:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIResponsesModel if card.api == "responses" else OpenAIChatModel

    def connect() -> Connection:
        client = _openai_client(card, key, base_url)
        provider = OpenAIProvider(openai_client=client)
        return Connection(model(card.name, provider=provider, profile=_profile()), client.close)

    return connect


def _openrouter(card: ModelCard, key: str, base_url: str) -> Connect:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    def connect() -> Connection:
        client = _openai_client(card, key, base_url or OPENROUTER)
        model = OpenRouterModel(
            card.name, provider=OpenRouterProvider(openai_client=client), profile=_profile()
        )
        return Connection(model, client.close)

    return connect


def _openai_client(card: ModelCard, key: str, base_url: str) -> "AsyncOpenAI":
    from openai import AsyncOpenAI, DefaultAioHttpClient

    http = DefaultAioHttpClient(**_http(card, base_url))
    return AsyncOpenAI(api_key=key, base_url=_url(base_url), http_client=http, max_retries=0)


def _anthropic(card: ModelCard, key: str, base_url: str) -> Connect:
    from anthropic import AsyncAnthropic, DefaultAioHttpClient
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    def connect() -> Connection:
        http = DefaultAioHttpClient(**_http(card, base_url))
        url = _url(base_url)
        client = AsyncAnthropic(api_key=key, base_url=url, http_client=http, max_retries=0)
        provider = AnthropicProvider(anthropic_client=client)
        return Connection(
            AnthropicModel(card.name, provider=provider, profile=_profile()), client.close
        )

    return connect


def _google(card: ModelCard, key: str, base_url: str) -> Connect:
    from pydantic_ai.models import create_async_httpx2_client
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    def connect() -> Connection:
        http = create_async_httpx2_client(timeout=_timeout(card))
        http.auth = _user(base_url)
        provider = GoogleProvider(api_key=key, base_url=_url(base_url), http_client=http)
        return Connection(
            GoogleModel(card.name, provider=provider, profile=_profile()), http.aclose
        )

    return connect


def _xai(card: ModelCard, key: str, base_url: str) -> Connect:
    from pydantic_ai.models.xai import XaiModel
    from pydantic_ai.providers.xai import XaiProvider
    from xai_sdk import AsyncClient

    def connect() -> Connection:
        once = [("grpc.enable_retries", 0)]
        client = AsyncClient(api_key=key, timeout=card.deadline, channel_options=once)
        provider = XaiProvider(xai_client=client)
        return Connection(XaiModel(card.name, provider=provider, profile=_profile()), client.close)

    return connect


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


# --- HTTP ----------------------------------------------------------------------------------------


def _url(base_url: str) -> str | None:
    """A base URL without its user, who is named in a header; None where the SDK knows its own."""
    return bare_endpoint(base_url) or None


def _user(base_url: str) -> Any:
    """Name and password in a base URL; errors and logs show URLs, so they are taken out of it."""
    parts = urlsplit(base_url)
    return (unquote(parts.username), unquote(parts.password or "")) if parts.username else None


def _timeout(card: ModelCard) -> "Timeout":
    from httpx2 import Timeout

    return Timeout(card.deadline, connect=min(SECONDS_TO_CONNECT, card.deadline))


def _http(card: ModelCard, base_url: str) -> dict[str, Any]:
    """What a client that speaks through aiohttp is told."""
    return {
        "auth": _user(base_url),
        "timeout": _timeout(card),
        "follow_redirects": False,
        "event_hooks": {"response": [_hear]},
    }


class Heard:
    """What came over HTTP in a call, which an SDK does not hand on where it cannot read it."""

    def __init__(self) -> None:
        self.response: Response | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """Those of the response; none where none came."""
        return self.response.headers if self.response else {}

    @property
    def body(self) -> Any:
        """The JSON of the response; None where there is none, or half of it."""
        try:
            return self.response.json() if self.response else None
        except (ValueError, RuntimeError):  # no JSON, or a body that was not read to its end
            return None


_heard: ContextVar[Heard | None] = ContextVar("heard", default=None)


@contextmanager
def hearing() -> Iterator[Heard]:
    """Keep the response to the call that is made within; calls of one model run side by side."""
    heard = Heard()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


async def _hear(response: "Response") -> None:
    if (heard := _heard.get()) is not None:
        heard.response = response
