"""Which items people are asked to label: with known chances, so that no estimate is wrong."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.label_draws import (
    LabelDraw,
    after_more_labels,
    assign,
    draw_items,
)
from judge_gym.analysis.judges.table import judge_table
from judge_gym.errors import DesignError
from judge_gym.records.judge_table import Quantity

ITEMS = 400
HASHES = {item: f"hash {item}" for item in range(ITEMS)}


def test_a_random_draw_has_the_size_that_was_asked_for_and_one_chance() -> None:
    drawn = draw_items(HASHES, LabelDraw(50, seed=3))
    assert len(drawn) == 50
    assert {*drawn.values()} == {50 / ITEMS}
    assert drawn == draw_items(dict(reversed(HASHES.items())), LabelDraw(50, seed=3))
    assert drawn != draw_items(HASHES, LabelDraw(50, seed=4))


def test_each_item_is_drawn_as_often_as_its_chance_says() -> None:
    disputed = {item: 0.9 if item < 20 else 0.02 for item in HASHES}
    draw = LabelDraw(80, disputed=True, core=0.5)
    drawn = [draw_items(HASHES, LabelDraw(80, True, 0.5, 0, seed), disputed) for seed in range(150)]
    assert draw_items(HASHES, draw, disputed) == drawn[0]
    often = [sum(item in one for one in drawn) / 150 for item in range(ITEMS)]
    chances = {item: chance for one in drawn for item, chance in one.items()}
    for group in (range(20), range(20, ITEMS)):
        expected = np.mean([chances[item] for item in group])
        assert np.mean([often[item] for item in group]) == pytest.approx(expected, abs=0.03)
    assert np.mean([*map(len, drawn)]) == pytest.approx(80, abs=2)
    # The core bounds the weights.
    assert min(chance for chance in chances.values() if chance) >= 40 / ITEMS


def test_hard_items_are_the_most_disputed_others_and_have_no_chance() -> None:
    disputed = {item: item / ITEMS for item in HASHES}
    drawn = draw_items(HASHES, LabelDraw(30, hard=5), disputed)
    hard = [item for item, chance in drawn.items() if chance is None]
    assert hard == sorted({*HASHES} - {i for i, c in drawn.items() if c}, reverse=True)[:5]


def test_disputed_items_need_two_setups_that_judged() -> None:
    with pytest.raises(DesignError, match="no setups disagree yet"):
        draw_items(HASHES, LabelDraw(30, disputed=True), {})


def test_raters_share_the_work_and_each_pair_of_them_has_items_in_common() -> None:
    drawn = draw_items(HASHES, LabelDraw(60))
    raters = ("ana", "bo", "cy")
    queues = assign(drawn, HASHES, raters, overlap=0.5, seed=1)
    assert {rater: len(items) for rater, items in queues.items()} == dict.fromkeys(raters, 30)
    labels = Counter(item for items in queues.values() for item in items)
    assert Counter(labels.values()) == {1: 30, 2: 30}
    pairs = Counter(
        tuple(rater for rater in raters if item in queues[rater])
        for item, times in labels.items()
        if times == 2
    )
    assert pairs == {("ana", "bo"): 10, ("ana", "cy"): 10, ("bo", "cy"): 10}


@pytest.mark.parametrize(
    ("raters", "overlap", "words"),
    [((), 0.0, "at least one"), (("a", "a"), 0.0, "once"), (("a",), 0.2, "needs two raters")],
)
def test_raters_that_cannot_share_items_are_refused(
    raters: tuple[str, ...], overlap: float, words: str
) -> None:
    with pytest.raises(DesignError, match=words):
        assign({0: 0.5}, HASHES, raters, overlap=overlap, seed=0)


def test_labels_of_disputed_items_give_the_estimates_of_all_labels() -> None:
    """Over many draws; without weights the judges' agreement with people would come out lower."""
    random = np.random.default_rng(5)
    people = random.integers(1, 3, ITEMS)
    hard = random.random(ITEMS) < 0.15
    right = {"x:a": np.where(hard, 0.5, 0.97), "x:b": np.where(hard, 0.4, 0.95)}
    verdicts = {
        judge: np.where(random.random(ITEMS) < share, people, 3 - people)
        for judge, share in right.items()
    }
    frame = tidy(
        pd.DataFrame(
            {
                "judge.model": np.repeat([*verdicts], ITEMS),
                "evidence": np.tile(np.arange(ITEMS), 2),
                "replicate": 0,
                "status": "scored",
                "stages": np.concatenate([*verdicts.values()]).astype(str),
                "n_stages": 2,
            }
        )
    )
    disagreement = dict(enumerate((verdicts["x:a"] != verdicts["x:b"]) * 0.9 + 0.02))
    labels = pd.DataFrame(
        {"tag": "x", "evidence": np.arange(ITEMS), "rater": "ana", "stage": people}
    )
    labels["tag"] = frame["tag"].iloc[0]

    def agreement(people: pd.DataFrame) -> float:
        table = judge_table(frame, people)
        return next(
            row["measures"]["exact"]["value"] for row in table["rows"] if row["setup"] == "a"
        )

    weighted, plain = [], []
    for seed in range(20):
        drawn = draw_items(HASHES, LabelDraw(100, True, 0.4, 0, seed), disagreement)
        part = labels[labels["evidence"].isin([*drawn])]
        plain.append(agreement(part))
        chance = part["evidence"].map(drawn).astype(float)
        weighted.append(agreement(part.assign(weight=1 / chance)))
    truth = agreement(labels)
    error = np.std(weighted) / np.sqrt(len(weighted))
    assert np.mean(weighted) == pytest.approx(truth, abs=max(3 * error, 0.005))
    assert np.mean(plain) < truth - 0.05


def test_more_labels_narrow_an_interval_by_the_root_of_their_number() -> None:
    now: Quantity = {"value": 0.8, "low": 0.6, "high": 0.9, "n": 20}
    assert after_more_labels(now, 60) == pytest.approx((0.7, 0.85))
    assert after_more_labels({**now, "low": None}, 60) is None
