"""Where the sidebar leads: five words for everybody, and the pages of operators."""

from typing import NamedTuple


class Entry(NamedTuple):
    """A link of the sidebar."""

    path: str
    title: str
    open: bool
    """Whether it leads to the page that is shown."""


PAGES = {
    "/": ("Studies", ("/studies/", "/experiments/", "/samples/", "/new", "/compare", "/report/")),
    "/suites": ("Suites", ("/experiment/", "/model/")),
    "/evidence": ("Items", ("/pools", "/windows/", "/labels")),
    "/models": ("Models", ()),
    "/usage": ("Spend", ()),
}
"""Title by path, and how the paths of other pages begin that belong there."""
OPERATORS = {
    "/experiments": "Experiments",
    "/schedule": "Schedule",
    "/tokens": "Tokens",
    "/query": "Query",
    "/reference": "API",
}


def navigation(path: str) -> list[Entry]:
    """Lists the links that everybody needs."""
    return [
        Entry(place, title, path == place or path.startswith((*below, *_inside(place))))
        for place, (title, below) in PAGES.items()
    ]


def operators(path: str) -> list[Entry]:
    """Lists the links that whoever runs the lab needs."""
    return [Entry(place, title, path == place) for place, title in OPERATORS.items()]


def _inside(place: str) -> tuple[str, ...]:
    return () if place == "/" else (place,)
