"""Tests over a table: one test checks every row and reports each row that fails."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]
Param = type(pytest.param())


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    ids: Sequence[object] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Runs a test for each row, with the arguments of `pytest.mark.parametrize`, as one test.

    This is far cheaper where a row takes about a millisecond. Rows share the test's fixtures, so
    use it only where a row leaves nothing behind that another row sees.
    """
    single = isinstance(names, str) and "," not in names
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    cases = [_case(row, single) for row in rows]
    assert cases, "a table without rows checks nothing"

    def name(index: int, values: Sequence[Any], id: object) -> object:
        if callable(ids):
            return ids(values[0] if single else values)
        return ids[index] if ids else id or ", ".join(map(repr, values))

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def check(**fixtures: Any) -> None:
            failures = []
            for index, (values, id) in enumerate(cases):
                try:
                    test(**dict(zip(parameters, values, strict=True)), **fixtures)
                except Exception as error:
                    error.add_note(f"row: {name(index, values, id)}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(cases)} rows fail", failures)

        signature = inspect.signature(test)
        kept = [value for key, value in signature.parameters.items() if key not in parameters]
        check.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        del check.__wrapped__
        return check

    return decorate


def _case(row: Any, single: bool) -> tuple[Sequence[Any], object]:
    """Returns the values of a row and its id, if `pytest.param` gives one."""
    if isinstance(row, Param):
        assert not row.marks, "a row of a table has no marks"
        return row.values, row.id
    return ((row,) if single else tuple(row)), None
