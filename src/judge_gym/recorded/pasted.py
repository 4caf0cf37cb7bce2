"""Reads texts that a user pastes: one per line, or a table, which is asked where both fit."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from judge_gym.errors import DesignError
from judge_gym.recorded.file import read_file
from judge_gym.recorded.options import FileOptions, Role
from judge_gym.recorded.study_items import study_items
from judge_gym.recorded.tables import Table, looks_like_table, parse_table

NAME = "the table"
SHOWN = 3
"""Values of a column that are shown."""
SINGLE = ("item", "text", "truth", "cluster")
"""Roles that one column has."""


class PastedColumn(NamedTuple):
    """A column, what it is taken for, and why; an empty role is not used."""

    name: str
    role: str
    reason: str
    certain: bool
    first: list[str]
    """The first values."""


class PastedTexts(NamedTuple):
    """What was pasted, as items of a study."""

    table: bool
    """Whether it was read as a table."""
    certain: bool
    """Whether it cannot be read as one text per line as well."""
    columns: list[PastedColumn]
    items: list[dict[str, Any]]
    raters: list[str]
    stages: list[str]
    ordered: bool
    questions: list[str]
    """What needs a word of the user."""
    notes: list[str]
    error: str


def read_pasted(
    texts: str,
    *,
    table: bool | None = None,
    roles: Mapping[str, str] | None = None,
    accept: bool = False,
) -> PastedTexts:
    """Reads pasted texts.

    Args:
        texts: what was pasted.
        table: whether it is a table; None for what fits.
        roles: what the user takes each column for, empty for one that is not used; None for what
            is proposed.
        accept: whether what is uncertain is taken as proposed.
    """
    proposed, certain = looks_like_table(texts)
    if not (proposed if table is None else table):
        lines = [line.strip() for line in texts.splitlines() if line.strip()]
        return _nothing(False, certain)._replace(items=[{"text": line} for line in lines])
    nothing = _nothing(True, certain or table is True)
    try:
        whole = parse_table(texts, NAME)
    except DesignError as error:
        return nothing._replace(error=error.message)
    columns = _columns(whole)
    try:
        return _read_table(whole, roles, accept, nothing)
    except DesignError as error:
        known = roles or {}
        shown = [column._replace(role=known.get(column.name, "")) for column in columns]
        return nothing._replace(columns=shown, error=_without_options(error.message))


def _nothing(table: bool, certain: bool) -> PastedTexts:
    return PastedTexts(table, certain, [], [], [], [], True, [], [], "")


def _read_table(
    whole: Table, roles: Mapping[str, str] | None, accept: bool, nothing: PastedTexts
) -> PastedTexts:
    names = [str(name) for name in whole.frame]
    used = whole
    if roles is not None:
        kept = [name for name in names if roles.get(name)]
        used = replace(whole, frame=whole.frame[kept])
    reading = read_file(used, replace(_options(roles or {}), accept=accept), judged=False)
    if (reading.recording.items[["text", "response_a"]] == "").all(axis=None):
        raise DesignError("Say which column has the texts that are judged.")
    items = study_items(reading.recording)
    taken: dict[str, Role] = {}
    for found in reading.roles:
        taken.setdefault(found.column, found)
    columns = _columns(whole)
    for place, name in enumerate(names):
        if role := taken.get(name):
            columns[place] = columns[place]._replace(
                role=role.role, reason=role.reason, certain=role.certain or accept
            )
    return nothing._replace(
        columns=columns,
        items=items.rows,
        raters=items.raters,
        stages=items.stages,
        ordered=items.ordered,
        questions=[question.text for question in reading.questions],
        notes=[
            *map(_without_options, reading.recording.notes),
            *reading.conflicts,
            *map(_without_options, items.notes),
        ],
    )


def _columns(table: Table) -> list[PastedColumn]:
    """Returns the columns of a table, before any is taken for something."""
    return [
        PastedColumn(str(name), "", "not used", True, [*map(str, table.frame[name].head(SHOWN))])
        for name in table.frame
    ]


def _without_options(message: str) -> str:
    """Returns what a message says, without the options of commands, which a form has not.

    >>> _without_options("Which of a and b is positive is not known: --positive a says so.")
    'Which of a and b is positive is not known.'
    """
    return re.sub(r"[:;] (?:(?:say|make|name)\b[^\n;:]*)?--[^\n]*", ".", message)


def _options(roles: Mapping[str, str]) -> FileOptions:
    """Returns what the user says about columns."""
    by_role = {role: name for name, role in roles.items() if role}
    first, second = by_role.get("response_a"), by_role.get("response_b")
    # Parts are found beside a text that nobody names; one that is named stands alone.
    single = [role for role in SINGLE if role != "text" or "part" not in by_role]
    return FileOptions(
        **{role: by_role.get(role) for role in single},  # type: ignore[arg-type]  # of columns
        responses=(first, second) if first and second else None,
        people=tuple(name for name, role in roles.items() if role == "person"),
    )
