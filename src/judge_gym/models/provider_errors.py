"""Translates what SDKs raise and servers answer into errors that say whether a retry can help."""

from judge_gym.errors import Bill, ProviderError, RateLimitError, RejectedError, UnavailableError
from judge_gym.models.redaction import Redactor
from judge_gym.models.wire_replies import complaint

TEMPORARY = (408, 409, 425)
"""Statuses below 500 after which the same request may succeed."""


def translated(
    id: str, error: Exception, redact: Redactor, bill: Bill | None = None
) -> ProviderError:
    """Returns our error for whatever a call raised, with what the call cost."""
    from pydantic_ai import exceptions as theirs

    if isinstance(error, theirs.ModelHTTPError):
        message = answered(id, error.status_code, redact(complaint(error.body)[0]))
    else:
        message = f"{id} gave no answer ({redact(str(error)) or type(error).__name__})"
    match error:
        case theirs.ModelRateLimitError():
            return RateLimitError(message, wait=error.retry_after)
        case theirs.ModelQuotaExceededError() | theirs.ModelRequestRejectedError():
            return RejectedError(message)
        case theirs.ModelUnavailableError() | theirs.ModelServerError():
            return UnavailableError(message, wait=error.retry_after, bill=bill)
        case theirs.ModelHTTPError():
            return error_for_status(message, error.status_code, wait=error.retry_after)
        case theirs.ModelRequestTimeout() | theirs.ModelTimeoutError():
            return UnavailableError(f"{id} did not answer in time")
        case theirs.UserError():  # such as a schema that the provider cannot take
            return RejectedError(message)
    return UnavailableError(message, bill=bill)  # no connection, or an unreadable answer


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
