"""The registry's two files: the packaged one, and the user's, which is laid over it."""

import tomllib
from collections.abc import Mapping
from datetime import date
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge_gym.errors import DesignError, unknown
from judge_gym.models.cards import Api, Limits, Prices, Structured

USER_FILE = "judge-gym.models.toml"
LIMITS = ("rpm", "burst", "tpm", "input_tpm", "output_tpm", "concurrency")
Limit = Annotated[int, Field(ge=0)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Entry(BaseModel):
    """A table of a file; what is not in it stays as it was."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @property
    def given(self) -> dict[str, Any]:
        """What is in it."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class LimitsEntry(Entry):
    """Limits; 0 is none."""

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
    """What a model has of its own."""

    family: str = ""
    api: Api = "chat"
    version: str = ""
    dated: bool = False
    context: Annotated[int, Field(gt=0)] | None = None
    prices: PricesEntry | None = None
    temperature: bool = True
    seed: bool = False
    structured: Structured = "native"
    web_search: bool = False
    deadline: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 300.0
    first_seen: date | None = None
    scheduled: bool = False


class EndpointEntry(ModelEntry):
    """A server that the user runs or rents, which speaks OpenAI's format."""

    base_url: Annotated[str, Field(pattern=r"^https?://", repr=False)]  # it may hold a password
    key_env: str = ""


class ProviderEntry(ModelEntry):
    """A provider, and what its models have in common."""

    key_env: list[str]
    base_url_env: str = ""
    home: str = ""
    """Its own base URL."""


class Packaged(Entry):
    """The file that judge-gym brings along."""

    hosted: LimitsEntry
    providers: dict[str, ProviderEntry]
    models: dict[str, ModelEntry]


class Users(Entry):
    """The file in the working folder."""

    hosted: LimitsEntry = LimitsEntry()
    providers: dict[str, ModelEntry] = {}
    endpoints: dict[str, EndpointEntry] = {}
    models: dict[str, ModelEntry] = {}


class Entries:
    """Both files as one."""

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
        """Every model that has an entry of its own."""
        ids = dict.fromkeys([*self._packaged.models, *self._users.models])
        return [id for id in ids if not set(id) & set("*?[")]

    @property
    def hosted_limits(self) -> Limits:
        """What all hosted providers together may be asked."""
        return limits("hosted", {**self._packaged.hosted.given, **self._users.hosted.given})

    def facts(self, provider: str, id: str) -> tuple[dict[str, Any], str]:
        """What the files say of a model, and who shares its limits."""
        first: Entry = self.endpoints.get(provider) or self.providers[provider]
        facts, scope = first.given, provider
        if provider in self._users.providers:
            facts |= self._users.providers[provider].given
        for patterns in (self._packaged.models, self._users.models):
            for pattern, entry in patterns.items():
                if pattern == id or fnmatchcase(id, pattern):
                    facts |= entry.given
                    scope = id if set(entry.given) & set(LIMITS) else scope
        return facts, scope


def limits(scope: str, facts: Mapping[str, Any]) -> Limits:
    """The limits among facts."""
    return Limits(scope, **{name: facts.get(name) or None for name in LIMITS})


def prices(facts: Mapping[str, Any]) -> Prices | None:
    """The prices among facts."""
    entry: PricesEntry | None = facts.get("prices")
    return Prices(**entry.model_dump()) if entry else None


def _read(path: Path, packaged: Packaged) -> Users:
    """The user's file; no file is an empty one."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Users()
    except (OSError, UnicodeDecodeError) as fault:
        raise DesignError(f"{path.name} cannot be read: {fault}") from fault
    try:
        users = Users.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as fault:
        raise DesignError(f"{path.name} is broken TOML: {fault}") from fault
    except ValidationError as fault:
        raise _refusal(path.name, fault) from None  # a base URL may hold a password
    for name in users.endpoints:
        if name in packaged.providers or name == "sim" or not name or ":" in name:
            raise DesignError(
                f"{path.name}: endpoints.{name} cannot have that name: "
                "it is a provider's, or no name; choose another"
            )
    _refuse_strangers(path.name, "providers", users.providers, packaged.providers)
    known = [*packaged.providers, *users.endpoints]
    owners = {id.partition(":")[0]: None for id in users.models}
    _refuse_strangers(path.name, "models", owners, known)
    return users


def _refuse_strangers(
    file: str, table: str, names: Mapping[str, Any], known: Mapping[str, Any] | list[str]
) -> None:
    for name in names:
        if name not in known:
            raise DesignError(unknown("provider", name, known, f"{table} in {file}"), choices=known)


def _refusal(file: str, fault: ValidationError) -> DesignError:
    """The first complaint of pydantic in our words: file, key, value, choices."""
    error = fault.errors()[0]
    *above, key = [str(part) for part in error["loc"]]
    where = f"{'.'.join(above) or 'the file'} in {file}"
    path = ".".join([*above, key])
    if error["type"] == "extra_forbidden":
        choices = _keys(above)
        return DesignError(unknown("key", key, choices, where), choices=choices)
    for field, levels in (("structured", get_args(Structured)), ("api", get_args(Api))):
        if key == field:
            return DesignError(f"{file}: {path} is none of {', '.join(levels)}", choices=levels)
    if error["type"] == "missing":
        return DesignError(f"{file}: {path} is not given")
    # A number is said back; a text may be a secret in the wrong place.
    value = f" cannot be {error['input']!r}" if isinstance(error["input"], int | float) else ""
    return DesignError(f"{file}: {path}{value}: {error['msg'].lower()}")


def _keys(above: list[str]) -> list[str]:
    """The keys that a table may have."""
    tables: dict[str | None, type[Entry]] = {
        None: Users,
        "hosted": LimitsEntry,
        "endpoints": EndpointEntry,
        "providers": ModelEntry,
        "models": ModelEntry,
    }
    table = PricesEntry if above[-1:] == ["prices"] else tables[above[0] if above else None]
    return list(table.model_fields)
