"""A lean lane to OpenAI-compatible endpoints that users run: vLLM, Ollama, LM Studio, a gateway.

A call is one POST of a body that is encoded once; whatever comes back is a `Completion` or one of
the errors that say whether asking again can help. Nothing is repeated here.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, get_args
from urllib.parse import SplitResult, urlsplit

import aiohttp
from yarl import URL

from judge_gym.errors import (
    Bill,
    DesignError,
    ProviderError,
    RateLimitError,
    RejectedError,
    UnavailableError,
    unknown,
)
from judge_gym.models import quotas, replies
from judge_gym.models.scrubbing import Scrubber
from judge_gym.records import Completion, Draw, Finish, Request, bare_endpoint, digest

Structured = Literal["native", "tool", "prompted"]

SECONDS_TO_CONNECT = 10.0
ANSWER = "answer"
"""What the schema is called, where a schema or a tool needs a name."""
ENDS: dict[str, Finish] = {"length": "length", "content_filter": "refusal"}
"""Ends of an answer that are not its own; servers have many names for the others."""
BROKEN_OFF = ("abort", "error")
"""Ends that leave no answer behind."""
UNPAYABLE = ("insufficient_quota", "billing_hard_limit_reached")
"""Codes of a 429 that no patience helps against."""


class WireModel:
    """A model behind an OpenAI-compatible endpoint.

    Args:
        id: `endpoint:name`, as the study has it.
        base_url: Where `/chat/completions` is found, usually ending in `/v1`.
        name: The model's name as the endpoint knows it.
        key: Sent as a bearer token; empty where the endpoint asks for none.
        timeout: Seconds after which a call has failed, whatever has come by then.
        structured: How a schema is sent: as a response format, as a tool that must be called, or
            not at all, because the prompt says what is wanted.
        seeded: Whether the model takes a seed.
        price: What tokens cost; unknown where it is left out.
    """

    def __init__(
        self,
        id: str,
        base_url: str,
        name: str,
        key: str = "",
        *,
        timeout: float = 300.0,
        structured: Structured = "native",
        seeded: bool = False,
        price: replies.Price | None = None,
    ) -> None:
        if structured not in get_args(Structured):
            choices = get_args(Structured)
            raise DesignError(unknown("mode", structured, choices, id), choices=choices)
        parts, self._url = _address(id, base_url)
        if key and parts.username:
            raise DesignError(f"{id} has a key and a user in its base URL; give one of them")
        if not key.isascii() or not key.isprintable():
            raise DesignError(f"the key of {id} holds characters that no key has")
        self.id = id
        self.name = name
        self.timeout = timeout
        self.structured = structured
        self.seeded = seeded
        self._price = price
        self._where = f"{id} at {bare_endpoint(base_url)}"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._scrub = Scrubber(key, base_url)

    def __repr__(self) -> str:
        return f"WireModel({self._where})"

    async def complete(self, request: Request) -> Completion:
        """The endpoint's answer.

        Where it does not count tokens, they are estimated as a quarter of the characters. A text
        that is empty stays so, even if the model's reasoning holds an answer: it gave none.
        """
        if request.web_search:
            raise RejectedError(f"{self.id} cannot search the web: it is asked without tools")
        try:
            async with asyncio.timeout(self.timeout):
                status, headers, body = await self._post(self._body(request))
        except aiohttp.ClientError as fault:
            raise UnavailableError(f"{self._where} {replies.lost(fault)}") from fault
        except TimeoutError as fault:
            raise UnavailableError(f"{self._where} took over {self.timeout:g} s") from fault
        except OSError as fault:
            raise UnavailableError(f"{self._where} {replies.lost(fault)}") from fault
        quotas.tell(headers)
        data = replies.parsed(headers, body)
        if not 200 <= status < 300:
            raise self._refusal(status, headers, data)
        if data is None:
            kind = headers.get("Content-Type", "no content type").partition(";")[0]
            raise UnavailableError(f"{self._where} gave no JSON ({kind}, {len(body)} bytes)")
        return self._completion(request, headers, data)

    def _body(self, request: Request) -> bytes:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "max_tokens": request.max_tokens,
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if self.seeded:
            body["seed"] = seed(request.draw)
        if request.schema is not None and self.structured == "native":
            asked = {"name": ANSWER, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": asked}
        elif request.schema is not None and self.structured == "tool":
            tool = {"name": ANSWER, "parameters": request.schema}
            body["tools"] = [{"type": "function", "function": tool}]
            body["tool_choice"] = {"type": "function", "function": {"name": ANSWER}}
        return json.dumps(body, separators=(",", ":")).encode()

    async def _post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        session = await _session()
        # A redirect would turn the POST into a GET, and might carry the key elsewhere.
        async with session.post(
            self._url, data=body, headers=self._headers, allow_redirects=False
        ) as response:
            return response.status, response.headers, await response.read()

    def _completion(self, request: Request, headers: Mapping[str, str], data: Any) -> Completion:
        bill = replies.bill(data, self._price)  # an answer that is broken may be paid for
        choices = data.get("choices") if isinstance(data, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else {}
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            if isinstance(data, dict) and data.get("error"):  # gateways say so with a 200
                raise self._refusal(replies.code(data["error"]), headers, data, bill)
            raise UnavailableError(f"{self._where} gave no choices", bill=bill)
        end = str(choice.get("finish_reason"))
        if end in BROKEN_OFF:
            raise UnavailableError(f"{self._where} broke its answer off ({end})", bill=bill)
        text, finish = replies.text(message.get("content")), ENDS.get(end, "stop")
        if self.structured == "tool":
            text = replies.arguments(message) or text
        if refused := replies.text(message.get("refusal")):
            text, finish = refused, "refusal"
        tokens_in, tokens_out, cached = replies.usage(data)
        if tokens_in is None:
            tokens_in = sum(len(part) for m in request.messages for part in m.parts) // 4
        if tokens_out is None:
            tokens_out = len(text) // 4
        usd = self._price(tokens_in, tokens_out, cached) if self._price else None
        model = data.get("model")
        reported = model if isinstance(model, str) and model else self.name
        return Completion(text, finish, reported, tokens_in, tokens_out, usd, cached)

    def _refusal(
        self, status: int, headers: Mapping[str, str], data: Any, bill: Bill | None = None
    ) -> ProviderError:
        """The error for a status, with what the provider says of it and nothing secret."""
        complaint, code = replies.complaint(data)
        said = self._scrub(complaint)
        message = f"{self._where} answered {status}" + (f": {said}" if said else "")
        if status == 429 and code not in UNPAYABLE:
            return RateLimitError(message, wait=replies.wait(headers))
        if status in (408, 409) or status >= 500:
            return UnavailableError(message, wait=replies.wait(headers), bill=bill)
        return RejectedError(message, bill=bill)


def seed(draw: Draw) -> int:
    """A draw as a seed of 31 bits; of all its parts, or a second ask would repeat the first."""
    return int(digest([draw.series, draw.index, draw.ask])[:8], 16) >> 1


def _address(id: str, base_url: str) -> tuple[SplitResult, URL]:
    """The parts of a base URL, and where its chat completions are."""
    try:
        parts = urlsplit(base_url)
        path = parts.path.rstrip("/") + "/chat/completions"
        url = URL(parts._replace(path=path, fragment="").geturl())
    except ValueError:
        parts, url = urlsplit(""), URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise DesignError(
            f"the base URL of {id} is not one; give http://HOST/PATH or https://HOST/PATH"
        )
    return parts, url


# --- sessions ------------------------------------------------------------------------------------

_sessions: dict[
    asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[Any, None]]
] = {}


async def _session() -> aiohttp.ClientSession:
    """The session of the running event loop, which all models share: it holds no key."""
    loop = asyncio.get_running_loop()
    if loop not in _sessions:
        life = _life(loop)
        _sessions[loop] = (await anext(life), life)
    return _sessions[loop][0]


async def _life(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """Holds a session open. A loop that ends closes its generators, and so this session."""
    connector = aiohttp.TCPConnector(limit=0)  # how many calls are in flight is the engine's to say
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=SECONDS_TO_CONNECT)
    try:
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            yield session
    finally:
        _sessions.pop(loop, None)


async def close() -> None:
    """Close the running event loop's connections; `asyncio.run` does it by itself at its end."""
    found = _sessions.get(asyncio.get_running_loop())
    if found is not None:
        await found[1].aclose()
