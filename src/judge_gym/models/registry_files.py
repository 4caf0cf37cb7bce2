"""Reads the registry's two files: the packaged one, and the user's, which overrides it."""

import json
import re
import tomllib
from collections.abc import Mapping
from datetime import date
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge_gym.errors import DesignError, unknown
from judge_gym.models.model_card import Api, Limits, Structured
from judge_gym.models.prices import Prices

USER_FILE = "judge-gym.models.toml"
LIMITS = ("rpm", "burst", "tpm", "input_tpm", "output_tpm", "concurrency")
Limit = Annotated[int, Field(ge=0)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Entry(BaseModel):
    """A table of a file; a key that it does not set keeps its value."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    @property
    def given(self) -> dict[str, Any]:
        """The keys that the table sets, with their values."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class LimitsEntry(Entry):
    """Limits; 0 means no limit."""

    rpm: Limit = 0
    burst: Limit = 0
    tpm: Limit = 0
    input_tpm: Limit = 0
    output_tpm: Limit = 0
    concurrency: Limit = 0


class PricesEntry(Entry):
    """US dollars per million tokens, and per thousand web searches."""

    input: Price
    output: Price
    cached: Price | None = None
    search: Price | None = None


class ModelEntry(LimitsEntry):
    """What differs between models."""

    family: str = ""
    api: Api = "chat"
    version: str = ""
    dated: bool = False
    context: Annotated[int, Field(gt=0)] | None = None
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    slots: Annotated[int, Field(gt=0, le=256)] = 1
    prices: PricesEntry | None = None
    temperature: bool = True
    seed: bool = False
    structured: Structured = "native"
    web_search: bool = False
    deadline: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 300.0
    first_seen: date | None = None
    retires: date | None = None


class EndpointEntry(ModelEntry):
    """A server of the user that is compatible with OpenAI's API."""

    base_url: Annotated[str, Field(pattern=r"^https?://", repr=False)]  # it may hold a password
    key_env: str = ""


class ProviderEntry(ModelEntry):
    """A hosted provider, and the defaults of its models."""

    key_env: list[str]
    base_url_env: str = ""
    home: str = ""
    """Its own base URL."""
    priced_as: str = ""
    """Its name in the price data, where that differs."""
    proposed: list[str] = []
    """The names of its models that a schedule should begin with."""


class ScheduleEntry(Entry):
    """What `judge-gym schedule --run` may run, and at what cost."""

    models: Annotated[list[str], Field(min_length=1)]
    usd_per_month: Price
    condition: str = "default"


class Packaged(Entry):
    """The file that judge-gym ships."""

    hosted: LimitsEntry
    providers: dict[str, ProviderEntry]
    models: dict[str, ModelEntry]
    spellings: dict[str, str]
    """Ids by the patterns of how else they are written."""
    retirements: dict[str, list[str]]
    """Patterns of ids by the day that their providers announced."""


class Users(Entry):
    """The file in the working folder."""

    hosted: LimitsEntry = LimitsEntry()
    providers: dict[str, ModelEntry] = {}
    endpoints: dict[str, EndpointEntry] = {}
    models: dict[str, ModelEntry] = {}
    schedule: ScheduleEntry | None = None


class Entries:
    """Both files, merged."""

    def __init__(self, folder: Path) -> None:
        self._packaged = Packaged.model_validate(
            tomllib.loads((resources.files("judge_gym.models") / "registry.toml").read_text())
        )
        self._users = _read(folder / USER_FILE, self._packaged)

    @property
    def providers(self) -> Mapping[str, ProviderEntry]:
        """Hosted providers by name."""
        return self._packaged.providers

    @property
    def endpoints(self) -> Mapping[str, EndpointEntry]:
        """The user's endpoints by name."""
        return self._users.endpoints

    @property
    def named(self) -> list[str]:
        """Every model that has its own entry."""
        ids = dict.fromkeys([*self._packaged.models, *self._users.models])
        return [id for id in ids if not set(id) & set("*?[")]

    @property
    def retirements(self) -> Mapping[str, list[str]]:
        """Patterns of ids by the day that their providers announced."""
        return self._packaged.retirements

    def spell(self, id: str) -> str:
        """Returns the id that a provider has for a model that may be written differently."""
        for pattern, replacement in self._packaged.spellings.items():
            id = re.sub(f"^{pattern}", replacement, id)
        return id

    @property
    def schedule(self) -> ScheduleEntry | None:
        """What the user's file schedules."""
        return self._users.schedule

    @property
    def searching(self) -> list[str]:
        """The providers and model patterns whose packaged entry allows web search."""
        tables = {**self._packaged.providers, **self._packaged.models}
        return [name for name, entry in tables.items() if entry.web_search]

    @property
    def hosted_limits(self) -> Limits:
        """The limits of all hosted providers together."""
        return limits("hosted", {**self._packaged.hosted.given, **self._users.hosted.given})

    def facts(self, provider: str, id: str) -> tuple[dict[str, Any], str]:
        """Returns what the files say about a model, and the scope that shares its limits."""
        first: Entry = self.endpoints.get(provider) or self.providers[provider]
        facts, scope = first.given, provider
        for day, retired in self.retirements.items():
            if any(fnmatchcase(id, pattern) for pattern in retired):
                facts["retires"] = date.fromisoformat(day)
        if provider in self._users.providers:
            facts |= self._users.providers[provider].given
        for patterns in (self._packaged.models, self._users.models):
            for pattern, entry in patterns.items():
                if pattern == id or fnmatchcase(id, pattern):
                    facts |= entry.given
                    scope = id if set(entry.given) & set(LIMITS) else scope
        return facts, scope


def limits(scope: str, facts: Mapping[str, Any]) -> Limits:
    """Returns the limits among a model's facts."""
    return Limits(scope, **{name: facts.get(name) or None for name in LIMITS})


def prices(facts: Mapping[str, Any]) -> Prices | None:
    """Returns the prices among a model's facts."""
    entry: PricesEntry | None = facts.get("prices")
    return Prices(**entry.model_dump()) if entry else None


def _read(path: Path, packaged: Packaged) -> Users:
    """Reads the user's file; a missing one is empty."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Users()
    except (OSError, UnicodeDecodeError) as error:
        raise DesignError(f"{path.name} cannot be read: {error}") from error
    try:
        users = Users.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise DesignError(f"{path.name} is broken TOML: {error}") from error
    except ValidationError as error:
        raise _refusal(path.name, error) from None  # a base URL may hold a password
    for name in users.endpoints:
        if name in packaged.providers or name == "sim" or not name or ":" in name:
            raise DesignError(
                f"{path.name}: endpoints.{name} cannot have that name: "
                "a provider has it, or it is not a valid name; choose another"
            )
    _refuse_unknown(path.name, "providers", users.providers, packaged.providers)
    owner_names = [*packaged.providers, *users.endpoints]
    owners = {id.partition(":")[0]: None for id in users.models}
    _refuse_unknown(path.name, "models", owners, owner_names)
    return users


def _refuse_unknown(
    file: str, table: str, names: Mapping[str, Any], known: Mapping[str, Any] | list[str]
) -> None:
    for name in names:
        if name not in known:
            raise DesignError(unknown("provider", name, known, f"{table} in {file}"), choices=known)


def _refusal(file: str, invalid: ValidationError) -> DesignError:
    """Returns pydantic's first error as ours: file, key, value, choices."""
    error = invalid.errors()[0]
    *above, key = [str(part) for part in error["loc"]]
    where = f"{'.'.join(above) or 'the file'} in {file}"
    path = ".".join([*above, key])
    if error["type"] == "extra_forbidden":
        choices = _keys(above)
        return DesignError(unknown("key", key, choices, where), choices=choices)
    for field, levels in (("structured", get_args(Structured)), ("api", get_args(Api))):
        if key == field:
            return DesignError(f"{file}: {path} is not one of {', '.join(levels)}", choices=levels)
    if error["type"] == "missing":
        return DesignError(f"{file}: {path} is missing")
    # A number is repeated; a text may be a secret in the wrong place.
    value = f" cannot be {error['input']!r}" if isinstance(error["input"], int | float) else ""
    return DesignError(f"{file}: {path}{value}: {error['msg'].lower()}")


def _keys(above: list[str]) -> list[str]:
    """Returns the keys that a table may have."""
    tables: dict[str | None, type[Entry]] = {
        None: Users,
        "hosted": LimitsEntry,
        "endpoints": EndpointEntry,
        "providers": ModelEntry,
        "models": ModelEntry,
        "schedule": ScheduleEntry,
    }
    table = PricesEntry if above[-1:] == ["prices"] else tables[above[0] if above else None]
    return list(table.model_fields)


# --- writing -------------------------------------------------------------------------------------

SCHEDULE = re.compile(r"^\[schedule\][^\n]*\n(?:(?!\[)[^\n]*\n?)*", re.M)


def write_schedule(folder: Path, entry: ScheduleEntry) -> Path:
    """Writes the table `[schedule]` into the user's file, in place of one that it has."""
    path = folder / USER_FILE
    models = "".join(f"    {json.dumps(model)},\n" for model in entry.models)
    table = (
        "[schedule]  # what judge-gym schedule --run may run\n"
        f"models = [\n{models}]\n"
        f"usd_per_month = {entry.usd_per_month:g}\n"
        f"condition = {json.dumps(entry.condition)}\n"
    )
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if SCHEDULE.search(text):
        text = SCHEDULE.sub(lambda found: table + ("\n" if found.end() < len(text) else ""), text)
    else:
        text = f"{text.rstrip()}\n\n{table}".lstrip()
    tomllib.loads(text)  # a file that cannot be read back is not written
    path.write_text(text, encoding="utf-8")
    return path
