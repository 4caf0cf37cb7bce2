"""What is known about a model without calling it: family, parameters, prices, limits."""

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Literal

from judge_gym.errors import DesignError
from judge_gym.models.prices import FREE, LONG_PROMPT, Prices, price_data

Kind = Literal["sim", "local", "hosted", "endpoint"]
Api = Literal["chat", "responses"]
Structured = Literal["native", "tool", "prompted"]

LOCAL = "local"
"""The provider of models that run on this machine."""
# For an estimate of time: a typical hosted model, until a run has measured its own.
SECONDS_BEFORE_FIRST_TOKEN = 0.8
SECONDS_PER_TOKEN = 0.015
SIMULATED_SECONDS = 0.0008
NOTICE = timedelta(days=60)
"""How long before its retirement users of a model are warned."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a provider allows; None means no limit."""

    scope: str = ""
    """What they apply to: a provider, an endpoint, or one model."""
    rpm: int | None = None
    burst: int | None = None
    """Requests at once after a pause; None allows all requests of a minute at once."""
    tpm: int | None = None
    input_tpm: int | None = None
    output_tpm: int | None = None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What is known about a model without calling it."""

    id: str
    provider: str
    name: str
    family: str
    simulated: bool
    endpoint: str = ""
    """Part of the ledger's key: the base URL, where the provider may have several, or the hash of
    a local model's file."""
    # Corrections of what follows in the registry's files leave the model's identity unchanged.
    own: bool = field(default=False, compare=False)
    """Whether it is behind an endpoint of the user."""
    api: Api = field(default="chat", compare=False)
    context: int | None = field(default=None, compare=False)
    """The context window in tokens; None where that is unknown."""
    dated: bool = field(default=False, compare=False)
    """Whether the name is a dated version, which does not change."""
    version: str = field(default="", compare=False)
    """The dated version that an alias pointed to when it was last checked, if known."""
    takes_temperature: bool = field(default=True, compare=False)
    takes_seed: bool = field(default=False, compare=False)
    structured: Structured = field(default="native", compare=False)
    """How a schema is enforced."""
    may_prompt: bool = field(default=False, compare=False)
    """Whether it may be left to the prompt where the endpoint refuses to enforce it."""
    searches: bool = field(default=False, compare=False)
    """Whether its provider searches the web for it."""
    deadline: float = field(default=300.0, compare=False)
    """Seconds after which a call fails."""
    limits: Limits = field(default_factory=Limits, compare=False)
    prices: Prices | None = field(default=None, compare=False)
    """From the registry's files; None to use the price data."""
    priced_as: str = field(default="", compare=False)
    """The provider's name in the price data."""
    first_seen: date | None = field(default=None, compare=False)
    """From the registry's files, or the date in its version; None without both."""
    retires: date | None = field(default=None, compare=False)
    """When its provider removes it; None where no date is known."""

    @property
    def kind(self) -> Kind:
        """The way in which it is called."""
        if self.simulated:
            return "sim"
        return "local" if self.provider == LOCAL else "endpoint" if self.own else "hosted"

    @property
    def unpinned(self) -> str:
        """Why its answers may change over time; empty for a fixed version."""
        if self.kind != "hosted" or self.dated:
            return ""
        pinned = f"; {self.provider}:{self.version} is dated" if self.version else ""
        return f"{self.id} is an alias that the provider may point to another version{pinned}"

    def retirement(self, today: date) -> str:
        """Returns a warning that it is retired, or will be in 60 days; empty before."""
        if self.retires is None or self.retires - today > NOTICE:
            return ""
        if self.retires <= today:
            return f"{self.id} was retired by its provider on {self.retires}; choose another model"
        days = (self.retires - today).days
        return f"{self.id} will be retired by its provider on {self.retires}, in {days} days"

    def price(
        self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, searches: int = 0
    ) -> float | None:
        """Returns a call's cost in US dollars; None where the price is unknown.

        Args:
            input_tokens: all input tokens, cached ones included.
            output_tokens: all output tokens, reasoning included.
            cached_tokens: input tokens from the provider's cache.
            searches: web searches that are charged.
        """
        prices = self.tariff(input_tokens)
        return prices.of(input_tokens, output_tokens, cached_tokens, searches) if prices else None

    def tariff(self, input_tokens: int = 0) -> Prices | None:
        """Returns the prices for a prompt of this length; None where they are unknown."""
        if self.simulated:
            return FREE
        if self.prices is not None or self.own:
            return self.prices
        if self.kind == "local":
            return FREE
        return price_data(self.priced_as, self.name, max(input_tokens, LONG_PROMPT))

    def seconds(self, input_tokens: int, output_tokens: int, concurrency: int) -> float:
        """Estimates the wall time that a call adds; simulated judges are limited by the CPU."""
        if self.simulated:
            return SIMULATED_SECONDS
        in_flight = min(concurrency, self.limits.concurrency or concurrency)
        unlimited = (SECONDS_BEFORE_FIRST_TOKEN + SECONDS_PER_TOKEN * output_tokens) / in_flight
        return max(unlimited, self.rate_seconds(input_tokens, output_tokens))

    def rate_seconds(self, input_tokens: int, output_tokens: int) -> float:
        """Returns the seconds for which the declared rates let one call pass; 0 without a rate."""
        limits = self.limits
        needed = (
            (1, limits.rpm),
            (input_tokens + output_tokens, limits.tpm),
            (input_tokens, limits.input_tpm),
            (output_tokens, limits.output_tpm),
        )
        return max(
            (60 * amount / per_minute for amount, per_minute in needed if per_minute), default=0.0
        )


def cannot_search(card: ModelCard, choices: list[str]) -> DesignError:
    """Returns the error for a model that cannot search the web; choices are those that can."""
    why = {
        "sim": "it is a simulated judge",
        "local": "it runs on this machine",
        "endpoint": "your own servers are called without tools",
        "hosted": "its registry entry does not set web_search = true",
    }[card.kind]
    return DesignError(
        f"{card.id} cannot search the web: {why}; choose {', '.join(choices)}", choices=choices
    )
