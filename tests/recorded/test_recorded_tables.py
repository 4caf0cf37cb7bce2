import gzip
import json
import os
from pathlib import Path

import pandas as pd
import pytest

from judge_gym.errors import DesignError, MissingFileError
from judge_gym.recorded.tables import LARGEST_LINE, Table, read_table

TEXTS = ['Café, größer; "so"', "zweite\nZeile", "naïve\tTabs"]
FRAME = pd.DataFrame({"id": ["q1", "q2", "q3"], "text": TEXTS, "ann": ["pass", "", "fail"]})


def cells(table: Table) -> list[list[str]]:
    return [list(map(str, row)) for row in table.frame.to_numpy()]


EXPECTED = [["q1", TEXTS[0], "pass"], ["q2", TEXTS[1], ""], ["q3", TEXTS[2], "fail"]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_every_encoding_and_separator_is_read(
    tmp_path: Path, encoding: str, separator: str
) -> None:
    file = tmp_path / "labels.csv"
    FRAME.to_csv(file, sep=separator, index=False, encoding=encoding)
    table = read_table(file)
    assert cells(table) == EXPECTED
    assert list(table.frame) == ["id", "text", "ann"]
    assert any("Windows-1252" in note for note in table.notes) == (encoding == "cp1252")


@pytest.mark.parametrize("suffix", ["json", "jsonl", "parquet", "frame"])
def test_every_other_format_is_read(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"labels.{suffix}"
    if suffix == "json":
        FRAME.to_json(file, orient="records")
    elif suffix == "jsonl":
        FRAME.to_json(file, orient="records", lines=True)
    elif suffix == "parquet":
        FRAME.to_parquet(file)
    assert cells(read_table(FRAME if suffix == "frame" else file)) == EXPECTED


def test_an_excel_sheet_is_read_with_its_rows(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "text", "ann"], [1, "one", 2.0], [None, None, None], [2, "two", "=1+1"]):
        book.active.append(row)
    book.create_sheet("other")
    book.save(tmp_path / "labels.xlsx")
    table = read_table(tmp_path / "labels.xlsx")
    assert cells(table) == [["1", "one", "2"], ["2", "two", ""]], "a formula is not computed"
    assert table.place(1) == "row 4"
    assert "first of its 2 sheets" in table.notes[0]


def test_an_excel_sheet_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "labels.xlsx").write_bytes(b"PK\x03\x04")
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(DesignError, match=r"pip install 'judge-gym\[excel\]'"):
        read_table(tmp_path / "labels.xlsx")


def test_an_object_that_holds_one_list_is_a_table(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text('{"version": {"n": [1]}, "rows": [{"a": {"b": 1.0}, "c": [1]}, {"c": null}]}')
    assert read_table(file).frame.to_dict("list") == {"a.b": ["1", ""], "c": ["[1]", ""]}
    file.write_text('{"x": [{"a": 1}], "y": [{"a": 1}]}')
    with pytest.raises(DesignError, match="several lists"):
        read_table(file)


def test_rows_in_an_object_of_an_object_are_a_table(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text('{"version": 3, "tags": {"of": ["x"]}, "results": {"rows": [{"a": 1}]}}')
    assert read_table(file).frame.to_dict("list") == {"a": ["1"]}
    file.write_text('{"left": {"rows": [{"a": 1}]}, "right": {"rows": [{"a": 2}]}}')
    with pytest.raises(DesignError, match=r"several lists \('left.rows', 'right.rows'\)"):
        read_table(file)
    file.write_text('{"results": {"rows": [{"a": 1}')
    with pytest.raises(DesignError, match="cut off"):
        read_table(file)
    file.write_text('{"results": {"names": ["a", "b"]}}')
    with pytest.raises(DesignError, match="without a list of rows"):
        read_table(file)


def test_objects_of_a_list_that_have_names_are_columns(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    scores = [{"name": "gpt", "value": "pass"}, {"name": "haiku", "value": "fail"}]
    messages = [{"role": "user", "name": "ann", "content": "Hello"}]
    twice = [{"name": "gpt", "value": 1}, {"name": "gpt", "value": 0}]
    row = {"id": 1, "scores": scores, "messages": messages, "twice": twice}
    file.write_text(json.dumps(row) + "\n" + json.dumps({"id": 2, "scores": []}))
    columns = read_table(file).frame.to_dict("list")
    assert (columns["scores.gpt.value"], columns["scores.haiku.value"]) == (
        ["pass", ""],
        ["fail", ""],
    )
    assert json.loads(columns["messages"][0]) == messages, "a transcript stays one cell"
    assert json.loads(columns["twice"][0]) == twice, "names that do not tell apart are none"


def test_lines_are_named_as_an_editor_numbers_them(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text('id,text\n\nq1,"one\ntwo"\nq2,three\n')
    table = read_table(file)
    assert [table.place(row) for row in (0, 1)] == ["line 4", "line 5"]


def test_numbers_with_a_decimal_comma_are_numbers(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("id;score;text\nq1;4,5;a,b\nq2;3;1,5\n")
    frame = read_table(file).frame
    assert list(frame["score"]) == ["4.5", "3"]
    assert list(frame["text"]) == ["a,b", "1,5"], "not every cell is a number"


BROKEN = {
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b" \n\n", "is empty"),
    "header.csv": (b"id,text\n", r"no rows under its header \(id, text\)"),
    "twice.csv": (b"id,a,a\n1,2,3\n", "'a' twice"),
    "more.csv": (b"id,text\n1,a,b\n2,c\n3,d,e,f\n", r"line 2 \(3\), line 4 \(4\) have more cells"),
    "cut.csv": (b"id,text,ann\n1,a,pass\n2,b", "line 3 is cut off"),
    "quote.csv": (b'id,text\n1,"a\n2,b\n', "a quotation mark in line 2 is not closed"),
    "title.csv": (
        b"Report of May\n\nid,text,ann\n1,a,pass\n2,b,fail\n3,c,pass\n4,d,pass\n",
        r"line 1 \('Report of May'\) does not name the 3 columns.*line 3",
    ),
    "cut.json": (
        b'[{"id": 1}, {"id": "tw',
        "line 1, character 20: broken JSON: Unterminated string;.*cut off",
    ),
    "cut.jsonl": (b'{"id": 1}\n{"id": 2}\n{"id', "line 3, character 2: broken JSON"),
    "mixed.jsonl": (b'{"id": 1}\nhello\n', "line 2, character 1: broken JSON"),
    "list.jsonl": (b'{"id": 1}\n[2]\n', "line 2: a line is an object, not a list"),
    "numbers.json": (b"[1, 2]", "item 1 is a number, not an object"),
    "deep.json": (b"[" * 100_000, "nested too deeply"),
    "old.xls": (b"\xd0\xcf\x11\xe0 old", "an old Excel file"),
    "packed.csv": (gzip.compress(b"id,text\n1,a\n"), "a gzip archive"),
    "random.csv": (bytes(range(256)) * 40, "a binary file"),
    "cut.parquet": (b"PAR1 and no more", "cannot be read as parquet"),
    "cut.xlsx": (b"PK\x03\x04 and no more", "cannot be read as an Excel file"),
    "badutf.csv": (b"id,text\n1,\x81\x8d\n", "neither UTF-8 nor Windows-1252"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_ends_in_one_clear_message(tmp_path: Path, name: str) -> None:
    content, message = BROKEN[name]
    if name == "cut.xlsx":
        pytest.importorskip("openpyxl")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DesignError, match=message) as refusal:
        read_table(tmp_path / name)
    assert name in refusal.value.message


def test_texts_with_commas_in_one_column_are_no_broken_table(tmp_path: Path) -> None:
    file = tmp_path / "texts.csv"
    file.write_text("text\n" + "Well, yes, it was late.\n" * 9)
    assert list(read_table(file).frame) == ["text"]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(DesignError, match="is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize("name", ["long.csv", "long.jsonl", "quoted.csv"])
def test_a_line_that_is_too_long_is_refused_while_it_is_read(tmp_path: Path, name: str) -> None:
    starts = {
        "long.csv": b"id,text\n1,",
        "long.jsonl": b'{"id": 1}\n{"id": "',
        "quoted.csv": b'id\n"',
    }
    part = b"x" * 2**20 if name != "quoted.csv" else b"x\n" * 2**19
    with (tmp_path / name).open("wb") as file:
        file.write(starts[name])
        for _ in range(LARGEST_LINE // 2**20 + 1):
            file.write(part)
    with pytest.raises(DesignError, match="a line or cell may have 32 MB"):
        read_table(tmp_path / name)


@pytest.mark.slow
def test_a_file_of_too_many_cells_or_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps({f"k{n}": 1}) + "\n" for n in range(1_200)))
    with pytest.raises(DesignError, match="more than 1000 different columns"):
        read_table(file)
    file = tmp_path / "values.json"
    file.write_text("[{}" + ",{}" * 7_000_000 + "]")
    with pytest.raises(DesignError, match="too large: a table may have 6,000,000 cells"):
        read_table(file)
    file = tmp_path / "rows.csv"
    file.write_text("a\n" + "1\n" * 600_001)
    with pytest.raises(DesignError, match="more than 600,000 rows"):
        read_table(file)


def test_cells_are_data(tmp_path: Path) -> None:
    file = tmp_path / "formula.jsonl"
    file.write_text('{"text": "=cmd()|A1"}\n{"text": "\\ud83d half"}\n')
    assert list(read_table(file).frame["text"]) == ["=cmd()|A1", "\ufffd half"]


def test_a_special_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(MissingFileError):
        read_table(tmp_path / "pipe.csv")
