"""A text becomes tokens."""

import re
from dataclasses import dataclass

KEYWORDS = frozenset("select where order by asc desc limit and or not in is null".split())
TOKEN = re.compile(
    r"\s*(?:(?P<number>-?[0-9]+(?:\.[0-9]+)?)|(?P<word>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<string>'(?:[^']|'')*')|(?P<sign>!=|<=|>=|[=<>(),*]))"
)


class QueryError(ValueError):
    """A text is no query."""

    def __init__(self, position: int) -> None:
        super().__init__(f"unexpected at {position}")
        self.position = position


@dataclass(frozen=True)
class Token:
    """A part of a query: its kind is `name`, `number`, `string`, `end`, `unknown`, or its own text."""

    kind: str
    text: str
    position: int


def tokens(text: str) -> list[Token]:
    """Every token of a text, and an end; the first character that begins no token ends them, too."""
    made: list[Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = TOKEN.match(text, at)
        if not match or match.lastgroup is None:
            bad = next(n for n in range(at, end) if not text[n].isspace())
            return [*made, Token("unknown", text[bad], bad)]
        part = match[match.lastgroup]
        kind = match.lastgroup
        if kind == "word":
            kind = part.lower() if part.lower() in KEYWORDS else "name"
        elif kind == "sign":
            kind = part
        made.append(Token(kind, part, match.start(match.lastgroup)))
        at = match.end()
    return [*made, Token("end", "", len(text))]
