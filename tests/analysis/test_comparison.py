"""Two setups compared: the sign of A minus B, what the sentence claims, and where they differ."""

from typing import Any

import pandas as pd
import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.comparison import (
    Contrast,
    comparison_sentence,
    differing_items,
    main_contrast,
    stage_difference,
    table_sentence,
)
from judge_gym.analysis.judges.setups import setups_of
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.verdicts import Verdicts, of_setups
from judge_gym.records.judge_table import JudgeTable, Quantity

RIGHT, WRONG = "1", "3"


def panel(a: list[str], b: list[str], truth: int | None = 1, **columns: Any) -> pd.DataFrame:
    """Returns tidy samples of the judges x:a and x:b, one verdict of each on every item."""
    rows = [
        {
            "judge.model": judge,
            "tag": judge,
            "evidence": item,
            "evidence_title": f"item {item}",
            "replicate": 0,
            "status": "scored" if verdict.isdigit() else verdict,
            "stages": verdict if verdict.isdigit() else "",
            "truth": truth,
            "n_stages": 3,
        }
        for judge, verdicts in (("x:a", a), ("x:b", b))
        for item, verdict in enumerate(verdicts)
    ]
    return tidy(pd.DataFrame(rows).assign(**columns))


def sides_of(frame: pd.DataFrame, a: str = "a", b: str = "b") -> Verdicts:
    """Returns the verdicts of A and B, in this order."""
    setups = {setup.name: setup for setup in setups_of(frame)}
    return of_setups(frame, [setups[a], setups[b]])


def contrast_of(frame: pd.DataFrame, a: str, b: str) -> Contrast:
    return main_contrast(judge_table(frame), a, b, stage_difference(sides_of(frame, a, b)))


def value_of(quantity: Quantity | None) -> float:
    assert quantity is not None
    return quantity["value"]


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [("a", "b", "more accurate than b"), ("b", "a", "less accurate than a")],
)
def test_the_better_setup_is_called_better_on_either_side(a: str, b: str, words: str) -> None:
    frame = panel([RIGHT] * 40, [RIGHT, WRONG] * 20)
    found = contrast_of(frame, a, b)
    sentence = comparison_sentence(found, a, b, judged_by_both=40, differing=20)
    assert found.endpoint == "accuracy"
    assert value_of(found.difference) == (0.5 if a == "a" else -0.5)
    # Student's t over 40 differences, 20 of them 0 and 20 of them 1.
    half = 2.0227 * (0.25 * 40 / 39 / 40) ** 0.5
    ends = f"[{100 * (0.5 - half):.0f}, {100 * (0.5 + half):.0f}]"
    assert sentence == f"{a} is 50 points {ends} {words} (40 items)."


def test_swapping_the_sides_mirrors_the_interval() -> None:
    frame = panel([RIGHT] * 30 + [WRONG] * 10, [RIGHT] * 22 + [WRONG] * 18)
    one, other = (contrast_of(frame, *sides).difference for sides in ("ab", "ba"))
    assert one is not None and other is not None
    assert one["low"] is not None and one["high"] is not None and one["low"] < one["high"]
    assert (other["low"], other["high"]) == (-one["high"], -one["low"])


@pytest.mark.parametrize(
    ("a", "b", "truth", "words"),
    [
        ([RIGHT, WRONG] * 20, [WRONG, RIGHT] * 20, 1, "not told apart in accuracy: A minus B is 0"),
        ([RIGHT] * 5, [WRONG] * 5, 1, "5 items, and an interval needs 20. So far a is 100 points"),
        # Without variance one more item of weight w = 1 - .025 ** (1 / 30) may lie at -1 or 1.
        ([RIGHT] * 30, ["2"] * 30, None, "a places items 0.50 [0.33, 0.56] lower than b"),
        (["2"] * 30, [RIGHT] * 30, None, "a places items 0.50 [0.33, 0.56] higher than b"),
        (["abstained"] * 30, [RIGHT] * 30, None, "the same verdict on 0 of 30 items"),
    ],
)
def test_the_sentence_claims_no_more_than_the_data_show(
    a: list[str], b: list[str], truth: int | None, words: str
) -> None:
    frame = panel(a, b, truth)
    both, items = differing_items(sides_of(frame), {})
    found = contrast_of(frame, "a", "b")
    sentence = comparison_sentence(found, "a", "b", judged_by_both=both, differing=len(items))
    assert words in sentence


def test_options_without_an_order_have_no_mean_stage() -> None:
    frame = panel([RIGHT] * 30, [WRONG] * 30, None, rubric_kind="nominal")
    assert contrast_of(frame, "a", "b") == Contrast(None, None)


def test_items_furthest_apart_come_first_with_the_names_of_their_stages() -> None:
    rows = []
    verdicts = {"x:a": ["1 1 1", "1 1 2", "1 1 1"], "x:b": ["2 2 2", "2 2 1", "3 3 3"]}
    for judge, given in verdicts.items():
        for repeat in range(3):
            one = panel([each[2 * repeat] for each in given], [], 3)
            one["judge.model"], one["replicate"] = judge, repeat
            rows.append(one)
    frame = pd.concat(rows, ignore_index=True).assign(tag="t", stage_names="low | mid | high")
    both, items = differing_items(sides_of(frame), {0: "first"})
    assert both == 3
    assert [(item["evidence"], item["a"], item["b"], item["truth"]) for item in items] == [
        (2, "low", "high", "high"),
        (0, "low", "mid", "high"),
        (1, "low, 2 of 3", "mid, 2 of 3", "high"),
    ]
    assert [item["title"] for item in items] == ["2", "first", "1"]
    assert [item["gap"] for item in items] == pytest.approx(
        [1, 1 / 2, 1 / 6]
    )  # of the scale, by mean stage


def test_items_that_are_equally_far_apart_come_by_title() -> None:
    a, b = ["33311", "22211"], ["33111", "21111"]  # .6 - .4 is not .3 - .1 in floating point
    frame = pd.concat(
        [
            panel([side[repeat] for side in a], [side[repeat] for side in b]).assign(
                replicate=repeat
            )
            for repeat in range(5)
        ],
        ignore_index=True,
    )
    items = differing_items(sides_of(frame), {0: "first", 1: "second"})[1]
    assert [item["gap"] for item in items] == pytest.approx([0.2, 0.2])
    assert [item["title"] for item in items] == ["first", "second"]


def test_stages_that_a_judge_named_are_numbered_since_the_other_judge_names_its_own() -> None:
    frame = panel([RIGHT], [WRONG]).assign(stage_names="low | mid | high")
    frame["rubric.author"] = "own"
    [item] = differing_items(sides_of(frame), {})[1]
    assert (item["a"], item["b"], item["truth"]) == ("stage 1", "stage 3", "stage 1")


def test_a_call_that_two_experiments_share_is_one_answer() -> None:
    once = panel([RIGHT], [WRONG]).assign(call_id=[7, 8])
    [item] = differing_items(sides_of(pd.concat([once, once], ignore_index=True)), {})[1]
    assert (item["a"], item["b"]) == ("stage 1", "stage 3"), "not: 2 of 2"


# --- other measures, and the table of all setups -------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "difference", "words"),
    [
        ("balanced", 0.01, "A is 1 point [0.5, 2] higher in balanced accuracy than B"),
        ("weighted", -0.05, "A is .05 [.04, .06] lower in weighted kappa than B"),
        ("error", 0.25, "A is 0.25 stages [0.24, 0.26] higher in mean error than B"),
    ],
)
def test_the_measure_that_decides_is_the_one_that_is_named(
    measure: Any, difference: float, words: str
) -> None:
    quantity: Quantity = {
        "value": difference,
        "low": difference - 0.0051,
        "high": difference + 0.0051,
        "n": 90,
    }
    contrast = Contrast("accuracy", quantity, measure)
    sentence = comparison_sentence(contrast, "A", "B", judged_by_both=90, differing=9)
    assert sentence.startswith(words)


def many_setups(*wrong: int, items: int = 40) -> JudgeTable:
    """Returns the table of setups a, b, c ... of which each has some items wrong, each its own."""
    parts = []
    for number, count in enumerate(wrong):
        verdicts = [
            WRONG if (item * 7 + number) % items < count else RIGHT for item in range(items)
        ]
        part = panel(verdicts, [])
        parts.append(part.assign(**{"judge.model": f"x:{chr(ord('a') + number)}"}))
    return judge_table(tidy(pd.concat(parts, ignore_index=True)))


def test_two_setups_told_apart_alone_and_tied_among_many_are_said_to_be_both() -> None:
    table = many_setups(*[4] * 5)
    assert {row["standing"] for row in table["rows"]} <= {"best", "tied"}
    apart: Quantity = {"value": 0.1, "low": 0.02, "high": 0.18, "n": 40}
    contrast = Contrast("accuracy", apart)
    assert table_sentence(contrast, table, "a", "b").startswith("Among all 5 setups of the study")
    equal: Quantity = {**apart, "low": -0.02}
    assert table_sentence(Contrast("accuracy", equal), table, "a", "b") == ""
    assert table_sentence(Contrast("stage", apart), table, "a", "b") == ""
    assert table_sentence(contrast, many_setups(4, 4), "a", "b") == "", "there the pair is all"
    far = many_setups(0, 4, 36)
    assert {row["setup"]: row["standing"] for row in far["rows"]}["c"] == "worse"
    assert table_sentence(contrast, far, "a", "c") == "", "the table tells them apart too"
