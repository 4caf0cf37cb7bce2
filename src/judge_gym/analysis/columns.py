"""Columns of samples in one type each, whether a lab, a file or a person wrote them.

Values that repeat are looked at once. What a cell cannot mean is refused by name and row.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from judge_gym.errors import DesignError, unknown

Meaning = TypeVar("Meaning")
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


class Columns:
    """Reads the columns of a frame.

    A column that is missing is one of empty cells. `empty` is what such cells say; None leaves them
    without a value.
    """

    def __init__(self, frame: pd.DataFrame, source: str) -> None:
        self._frame = frame.reset_index(drop=True)
        self._source = source

    def text(self, name: str, empty: str | None = "") -> pd.Series:
        """Words."""
        values = self._column(name)
        if values.dtype == "str":  # most are as they should be: no copy
            blank = values.isna() if empty == "" else values.isna() | (values == "")
            if not blank.any():
                return values
        codes, words = self._read(name, _word)
        filled = [empty if word == "" else word for word in words]
        return pd.Series(pd.array(filled, dtype="str").take(codes))

    def names(self, name: str) -> pd.Series:
        """Words that may not be missing."""
        values = self.text(name)
        self.check(name, values != "", "is missing")
        return values

    def one_of(self, name: str, choices: Sequence[str], empty: str | None = None) -> pd.Series:
        """Words out of these, or what an empty cell says; without that, no cell may be empty."""
        values = self.text(name, empty or "")
        for value in values.unique():
            if value not in choices and value != empty:
                row = int((values == value).argmax()) + 1
                said = unknown(name, value, choices, self._source)
                raise DesignError(f"{said} (sample {row})", choices=choices)
        return values

    def ids(self, name: str, empty: int | None = None) -> pd.Series:
        """Whole numbers, or names."""
        values = self._column(name)
        if is_numeric_dtype(values.dtype) and not (values % 1 > 0).any():
            return self.whole(name, empty)
        return self.names(name) if empty is None else self.text(name, str(empty))

    def levels(self, name: str, empty: str = "") -> pd.Series:
        """Words that repeat, as sorted categories."""
        codes, words = self._read(name, _word)
        known, place = np.unique([word or empty for word in words], return_inverse=True)
        return pd.Series(pd.Categorical.from_codes(place[codes], known.tolist()))

    def flags(self, name: str) -> pd.Series:
        """Yes or no; an empty cell is no."""
        if self._column(name).dtype == bool:
            return self._column(name)
        codes, words = self._read(name, lambda value: _word(value).lower() or "false")
        known = np.array([word in _FLAGS for word in words])
        self.check(name, pd.Series(known[codes]), "is neither true nor false")
        return pd.Series(np.array([_FLAGS[word] for word in words])[codes])

    def numbers(self, name: str, low: float = -np.inf, high: float = np.inf) -> pd.Series:
        """Numbers; an empty cell is not a number."""
        values = self._column(name)
        if not isinstance(values.dtype, np.dtype) or values.dtype.kind not in "iuf":
            codes, found = self._read(name, _number)
            wrong = np.array([number is None for number in found])
            self.check(name, pd.Series(~wrong[codes]), "is no number")
            values = pd.Series(np.array(found, dtype=float)[codes])
        self.check(name, values.between(low, high) | values.isna(), f"is not in {low} to {high}")
        return values

    def whole(self, name: str, empty: int | None = None) -> pd.Series:
        """Whole numbers."""
        values = self.numbers(name)
        if is_integer_dtype(values.dtype):
            return values
        if empty is not None:
            values = values.fillna(empty)
        self.check(name, values % 1 == 0, "is no whole number")
        return values.astype("int64")

    def numbers_or_text(self, name: str) -> pd.Series:
        """Numbers if every cell that is not empty is one, else words."""
        codes, found = self._read(name, _number)
        if None in found:
            return self.text(name, None)
        return pd.Series(np.array(found, dtype=float)[codes])

    def check(self, name: str, right: pd.Series, fault: str) -> None:
        """Refuse the first cell that is not right."""
        if not right.all():
            row = int(right.to_numpy(dtype=bool).argmin())
            value = self._column(name).iloc[row]
            told = repr(value) if isinstance(value, str) else str(value)
            told = "" if pd.isna(value) or value == "" else f" {told}"
            raise DesignError(f"{self._source}: {name}{told} of sample {row + 1} {fault}")

    def _column(self, name: str) -> pd.Series:
        if name in self._frame:
            return self._frame[name]
        return pd.Series(np.full(len(self._frame), np.nan))

    def _read(
        self, name: str, read: Callable[[Any], Meaning]
    ) -> tuple[npt.NDArray[np.intp], list[Meaning]]:
        """Which of the distinct values each row has, and what they mean."""
        codes, distinct = pd.factorize(self._column(name), use_na_sentinel=False)
        return codes, [read("" if pd.isna(value) else value) for value in distinct]


def _word(value: Any) -> str:
    # A column of whole numbers with an empty cell is one of floats: 3.0 was written as 3.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: Any) -> float | None:
    """Not a number where the cell is empty; None where it holds something else."""
    try:
        return float(value) if value != "" else np.nan
    except ValueError:
        return None
