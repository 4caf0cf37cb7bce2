"""A query is answered."""

import operator
from collections.abc import Callable
from typing import Any

from records.parser import Among, Comparison, Condition, IsNull, Literal, Name, Not, Query, Value

Row = dict[str, Value]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def run(query: Query, rows: list[Row]) -> list[Row]:
    """The records that a query asks for."""
    found = [row for row in rows if query.where is None or holds(query.where, row) is True]
    for name, descending in reversed(query.order):
        found = _ordered(found, name, descending)
    found = found[: query.limit]
    if not query.fields:
        return [dict(row) for row in found]
    return [{name: row.get(name) for name in query.fields} for row in found]


def _ordered(rows: list[Row], name: str, descending: bool) -> list[Row]:
    """Records by one field, null last; a reversed sort keeps the order of equal ones, too."""

    def rank(row: Row) -> tuple[bool, Any]:
        return isinstance(row[name], str), row[name]

    present = [row for row in rows if row.get(name) is not None]
    absent = [row for row in rows if row.get(name) is None]
    return sorted(present, key=rank, reverse=descending) + absent


def holds(condition: Condition, row: Row) -> bool | None:
    """Whether a condition is true, false or unknown (None) for a record."""
    match condition:
        case Comparison(sign, left, right):
            return _compared(sign, _value(left, row), _value(right, row))
        case Among(field, values):
            value = _value(field, row)
            return None if value is None else any(_compared("=", value, one) for one in values)
        case IsNull(field):
            return _value(field, row) is None
        case Not(part):
            inner = holds(part, row)
            return None if inner is None else not inner
    results = [holds(part, row) for part in condition.parts]
    decisive = condition.word == "or"
    if decisive in results:
        return decisive
    return None if None in results else not decisive


def _value(operand: Name | Literal, row: Row) -> Value:
    return row.get(operand.name) if isinstance(operand, Name) else operand.value


def _compared(sign: str, left: Value, right: Value) -> bool | None:
    if left is None or right is None:
        return False
    if isinstance(left, str) != isinstance(right, str):
        return {"=": False, "!=": True}.get(sign)
    return COMPARE[sign](left, right)
