"""Serves the simulated judges in the OpenAI wire format, with the faults of real servers.

An answer is a function of the model, the messages, the parameters and the seed. `GET /stats` counts
outcomes and distinct requests, so that a test can prove that nothing was paid for twice.
"""

import asyncio
import hashlib
import hmac
import json
import math
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler

from judge_gym.errors import ConflictError, ProviderError
from judge_gym.models.simulated import SIMULATED, SimulatedModel
from judge_gym.models.simulated.faults import Allowance, Faults
from judge_gym.models.simulated.openai_format import Refusal, read_request, write_completion
from judge_gym.records import Completion

T = TypeVar("T")

LONGEST_BODY = 64 * 1024**2
STALL = 24 * 3600.0
"""Seconds, longer than any client waits."""
GRACE = 0.1
"""Seconds for requests in flight when the server stops."""
FAULT_WAIT = 0.1
"""Seconds that a simulated 429 or overload asks to wait."""
OVERLOADED = ("503", "529")
PAGE = "<html><head><title>Bad gateway</title></head><body>Please try again.</body></html>"


@dataclass
class SimulatedServer:
    """The simulated judges behind an OpenAI-compatible endpoint."""

    latency: float = 0.0
    """Seconds before an answer."""
    jitter: float = 0.0
    """At most so many seconds more, uniformly drawn."""
    rpm: float | None = None
    """Requests per minute; None for no limit."""
    tpm: float | None = None
    """Tokens per minute; None for no limit."""
    key: str = field(default="", repr=False)
    """The bearer token that clients must send; empty for none."""
    faults: Faults = field(default_factory=Faults)
    seed: int = 0
    """Seeds the faults and the jitter."""

    def __post_init__(self) -> None:
        self._requests, self._tokens = Allowance(self.rpm), Allowance(self.tpm)
        self._outcomes: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()

    def app(self) -> web.Application:
        """Returns the application with its routes."""
        app = web.Application(client_max_size=LONGEST_BODY, middlewares=[_errors])
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/stats", self.stats)
        return app

    async def stats(self, request: web.Request) -> web.Response:
        """Answers with the outcomes of requests, and the number of distinct bodies.

        `answered` bodies got a completion; `repeated` counts the completions beyond the first of a
        body: 0 for a client that keeps what it paid for.
        """
        answers = self._answered.total()
        bodies = {
            "distinct": len(self._asked),
            "answered": len(self._answered),
            "repeated": answers - len(self._answered),
        }
        outcomes = dict(sorted(self._outcomes.items()))
        return web.json_response(
            {"requests": self._asked.total(), "outcomes": outcomes, "bodies": bodies}
        )

    async def models(self, request: web.Request) -> web.Response:
        """Answers with the list of presets."""
        self._authorize(request)
        listed = [
            {"id": id, "object": "model", "created": 0, "owned_by": "judge-gym"} for id in SIMULATED
        ]
        return web.json_response({"object": "list", "data": listed})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answers with a chat completion or a fault, and counts the outcome."""
        body = await request.read()
        name = hashlib.sha256(body).hexdigest()
        self._asked[name] += 1
        outcome = "abandoned"  # unless an answer is sent: then the client has left
        try:
            self._authorize(request)
            chat_request = read_request(body)
            rng = random.Random(f"{self.seed}/{name}/{self._asked[name]}")
            fault = self.faults.draw(rng, self._asked[name])
            outcome = fault or outcome
            completion = await SimulatedModel(chat_request.request.model).complete(
                chat_request.request
            )
            headers = self._charge(completion)
            await asyncio.sleep(self.latency + self.jitter * rng.random())
            answer = write_completion(completion, name, chat_request.tool)
            if fault is not None:
                return await _answer_with_fault(fault, request, answer)
            outcome = "answered"
            self._answered[name] += 1
            return web.json_response(answer, headers=headers)
        except ProviderError as error:  # a profile with `fail`, or a prompt that no judge can read
            status, kind = (500, "server_error") if error.retry else (400, "invalid_request_error")
            outcome = str(status)
            raise Refusal(status, error.message, kind=kind) from error
        except Refusal as refusal:
            outcome = str(refusal.status)
            raise
        finally:
            self._outcomes[outcome] += 1

    def _authorize(self, request: web.Request) -> None:
        header = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if self.key and not hmac.compare_digest(header, f"Bearer {self.key}".encode()):
            raise Refusal(401, "the API key is missing or wrong", code="invalid_api_key")

    def _charge(self, completion: Completion) -> dict[str, str]:
        """Counts a request and its tokens; returns the rate-limit headers."""
        wait = max(self._requests.wait(), self._tokens.wait())
        if wait <= 0:
            self._requests.take(1)
            self._tokens.take(completion.input_tokens + completion.output_tokens)
        headers = self._requests.headers("requests") | self._tokens.headers("tokens")
        if wait > 0:
            raise _too_many(f"the limit is reached; try again in {wait:.3f} s", wait, headers)
        return headers


# --- faults --------------------------------------------------------------------------------------


def _too_many(message: str, wait: float, headers: Mapping[str, str]) -> Refusal:
    return Refusal(
        429,
        message,
        kind="rate_limit_error",
        code="rate_limit_exceeded",
        headers={**headers, **_retry_after(wait)},
    )


def _retry_after(wait: float) -> dict[str, str]:
    """Returns the headers that ask to wait, in seconds and in milliseconds."""
    return {"Retry-After": f"{math.ceil(wait)}", "retry-after-ms": f"{math.ceil(1000 * wait)}"}


async def _answer_with_fault(
    fault: str, request: web.Request, answer: dict[str, Any]
) -> web.StreamResponse:
    """Answers with a fault."""
    transport = request.transport
    match fault:
        case "reset":
            if transport is not None:
                # Without lingering, closing a socket resets its connection.
                raw = transport.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                transport.abort()
            return web.Response()
        case "stall":
            await asyncio.sleep(STALL)
            return web.Response()
        case "truncated":
            body = json.dumps(answer).encode()
            half = web.StreamResponse(headers={"Content-Type": "application/json"})
            half.content_length = len(body)
            await half.prepare(request)
            await half.write(body[: len(body) // 2])
            if transport is not None:
                transport.close()
            return half
        case "html":
            return web.Response(text=PAGE, content_type="text/html")
        case "empty":
            return web.json_response({**answer, "choices": []})
        case "429":
            raise _too_many("too many requests (simulated)", FAULT_WAIT, {})
        case _:
            kind = "server_error" if fault.startswith("5") else "invalid_request_error"
            headers = _retry_after(FAULT_WAIT) if fault in OVERLOADED else {}
            raise Refusal(int(fault), f"a fault {fault} (simulated)", kind=kind, headers=headers)


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers every error with an error object."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        refusal = Refusal(error.status, f"{request.method} {request.path}: {error.reason}")
    except Refusal as error:
        refusal = error
    return web.json_response(
        {"error": refusal.error}, status=refusal.status, headers=refusal.headers
    )


# --- serving -------------------------------------------------------------------------------------


@contextmanager
def serve(server: SimulatedServer, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serves in a thread until the context ends; yields the base URL, which ends in `/v1`.

    Args:
        server: the server.
        host: the address to listen on.
        port: the port; 0 for a free one.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="simulated judges", daemon=True)
    thread.start()

    def do(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    runner = web.AppRunner(
        server.app(), handler_cancellation=True, access_log=None, shutdown_timeout=GRACE
    )
    try:
        do(runner.setup())
        try:
            do(web.TCPSite(runner, host, port).start())
        except OSError as error:
            reason = error.strerror or error
            raise ConflictError(f"cannot listen on {host}, port {port}: {reason}") from error
        named = f"[{host}]" if ":" in host else host
        yield f"http://{named}:{runner.addresses[0][1]}/v1"
    finally:
        do(runner.cleanup())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
