"""What a model id means: provider, family, price; and how it is opened."""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from judge_gym.errors import DesignError, unknown
from judge_gym.models.simulated import PRESETS, SimulatedModel, temper

if TYPE_CHECKING:
    from judge_gym.models import Model

# judge-gym's provider names, and what the price data calls them.
PROVIDERS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "xai": "x-ai",
    "openrouter": "openrouter",
}
# For an estimate of time: a typical hosted model, until a run has measured its own.
SECONDS_BEFORE_FIRST_TOKEN = 0.8
SECONDS_PER_TOKEN = 0.015
SIMULATED_SECONDS = 0.0008


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

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """What a call costs in US dollars; None where the price is unknown."""
        if self.simulated:
            return 0.0
        per_token = _token_prices(PROVIDERS[self.provider], self.name)
        if per_token is None:
            return None
        return input_tokens * per_token[0] + output_tokens * per_token[1]

    def seconds(self, output_tokens: int, concurrency: int) -> float:
        """How much wall time a call may add; simulated judges keep the CPU busy."""
        if self.simulated:
            return SIMULATED_SECONDS
        return (SECONDS_BEFORE_FIRST_TOKEN + SECONDS_PER_TOKEN * output_tokens) / concurrency


@cache
def _token_prices(provider: str, model: str) -> tuple[float, float] | None:
    """The price of an input and of an output token."""
    from genai_prices import Usage, calc_price  # heavy, and no simulated run needs it

    try:
        found = calc_price(
            Usage(input_tokens=1000, output_tokens=1000), model_ref=model, provider_id=provider
        )
    except LookupError:
        return None
    return float(found.input_price) / 1000, float(found.output_price) / 1000


class Registry:
    """Looks model ids up and opens models."""

    def __init__(self) -> None:
        self._cards: dict[str, ModelCard] = {}

    def resolve(self, name: str) -> str:
        """The id of a model; a bare name such as `gpt-4.1` gets its provider.

        >>> Registry().resolve("gpt-4.1")
        'openai:gpt-4.1'
        """
        if ":" in name:
            return self.card(name).id
        from genai_prices.data_snapshot import get_snapshot

        ours = {theirs: ours for ours, theirs in PROVIDERS.items()}
        try:
            provider, _ = get_snapshot().find_provider_model(name, None, None, None)
            return f"{ours[provider.id]}:{name}"
        except LookupError:
            simulated = [f"sim:{preset}" for preset in PRESETS]
            choices = [*simulated, *(f"{provider}:NAME" for provider in PROVIDERS)]
            raise DesignError(unknown("model", name, choices), choices=choices) from None

    def card(self, id: str) -> ModelCard:
        """What is known of a model."""
        if id not in self._cards:
            provider, _, name = id.partition(":")
            if provider != "sim" and provider not in PROVIDERS:
                choices = ["sim", *PROVIDERS]
                raise DesignError(unknown("provider", provider, choices, id), choices=choices)
            if not name:
                raise DesignError(f"{id!r} names no model; an id is provider:name")
            simulated = provider == "sim"
            family = temper(name).family if simulated else provider
            self._cards[id] = ModelCard(id, provider, name, family, simulated)
        return self._cards[id]

    def open(self, id: str) -> "Model":
        """The model, ready to answer; refused here, before any money is spent, where it cannot."""
        card = self.card(id)
        if not card.simulated:
            raise DesignError(
                f"{id} cannot be called: this version runs simulated judges only "
                f"({', '.join(f'sim:{preset}' for preset in PRESETS)})",
                choices=[f"sim:{preset}" for preset in PRESETS],
            )
        return SimulatedModel(id)
