"""Calls OpenAI-compatible endpoints that users run: vLLM, Ollama, LM Studio, a gateway.

A call is one POST; the result is a `Completion`, or an error that says whether a retry can help.
Nothing is retried here.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, get_args
from urllib.parse import SplitResult, urlsplit

import aiohttp
from yarl import URL

from judge_gym.errors import (
    Bill,
    DesignError,
    NotReachedError,
    ParameterRefused,
    ProviderError,
    RejectedError,
    UnavailableError,
    retry_after,
    unknown,
)
from judge_gym.models import quota_headers, replies
from judge_gym.models.body_limits import ENCODINGS, UnreadableBody, read_body
from judge_gym.models.event_loops import LoopResources
from judge_gym.models.model_card import Structured
from judge_gym.models.redaction import Redactor
from judge_gym.records import Completion, Request, bare_endpoint

SECONDS_TO_CONNECT = 10.0
ANSWER = "answer"
"""The name of the schema or tool of a structured answer."""
ABORTED = ("abort", "error")
"""Finish reasons of a reply without an answer."""
OUT_OF_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")
"""Codes of a 429 after which waiting does not help."""


class HttpModel:
    """A model behind an OpenAI-compatible endpoint.

    Args:
        id: `endpoint:name`, as the study has it.
        base_url: the URL above `/chat/completions`, usually ending in `/v1`.
        name: the model's name at the endpoint.
        key: sent as a bearer token; empty for an endpoint without one.
        timeout: seconds after which a call fails.
        structured: how a schema is sent: as a response format, as a tool that must be called, or
            not at all, because the prompt describes it.
        may_prompt: whether the schema may be left to the prompt where the endpoint refuses it.
        seeded: whether the model accepts a seed.
        price: the price of tokens; unknown by default.
        where: what errors call it; by default the id and the URL.
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
        may_prompt: bool = False,
        seeded: bool = False,
        price: replies.Price | None = None,
        where: str = "",
    ) -> None:
        if structured not in get_args(Structured):
            choices = get_args(Structured)
            raise DesignError(unknown("mode", structured, choices, id), choices=choices)
        parts, self._url = _address(id, base_url)
        if key and parts.username:
            raise DesignError(f"{id} has a key and a user in its base URL; give one of them")
        if not key.isascii() or not key.isprintable():
            raise DesignError(f"the key of {id} contains characters that no key has")
        self.id = id
        self.name = name
        self.timeout = timeout
        self.structured = structured
        self._may_prompt = may_prompt
        self._prompts = structured == "prompted"
        self.seeded = seeded
        self._price = price
        self._where = where or f"{id} at {bare_endpoint(base_url)}"
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": ENCODINGS,
        }
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._redact = Redactor(key, base_url)

    def __repr__(self) -> str:
        return f"HttpModel({self._where})"

    async def complete(self, request: Request) -> Completion:
        """Returns the endpoint's answer.

        Tokens that it does not report are estimated as a quarter of the characters. An empty text
        stays empty, even if the model's reasoning contains an answer.
        """
        if request.web_search:
            raise RejectedError(f"{self.id} cannot search the web: it is called without tools")
        native = request.schema is not None and not self._prompts
        async with AsyncExitStack() as stack:
            try:
                return await self._answer(request, native, stack)
            except ParameterRefused:
                if not (native and self._may_prompt):
                    raise
                self._prompts = True  # the prompt describes the schema, too
                return await self._answer(request, False, stack)

    async def _answer(self, request: Request, native: bool, stack: AsyncExitStack) -> Completion:
        """Returns the reply to one request, with its schema enforced where `native`."""
        sent = self._body(request, native)
        try:
            async with asyncio.timeout(self.timeout):
                status, headers, body = await self._post(sent, stack)
        except UnreadableBody as error:
            raise RejectedError(f"{self._where}: {error.message}") from error
        except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError) as error:
            raise NotReachedError(f"{self._where} {replies.lost(error)}") from error
        except aiohttp.ClientError as error:  # some of them are also a TimeoutError or an OSError
            raise UnavailableError(f"{self._where} {replies.lost(error)}") from error
        except TimeoutError as error:
            raise UnavailableError(f"{self._where} took over {self.timeout:g} s") from error
        except OSError as error:
            raise UnavailableError(f"{self._where} {replies.lost(error)}") from error
        quota_headers.report(headers)
        data = replies.parsed(headers, body)
        if not 200 <= status < 300:
            raise self._refusal(status, headers, data, sent)
        if data is None:
            kind = self._redact(headers.get("Content-Type", "no content type").partition(";")[0])
            raise UnavailableError(f"{self._where} gave no JSON ({kind}, {len(body)} bytes)")
        return self._completion(request, headers, data, sent)

    def _body(self, request: Request, native: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "max_tokens": request.max_tokens,
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if self.seeded:
            body["seed"] = request.draw.seed
        if native and self.structured == "native":
            json_schema = {"name": ANSWER, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        elif native and self.structured == "tool":
            tool = {"name": ANSWER, "parameters": request.schema}
            body["tools"] = [{"type": "function", "function": tool}]
            body["tool_choice"] = {"type": "function", "function": {"name": ANSWER}}
        return body

    async def _post(
        self, body: Mapping[str, Any], stack: AsyncExitStack
    ) -> tuple[int, Mapping[str, str], bytearray]:
        session = await _sessions.get(_open_session)
        data = json.dumps(body, separators=(",", ":")).encode()
        # A redirect would turn the POST into a GET, and might carry the key elsewhere.
        async with session.post(
            self._url, data=data, headers=self._headers, allow_redirects=False
        ) as response:
            headers = response.headers
            chunks = response.content.iter_any()
            return response.status, headers, await read_body(chunks, headers, stack)

    def _completion(
        self, request: Request, headers: Mapping[str, str], data: Any, sent: Mapping[str, Any]
    ) -> Completion:
        choices = data.get("choices") if isinstance(data, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else {}
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            bill = replies.bill(data, self._price)  # an incomplete answer may be charged
            if isinstance(data, dict) and data.get("error"):  # some gateways send it with a 200
                raise self._refusal(replies.code(data["error"]), headers, data, sent, bill)
            raise UnavailableError(f"{self._where} gave no choices", bill=bill)
        end = str(choice.get("finish_reason")).lower()
        if end in ABORTED:
            bill = replies.bill(data, self._price)
            raise UnavailableError(f"{self._where} aborted its answer ({end})", bill=bill)
        text, finish = replies.text(message.get("content")), replies.FINISHES.get(end, "stop")
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
        self,
        status: int,
        headers: Mapping[str, str],
        data: Any,
        sent: Mapping[str, Any],
        bill: Bill | None = None,
    ) -> ProviderError:
        """Returns the error for a status, with the provider's words and without secrets."""
        complaint, code = replies.complaint(data)
        message = replies.answered(self._where, status, self._redact(complaint))
        if status == 429 and code in OUT_OF_CREDIT:
            return RejectedError(message, bill=bill)
        if refused := replies.refused_parameter(status, complaint, sent):
            return ParameterRefused(
                f"{message}; it refuses {refused!r}: {replies.REMEDIES[refused]}"
            )
        return replies.error_for_status(message, status, wait=retry_after(headers), bill=bill)


def _address(id: str, base_url: str) -> tuple[SplitResult, URL]:
    """Returns the parts of a base URL, and the URL of its chat completions."""
    try:
        parts = urlsplit(base_url)
        path = parts.path.rstrip("/") + "/chat/completions"
        url = URL(parts._replace(path=path, fragment="").geturl())
    except ValueError:
        parts, url = urlsplit(""), URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise DesignError(
            f"the base URL of {id} is invalid; give http://HOST/PATH or https://HOST/PATH"
        )
    return parts, url


# --- sessions ------------------------------------------------------------------------------------

_sessions = LoopResources[aiohttp.ClientSession]()
"""A session per event loop, which all models share: it holds no key."""


async def _open_session(stack: AsyncExitStack) -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # the engine limits the calls in flight
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=SECONDS_TO_CONNECT),
        auto_decompress=False,  # it has no limit on what a body unpacks to
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    return await stack.enter_async_context(session)
