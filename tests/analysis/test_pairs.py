"""Judged pairs, against the published rule, worked examples, statsmodels and scipy."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.pairs import (
    Comparison,
    PairScore,
    compare_judges,
    pair_table,
    pair_verdicts,
    recorded_samples,
    score_pairs,
)
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.measures import registered
from judge_gym.analysis.stats.intervals import SHARE, estimate
from judge_gym.errors import DesignError
from judge_gym.records.pairs import PairDecision
from judge_gym.sources.judgebench import ORDERS, Order
from tables import each_row

JUDGE = "judge.model"
GIVEN: tuple[Order, ...] = ("given",)
REVERSED: tuple[Order, ...] = ("reversed",)
SWAP: dict[int | None, int | None] = {1: 2, 2: 1, 3: 3, None: None}
steady = settings(deadline=None, derandomize=True, max_examples=25)


@dataclass(frozen=True)
class Pair:
    """The decisions on a pair, in each order that was shown."""

    item: str
    truth: int
    decisions: tuple[int | None, ...]
    orders: tuple[Order, ...] = ORDERS
    category: str = ""


def pair(*decisions: int | None, truth: int = 1, item: str = "x", **more: Any) -> Pair:
    """A judged pair, shown in the given order and then reversed, as far as there are decisions."""
    return Pair(item, truth, decisions, **{"orders": ORDERS[: len(decisions)], **more})


def samples(pairs: Sequence[Pair], judge: str = "judge") -> pd.DataFrame:
    return recorded_samples(
        judge,
        [
            PairDecision(one.item, one.truth, order == "reversed", decision, one.category)
            for one in pairs
            for order, decision in zip(one.orders, one.decisions, strict=True)
        ],
    )


def score_of(pairs: Sequence[Pair]) -> PairScore:
    return score_pairs(pair_verdicts({"judge": samples(pairs)}))


def comparison_of(judges: Mapping[str, Sequence[Pair]]) -> Comparison:
    return compare_judges(
        pair_verdicts({name: samples(pairs, name) for name, pairs in judges.items()})
    )


def numbered(*pairs: Pair) -> list[Pair]:
    """The same pairs as items of their own."""
    return [
        Pair(f"{number:04}", one.truth, one.decisions, one.orders, one.category)
        for number, one in enumerate(pairs)
    ]


decisions = st.sampled_from([1, 2, 3, None])
both_orders = st.builds(
    lambda first, second, truth, category: pair(first, second, truth=truth, category=category),
    decisions,
    decisions,
    st.sampled_from([1, 2]),
    st.sampled_from(["math", "coding", "law"]),
)
judged = st.lists(both_orders, min_size=1, max_size=30).map(lambda pairs: numbered(*pairs))


# --- the scoring rule ----------------------------------------------------------------------------


@each_row(
    ("found", "correct"),
    [
        ((1, 1), True),
        ((1, 3), True),
        ((None, 1), True),
        ((1, 2), False),
        ((3, 3), False),
        ((3, None), False),
        ((None, None), False),
        ((2, 2), False),
        ((2, 3), False),
        ((1,), True),
        ((3,), False),
        ((None,), False),
    ],
)
def test_a_pair_is_correct_where_right_decisions_outweigh_wrong_ones(
    found: tuple[int | None, ...], correct: bool
) -> None:
    assert score_of([pair(*found)]).accuracy == correct
    assert score_of([pair(*(SWAP[d] for d in found), truth=2)]).accuracy == correct


def test_a_true_tie_has_no_opposite() -> None:
    assert score_of([pair(3, 1, truth=3)]).accuracy == 1
    assert score_of([pair(1, 2, truth=3)]).accuracy == 0
    assert score_of([pair(3, None, truth=3)]).accuracy == 1, "no answer is no opposite either"


def published_score(pairs: list[Pair]) -> tuple[float, float, float]:
    """Accuracy, both right and inconsistent, by the words of the benchmark's own rule."""
    words = {1: "A>B", 2: "B>A", 3: "A=B", None: None}
    right = both = differ = 0
    for one in pairs:
        label, opposite = words[one.truth], words[SWAP[one.truth]]
        first, second = (words[decision] for decision in one.decisions)
        balance = 0
        for decision in (first, second):
            balance += {label: 1, opposite: -1}.get(decision, 0)
        right += balance > 0
        both += first == label and second == label
        differ += first != second
    return right / len(pairs), both / len(pairs), differ / len(pairs)


@steady
@given(judged)
def test_scores_are_those_of_the_published_rule(pairs: list[Pair]) -> None:
    score = score_of(pairs)
    assert (score.accuracy, score.both_correct, score.inconsistent) == pytest.approx(
        published_score(pairs)
    )
    assert score.n == len(pairs)
    assert score.nulls == sum(d is None for one in pairs for d in one.decisions)


def is_right(one: Pair) -> bool:
    """Whether right decisions outweigh wrong ones; no pair is truly a tie."""
    return one.decisions.count(one.truth) > one.decisions.count(3 - one.truth)


@pytest.mark.slow
@steady
@given(judged)
def test_the_interval_is_clopper_and_pearsons(pairs: list[Pair]) -> None:
    score = score_of(pairs)
    right = sum(is_right(one) for one in pairs)
    expected = proportion_confint(right, len(pairs), method="beta")
    assert score.interval == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@steady
@given(judged, st.randoms(use_true_random=False))
def test_the_order_of_lines_is_irrelevant(pairs: list[Pair], chance: random.Random) -> None:
    mixed = chance.sample(pairs, len(pairs))
    assert json.dumps(score_of(mixed).to_json()) == json.dumps(score_of(pairs).to_json())


@pytest.mark.slow
@steady
@given(judged)
def test_naming_the_responses_the_other_way_round_changes_nothing(pairs: list[Pair]) -> None:
    # What was shown first stays so: the given order of the one naming is the reversed of the other.
    renamed = [
        Pair(
            one.item,
            3 - one.truth,
            tuple(SWAP[decision] for decision in reversed(one.decisions)),
            category=one.category,
        )
        for one in pairs
    ]
    assert score_of(renamed) == score_of(pairs)


@pytest.mark.slow
@steady
@given(judged)
def test_showing_every_pair_the_other_way_round_negates_position_bias_alone(
    pairs: list[Pair],
) -> None:
    shown = [Pair(one.item, one.truth, one.decisions[::-1], category=one.category) for one in pairs]
    before, after = score_of(pairs), score_of(shown)
    if before.position_bias is None:
        assert after.position_bias is None
    else:
        assert after.position_bias == pytest.approx(-before.position_bias)
    for name in ("n", "accuracy", "both_correct", "inconsistent", "nulls", "interval"):
        assert getattr(after, name) == getattr(before, name)


@pytest.mark.slow
@steady
@given(st.integers(1, 40))
def test_a_judge_that_decides_nothing_is_never_correct(n: int) -> None:
    score = score_of(numbered(*[pair(None, None)] * n))
    assert (score.accuracy, score.both_correct, score.nulls) == (0, 0, 2 * n)
    assert score.inconsistent == 0, "nothing and nothing are the same"
    assert score.position_bias is None, "there is no decision to lean either way"


# --- position bias -------------------------------------------------------------------------------


def test_position_bias_is_one_where_the_response_shown_first_always_wins() -> None:
    assert score_of(numbered(pair(1, 2), pair(1, 2, truth=2))).position_bias == 1
    assert score_of(numbered(pair(2, 1), pair(2, 1, truth=2))).position_bias == -1


def test_a_judge_that_sticks_to_a_response_has_no_position_bias() -> None:
    assert score_of(numbered(pair(1, 1), pair(2, 2), pair(2, 2))).position_bias == 0


def test_ties_weaken_position_bias_and_missing_decisions_do_not() -> None:
    # Of three decisions one is for the response shown first, none for the second.
    assert score_of(numbered(pair(1, 3), pair(None, 3))).position_bias == pytest.approx(1 / 3)


# --- one order only ------------------------------------------------------------------------------


@pytest.mark.parametrize("orders", [GIVEN, REVERSED])
def test_what_compares_orders_is_null_where_one_was_shown(orders: tuple[Order, ...]) -> None:
    score = score_of(numbered(pair(1, orders=orders), pair(2, orders=orders)))
    assert score.accuracy == 0.5
    assert score.both_correct is score.inconsistent is score.position_bias is None
    assert score.to_json()["both_correct"] is None


def test_one_pair_with_an_order_missing_leaves_them_null() -> None:
    assert score_of(numbered(pair(1, 1), pair(1))).both_correct is None


@pytest.mark.parametrize("truth", [0, 4])
def test_a_truth_that_is_no_decision_is_refused(truth: int) -> None:
    with pytest.raises(DesignError, match="truth"):
        samples([pair(1, 1, truth=truth)])


# --- categories and JSON -------------------------------------------------------------------------


def test_categories_stand_in_the_benchmarks_order_and_others_behind_by_name() -> None:
    names = ["zoology", "coding", "art", "math", "reasoning", "knowledge"]
    score = score_of(numbered(*(pair(1, 1, category=name) for name in names)))
    expected = ["knowledge", "reasoning", "math", "coding", "art", "zoology"]
    assert list(score.by_category or ()) == expected
    assert list(score.to_json()["by_category"]) == expected


def test_pairs_without_a_category_count_overall_only() -> None:
    score = score_of(numbered(pair(1, 1), pair(2, 2, category="math")))
    assert score.n == 2
    assert {name: part.n for name, part in (score.by_category or {}).items()} == {"math": 1}


def test_json_gives_percent_with_two_decimals_and_counts_as_they_are() -> None:
    pairs = [pair(1, 1, category="math"), pair(1, 2, category="math"), pair(None, 2)]
    low, high = proportion_confint(1, 3, method="beta")
    found = score_of(numbered(*pairs)).to_json()
    part = found.pop("by_category")
    assert found == {
        "n": 3,
        "accuracy": 33.33,
        "both_correct": 33.33,
        "inconsistent": 66.67,
        "nulls": 1,
        # Shown first: 1 given, 1 given, 2 reversed, 2 reversed; shown second: 1 reversed.
        "position_bias": 60.0,
        "interval": [round(100 * low, 2), round(100 * high, 2)],
    }
    assert part["math"]["accuracy"] == 50.0
    assert set(part["math"]) == set(found), "the same fields, without categories of its own"


def test_scoring_nothing_is_refused() -> None:
    unknown = samples([pair(1, 1)]).assign(truth=np.nan)
    with pytest.raises(DesignError, match="no judged pair"):
        score_pairs(pair_verdicts({"judge": unknown}))


# --- replicates ----------------------------------------------------------------------------------


def test_replicates_are_averaged_and_the_interval_is_over_items() -> None:
    right = {"a": [1, 1], "b": [1, 2], "c": [2, 2], "d": [1, 2]}
    pairs = [pair(d, d, item=item) for item, found in right.items() for d in found]
    score = score_of(pairs)
    means = [1.0, 0.5, 0.0, 0.5]
    assert (score.n, score.accuracy) == (4, 0.5)
    assert score.interval == pytest.approx(estimate(means, scale=SHARE)[1:3])


def test_replicates_that_all_agree_tell_no_more_than_one() -> None:
    once = numbered(pair(1, 1), pair(1, 1), pair(2, 2))
    assert score_of(once * 5).interval == score_of(once).interval
    assert score_of(once * 5).n == 3


def test_one_item_with_replicates_that_differ_has_no_interval() -> None:
    score = score_of([pair(1, 1), pair(2, 2)])
    assert (score.n, score.accuracy, score.interval) == (1, 0.5, None)


# --- judges compared -----------------------------------------------------------------------------


def outcomes(*right: bool) -> list[Pair]:
    """Pairs that a judge has right or wrong, in both orders."""
    return numbered(*(pair(*((1, 1) if hit else (2, 2))) for hit in right))


@steady
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_the_test_is_mcnemars_exact(found: list[tuple[bool, bool]]) -> None:
    [contrast] = comparison_of(
        {"a": outcomes(*(a for a, _ in found)), "b": outcomes(*(b for _, b in found))}
    ).contrasts
    table = [[found.count((a, b)) for b in (True, False)] for a in (True, False)]
    assert (contrast.only_judge, contrast.only_other) == (table[0][1], table[1][0])
    assert contrast.p == pytest.approx(mcnemar(table, exact=True).pvalue)
    assert contrast.difference == pytest.approx(
        np.mean([a for a, _ in found]) - np.mean([b for _, b in found])
    )
    if contrast.interval:
        assert contrast.interval[0] <= contrast.difference <= contrast.interval[1]


def test_mcnemars_worked_example() -> None:
    # Approval before and after (Agresti): 150 changed one way, 86 the other.
    both, first, second, neither = 794, 150, 86, 570
    a = outcomes(*[True] * both, *[True] * first, *[False] * second, *[False] * neither)
    b = outcomes(*[True] * both, *[False] * first, *[True] * second, *[False] * neither)
    [contrast] = comparison_of({"a": a, "b": b}).contrasts
    assert contrast.difference == pytest.approx(0.04)
    assert contrast.p == pytest.approx(3.716e-5, rel=1e-3)
    assert contrast.interval == pytest.approx((0.0214, 0.0586), abs=0.002), "published: Wald"


def test_the_interval_of_a_difference_is_that_of_resampled_items() -> None:
    generator = np.random.default_rng(5)
    right = generator.random(400) < 0.7
    other = np.where(generator.random(400) < 0.8, right, ~right)
    judges = {"a": outcomes(*right), "b": outcomes(*other)}
    [contrast] = comparison_of(judges).contrasts
    drawn = generator.integers(0, 400, size=(20_000, 400))
    differences = (right.astype(int) - other.astype(int))[drawn].mean(axis=1)
    assert contrast.interval == pytest.approx(np.percentile(differences, [2.5, 97.5]), abs=0.003)
    assert comparison_of(judges) == comparison_of(dict(reversed(judges.items()))), (
        "seeded, in any order"
    )


def test_few_items_get_students_interval() -> None:
    a, b = [True] * 6 + [False] * 2, [True] * 3 + [False] * 4 + [True]
    [contrast] = comparison_of({"a": outcomes(*a), "b": outcomes(*b)}).contrasts
    values = np.array(a, dtype=int) - np.array(b, dtype=int)
    expected = stats.t.interval(0.95, df=7, loc=values.mean(), scale=stats.sem(values))
    assert contrast.interval == pytest.approx(expected)


def test_alpha_of_krippendorffs_example() -> None:
    # Krippendorff 2011, example A: two observers, ten units, two values: alpha is .095.
    meg, owen = "0100000010", "1110010000"
    judges = {
        name: numbered(*(pair(int(value) + 1) for value in values))
        for name, values in (("meg", meg), ("owen", owen))
    }
    found = comparison_of(judges)
    [contrast] = found.contrasts
    assert contrast.alpha == pytest.approx(0.095, abs=0.0005)
    assert found.alpha == contrast.alpha
    assert contrast.agreement == pytest.approx(6 / 10)


def test_missing_decisions_are_no_disagreement() -> None:
    ours = numbered(pair(1, 2), pair(None, 3), pair(2, 2))
    theirs = numbered(pair(1, None), pair(2, 3), pair(1, 2))
    [contrast] = comparison_of({"a": ours, "b": theirs}).contrasts
    # Both decided: 1 and 1, 3 and 3, 2 and 1, 2 and 2.
    assert contrast.agreement == pytest.approx(3 / 4)


def test_orders_are_not_mixed_up_when_one_judge_saw_one() -> None:
    ours = numbered(pair(1, 2), pair(1, 2))
    theirs = numbered(pair(2, orders=REVERSED), pair(2, orders=REVERSED))
    [contrast] = comparison_of({"a": ours, "b": theirs}).contrasts
    assert contrast.agreement == 1
    assert contrast.alpha is None, "nobody varies: alpha is undefined"


def test_agreement_is_null_where_no_judgment_is_decided_by_both() -> None:
    found = comparison_of({"a": numbered(pair(1, None)), "b": numbered(pair(None, 2))})
    [contrast] = found.contrasts
    assert contrast.agreement is contrast.alpha is found.alpha is None
    assert contrast.interval is None, "one item has no spread"
    assert json.loads(json.dumps(found.to_json()))["contrasts"][0]["alpha"] is None


def test_judges_are_compared_on_what_all_share_and_the_rest_is_counted() -> None:
    pairs = numbered(*[pair(1, 1)] * 5)
    found = comparison_of({"a": pairs[:4], "b": pairs[1:], "c": pairs[2:]})
    assert (found.shared, found.left_out) == (2, 3)
    assert [(one.judge, one.other) for one in found.contrasts] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert {name: score.n for name, score in found.scores.items()} == {"a": 2, "b": 2, "c": 2}
    shown = found.to_json()
    assert (shown["shared"], shown["left_out"]) == (2, 3)
    assert shown["scores"]["a"]["accuracy"] == 100.0
    assert shown["contrasts"][0]["difference"] == 0.0
    assert shown["contrasts"][0]["p"] == 1.0


def test_judges_that_share_no_pair_are_refused() -> None:
    with pytest.raises(DesignError, match="a, b share no pair"):
        comparison_of({"a": [pair(1, 1, item="x")], "b": [pair(1, 1, item="y")]})


def test_one_judge_is_no_comparison() -> None:
    with pytest.raises(DesignError, match="two judges; there is a"):
        comparison_of({"a": [pair(1, 1)]})


def test_replicates_are_not_compared_as_if_they_were_items() -> None:
    with pytest.raises(DesignError, match="a has pair 'x' twice"):
        comparison_of({"a": [pair(1, 1)] * 2, "b": [pair(1, 1)]})


def test_judges_must_know_the_same_truth() -> None:
    with pytest.raises(DesignError, match=r"pair 'x' the truths \[1, 2\]"):
        comparison_of({"a": [pair(1, 1)], "b": [pair(1, 1, truth=2)]})


# --- judge-gym's own samples ---------------------------------------------------------------------

ROW = {
    JUDGE: "a",
    "evidence": 1,
    "replicate": 0,
    "flipped": False,
    "status": "scored",
    "stages": "1",
    "n_stages": 3,
    "pair": True,
    "rubric_kind": "nominal",
    "truth": 1,
}


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    """Tidy samples; each is a call of its own unless it says otherwise."""
    made = [{**ROW, "call_id": number, **row} for number, row in enumerate(rows, 1)]
    return tidy(pd.DataFrame(made))


def score(*rows: dict[str, Any]) -> PairScore:
    return score_pairs(pair_verdicts({"a": frame(*rows)}))


def test_samples_in_both_orders_are_one_pair_per_replicate() -> None:
    found = score(
        {"stages": "2", "flipped": True},
        {"stages": "1"},
        {"stages": "3", "replicate": 1},
        {"stages": "1", "replicate": 1, "flipped": True},
    )
    # Once the orders cancel out; once one is right and one a tie.
    assert (found.n, found.accuracy, found.both_correct, found.inconsistent) == (1, 0.5, 0, 1)


@pytest.mark.parametrize(
    ("status", "stages"),
    [("scored", "1 3"), ("scored", "1 2"), ("abstained", ""), ("refused", ""), ("truncated", "")],
)
def test_a_verdict_on_several_options_decides_nothing(status: str, stages: str) -> None:
    found = score({"status": status, "stages": stages}, {"flipped": True})
    assert (found.nulls, found.accuracy, found.both_correct, found.inconsistent) == (1, 1, 0, 1)


def test_items_without_truth_are_left_out() -> None:
    found = score({"truth": None}, {"evidence": 2, "truth": 2})
    assert (found.n, found.accuracy, found.nulls) == (1, 0, 0)


def test_a_category_is_kept_where_it_is_known() -> None:
    rows: list[dict[str, Any]] = [
        {"category": "math"},
        {"evidence": 2, "category": None},
        {"evidence": 3},
    ]
    found = score(*rows)
    assert {name: part.n for name, part in (found.by_category or {}).items()} == {"math": 1}
    assert found.n == 3


def test_calls_that_two_experiments_share_are_one_observation() -> None:
    shared: list[dict[str, Any]] = [
        {"call_id": 7, "stages": "2"},
        {"call_id": 8, "flipped": True, "stages": "3"},
    ]
    right: list[dict[str, Any]] = [
        {"evidence": 2, "call_id": 9},
        {"evidence": 2, "call_id": 10, "flipped": True},
    ]
    rows = [{**row, "tag": tag} for tag in ("s", "t") for row in [*shared, *right]]
    assert score(*rows).position_bias == score(*shared, *right).position_bias == -1 / 4
    fresh = [{**row, "call_id": None} for row in rows]
    verdicts = pair_verdicts({"a": frame(*fresh)})
    assert len(verdicts.rows) == 8, "without calls nothing says that they are the same"


def test_series_are_observations_of_their_own() -> None:
    found = score({"series": "7"}, {"series": "retest", "stages": "2"})
    assert (found.n, found.accuracy) == (1, 0.5)


def test_two_samples_of_one_order_are_refused_and_not_mixed() -> None:
    with pytest.raises(DesignError, match="two samples in the same order of replicate 0"):
        score({}, {JUDGE: "b"})


def test_the_measures_of_the_benchmark_are_no_columns_of_the_judge_table() -> None:
    names = {"pair_accuracy", "both_correct", "inconsistent"}
    assert {measure.name for measure in registered("judgebench")} == names
    rows = [{"evidence": item, "flipped": turned} for item in range(3) for turned in (False, True)]
    columns = {head["name"] for head in judge_table(frame(*rows))["columns"]}
    assert "exact" in columns and not names & columns


def test_a_table_has_a_row_per_group_with_what_the_score_says() -> None:
    rows = [
        {JUDGE: judge, "evidence": item, "flipped": flipped, "stages": stages}
        for judge, found in {"a": "1112", "b": "2111"}.items()
        for (item, flipped), stages in zip(
            [(1, False), (1, True), (2, False), (2, True)], found, strict=True
        )
    ]
    table = pair_table(frame(*rows, {JUDGE: "c", "truth": None, "evidence": 3}), [JUDGE])
    assert table.columns.tolist() == [
        JUDGE,
        "n",
        "accuracy",
        "low",
        "high",
        "both_correct",
        "inconsistent",
        "nulls",
        "position_bias",
    ]
    assert table[JUDGE].tolist() == ["a", "b"], "c knows no truth"
    assert table["accuracy"].tolist() == [0.5, 0.5]
    assert table["inconsistent"].tolist() == [0.5, 0.5]
    # For the response shown first: three of four by a, one of four by b.
    assert table["position_bias"].tolist() == pytest.approx([0.5, -0.5])
    low, high = proportion_confint(1, 2, method="beta")
    assert table[["low", "high"]].to_numpy()[0] == pytest.approx([low, high])


def test_the_tables_interval_takes_items_as_the_sample_and_not_replicates() -> None:
    right = {1: "1111", 2: "1212", 3: "2222", 4: "1112", 5: "1222"}
    rows = [
        {"evidence": item, "replicate": number, "flipped": flipped, "stages": stages}
        for item, found in right.items()
        for number, stages in enumerate(found)
        for flipped in (False, True)
    ]
    table = pair_table(frame(*rows), [JUDGE])
    means = [1, 0.5, 0, 0.75, 0.25]
    assert table["n"].item() == 5
    assert table["accuracy"].item() == pytest.approx(0.5)
    assert table[["low", "high"]].to_numpy()[0] == pytest.approx(estimate(means, scale=SHARE)[1:3])


def test_a_group_of_one_order_has_nulls_and_not_zeros() -> None:
    table = pair_table(frame({}, {"evidence": 2}), [JUDGE])
    assert table[["both_correct", "inconsistent", "position_bias"]].isna().all(axis=None)


def test_an_unset_level_is_a_group_too() -> None:
    made = frame({"judge.temperature": None}, {"judge.temperature": 0.5})
    assert len(pair_table(made, ["judge.temperature"])) == 2


def test_no_samples_make_an_empty_table() -> None:
    table = pair_table(frame({})[:0], [JUDGE])
    assert table.empty
    assert "accuracy" in table
