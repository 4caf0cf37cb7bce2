"""Reads columns of samples into one type each, whether a lab, a file or a person wrote them.

Repeated values are parsed once. An invalid cell is refused with its column, value and row.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from judge_gym.errors import DesignError, unknown

Parsed = TypeVar("Parsed")
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


class Columns:
    """Reads the columns of a frame.

    A missing column counts as one of empty cells. `empty` is the value of empty cells; None keeps
    them missing.
    """

    def __init__(self, frame: pd.DataFrame, source: str) -> None:
        self._frame = frame.reset_index(drop=True)
        self._source = source

    def text(self, name: str, empty: str | None = "") -> pd.Series:
        """Returns a column of text."""
        values = self._column(name)
        if values.dtype == "str":  # the usual case needs no copy
            blank = values.isna() if empty == "" else values.isna() | (values == "")
            if not blank.any():
                return values
        codes, texts = self._parsed(name, _text)
        filled = [empty if text == "" else text for text in texts]
        return pd.Series(pd.array(filled, dtype="str").take(codes))

    def required_text(self, name: str) -> pd.Series:
        """Returns a column of text without empty cells."""
        values = self.text(name)
        self.check(name, values != "", "is missing")
        return values

    def one_of(self, name: str, choices: Sequence[str], empty: str | None = None) -> pd.Series:
        """Returns a column of the given choices; cells may be empty only if `empty` is given."""
        values = self.text(name, empty or "")
        for value in values.unique():
            if value not in choices and value != empty:
                row = int((values == value).argmax()) + 1
                message = unknown(name, value, choices, self._source)
                raise DesignError(f"{message} (sample {row})", choices=choices)
        return values

    def ids(self, name: str, empty: int | None = None) -> pd.Series:
        """Returns a column of integers, or of text if some cell is not an integer."""
        values = self._column(name)
        if is_numeric_dtype(values.dtype) and not (values % 1 > 0).any():
            return self.integers(name, empty)
        return self.required_text(name) if empty is None else self.text(name, str(empty))

    def levels(self, name: str, empty: str = "") -> pd.Series:
        """Returns a column of repeated text as sorted categories."""
        codes, texts = self._parsed(name, _text)
        known, place = np.unique([text or empty for text in texts], return_inverse=True)
        return pd.Series(pd.Categorical.from_codes(place[codes], known.tolist()))

    def flags(self, name: str) -> pd.Series:
        """Returns a column of booleans; an empty cell is false."""
        if self._column(name).dtype == bool:
            return self._column(name)
        codes, texts = self._parsed(name, lambda value: _text(value).lower() or "false")
        known = np.array([text in _FLAGS for text in texts])
        self.check(name, pd.Series(known[codes]), "is neither true nor false")
        return pd.Series(np.array([_FLAGS[text] for text in texts])[codes])

    def numbers(self, name: str, low: float = -np.inf, high: float = np.inf) -> pd.Series:
        """Returns a column of numbers; an empty cell is not a number."""
        values = self._column(name)
        if not isinstance(values.dtype, np.dtype) or values.dtype.kind not in "iuf":
            codes, parsed = self._parsed(name, _number)
            wrong = np.array([number is None for number in parsed])
            self.check(name, pd.Series(~wrong[codes]), "is not a number")
            values = pd.Series(np.array(parsed, dtype=float)[codes])
        inside = values.between(low, high) | values.isna()
        self.check(name, inside, f"is not between {low} and {high}")
        return values

    def integers(self, name: str, empty: int | None = None) -> pd.Series:
        """Returns a column of integers."""
        values = self.numbers(name)
        if is_integer_dtype(values.dtype):
            return values
        if empty is not None:
            values = values.fillna(empty)
        self.check(name, values % 1 == 0, "is not a whole number")
        return values.astype("int64")

    def numbers_or_text(self, name: str) -> pd.Series:
        """Returns a column of numbers if every cell that is not empty is one, else of text."""
        codes, parsed = self._parsed(name, _number)
        if None in parsed:
            return self.text(name, None)
        return pd.Series(np.array(parsed, dtype=float)[codes])

    def check(self, name: str, valid: pd.Series, problem: str) -> None:
        """Refuses the first cell that is not valid, with its value and row."""
        if not valid.all():
            row = int(valid.to_numpy(dtype=bool).argmin())
            value = self._column(name).iloc[row]
            text = repr(value) if isinstance(value, str) else str(value)
            text = "" if pd.isna(value) or value == "" else f" {text}"
            raise DesignError(f"{self._source}: {name}{text} of sample {row + 1} {problem}")

    def _column(self, name: str) -> pd.Series:
        if name in self._frame:
            return self._frame[name]
        return pd.Series(np.full(len(self._frame), np.nan))

    def _parsed(
        self, name: str, parse: Callable[[Any], Parsed]
    ) -> tuple[npt.NDArray[np.intp], list[Parsed]]:
        """Returns the code of each row's value, and the parsed distinct values."""
        codes, distinct = pd.factorize(self._column(name), use_na_sentinel=False)
        return codes, [parse("" if pd.isna(value) else value) for value in distinct]


def _text(value: Any) -> str:
    # Integers with an empty cell among them are read as floats: 3.0 was written as 3.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: Any) -> float | None:
    """Returns the number, NaN if the cell is empty, or None if it holds something else."""
    try:
        return float(value) if value != "" else np.nan
    except ValueError:
        return None
