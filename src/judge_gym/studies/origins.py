"""Where evidence and reference answers come from, as a study file says it."""

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from judge_gym.errors import DesignError
from judge_gym.studies.lines import Path


class Spec(BaseModel):
    """A part of a study file: frozen, and refuses what it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class WindowSpec(Spec):
    """Where and when a pool's evidence comes from."""

    country: str = Field(min_length=1)
    start: Annotated[date, Field(strict=False)] | None = None
    end: Annotated[date, Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "WindowSpec":
        if self.start and self.end and self.start > self.end:
            raise ValueError("a window ends after it starts")
        return self


SEARCHES = ("feeds", "gdelt", "firecrawl")
ORIGINS = ("files", *SEARCHES, "pool", "benchmark", "judgebench")


class PoolSpec(Spec):
    """A named pool and where it comes from; a window alone means what the lab holds of it."""

    files: str | list[str] | None = None
    feeds: str | list[str] | None = None
    gdelt: str | None = None
    """The query."""
    firecrawl: str | None = None
    """The query."""
    pool: str | None = None
    """The name of a frozen pool."""
    benchmark: str | None = None
    """A folder."""
    judgebench: str | None = None
    """A file of JudgeBench's pairs."""
    window: WindowSpec | None = None
    query: str = ""
    """What articles of feeds must hold."""
    limit: int = Field(100, ge=1, le=10_000)
    """How many articles a search keeps at most."""

    @property
    def origin(self) -> str | None:
        """Which of the origins is given; None where only a window is."""
        return next((name for name in ORIGINS if getattr(self, name) is not None), None)

    @property
    def addresses(self) -> list[str]:
        """The feeds."""
        return [self.feeds] if isinstance(self.feeds, str) else self.feeds or []

    @property
    def wanted(self) -> str:
        """The query, wherever it stands."""
        return self.gdelt or self.firecrawl or self.query


class TruthSpec(Spec):
    """A reference answer, for analysis only: given, or looked up in V-Dem's table."""

    source: str = ""
    value: float | None = None
    label: str | None = None
    direction: Literal["up", "down"] | None = None
    vdem: str | None = None
    """The published country-year CSV."""
    index: str = "v2x_libdem"
    country: str | None = None
    """As V-Dem names it; else the window's."""
    year: int | None = Field(None, ge=1)
    """Else the year in which the window starts."""

    def reference(self) -> dict[str, Any]:
        """What analysis gets to know."""
        given = {"source": self.source, "value": self.value, "label": self.label}
        known = {name: value for name, value in given.items() if value is not None}
        return known | {"direction": self.direction or "up"}


def check_pool(pool: PoolSpec, path: Path) -> None:
    """Refuse an origin that is none, or with keys that cannot act on it."""
    given = [name for name in ORIGINS if getattr(pool, name) is not None]
    if len(given) > 1:
        raise DesignError(
            f"evidence comes from one origin, not from {' and '.join(given)}", path=path
        )
    if not given and pool.window is None:
        raise DesignError(
            f"evidence needs an origin: {', '.join(ORIGINS)}, or a window that the lab holds",
            choices=ORIGINS,
            path=path,
        )
    if pool.origin in SEARCHES and pool.window is None:
        raise DesignError(
            f"{pool.origin} searches a window, such as window: {{country: NAME, start: DATE, "
            "end: DATE}",
            path=path,
        )
    if pool.origin in ("pool", "benchmark", "judgebench") and pool.window is not None:
        raise DesignError(
            f"a {pool.origin} is what it is; leave window out", path=(*path, "window")
        )
    if pool.query and pool.origin != "feeds":
        raise DesignError("query belongs to feeds; gdelt and firecrawl are a query", path=path)
    if "limit" in pool.model_fields_set and pool.origin not in SEARCHES:
        raise DesignError(
            f"limit is of a search ({', '.join(SEARCHES)}); here everything is judged",
            path=(*path, "limit"),
        )
    for address in pool.addresses:
        if address.strip() and not address.startswith(("http://", "https://")):
            raise DesignError(
                f"{address!r} is no address of a feed; it begins with http:// or https://",
                path=(*path, "feeds"),
            )
    texts = pool.addresses if pool.origin == "feeds" else [pool.wanted]
    if pool.origin in SEARCHES and not (texts and all(text.strip() for text in texts)):
        raise DesignError(f"{pool.origin} is empty", path=(*path, str(pool.origin)))


def check_truth(truth: TruthSpec, path: Path) -> None:
    """Refuse a reference that is both given and looked up, or neither."""
    if truth.vdem is None and not truth.source:
        raise DesignError("truth.source is not given", path=path)
    looked_up = {"index", "country", "year"} & truth.model_fields_set
    if truth.vdem is None and looked_up:
        raise DesignError(f"truth.{min(looked_up)} belongs to truth.vdem", path=path)
    given = {"source", "value", "label"} & truth.model_fields_set
    if truth.vdem is not None and given:
        raise DesignError(
            f"a truth is given (truth.{min(given)}) or looked up (truth.vdem), not both", path=path
        )
