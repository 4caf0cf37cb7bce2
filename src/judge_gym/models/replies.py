"""What OpenAI-compatible servers say, in each of their shapes: texts, counts, complaints, waits."""

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp

from judge_gym.errors import Bill

Price = Callable[[int, int, int], float | None]
"""What tokens read, written, and read from the cache cost in US dollars."""


def parsed(headers: Mapping[str, str], body: bytes) -> Any:
    """The JSON of an answer; None where it is something else."""
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def text(content: Any) -> str:
    """A message's content, which some servers give in parts."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def arguments(message: Mapping[str, Any]) -> str:
    """What the tool was called with; empty where it was not."""
    try:
        given = message["tool_calls"][0]["function"]["arguments"]
    except (LookupError, TypeError):
        return ""
    return given if isinstance(given, str) else json.dumps(given)


def usage(data: Any) -> tuple[int | None, int | None, int]:
    """Tokens read, written, and read from the cache; None where that is not told."""
    told = data.get("usage") if isinstance(data, dict) else None
    if not isinstance(told, dict):
        return None, None, 0
    details = told.get("prompt_tokens_details") or told.get("input_tokens_details")
    cached = _count(details, "cached_tokens") or 0
    read = _count(told, "prompt_tokens", "input_tokens")  # the responses API has names of its own
    return read, _count(told, "completion_tokens", "output_tokens"), min(cached, read or 0)


def _count(told: Any, *names: str) -> int | None:
    """The first count under one of the names; servers write anything there."""
    values = [told.get(name) for name in names] if isinstance(told, dict) else []
    return next((value for value in values if isinstance(value, int) and value >= 0), None)


def bill(data: Any, price: Price | None) -> Bill | None:
    """What a reply cost that holds no answer; None where it does not say."""
    read, wrote, cached = usage(data)
    if read is None and wrote is None:
        return None
    tokens = (read or 0, wrote or 0, cached)
    return Bill(*tokens, price(*tokens) if price else None)


def code(error: Any) -> int:
    """The status in an error object that came with a 200; a fault of the gateway if it has none."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def complaint(data: Any) -> tuple[str, object]:
    """Message and code of an error; every server has its own shape."""
    error = data.get("error", data) if isinstance(data, dict) else None
    if isinstance(error, dict):
        said = error.get("message") or error.get("detail") or ""
        return " ".join(str(said).split()), error.get("code")
    return " ".join(str(error or "").split()), None


def lost(fault: Exception) -> str:
    """How a call ended without an answer, in words that cannot hold a secret."""
    if isinstance(fault, aiohttp.ClientConnectorError):
        return f"cannot be reached: {fault.strerror or 'no connection'}"
    if isinstance(fault, aiohttp.ServerTimeoutError):
        return "cannot be reached: no connection in time"
    if isinstance(fault, aiohttp.ClientPayloadError):
        return "sent half an answer"
    return f"lost the connection ({type(fault).__name__})"


def wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that a provider asks to wait: milliseconds, seconds, or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("Retry-After", 1.0)):
        told = headers.get(name, "").strip()
        try:
            seconds = float(told) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        until = parsedate_to_datetime(headers.get("Retry-After", ""))
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
