"""What is known of a model without calling it: who made it, what it takes, costs and allows."""

from dataclasses import dataclass, field
from datetime import date
from functools import cache, lru_cache
from typing import Any, Literal

from judge_gym.errors import DesignError

Kind = Literal["sim", "hosted", "wire"]
Api = Literal["chat", "responses"]
Structured = Literal["native", "tool", "prompted"]

# What the price data calls a provider, where that is not our name for it.
PRICED_AS = {"xai": "x-ai"}
LONG_PROMPT = 32_000
"""Tokens; longer prompts may have prices of their own."""
# For an estimate of time: a typical hosted model, until a run has measured its own.
SECONDS_BEFORE_FIRST_TOKEN = 0.8
SECONDS_PER_TOKEN = 0.015
SIMULATED_SECONDS = 0.0008
SEARCHING = ["openai:NAME", "anthropic:NAME", "google:NAME", "xai:NAME", "openrouter:NAME"]
SEARCHING += ["sim:coder-NAME"]
"""Whose models can search the web."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a provider allows; None is no limit."""

    scope: str = ""
    """Who shares them: a provider, an endpoint, or one model."""
    rpm: int | None = None
    burst: int | None = None
    """Requests at once after a pause; None where the requests of a minute may come at once."""
    tpm: int | None = None
    input_tpm: int | None = None
    output_tpm: int | None = None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of an input token that the provider had in its cache; None where it costs the same."""
    search: float | None = None
    """Of a thousand web searches; None where that is unknown."""

    def of(
        self, input_tokens: int, output_tokens: int, cached_tokens: int, searches: int = 0
    ) -> float | None:
        """What a call costs in US dollars; None where it searched at an unknown price."""
        if searches and self.search is None:
            return None
        cached = self.input if self.cached is None else self.cached
        fresh = input_tokens - cached_tokens
        whole = fresh * self.input + cached_tokens * cached + output_tokens * self.output
        return whole / 1e6 + searches * (self.search or 0.0) / 1e3


FREE = Prices(0.0, 0.0, search=0.0)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What is known of a model without calling it."""

    id: str
    provider: str
    name: str
    family: str
    simulated: bool
    endpoint: str = ""
    """The base URL, where the provider may have several; part of the ledger's key."""
    # What follows may be mended in the registry's files; the model stays the same one.
    own: bool = field(default=False, compare=False)
    """Whether it is behind an endpoint that the user named."""
    api: Api = field(default="chat", compare=False)
    context: int | None = field(default=None, compare=False)
    """Tokens that it can read; None where that is unknown."""
    dated: bool = field(default=False, compare=False)
    """Whether the name is a version that will not change."""
    version: str = field(default="", compare=False)
    """The dated version that an alias stood for when it was last looked up, if that is known."""
    takes_temperature: bool = field(default=True, compare=False)
    takes_seed: bool = field(default=False, compare=False)
    structured: Structured = field(default="native", compare=False)
    """How a schema is enforced."""
    searches: bool = field(default=False, compare=False)
    """Whether its provider searches the web for it."""
    deadline: float = field(default=300.0, compare=False)
    """Seconds after which a call is given up."""
    limits: Limits = field(default_factory=Limits, compare=False)
    prices: Prices | None = field(default=None, compare=False)
    """From the registry's files; None where the price data is asked."""
    first_seen: date | None = field(default=None, compare=False)
    """From the registry's files, or the date in its version; None where neither says."""

    @property
    def kind(self) -> Kind:
        """How it is called."""
        return "sim" if self.simulated else "wire" if self.own else "hosted"

    @property
    def unpinned(self) -> str:
        """Why tomorrow's answers may be another model's; empty where they cannot."""
        if self.kind != "hosted" or self.dated:
            return ""
        pinned = f"; {self.provider}:{self.version} is dated" if self.version else ""
        return f"{self.id} is an alias, and the provider may change what it stands for{pinned}"

    def price(
        self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, searches: int = 0
    ) -> float | None:
        """What a call costs in US dollars; None where the price is unknown.

        Args:
            input_tokens: what was read, with what came from the provider's cache.
            output_tokens: what was written, with what was thought.
            cached_tokens: how many of the input came from the cache.
            searches: web searches that are paid for.
        """
        prices = self.tariff(input_tokens)
        return prices.of(input_tokens, output_tokens, cached_tokens, searches) if prices else None

    def tariff(self, input_tokens: int = 0) -> Prices | None:
        """The prices of a prompt of so many tokens; None where they are unknown."""
        if self.simulated:
            return FREE
        if self.prices is not None or self.own:
            return self.prices
        provider = PRICED_AS.get(self.provider, self.provider)
        return price_data(provider, self.name, max(input_tokens, LONG_PROMPT))

    def seconds(self, output_tokens: int, concurrency: int) -> float:
        """How much wall time a call may add; simulated judges keep the CPU busy."""
        if self.simulated:
            return SIMULATED_SECONDS
        return (SECONDS_BEFORE_FIRST_TOKEN + SECONDS_PER_TOKEN * output_tokens) / concurrency


def uncallable(id: str, why: str, choices: list[str]) -> DesignError:
    """The refusal of a model that cannot be called; simulated judges always can."""
    return DesignError(
        f"{id} cannot be called: {why}; simulated judges need nothing ({', '.join(choices)})",
        choices=choices,
    )


def searchless(card: ModelCard) -> DesignError:
    """The refusal of a model that is to search the web, and cannot."""
    why = {
        "sim": "it is a simulated judge",
        "wire": "a server of your own is asked without tools",
        "hosted": "its entry among the models does not say web_search = true",
    }[card.kind]
    return DesignError(
        f"{card.id} cannot search the web: {why}; choose {', '.join(SEARCHING)}", choices=SEARCHING
    )


@lru_cache(maxsize=4096)
def price_data(provider: str, model: str, input_tokens: int) -> Prices | None:
    """The published prices of a prompt of so many tokens."""
    from genai_prices import Usage, calc_price  # heavy, and no simulated run needs it

    def of(**tokens: int) -> Any:
        usage = Usage(input_tokens=input_tokens, **tokens)
        return calc_price(usage, model_ref=model, provider_id=provider)

    try:
        fresh, cached = of(output_tokens=1000), of(cache_read_tokens=input_tokens)
        searched = float(of(output_tokens=1000, web_searches=1000).total_price - fresh.total_price)
    except LookupError:
        return None
    million = 1_000_000
    return Prices(
        input=float(fresh.input_price) / input_tokens * million,
        output=float(fresh.output_price) / 1000 * million,
        cached=float(cached.input_price) / input_tokens * million,
        search=searched or None,  # the data has no price of 0 for what it knows
    )


@cache
def context_data(provider: str, model: str) -> int | None:
    """The published context size."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(
            model, None, PRICED_AS.get(provider, provider), None
        )
    except LookupError:
        return None
    return found.context_window
