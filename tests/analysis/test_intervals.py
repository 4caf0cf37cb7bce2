"""Intervals and errors, against other libraries' and closed forms."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from judge_gym.analysis.stats.intervals import (
    ABOVE_CHANCE,
    CORRELATION,
    DIFFERENCE,
    DISTANCE,
    MEDIAN,
    SHARE,
    SIGNED_SHARE,
    UNBOUNDED,
    Estimate,
    Floats,
    Statistic,
    between,
    difference,
    estimate,
    influences,
    jackknife_error,
    mean_bounds,
    seeded,
)


def covers(interval: Estimate, truth: float) -> bool:
    return interval.low <= truth <= interval.high


@pytest.mark.parametrize(("right", "n"), [(0, 5), (0, 60), (3, 7), (12, 12), (40, 100), (2, 3000)])
def test_a_proportion_has_clopper_and_pearsons_interval(right: int, n: int) -> None:
    found = estimate([1.0] * right + [0.0] * (n - right), scale=SHARE)
    exact = proportion_confint(right, n, method="beta")
    assert (found.low, found.high) == pytest.approx(exact, abs=1e-12)


def test_a_bounded_mean_of_two_levels_has_the_interval_of_their_proportion() -> None:
    # Away from the ends of the scale there is no closed form; the limit towards them is known.
    inside = estimate(np.clip([1.0] * 7 + [0.0] * 5, 1e-9, 1 - 1e-9), scale=SHARE)
    exact = proportion_confint(7, 12, method="beta")
    assert (inside.low, inside.high) == pytest.approx(exact, abs=0.01)


def test_a_bounded_interval_scales_with_its_quantity_and_ends_with_its_scale() -> None:
    values = stats.beta.ppf((np.arange(12) + 0.5) / 12, 0.3, 1)
    unit = estimate(values, scale=SHARE)
    stages = estimate(1 + 4 * values, scale=between(1, 5))
    assert stages[:3] == pytest.approx(1 + 4 * np.array(unit[:3]))
    dipping = [-0.02, -0.01, 0.0, 0.01, 0.02, 0.01, -0.02, 0.0]
    distance, excess = (estimate(dipping, scale=scale) for scale in (DISTANCE, ABOVE_CHANCE))
    assert distance.low == 0 and distance.high < 0.4
    assert excess.low < 0 and excess.high == distance.high


@pytest.mark.parametrize("n", [8, 30])
@pytest.mark.parametrize("world", ["zeros", "rare", "skewed"])
def test_bounded_means_are_covered_where_students_interval_is_not(world: str, n: int) -> None:
    rng, panels = np.random.default_rng(n), 400
    worlds = {
        "zeros": ((rng.random((panels, n)) < 0.15) * rng.beta(1, 2, (panels, n)), 0.15 / 3),
        "rare": (rng.beta(2, 30, (panels, n)) + 0.6 * (rng.random((panels, n)) < 0.05), 0.0925),
        "skewed": (rng.beta(0.4, 4, (panels, n)), 0.4 / 4.4),
    }
    drawn, truth = worlds[world]
    ours, students = (
        np.mean([covers(estimate(values, scale=scale), truth) for values in drawn])
        for scale in (SHARE, UNBOUNDED)
    )
    assert students < 0.93 <= ours


def test_a_mean_has_students_interval() -> None:
    values = seeded("student").normal(size=12)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = estimate([*values, np.nan], scale=UNBOUNDED)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert found.n == 12


def test_bounds_without_a_gap_are_students_interval() -> None:
    values = seeded("bounds").normal(size=15)
    assert mean_bounds(values, values) == pytest.approx(estimate(values, scale=UNBOUNDED)[1:3])


def test_with_a_wide_gap_each_bound_has_a_one_sided_error() -> None:
    # Imbens and Manski's limit: far apart ends miss on one side only.
    values = seeded("gap").normal(size=15)
    reach = stats.t.ppf(0.95, 14) * stats.sem(values)
    expected = values.mean() - reach, values.mean() + 100 + reach
    assert mean_bounds(values, values + 100) == pytest.approx(expected)


def test_bounds_cover_a_mean_whose_low_values_are_missing() -> None:
    rng, panels, items = np.random.default_rng(4), 300, 20
    values = rng.uniform(0, 1, (panels, items))
    missing = rng.random((panels, items)) < 0.8 * (1 - values)  # low values abstain more often
    least, most = np.where(missing, 0.0, values), np.where(missing, 1.0, values)
    ends = [mean_bounds(*one) for one in zip(least, most, strict=True)]
    assert np.mean([low <= 0.5 <= high for low, high in ends]) >= 0.93
    complete = [
        estimate(one[~gone], scale=UNBOUNDED) for one, gone in zip(values, missing, strict=True)
    ]
    assert np.mean([covers(interval, 0.5) for interval in complete]) < 0.9


# --- differences ---------------------------------------------------------------------------------


def test_a_difference_has_students_interval_where_most_items_differ() -> None:
    gaps = np.random.default_rng(3).normal(0.1, 0.2, 30)
    low, high = stats.t.interval(0.95, 29, gaps.mean(), stats.sem(gaps))
    assert estimate(gaps, scale=DIFFERENCE)[1:3] == pytest.approx((low, high))
    cautious = estimate(gaps, scale=difference(1, cautious=True))
    assert cautious.low < low and cautious.high > high


def test_a_difference_that_never_occurred_is_bounded_by_what_may_have_been_missed() -> None:
    never = estimate(np.zeros(20), scale=DIFFERENCE)
    # A share of 1 - .025^(1/20) of items may differ by the whole scale either way.
    assert never.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=0.01) and never.low < -0.15


@pytest.mark.parametrize(("ours", "theirs"), [(0.99, 0.95), (0.95, 0.95), (0.85, 0.75)])
def test_differences_of_good_setups_are_covered_at_20_items(ours: float, theirs: float) -> None:
    rng, panels = np.random.default_rng(5), 400
    gaps = 1.0 * (rng.random((panels, 20)) < ours) - (rng.random((panels, 20)) < theirs)
    hits = [covers(estimate(row, scale=DIFFERENCE), ours - theirs) for row in gaps]
    assert np.mean(hits) >= 0.93


# --- many items ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [900, 1000, 3000])
def test_rare_values_are_covered_at_any_number_of_items(n: int) -> None:
    rng = np.random.default_rng(n)
    values = (rng.random((200, n)) < 0.003) * rng.choice([1 / 3, 2 / 3, 1.0], (200, n))
    assert np.mean([covers(estimate(row, scale=SHARE), 0.002) for row in values]) >= 0.93


def test_many_values_of_any_size_have_the_interval_of_fewer_levels() -> None:
    rng = np.random.default_rng(8)
    rare = np.where(rng.random(5000) < 0.004, rng.beta(2, 2, 5000), rng.beta(1, 400, 5000))
    fine, coarse = estimate(rare, scale=SHARE), estimate(rare.round(3), scale=SHARE)
    assert fine[:3] == pytest.approx(coarse[:3], abs=2e-4)
    assert fine.high - fine.value > 1.05 * (fine.value - fine.low), "longer on the rare side"


def test_a_mean_of_many_items_that_is_not_skewed_has_students_interval() -> None:
    values = np.random.default_rng(9).random(1000)
    students = estimate(values, scale=UNBOUNDED)
    assert estimate(values, scale=SHARE) == students


# --- ratios --------------------------------------------------------------------------------------


def test_a_ratio_with_equal_denominators_is_the_mean() -> None:
    values = np.random.default_rng(1).random(25)
    mean = estimate(values, scale=SHARE)
    assert estimate(3 * values, scale=SHARE, below=np.full(25, 3.0))[:3] == pytest.approx(mean[:3])


def equal_pairs(rng: np.random.Generator, items: int) -> tuple[Floats, Floats]:
    """The numbers of equal and of all pairs among four repeats, of which 10 % are unreadable."""
    passes = rng.random((items, 4)) < rng.beta(4, 1, (items, 1))
    readable = rng.random((items, 4)) < 0.9
    n, yes = readable.sum(axis=1), (passes & readable).sum(axis=1)
    return (yes * (yes - 1) + (n - yes) * (n - yes - 1)) / 2, n * (n - 1) / 2


@pytest.mark.slow
@pytest.mark.parametrize("items", [60, 600])
def test_consistency_is_covered_with_unreadable_repeats(items: int) -> None:
    rng = np.random.default_rng(items)
    equal, pairs = equal_pairs(rng, 1_000_000)
    truth, hits = equal.sum() / pairs.sum(), []
    for _ in range(200):
        equal, pairs = equal_pairs(rng, items)
        hits.append(covers(estimate(equal, scale=SHARE, below=pairs), truth))
    assert np.mean(hits) >= 0.93


def test_a_ratio_stays_within_its_scale_and_is_not_moved_by_it() -> None:
    above, below = np.array([4.0, 1, 0, 1] * 10), np.array([4.0, 1, 1, 1] * 10)
    ratio = estimate(above, scale=SHARE, below=below)
    assert ratio.value == pytest.approx(6 / 7) and 0 <= ratio.low < 6 / 7 < ratio.high <= 1
    leaning = estimate(above, scale=SIGNED_SHARE, below=below)
    assert leaning.value == ratio.value and leaning.low < ratio.low
    assert np.isnan(estimate(above, scale=SHARE, below=np.zeros(40)).value)


def test_balanced_accuracy_is_the_mean_of_two_ratios() -> None:
    fails = np.arange(60) < 12
    right = np.where(fails, np.arange(60) % 4 > 0, np.arange(60) % 8 > 0)
    kinds = np.column_stack([fails, ~fails]).astype(float)
    balanced = estimate(kinds * right[:, None], scale=SHARE, below=kinds)
    rates = [float(right[kind].mean()) for kind in (fails, ~fails)]
    assert balanced.value == pytest.approx(np.mean(rates))
    assert balanced.low < balanced.value - 0.07 < balanced.value + 0.05 < balanced.high
    perfect = estimate(kinds, scale=SHARE, below=kinds)
    # 12 failures were seen: those that were missed may be many.
    assert perfect.value == 1 == perfect.high and perfect.low == pytest.approx(0.847, abs=0.01)


def test_a_constant_answer_has_the_ends_of_its_two_rates() -> None:
    fails = np.arange(100) < 10
    kinds = np.column_stack([fails, ~fails]).astype(float)
    always = estimate(kinds * [0, 1], scale=SHARE, below=kinds)
    # Clopper and Pearson: 0 of 10 failures are found, and 90 of 90 others.
    most, least = stats.beta.ppf(0.975, 1, 10), stats.beta.ppf(0.025, 90, 1)
    assert always[:3] == pytest.approx((0.5, least / 2, (1 + most) / 2))


def test_the_mean_of_influences_is_the_estimate() -> None:
    rng = np.random.default_rng(4)
    below = rng.integers(0, 4, (30, 2)).astype(float)
    above = below * rng.random((30, 2))
    ratios = above.sum(axis=0) / below.sum(axis=0)
    assert influences(above, below).mean(axis=0) == pytest.approx(ratios)
    pair = [mean_of(above[:, setup]) for setup in range(2)]
    assert influences(pair) == pytest.approx(above), "pseudo-values of a mean are its values"


# --- medians -------------------------------------------------------------------------------------


def test_a_median_has_an_interval_of_order_statistics() -> None:
    seconds = np.random.default_rng(6).lognormal(1, 1, 99)
    median = estimate(seconds, scale=MEDIAN)
    assert median.value == np.median(seconds)
    ranks = [int((seconds <= end).sum()) for end in median[1:3]]
    below = stats.binom.cdf(ranks[0] - 1, 99, 0.5), stats.binom.sf(ranks[1] - 1, 99, 0.5)
    assert max(below) <= 0.025 < 0.04


# --- statistics ----------------------------------------------------------------------------------


def mean_of(values: Floats) -> Statistic:
    """A mean as a statistic of sums: a column of ones counts the clusters."""
    return Statistic(
        np.column_stack([np.ones(len(values)), values]), lambda s: s[..., 1] / s[..., 0]
    )


def skewed_sample(n: int) -> Floats:
    """The quantiles of a lognormal distribution: long on the right, and nothing random about it."""
    return np.asarray(stats.lognorm.ppf((np.arange(n) + 0.5) / n, 1.3))


def pearson(x: Floats, y: Floats) -> Statistic:
    def correlation(sums: Floats) -> Floats:
        n, sx, sy, xx, yy, xy = np.moveaxis(sums, -1, 0)
        r: Floats = (n * xy - sx * sy) / np.sqrt((n * xx - sx**2) * (n * yy - sy**2))
        return r

    return Statistic(np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y]), correlation)


def test_a_correlation_has_nearly_fishers_interval() -> None:
    rng = np.random.default_rng(11)
    x = rng.normal(size=400)
    y = 0.8 * x + 0.6 * rng.normal(size=400)
    fisher = stats.pearsonr(x, y).confidence_interval()
    interval = estimate(pearson(x, y), scale=CORRELATION)
    assert interval.value == pytest.approx(stats.pearsonr(x, y).statistic)
    assert interval[1:3] == pytest.approx((fisher.low, fisher.high), abs=0.012)


def test_a_statistic_without_ends_has_students_interval() -> None:
    values = skewed_sample(40)
    interval = estimate(mean_of(values), scale=UNBOUNDED)
    assert interval[:4] == pytest.approx(estimate(values, scale=UNBOUNDED)[:4])


def test_a_bounded_interval_is_never_narrower_than_students_nor_wider_than_its_scale() -> None:
    even = np.linspace(0.2, 0.8, 12)
    bounded, students = (estimate(even, scale=scale) for scale in (DISTANCE, UNBOUNDED))
    assert bounded.low <= students.low and bounded.high >= students.high
    assert estimate([0.4, 0.5, 0.45, 0.5, 0.48, 0.5, 0.0], scale=between(0, 0.5)).high <= 0.5


@pytest.mark.parametrize("n", [3, 12, 50])
def test_the_jackknife_error_of_a_mean_is_its_standard_error(n: int) -> None:
    values = skewed_sample(n)
    found = jackknife_error(mean_of(values).rows, mean_of(values))
    assert float(found) == pytest.approx(stats.sem(values))
