"""Limits on files that others wrote."""

import json
from pathlib import Path

import pytest

from judge_gym.errors import DesignError, MissingFileError
from judge_gym.recorded import documents
from judge_gym.recorded.documents import (
    files_below,
    json_lines,
    read_head,
    read_json,
    read_table,
)


def test_a_document_larger_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(["x" * 3000]))
    monkeypatch.setattr(documents, "MOST_BYTES", 2000)
    monkeypatch.setattr(documents, "MOST_LINES", 2000)
    with pytest.raises(DesignError, match="at most"):
        read_json(file)
    with pytest.raises(DesignError, match="at most"):
        list(json_lines(file))


def test_letters_beyond_ascii_have_a_lower_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MOST_WIDE_BYTES", 2000)
    file = tmp_path / "a.json"
    file.write_text(json.dumps(["x" * 3000]))
    assert read_json(file) == ["x" * 3000]
    file.write_text(json.dumps(["é" * 3000], ensure_ascii=False), encoding="utf-8")
    with pytest.raises(DesignError, match="beyond ASCII"):
        read_json(file)


def test_many_small_values_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_VALUES", 100)
    file = tmp_path / "a.json"
    file.write_text(json.dumps([[]] * 200))
    with pytest.raises(DesignError, match="more than 100 values"):
        read_json(file)
    file.write_text("[[],[]]\n" * 200)
    with pytest.raises(DesignError, match="more than 100 values"):
        list(json_lines(file))


def test_a_long_line_is_refused_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MOST_LINE", 50)
    file = tmp_path / "a.jsonl"
    file.write_text('"short"\n"' + "x" * 100 + '"\n')
    lines = json_lines(file)
    assert next(lines) == (1, "short")
    with pytest.raises(DesignError, match=r"a\.jsonl:2 is longer"):
        next(lines)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_json(tmp_path / "nowhere")
    with pytest.raises(DesignError, match="is not a file"):
        read_json(tmp_path)
    assert read_head(tmp_path) == read_head(tmp_path / "nowhere") == ""


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes('"é"'.encode("latin-1"))
    with pytest.raises(DesignError, match="is not UTF-8"):
        read_json(file)
    file.write_text('\ufeff"x"', encoding="utf-8")
    assert read_json(file) == "x"


def test_a_table_with_a_repeated_column_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("a\tb\ta\r\n1\t2\t3\r\n")
    with pytest.raises(DesignError, match="the column 'a' twice"):
        read_table(file)
    file.write_text("a\tb\r\n1\t2\r\n\r\n")
    assert read_table(file) == (["a", "b"], [{"a": "1", "b": "2"}])


def test_a_folder_with_very_many_files_is_refused(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.json").touch()
    assert len(files_below(tmp_path, "*.json", most=4)) == 4
    with pytest.raises(DesignError, match="more than 3 files"):
        files_below(tmp_path, "*.json", most=3)


def test_files_that_are_large_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.json").write_text("x" * 100)
    monkeypatch.setattr(documents, "MOST_TOGETHER", 300)
    assert len(files_below(tmp_path, "*.json")) == 3
    monkeypatch.setattr(documents, "MOST_TOGETHER", 299)
    with pytest.raises(DesignError, match="the 3 files have 0 MB"):
        files_below(tmp_path, "*.json")
