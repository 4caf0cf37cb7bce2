"""Paired tests and corrections, against brute force, scipy and statsmodels."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from judge_gym.analysis.stats.comparisons import compare_pair
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.analysis.stats.paired_tests import (
    DRAWS,
    NORMAL_FROM,
    benjamini_hochberg,
    cliffs_delta,
    holm,
    is_clear,
    mcnemar,
    sign_flip,
)


def brute_force(differences: np.ndarray) -> float:
    sums = [abs(np.dot(signs, differences)) for signs in product((-1, 1), repeat=len(differences))]
    return float(np.mean(np.array(sums) >= abs(differences.sum()) - 1e-12))


# --- sign flips ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4, 9, 12])
def test_few_items_are_enumerated(n: int) -> None:
    differences = seeded("few", n).normal(0.4, 1, n)
    assert sign_flip(differences, key="any") == pytest.approx(brute_force(differences))


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.5, 1.5, 1.96, 2.5, 3.0])
def test_the_normal_limit_of_sign_flips_agrees_with_draws(effect: float) -> None:
    """Just above the border the limit stands, just below 5,000 draws; the data hardly differ."""
    rng = seeded("border", effect)
    noise = rng.exponential(1, NORMAL_FROM + 1) * rng.choice([-1, 1], NORMAL_FROM + 1)
    noise -= noise.mean()
    moved = noise + effect * np.sqrt((noise**2).mean() / len(noise))
    limit, drawn = sign_flip(moved, key="limit"), sign_flip(moved[: NORMAL_FROM - 1], key="drawn")
    # A second, independent count of the arrangements that the limit stands for.
    sums = np.concatenate([rng.choice([-1.0, 1.0], (2000, len(moved))) @ moved for _ in range(10)])
    counted = (1 + (np.abs(sums) >= abs(moved.sum())).sum()) / (1 + len(sums))
    assert limit == pytest.approx(counted, abs=4 * np.sqrt(counted / len(sums)))
    near = moved[: NORMAL_FROM - 1]
    z = abs(near.sum()) / np.sqrt(near @ near)
    expected = 2 * stats.norm.sf(z)
    assert drawn == pytest.approx(expected, abs=4 * np.sqrt(expected / DRAWS) + 1 / DRAWS)


def test_a_dominating_value_is_tested_by_draws() -> None:
    rng = seeded("outweighs")
    moved = np.append(rng.normal(0, 0.01, NORMAL_FROM), 5.0)
    # Whatever the others do, the sum has the size of the one: every arrangement is as far out.
    assert sign_flip(moved, key="one") > 0.4


def test_enumeration_agrees_with_scipy() -> None:
    differences = seeded("scipy").normal(0.5, 1, 10)
    theirs = stats.permutation_test(
        (differences, np.zeros(10)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert sign_flip(differences, key=0) == pytest.approx(theirs.pvalue)


def test_many_items_are_drawn_and_come_close_to_enumeration() -> None:
    differences = seeded("many").normal(0.45, 1, 15)
    exact = brute_force(differences)
    drawn = sign_flip(differences, key="drawn")
    assert abs(drawn - exact) < 4 * np.sqrt(exact * (1 - exact) / DRAWS)
    assert drawn == sign_flip(differences, key="drawn")


def test_a_drawn_p_value_counts_the_observed_arrangement() -> None:
    assert sign_flip(np.full(60, 1.0), key=0) == 1 / (1 + DRAWS)


def test_differences_of_zero_are_no_evidence() -> None:
    assert sign_flip([0.0] * 30, key=0) == 1.0
    assert np.isnan(sign_flip([], key=0))
    assert sign_flip([0.3, 0.2, 0.0, 0.0, 0.0], key=0) == sign_flip([0.3, 0.2], key=0) == 0.5


@pytest.mark.parametrize("items", [12, 30])
def test_false_positive_rate_of_sign_flips(
    items: int,
) -> None:
    panels = seeded("null", items).standard_t(3, (600, items))
    hits = sum(sign_flip(panel, key=place) <= 0.05 for place, panel in enumerate(panels))
    assert stats.binomtest(hits, 600).proportion_ci(0.99).low <= 0.06
    assert hits / 600 > 0.02  # and not because it never rejects


# --- paired comparisons --------------------------------------------------------------------------


def test_mcnemar_is_exact_below_25_discordant_pairs_and_equals_flipping_signs() -> None:
    left = np.array([1.0] * 9 + [0.0] * 3 + [1.0] * 5)
    right = np.array([0.0] * 9 + [1.0] * 3 + [1.0] * 5)
    assert mcnemar(left, right) == pytest.approx(stats.binomtest(9, 12).pvalue)
    assert mcnemar(left, right) == pytest.approx(brute_force((left - right)[:12]))


def test_mcnemar_with_many_discordant_pairs_is_chi_squared_with_correction() -> None:
    left, right = np.repeat([1.0, 0.0], [30, 15]), np.repeat([0.0, 1.0], [30, 15])
    assert mcnemar(left, right) == pytest.approx(stats.chi2.sf((15 - 1) ** 2 / 45, 1))


def test_a_comparison_is_the_paired_t_interval() -> None:
    rng = seeded("t")
    left, right = rng.random(20), rng.random(20)
    found, theirs = compare_pair(left, right, key=0), stats.ttest_rel(left, right)
    interval = theirs.confidence_interval()
    assert found.difference.value == pytest.approx((left - right).mean())
    assert found.difference.low == pytest.approx(interval.low)
    assert found.difference.high == pytest.approx(interval.high)
    assert found.d_z == pytest.approx(theirs.statistic / np.sqrt(20))
    assert found.test == "sign flip"


def test_rare_differences_have_an_interval_that_reaches_for_those_not_seen() -> None:
    once = np.zeros(30)
    once[0] = 1 / 15
    up, down = (
        compare_pair(*sides, key=0).difference for sides in ((once, 0 * once), (0 * once, once))
    )
    by_t = stats.ttest_1samp(once, 0).confidence_interval()
    assert up.high > 10 * by_t.high, "another item may differ by the whole scale"
    assert (up.low, up.high) == pytest.approx((-down.high, -down.low), abs=0.02)


def test_items_without_both_sides_are_left_out() -> None:
    found = compare_pair([0.1, np.nan, 0.5, 0.2], [0.0, 0.3, np.nan, 0.3], key=0)
    assert found.difference.n == 2 and found.difference.value == pytest.approx(0.0)


def test_answers_right_or_wrong_are_compared_by_mcnemar() -> None:
    found = compare_pair([1, 1, 1, 0, 1, 1], [0, 0, 0, 0, 0, 1], key=0)
    assert found.test == "McNemar" and found.p == pytest.approx(0.125)


def test_changes_that_cancel_give_exactly_0() -> None:
    found = compare_pair([2 / 3, 1 / 3, 1.0, 0.0], [1 / 3, 2 / 3, 2 / 3, 1 / 3], key=0)
    assert str(found.difference.value) == "0.0"


def test_without_variance_there_is_no_effect_size() -> None:
    found = compare_pair([0.4, 0.5], [0.4, 0.5], key=0)
    assert np.isnan(found.d_z)
    # Nobody saw that the difference cannot vary: two items leave nearly all of the scale open.
    assert found.difference[:3] == pytest.approx((0, 0.025**0.5 - 1, 1 - 0.025**0.5), abs=0.01)
    assert found.p == 1 and found.cliffs_delta == 0


def test_cliffs_delta_counts_wins_minus_losses() -> None:
    rng = seeded("cliff")
    left, right = rng.integers(0, 5, 30), rng.integers(1, 6, 21)
    brute = np.sign(left[:, None] - right[None, :]).mean()
    assert cliffs_delta(left, right) == pytest.approx(brute)
    assert np.isnan(cliffs_delta([], []))


def test_corrections_are_those_of_statsmodels() -> None:
    p = seeded("p").random(40) ** 3
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1])
    np.testing.assert_allclose(benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1])


def test_a_difference_is_clear_only_if_test_and_interval_agree() -> None:
    rows = pd.DataFrame(
        {"q": [0.01, 0.01, 0.01, 0.2, None], "low": [0.1, -0.1, None, 0.1, 0.1], "high": [0.3] * 5}
    )
    assert is_clear(rows).tolist() == [True, False, True, False, False]
