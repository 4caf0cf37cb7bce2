"""A table in parts is the table as a whole, whatever its columns hold."""

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from starlette.responses import FileResponse

from judge_gym.analysis.formulas import escape_formulas
from judge_gym.web import tables
from judge_gym.web.tables import Format

WHOLE = st.integers(-(2**40), 2**40)
FLOATS = st.floats(-1e12, 1e12)
KINDS = st.sampled_from(
    [
        WHOLE,
        st.none() | WHOLE,
        FLOATS,
        st.none() | FLOATS,
        st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), min_size=1),
        st.none() | st.sampled_from(["a", 'b, "c"', "d\ne"]),
        st.booleans(),
        st.none() | st.booleans(),
        st.none(),
        st.none() | WHOLE | st.sampled_from(["minor", "major"]),
    ]
)


def sent(frames: list[pd.DataFrame], format: Format) -> bytes:
    answer = tables.download(frames, format, "x")
    assert isinstance(answer, FileResponse)
    path = Path(answer.path)
    written = path.read_bytes()
    path.unlink()
    return written


@st.composite
def columns(draw: st.DrawFn) -> dict[str, list[Any]]:
    length = draw(st.integers(0, 12))
    return {
        f"c{number}": draw(st.lists(draw(KINDS), min_size=length, max_size=length))
        for number in range(draw(st.integers(1, 4)))
    }


def parted(whole: pd.DataFrame, size: int) -> list[pd.DataFrame]:
    """Slices as a database gives them: whole numbers without a gap are integers again."""
    parts = [whole.iloc[:0], *(whole.iloc[at : at + size] for at in range(0, len(whole), size))]
    return [
        part.astype({name: "int64" for name in part if _is_whole(part[name])}) for part in parts
    ]


def _is_whole(column: "pd.Series[Any]") -> bool:
    return column.dtype == "float64" and all(value == value // 1 for value in column)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(columns(), st.integers(1, 5))
def test_parts_make_the_same_csv_as_a_whole_frame(made: dict[str, list[Any]], size: int) -> None:
    whole = pd.DataFrame(made)
    assume(not any(_is_whole(whole[name]) for name in whole))  # these would be integers in one, too
    assert sent(parted(whole, size), "csv").decode() == escape_formulas(whole).to_csv(index=False)


@settings(max_examples=30, deadline=None)
@given(columns(), st.integers(1, 5))
def test_parts_make_the_same_parquet_as_a_whole_frame(
    made: dict[str, list[Any]], size: int
) -> None:
    whole = pd.DataFrame(made)
    assume(not any(_is_whole(whole[name]) for name in whole))
    found = pd.read_parquet(io.BytesIO(sent(parted(whole, size), "parquet")))
    once = pd.read_parquet(io.BytesIO(sent([whole], "parquet")))
    pd.testing.assert_frame_equal(found, once)
    for name in whole.select_dtypes(["int64", "float64"]):
        assert found[name].equals(whole[name])


def test_nested_values_become_json() -> None:
    answer = tables.download_rows([{"id": 1, "stages": [{"label": "a, b"}]}], "csv", "x")
    assert isinstance(answer, FileResponse)
    frame = pd.read_csv(answer.path)
    Path(answer.path).unlink()
    assert frame.to_dict("records") == [{"id": 1, "stages": '[{"label": "a, b"}]'}]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_table_without_rows_is_a_valid_file(format: Format) -> None:
    answer = tables.download_rows([], format, "x")
    assert isinstance(answer, FileResponse)
    Path(answer.path).unlink()


def test_an_error_while_writing_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(tables, "_write_csv", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tables.download_rows([{"a": 1}], "csv", "x")
    assert list(tmp_path.iterdir()) == []
