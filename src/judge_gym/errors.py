"""Every exception. A message states what is wrong, the value and the choices."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple


class Remedy(NamedTuple):
    """A call that helps after an error; each interface words it as its users make calls."""

    verb: str
    """Its name in the table of verbs: `runs.resume`."""
    arguments: Mapping[str, Any] = {}

    def __str__(self) -> str:
        """Returns the call as it is made in Python."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"lab.{self.verb}({arguments})"


class JudgeGymError(Exception):
    """An error that users can act on; interfaces show it without a traceback."""

    status = 500
    """The HTTP status of the response."""
    retry = False
    """Whether the same request may succeed later."""

    def __init__(
        self, message: str, *, choices: Iterable[str] = (), remedy: Remedy | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.choices = tuple(choices)
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; call {self.remedy}" if self.remedy else self.message

    @property
    def kind(self) -> str:
        """The name of the class in one lowercase word, for machine-readable responses."""
        return type(self).__name__.removesuffix("Error").lower()


class DesignError(JudgeGymError):
    """A study, a design or an argument that cannot be run; raised before any money is spent."""

    status = 422

    def __init__(
        self,
        message: str,
        *,
        choices: Iterable[str] = (),
        remedy: Remedy | None = None,
        path: tuple[str | int, ...] = (),
    ) -> None:
        super().__init__(message, choices=choices, remedy=remedy)
        self.path = path
        """The keys that lead to the error in the study file; its reader turns them into a line."""


class MissingToolError(DesignError):
    """A suite needs a program that is not installed; the message says what to install."""


class MissingFileError(DesignError):
    """A file or folder that a study names does not exist."""


class NotFoundError(JudgeGymError):
    """Something was named that does not exist."""

    status = 404


class ConflictError(JudgeGymError):
    """The request conflicts with the current state."""

    status = 409


class TokenError(JudgeGymError):
    """A request without a token, or with one that is unknown or revoked."""

    status = 401


class ScopeError(JudgeGymError):
    """A request that its token does not allow, or that may come from another site."""

    status = 403


class TooLargeError(JudgeGymError):
    """A request longer than the server accepts."""

    status = 413


class NotReadyError(JudgeGymError):
    """A server that answers cannot serve or execute at the moment."""

    status = 503
    retry = True


class BusyError(JudgeGymError):
    """More requests than the server accepts from one client."""

    status = 429
    retry = True

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait
        """The seconds to wait; None if unknown."""


class StoreError(JudgeGymError):
    """The database cannot be opened, read or written."""


class ReadOnlyDatabase(StoreError):
    """The database can be read, and not written."""

    status = 409


class DatabaseGone(StoreError):
    """A database server cannot be reached at the moment."""

    status = 503
    retry = True


class DatabaseFull(StoreError):
    """The database, or the disk that it is on, has no room."""

    status = 507
    retry = True


class BudgetError(JudgeGymError):
    """A budget is reached; all results so far are kept."""

    status = 402


class Bill(NamedTuple):
    """The tokens and the price of a call."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """The number of input tokens from the provider's cache."""
    usd: float | None
    """None if the price is unknown."""


class ProviderError(JudgeGymError):
    """A call without a completion."""

    status = 502
    retry = True

    def __init__(self, message: str, *, bill: Bill | None = None) -> None:
        super().__init__(message)
        self.bill = bill
        """What the call cost nevertheless; None if the provider does not say."""


class RateLimitError(ProviderError):
    """The provider limits the rate; waiting does not count as an attempt."""

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait
        """The seconds that the provider asks for; None if it does not say."""


class UnavailableError(ProviderError):
    """No usable response: a timeout, a lost connection, a server error."""

    def __init__(
        self, message: str, *, wait: float | None = None, bill: Bill | None = None
    ) -> None:
        super().__init__(message, bill=bill)
        self.wait = wait
        """The seconds that the server asks for, None if it does not say."""


class RejectedError(ProviderError):
    """A request that the provider will always reject, because of its key, model or length."""

    retry = False


class ParameterRefused(RejectedError):
    """A parameter that the endpoint does not take: no request of the same design is answered."""


class NotReachedError(UnavailableError):
    """No connection: nothing was sent, and nothing is charged."""


class SourceError(JudgeGymError):
    """A source of evidence failed; items that it returned before are kept."""

    status = 502
    retry = True


def unknown(what: str, value: object, choices: Iterable[str], where: str = "") -> str:
    """Returns the message for a value that is not among the choices.

    >>> unknown("level", "singel", ["single", "subset"], "verdict.method")
    "unknown level 'singel' for verdict.method; choose 'single' or 'subset'"
    """
    *most, last = [repr(str(choice)) for choice in choices] or [""]
    listed = f"{', '.join(most)} or {last}" if most else last
    scope = f" for {where}" if where else ""
    return f"unknown {what} {value!r}{scope}" + (f"; choose {listed}" if listed else "")


def nearest(value: str, choices: Iterable[str], count: int = 5) -> list[str]:
    """Returns the choices most similar to a value, the most similar first; some always.

    >>> nearest("001-slig", ["002-types/001-parse", "001-basics/001-slug"], 1)
    ['001-basics/001-slug']
    """
    from difflib import SequenceMatcher

    def similarity(choice: str) -> float:
        parts = [choice, *choice.split("/")]
        return max(SequenceMatcher(None, part.lower(), value.lower()).ratio() for part in parts)

    return sorted(choices, key=similarity, reverse=True)[:count]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds that a server asks to wait: milliseconds, seconds, or a date."""
    from email.utils import parsedate_to_datetime

    for name, unit in (("retry-after-ms", 1000.0), ("Retry-After", 1.0)):
        try:
            seconds = float(headers.get(name, "").strip()) / unit
        except ValueError:
            continue
        if seconds >= 0:  # also without end; not a number is neither
            return seconds
    try:
        until = parsedate_to_datetime(headers.get("Retry-After", ""))
    except (ValueError, OverflowError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
