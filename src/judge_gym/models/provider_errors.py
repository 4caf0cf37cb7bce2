"""Translates what SDKs raise and servers answer into errors that say whether a retry can help."""

import re
from collections.abc import Collection, Mapping

from judge_gym.errors import (
    Bill,
    NotReachedError,
    ProviderError,
    RateLimitError,
    RejectedError,
    UnavailableError,
)
from judge_gym.models.redaction import Redactor
from judge_gym.models.wire_replies import complaint
from judge_gym.models.wire_replies import wait as seconds_to_wait

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


def translated(
    id: str,
    error: Exception,
    redact: Redactor,
    headers: Mapping[str, str],
    bill: Bill | None = None,
) -> ProviderError:
    """Returns our error for whatever a call raised, with what the call cost."""
    from pydantic_ai import exceptions as theirs

    wait = seconds_to_wait(headers)  # pydantic-ai does not read one without end
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
