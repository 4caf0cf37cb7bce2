"""What pydantic-ai and the SDKs raise, as errors that say whether asking again can help."""

from collections.abc import Mapping
from typing import Any

from judge_gym.errors import ProviderError, RateLimitError, RejectedError, UnavailableError

LONGEST_MESSAGE = 300
"""Characters of a provider's complaint that are kept."""
PASSING = (408, 409, 425)
"""Statuses below 500 that say nothing against the request."""


class Scrubber:
    """Takes a key out of texts."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, text: str) -> str:
        """The text on one line, short, and without the key."""
        line = " ".join(text.replace(self._key, "[key]").split())
        return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 3] + "..."

    def __repr__(self) -> str:
        return "Scrubber()"


def translated(id: str, fault: Exception, scrub: Scrubber) -> ProviderError:
    """The error that stands for whatever a call raised."""
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
            return UnavailableError(message)
        case theirs.ModelHTTPError():
            return _by_status(message, fault.status_code, fault.retry_after)
        case theirs.ModelRequestTimeout() | theirs.ModelTimeoutError():
            return UnavailableError(f"{id} did not answer in time")
        case theirs.UserError():  # such as a schema that the provider cannot take
            return RejectedError(message)
    return UnavailableError(message)  # no connection, or an answer that cannot be read


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
        return UnavailableError(message)
    return RejectedError(message)
