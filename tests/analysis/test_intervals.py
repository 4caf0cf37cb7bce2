"""Intervals and errors, against other libraries' and closed forms."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from judge_gym.analysis.stats.intervals import (
    Bounded,
    Estimate,
    Floats,
    SumStatistic,
    above_chance,
    bootstrap,
    bounded,
    jackknife_error,
    mean_bounds,
    seeded,
    skewed,
    student,
)


@pytest.mark.parametrize(("right", "n"), [(0, 5), (0, 60), (3, 7), (12, 12), (40, 100), (2, 3000)])
def test_a_proportion_has_clopper_and_pearsons_interval(right: int, n: int) -> None:
    found = bounded([1.0] * right + [0.0] * (n - right))
    exact = proportion_confint(right, n, method="beta")
    assert (found.low, found.high) == pytest.approx(exact, abs=1e-12)


def test_a_bounded_mean_of_two_levels_has_the_interval_of_their_proportion() -> None:
    # Away from the ends of the scale there is no closed form; the limit towards them is known.
    inside = bounded(np.clip([1.0] * 7 + [0.0] * 5, 1e-9, 1 - 1e-9))
    exact = proportion_confint(7, 12, method="beta")
    assert (inside.low, inside.high) == pytest.approx(exact, abs=0.01)


def test_a_bounded_interval_scales_with_its_quantity_and_ends_with_its_scale() -> None:
    values = stats.beta.ppf((np.arange(12) + 0.5) / 12, 0.3, 1)
    unit, stages = bounded(values), Bounded(1, 5)(1 + 4 * values)
    assert stages[:3] == pytest.approx(1 + 4 * np.array(unit[:3]))
    dipping = [-0.02, -0.01, 0.0, 0.01, 0.02, 0.01, -0.02, 0.0]
    assert skewed(dipping).low == 0 and skewed(dipping).high < 0.4
    assert above_chance(dipping).low < 0 and above_chance(dipping).high == skewed(dipping).high


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
        np.mean([low <= truth <= high for _, low, high, _ in map(estimate, drawn)])
        for estimate in (bounded, student)
    )
    assert students < 0.93 <= ours


def test_a_mean_has_students_interval() -> None:
    values = seeded("student").normal(size=12)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = student([*values, np.nan])
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert found.n == 12


def test_bounds_without_a_gap_are_students_interval() -> None:
    values = seeded("bounds").normal(size=15)
    assert mean_bounds(values, values) == pytest.approx(student(values)[1:3])


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
    kept = [student(one[~gone]) for one, gone in zip(values, missing, strict=True)]
    assert np.mean([low <= 0.5 <= high for _, low, high, _ in kept]) < 0.9


# --- bootstrap -----------------------------------------------------------------------------------

ALIKE, UNLIKE = 0.08, 0.12
"""Shares of an interval's width: within the noise of 999 draws, and beyond it."""


def mean_of(values: Floats) -> SumStatistic:
    """A mean as a statistic of sums: a column of ones counts the clusters."""
    return SumStatistic(
        np.column_stack([np.ones(len(values)), values]), lambda s: s[..., 1] / s[..., 0]
    )


def skewed_sample(n: int) -> Floats:
    """The quantiles of a lognormal distribution: long on the right, and nothing random about it."""
    return np.asarray(stats.lognorm.ppf((np.arange(n) + 0.5) / n, 1.3))


def textbook(values: Floats, *, studentised: bool, draws: int = 40_000) -> tuple[float, float]:
    """The bootstrap interval of a mean as Efron and Tibshirani (1993) write it, chapters 12, 13."""
    n, mean = len(values), values.mean()
    drawn = values[np.random.default_rng(1).integers(0, n, (draws, n))]
    if not studentised:
        low, high = np.quantile(drawn.mean(axis=1), [0.025, 0.975])
        return float(low), float(high)
    t = (drawn.mean(axis=1) - mean) / (drawn.std(axis=1, ddof=1) / np.sqrt(n))
    low, high = np.quantile(t, [0.025, 0.975])
    error = values.std(ddof=1) / np.sqrt(n)
    return float(mean - high * error), float(mean - low * error)


def gap(found: Estimate, interval: tuple[float, float]) -> float:
    """The larger distance of two ends, as a share of the width."""
    low, high = interval
    return max(abs(found.low - low), abs(found.high - high)) / (high - low)


@pytest.mark.parametrize("n", [12, 60, 199])
def test_below_200_items_the_bootstrap_is_studentised(n: int) -> None:
    values = skewed_sample(n)
    found = bootstrap(mean_of(values), key="any")
    assert found.value == pytest.approx(values.mean()) and found.n == n
    assert gap(found, textbook(values, studentised=True)) < ALIKE
    # Neither of the simpler intervals would pass for it.
    assert gap(found, textbook(values, studentised=False)) > UNLIKE
    assert gap(found, student(values)[1:3]) > UNLIKE


@pytest.mark.parametrize("n", [200, 300])
def test_from_200_items_on_the_bootstrap_goes_by_percentiles(n: int) -> None:
    values = skewed_sample(n)
    found = bootstrap(mean_of(values), key="any")
    assert gap(found, textbook(values, studentised=False)) < ALIKE
    assert gap(found, textbook(values, studentised=True)) > UNLIKE


def test_a_bounded_interval_is_never_narrower_than_students_nor_wider_than_its_scale() -> None:
    even = np.linspace(0.2, 0.8, 12)
    assert skewed(even).low <= student(even).low and skewed(even).high >= student(even).high
    assert Bounded(0, 0.5)([0.4, 0.5, 0.45, 0.5, 0.48, 0.5, 0.0]).high <= 0.5


@pytest.mark.parametrize("n", [3, 12, 50])
def test_the_jackknife_error_of_a_mean_is_its_standard_error(n: int) -> None:
    values = skewed_sample(n)
    found = jackknife_error(mean_of(values).rows, mean_of(values))
    assert float(found) == pytest.approx(stats.sem(values))
