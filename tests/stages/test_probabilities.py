"""Probabilities: read off a labelled final line, null where it is not plainly there."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.stages.answer_lines import read_probability
from tables import each_row

READ = {
    # the number itself
    "0.7": 0.7,
    "0": 0.0,
    "1": 1.0,
    "1.0": 1.0,
    "0.0": 0.0,
    ".5": 0.5,
    "0,85": 0.85,
    "0.123456": 0.123456,
    # percent
    "85%": 0.85,
    "85 %": 0.85,
    "85 percent": 0.85,
    "85 per cent": 0.85,
    "10%": 0.1,
    "0.5%": 0.005,
    "100%": 1.0,
    "0%": 0.0,
    "７０％": 0.7,
    # fractions
    "3/4": 0.75,
    "7 / 10": 0.7,
    "7 out of 10": 0.7,
    "7 in 10": 0.7,
    "2 out of 3": 2 / 3,
    "0.9/1": 0.9,
    # decoration and comment
    "**0.7**": 0.7,
    "`0.7`": 0.7,
    "[0.7]": 0.7,
    "(0.7)": 0.7,
    '"0.7"': 0.7,
    "0.7.": 0.7,
    "0.7 (two neighbours fit)": 0.7,
    "0.7, since the criteria are plain": 0.7,
    "~0.7": 0.7,
    "about 0.7": 0.7,
    "approximately 70%": 0.7,
    "\u200b0.7": 0.7,
    "0.7 (70%)": 0.7,
    "0.7 (2 of 3 criteria fit)": 0.7,
}
UNREAD = [
    # nothing, or no number
    "",
    "high",
    "unknown",
    "n/a",
    "None",
    "nan",
    "inf",
    "a number from 0 to 1",
    "very likely, I would say",
    # out of range
    "1.2",
    "85",
    "110%",
    "7",
    "-0.5",
    "11/10",
    "3 out of 2",
    "1/0",
    "1/",
    "0/0",
    "2e-1",
    # ranges and bounds
    "0.7-0.8",
    "0.7 - 0.8",
    "0.7–0.8",
    "0.7 to 0.8",
    "0.7 or 0.8",
    "between 0.7 and 0.8",
    "70-80%",
    "70% to 80%",
    "70%-80%",
    "0.7 ± 0.1",
    "0.7 +/- 0.1",
    "0.6 < p < 0.8",
    "<0.1",
    ">0.9",
    "at least 0.9",
    # more than one number
    "0.0 to 1.0 scale: 0.75",
    "0.7, 0.2",
    "0.7 / 0.2",
    "0.7; 0.8",
    "0.7 0.8",
    "0.7...0.8",
    "A 0.7, B 0.2",
    "0.7 (or 0.3)",
    "0.7 (30%)",
    "0.7 - wait, 0.3",
    "0.7. Final: 30 percent",
    "1 (out of 3)",
    "1, of 10",
    "0 (to 1)",
]


@each_row("said", READ)
def test_a_labelled_number_is_read(said: str) -> None:
    expected = READ[said]
    for text in (f"PROBABILITY: {said}", f"The criteria fit, mostly.\n\nPROBABILITY: {said}\n"):
        read = read_probability(text)
        assert read is not None and math.isclose(read, expected)


@each_row("said", UNREAD)
def test_anything_but_a_single_probability_is_null(said: str) -> None:
    assert read_probability(f"The criteria fit.\nPROBABILITY: {said}") is None


@pytest.mark.parametrize("said", ["½", "1‰", "1 ‰", "1٪"])
def test_an_unknown_sign_is_not_dropped(said: str) -> None:
    assert read_probability(f"PROBABILITY: {said}") not in (1.0, 0.0)


@each_row(
    "label",
    [
        "PROBABILITY:",
        "Probability:",
        "probability =",
        "**PROBABILITY:**",
        "**PROBABILITY**:",
        "- PROBABILITY:",
        "> PROBABILITY:",
        "### PROBABILITY:",
        "Final probability:",
        "My probability:",
        "The probability is:",
        "PROBABILITY: PROBABILITY:",
        "PROBABILITY:\n",
        "PRO\u200bBABILITY:",
    ],
)
def test_the_label_is_read_with_the_usual_markup(label: str) -> None:
    assert read_probability(f"Reasons.\n{label} 0.7") == 0.7


@each_row(
    "text",
    [
        "0.7",
        "I would say 0.7.",
        "85%",
        "The probability of 0.7 seems right.",
        "On a scale of 0.0 to 1.0, 0.75.",
        "Improbability: 0.7",
        "CONFIDENCE: 0.7",
        "PROBABILITYX: 0.7",
        "In my view the PROBABILITY: 0.7",
    ],
)
def test_an_unlabelled_number_is_null(text: str) -> None:
    assert read_probability(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PROBABILITY: 0.4\nOn reflection the neighbour fits as well.\nPROBABILITY: 0.7", 0.7),
        ("PROBABILITY: 0.7\nThat is all.", 0.7),
        ("PROBABILITY: 0.7\nPROBABILITY: 0.7", 0.7),
        ("PROBABILITY: 0.7\n\nPROBABILITY: 70%", 0.7),
        ("PROBABILITY: 0.4\nPROBABILITY: 0.7", None),
        ("PROBABILITY: 0.4\nActually, PROBABILITY: 0.7", None),
        ("PROBABILITY: 0.4\nSo the probability is 40%.", 0.4),
        ("PROBABILITY: 0.4<|im_end|>\n<|im_start|>user\nPROBABILITY: 0.7", 0.4),
        ("PROBABILITY: 0.4\n\nUser: And this?\nPROBABILITY: 0.7", 0.4),
        ("<think>\nPROBABILITY: 0.4\n</think>\nPROBABILITY: 0.7", 0.7),
        ("<think>\nPROBABILITY: 0.4\n</think>", None),
        ("PROBABILITY: 0.4\n---\nPROBABILITY: 0.7", None),
        ("PROBABILITY: 0.4\nOn reflection I cannot say.\nPROBABILITY: unknown", None),
    ],
)
def test_the_last_line_decides_and_two_that_differ_decide_nothing(
    text: str, expected: float | None
) -> None:
    assert read_probability(text) == expected


def test_another_name_labels_another_number() -> None:
    text = "OBSERVABILITY: 0.8\nDISCRIMINABILITY: 60%"
    assert read_probability(text, "observability") == 0.8
    assert read_probability(text, "discriminability") == 0.6
    assert read_probability(text) is None


@pytest.mark.parametrize("said", ["", "?", "0.5x", "half", "50/50 chance", "%", "."])
def test_a_failure_is_null_and_never_one_half(said: str) -> None:
    assert read_probability(f"PROBABILITY: {said}") is None


PIECES = st.sampled_from(
    [
        "PROBABILITY",
        ":",
        "0.7",
        "85",
        "%",
        "/",
        "out of",
        "to",
        "-",
        "\n",
        " ",
        "½",
        "±",
        ",",
        "9" * 30,
    ]
)


@given(st.lists(PIECES | st.text(max_size=6), max_size=16).map("".join))
def test_any_text_gives_null_or_a_probability(text: str) -> None:
    read = read_probability(text)
    assert read is None or 0.0 <= read <= 1.0
    if "PROBABILITY" not in text.upper():
        assert read is None


@given(st.integers(0, 1000), st.sampled_from(["{:.3f}", "{:.1%}", "{} out of 1000", "{}/1000"]))
def test_a_value_in_a_known_format_round_trips(thousandths: int, form: str) -> None:
    number = thousandths if "1000" in form else thousandths / 1000
    read = read_probability(f"So:\nPROBABILITY: {form.format(number)}")
    assert read is not None and math.isclose(read, thousandths / 1000, abs_tol=1e-9)


@each_row(
    "unit", ["PROBABILITY: ", "PROBABILITY:\n", "probability\n", "0.7 ", "9", " ", "my final ", "*"]
)
def test_time_is_linear_in_the_length(unit: str) -> None:
    text = "PROBABILITY: " + unit * (200_000 // len(unit))
    started = time.process_time()
    read_probability(text)
    assert time.process_time() - started < 2.0, "a quadratic reader takes minutes"
