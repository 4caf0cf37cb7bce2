"""Labels by people, as spreadsheets write them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.errors import DesignError
from judge_gym.sources.labels import Label, read_labels


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


def test_labels_stand_in_the_order_of_the_file(path: Path) -> None:
    path.write_text("item,rater,stage\nx,ann,2\ny,bob,fits well\nx,bob,3\n")
    assert read_labels(path) == (
        Label("x", "ann", "2"),
        Label("y", "bob", "fits well"),
        Label("x", "bob", "3"),
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_may_stand_in_any_order_and_more_may_be_there(
    path: Path, encoding: str, end: str, delimiter: str
) -> None:
    rows = [["Stage", "note", "rater", " item "], ["2", "clear", "Zoë", "x"], ["3", "", "Zoë", "y"]]
    path.write_bytes(end.join(delimiter.join(row) for row in rows).encode(encoding))
    assert read_labels(path) == (Label("x", "Zoë", "2"), Label("y", "Zoë", "3"))


def test_a_quoted_cell_may_hold_the_delimiter_or_a_line_end(path: Path) -> None:
    path.write_text('item,rater,stage,note\n"a, b",ann,2,"one\ntwo"\n"c;d",ann,"1",\n')
    assert read_labels(path) == (Label("a, b", "ann", "2"), Label("c;d", "ann", "1"))


def test_other_delimiters_in_cells_do_not_mislead(path: Path) -> None:
    path.write_text("item;rater;stage;note, if any\nx,1;ann;2;a, b, c\n")
    assert read_labels(path) == (Label("x,1", "ann", "2"),)


def test_the_same_label_twice_is_once(path: Path) -> None:
    path.write_text("item,rater,stage\nx,ann,2\nx,ann,2\n\n , , \nx,ann, 2\n")
    assert read_labels(path) == (Label("x", "ann", "2"),)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("item,rater,stage\nx,ann,2\nx,,2\n", "labels.csv:3: rater is empty"),
        ("item,rater,stage\nx,ann,  \n", "labels.csv:2: stage is empty"),
        (
            "item,rater,stage\nx,ann,2\ny,ann,2\nx,ann,3\n",
            "labels.csv:4: 'ann' gives 'x' the stage '3', and '2' on line 2",
        ),
        ('item,rater,stage,n\nx,ann,2,"a\nb"\n,ann,2,\n', "labels.csv:4: item is empty"),
        ('item,rater,stage,n\n,ann,2,"a\nb"\n', "labels.csv:3: item is empty"),
        ("item,rater,stage\nx,ann\n", "labels.csv:2: 2 cells under a header of 3"),
        ("item,rater,stage\nx,ann,2,3\n", "labels.csv:2: 4 cells under a header of 3"),
        ("item,rater\nx,ann\n", "labels.csv:1: the header lacks stage"),
        ("item|rater|stage\nx|ann|1\n", "labels.csv:1: the header lacks item, rater, stage"),
        ("item,rater,stage,stage\nx,ann,1,2\n", "labels.csv:1: the header names 'stage' twice"),
        ("", "labels.csv:1: the header lacks item, rater, stage"),
        ("item,rater,stage\n\n", "labels.csv has no labels"),
        ('item,rater,stage\nx,ann,2\ny,"ann"x,2\n', "labels.csv:3: broken CSV"),
        ('item,rater,stage\nx,ann,"2\n', "broken CSV"),
    ],
)
def test_invalid_label_is_reported_with_its_line(path: Path, text: str, fault: str) -> None:
    path.write_text(text)
    with pytest.raises(DesignError) as raised:
        read_labels(path)
    assert fault in raised.value.message


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    with pytest.raises(DesignError, match=r"there is no file .*labels\.csv"):
        read_labels(path)
    path.write_bytes("item,rater,stage\nx,Zoë,2\n".encode("latin-1"))
    with pytest.raises(DesignError, match=r"labels\.csv cannot be read: it is not UTF-8"):
        read_labels(path)


words = st.text("abcÄ,;\"'\n 7", min_size=1).map(str.strip).filter(bool)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.dictionaries(st.tuples(words, words), words, min_size=1, max_size=8),
    st.sampled_from(",;"),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, given: dict[tuple[str, str], str], delimiter: str
) -> None:
    labels = tuple(Label(item, rater, stage) for (item, rater), stage in given.items())
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    quoted = [
        delimiter.join('"' + cell.replace('"', '""') + '"' for cell in cells)
        for cells in [("item", "rater", "stage"), *((x.item, x.rater, x.stage) for x in labels)]
    ]
    path.write_bytes("\r\n".join(quoted).encode())
    assert read_labels(path) == labels
