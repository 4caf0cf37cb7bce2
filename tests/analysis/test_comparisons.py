"""Comparisons of setups: what is worse, by how much, and levels that hold for a whole table."""

import numpy as np
import pytest
from scipy import stats

from judge_gym.analysis.stats.agreement import cohen_kappa
from judge_gym.analysis.stats.comparisons import Comparison, compare, pairwise_level
from judge_gym.analysis.stats.intervals import Floats


def verdicts(rng: np.random.Generator, items: int, accuracies: list[float]) -> Floats:
    """Whether setups are right, which is easier on some items than on others."""
    ability = rng.normal(size=(items, 1)) + rng.normal(size=(items, len(accuracies)))
    right: Floats = (ability / 2**0.5 < stats.norm.ppf(accuracies)).astype(float)
    return right


def worse(comparison: Comparison) -> list[bool]:
    return [standing == "worse" for standing in comparison.standings]


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", [0.8, 0.95])
@pytest.mark.parametrize("setups", [2, 5, 10])
def test_equal_setups_are_rarely_called_worse(accuracy: float, setups: int) -> None:
    rng, tables = np.random.default_rng(setups), 25
    wrong = sum(any(worse(compare(verdicts(rng, 40, [accuracy] * setups)))) for _ in range(tables))
    assert stats.binomtest(wrong, tables).proportion_ci(0.99).low <= 0.05


@pytest.mark.slow
def test_a_gap_of_10_points_is_usually_seen_with_200_items() -> None:
    rng, tables = np.random.default_rng(1), 60
    seen = [worse(compare(verdicts(rng, 200, [0.85, 0.75])))[1] for _ in range(tables)]
    assert np.mean(seen) > 0.6


@pytest.mark.parametrize(("discordant", "standing"), [(1, "tied"), (5, "tied"), (7, "worse")])
def test_few_discordant_items_prove_nothing(discordant: int, standing: str) -> None:
    values = np.ones((20, 2))
    values[:discordant, 1] = 0.0
    comparison = compare(values)
    assert comparison.standings == ("tied" if standing == "tied" else "best", standing)
    difference = comparison.differences[1]
    assert comparison.differences[0] is None and difference is not None
    assert difference.value == -discordant / 20
    assert (difference.high < 0) == (standing == "worse"), "the interval says the same"


def test_setups_that_never_differ_may_differ_on_other_items() -> None:
    alike = compare(np.ones((20, 2)))
    assert alike.standings == ("tied", "tied")
    # One-sided: 1 - .05^(1/20) of all items may be right in the other setup alone.
    assert alike.at_most_worse == pytest.approx([0.139, 0.139], abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "theirs"), [(0.99, 0.95), (0.85, 0.75)])
def test_differences_from_the_best_are_covered(ours: float, theirs: float) -> None:
    rng, hits, bounds = np.random.default_rng(2), [], []
    for _ in range(200):
        comparison = compare(verdicts(rng, 20, [ours, theirs]))
        other = 1 - comparison.reference
        difference, truth = comparison.differences[other], (theirs - ours) * (2 * other - 1)
        assert difference is not None
        hits.append(difference.low <= truth <= difference.high)
        bounds.append(comparison.at_most_worse[1] >= ours - theirs)
    assert np.mean(hits) >= 0.93 and np.mean(bounds) >= 0.93


def test_an_interval_excludes_0_exactly_where_a_setup_is_worse() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        comparison = compare(verdicts(rng, 60, [0.9, 0.8, 0.75, 0.7]))
        for standing, difference in zip(comparison.standings, comparison.differences, strict=True):
            if difference is not None:
                assert (difference.high <= 0) if standing == "worse" else (difference.high >= 0)


def test_a_better_setup_is_the_best_and_the_rest_is_worse_by_clusters_too() -> None:
    rng = np.random.default_rng(4)
    values = verdicts(rng, 120, [0.95, 0.5, 0.5])
    assert compare(values).standings == ("best", "worse", "worse")
    clusters = np.repeat(np.arange(40), 3)
    assert compare(values, clusters).standings == ("best", "worse", "worse")
    few = compare(values, np.arange(120) % 19)
    assert few.standings == ("unknown",) * 3 and np.isnan(few.at_most_worse).all()
    assert few.differences[1] is not None
    assert few.differences[1].withheld == "19 clusters, and 20 are needed"


def test_setups_are_compared_by_influences_of_any_measure() -> None:
    rng = np.random.default_rng(5)
    fails = rng.random(300) < 0.1
    always_pass = ~fails
    careful = np.where(fails, rng.random(300) < 0.9, rng.random(300) < 0.85)
    kinds = np.column_stack([fails, ~fails]).astype(float)
    right = np.stack([kinds * side[:, None] for side in (always_pass, careful)], axis=1)
    balanced = compare(right, below=np.stack([kinds, kinds], axis=1))
    assert balanced.standings == ("worse", "best"), "always passing finds no failure"
    assert compare(np.column_stack([always_pass, careful]).astype(float)).reference == 0
    truth = fails.astype(float)
    said = [np.where(side, truth, 1 - truth) for side in (rng.random(300) < 0.6, careful)]
    kappas = [cohen_kappa(np.column_stack([truth, one]), 0) for one in said]
    by_kappa = compare(kappas)
    assert by_kappa.standings == ("worse", "best") and by_kappa.differences[0] is not None
    assert by_kappa.differences[0].value == pytest.approx(kappas[0].value - kappas[1].value)


def test_what_all_setups_share_on_an_item_changes_no_difference() -> None:
    rng = np.random.default_rng(7)
    values = rng.random((30, 4))
    hard = rng.random((30, 1)) * 5  # some items are harder for all
    ours, theirs = compare(values).differences, compare(values + hard).differences
    for one, other in zip(ours, theirs, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert other[:3] == pytest.approx(one[:3], abs=1e-12)


def test_a_reference_may_be_asked_for() -> None:
    values = np.random.default_rng(6).random((30, 2))
    comparison = compare(values, against=1)
    assert comparison.differences[1] is None and comparison.differences[0] is not None
    gaps = values[:, 0] - values[:, 1]
    ends = stats.t.interval(0.95, 29, gaps.mean(), stats.sem(gaps))
    assert comparison.differences[0][1:3] == pytest.approx(ends)


def test_differences_of_all_pairs_hold_at_the_level_of_tukeys_range() -> None:
    rows = np.eye(4)  # independent setups of equal variance
    reach = stats.studentized_range.ppf(0.95, 4, np.inf) / np.sqrt(2)
    assert pairwise_level(rows) == pytest.approx(2 * stats.norm.cdf(reach) - 1, abs=0.002)


def test_one_difference_needs_no_correction() -> None:
    assert pairwise_level(np.eye(2)) == 0.95
    assert pairwise_level(np.zeros((3, 5))) == 0.95, "setups that never differ"
