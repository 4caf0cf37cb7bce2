"""Tables in a terminal: they fit its width, and no word is broken that would fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.cli import display
from judge_gym.cli.layout import JOINED, Grid, fit, wrap
from table_layouts import WIDTHS, check
from tables import each_row

TAG = "study/a-concept-with-a-name/pool/{judge}/verdict.method={method}"
JUDGES = ("openai:gpt-5.2", "anthropic:claude-sonnet-4-5", "sim:strict")
TAGS = [TAG.format(judge=judge, method=method) for judge in JUDGES for method in ("one", "two")]


def grid(names: list[str], *rows: list[str], optional: tuple[str, ...] = ()) -> Grid:
    numeric = tuple(False for _ in names)
    return Grid(tuple(names), tuple(map(tuple, rows)), numeric, optional=optional)


def lines(table: Grid, width: int, *, one_line: bool = False) -> list[str]:
    head, body = fit(table, width, one_line=one_line).lines()
    return head + body


words = st.text("abcdefghij-/.:é漢", min_size=1, max_size=50)
cells = st.lists(words, max_size=6).map(" ".join)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Tables of any shape, with long words, empty cells and characters of double width."""
    columns = draw(st.integers(1, 9))
    names = draw(st.lists(words, min_size=columns, max_size=columns, unique=True))
    row = st.lists(cells, min_size=columns, max_size=columns)
    return grid(names, *draw(st.lists(row, min_size=1, max_size=4)))


@given(grids(), st.sampled_from((20, *WIDTHS)), st.booleans())
def test_no_line_exceeds_the_width_and_no_word_is_broken(
    table: Grid, width: int, one_line: bool
) -> None:
    check(table, width, one_line=one_line)


def test_a_table_that_fits_is_left_alone() -> None:
    table = grid(["tag", "n"], *([tag, "5"] for tag in TAGS))
    assert fit(table, 200).grid == table


def test_tags_are_shortened_to_what_differs() -> None:
    table = grid(["tag", "status"], *([tag, "complete"] for tag in TAGS))
    layout = fit(table, 60)
    assert layout.lines()[1][:2] == [
        "openai:gpt-5.2/verdict.method=one               complete",
        "openai:gpt-5.2/verdict.method=two               complete",
    ]
    assert layout.grid.notes == ("Every tag is in study/a-concept-with-a-name/pool.",)
    assert lines(table, 40)[1:3] == ["openai:gpt-5.2/one", "openai:gpt-5.2/two"]


def test_tags_that_would_coincide_keep_their_knobs() -> None:
    tags = ["s/c/p/sim:a/one.knob=x", "s/c/p/sim:a/two.knob=x", "s/c/q/sim:a/one.knob=x"]
    table = grid(["tag", "text"], *([tag, "word " * 20] for tag in tags))
    shown = [row[0] for row in fit(table, 40).grid.rows]
    assert shown == ["p/one.knob=x", "p/two.knob=x", "q/one.knob=x"]


def test_what_is_the_same_in_every_row_is_stated_once() -> None:
    table = grid(["judge", "version", "reason"], ["a", "0" * 30, "x" * 30], ["b", "0" * 30, "y"])
    layout = fit(table, 50)
    assert layout.grid.names == ("judge", "reason")
    assert layout.grid.notes == (f"In every row: version {'0' * 30}.",)


def test_bounds_join_their_estimate() -> None:
    names = ["judge", "accuracy", "low", "high", "bias", "bias low", "bias high"]
    table = grid(names, ["a", "0.8", "0.7", "0.9", "0", "–", "–"], ["b"] + ["0.123"] * 6)
    assert lines(table, 49) == [
        "judge  accuracy [low, high]  bias [low, high]",
        "a      0.8 [0.7, 0.9]        0",
        "b      0.123 [0.123, 0.123]  0.123 [0.123, 0.123]",
    ]


def test_a_wide_table_of_few_rows_is_transposed() -> None:
    names = [f"column{number}" for number in range(12)]
    table = grid(names, ["first", *["1.25"] * 11], ["second", *["2.5"] * 11])
    shown = lines(table, 40)
    assert shown[0].split() == ["column0", "first", "second"]
    assert shown[1].split() == ["column1", "1.25", "2.5"]
    assert len(shown) == 12


def test_columns_that_do_not_fit_are_left_out_and_named() -> None:
    names = [f"column{number}" for number in range(12)]
    rows = [[f"{row}-{column}" for column in range(12)] for row in range(30)]
    layout = fit(grid(names, *rows, optional=("column1",)), 30)
    assert layout.grid.names == ("column0", "column2", "column3")
    [note] = layout.grid.notes
    assert note.startswith("Not shown at this width: column1, column4, ")


def test_rows_of_one_line_lose_optional_columns_before_their_first_is_cut() -> None:
    rows = [[f"tag{number}-" + "x" * 30, "complete", "12/12"] for number in range(3)]
    table = grid(["name", "status", "probe"], *rows, optional=("probe",))
    assert lines(table, 46, one_line=True)[1] == "tag0-" + "x" * 30 + "  complete"
    [_, first, *_] = lines(table, 40, one_line=True)
    assert first == "tag0-" + "x" * 10 + "…" + "x" * 14 + "  complete"


def test_long_words_are_broken_at_their_slashes() -> None:
    assert wrap("see https://example.org/a-path/that-is/long for it", 24) == [
        "see https://example.org/",
        "a-path/that-is/long for",
        "it",
    ]


@each_row(
    "value, shown",
    [
        (None, "–"),
        (float("nan"), "–"),
        (True, "yes"),
        (12345, "12,345"),
        (12345.6, "12,346"),
        (0.78249, "0.782"),
        (4.9e-10, "<0.001"),
        (-9.95e-05, ">-0.001"),
        (0.0, "0"),
    ],
)
def test_values_are_shown_without_exponents(value: object, shown: str) -> None:
    assert display.cell(value) == shown


@each_row("width", WIDTHS)
def test_a_printed_table_fits_the_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    display.console.cache_clear()
    rows = [{"tag": tag, "share_of_all": 0.5, "why": "some words " * 9} for tag in TAGS]
    display.table("a title", rows, note="a note " * 40)
    display.console.cache_clear()
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= width
    assert printed[0] == "a title"
    assert any("share of all" in line for line in printed), "heads are words"


def test_a_list_that_has_no_room_keeps_its_first_entries_whole() -> None:
    counts = "5 parse_failed, 61 scored, 3 refused, 2 truncated"
    grid = Grid(("tag", "samples"), (("a/b", counts), ("a/c", counts)), (False, False))
    assert any(counts in line for line in lines(grid, 60, one_line=True))
    narrow = lines(grid, 38, one_line=True)
    assert any("5 parse_failed, 61 scored, …" in line for line in narrow)
    assert not any("…2" in line for line in narrow)


def test_a_list_takes_the_room_of_a_long_tag_before_it_loses_an_entry() -> None:
    tag = "study/concept/sim:judge?garble=0.3&truncate=0.2&refuse=0.2"
    counts = "1 abstained, 9 parse_failed, 8 refused, 36 scored, 18 truncated"
    table = Grid(("tag", "status", "verdicts"), ((tag, "complete", counts),) * 2, (False,) * 3)
    printed = fit(table, 90, one_line=True).lines()[1]
    assert all(counts in line and len(line) <= 90 for line in printed)


def test_joined_text_keeps_its_spaces() -> None:
    drawn = f"{JOINED * 3}--o--{JOINED}:"
    table = Grid(("setup", "interval"), (("a", drawn), ("b", drawn)), (False, False))
    assert all("   --o-- :" in line for line in fit(table, 40).lines()[1])
    long = Grid(("setup", "interval", "x"), (("a", drawn, "y " * 40),) * 2, (False,) * 3)
    narrow = fit(long, 50, one_line=True).lines()[1]
    assert narrow and all("   --o-- :" in line for line in narrow)
