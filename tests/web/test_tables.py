"""A table in parts is the table as a whole, whatever its columns hold."""

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import FileResponse

from judge_gym.web import tables
from judge_gym.web.tables import Format

WHOLE = st.integers(-(2**40), 2**40)
KINDS = st.sampled_from(
    [
        WHOLE,
        st.none() | WHOLE,
        st.floats(allow_nan=False, allow_infinity=False),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), min_size=1),
        st.none() | st.sampled_from(["a", 'b, "c"', "d\ne"]),
        st.booleans(),
        st.none() | st.booleans(),
        st.none(),
        st.none() | WHOLE | st.sampled_from(["minor", "major"]),
    ]
)


def sent(frames: list[pd.DataFrame], format: Format) -> bytes:
    answer = tables.sent(frames, format, "x")
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


@settings(max_examples=150, deadline=None)
@given(columns(), st.integers(1, 5))
def test_parts_make_the_same_csv_as_a_whole_frame(made: dict[str, list[Any]], size: int) -> None:
    objects = pd.DataFrame(made, dtype=object)
    parts = [objects.iloc[at : at + size] for at in range(0, len(objects), size)]
    whole = pd.DataFrame(made)
    assert sent([objects.iloc[:0], *parts], "csv").decode() == whole.to_csv(index=False)


@settings(max_examples=60, deadline=None)
@given(columns(), st.integers(1, 5))
def test_parts_make_the_same_parquet_as_one(made: dict[str, list[Any]], size: int) -> None:
    objects = pd.DataFrame(made, dtype=object)
    parts = [objects.iloc[at : at + size] for at in range(0, len(objects), size)]
    found = pd.read_parquet(io.BytesIO(sent([objects.iloc[:0], *parts], "parquet")))
    once = pd.read_parquet(io.BytesIO(sent([objects], "parquet")))
    pd.testing.assert_frame_equal(found, once)
    for name, values in made.items():
        if all(value is None or type(value) in (int, float) for value in values):
            wanted = [float("nan") if value is None else value for value in values]
            assert pd.Series(found[name], dtype="float64").equals(
                pd.Series(wanted, dtype="float64")
            )


def test_what_is_nested_becomes_json() -> None:
    answer = tables.of_rows([{"id": 1, "stages": [{"label": "a, b"}]}], "csv", "x")
    assert isinstance(answer, FileResponse)
    frame = pd.read_csv(answer.path)
    Path(answer.path).unlink()
    assert frame.to_dict("records") == [{"id": 1, "stages": '[{"label": "a, b"}]'}]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_no_rows_are_a_file_too(format: Format) -> None:
    answer = tables.of_rows([], format, "x")
    assert isinstance(answer, FileResponse)
    Path(answer.path).unlink()


def test_a_fault_on_the_way_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(tables, "_write_csv", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tables.of_rows([{"a": 1}], "csv", "x")
    assert list(tmp_path.iterdir()) == []
