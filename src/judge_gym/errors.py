"""Every exception. A message says what, which value and the choices, in the same words always."""

from collections.abc import Iterable
from typing import NamedTuple


class JudgeGymError(Exception):
    """A fault that the user can read and act on; faces show it without a traceback."""

    status = 500
    """The HTTP status that a web face answers with."""
    retry = False
    """Whether the same request may succeed later."""

    def __init__(self, message: str, *, choices: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.choices = tuple(choices)

    @property
    def kind(self) -> str:
        """The class in one lowercase word, for machine-readable answers."""
        return type(self).__name__.removesuffix("Error").lower()


class DesignError(JudgeGymError):
    """A study, a design or an argument that cannot be run; raised before any money is spent."""

    status = 422

    def __init__(
        self, message: str, *, choices: Iterable[str] = (), path: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(message, choices=choices)
        self.path = path
        """Where in the study file the fault is; the reader of the file turns it into a line."""


class MissingToolError(DesignError):
    """A suite that needs a program which is not installed; the message names what to install."""


class NotFoundError(JudgeGymError):
    """Something named that is not there."""

    status = 404


class ConflictError(JudgeGymError):
    """Something that is there stands in the way."""

    status = 409


class TokenError(JudgeGymError):
    """A request without a token, or with one that is unknown or revoked."""

    status = 401


class ScopeError(JudgeGymError):
    """A request that its token does not allow, or that seems to come from another site."""

    status = 403


class TooLargeError(JudgeGymError):
    """A request longer than the server takes."""

    status = 413


class BusyError(JudgeGymError):
    """More requests than the server takes from one client."""

    status = 429
    retry = True

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait
        """Seconds to wait; None where nobody says."""


class StoreError(JudgeGymError):
    """The database cannot be opened, read or written."""


class DatabaseGone(StoreError):
    """A database server cannot be reached for now."""

    status = 503
    retry = True


class BudgetError(JudgeGymError):
    """A budget is reached; everything so far is kept."""

    status = 402


class Bill(NamedTuple):
    """What a call took."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """How many of the input came from the provider's cache."""
    usd: float | None
    """None where the price is unknown."""


class ProviderError(JudgeGymError):
    """A call that brought no completion."""

    status = 502
    retry = True

    def __init__(self, message: str, *, bill: Bill | None = None) -> None:
        super().__init__(message)
        self.bill = bill
        """What it cost all the same; None where the provider does not say."""


class RateLimitError(ProviderError):
    """The provider asks for patience; waiting costs no attempt."""

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait
        """Seconds that the provider asks for; None where it does not say."""


class UnavailableError(ProviderError):
    """No answer, or none that can be read: a timeout, a lost connection, a server's fault."""

    def __init__(
        self, message: str, *, wait: float | None = None, bill: Bill | None = None
    ) -> None:
        super().__init__(message, bill=bill)
        self.wait = wait
        """Seconds that the server asks for, such as while it is overloaded; None if it does not."""


class RejectedError(ProviderError):
    """A request that will not be answered however often it is made: a key, a name, a length."""

    retry = False


class SourceError(JudgeGymError):
    """A source of evidence did not give what was asked; what came before is kept."""

    status = 502
    retry = True


def unknown(what: str, value: object, choices: Iterable[str], where: str = "") -> str:
    """The sentence for a value that is not among the choices.

    >>> unknown("level", "singel", ["single", "subset"], "verdict.method")
    "unknown level 'singel' for verdict.method; choose 'single' or 'subset'"
    """
    *most, last = [repr(str(choice)) for choice in choices] or [""]
    listed = f"{', '.join(most)} or {last}" if most else last
    place = f" for {where}" if where else ""
    return f"unknown {what} {value!r}{place}" + (f"; choose {listed}" if listed else "")
