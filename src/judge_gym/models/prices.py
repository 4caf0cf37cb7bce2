"""Prices of calls: from the registry's files, or from the data of `genai-prices`."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

LONG_PROMPT = 32_000
"""Tokens; longer prompts may have other prices."""


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """For input tokens from the provider's cache; None where they cost the same."""
    search: float | None = None
    """Per thousand web searches; None where that is unknown."""

    def of(
        self, input_tokens: int, output_tokens: int, cached_tokens: int, searches: int = 0
    ) -> float | None:
        """Returns a call's cost in US dollars; None where it searched at an unknown price."""
        if searches and self.search is None:
            return None
        cached = self.input if self.cached is None else self.cached
        fresh = input_tokens - cached_tokens
        millionths = fresh * self.input + cached_tokens * cached + output_tokens * self.output
        return millionths / 1e6 + searches * (self.search or 0.0) / 1e3


FREE = Prices(0.0, 0.0, search=0.0)


@lru_cache(maxsize=4096)
def price_data(provider: str, model: str, input_tokens: int) -> Prices | None:
    """Returns the published prices for a prompt of this length."""
    from genai_prices import Usage, calc_price  # heavy, and no simulated run needs it

    def of(**tokens: int) -> Any:
        usage = Usage(input_tokens=input_tokens, **tokens)
        return calc_price(usage, model_ref=model, provider_id=provider)

    try:
        fresh, cached = of(output_tokens=1000), of(cache_read_tokens=input_tokens)
        searched = of(output_tokens=1000, web_searches=1000).total_price - fresh.total_price
    except LookupError:
        return None
    million = 1_000_000
    return Prices(
        input=float(fresh.input_price * million / input_tokens),  # exact: these are decimals
        output=float(fresh.output_price * million / 1000),
        cached=float(cached.input_price * million / input_tokens),
        search=float(searched) or None,  # the data has no price of 0 for what it knows
    )


@cache
def context_data(provider: str, model: str) -> int | None:
    """Returns the published context window."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, info = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    return info.context_window
