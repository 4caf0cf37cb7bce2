"""Opens connections to hosted providers: one opener per provider of `registry.toml`.

An opener imports the provider's SDK, so that a missing one is found before any call, and returns
what connects in the event loop that makes the calls. The SDKs are set to retry nothing and to
follow no redirect. OpenAI's and Anthropic's use aiohttp, which takes less CPU than their default.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from judge_gym.models.body_limits import UnreadableBody, limited
from judge_gym.models.model_card import ModelCard
from judge_gym.records import bare_endpoint

if TYPE_CHECKING:
    from httpx2 import Request as HttpRequest
    from httpx2 import Response, Timeout
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model

SECONDS_TO_CONNECT = 10.0
OPENROUTER = "https://openrouter.ai/api/v1"
Connect = Callable[[AsyncExitStack], "Awaitable[Model]"]
"""Returns a model of pydantic-ai whose connections close with the stack."""
Opener = Callable[[ModelCard, str, str], Connect]
"""From what is known about a model, the key, and a base URL (empty for the provider's own)."""
OPENERS: dict[str, Opener] = {}
"""The openers by provider."""


def _opens(provider: str) -> Callable[[Opener], Opener]:
    """Registers the opener of a provider."""

    def register(opener: Opener) -> Opener:
        OPENERS[provider] = opener
        return opener

    return register


@_opens("openai")
def _openai(card: ModelCard, key: str, base_url: str) -> Connect:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIResponsesModel if card.api == "responses" else OpenAIChatModel

    async def connect(stack: AsyncExitStack) -> "Model":
        client = await stack.enter_async_context(_openai_client(card, key, base_url))
        return kind(card.name, provider=OpenAIProvider(openai_client=client), profile=_profile())

    return connect


@_opens("openrouter")
def _openrouter(card: ModelCard, key: str, base_url: str) -> Connect:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    async def connect(stack: AsyncExitStack) -> "Model":
        opened = _openai_client(card, key, base_url or OPENROUTER)
        provider = OpenRouterProvider(openai_client=await stack.enter_async_context(opened))
        return OpenRouterModel(card.name, provider=provider, profile=_profile())

    return connect


def _openai_client(card: ModelCard, key: str, base_url: str) -> "AsyncOpenAI":
    from openai import AsyncOpenAI, DefaultAioHttpClient

    http = DefaultAioHttpClient(**_http(card, base_url))
    return AsyncOpenAI(api_key=key, base_url=_url(base_url), http_client=http, max_retries=0)


@_opens("anthropic")
def _anthropic(card: ModelCard, key: str, base_url: str) -> Connect:
    from anthropic import AsyncAnthropic, DefaultAioHttpClient
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    async def connect(stack: AsyncExitStack) -> "Model":
        http = DefaultAioHttpClient(**_http(card, base_url))
        opened = AsyncAnthropic(
            api_key=key, base_url=_url(base_url), http_client=http, max_retries=0
        )
        provider = AnthropicProvider(anthropic_client=await stack.enter_async_context(opened))
        return AnthropicModel(card.name, provider=provider, profile=_profile())

    return connect


@_opens("google")
def _google(card: ModelCard, key: str, base_url: str) -> Connect:
    from pydantic_ai.models import create_async_httpx2_client
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    async def connect(stack: AsyncExitStack) -> "Model":
        opened = create_async_httpx2_client(timeout=_timeout(card))
        http = await stack.enter_async_context(opened)
        http.auth = _user(base_url)
        http.headers["Accept-Encoding"] = "identity"
        http.event_hooks = {"request": [_send_one_user_agent], "response": [_keep_response]}
        provider = GoogleProvider(api_key=key, base_url=_url(base_url), http_client=http)
        return GoogleModel(card.name, provider=provider, profile=_profile())

    return connect


@_opens("xai")
def _xai(card: ModelCard, key: str, base_url: str) -> Connect:
    from pydantic_ai.models.xai import XaiModel
    from pydantic_ai.providers.xai import XaiProvider
    from xai_sdk import AsyncClient

    async def connect(stack: AsyncExitStack) -> "Model":
        no_retries = [("grpc.enable_retries", 0)]
        client = AsyncClient(api_key=key, timeout=card.deadline, channel_options=no_retries)
        stack.push_async_callback(client.close)
        return XaiModel(card.name, provider=XaiProvider(xai_client=client), profile=_profile())

    return connect


def _profile() -> Any:
    """Returns a profile that enforces a schema: the registry knows which models can."""
    from pydantic_ai.profiles import ModelProfile

    return ModelProfile(supports_json_schema_output=True)


# --- HTTP ----------------------------------------------------------------------------------------


def _url(base_url: str) -> str | None:
    """Returns a base URL without its user, who is sent in a header; None for the SDK's own."""
    return bare_endpoint(base_url) or None


def _user(base_url: str) -> Any:
    """Returns name and password in a base URL, which errors and logs must not show."""
    parts = urlsplit(base_url)
    return (unquote(parts.username), unquote(parts.password or "")) if parts.username else None


def _timeout(card: ModelCard) -> "Timeout":
    from httpx2 import Timeout

    return Timeout(card.deadline, connect=min(SECONDS_TO_CONNECT, card.deadline))


def _http(card: ModelCard, base_url: str) -> dict[str, Any]:
    """Returns the settings of a client that uses aiohttp."""
    return {
        "auth": _user(base_url),
        "timeout": _timeout(card),
        "follow_redirects": False,
        "headers": {"Accept-Encoding": "identity"},  # what a body unpacks to has no limit
        "event_hooks": {"response": [_keep_response]},
    }


async def _send_one_user_agent(request: "HttpRequest") -> None:
    """Joins the user agents of pydantic-ai and of Google's SDK: strict servers refuse two."""
    request.headers["User-Agent"] = " ".join(request.headers.get_list("User-Agent"))


class Received:
    """The HTTP response of a call, which an SDK does not pass on where it cannot read it.

    Args:
        turn: holds the turn of a large body.
    """

    def __init__(self, turn: AsyncExitStack) -> None:
        self.response: Response | None = None
        self.unreadable = ""
        """Why its body was not read, or not to its end."""
        self.turn = turn

    @property
    def headers(self) -> Mapping[str, str]:
        """The response's headers; empty without a response."""
        return self.response.headers if self.response else {}

    @property
    def body(self) -> Any:
        """The response's JSON; None without a response, or where it is incomplete or not JSON."""
        try:
            return self.response.json() if self.response else None
        except (ValueError, RuntimeError):  # no JSON, or a body that was not read to its end
            return None


_received: ContextVar[Received] = ContextVar("received")


@asynccontextmanager
async def received() -> AsyncIterator[Received]:
    """Keeps the response to the call within; calls of one model run concurrently."""
    async with AsyncExitStack() as turn:
        kept = Received(turn)
        token = _received.set(kept)
        try:
            yield kept
        finally:
            _received.reset(token)
            kept.response = None  # its stream refers to what is kept


async def _keep_response(response: "Response") -> None:
    """Keeps a response and limits its body."""
    from httpx2 import AsyncByteStream

    kept, body = _received.get(), cast("AsyncByteStream", response.stream)
    kept.response = response

    class Limited(AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in limited(aiter(body), kept.turn):
                    yield chunk
            except UnreadableBody as error:
                kept.unreadable = error.message
                raise

        async def aclose(self) -> None:
            await body.aclose()

    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        kept.unreadable = "its reply is compressed, which was not asked for"
        raise UnreadableBody(kept.unreadable)
    response.stream = Limited()
