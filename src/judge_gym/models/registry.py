"""Looks up model ids, and opens models."""

import os
import re
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from judge_gym.errors import DesignError, unknown
from judge_gym.models import local_files
from judge_gym.models.model_card import LOCAL, Limits, ModelCard, cannot_search
from judge_gym.models.prices import context_data
from judge_gym.models.registry_files import USER_FILE, Entries, limits, prices
from judge_gym.records import bare_endpoint
from judge_gym.records.installation import install_command

if TYPE_CHECKING:
    from judge_gym.models import Model

DATED = re.compile(r"(\d{4}-\d\d-\d\d|\d{8}|-\d\d-\d\d|-\d{4}|-00\d)(:\w+)?$")
"""How dated versions end: gpt-5-2025-08-07, grok-4-0709, gemini-2.0-flash-001."""

DAY = re.compile(r"(20\d\d)-?(\d\d)-?(\d\d)$")


class Registry:
    """Looks model ids up and opens models.

    Args:
        folder: the folder of the user's `judge-gym.models.toml`, which may be missing.
    """

    def __init__(self, folder: Path = Path()) -> None:
        self._folder = folder.absolute()
        self.takes_paths = True
        """Whether users may name files of this machine as models; not if they are elsewhere."""
        self._cards: dict[str, ModelCard] = {}

    @cached_property
    def entries(self) -> Entries:
        """The registry's files, read when a model is looked up that is not simulated."""
        return Entries(self._folder)

    @property
    def hosted_limits(self) -> Limits:
        """The limits of all hosted providers together."""
        return self.entries.hosted_limits

    def resolve(self, name: str) -> str:
        """Returns the id of a model; a bare name such as `gpt-5.2` gets its provider.

        A name that is written as in papers becomes the provider's own.

        >>> Registry().resolve("gpt-5.2"), Registry().resolve("claude-sonnet-4.5")
        ('openai:gpt-5.2', 'anthropic:claude-sonnet-4-5')
        """
        if ":" in name:
            if not self.takes_paths and name.startswith(f"{LOCAL}:") and local_files.is_path(name):
                choices = self.priced(LOCAL)
                raise DesignError(
                    f"{name!r} names a file on the machine of the lab, which only its command line "
                    f"may; choose {', '.join(choices)}",
                    choices=choices,
                )
            simulated = name.startswith("sim:")  # which needs none of the registry's files
            return self.card(name if simulated else self.entries.spell(name)).id
        for maker in self.entries.providers:
            if (id := self.entries.spell(f"{maker}:{name}")) != f"{maker}:{name}":
                return id
        from genai_prices.data_snapshot import get_snapshot

        from judge_gym.models.simulated import JUDGES

        ours = {self._priced_as(name): name for name in self.entries.providers}
        try:
            provider, _ = get_snapshot().find_provider_model(name, None, None, None)
            return f"{ours[provider.id]}:{name}"
        except LookupError:
            callable = [*self.entries.providers, *self.entries.endpoints]
            judges = (f"sim:{name}" for name in JUDGES)
            choices = [*judges, *(f"{provider}:NAME" for provider in callable)]
            raise DesignError(unknown("model", name, choices), choices=choices) from None

    def card(self, id: str) -> ModelCard:
        """Returns what is known about a model."""
        if id not in self._cards:
            self._cards[id] = self._card(id)
        return self._cards[id]

    def _card(self, id: str) -> ModelCard:
        provider, _, name = id.partition(":")
        endpoints = (
            {} if provider == "sim" else {**self.entries.providers, **self.entries.endpoints}
        )
        if provider != "sim" and provider not in endpoints:
            choices = ["sim", *endpoints]
            raise DesignError(unknown("provider", provider, choices, id), choices=choices)
        if not name:
            raise DesignError(f"{id!r} names no model; an id is provider:name")
        if provider == "sim":
            from judge_gym.models.simulated import CoderProfile, profile  # most labs only read

            sim_profile = profile(name)
            writes = isinstance(sim_profile, CoderProfile)
            return ModelCard(
                id, provider, name, sim_profile.family, simulated=True, dated=True, searches=writes
            )
        facts, scope = self.entries.facts(provider, id)
        if provider == LOCAL:
            return self._local_card(id, name, facts)
        # A router's model names begin with the maker: meta-llama/llama-3.3-70b-instruct.
        maker = name.partition("/")[0] if provider == "openrouter" else provider
        own_endpoint = provider in self.entries.endpoints
        priced_as = "" if own_endpoint else self._priced_as(provider)
        return ModelCard(
            id,
            provider,
            name,
            family=facts.get("family") or maker,
            simulated=False,
            endpoint=bare_endpoint(_url(facts)),
            own=own_endpoint,
            api=facts.get("api", "chat"),
            context=facts.get("context") or (priced_as and context_data(priced_as, name)) or None,
            dated=facts.get("dated", DATED.search(name) is not None),
            version=facts.get("version", ""),
            takes_temperature=facts.get("temperature", True),
            takes_seed=facts.get("seed", False),
            structured=facts.get("structured", "native"),
            may_prompt="structured" not in facts,
            searches=facts.get("web_search", False) and not own_endpoint,
            deadline=facts.get("deadline", 300.0),
            limits=limits(scope, facts),
            prices=prices(facts),
            priced_as=priced_as,
            first_seen=facts.get("first_seen") or _date_in(facts.get("version") or name),
            retires=facts.get("retires"),
        )

    def _local_card(self, id: str, name: str, facts: Mapping[str, Any]) -> ModelCard:
        sha256 = local_files.hash_of(name)
        slots = {"concurrency": facts["slots"]}  # more calls would wait in its server
        return ModelCard(
            id,
            LOCAL,
            name,
            family=facts.get("family") or Path(name).stem,
            simulated=False,
            endpoint=f"sha256:{sha256}",
            context=facts["context"],
            dated=facts["dated"],
            version=facts.get("version", ""),
            takes_temperature=facts.get("temperature", True),
            takes_seed=facts["seed"],
            structured=facts.get("structured", "native"),
            deadline=facts["deadline"],
            limits=limits(id, {**slots, **facts}),
            prices=prices(facts),
            first_seen=facts.get("first_seen"),
        )

    def providers(self) -> list[dict[str, Any]]:
        """Lists providers and endpoints: the key that each needs, whether it is set, limits."""
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

    def proposed(self, today: date) -> list[str]:
        """Lists models to schedule: of providers whose keys are set, without retiring ones."""
        usable = {row["provider"] for row in self.providers() if row["key"] and row["key is set"]}
        return [
            id
            for id in self.recommended()
            if id.partition(":")[0] in usable and not self.card(id).retirement(today)
        ]

    def known(self) -> list[str]:
        """Lists the models that the registry and the user's file name, by provider."""
        ids = dict.fromkeys([*self.entries.named, *self.recommended()])
        order = ["sim", *self.entries.providers, *self.entries.endpoints]
        return sorted(ids, key=lambda id: order.index(id.partition(":")[0]))

    def recommended(self) -> list[str]:
        """Lists the models of each provider that a schedule should begin with."""
        providers = self.entries.providers.items()
        return [f"{name}:{model}" for name, entry in providers for model in entry.proposed]

    def priced(self, provider: str) -> list[str]:
        """Lists a provider's models in the price data, without deprecated ones."""
        from genai_prices.data_snapshot import get_snapshot

        if provider == LOCAL:
            return [f"{LOCAL}:{name}" for name in local_files.DOWNLOADS]
        theirs = self._priced_as(provider)
        return [
            f"{provider}:{model.id}"
            for entry in get_snapshot().providers
            if entry.id == theirs
            for model in entry.models
            if not model.deprecated
        ]

    def open(self, id: str, *, web_search: bool = False) -> "Model":
        """Opens a model, or refuses one that cannot be called before any money is spent.

        Args:
            id: `provider:name`.
            web_search: whether its requests will allow web search.
        """
        card = self.card(id)
        if web_search and not card.searches:
            raise cannot_search(card, self._searching())
        if card.kind == "sim":
            from judge_gym.models.simulated import SimulatedModel

            return SimulatedModel(id)
        if card.kind == "endpoint":
            return self._open_endpoint(card)
        if card.kind == "local":
            return self._open_local(card)
        from judge_gym.models.hosted_model import HostedModel
        from judge_gym.models.providers import OPENERS

        if card.provider not in OPENERS:
            choices = [f"{name}:NAME" for name in OPENERS]
            raise DesignError(
                f"{id} cannot be called: providers.py has no opener for the provider "
                f"{card.provider!r}; choose {', '.join(choices)}",
                choices=choices,
            )
        try:
            return HostedModel(card, self._key(card), self._base_url(card))
        except ImportError as error:
            cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
            module = f" (no module {cause.name})" if cause.name else f": {cause}"
            missing = f"install its SDK: {install_command('providers')}{module}"
            raise _uncallable(id, missing) from error

    def _open_endpoint(self, card: ModelCard) -> "Model":
        from judge_gym.models.http_model import HttpModel

        return HttpModel(
            card.id,
            base_url=self.entries.endpoints[card.provider].base_url,
            name=card.name,
            key=self._key(card),
            timeout=card.deadline,
            structured=card.structured,
            may_prompt=card.may_prompt,
            seeded=card.takes_seed,
            price=card.price,
        )

    def _open_local(self, card: ModelCard) -> "Model":
        from judge_gym.models.local_model import EXTRA, LocalModel

        facts, _ = self.entries.facts(LOCAL, card.id)
        sizes = {name: facts[name] for name in ("context", "threads", "slots")}
        try:
            return LocalModel(card, **sizes)
        except ImportError as error:
            missing = f"install llama.cpp: {install_command(EXTRA)}"
            raise _uncallable(card.id, missing) from error
        except DesignError as error:
            raise _uncallable(card.id, error.message) from error

    def _base_url(self, card: ModelCard) -> str:
        """Returns the base URL of a hosted provider; empty to use the SDK's own."""
        facts, _ = self.entries.facts(card.provider, card.id)
        url = _url(facts)
        if urlsplit(url).query:
            name = facts["base_url_env"]
            why = f"{name} has a query, which SDKs cannot send; add the server to {USER_FILE}"
            raise _uncallable(card.id, why)
        return url

    def _priced_as(self, provider: str) -> str:
        """Returns the name of a provider in the price data."""
        return self.entries.providers[provider].priced_as or provider

    def _searching(self) -> list[str]:
        """Lists the providers of which models can search the web."""
        named = {id.partition(":")[0] for id in self.entries.searching}
        providers = [name for name in self.entries.providers if name in named]
        return [f"{name}:NAME" for name in providers] + ["sim:coder-NAME"]

    def _keys(self, name: str) -> list[str]:
        """Returns the environment variables that may hold a provider's or an endpoint's key."""
        if name in self.entries.providers:
            return self.entries.providers[name].key_env
        key_env = self.entries.endpoints[name].key_env
        return [key_env] if key_env else []

    def _key(self, card: ModelCard) -> str:
        names = self._keys(card.provider)
        key = next((value for name in names if (value := os.environ.get(name, "").strip())), "")
        if names and not key:
            where = f" (key_env of endpoints.{card.provider} in {USER_FILE})" if card.own else ""
            raise _uncallable(card.id, f"set {' or '.join(names)}{where}")
        return key


def _uncallable(id: str, why: str) -> DesignError:
    """Returns the error for a model that cannot be called; simulated ones always can."""
    from judge_gym.models.simulated import CODERS, JUDGES

    judges, coders = ([f"sim:{name}" for name in names] for names in (JUDGES, CODERS))
    return DesignError(
        f"{id} cannot be called: {why}; simulated judges need nothing ({', '.join(judges)}), nor "
        f"do simulated writers of code ({', '.join(coders)})",
        choices=[*judges, *coders],
    )


def _date_in(version: str) -> date | None:
    """Returns the date in a version's name."""
    match = DAY.search(version)
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def _url(facts: Mapping[str, Any]) -> str:
    """Returns the base URL of a provider or an endpoint; empty for a provider's own."""
    if "base_url" in facts:
        return str(facts["base_url"])
    url = os.environ.get(facts.get("base_url_env") or "", "")
    return "" if url.rstrip("/") == facts.get("home") else url
