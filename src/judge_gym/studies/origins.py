"""The parts of a study file that say where evidence and reference answers come from."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from judge_gym.errors import DesignError, unknown
from judge_gym.records import TaskType, find_origin, search_origins
from judge_gym.studies.yaml_lines import Path


class Spec(BaseModel):
    """A part of a study file: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class WindowSpec(Spec):
    """The country and the period of a pool's evidence, as far as they matter."""

    country: str = ""
    """Needed under a protocol."""
    start: Annotated[date, Field(strict=False)] | None = None
    end: Annotated[date, Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "WindowSpec":
        if self.start and self.end and self.start > self.end:
            raise ValueError("a window ends after it starts")
        return self


FIXED = ("files", "items", "pool", "benchmark", "judgebench")
"""Origins with fixed content; every other origin is a search."""


class PoolSpec(Spec):
    """A named pool and its origin; a window alone selects the lab's evidence from that window.

    It may also name one search of `records.search_origins`, such as `gdelt`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)

    files: str | list[str] | None = None
    items: list[str | dict[str, Any]] | None = Field(None, min_length=1)
    """Texts, or items as in a line of a file, in the study file itself."""
    pool: str | None = None
    """The name of a frozen pool."""
    benchmark: str | None = None
    """A folder."""
    judgebench: str | None = None
    """A file of JudgeBench's pairs."""
    window: WindowSpec | None = None
    query: str = ""
    """What articles of feeds must contain."""
    labels: list[str] = []
    """The columns in which people gave the stage of an item, one per rater."""
    limit: int = Field(100, ge=1, le=10_000)
    """The largest number of articles that a search keeps."""

    @classmethod
    def for_search(
        cls, origin: str, query: str, addresses: Sequence[str] = (), **options: Any
    ) -> "PoolSpec":
        """Returns a pool that a search fills; `options` are further keys, such as `limit`."""
        takes = find_origin(origin).takes
        if takes == "addresses":
            if not addresses:
                raise DesignError(f"the search {origin} needs addresses")
            options |= {origin: [*addresses], "query": query}
            return cls(**options)
        if not query.strip():
            raise DesignError(f"the search {origin} needs a query")
        if addresses:
            raise DesignError(f"the search {origin} takes a query and no addresses")
        return cls(**{**options, origin: query})

    @property
    def origins(self) -> list[str]:
        """The origins that are given; a valid pool has one, or only a window."""
        fixed = [name for name in FIXED if getattr(self, name) is not None]
        return fixed + [name for name, value in self._searches.items() if value is not None]

    @property
    def origin(self) -> str | None:
        """The origin; None if only a window is given."""
        return next(iter(self.origins), None)

    @property
    def is_benchmark(self) -> bool:
        """Whether the origin has its own concept, rubric and design."""
        return self.origin in ("benchmark", "judgebench")

    @property
    def searched(self) -> bool:
        """Whether the origin is a search."""
        return self.origin is not None and self.origin not in FIXED

    @property
    def addresses(self) -> list[str]:
        """The addresses of a search that takes addresses; empty for any other origin."""
        if not self.searched or find_origin(str(self.origin)).takes != "addresses":
            return []
        value = self._searches[str(self.origin)]
        return [value] if isinstance(value, str) else list(value)

    @property
    def search_query(self) -> str:
        """The query of a search, from its own key or from `query`."""
        if self.searched and find_origin(str(self.origin)).takes == "query":
            return str(self._searches[str(self.origin)])
        return self.query

    @property
    def _searches(self) -> dict[str, Any]:
        return self.model_extra or {}

    @classmethod
    def keys(cls) -> set[str]:
        """Returns every key that a pool may have."""
        return {*cls.model_fields, *search_origins()}


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
    """V-Dem's name of the country; by default the window's."""
    year: int | None = Field(None, ge=1)
    """By default the year in which the window starts."""

    def reference(self) -> dict[str, Any]:
        """Returns the part that is stored for analyses."""
        fields = {"source": self.source, "value": self.value, "label": self.label}
        present = {name: value for name, value in fields.items() if value is not None}
        return present | {"direction": self.direction or "up"}


def check_pool(pool: PoolSpec, path: Path) -> None:
    """Refuses an unknown origin, more than one, or keys that cannot act on it."""
    _check_searches(pool, path)
    origin_names = pool.origins
    if len(origin_names) > 1:
        raise DesignError(
            f"evidence comes from one origin, not from {' and '.join(origin_names)}", path=path
        )
    if not origin_names and pool.window is None:
        choices = (*FIXED[:2], *search_origins(), *FIXED[2:])
        raise DesignError(
            f"evidence needs an origin: {', '.join(choices)}, or a window that the lab holds",
            choices=choices,
            path=path,
        )
    if pool.searched and pool.window is None:
        raise DesignError(
            f"{pool.origin} searches a window, such as window: {{country: NAME, start: DATE, "
            "end: DATE}",
            path=path,
        )
    if pool.origin in ("pool", "benchmark", "judgebench") and pool.window is not None:
        raise DesignError(
            f"a {pool.origin} takes no window; leave window out", path=(*path, "window")
        )
    if pool.query and not pool.addresses:
        queries = [name for name, origin in search_origins().items() if origin.takes == "query"]
        raise DesignError(
            f"query is a key of feeds; {' and '.join(queries)} take their own", path=path
        )
    if "limit" in pool.model_fields_set and not pool.searched:
        searches = ", ".join(search_origins())
        raise DesignError(
            f"limit is a key of searches ({searches}); here every item is judged",
            path=(*path, "limit"),
        )
    if pool.labels and pool.files is None and pool.items is None:
        raise DesignError("labels are columns of files or items", path=(*path, "labels"))
    if len(set(pool.labels)) < len(pool.labels):
        raise DesignError("labels names a column twice", path=(*path, "labels"))
    for address in pool.addresses:
        if address.strip() and not address.startswith(("http://", "https://")):
            raise DesignError(
                f"{address!r} is not the address of a feed; it begins with http:// or https://",
                path=(*path, str(pool.origin)),
            )
    texts = pool.addresses or [pool.search_query]
    if pool.searched and not all(text.strip() for text in texts):
        raise DesignError(f"{pool.origin} is empty", path=(*path, str(pool.origin)))


def _check_searches(pool: PoolSpec, path: Path) -> None:
    """Refuses a key that is not a search, and a value that its search does not take."""
    key_path = ".".join(map(str, path))
    for name, value in (pool.model_extra or {}).items():
        if name not in search_origins():
            choices = sorted(PoolSpec.keys())
            raise DesignError(
                unknown("key", name, choices, key_path), choices=choices, path=(*path, name)
            )
        takes = search_origins()[name].takes
        parts = value if takes == "addresses" and isinstance(value, list) else [value]
        if value is not None and not all(isinstance(part, str) for part in parts):
            raise DesignError(
                f"{key_path}.{name} cannot be {value!r}: it takes a "
                f"{'query' if takes == 'query' else 'list of addresses'}",
                path=(*path, name),
            )


def check_truth(truth: TruthSpec, path: Path, task_type: TaskType | None) -> None:
    """Refuses a reference of a contested task, and one that is given and looked up, or neither."""
    if task_type == "ecc":
        raise DesignError(
            "a contested task (ecc) has no ground truth: its answer is what judges may disagree "
            "about; leave the truth out, or choose the type control or benchmark",
            path=path,
        )
    if truth.vdem is None and not truth.source:
        raise DesignError("truth.source is not given", path=path)
    looked_up = {"index", "country", "year"} & truth.model_fields_set
    if truth.vdem is None and looked_up:
        raise DesignError(f"truth.{min(looked_up)} belongs to truth.vdem", path=path)
    keys = {"source", "value", "label"} & truth.model_fields_set
    if truth.vdem is not None and keys:
        raise DesignError(
            f"a truth is given (truth.{min(keys)}) or looked up (truth.vdem), not both", path=path
        )
