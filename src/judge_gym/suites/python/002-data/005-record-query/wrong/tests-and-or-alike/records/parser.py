"""Tokens become a query."""

from dataclasses import dataclass

from records.lexer import QueryError, Token, tokens

Value = str | int | float | None
SIGNS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Name:
    """A field."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A number or a string."""

    value: Value


@dataclass(frozen=True)
class Comparison:
    """Two operands, and how they are compared."""

    sign: str
    left: Name | Literal
    right: Name | Literal


@dataclass(frozen=True)
class Among:
    """Whether a field is one of some values."""

    field: Name
    values: tuple[Value, ...]


@dataclass(frozen=True)
class IsNull:
    """Whether a field is null."""

    field: Name


@dataclass(frozen=True)
class Not:
    """The opposite."""

    part: "Condition"


@dataclass(frozen=True)
class Several:
    """Conditions that are combined by `and` or `or`."""

    word: str
    parts: tuple["Condition", ...]


Condition = Comparison | Among | IsNull | Not | Several


@dataclass(frozen=True)
class Query:
    """What is asked; no fields means all."""

    fields: tuple[str, ...]
    where: Condition | None
    order: tuple[tuple[str, bool], ...]
    limit: int | None


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def takes(self, *kinds: str) -> bool:
        """Whether the next token is of a kind, and then step over it."""
        if self.next.kind not in kinds:
            return False
        self._at += 1
        return True

    def take(self, *kinds: str) -> Token:
        """The next token, which must be of a kind."""
        token = self.next
        if not self.takes(*kinds):
            raise QueryError(token.position)
        return token

    def names(self) -> tuple[str, ...]:
        found = [self.take("name").text]
        while self.takes(","):
            found.append(self.take("name").text)
        return tuple(found)

    def order(self) -> tuple[tuple[str, bool], ...]:
        keys: list[tuple[str, bool]] = []
        while not keys or self.takes(","):
            name = self.take("name").text
            descending = self.takes("desc")
            if not descending:
                self.takes("asc")
            keys.append((name, descending))
        return tuple(keys)

    def limit(self) -> int:
        token = self.take("number")
        if not token.text.isdigit():
            raise QueryError(token.position)
        return int(token.text)

    def either(self) -> Condition:
        found = self.opposite()
        while self.next.kind in ("and", "or"):
            word = self.take("and", "or").kind
            found = Several(word, (found, self.opposite()))
        return found

    def opposite(self) -> Condition:
        if self.takes("not"):
            return Not(self.opposite())
        if self.takes("("):
            inner = self.either()
            self.take(")")
            return inner
        return self.comparison()

    def comparison(self) -> Condition:
        left = self.operand()
        if isinstance(left, Name) and self.takes("in"):
            self.take("(")
            values = [self.literal()]
            while self.takes(","):
                values.append(self.literal())
            self.take(")")
            return Among(left, tuple(values))
        if isinstance(left, Name) and self.takes("is"):
            opposite = self.takes("not")
            self.take("null")
            return Not(IsNull(left)) if opposite else IsNull(left)
        sign = self.take(*SIGNS).text
        return Comparison(sign, left, self.operand())

    def operand(self) -> Name | Literal:
        if self.next.kind == "name":
            return Name(self.take("name").text)
        return Literal(self.literal())

    def literal(self) -> Value:
        token = self.take("number", "string")
        if token.kind == "string":
            return token.text[1:-1].replace("''", "'")
        return float(token.text) if "." in token.text else int(token.text)


def parse(text: str) -> Query:
    """Read a query."""
    reader = _Reader(text)
    reader.take("select")
    fields = () if reader.takes("*") else reader.names()
    where = reader.either() if reader.takes("where") else None
    order: tuple[tuple[str, bool], ...] = ()
    if reader.takes("order"):
        reader.take("by")
        order = reader.order()
    limit = reader.limit() if reader.takes("limit") else None
    reader.take("end")
    return Query(fields, where, order, limit)
