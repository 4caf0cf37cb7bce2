"""Labelled lines: found in any dress, in order, and grouped at the end of an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.stages.answer_lines import LabelledLine, adjacent_lines, clean_lines, labelled_lines
from tables import each_row

ANSWERS = st.lists(
    st.sampled_from(
        ["VERDICT:", "VERDICT: B", "## Verdict", "words", "", "---", "**", "Final verdict - C"]
    )
    | st.text(max_size=10),
    max_size=12,
).map("\n".join)


def found(text: str, word: str = "verdict") -> list[LabelledLine]:
    return list(labelled_lines(clean_lines(text), word))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\nb", ["a", "b"]),
        ("a\r\nb\rc", ["a", "b", "c"]),
        ("VER\u200bDICT\ufeff: \u2060B", ["VERDICT: B"]),
        ("soft\u00adhyphen", ["softhyphen"]),
        ("ＶＥＲＤＩＣＴ： Ｂ", ["VERDICT: B"]),
        ("", []),
    ],
)
def test_lines_lose_invisible_characters(text: str, lines: list[str]) -> None:
    assert clean_lines(text) == lines


@each_row(
    "line",
    [
        "VERDICT: B",
        "verdict: B",
        "Verdict = B",
        "VERDICT - B",
        "VERDICT — B",
        "**VERDICT:** B",
        "**VERDICT**: B",
        "- VERDICT: B",
        "* VERDICT: B",
        "> VERDICT: B",
        "### VERDICT: B",
        "1. VERDICT: B",
        "`VERDICT: B",
        "[VERDICT: B",
        "My verdict is: B",
        "The final verdict: B",
        "Final Verdict: B",
        "VERDICT: VERDICT: B",
        "    VERDICT:   B",
    ],
)
def test_a_decorated_label_is_found(line: str) -> None:
    [one] = found(f"Reasons first.\n{line}")
    assert (one.line, one.payload, one.heading) == (1, "B", False)


@each_row(
    "line",
    [
        "VERDICTS: B",
        "My VERDICTX: B",
        "I reach the verdict B",
        "The court gave its verdict: guilty",
        "Averdict: B",
        "VERDICT B",
        "The jury's verdict: B",
        "VERDICT-B",
    ],
)
def test_a_line_that_does_not_start_with_the_label_is_ignored(line: str) -> None:
    assert found(f"Reasons first.\n{line}\nmore") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VERDICT:\nB", LabelledLine(1, "B")),
        ("**VERDICT:**\n\n---\n**B**", LabelledLine(3, "**B**")),
        ("## Verdict\nB", LabelledLine(1, "B", heading=True)),
        ("**Final verdict**\n\nB", LabelledLine(2, "B", heading=True)),
        ("VERDICT:", LabelledLine(0, "")),
        ("VERDICT:\n\n", LabelledLine(0, "")),
    ],
)
def test_a_label_alone_takes_the_next_written_line(text: str, expected: LabelledLine) -> None:
    assert found(text) == [expected]


def test_a_heading_does_not_take_a_line_that_has_its_own_label() -> None:
    assert found("## Verdict\nVERDICT: B") == [LabelledLine(1, "B")]
    assert found("## Verdict") == []


def test_labels_are_found_in_the_order_of_the_lines() -> None:
    text = "VERDICT: A\nreasons\nVERDICT: B\nVERDICT:\nC"
    assert found(text) == [LabelledLine(0, "A"), LabelledLine(2, "B"), LabelledLine(4, "C")]


@pytest.mark.parametrize(
    ("text", "payloads"),
    [
        ("VERDICT: A", ["A"]),
        ("VERDICT: A\nVERDICT: B", ["A", "B"]),
        ("VERDICT: A\n\n---\n**\nVERDICT: B", ["A", "B"]),
        ("VERDICT: A\nOn reflection:\nVERDICT: B", ["B"]),
        ("VERDICT: A\nOn reflection:\nVERDICT: B\nVERDICT: C\nthe end", ["B", "C"]),
        ("no label", []),
    ],
)
def test_reasoning_between_labels_supersedes_the_earlier_ones(
    text: str, payloads: list[str]
) -> None:
    together = adjacent_lines(clean_lines(text), found(text))
    assert sorted(one.payload for one in together) == payloads


@given(ANSWERS)
def test_found_lines_are_lines_of_the_text_each_once(text: str) -> None:
    lines, labelled = clean_lines(text), found(text)
    numbers = [one.line for one in labelled]
    assert numbers == sorted(set(numbers))
    assert all(one.payload in lines[one.line] for one in labelled)
    together = adjacent_lines(lines, labelled)
    assert together == labelled[len(labelled) - len(together) :][::-1]
    assert bool(together) == bool(labelled)


@given(st.text())
def test_a_text_without_the_word_has_no_label(text: str) -> None:
    lines = clean_lines(text)
    if not any("verdict" in line.casefold() for line in lines):
        assert list(labelled_lines(lines, "verdict")) == []
