"""What OpenAI-compatible servers say, in each of their shapes: texts, counts, complaints, waits."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp


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


def count(told: Any, estimate: int) -> int:
    """Tokens as they were told, or else as they are estimated."""
    return told if isinstance(told, int) and told >= 0 else estimate


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


def quota(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that tell how much may still be asked, with names in lower case."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in lowered.items() if name.startswith("x-ratelimit-")}
