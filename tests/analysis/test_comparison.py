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
)
from judge_gym.analysis.judges.table import judge_table
from judge_gym.records.judge_table import Quantity

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


def contrast_of(frame: pd.DataFrame, a: str, b: str) -> Contrast:
    sides = [frame[frame["judge.model"] == f"x:{name}"] for name in (a, b)]
    return main_contrast(judge_table(frame), a, b, stage_difference(*sides))


def value_of(quantity: Quantity | None) -> float:
    assert quantity is not None
    return quantity["value"]


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [("a", "b", "a is 50 points more accurate than b"), ("b", "a", "b is 50 points less accurate")],
)
def test_the_better_setup_is_called_better_on_either_side(a: str, b: str, words: str) -> None:
    frame = panel([RIGHT] * 40, [RIGHT, WRONG] * 20)
    found = contrast_of(frame, a, b)
    sentence = comparison_sentence(found, a, b, judged_by_both=40, differing=20)
    assert found.endpoint == "accuracy"
    assert value_of(found.difference) == (0.5 if a == "a" else -0.5)
    assert sentence.startswith(words) and "(40 items)" in sentence
    # Student's t over 40 differences, 20 of them 0 and 20 of them 1.
    half = 2.0227 * (0.25 * 40 / 39 / 40) ** 0.5
    assert f"95 % interval {100 * (0.5 - half):.0f} to {100 * (0.5 + half):.0f}" in sentence


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
        ([RIGHT] * 30, ["2"] * 30, None, "a places items 0.50 lower than b"),
        (["2"] * 30, [RIGHT] * 30, None, "a places items 0.50 higher than b"),
        (["abstained"] * 30, [RIGHT] * 30, None, "the same verdict on 0 of 30 items"),
    ],
)
def test_the_sentence_claims_no_more_than_the_data_show(
    a: list[str], b: list[str], truth: int | None, words: str
) -> None:
    frame = panel(a, b, truth)
    sides = [frame[frame["judge.model"] == judge] for judge in ("x:a", "x:b")]
    both, items = differing_items(sides[0], sides[1], {})
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
    frame = pd.concat(rows, ignore_index=True)
    frame["tag"] = "t"
    left, right = (frame[frame["judge.model"] == judge] for judge in verdicts)
    both, items = differing_items(left, right, {"t": ["low", "mid", "high"]})
    assert both == 3
    assert [(item["evidence"], item["a"], item["b"], item["truth"]) for item in items] == [
        (2, "low", "high", "high"),
        (0, "low", "mid", "high"),
        (1, "low, 2 of 3", "mid, 2 of 3", "high"),
    ]
    assert [item["gap"] for item in items] == pytest.approx(
        [1, 1 / 2, 1 / 6]
    )  # of the scale, by mean stage
