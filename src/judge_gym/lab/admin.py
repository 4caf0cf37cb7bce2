"""The noun `lab.admin`: the database, its tables and ledger, models, environment and tokens."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from judge_gym.axes import Design
from judge_gym.engine import Engine
from judge_gym.errors import ConflictError, DesignError, NotFoundError, StoreError, unknown
from judge_gym.lab.cursors import all_rows, read_cursor, write_cursor
from judge_gym.lab.experiments import Experiments
from judge_gym.models import ModelCard, Registry
from judge_gym.records import Message, search_origins
from judge_gym.records.environment import PROFILE, VARIABLES
from judge_gym.records.requests import Id, Name
from judge_gym.records.responses import (
    AnyRow,
    Axes,
    CallTranscript,
    ModelInfo,
    ModelList,
    QueryResult,
    Readiness,
    TableInfo,
    Variable,
    WorkerState,
)
from judge_gym.store import (
    Exported,
    Imported,
    LabMetrics,
    Page,
    Scope,
    Store,
    Token,
    export_ledger,
    import_ledger,
)
from judge_gym.store.identity import COPY

Row = dict[str, Any]


class Admin:
    """Shows how a lab is set up, and moves its ledger."""

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
        return self._store.database.display_url

    @property
    def database_url(self) -> str:
        """The URL with its password, for a process that this one starts."""
        return self._store.database.url.render_as_string(hide_password=False)

    @property
    def on_server(self) -> bool:
        """Whether the database is a server, which several workers may use."""
        return self._store.database.file is None

    def tables(self) -> Sequence[TableInfo]:
        """Returns the readable tables with columns, keys and row counts; tokens are not one."""
        return cast(Sequence[TableInfo], self._store.sql.tables())

    def rows(
        self,
        table: Annotated[Name, Field(description="One of `tables`.")],
        *,
        order: Literal["asc", "desc"] = "asc",
    ) -> Sequence[AnyRow]:
        """Returns the rows of a table as they are stored, in the order of its key."""
        return all_rows(partial(self.page_rows, table, order=order))

    def page_rows(
        self,
        table: str,
        *,
        order: Literal["asc", "desc"] = "asc",
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Returns a page of a table, after the cursor of the previous page."""
        key = read_cursor(after) if after is not None else None
        rows, last = self._store.sql.page(table, after=key, limit=limit, descending=order == "desc")
        return Page([_plain(row) for row in rows], write_cursor(last))

    def query(
        self,
        sql: Annotated[
            str,
            Field(
                min_length=1,
                max_length=10_000,
                description="One SELECT, of SQLite or Postgres as `status` says.",
            ),
        ],
        *,
        limit: Annotated[int, Field(ge=1, le=1000, description="Rows at most.")] = 100,
    ) -> QueryResult:
        """Returns the result of one SELECT, in 5 seconds at most; it cannot change anything."""
        found = self._store.sql.select(sql, limit=limit)
        rows = [[_plain_value(value) for value in row] for row in found.rows]
        return {"columns": [*found.columns], "rows": rows, "more": found.more}

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

    def show_call(self, id: Id) -> CallTranscript:
        """Returns what was asked in a call, and every attempt at an answer."""
        messages, attempts = self.transcript(id)
        return {
            "call": id,
            "messages": [
                {"role": message.role, "content": message.content} for message in messages
            ],
            "attempts": [_plain(row) for row in attempts],
        }

    # --- models ----------------------------------------------------------------------------------

    def axes(self) -> Axes:
        """Returns every knob with its levels and question, and the JSON Schema of a design."""
        fields = ("path", "levels", "open", "default", "question", "cite")
        knobs = [
            {name: _plain_value(getattr(knob, name)) for name in fields}
            for knob in Design.knobs().values()
        ]
        return {"knobs": knobs, "schema": Design.model_json_schema()}

    def models(
        self,
        *,
        provider: Annotated[Name | None, Field(description="All its models with a price.")] = None,
    ) -> ModelList:
        """Returns providers with what they need, and the named models or those of a provider."""
        from judge_gym.models.simulated import ASSISTANTS, CODERS, JUDGES

        cards = [_model(card) for card in self.model_cards(provider)]
        simulated = [
            {
                "id": f"sim:{name}",
                "kind": kind,
                "parameters": preset.model_dump(exclude_defaults=True),
            }
            for kind, presets in (
                ("judge", JUDGES),
                ("assistant", ASSISTANTS),
                ("coder", CODERS),
            )
            for name, preset in presets.items()
        ]
        return {
            "providers": [*self.providers()],
            "models": cards,
            "simulated": cast(Any, simulated if provider in (None, "sim") else []),
        }

    def show_model(
        self, id: Annotated[Name, Field(description="Its id, or its bare name.")]
    ) -> ModelInfo:
        """Returns what is known of a model, by its id or its bare name."""
        return _model(self.model_card(id))

    def providers(self) -> Sequence[dict[str, Any]]:
        """Returns the model providers with what each needs."""
        return self._models.providers()

    def named_models(self) -> Sequence[str]:
        """Returns the models that the registry and the user's file name, without retired ones."""
        today = datetime.now(UTC).date()
        cards = [self._models.card(id) for id in self._models.known()]
        return [card.id for card in cards if card.retires is None or card.retires > today]

    def model_cards(self, provider: str | None = None) -> Sequence[ModelCard]:
        """Returns the cards of the named models, or of all priced models of a provider."""
        known = [*self._models.entries.providers]
        if provider is not None and provider not in known:
            raise DesignError(unknown("provider", provider, known), choices=known)
        ids = self._models.known() if provider is None else self._models.priced(provider)
        return [self._models.card(id) for id in ids]

    def model_card(self, model: str) -> ModelCard:
        """Returns what is known of a model, by its id or its bare name."""
        return self._models.card(self._models.resolve(model))

    def resolve_model(self, model: str) -> str:
        """Returns the id of a model by its bare name."""
        return self._models.resolve(model)

    def refuse_model_paths(self) -> None:
        """Refuses `local:PATH` from now on: who asks may be on another machine."""
        self._models.takes_paths = False

    def can_call(self, model: str) -> bool:
        """Returns whether a model can be called from here."""
        try:
            self._models.open(model)
        except DesignError:
            return False
        return True

    def environment(self) -> Sequence[Variable]:
        """Returns the variables that judge-gym reads and whether each is set.

        Values are secrets and never among them, apart from the profile of this session.
        """
        entries = self._models.entries
        known = dict(VARIABLES)
        for origin in search_origins().values():
            known |= origin.variables
        for name, provider in entries.providers.items():
            known |= dict.fromkeys(provider.key_env, f"key of {name}")
            known |= {provider.base_url_env: f"address of {name}"} if provider.base_url_env else {}
        for name, endpoint in entries.endpoints.items():
            known |= {endpoint.key_env: f"key of {name}"} if endpoint.key_env else {}
        return [
            {
                "name": name,
                "set": bool(os.environ.get(name, "").strip()),
                "value": self._store.database.profile if name == PROFILE else None,
                "purpose": purpose,
            }
            for name, purpose in known.items()
        ]

    # --- tokens ----------------------------------------------------------------------------------

    def create_token(self, name: str, scope: Scope) -> tuple[Token, str]:
        """Creates a token for the HTTP API; the secret is returned once and never stored."""
        return self._store.tokens.create(name, scope)

    def list_tokens(self) -> Sequence[Token]:
        """Returns all tokens, revoked ones too."""
        return self._store.tokens.list()

    def revoke_token(self, name: str) -> Token:
        """Makes a token invalid."""
        return self._store.tokens.revoke(name)

    def find_token(self, secret: str) -> Token | None:
        """Returns the valid token of a secret."""
        return self._store.tokens.find(secret)

    def may_write(self) -> bool:
        """Returns whether this session may write to the database, which must answer.

        A production database needs a session of that profile.
        """
        database = self._store.database
        return database.profile == "prod" or database.read_profile() != "prod"

    def readiness(self) -> Readiness:
        """Returns whether the lab can serve and execute, and why not, without names or numbers.

        The database must answer, fit this version and be no unconfirmed copy; where anything is
        queued, a worker must be running or about to start.
        """
        progress, reasons = self._store.progress, []
        worker: WorkerState = "not needed"
        try:
            self._store.database.refuse_unfit()
            if self._store.identity.is_copy():
                reasons.append(COPY)
            if progress.has_worker():
                worker = "running"
            elif progress.queue_depth():
                worker = "starting" if progress.worker_coming() else "missing"
        except StoreError:
            reasons.append("the database does not answer")
        except (ConflictError, NotFoundError):
            reasons.append(
                "the database's schema does not fit this version: see 'judge-gym db status'"
            )
        if worker != "not needed" and progress.worker_failing():
            reasons.append("workers end with an error, which their log says, such as a full disk")
        if worker == "missing":
            reasons.append(
                "runs are queued, and no worker is running: start one with 'judge-gym worker'"
            )
        return {"ready": not reasons, "reasons": reasons, "worker": worker}

    def metrics(self) -> LabMetrics:
        """Returns counts of calls, their latency and cost, of the queue and of workers."""
        return self._store.metrics.read()

    def has_tokens(self) -> bool:
        """Returns whether there is a valid token."""
        return self._store.tokens.any_valid()


def _model(card: ModelCard) -> ModelInfo:
    prices = card.tariff()
    known = {name: getattr(card, name, None) for name in ModelInfo.__annotations__}
    return cast(
        ModelInfo,
        {
            **known,
            "endpoint": card.endpoint or None,
            "input_usd": prices.input if prices else None,
            "cached_usd": prices.cached if prices else None,
            "output_usd": prices.output if prices else None,
            "limits": asdict(card.limits),
        },
    )


def _plain(row: Mapping[str, Any]) -> Row:
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    """Returns a value as JSON has it; dates and other types of the database become text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return _plain(value)
        case list() | tuple():
            return [_plain_value(item) for item in value]
    return str(value)
