"""The judge table: what counts as right, who is best, and what the sentence says."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.standing import compare, cross_fitted
from judge_gym.analysis.judges.table import judge_table
from judge_gym.records.judge_table import JudgeRow, JudgeTable, Quantity


def samples(*rows: tuple[Any, ...], **columns: Any) -> pd.DataFrame:
    """Rows of judge, item, repeat, verdict (a status, or stages) and truth."""
    names = ["judge.model", "evidence", "replicate", "verdict", "truth"]
    frame = pd.DataFrame(rows, columns=names)
    scored = frame["verdict"].str.match(r"[\d ]+$")
    return frame.assign(
        status=np.where(scored, "scored", frame["verdict"]),
        stages=np.where(scored, frame["verdict"], ""),
        n_stages=3,
        **columns,
    )


def only_row(table: JudgeTable) -> JudgeRow:
    (row,) = table["rows"]
    return row


def value(quantity: Quantity | None) -> float:
    assert quantity is not None
    return quantity["value"]


def test_verdicts_without_a_score_are_not_right_and_failed_calls_do_not_count() -> None:
    verdicts = ["1", "2", "1 2", "abstained", "refused", "truncated", "parse_failed"]
    rows: list[tuple[Any, ...]]
    rows = [("x:a", item, 0, verdict, 1) for item, verdict in enumerate(verdicts)]
    rows += [("x:a", 7, 0, "provider_error", 1), ("x:a", 8, 0, "1", None)]
    row = only_row(judge_table(tidy(samples(*rows))))
    assert row["truth"] is not None
    assert (row["truth"]["kind"], row["truth"]["n"]) == ("accuracy", 7)
    assert row["truth"]["value"] == pytest.approx(1.5 / 7)  # a subset counts by its share
    assert row["failed_calls"] == 1
    assert value(row["abstained"]) == pytest.approx(1 / 8)
    assert value(row["unreadable"]) == pytest.approx(3 / 8)
    assert value(row["answered"]) == pytest.approx(3 / 7)
    assert value(row["right_of_answered"]) == pytest.approx(1.5 / 3)


@pytest.mark.parametrize(("truths", "right"), [((1, 2, 2), 0.5), ((1, 2, 3), 1 / 3)])
def test_a_tie_counts_one_half_only_where_no_known_answer_is_a_tie(
    truths: tuple[int, ...], right: float
) -> None:
    rows = [("x:a", item, 0, "3", truth) for item, truth in enumerate(truths)]
    row = only_row(judge_table(tidy(samples(*rows, pair=True))))
    assert row["truth"] is not None
    assert row["truth"]["value"] == pytest.approx(right)


def test_a_pair_is_one_unit_in_both_orders() -> None:
    rows = [("x:a", item, 0, verdict, 1) for item in (0, 1) for verdict in ("1", "2")]
    frame = samples(*rows, pair=True, usd=0.002, seconds=1.5).assign(flipped=[False, True] * 2)
    row = only_row(judge_table(tidy(frame)))
    assert row["truth"] is not None
    assert (row["truth"]["value"], row["truth"]["n"]) == (0.5, 2)
    assert value(row["usd_per_1000"]) == pytest.approx(4)
    assert value(row["seconds"]) == pytest.approx(3)
    # In the reverse order, the second response is shown first.
    assert value(row["position_bias"]) == 1


def test_consistency_is_the_share_of_equal_pairs_of_repeats() -> None:
    verdicts = {0: ["1", "1", "2"], 1: ["1", "1", "1"], 2: ["1"], 3: ["abstained", "abstained"]}
    rows = [
        ("x:a", i, n, verdict, None) for i, all in verdicts.items() for n, verdict in enumerate(all)
    ]
    table = judge_table(tidy(samples(*rows)))
    row = only_row(table)
    assert value(row["consistency"]) == pytest.approx((1 + 3 + 1) / (3 + 3 + 1))
    assert row["truth"] is None
    assert row["standing"] == "unknown"
    assert table["sentence"].startswith("Accuracy unknown")
    assert "label 30 items" in table["sentence"]


def test_agreement_is_with_a_random_rater_beside_people_with_each_other() -> None:
    given = {0: [1, 1, 1], 1: [1, 1, 2], 2: [1, 2, 3], 3: [2]}
    people = pd.DataFrame(
        [("t", i, f"r{n}", s) for i, all in given.items() for n, s in enumerate(all)],
        columns=["tag", "evidence", "rater", "stage"],
    )
    rows = [("x:a", item, 0, "1", None) for item in range(5)]
    table = judge_table(tidy(samples(*rows, tag="t")), people)
    row = only_row(table)
    assert row["truth"] is not None
    assert row["truth"]["kind"] == "agreement"
    assert row["truth"]["value"] == pytest.approx((1 + 2 / 3 + 1 / 3 + 0) / 4)
    assert value(row["majority"]) == pytest.approx(2 / 3)  # raters tie on item 2
    assert value(table["people_with_each_other"]) == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert (table["raters"], table["known_items"]) == (3, 4)


def test_setups_are_named_by_what_differs() -> None:
    parts = [
        samples(("x:a", 0, 0, "1", 1), ("x:b", 0, 0, "1", 1), **{"verdict.method": method})
        for method in ("single", "subset")
    ]
    table = judge_table(tidy(pd.concat(parts)))
    names = {row["setup"]: row["knobs"] for row in table["rows"]}
    assert names == {
        "a": {"verdict.method": "single"},
        "b": {"verdict.method": "single"},
        "a, method subset": {"verdict.method": "subset"},
        "b, method subset": {"verdict.method": "subset"},
    }


# --- who is best ---------------------------------------------------------------------------------


def drawn(chances: list[float], items: int, seed: int) -> np.ndarray:
    """Right and wrong answers; setups share how hard an item is."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 0.2, (items, 1))
    return (rng.random((items, len(chances))) < np.clip(np.array(chances) + hard, 0, 1)).astype(
        float
    )


def test_few_setups_are_called_best_wrongly() -> None:
    wrong = 0
    for seed in range(400):
        values = drawn([0.8, 0.8, 0.8], 40, seed)
        wrong += "best" in compare(values, np.arange(40)).standings
    assert wrong / 400 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


def test_a_real_lead_is_found_and_few_items_decide_nothing() -> None:
    standings = [
        compare(drawn([0.9, 0.6], 100, seed), np.arange(100)).standings for seed in range(20)
    ]
    assert standings.count(("best", "worse")) >= 19
    assert compare(drawn([1.0, 0.0], 19, 0), np.arange(19)).standings == ("unknown",) * 2
    # Twenty items of four outlets are four observations.
    assert compare(drawn([1.0, 0.0], 20, 0), np.arange(20) % 4).standings == ("unknown",) * 2


def test_the_quality_of_the_chosen_setup_is_not_inflated_by_the_choice() -> None:
    highest, corrected = [], []
    none = np.full(10, np.nan)
    for seed in range(200):
        values = drawn([0.7] * 10, 40, seed)
        highest.append(values.mean(axis=0).max())
        corrected.append(cross_fitted(values, np.arange(40), none, None).mean())
    error = np.std(corrected) / np.sqrt(len(corrected))
    assert np.mean(highest) > 0.75
    assert np.mean(corrected) == pytest.approx(0.7, abs=3 * error)
