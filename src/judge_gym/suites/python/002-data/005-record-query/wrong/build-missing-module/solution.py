"""Queries over records."""

from records.engine import run
from records.errors import QueryError
from records.parser import Value, parse

__all__ = ["QueryError", "query"]


def query(text: str, rows: list[dict[str, Value]]) -> list[dict[str, Value]]:
    """Answer a query."""
    return run(parse(text), rows)
