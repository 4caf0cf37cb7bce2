"""Web searches of a model, stored at the beginning of its answer's text.

The ledger stores one text per answer. If a call may search, the text begins with the searches as
quoted lines, and the model's own words follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

HEAD = "> web searches: "
QUERY, SOURCE, ERROR = "> ? ", "> - ", "> ! "


@dataclass(frozen=True, slots=True)
class Search:
    """One web search, as the provider reports it."""

    query: str = ""
    """Empty if the provider does not report it."""
    sources: tuple[str, ...] = ()
    """The addresses of the results."""
    error: str = ""
    """The provider's error message."""


def with_searches(searches: Sequence[Search], text: str) -> str:
    r"""Puts an answer's searches in front of its text.

    >>> with_searches([Search("frob", ("https://a.example",))], "Done.")
    '> web searches: 1\n> ? frob\n> - https://a.example\n\nDone.'
    """
    lines = [f"{HEAD}{len(searches)}"]
    for search in searches:
        lines.append(QUERY + _line(search.query))
        lines += [SOURCE + _line(source) for source in search.sources]
        lines += [ERROR + _line(search.error)] if search.error else []
    return "\n".join(lines) + f"\n\n{text}"


def split_searches(text: str) -> tuple[tuple[Search, ...], str]:
    """Splits the searches at the beginning of a text from the answer after them."""
    if not text.startswith(HEAD):
        return (), text
    head, _, answer = text.partition("\n\n")
    searches: list[Search] = []
    for line in head.split("\n")[1:]:
        mark, content = line[: len(QUERY)], line[len(QUERY) :]
        if mark == QUERY:
            searches.append(Search(content))
        elif mark == SOURCE:
            searches[-1] = replace(searches[-1], sources=(*searches[-1].sources, content))
        elif mark == ERROR:
            searches[-1] = replace(searches[-1], error=content)
    return tuple(searches), answer


def _line(text: str) -> str:
    """Joins a text to one line."""
    return " ".join(text.split())
