"""The searches for evidence: their names in study files, and the classes that implement them.

A search is declared by one row here and implemented by one file in `sources/`. Outside packages
declare theirs as entry points of the group `judge_gym.sources`, each an `Origin`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from judge_gym.errors import DesignError, unknown

GROUP = "judge_gym.sources"


@dataclass(frozen=True, slots=True)
class Origin:
    """A search, as study files, commands and pages name it."""

    name: str
    takes: Literal["query", "addresses"]
    """What a study gives after the name: a query, or one or more addresses."""
    label: str
    """The name on pages."""
    source: str
    """Its implementation, as `module:Class`, imported when it is used."""
    paid: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment variables that it reads, and their purposes."""


BUILT_IN = (
    Origin("feeds", "addresses", "RSS and Atom feeds", "judge_gym.sources.feeds:FeedSource"),
    Origin(
        "gdelt",
        "query",
        "GDELT",
        "judge_gym.sources.gdelt:GdeltSource",
        variables={"JUDGE_GYM_GDELT_URL": "address of the source gdelt"},
    ),
    Origin(
        "firecrawl",
        "query",
        "Firecrawl",
        "judge_gym.sources.firecrawl:FirecrawlSource",
        paid=True,
        variables={
            "FIRECRAWL_API_KEY": "key of the source firecrawl",
            "FIRECRAWL_API_URL": "address of the source firecrawl",
        },
    ),
)


@cache
def search_origins() -> Mapping[str, Origin]:
    """Lists every search by its name, those of outside packages last."""
    from importlib.metadata import entry_points

    outside = [entry.load() for entry in entry_points(group=GROUP)]
    return {origin.name: origin for origin in (*BUILT_IN, *outside)}


def find_origin(name: str) -> Origin:
    """Finds the search of a name, or raises an error with the choices."""
    origins = search_origins()
    if name not in origins:
        raise DesignError(unknown("search", name, origins), choices=origins)
    return origins[name]
