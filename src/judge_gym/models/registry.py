"""What a model id means, and how it is opened."""

import os
import re
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from judge_gym.errors import DesignError, unknown
from judge_gym.models.cards import (
    PRICED_AS,
    Limits,
    ModelCard,
    context_data,
    searchless,
    uncallable,
)
from judge_gym.models.entries import USER_FILE, Entries, limits, prices
from judge_gym.models.simulated import SIMULATED, SimulatedModel, Skill, character
from judge_gym.records import bare_endpoint

if TYPE_CHECKING:
    from judge_gym.models import Model

DATED = re.compile(r"(\d{4}-\d\d-\d\d|\d{8}|-\d\d-\d\d|-\d{4}|-00\d)(:\w+)?$")
"""How versions end that do not change: gpt-4.1-2025-04-14, grok-4-0709, gemini-2.0-flash-001."""

DAY = re.compile(r"(20\d\d)-?(\d\d)-?(\d\d)$")


class Registry:
    """Looks model ids up and opens models.

    Args:
        folder: where the user's `judge-gym.models.toml` is, if there is one.
    """

    def __init__(self, folder: Path = Path()) -> None:
        self._folder = folder.absolute()
        self._cards: dict[str, ModelCard] = {}

    @cached_property
    def entries(self) -> Entries:
        """What the files say; they are read when a model is looked up that is not simulated."""
        return Entries(self._folder)

    @property
    def hosted_limits(self) -> Limits:
        """What all hosted providers together may be asked."""
        return self.entries.hosted_limits

    def resolve(self, name: str) -> str:
        """The id of a model; a bare name such as `gpt-4.1` gets its provider.

        >>> Registry().resolve("gpt-4.1")
        'openai:gpt-4.1'
        """
        if ":" in name:
            return self.card(name).id
        from genai_prices.data_snapshot import get_snapshot

        ours = {PRICED_AS.get(name, name): name for name in self.entries.providers}
        try:
            provider, _ = get_snapshot().find_provider_model(name, None, None, None)
            return f"{ours[provider.id]}:{name}"
        except LookupError:
            callable = [*self.entries.providers, *self.entries.endpoints]
            choices = [*SIMULATED, *(f"{provider}:NAME" for provider in callable)]
            raise DesignError(unknown("model", name, choices), choices=choices) from None

    def card(self, id: str) -> ModelCard:
        """What is known of a model."""
        if id not in self._cards:
            self._cards[id] = self._card(id)
        return self._cards[id]

    def _card(self, id: str) -> ModelCard:
        provider, _, name = id.partition(":")
        known = {} if provider == "sim" else {**self.entries.providers, **self.entries.endpoints}
        if provider != "sim" and provider not in known:
            choices = ["sim", *known]
            raise DesignError(unknown("provider", provider, choices, id), choices=choices)
        if not name:
            raise DesignError(f"{id!r} names no model; an id is provider:name")
        if provider == "sim":
            own = character(name)
            writes = isinstance(own, Skill)
            return ModelCard(
                id, provider, name, own.family, simulated=True, dated=True, searches=writes
            )
        facts, scope = self.entries.facts(provider, id)
        # A router's name of a model begins with who made it: meta-llama/llama-3.3-70b-instruct.
        maker = name.partition("/")[0] if provider == "openrouter" else provider
        mine = provider in self.entries.endpoints
        return ModelCard(
            id,
            provider,
            name,
            family=facts.get("family") or maker,
            simulated=False,
            endpoint=bare_endpoint(_url(facts)),
            own=mine,
            api=facts.get("api", "chat"),
            context=facts.get("context") or (None if mine else context_data(provider, name)),
            dated=facts.get("dated", DATED.search(name) is not None),
            version=facts.get("version", ""),
            takes_temperature=facts.get("temperature", True),
            takes_seed=facts.get("seed", False),
            structured=facts.get("structured", "native"),
            searches=facts.get("web_search", False) and not mine,
            deadline=facts.get("deadline", 300.0),
            limits=limits(scope, facts),
            prices=prices(facts),
            first_seen=facts.get("first_seen") or _date_in(facts.get("version") or name),
        )

    def providers(self) -> list[dict[str, Any]]:
        """Providers and endpoints, with what each needs and whether it is there."""
        rows = []
        for name in (*self.entries.providers, *self.entries.endpoints):
            facts, _ = self.entries.facts(name, f"{name}:")
            needed = self._keys(name)
            rows.append(
                {
                    "provider": name,
                    "key": " or ".join(needed) or None,
                    "key is set": not needed or any(map(os.environ.get, needed)),
                    "base url": bare_endpoint(_url(facts)) or None,
                    "structured": facts.get("structured", "native"),
                    **{limit: facts.get(limit) or None for limit in ("rpm", "tpm", "concurrency")},
                }
            )
        return rows

    def scheduled(self) -> list[str]:
        """The models whose entries say that suites are run on them from time to time."""
        named = self.entries.named
        return [
            id for id in named if self.entries.facts(id.partition(":")[0], id)[0].get("scheduled")
        ]

    def priced(self, provider: str) -> list[str]:
        """The models of a provider that the price data knows and that are not withdrawn."""
        from genai_prices.data_snapshot import get_snapshot

        theirs = PRICED_AS.get(provider, provider)
        return [
            f"{provider}:{model.id}"
            for known in get_snapshot().providers
            if known.id == theirs
            for model in known.models
            if not model.deprecated
        ]

    def open(self, id: str, *, web_search: bool = False) -> "Model":
        """The model, ready to answer; refused here, before any money is spent, where it cannot.

        Args:
            id: `provider:name`.
            web_search: whether it will be asked to search the web.
        """
        card = self.card(id)
        if web_search and not card.searches:
            raise searchless(card)
        if card.kind == "sim":
            return SimulatedModel(id)
        if card.kind == "wire":
            return self._open_wire(card)
        from judge_gym.models.hosted import HostedModel

        try:
            return HostedModel(card, self._key(card), self._base_url(card))
        except ImportError as fault:
            missing = f"install its SDK: pip install 'judge-gym[providers]' ({fault.name})"
            raise uncallable(id, missing, SIMULATED) from fault

    def _open_wire(self, card: ModelCard) -> "Model":
        from judge_gym.models.wire import WireModel

        return WireModel(
            card.id,
            base_url=self.entries.endpoints[card.provider].base_url,
            name=card.name,
            key=self._key(card),
            timeout=card.deadline,
            structured=card.structured,
            seeded=card.takes_seed,
            price=card.price,
        )

    def _base_url(self, card: ModelCard) -> str:
        """Where a hosted provider is asked; empty where its SDK knows."""
        facts, _ = self.entries.facts(card.provider, card.id)
        url = _url(facts)
        if urlsplit(url).query:
            name = facts["base_url_env"]
            why = f"{name} has a query, which SDKs cannot send; name the server in {USER_FILE}"
            raise uncallable(card.id, why, SIMULATED)
        return url

    def _keys(self, name: str) -> list[str]:
        """The variables of the environment that may hold a provider's or an endpoint's key."""
        if name in self.entries.providers:
            return self.entries.providers[name].key_env
        key_env = self.entries.endpoints[name].key_env
        return [key_env] if key_env else []

    def _key(self, card: ModelCard) -> str:
        names = self._keys(card.provider)
        key = next((found for name in names if (found := os.environ.get(name, "").strip())), "")
        if names and not key:
            where = f" (key_env of endpoints.{card.provider} in {USER_FILE})" if card.own else ""
            raise uncallable(card.id, f"set {' or '.join(names)}{where}", SIMULATED)
        return key


def _date_in(version: str) -> date | None:
    """The day that a version is named after."""
    found = DAY.search(version)
    try:
        return date(*map(int, found.groups())) if found else None
    except ValueError:
        return None


def _url(facts: Mapping[str, Any]) -> str:
    """Where a provider or an endpoint is asked; empty for a provider at home."""
    if "base_url" in facts:
        return str(facts["base_url"])
    url = os.environ.get(facts.get("base_url_env") or "", "")
    return "" if url.rstrip("/") == facts.get("home") else url
