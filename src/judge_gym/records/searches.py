"""What a model searched before it answered, kept at the head of its answer's text.

The ledger keeps one text of an answer. Of a call that may search, that text begins with what was
searched, as quoted lines, and the model's own words follow: nothing that is asked, exported or
replayed needs to know more, and what the model says cannot be taken for a search of ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

HEAD = "> web searches: "
QUERY, SOURCE, FAULT = "> ? ", "> - ", "> ! "


@dataclass(frozen=True, slots=True)
class Search:
    """One search, as far as the provider tells of it."""

    query: str = ""
    """Empty where the provider does not say."""
    sources: tuple[str, ...] = ()
    """Addresses of what was found."""
    fault: str = ""
    """Why nothing was found, in the provider's words."""


def with_searches(searches: Sequence[Search], text: str) -> str:
    r"""An answer's text below what was searched for it.

    >>> with_searches([Search("frob", ("https://a.example",))], "Done.")
    '> web searches: 1\n> ? frob\n> - https://a.example\n\nDone.'
    """
    lines = [f"{HEAD}{len(searches)}"]
    for search in searches:
        lines.append(QUERY + _line(search.query))
        lines += [SOURCE + _line(source) for source in search.sources]
        lines += [FAULT + _line(search.fault)] if search.fault else []
    return "\n".join(lines) + f"\n\n{text}"


def split_searches(text: str) -> tuple[tuple[Search, ...], str]:
    """The searches at the head of a text, and the answer below them."""
    if not text.startswith(HEAD):
        return (), text
    head, _, answer = text.partition("\n\n")
    found: list[Search] = []
    for line in head.split("\n")[1:]:
        mark, told = line[: len(QUERY)], line[len(QUERY) :]
        if mark == QUERY:
            found.append(Search(told))
        elif mark == SOURCE:
            found[-1] = replace(found[-1], sources=(*found[-1].sources, told))
        elif mark == FAULT:
            found[-1] = replace(found[-1], fault=told)
    return tuple(found), answer


def _line(text: str) -> str:
    """On one line, whatever it holds."""
    return " ".join(text.split())
