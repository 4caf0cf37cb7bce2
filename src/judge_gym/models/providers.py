"""Opens connections to hosted providers: one opener per provider of `registry.toml`.

An opener imports the provider's SDK, so that a missing one is found before any call; its client
connects in the event loop that makes the calls. The SDKs are set to retry nothing and to
follow no redirect. OpenAI's and Anthropic's use aiohttp, which takes less CPU than their default.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from judge_gym.models.body_limits import UnreadableBody, limited
from judge_gym.models.model_card import ModelCard
from judge_gym.records import bare_endpoint

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response, Timeout
    from httpx2 import Request as HttpRequest
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model

SECONDS_TO_CONNECT = 10.0
OPENROUTER = "https://openrouter.ai/api/v1"
Connect = Callable[[AsyncExitStack], "Awaitable[Model]"]
"""Returns a model of pydantic-ai whose connections close with the stack."""


class Sdk(NamedTuple):
    """How calls of a model go through its provider's SDK."""

    model: Callable[..., "Model"]
    """pydantic-ai's class of models."""
    provider: Callable[[Any], Any]
    """Returns pydantic-ai's provider for a client."""
    client: Callable[[], AbstractAsyncContextManager[Any]]
    """Returns a client, which closes its connections when it is left."""


Opener = Callable[[ModelCard, str, str], Sdk]
"""From what is known about a model, the key, and a base URL (empty for the provider's own)."""
OPENERS: dict[str, Opener] = {}
"""The openers by provider."""


def open_provider(card: ModelCard, key: str, base_url: str) -> Connect:
    """Imports the SDK of a model's provider and returns what connects to it."""
    from pydantic_ai.profiles import ModelProfile

    sdk = OPENERS[card.provider](card, key, base_url)
    # A schema is always enforced by the provider: the registry knows which models can.
    profile = ModelProfile(supports_json_schema_output=True)

    async def connect(stack: AsyncExitStack) -> "Model":
        client = await stack.enter_async_context(sdk.client())
        return sdk.model(card.name, provider=sdk.provider(client), profile=profile)

    return connect


def _opens(provider: str) -> Callable[[Opener], Opener]:
    """Registers the opener of a provider."""

    def register(opener: Opener) -> Opener:
        OPENERS[provider] = opener
        return opener

    return register


@_opens("openai")
def _openai(card: ModelCard, key: str, base_url: str) -> Sdk:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return Sdk(
        OpenAIResponsesModel if card.api == "responses" else OpenAIChatModel,
        lambda client: OpenAIProvider(openai_client=client),
        _openai_client(card, key, base_url),
    )


@_opens("openrouter")
def _openrouter(card: ModelCard, key: str, base_url: str) -> Sdk:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    return Sdk(
        OpenRouterModel,
        lambda client: OpenRouterProvider(openai_client=client),
        _openai_client(card, key, base_url or OPENROUTER),
    )


def _openai_client(card: ModelCard, key: str, base_url: str) -> Callable[[], "AsyncOpenAI"]:
    from openai import AsyncOpenAI, DefaultAioHttpClient

    def client() -> AsyncOpenAI:
        http = DefaultAioHttpClient(**_http(card, base_url))
        return AsyncOpenAI(api_key=key, base_url=_url(base_url), http_client=http, max_retries=0)

    return client


@_opens("anthropic")
def _anthropic(card: ModelCard, key: str, base_url: str) -> Sdk:
    from anthropic import AsyncAnthropic, DefaultAioHttpClient
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    def client() -> AsyncAnthropic:
        http = DefaultAioHttpClient(**_http(card, base_url))
        return AsyncAnthropic(api_key=key, base_url=_url(base_url), http_client=http, max_retries=0)

    return Sdk(AnthropicModel, lambda client: AnthropicProvider(anthropic_client=client), client)


@_opens("google")
def _google(card: ModelCard, key: str, base_url: str) -> Sdk:
    from pydantic_ai.models import create_async_httpx2_client
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    def client() -> "AsyncClient":
        http = create_async_httpx2_client(timeout=_timeout(card))
        http.auth = _user(base_url)
        http.headers["Accept-Encoding"] = "identity"
        http.event_hooks = {"request": [_send_one_user_agent], "response": [_keep_response]}
        return http

    def provider(client: "AsyncClient") -> GoogleProvider:
        return GoogleProvider(api_key=key, base_url=_url(base_url), http_client=client)

    return Sdk(GoogleModel, provider, client)


@_opens("xai")
def _xai(card: ModelCard, key: str, base_url: str) -> Sdk:
    from pydantic_ai.models.xai import XaiModel
    from pydantic_ai.providers.xai import XaiProvider
    from xai_sdk import AsyncClient as XaiClient

    @asynccontextmanager
    async def client() -> AsyncIterator[XaiClient]:
        no_retries = [("grpc.enable_retries", 0)]
        opened = XaiClient(api_key=key, timeout=card.deadline, channel_options=no_retries)
        try:
            yield opened
        finally:
            await opened.close()

    return Sdk(XaiModel, lambda client: XaiProvider(xai_client=client), client)


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
        reply = Received(turn)
        token = _received.set(reply)
        try:
            yield reply
        finally:
            _received.reset(token)
            reply.response = None  # its stream refers to what is kept


async def _keep_response(response: "Response") -> None:
    """Keeps a response and limits its body."""
    from httpx2 import AsyncByteStream

    reply, body = _received.get(), cast("AsyncByteStream", response.stream)
    reply.response = response

    class Limited(AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in limited(aiter(body), reply.turn):
                    yield chunk
            except UnreadableBody as error:
                reply.unreadable = error.message
                raise

        async def aclose(self) -> None:
            await body.aclose()

    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        reply.unreadable = "its reply is compressed, which was not asked for"
        raise UnreadableBody(reply.unreadable)
    response.stream = Limited()
