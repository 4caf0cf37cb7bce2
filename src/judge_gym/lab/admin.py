"""The noun `lab.admin`: the database, its tables and ledger, models, environment and tokens."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from judge_gym.axes import Design
from judge_gym.engine import Engine
from judge_gym.errors import DesignError, NotFoundError, unknown
from judge_gym.lab.cursors import all_rows, read_cursor, write_cursor
from judge_gym.lab.studies import Studies
from judge_gym.models import ModelCard, Registry
from judge_gym.records import search_origins
from judge_gym.records.environment import PROFILE, VARIABLES
from judge_gym.records.requests import Id, Name
from judge_gym.records.responses import (
    AnyRow,
    Axes,
    CallTranscript,
    ModelInfo,
    ModelList,
    QueryResult,
    SimulatedModel,
    TableInfo,
    Variable,
    as_record,
    as_records,
)
from judge_gym.store import (
    Exported,
    Imported,
    Page,
    Store,
    export_ledger,
    import_ledger,
)

if TYPE_CHECKING:
    from judge_gym.models.model_check import ModelCheck

Row = dict[str, Any]


class Admin:
    """Shows how a lab is set up, and moves its ledger."""

    def __init__(self, store: Store, models: Registry, engine: Engine, studies: Studies) -> None:
        self._store = store
        self._models = models
        self._engine = engine
        self._studies = studies

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
        """Lists the readable tables with columns, keys and row counts, all but that of tokens."""
        return as_records(TableInfo, self._store.sql.tables())

    def rows(
        self,
        table: Annotated[Name, Field(description="One of `tables`.")],
        *,
        order: Literal["asc", "desc"] = "asc",
    ) -> Sequence[AnyRow]:
        """Reads all rows of a table as they are stored, in the order of its key."""
        return [dict(row) for row in all_rows(partial(self.page_rows, table, order=order))]

    def page_rows(
        self,
        table: str,
        *,
        order: Literal["asc", "desc"] = "asc",
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Reads a page of a table, after the cursor of the previous page."""
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
        """Runs one SELECT, read-only and for 5 seconds at most."""
        result = self._store.sql.select(sql, limit=limit)
        rows = [[_plain_value(value) for value in row] for row in result.rows]
        return {"columns": [*result.columns], "rows": rows, "more": result.more}

    # --- ledger ----------------------------------------------------------------------------------

    def import_ledger(self, path: str | Path) -> Imported:
        """Adds all calls of another lab's ledger, or none, and keeps existing answers."""
        with self._engine.lock():
            return import_ledger(self._store.database, Path(path))

    def export_ledger(self, path: str | Path, target: str | None = None) -> Exported:
        """Writes the calls behind a study or an experiment, or all, for another lab to import."""
        tags = None if target is None else [row["tag"] for row in self._studies.find(target)]
        return export_ledger(self._store.database, Path(path), tags)

    def show_call(self, id: Id) -> CallTranscript:
        """Shows what was asked in a call, and every attempt at an answer."""
        messages, attempts = self._store.ledger.transcript(id)
        if not messages:
            raise NotFoundError(f"there is no call {id}")
        return {
            "call": id,
            "messages": [
                {"role": message.role, "content": message.content} for message in messages
            ],
            "attempts": [_plain(dict(row)) for row in attempts],
        }

    # --- models ----------------------------------------------------------------------------------

    def axes(self) -> Axes:
        """Lists every knob with its levels and question, and the JSON Schema of a design."""
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
        """Lists providers with what they need, and the named models or those of a provider."""
        from judge_gym.models.simulated import ASSISTANTS, CODERS, JUDGES

        cards = [_model(card) for card in self._cards(provider)]
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
            "providers": [*self._models.providers()],
            "models": cards,
            "simulated": as_records(SimulatedModel, simulated if provider in (None, "sim") else []),
        }

    def show_model(
        self, id: Annotated[Name, Field(description="Its id, or its bare name.")]
    ) -> ModelInfo:
        """Describes a model by its id or its bare name."""
        return _model(self._models.card(self._models.resolve(id)))

    def check_model(self, id: str) -> "ModelCheck":
        """Makes one small call to a model, outside of the ledger: no result depends on it."""
        from judge_gym.models.model_check import check_model

        return asyncio.run(check_model(self._models, self._models.resolve(id)))

    def _cards(self, provider: str | None = None) -> Sequence[ModelCard]:
        """Reads the cards of the named models, or of all priced models of a provider."""
        providers = [*self._models.entries.providers]
        if provider is not None and provider not in providers:
            raise DesignError(unknown("provider", provider, providers), choices=providers)
        ids = self._models.known() if provider is None else self._models.priced(provider)
        return [self._models.card(id) for id in ids]

    def environment(self) -> Sequence[Variable]:
        """Lists the variables that judge-gym reads and whether each is set.

        Values are secrets and never among them, apart from the profile of this session.
        """
        entries = self._models.entries
        variables = dict(VARIABLES)
        for origin in search_origins().values():
            variables |= origin.variables
        for name, provider in entries.providers.items():
            variables |= dict.fromkeys(provider.key_env, f"key of {name}")
            variables |= (
                {provider.base_url_env: f"address of {name}"} if provider.base_url_env else {}
            )
        for name, endpoint in entries.endpoints.items():
            variables |= {endpoint.key_env: f"key of {name}"} if endpoint.key_env else {}
        return [
            {
                "name": name,
                "set": bool(os.environ.get(name, "").strip()),
                "value": self._store.database.profile if name == PROFILE else None,
                "purpose": purpose,
            }
            for name, purpose in variables.items()
        ]


def _model(card: ModelCard) -> ModelInfo:
    prices = card.tariff()
    attributes = {name: getattr(card, name, None) for name in ModelInfo.__annotations__}
    return as_record(
        ModelInfo,
        {
            **attributes,
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
    """Converts a value to JSON, dates and other types of the database to text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return _plain(value)
        case list() | tuple():
            return [_plain_value(item) for item in value]
    return str(value)
