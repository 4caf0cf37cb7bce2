"""Rank correlations of judges with people, against scipy, with and without each cluster."""

import numpy as np
import pytest
from scipy import stats

from judge_gym.analysis.measures.jackknife import Jackknife
from judge_gym.analysis.measures.rank import (
    Correlation,
    Floats,
    among_people,
    mean_stage,
    rank_correlation,
    rank_interval,
)

SCIPY = {"tau_b": stats.kendalltau, "spearman": stats.spearmanr}


def scores(seed: int, items: int = 60) -> tuple[Floats, Floats]:
    """A judge's and people's mean stages, with many ties."""
    draws = np.random.default_rng(seed)
    quality = draws.normal(size=items)
    judge = np.digitize(quality + draws.normal(size=items), [-1, 0, 1]) + 1.0
    ratings = np.digitize(quality[:, None] + draws.normal(size=(items, 3)), [-1, 0, 1]) + 1.0
    return judge.astype(np.float64), ratings.mean(axis=1)


@pytest.mark.parametrize("kind", ["tau_b", "spearman"])
@pytest.mark.parametrize("clustered", [False, True])
def test_correlations_with_and_without_each_cluster_equal_those_of_scipy(
    kind: Correlation, clustered: bool
) -> None:
    judge, people = scores(1)
    judge[7], people[20] = np.nan, np.nan
    clusters = np.random.default_rng(2).integers(0, 15, 60) if clustered else None
    result = rank_correlation(judge, people, clusters, kind)
    codes = np.arange(60) if clusters is None else clusters
    complete = ~np.isnan(judge + people)
    expected = SCIPY[kind](judge[complete], people[complete]).statistic
    assert result.jackknife.value == pytest.approx(expected, abs=1e-12)
    rest = [complete & (codes != cluster) for cluster in np.unique(codes)]
    without = [SCIPY[kind](judge[some], people[some]).statistic for some in rest]
    assert result.jackknife.without == pytest.approx(without, abs=1e-12)
    assert result.jackknife.sizes.sum() == 58
    assert result.unscored == 1


@pytest.mark.parametrize("kind", ["tau_b", "spearman"])
def test_correlations_do_not_depend_on_the_size_of_blocks(
    kind: Correlation, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, people = scores(3)
    clusters = np.arange(60) // 4
    whole = rank_correlation(judge, people, clusters, kind).jackknife
    monkeypatch.setattr("judge_gym.analysis.measures.rank.BLOCK", 60 * 7)
    parts = rank_correlation(judge, people, clusters, kind).jackknife
    assert parts.value == whole.value
    np.testing.assert_allclose(parts.without, whole.without, atol=1e-12)


@pytest.mark.parametrize("kind", ["tau_b", "spearman"])
def test_means_that_differ_by_rounding_are_tied(kind: Correlation) -> None:
    judge, people = scores(5)
    # Means of shares of labels, as the judge table has them: thirds do not add up exactly.
    noisy = people + np.random.default_rng(6).choice([-4e-16, 0, 4e-16], 60)
    assert len(np.unique(noisy)) > len(np.unique(people))
    expected = SCIPY[kind](judge, people).statistic
    value = rank_correlation(judge, noisy, kind=kind).jackknife.value
    assert value == pytest.approx(expected, abs=1e-12)


def test_a_mean_stage_is_over_scored_verdicts_only() -> None:
    verdict = np.array(
        [[0.25, 0, 0.5, 0, 0, 0, 0.25], [0, 0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0, 0]]
    )
    np.testing.assert_allclose(mean_stage(verdict, 3), [1.75 / 0.75, np.nan, 2])


def test_a_constant_judge_has_no_rank_correlation() -> None:
    _, people = scores(4)
    result = rank_correlation(np.full(60, 4.0), people)
    assert np.isnan(result.jackknife.value)
    assert rank_interval(result).withheld == "the judge or people use a single stage"


@pytest.mark.parametrize("kind", ["tau_b", "spearman"])
def test_a_judge_without_any_score_has_no_rank_correlation(kind: Correlation) -> None:
    people = np.arange(30.0)
    result = rank_correlation(np.full(30, np.nan), people, kind=kind)
    assert np.isnan(result.jackknife.value) and result.unscored == 30
    assert rank_interval(result).withheld == "30 of 30 items have no score"


def test_a_correlation_has_no_interval_if_many_items_have_no_score() -> None:
    judge, people = scores(5)
    judge[:6] = np.nan
    assert rank_interval(rank_correlation(judge, people)).withheld == ""
    judge[6] = np.nan
    estimate = rank_interval(rank_correlation(judge, people))
    assert estimate.withheld == "7 of 60 items have no score"
    assert np.isfinite(estimate.value) and np.isnan(estimate.low)


def test_each_rater_is_compared_with_the_mean_of_the_others_and_so_is_the_judge() -> None:
    draws = np.random.default_rng(6)
    quality = draws.normal(size=40)
    rated = np.digitize(quality[:, None] + draws.normal(size=(40, 3)), [-1, 0, 1])
    ratings, judge = rated + np.float64(1), np.digitize(quality, [-1, 0, 1]) + np.float64(1)
    result = among_people(ratings, judge)
    assert result is not None and result.judge is not None and result.raters == 3
    others = [np.delete(ratings, rater, axis=1).mean(axis=1) for rater in range(3)]
    people = [stats.kendalltau(ratings[:, rater], others[rater])[0] for rater in range(3)]
    beside = [stats.kendalltau(judge, mean)[0] for mean in others]
    assert result.people.jackknife.value == pytest.approx(np.mean(people), abs=1e-12)
    assert result.judge.jackknife.value == pytest.approx(np.mean(beside), abs=1e-12)
    without = among_people(ratings[1:], judge[1:])
    assert without is not None and without.judge is not None
    assert result.people.jackknife.without[0] == pytest.approx(without.people.jackknife.value)
    assert result.judge.jackknife.without[0] == pytest.approx(without.judge.jackknife.value)


def test_raters_who_share_few_items_are_left_out() -> None:
    draws = np.random.default_rng(7)
    ratings = np.full((30, 3), np.nan)
    ratings[:, :2] = draws.integers(1, 6, (30, 2))
    ratings[:9, 2] = draws.integers(1, 6, 9)
    result = among_people(ratings)
    assert result is not None and (result.raters, result.judge) == (2, None)
    assert among_people(ratings[:, :1]) is None


def test_a_correlation_has_a_jackknife_interval_on_the_arctanh_scale() -> None:
    judge, people = scores(8)
    jackknife = rank_correlation(judge, people).jackknife
    estimate = rank_interval(rank_correlation(judge, people))
    half = stats.t.ppf(0.975, 59) * jackknife.error / (1 - jackknife.value**2)
    middle = np.arctanh(jackknife.value)
    ends = np.tanh([middle - half, middle + half]).tolist()
    assert [estimate.low, estimate.high] == pytest.approx(ends)
    assert rank_interval(rank_correlation(judge[:19], people[:19])).withheld.startswith("19 items")


def test_influences_of_a_mean_are_the_values() -> None:
    values = np.array([1.0, 2.0, 6.0])
    without = (values.sum() - values) / 2
    jackknife = Jackknife(3.0, without, np.ones(3))
    np.testing.assert_allclose(jackknife.influences, values)
    assert jackknife.error == pytest.approx(values.std(ddof=1) / np.sqrt(3))
