"""Reads the replies of servers, in each of their shapes, and turns failures into errors.

An error says whether a retry can help.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from judge_gym.errors import (
    Bill,
    NotReachedError,
    ProviderError,
    RateLimitError,
    RejectedError,
    UnavailableError,
    retry_after,
)
from judge_gym.models.redaction import Redactor
from judge_gym.records import Finish

Price = Callable[[int, int, int], float | None]
"""The cost in US dollars of input, output and cached input tokens."""
MOST_TOKENS = 1_000_000_000
"""Tokens of one call; a server that reports more reports nothing."""
MAX_COMPLAINT = 10_000
"""Characters of an error message that are read."""
CUT_OFF = ("length", "max_tokens", "max_output_tokens", "max_length", "model_length", "incomplete")
REFUSED = ("content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content")
FINISHES: dict[str | None, Finish] = {
    **dict.fromkeys(CUT_OFF, "length"),
    **dict.fromkeys(REFUSED, "refusal"),
}
"""Finish reasons other than a normal end, in lower case; gateways pass on those of any provider."""
REFUSES_PARAMETER = (400, 404, 415, 422, 500, 501)
"""Statuses with which servers refuse a parameter; llama.cpp answers 500."""
PARAMETERS = {
    "response_format": r"response_format|json.?schema|grammar|guided|structured.output",
    "tools": r"tool_choice|\btools\b",
    "seed": r"\bseed\b",
    "temperature": r"\btemperature\b",
}
"""Parameters that a server may not take, and how complaints name them."""
NOT_TAKEN = re.compile(
    r"not (yet )?(be )?(supported|allowed|permitted|implemented|accepted|recognized|valid)|valid|"
    r"unsupported|unknown|unexpected|unrecognized|does(n't| not) support|extra inputs|parse",
    re.IGNORECASE,
)
REMEDIES = {
    "response_format": 'set structured = "prompted" in its entry of judge-gym.models.toml, or '
    "design verdict.output: suffix",
    "tools": 'set structured = "prompted" in its entry of judge-gym.models.toml',
    "seed": "set seed = false in its entry of judge-gym.models.toml",
    "temperature": "set temperature = false in its entry of judge-gym.models.toml, or leave "
    "judge.temperature out of the design",
}
TEMPORARY = (408, 409, 425)
"""Statuses below 500 after which the same request may succeed."""


# --- answers --------------------------------------------------------------------------------------


def parsed(headers: Mapping[str, str], body: bytearray) -> Any:
    """Returns the JSON of an answer; None where it is not JSON."""
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def text(content: Any) -> str:
    """Returns a message's content, which some servers give in parts."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def arguments(message: Mapping[str, Any]) -> str:
    """Returns the arguments of the tool call; empty without one."""
    try:
        call_arguments = message["tool_calls"][0]["function"]["arguments"]
    except (LookupError, TypeError):
        return ""
    return call_arguments if isinstance(call_arguments, str) else json.dumps(call_arguments)


def usage(data: Any) -> tuple[int | None, int | None, int]:
    """Returns input, output and cached input tokens; None where they are not reported."""
    reported = data.get("usage") if isinstance(data, dict) else None
    if not isinstance(reported, dict):
        return None, None, 0
    details = reported.get("prompt_tokens_details") or reported.get("input_tokens_details")
    cached = _count(details, "cached_tokens") or 0
    read = _count(
        reported, "prompt_tokens", "input_tokens"
    )  # the responses API has names of its own
    return read, _count(reported, "completion_tokens", "output_tokens"), min(cached, read or 0)


def _count(reported: Any, *names: str) -> int | None:
    """Returns the first valid count under one of the names; servers write anything there."""
    for name in names if isinstance(reported, dict) else ():
        if plausible_count(value := reported.get(name)):
            return int(value)
    return None


def plausible_count(value: object) -> bool:
    """Returns whether a reported number can be a number of tokens."""
    return type(value) is int and 0 <= value <= MOST_TOKENS


def bill(data: Any, price: Price | None) -> Bill | None:
    """Returns the cost of a reply without an answer; None where it reports no usage."""
    read, wrote, cached = usage(data)
    if read is None and wrote is None:
        return None
    tokens = (read or 0, wrote or 0, cached)
    return Bill(*tokens, price(*tokens) if price else None)


def code(error: Any) -> int:
    """Returns the status in an error object that came with a 200; 502 without one."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def complaint(data: Any) -> tuple[str, object]:
    """Returns message and code of an error; every server has its own shape."""
    error = data.get("error", data) if isinstance(data, Mapping) else data
    if isinstance(error, Mapping):
        message = error.get("message") or error.get("detail") or ""
        return " ".join(str(message)[:MAX_COMPLAINT].split()), error.get("code")
    return " ".join(str(error or "")[:MAX_COMPLAINT].split()), None


def lost(error: Exception) -> str:
    """Describes a call that ended without an answer, in words that cannot contain a secret."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot be reached: {error.strerror or 'no connection'}"
    if isinstance(error, aiohttp.ServerTimeoutError):
        return "cannot be reached: no connection in time"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "sent half an answer"
    return f"lost the connection ({type(error).__name__})"


# --- errors ---------------------------------------------------------------------------------------


def translated(
    id: str,
    error: Exception,
    redact: Redactor,
    headers: Mapping[str, str],
    bill: Bill | None = None,
) -> ProviderError:
    """Returns our error for whatever a call raised, with what the call cost."""
    from pydantic_ai import exceptions as theirs

    wait = retry_after(headers)  # pydantic-ai does not read one without end
    if wait is None:
        wait = getattr(error, "retry_after", None)
    if isinstance(error, theirs.ModelHTTPError):
        message = answered(id, error.status_code, redact(complaint(error.body)[0]))
    else:
        message = f"{id} gave no answer ({redact(str(error)) or type(error).__name__})"
    match error:
        case theirs.ModelRateLimitError():
            return RateLimitError(message, wait=wait)
        case theirs.ModelQuotaExceededError() | theirs.ModelRequestRejectedError():
            return RejectedError(message)
        case theirs.ModelUnavailableError() | theirs.ModelServerError():
            return UnavailableError(message, wait=wait, bill=bill)
        case theirs.ModelHTTPError():
            return error_for_status(message, error.status_code, wait=wait)
        case theirs.ModelRequestTimeout() | theirs.ModelTimeoutError():
            return UnavailableError(f"{id} did not answer in time")
        case theirs.UserError():  # such as a schema that the provider cannot take
            return RejectedError(message)
    if isinstance(error, theirs.ModelAPIError) and _never_sent(error):
        return NotReachedError(message)
    return UnavailableError(message, bill=bill)  # a lost connection, or an unreadable answer


def _never_sent(error: BaseException | None) -> bool:
    """Returns whether an error says that no connection was made."""
    from httpx2 import ConnectError, ConnectTimeout

    while error is not None:
        if isinstance(error, ConnectError | ConnectTimeout):
            return True
        error = error.__cause__ or error.__context__
    return False


def refused_parameter(status: int, complaint: str, sent: Collection[str]) -> str | None:
    """Returns the parameter among those sent that a server's complaint refuses, or None.

    >>> refused_parameter(500, "response_format: unsupported type", {"messages", "response_format"})
    'response_format'
    """
    if status not in REFUSES_PARAMETER or not NOT_TAKEN.search(complaint):
        return None
    named = (name for name in PARAMETERS if name in sent)
    return next(
        (name for name in named if re.search(PARAMETERS[name], complaint, re.IGNORECASE)), None
    )


def answered(who: str, status: int, complaint: str) -> str:
    """Returns the message about a status other than success."""
    return f"{who} answered {status}" + (f": {complaint}" if complaint else "")


def error_for_status(
    message: str, status: int, *, wait: float | None = None, bill: Bill | None = None
) -> ProviderError:
    """Returns the error for an HTTP status."""
    if status == 429:
        return RateLimitError(message, wait=wait)
    if status in TEMPORARY or status >= 500:
        return UnavailableError(message, wait=wait, bill=bill)
    return RejectedError(message, bill=bill)
