"""Text of others is not computed by the spreadsheet that opens a file."""

import io

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv

from judge_gym.analysis.formulas import escape_formulas, restore_formulas

RISKY = ['=HYPERLINK("http://x.example")', "+1+2", "-2+3", "@SUM(A1)", "\tx", "\rx"]
HARMLESS = ["a=b", "'quoted", "-0.5", "+1", "1e5", "", " =x"]


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_only_text_that_a_spreadsheet_would_compute_gets_an_apostrophe(dtype: str) -> None:
    frame = pd.DataFrame({"text": pd.Series([*RISKY, *HARMLESS], dtype=dtype)})
    escaped = escape_formulas(frame)["text"].tolist()
    assert escaped == [*(f"'{text}" for text in RISKY), *HARMLESS]


def test_numbers_gaps_and_lists_stay_as_they_are() -> None:
    frame = pd.DataFrame({"n": [-1.5, None], "flag": [True, False], "cells": [["=x"], None]})
    pd.testing.assert_frame_equal(escape_formulas(frame), frame)
    gaps = pd.DataFrame({"text": pd.Series(["=x", None], [4, 7], dtype="category")})
    escaped = escape_formulas(gaps)["text"]
    assert escaped.index.tolist() == [4, 7]
    assert escaped[4] == "'=x" and pd.isna(escaped[7])


def test_a_heading_may_not_be_a_formula_either() -> None:
    assert list(escape_formulas(pd.DataFrame({"=x": [1], "y": [2]}))) == ["'=x", "y"]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_what_was_escaped_is_read_as_it_was(kind: pa.DataType) -> None:
    texts = [*RISKY[:-1], *HARMLESS, "=x"]  # a lone carriage return ends a line for some readers
    file = io.BytesIO()
    escape_formulas(pd.DataFrame({"text": texts, "n": range(len(texts))})).to_csv(file, index=False)
    file.seek(0)
    table = csv.read_csv(
        file,
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types={"text": kind}),
    )
    restored = restore_formulas(table)
    assert restored["text"].to_pylist() == texts
    assert restored["text"].type == kind and restored["n"] == table["n"]
