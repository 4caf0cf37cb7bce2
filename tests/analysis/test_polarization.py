"""Raw polarization, against scipy's Jensen-Shannon distance and against numbers by hand."""

from itertools import combinations, product
from math import log2
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from judge_gym.analysis.polarization import (
    divergent_pairs,
    item_distributions,
    jensen_shannon,
    raw_polarization,
)

JUDGE = "judge.model"
steady = settings(deadline=None, derandomize=True)


def frame(*rows: tuple[str, int, str], n_stages: int = 4, task: str = "t") -> pd.DataFrame:
    """Samples as (judge, item, stages); no stage means an abstention."""
    return pd.DataFrame(
        [
            {
                "task": task,
                JUDGE: judge,
                "evidence": item,
                "status": "scored" if stages else "abstained",
                "stages": stages,
                "n_stages": n_stages,
                "call_id": f"{task}-{number}",
            }
            for number, (judge, item, stages) in enumerate(rows)
        ]
    )


def only(found: pd.DataFrame) -> dict[str, Any]:
    assert len(found) == 1
    return {column: found[column].item() for column in found.columns}


def panels(judges: st.SearchStrategy[int]) -> st.SearchStrategy[np.ndarray]:
    """Distributions of several judges over the same stages; stages may have no mass."""
    shapes = st.tuples(judges, st.integers(2, 7))
    weight = st.integers(0, 20)
    return shapes.flatmap(
        lambda shape: st.lists(
            st.lists(weight, min_size=shape[1], max_size=shape[1]).filter(any),
            min_size=shape[0],
            max_size=shape[0],
        ).map(lambda rows: np.array([np.array(row) / sum(row) for row in rows]))
    )


# --- the divergence ------------------------------------------------------------------------------


@steady
@given(panels(st.just(2)))
def test_two_judges_diverge_by_scipys_distance_squared(p: np.ndarray) -> None:
    assert jensen_shannon(p) == pytest.approx(jensenshannon(p[0], p[1], base=2) ** 2, abs=1e-9)


@steady
@given(panels(st.integers(2, 6)))
def test_divergence_is_the_mean_relative_entropy_to_the_mixture(p: np.ndarray) -> None:
    mixture = p.mean(axis=0)
    expected = np.mean([entropy(row, mixture, base=2) for row in p])
    assert jensen_shannon(p) == pytest.approx(expected, abs=1e-9)


@steady
@given(panels(st.integers(2, 6)))
def test_divergence_over_its_bound_lies_between_0_and_1(p: np.ndarray) -> None:
    judges, stages = p.shape
    assert -1e-12 <= jensen_shannon(p) / log2(min(judges, stages)) <= 1 + 1e-12


@steady
@given(panels(st.integers(2, 6)), st.randoms(use_true_random=False))
def test_neither_the_order_of_judges_nor_of_stages_matters(p: np.ndarray, rng: Any) -> None:
    judges, stages = (rng.sample(range(n), n) for n in p.shape)
    assert jensen_shannon(p[judges][:, stages]) == pytest.approx(jensen_shannon(p), abs=1e-9)


def test_identical_judges_diverge_by_nothing_and_never_by_less() -> None:
    # Every distribution that five verdicts on four stages can have.
    counts = [c for c in product(range(6), repeat=4) if sum(c) == 5]
    for judges, count in product((2, 3, 5), counts):
        divergence = jensen_shannon(np.tile(np.array(count) / 5, (judges, 1)))
        assert 0 <= divergence < 1e-12, "a table must not print -1.11e-16"


def test_three_judges_by_hand() -> None:
    apart = np.eye(3)
    assert jensen_shannon(apart) == pytest.approx(log2(3))
    # Two at stage 1, one at stage 2: H(2/3, 1/3), and the judges have no entropy of their own.
    assert jensen_shannon(np.array([[1, 0], [1, 0], [0, 1.0]])) == pytest.approx(
        -(2 / 3 * log2(2 / 3) + 1 / 3 * log2(1 / 3))
    )


def test_five_judges_on_four_stages_cannot_reach_the_bound() -> None:
    # methods.md: "5 judges on 4 stages reach .96". Best is one judge a stage, two on one of them.
    most = max(
        jensen_shannon(np.eye(4)[[0, 1, 2, 3, extra]]) / log2(min(5, 4)) for extra in range(4)
    )
    assert most == pytest.approx(0.96, abs=0.005)


# --- distributions per item ----------------------------------------------------------------------


def test_item_distributions_pool_replicates_and_spread_subsets() -> None:
    found = item_distributions(frame(("a", 1, "1"), ("a", 1, "1 2"), ("b", 1, "4")), 4)
    assert found.index.tolist() == [(1, "a"), (1, "b")]
    assert found.to_numpy().tolist() == [[0.75, 0.25, 0, 0], [0, 0, 0, 1]]


# --- raw P ---------------------------------------------------------------------------------------


def test_p_is_the_mean_over_items_in_units_of_its_bound() -> None:
    # Item 1: wholly apart (1 bit). Item 2: alike (0). Item 3: half the verdicts of b differ.
    made = frame(
        *[("a", 1, "1"), ("b", 1, "4")],
        *[("a", 2, "2"), ("b", 2, "2")],
        *[("a", 3, "1"), ("a", 3, "1"), ("b", 3, "1"), ("b", 3, "2")],
    )
    third = jensenshannon([1, 0], [0.5, 0.5], base=2) ** 2
    row = only(raw_polarization(made, ["task"]))
    assert row["p"] == pytest.approx((1 + 0 + third) / 3)
    assert (row["judges"], row["items"], row["dropped"]) == (2, 3, 0)
    assert row["replicates"] == pytest.approx(8 / 6)


def test_three_judges_are_measured_against_log2_of_three() -> None:
    made = frame(("a", 1, "1"), ("b", 1, "2"), ("c", 1, "3"))
    assert only(raw_polarization(made, ["task"]))["p"] == pytest.approx(1)
    # On two stages three judges cannot lie farther apart than H(2/3, 1/3), over a bound of 1 bit.
    made = frame(("a", 1, "1"), ("b", 1, "2"), ("c", 1, "2"), n_stages=2)
    assert only(raw_polarization(made, ["task"]))["p"] == pytest.approx(entropy([1, 2], base=2))


def test_judges_that_agree_have_no_polarization() -> None:
    made = frame(*[(judge, item, "1 2") for judge in "abc" for item in (1, 2)])
    assert only(raw_polarization(made, ["task"]))["p"] == pytest.approx(0, abs=1e-12)


def test_an_item_that_a_judge_did_not_score_is_dropped_and_counted() -> None:
    made = frame(
        *[("a", 1, "1"), ("b", 1, "4")],
        *[("a", 2, "1"), ("b", 2, "")],  # b abstains
        *[("a", 3, "1")],  # b was never asked
        *[("a", 4, ""), ("b", 4, "")],
    )
    row = only(raw_polarization(made, ["task"]))
    assert (row["items"], row["dropped"]) == (1, 3)
    assert row["p"] == pytest.approx(1), "the dropped items count neither as 0 nor as 1"


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([("a", 1, "1"), ("a", 2, "4")], id="one judge"),
        pytest.param([("a", 1, ""), ("b", 1, "")], id="nothing scored"),
        pytest.param([("a", 1, "1"), ("b", 1, "")], id="never both"),
    ],
)
def test_p_is_null_where_it_is_undefined(rows: list[tuple[str, int, str]]) -> None:
    row = only(raw_polarization(frame(*rows), ["task"]))
    assert pd.isna(row["p"])
    assert (row["items"], row["dropped"]) == (0, len({item for _, item, _ in rows}))


def test_a_shared_call_is_one_observation() -> None:
    made = frame(("a", 1, "1"), ("a", 1, "2"), ("b", 1, "1"))
    twice = pd.concat([made, made[:1]], ignore_index=True)
    assert only(raw_polarization(twice, ["task"])) == only(raw_polarization(made, ["task"]))


def test_groups_are_measured_apart() -> None:
    made = pd.concat(
        [
            frame(("a", 1, "1"), ("b", 1, "4"), task="apart"),
            frame(("a", 1, "2"), ("b", 1, "2"), task="alike"),
        ],
        ignore_index=True,
    )
    found = raw_polarization(made, ["task"]).set_index("task")["p"]
    assert found.to_dict() == pytest.approx({"apart": 1, "alike": 0})


cells = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.integers(1, 3),
        st.sets(st.integers(1, 4)).map(lambda chosen: " ".join(map(str, sorted(chosen)))),
    ),
    min_size=1,
    max_size=40,
)


@steady
@given(cells)
def test_p_agrees_with_a_plain_computation_on_any_samples(rows: list[tuple[str, int, str]]) -> None:
    row = only(raw_polarization(frame(*rows), ["task"]))
    judges = sorted({judge for judge, _, _ in rows})
    items = sorted({item for _, item, _ in rows})
    values = []
    for item in items:
        masses = []
        for judge in judges:
            mass = np.zeros(4)
            for who, what, stages in rows:
                for stage in stages.split():
                    if (who, what) == (judge, item):
                        mass[int(stage) - 1] += 1 / len(stages.split())
            masses.append(mass)
        if len(judges) > 1 and all(mass.sum() for mass in masses):
            shares = [mass / mass.sum() for mass in masses]
            mixture = np.mean(shares, axis=0)
            values.append(np.mean([entropy(p, mixture, base=2) for p in shares]))
    assert (row["items"], row["dropped"]) == (len(values), len(items) - len(values))
    if values:
        assert row["p"] == pytest.approx(np.mean(values) / log2(min(len(judges), 4)), abs=1e-9)
        assert -1e-12 <= row["p"] <= 1 + 1e-12
    else:
        assert pd.isna(row["p"])


# --- which judges lie apart ----------------------------------------------------------------------


def test_pairs_come_farthest_apart_first() -> None:
    made = frame(
        *[("a", 1, "1"), ("a", 2, "1")],
        *[("b", 1, "1"), ("b", 2, "4")],
        *[("c", 1, "4"), ("c", 2, "4")],
        *[("d", 1, "1"), ("d", 2, "1")],
    )
    found = divergent_pairs(made, ["task"])
    pairs = [(row.judge, row.other) for row in found.itertuples()]
    assert set(pairs) == set(combinations("abcd", 2)), "each pair once"
    assert found["p"].tolist() == sorted(found["p"], reverse=True)
    # a and d are alike; both lie a whole bit from c on both items, and half way from b.
    assert set(pairs[:2]) == {("a", "c"), ("c", "d")} and pairs[-1] == ("a", "d")
    by_pair = dict(zip(pairs, found["p"], strict=True))
    assert by_pair[("a", "c")] == pytest.approx(1)
    assert by_pair[("a", "b")] == pytest.approx(0.5)
    assert by_pair[("a", "d")] == pytest.approx(0)


def test_a_pair_that_never_scored_the_same_item_is_left_out() -> None:
    made = frame(("a", 1, "1"), ("b", 2, "1"), ("c", 1, "2"))
    found = divergent_pairs(made, ["task"])
    assert [(row.judge, row.other, row.items) for row in found.itertuples()] == [("a", "c", 1)]


def test_one_judge_has_no_pairs() -> None:
    assert divergent_pairs(frame(("a", 1, "1")), ["task"]).empty
