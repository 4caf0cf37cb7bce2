"""Intervals and influences of agreement measures, and when they are withheld."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from judge_gym.analysis.measures.confusion import (
    Floats,
    MatrixFunction,
    absolute_error,
    balanced,
    confusion_tables,
    exact,
    f1,
    items_by_label,
    kappa,
    macro_f1,
    recall,
    sensitivity,
    signed_bias,
    specificity,
    statistic,
    weighted_kappa,
)
from judge_gym.analysis.measures.jackknife import (
    Codes,
    jackknife_interval,
    jackknife_sums,
    withheld_reason,
)
from judge_gym.analysis.measures.ratios import mean_of_rates_interval, rate_interval
from judge_gym.analysis.stats.intervals import bounded


def tables(judge: list[int], people: list[int], stages: int = 2) -> Floats:
    return confusion_tables(np.eye(stages + 4)[judge], np.eye(stages)[people])


def panel(items: int, seed: int = 1, stages: int = 2) -> tuple[list[int], list[int]]:
    draws = np.random.default_rng(seed)
    people = draws.integers(0, stages, items)
    judge = np.where(draws.random(items) < 0.8, people, draws.integers(0, stages, items))
    return judge.tolist(), people.tolist()


# --- influences ----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [kappa, weighted_kappa, balanced(3), macro_f1(3), exact(3)])
@pytest.mark.parametrize("clusters", [None, np.arange(60) % 13])
def test_a_measure_without_a_cluster_is_that_of_the_other_items(
    measure: MatrixFunction, clusters: Codes | None
) -> None:
    crossed = tables(*panel(60, stages=3), stages=3)
    jackknife = jackknife_sums(statistic(crossed, measure), clusters)
    codes = np.arange(60) if clusters is None else clusters
    for code in range(len(jackknife.without)):
        expected = statistic(crossed[codes != code], measure).value
        assert jackknife.without[code] == pytest.approx(expected, abs=1e-12)
    assert jackknife.sizes.tolist() == np.bincount(codes).tolist()


def test_influences_on_exact_agreement_are_the_items() -> None:
    judge, people = panel(30)
    jackknife = jackknife_sums(statistic(tables(judge, people), exact(2)))
    np.testing.assert_allclose(jackknife.influences, np.equal(judge, people), atol=1e-12)


def test_freedom_is_clusters_less_one_and_smaller_for_unequal_sizes() -> None:
    crossed = tables(*panel(60))
    equal = jackknife_sums(statistic(crossed, kappa), np.arange(60) // 4)
    unequal = jackknife_sums(statistic(crossed, kappa), np.maximum(np.arange(60) - 45, 0))
    assert equal.freedom == 14
    assert len(unequal.sizes) == 15 and unequal.freedom < 4
    assert jackknife_interval(unequal).withheld == "a few clusters have nearly all items"


# --- rates ---------------------------------------------------------------------------------------


def test_sensitivity_to_a_known_answer_has_the_interval_of_clopper_and_pearson() -> None:
    judge, people = panel(50)
    found = sum(j == p == 1 for j, p in zip(judge, people, strict=True))
    reference = stats.binomtest(found, sum(people)).proportion_ci()
    estimate = rate_interval(tables(judge, people), sensitivity(1)).estimate
    assert estimate.value == pytest.approx(found / sum(people))
    assert [estimate.low, estimate.high] == pytest.approx([reference.low, reference.high])
    assert estimate.n == sum(people)


def test_exact_agreement_has_the_interval_of_a_bounded_mean() -> None:
    draws = np.random.default_rng(3)
    label = draws.dirichlet(np.ones(2), 40)
    verdict = np.eye(6)[draws.integers(0, 2, 40)]
    crossed = confusion_tables(verdict, label)
    assert rate_interval(crossed, exact(2)).estimate == pytest.approx(
        bounded((verdict[:, :2] * label).sum(axis=1))
    )


def test_a_rate_without_a_mistake_has_an_interval_also_in_clusters() -> None:
    people = [0, 1] * 30
    crossed = tables(people, people)
    alone = rate_interval(crossed, exact(2)).estimate
    clustered = rate_interval(crossed, exact(2), np.arange(60) // 4).estimate
    assert (alone.value, alone.high) == (1, 1) and alone.low == pytest.approx(0.9404, abs=1e-4)
    assert (clustered.value, clustered.high) == (1, 1)
    assert clustered.low == pytest.approx(0.025 ** (1 / 15))  # 15 clusters


def test_rates_reach_from_end_to_end_of_their_scale_only() -> None:
    draws = np.random.default_rng(4)
    for measure, stages in product((recall, f1), (2, 3)):
        label = draws.dirichlet(np.full(stages, 0.3), 25)
        verdict = np.pad(draws.dirichlet(np.full(stages, 0.3), 25), ((0, 0), (0, 4)))
        estimate = rate_interval(confusion_tables(verdict, label), measure(stages, 0)).estimate
        assert 0 <= estimate.low < estimate.value < estimate.high <= 1


def test_errors_in_stages_are_on_their_own_scale() -> None:
    people = [0, 1, 2, 3, 4] * 6
    judge = [min(4, stage + 1) for stage in people]
    crossed = tables(judge, people, stages=5)
    error = rate_interval(crossed, absolute_error(5)).estimate
    bias = rate_interval(crossed, signed_bias(5)).estimate
    assert error.value == pytest.approx(0.8) and 0 < error.low < 0.8 < error.high < 2
    assert bias.value == pytest.approx(0.8) and 0.5 < bias.low < 0.8 < bias.high < 1.1


def test_a_rate_without_items_is_withheld_in_words() -> None:
    crossed = tables([1, 1], [1, 1])
    assert rate_interval(crossed, specificity(1)).withheld == "no item to base it on"
    few = rate_interval(tables(*panel(40)), exact(2), np.arange(40) // 20)
    assert few.withheld == "2 clusters are too few to infer beyond them"


# --- means of rates ------------------------------------------------------------------------------


def test_balanced_accuracy_adds_the_uncertainty_of_a_rate_without_a_mistake() -> None:
    people = [1] * 10 + [0] * 90
    judge = [1] * 10 + [1] * 9 + [0] * 81  # all positives found, 9 of 90 false alarms
    crossed = tables(judge, people)
    measured = mean_of_rates_interval(crossed, balanced(2), None, np.array([90, 10]))
    sensitive = stats.binomtest(10, 10).proportion_ci()
    specific = stats.binomtest(81, 90).proportion_ci()
    assert measured.estimate.value == pytest.approx(0.95)
    low = 0.95 - np.hypot(1 - sensitive.low, 0.9 - specific.low) / 2
    assert measured.estimate.low == pytest.approx(low)
    assert measured.estimate.high == pytest.approx(0.95 + (specific.high - 0.9) / 2)


# --- beyond chance -------------------------------------------------------------------------------


def test_kappa_has_a_jackknife_interval_on_the_arctanh_scale() -> None:
    judge, people = panel(80)
    crossed = tables(judge, people)
    estimate = jackknife_interval(jackknife_sums(statistic(crossed, kappa))).estimate
    rest = [statistic(np.delete(crossed, item, axis=0), kappa).value for item in range(80)]
    error = np.sqrt(79 * np.var(rest)) / (1 - estimate.value**2)
    half = stats.t.ppf(0.975, 79) * error
    ends = np.tanh([np.arctanh(estimate.value) - half, np.arctanh(estimate.value) + half])
    assert [estimate.low, estimate.high] == pytest.approx(ends.tolist())


def test_one_disagreement_of_twenty_leaves_much_of_the_scale_open() -> None:
    people = [0, 1] * 10
    crossed = tables([1, *people[1:]], people)
    measured = jackknife_interval(jackknife_sums(statistic(crossed, kappa)), np.array([10, 10]))
    assert measured.estimate.value == pytest.approx(0.9)
    assert measured.estimate.low < 0.5 and 0.98 < measured.estimate.high < 1


def test_a_rare_label_bounds_the_freedom() -> None:
    people = [1] * 8 + [0] * 92
    judge = [1] * 6 + [0] * 2 + [1] * 2 + [0] * 90
    jackknife = jackknife_sums(statistic(tables(judge, people), kappa))
    estimate = jackknife_interval(jackknife, np.array([92, 8])).estimate
    half = stats.t.ppf(0.975, 7) * jackknife.error / (1 - jackknife.value**2)
    assert np.arctanh(estimate.high) - np.arctanh(estimate.low) == pytest.approx(2 * half)


@pytest.mark.parametrize(
    ("sizes", "label_items", "reason"),
    [
        (np.ones(19), [10, 9], "19 items; 20 are needed"),
        (np.full(9, 4.0), [20, 16], "9 clusters; 10 are needed"),
        (np.ones(40), [36, 4], "a label has 4 items; 5 are needed"),
        (np.ones(40), [39, 1], "a label has 1 item; 5 are needed"),
        (np.ones(40), [40, 0], "people use a single label"),
        (np.ones(40), [35, 5, 0], ""),
        (np.ones(20), None, ""),
    ],
)
def test_intervals_are_withheld_in_words(
    sizes: Floats, label_items: list[int] | None, reason: str
) -> None:
    assert withheld_reason(sizes, label_items) == reason


def test_perfect_agreement_has_no_interval_beyond_chance() -> None:
    people = [0, 1] * 20
    crossed = tables(people, people)
    measured = jackknife_interval(jackknife_sums(statistic(crossed, kappa)), np.array([20, 20]))
    assert measured.estimate.value == 1 and np.isnan(measured.estimate.low)
    assert measured.withheld == "without any disagreement its error is not known"


def test_items_that_any_rater_gives_a_label_are_counted() -> None:
    assert items_by_label(np.array([[0.5, 0.5], [0, 1], [np.nan, np.nan]])).tolist() == [1, 2]
