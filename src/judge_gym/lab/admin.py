"""The noun `lab.admin`: the database, its tables and ledger, models, environment and tokens."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.engine import Engine
from judge_gym.errors import DesignError, NotFoundError, unknown
from judge_gym.lab.experiments import Experiments
from judge_gym.models import ModelCard, Registry
from judge_gym.records import Message, search_origins
from judge_gym.store import (
    Exported,
    Imported,
    Rows,
    Scope,
    Store,
    Token,
    export_ledger,
    import_ledger,
)
from judge_gym.store.database import ENVIRONMENT


class Admin:
    """Shows how a lab is set up, and moves its ledger.

    Args:
        store: the lab's database.
        models: the model registry.
        engine: whose lock is held while a ledger is imported.
        experiments: finds the experiments whose ledger is exported.
    """

    def __init__(
        self, store: Store, models: Registry, engine: Engine, experiments: Experiments
    ) -> None:
        self._store = store
        self._models = models
        self._engine = engine
        self._experiments = experiments

    # --- database --------------------------------------------------------------------------------

    @property
    def database(self) -> str:
        """The database as it may be shown: its file, or its URL without a password."""
        return self._store.database.shown

    @property
    def database_url(self) -> str:
        """The URL with its password, for a process that this one starts."""
        return self._store.database.url.render_as_string(hide_password=False)

    @property
    def on_server(self) -> bool:
        """Whether the database is a server, which several workers may use."""
        return self._store.database.file is None

    def tables(self) -> Sequence[dict[str, Any]]:
        """Returns the readable tables with columns, keys and row counts; tokens are not one."""
        return self._store.sql.tables()

    def page_table(
        self,
        table: str,
        *,
        after: Sequence[int | str] | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> tuple[Sequence[dict[str, Any]], Sequence[int | str] | None]:
        """Returns rows of a table in the order of its key, and the key to continue after."""
        return self._store.sql.page(table, after=after, limit=limit, descending=descending)

    def query(self, sql: str, *, limit: int = 100) -> Rows:
        """Returns the result of one SELECT; the connection cannot change anything."""
        return self._store.sql.select(sql, limit=limit)

    # --- ledger ----------------------------------------------------------------------------------

    def import_ledger(self, path: str | Path) -> Imported:
        """Adds another lab's calls to the ledger, all of a file or nothing; replaces no answer."""
        with self._engine.lock():
            return import_ledger(self._store.database, Path(path))

    def export_ledger(self, path: str | Path, target: str | None = None) -> Exported:
        """Writes the calls behind a study or an experiment, or all, for another lab to import."""
        found = self._experiments.find(target) if target is not None else None
        tags = [row["tag"] for row in found] if found is not None else None
        return export_ledger(self._store.database, Path(path), tags)

    def transcript(self, call_id: int) -> tuple[Sequence[Message], Sequence[Mapping[str, Any]]]:
        """Returns what was asked in a call, and every attempt at an answer."""
        messages, attempts = self._store.ledger.transcript(call_id)
        if not messages:
            raise NotFoundError(f"there is no call {call_id}")
        return messages, [dict(row) for row in attempts]

    # --- models ----------------------------------------------------------------------------------

    def providers(self) -> Sequence[dict[str, Any]]:
        """Returns the model providers with what each needs."""
        return self._models.providers()

    def named_models(self) -> Sequence[str]:
        """Returns the ids of the models that the registry and the user's file name."""
        return [*self._models.entries.named]

    def model_cards(self, provider: str | None = None) -> Sequence[ModelCard]:
        """Returns the cards of the named models, or of all priced models of a provider."""
        known = [*self._models.entries.providers]
        if provider is not None and provider not in known:
            raise DesignError(unknown("provider", provider, known), choices=known)
        ids = self.named_models() if provider is None else self._models.priced(provider)
        return [self._models.card(id) for id in ids]

    def model_card(self, model: str) -> ModelCard:
        """Returns what is known of a model, by its id or its bare name."""
        return self._models.card(self._models.resolve(model))

    def resolve_model(self, model: str) -> str:
        """Returns the id of a model by its bare name."""
        return self._models.resolve(model)

    def can_call(self, model: str) -> bool:
        """Returns whether a model can be called from here."""
        try:
            self._models.open(model)
        except DesignError:
            return False
        return True

    def environment(self) -> Sequence[dict[str, Any]]:
        """Returns the variables that the lab reads and whether each is set, without values."""
        entries = self._models.entries
        known = {ENVIRONMENT: "the lab's database"}
        for origin in search_origins().values():
            known |= origin.variables
        for name, provider in entries.providers.items():
            known |= dict.fromkeys(provider.key_env, f"key of {name}")
            known |= {provider.base_url_env: f"address of {name}"} if provider.base_url_env else {}
        for name, endpoint in entries.endpoints.items():
            known |= {endpoint.key_env: f"key of {name}"} if endpoint.key_env else {}
        return [
            {"name": name, "set": bool(os.environ.get(name, "").strip()), "for": purpose}
            for name, purpose in known.items()
        ]

    # --- tokens ----------------------------------------------------------------------------------

    def create_token(self, name: str, scope: Scope) -> tuple[Token, str]:
        """Creates a token for the HTTP API; the secret is returned once and never stored."""
        return self._store.tokens.create(name, scope)

    def list_tokens(self) -> Sequence[Token]:
        """Returns all tokens, revoked ones too."""
        return self._store.tokens.listed()

    def revoke_token(self, name: str) -> Token:
        """Makes a token invalid."""
        return self._store.tokens.revoke(name)

    def find_token(self, secret: str) -> Token | None:
        """Returns the valid token of a secret."""
        return self._store.tokens.find(secret)

    def has_tokens(self) -> bool:
        """Returns whether there is a valid token."""
        return self._store.tokens.exist()
