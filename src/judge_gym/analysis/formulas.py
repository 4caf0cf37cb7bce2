"""Keeps a spreadsheet from taking text of a CSV file for a formula, and takes the guard off again.

A program that opens the file would compute a cell such as `=HYPERLINK(...)`, whoever wrote it. An
apostrophe before it makes it text.
"""

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa

STARTS = ("=", "+", "-", "@", "\t", "\r")
"""What a formula may begin with, for some program."""
GUARD = "'"
_GUARDED = r"\A'([=+\-@\t\r])"


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a frame in which no text begins as a formula does; numbers stay as they are."""
    escaped: dict[str, pd.Series] = {}
    for name, column in frame.items():
        if column.dtype.kind in "biufM":
            continue
        if column.dtype == object:  # whose values need not be hashable, nor of one type
            values = pd.Series([*map(_escape, column)], column.index, dtype=object)
        else:
            codes, texts = pd.factorize(column)  # each distinct text once
            guarded = pd.Series([*map(_escape, texts), None], dtype=object)
            values = guarded.take(codes).set_axis(column.index)
        escaped[str(name)] = values
    return frame.assign(**escaped).rename(columns=_escape)


def _escape(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(STARTS):
        return value
    try:
        float(value)
    except ValueError:
        return GUARD + value
    return value


def restore_formulas(table: "pa.Table") -> "pa.Table":
    """Returns a table that was read from a CSV file, without the guards of `escape_formulas`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for number, name in enumerate(table.column_names):
        column = table.column(number)
        kind = column.type
        values = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(values) or pa.types.is_large_string(values)):
            continue
        texts = column.cast(values)
        if pc.any(pc.starts_with(texts, GUARD)).as_py():
            texts = pc.replace_substring_regex(texts, pattern=_GUARDED, replacement=r"\1")
            table = table.set_column(number, name, texts.cast(kind))
    return table
