"""Polarization, against scipy's Jensen-Shannon distance and against numbers by hand."""

from itertools import combinations, product
from math import log2
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy, norm, wasserstein_distance

from judge_gym.analysis.measures.polarization import (
    distance_columns,
    divergence,
    divergent_pairs,
    lone_divergence,
    pairwise,
    polarization,
    scaled_divergence,
    wasserstein,
)
from judge_gym.analysis.stats import label_permutation
from judge_gym.analysis.verdicts import panels as panels_of
from panel_frames import samples, simulated, verdicts

JUDGE = "judge.model"
steady = settings(deadline=None, derandomize=True)


def raw_p(frame: pd.DataFrame) -> np.ndarray:
    """Raw P of the items that every judge of a panel scored."""
    [panel] = panels_of(frame)
    return scaled_divergence(panel.shares[panel.complete])


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
    assert divergence(p) == pytest.approx(jensenshannon(p[0], p[1], base=2) ** 2, abs=1e-9)


@steady
@given(panels(st.integers(2, 6)))
def test_divergence_is_the_mean_relative_entropy_to_the_mixture(p: np.ndarray) -> None:
    mixture = p.mean(axis=0)
    expected = np.mean([entropy(row, mixture, base=2) for row in p])
    assert divergence(p) == pytest.approx(expected, abs=1e-9)


@steady
@given(panels(st.integers(2, 6)))
def test_divergence_over_its_bound_lies_between_0_and_1(p: np.ndarray) -> None:
    judges, stages = p.shape
    assert -1e-12 <= divergence(p) / log2(min(judges, stages)) <= 1 + 1e-12


@steady
@given(panels(st.integers(2, 6)), st.randoms(use_true_random=False))
def test_neither_the_order_of_judges_nor_of_stages_matters(p: np.ndarray, rng: Any) -> None:
    judges, stages = (rng.sample(range(n), n) for n in p.shape)
    assert divergence(p[judges][:, stages]) == pytest.approx(divergence(p), abs=1e-9)


def test_identical_judges_diverge_by_nothing_and_never_by_less() -> None:
    # Every distribution that five verdicts on four stages can have.
    counts = [c for c in product(range(6), repeat=4) if sum(c) == 5]
    for judges, count in product((2, 3, 5), counts):
        found = divergence(np.tile(np.array(count) / 5, (judges, 1)))
        assert 0 <= found < 1e-12, "a table must not print -1.11e-16"


def test_three_judges_by_hand() -> None:
    apart = np.eye(3)
    assert divergence(apart) == pytest.approx(log2(3))
    # Two at stage 1, one at stage 2: H(2/3, 1/3), and the judges have no entropy of their own.
    assert divergence(np.array([[1, 0], [1, 0], [0, 1.0]])) == pytest.approx(
        -(2 / 3 * log2(2 / 3) + 1 / 3 * log2(1 / 3))
    )


def test_five_judges_on_four_stages_cannot_reach_the_bound() -> None:
    # methods.md: "5 judges on 4 stages reach .96". Best is one judge a stage, two on one of them.
    most = max(divergence(np.eye(4)[[0, 1, 2, 3, extra]]) / log2(min(5, 4)) for extra in range(4))
    assert most == pytest.approx(0.96, abs=0.005)


# --- raw P ---------------------------------------------------------------------------------------


def test_p_is_the_mean_over_items_in_units_of_its_bound() -> None:
    # Item 1: wholly apart (1 bit). Item 2: alike (0). Item 3: half the verdicts of b differ.
    made = verdicts(
        *[("a", 1, "1"), ("b", 1, "4")],
        *[("a", 2, "2"), ("b", 2, "2")],
        *[("a", 3, "1"), ("a", 3, "1"), ("b", 3, "1"), ("b", 3, "2")],
    )
    third = jensenshannon([1, 0], [0.5, 0.5], base=2) ** 2
    row = only(polarization(made))
    assert row["p"] == pytest.approx((1 + 0 + third) / 3)
    assert (row["judges"], row["items"], row["dropped"]) == (2, 3, 0)
    assert row["replicates"] == pytest.approx(8 / 6)


def test_three_judges_are_measured_against_log2_of_three() -> None:
    made = verdicts(("a", 1, "1"), ("b", 1, "2"), ("c", 1, "3"))
    assert only(polarization(made))["p"] == pytest.approx(1)
    # On two stages three judges cannot lie farther apart than H(2/3, 1/3), over a bound of 1 bit.
    made = verdicts(("a", 1, "1"), ("b", 1, "2"), ("c", 1, "2"), n_stages=2)
    assert only(polarization(made))["p"] == pytest.approx(entropy([1, 2], base=2))


def test_judges_that_agree_have_no_polarization() -> None:
    made = verdicts(*[(judge, item, "1 2") for judge in "abc" for item in (1, 2)])
    assert only(polarization(made))["p"] == pytest.approx(0, abs=1e-12)


def test_an_item_that_a_judge_did_not_score_is_dropped_and_counted() -> None:
    made = verdicts(
        *[("a", 1, "1"), ("b", 1, "4")],
        *[("a", 2, "1"), ("b", 2, "")],  # b abstains
        *[("a", 3, "1")],  # b was never asked
        *[("a", 4, ""), ("b", 4, "")],
    )
    row = only(polarization(made))
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
    row = only(polarization(verdicts(*rows)))
    assert pd.isna(row["p"])
    assert (row["items"], row["dropped"]) == (0, len({item for _, item, _ in rows}))


def test_a_shared_call_is_one_observation() -> None:
    made = verdicts(("a", 1, "1"), ("a", 1, "2"), ("b", 1, "1"))
    twice = pd.concat([made, made[:1]], ignore_index=True)
    pd.testing.assert_frame_equal(polarization(twice), polarization(made))


def test_groups_are_measured_apart() -> None:
    made = pd.concat(
        [
            verdicts(("a", 1, "1"), ("b", 1, "4"), concept="apart"),
            verdicts(("a", 1, "2"), ("b", 1, "2"), concept="alike").assign(call_id=[7, 8]),
        ],
        ignore_index=True,
    )
    found = polarization(made).set_index("task")["p"]
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


@pytest.mark.slow
@steady
@given(cells)
def test_p_agrees_with_a_plain_computation_on_any_samples(rows: list[tuple[str, int, str]]) -> None:
    found = raw_p(verdicts(*rows))
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
    bound = log2(min(len(judges), 4)) if values else 1.0
    assert found.tolist() == pytest.approx([value / bound for value in values], abs=1e-9)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()


# --- which judges lie apart ----------------------------------------------------------------------


def test_pairs_are_ranked_by_divergence() -> None:
    made = verdicts(
        *[("a", 1, "1"), ("a", 2, "1")],
        *[("b", 1, "1"), ("b", 2, "4")],
        *[("c", 1, "4"), ("c", 2, "4")],
        *[("d", 1, "1"), ("d", 2, "1")],
    )
    found = divergent_pairs(made)
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
    made = verdicts(("a", 1, "1"), ("b", 2, "1"), ("c", 1, "2"))
    found = divergent_pairs(made)
    assert [(row.judge, row.other) for row in found.itertuples()] == [("a", "c")]


def test_divergent_pairs_are_averaged_over_variants() -> None:
    rows = [("a", "single", "1"), ("b", "single", "4"), ("a", "subset", "1"), ("b", "subset", "1")]
    made = samples(
        *({JUDGE: judge, "verdict.method": m, "stages": s, "replicate": 0} for judge, m, s in rows)
    )
    assert divergent_pairs(made)["p"].tolist() == pytest.approx([0.5])


def test_one_judge_has_no_pairs() -> None:
    assert divergent_pairs(verdicts(("a", 1, "1"))).empty


# --- other measures ------------------------------------------------------------------------------


@steady
@given(panels(st.integers(2, 6)))
def test_wasserstein_is_scipys_mean_over_pairs_on_the_scale_from_0_to_1(p: np.ndarray) -> None:
    places = np.linspace(0, 1, p.shape[1])
    each = [wasserstein_distance(places, places, one, two) for one, two in combinations(p, 2)]
    assert wasserstein(p) == pytest.approx(np.mean(each), abs=1e-9)


@steady
@given(panels(st.integers(2, 6)))
def test_a_judge_is_measured_against_the_mean_of_the_others(p: np.ndarray) -> None:
    expected = [
        jensenshannon(p[j], np.delete(p, j, axis=0).mean(axis=0), base=2) ** 2
        for j in range(len(p))
    ]
    assert lone_divergence(p).tolist() == pytest.approx(expected, abs=1e-9)


# --- against chance ------------------------------------------------------------------------------


def exact_null(rows: list[tuple[str, int, str]]) -> list[float]:
    """P of two judges on one item under every exchange of labels within a replicate."""
    ours = [int(stages) for judge, _, stages in rows if judge == "a"]
    theirs = [int(stages) for judge, _, stages in rows if judge == "b"]
    found = []
    for swaps in product((False, True), repeat=len(ours)):
        exchanged = [
            (b, a) if swap else (a, b) for a, b, swap in zip(ours, theirs, swaps, strict=True)
        ]
        sides = zip(*exchanged, strict=True)
        shares = [np.bincount(side, minlength=5) / len(ours) for side in sides]
        found.append(jensenshannon(*shares, base=2) ** 2)
    return found


def test_the_null_is_that_of_all_exchanges_of_labels() -> None:
    rows = [("a", 1, s) for s in "11123"] + [("b", 1, s) for s in "21344"]
    null = exact_null(rows)
    row = only(polarization(verdicts(*rows)))
    error = 3 * np.std(null) / np.sqrt(row["draws"])
    assert row["draws"] == 999
    assert row["p"] == pytest.approx(null[0])
    assert row["null"] == pytest.approx(np.mean(null), abs=error)
    assert row["above"] == pytest.approx(row["p"] - row["null"])
    at_least = np.mean(np.array(null) >= null[0] - 1e-12)
    assert row["p_value"] == pytest.approx(at_least, abs=3 * np.sqrt(at_least / 999))


def test_a_p_value_counts_what_was_seen_among_the_draws() -> None:
    sides = (("a", "1"), ("b", "4"))
    rows = [(judge, item, stage) for judge, stage in sides for item in range(4) for _ in range(5)]
    row = only(polarization(verdicts(*rows)))
    assert row["p_value"] == 1 / (1 + row["draws"]), "no exchange lies as far apart"


def test_what_is_found_does_not_depend_on_the_order_of_samples() -> None:
    rng = np.random.default_rng(3)
    made = simulated(rng.dirichlet(np.ones(4), (1, 6, 3)), 5, rng)
    other = made.sample(frac=1, random_state=4, ignore_index=True)
    first = polarization(made)
    same = ["p", "wasserstein", "distance", "items", "effective_n"]
    pd.testing.assert_frame_equal(first[same], polarization(other)[same])
    pd.testing.assert_frame_equal(first, polarization(made))


def test_a_judge_alone_in_a_replicate_keeps_its_label() -> None:
    # Nothing can be exchanged: chance makes of it what was seen.
    made = verdicts(("a", 1, "1"), ("a", 1, "1"), ("b", 1, "4"), ("b", 1, "4"))
    made["replicate"] = [0, 1, 2, 3]
    row = only(polarization(made))
    assert (row["p"], row["null"], row["above"], row["p_value"]) == (1, 1, 0, 1)


def test_the_panel_is_undefined_without_a_complete_item_and_counts_what_it_dropped() -> None:
    row = only(polarization(verdicts(("a", 1, "1"), ("b", 1, ""), ("a", 2, "1"))))
    undefined = ["p", "null", "above", "low", "high", "p_value", "wasserstein", "distance"]
    assert pd.isna([row[name] for name in undefined]).all()
    assert (row["items"], row["dropped"], row["draws"], row["effective_n"]) == (0, 2, 0, 2)
    assert row["abstained"] == pytest.approx(1 / 3)


def test_own_rubrics_are_named_in_the_measure() -> None:
    rows = [("a", 1, "1"), ("b", 1, "2")]
    assert only(polarization(verdicts(*rows)))["measures"] == "judge"
    own = verdicts(*rows).assign(rubric=[1, 2])
    assert only(polarization(own))["measures"] == "judge and rubric"
    common = verdicts(*rows).assign(rubric=[3, 3])
    assert only(polarization(common))["measures"] == "judge"


def test_a_nominal_rubric_has_no_wasserstein() -> None:
    row = only(polarization(verdicts(("a", 1, "1"), ("b", 1, "2"), rubric_kind="nominal")))
    assert np.isnan(row["wasserstein"]) and row["p"] == 1


def test_pairs_are_the_panel_of_two() -> None:
    rng = np.random.default_rng(5)
    made = simulated(rng.dirichlet(np.ones(4), (1, 8, 3)), 6, rng)
    found = pairwise(made)
    assert list(zip(found["judge"], found["other"], strict=True)) == list(
        combinations([f"judge {place}" for place in range(3)], 2)
    )
    two = only(polarization(made[made[JUDGE] != "judge 1"]))
    row = found.iloc[1]
    for name in ("p", "above", "distance", "distance_low", "effective_n"):
        assert row[name] == pytest.approx(two[name], abs=0.01), name
    assert found["distance"].mean() == pytest.approx(only(polarization(made))["distance"])


# --- what is known of the bias of raw P ----------------------------------------------------------


@pytest.mark.parametrize(
    ("judges", "replicates", "low", "high"), [(2, 5, 0.21, 0.29), (3, 5, 0.30, 0.38)]
)
def test_raw_p_of_identical_judges_is_above_0(
    judges: int, replicates: int, low: float, high: float
) -> None:
    rng = np.random.default_rng(6)
    for chances in ([0.25] * 4, [0.4, 0.3, 0.2, 0.1], [0.4, 0.4, 0.1, 0.1]):
        alike = np.broadcast_to(np.array(chances), (1, 3000, judges, 4))
        raw = raw_p(simulated(alike, replicates, rng)).mean()
        assert low <= round(raw * log2(judges), 2) <= high, chances


def test_at_thirty_samples_the_bias_is_small() -> None:
    rng = np.random.default_rng(7)
    alike = np.broadcast_to(np.array([0.4, 0.3, 0.2, 0.1]), (1, 3000, 2, 4))
    assert raw_p(simulated(alike, 30, rng)).mean() == pytest.approx(0.04, abs=0.01)


# --- rates ---------------------------------------------------------------------------------------

PANELS = 150
# 99 % of the Monte-Carlo error of a rate of 5 % at so many panels.
ERROR = 2.58 * np.sqrt(0.05 * 0.95 / PANELS)


@pytest.mark.simulation
def test_false_positives_of_the_permutation_test() -> None:
    rng = np.random.default_rng(8)
    alike = rng.dirichlet(np.ones(4), (PANELS, 8, 1)).repeat(3, axis=2)
    found = polarization(simulated(alike, 5, rng))
    assert (found["p_value"] <= 0.05).mean() <= 0.06 + ERROR
    assert found["p_value"].mean() == pytest.approx(0.5, abs=0.08), "it is not conservative either"
    # Identical judges lie at 0 above chance and at a distance of 0, and intervals cover that.
    for value, low, high in (
        ("above", "low", "high"),
        ("distance", "distance_low", "distance_high"),
    ):
        covered = ((found[low] <= 0) & (found[high] >= 0)).mean()
        assert 0.92 - ERROR <= covered <= 0.97 + ERROR, value
        assert found[value].mean() == pytest.approx(0, abs=0.01)


def test_coverage_of_the_distance_between_judges_that_differ() -> None:
    rng = np.random.default_rng(9)
    items, judges = 12, 2  # items are the units, and judges differ on each
    chances = rng.dirichlet(np.ones(4), (PANELS, items, judges))
    measured = panels_of(simulated(chances, 5, rng))
    found = pd.DataFrame([distance_columns(panel) for panel in measured])
    # Of two independent uniform points on the simplex of 4, half the squared distance is
    # 4 x Var(Beta(1, 3)) on average.
    truth = 4 * (1 * 3) / ((1 + 3) ** 2 * (1 + 3 + 1))
    assert found["distance"].mean() == pytest.approx(truth, abs=0.02)
    covered = ((found["distance_low"] <= truth) & (found["distance_high"] >= truth)).mean()
    assert 0.92 - ERROR <= covered <= 0.97 + ERROR


# --- rubric draws --------------------------------------------------------------------------------


def drawn_rubrics(draws: int, rng: np.random.Generator, panels: int = 1) -> pd.DataFrame:
    """Two judges that read every rubric alike, each with its own draws of one population."""
    parts = []
    for judge in range(2):
        for draw in range(draws):
            leaning = rng.dirichlet(np.full(4, 0.5), (panels, 1, 1)).repeat(4, axis=1)
            part = simulated(leaning, 3, rng)
            named: dict[str, Any] = {
                JUDGE: f"judge {judge}",
                "rubric": judge * draws + draw,
                "rubric_draw": draw,
            }
            parts.append(part.assign(**named))
    return pd.concat(parts, ignore_index=True).assign(call_id=lambda made: np.arange(len(made)))


@pytest.mark.simulation
def test_false_positive_rate_with_many_rubrics_of_one_population() -> None:
    found = polarization(drawn_rubrics(5, np.random.default_rng(10), panels=100))
    error = 2.58 * np.sqrt(0.05 * 0.95 / 100)
    assert (found["p_value"] <= 0.05).mean() <= 0.06 + error


def test_with_few_rubrics_the_test_is_conditional_on_them() -> None:
    found = polarization(drawn_rubrics(2, np.random.default_rng(11), panels=40))
    assert (found["p_value"] <= 0.05).mean() > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.0, 0.02])
def test_the_normal_limit_for_many_items_agrees_with_draws(
    monkeypatch: pytest.MonkeyPatch, apart: float
) -> None:
    rng = np.random.default_rng(21)
    chance = 0.5 + np.array([apart, -apart])
    shares = np.broadcast_to(np.stack([chance, 1 - chance], axis=-1), (3, 1000, 2, 2))
    frame = simulated(shares, 3, rng)
    monkeypatch.setattr(label_permutation, "LIMIT_FROM", 1000)
    limit = polarization(frame)
    monkeypatch.setattr(label_permutation, "LIMIT_FROM", 1001)
    drawn = polarization(frame)
    assert (limit["draws"] < drawn["draws"]).all()
    # On the scale of a normal value the mean of the draws has an error of 1 in their root.
    found, expected = (norm.isf(one["p_value"].clip(0.002, 0.998)) for one in (limit, drawn))
    np.testing.assert_allclose(found, expected, atol=4 / np.sqrt(49))
    np.testing.assert_allclose(limit["null"], drawn["null"], atol=0.004)


def test_one_verdict_per_cell_is_not_compared_with_chance() -> None:
    made = verdicts(*[(judge, item, "14"[judge == "b"]) for judge in "ab" for item in range(12)])
    row = only(polarization(made))
    assert row["p"] == pytest.approx(1)
    assert all(np.isnan(row[name]) for name in ("null", "above", "low", "high", "p_value"))
