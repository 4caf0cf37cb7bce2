"""What pydantic-ai and the SDKs raise, as errors that say whether asking again can help."""

from collections.abc import Mapping
from typing import Any

from judge_gym.errors import Bill, ProviderError, RateLimitError, RejectedError, UnavailableError
from judge_gym.models.scrubbing import Scrubber

PASSING = (408, 409, 425)
"""Statuses below 500 that say nothing against the request."""


def translated(
    id: str, fault: Exception, scrub: Scrubber, bill: Bill | None = None
) -> ProviderError:
    """The error that stands for whatever a call raised, with what it cost all the same."""
    from pydantic_ai import exceptions as theirs

    if isinstance(fault, theirs.ModelHTTPError):
        said = scrub(complaint(fault.body))
        message = f"{id} answered {fault.status_code}" + (f": {said}" if said else "")
    else:
        message = f"{id} gave no answer ({scrub(str(fault)) or type(fault).__name__})"
    match fault:
        case theirs.ModelRateLimitError():
            return RateLimitError(message, wait=fault.retry_after)
        case theirs.ModelQuotaExceededError() | theirs.ModelRequestRejectedError():
            return RejectedError(message)
        case theirs.ModelUnavailableError() | theirs.ModelServerError():
            return UnavailableError(message, wait=fault.retry_after, bill=bill)
        case theirs.ModelHTTPError():
            return _by_status(message, fault.status_code, fault.retry_after)
        case theirs.ModelRequestTimeout() | theirs.ModelTimeoutError():
            return UnavailableError(f"{id} did not answer in time")
        case theirs.UserError():  # such as a schema that the provider cannot take
            return RejectedError(message)
    return UnavailableError(message, bill=bill)  # no connection, or an unreadable answer


def complaint(body: Any) -> str:
    """The message in the body of an error; every provider has its own shape."""
    if isinstance(body, Mapping):
        error = body.get("error", body)
        if isinstance(error, Mapping):
            return str(error.get("message") or error.get("detail") or "")
        return str(error)
    return str(body or "")


def _by_status(message: str, status: int, wait: float | None) -> ProviderError:
    if status == 429:
        return RateLimitError(message, wait=wait)
    if status in PASSING or status >= 500:
        return UnavailableError(message, wait=wait)
    return RejectedError(message)
