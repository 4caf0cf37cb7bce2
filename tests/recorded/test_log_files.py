import io
import json
import struct
import zipfile
from pathlib import Path

import pytest

from judge_gym.errors import DesignError
from judge_gym.recorded import files
from judge_gym.recorded.files import Archive, JsonReader, rows_of


def test_a_document_longer_than_a_chunk_is_read_part_by_part() -> None:
    rows = [{"number": number, "text": "é" * (number % 50)} for number in range(20_000)]
    document = json.dumps({"before": [1, {"a": 2}], "rows": rows, "after": 12.5}, indent=1)
    reader = JsonReader(io.BytesIO(document.encode()), "x")
    parts = {}
    for key in reader.keys():
        parts[key] = (
            [reader.value() for _ in reader.elements()] if key == "rows" else reader.value()
        )
    reader.finish()
    assert parts == json.loads(document)


def test_a_number_at_the_end_of_a_chunk_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK", 3)
    reader = JsonReader(io.BytesIO(b"[123456, 78]"), "x")
    assert [reader.value() for _ in reader.elements()] == [123456, 78]


def test_rows_are_found_in_a_nested_list(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": {"rows": [{"n": 0}]}, "results": {"rows": [{"n": 1}]}}')
    assert list(rows_of(path, ("results", "rows"))) == [{"n": 1}]


def test_a_line_over_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_RECORD", 100)
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"a": "' + "b" * 100 + '"}\n')
    with pytest.raises(DesignError, match="line 2"):
        list(rows_of(path))


def test_a_record_of_many_values_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[[" + "[]," * 1_100_000 + "[]]]")
    with pytest.raises(DesignError, match="2,000,000 values"):
        list(rows_of(path))


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[" * 200_000)
    with pytest.raises(DesignError, match="nested too deeply"):
        list(rows_of(path))


def test_a_row_of_csv_that_never_ends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_VALUES", 1000)
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + '"\n",' * 2000)
    with pytest.raises(DesignError, match="1,000 cells"):
        list(rows_of(path))


def test_an_archive_of_too_many_files_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rfind(b"PK\x05\x06") + 12, 2**30)
    path.write_bytes(data)
    with pytest.raises(DesignError, match="too many files"):
        Archive(path)
