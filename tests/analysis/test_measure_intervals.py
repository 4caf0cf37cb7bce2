"""Intervals and influences of agreement measures, and when they are withheld."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from judge_gym.analysis.measures.confusion import (
    Floats,
    MatrixFunction,
    Rate,
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
from judge_gym.analysis.measures.jackknife import Codes, jackknife_sums
from judge_gym.analysis.stats.intervals import (
    KAPPA,
    SHARE,
    Estimate,
    between,
    difference,
    estimate,
    jackknife_estimate,
)


def tables(judge: list[int], people: list[int], stages: int = 2) -> Floats:
    return confusion_tables(np.eye(stages + 4)[judge], np.eye(stages)[people])


def panel(items: int, seed: int = 1, stages: int = 2) -> tuple[list[int], list[int]]:
    draws = np.random.default_rng(seed)
    people = draws.integers(0, stages, items)
    judge = np.where(draws.random(items) < 0.8, people, draws.integers(0, stages, items))
    return judge.tolist(), people.tolist()


def rate_estimate(crossed: Floats, rate: Rate, clusters: Codes | None = None) -> Estimate:
    numerator, denominator = rate.by_item(crossed)
    scale = difference(rate.high) if rate.low < 0 else between(rate.low, rate.high)
    return estimate(numerator, clusters, scale=scale, below=denominator)


def kappa_estimate(
    crossed: Floats, clusters: Codes | None = None, labels: tuple[int, ...] = ()
) -> Estimate:
    return estimate(statistic(crossed, kappa)._replace(labels=labels), clusters, scale=KAPPA)


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


# --- rates ---------------------------------------------------------------------------------------


def test_sensitivity_to_a_known_answer_has_the_interval_of_clopper_and_pearson() -> None:
    judge, people = panel(50)
    found = sum(j == p == 1 for j, p in zip(judge, people, strict=True))
    reference = stats.binomtest(found, sum(people)).proportion_ci()
    interval = rate_estimate(tables(judge, people), sensitivity(1))
    assert interval.value == pytest.approx(found / sum(people))
    assert [interval.low, interval.high] == pytest.approx([reference.low, reference.high])
    assert interval.n == sum(people)


def test_exact_agreement_has_the_interval_of_a_bounded_mean() -> None:
    draws = np.random.default_rng(3)
    label = draws.dirichlet(np.ones(2), 40)
    verdict = np.eye(6)[draws.integers(0, 2, 40)]
    crossed = confusion_tables(verdict, label)
    shares = (verdict[:, :2] * label).sum(axis=1)
    assert rate_estimate(crossed, exact(2))[:3] == pytest.approx(estimate(shares, scale=SHARE)[:3])


def test_a_rate_without_a_mistake_has_an_interval_also_in_clusters() -> None:
    people = [0, 1] * 30
    crossed = tables(people, people)
    alone = rate_estimate(crossed, exact(2))
    clustered = rate_estimate(crossed, exact(2), np.arange(60) // 4)
    assert (alone.value, alone.high) == (1, 1) and alone.low == pytest.approx(0.9404, abs=1e-4)
    assert (clustered.value, clustered.high) == (1, 1)
    assert clustered.low == pytest.approx(0.025 ** (1 / 15))  # 15 clusters


def test_rates_reach_from_end_to_end_of_their_scale_only() -> None:
    draws = np.random.default_rng(4)
    for measure, stages in product((recall, f1), (2, 3)):
        label = draws.dirichlet(np.full(stages, 0.3), 25)
        verdict = np.pad(draws.dirichlet(np.full(stages, 0.3), 25), ((0, 0), (0, 4)))
        interval = rate_estimate(confusion_tables(verdict, label), measure(stages, 0))
        assert 0 <= interval.low < interval.value < interval.high <= 1


def test_errors_in_stages_are_on_their_own_scale() -> None:
    people = [0, 1, 2, 3, 4] * 6
    judge = [min(4, stage + 1) for stage in people]
    crossed = tables(judge, people, stages=5)
    error = rate_estimate(crossed, absolute_error(5))
    bias = rate_estimate(crossed, signed_bias(5))
    assert error.value == pytest.approx(0.8) and 0 < error.low < 0.8 < error.high < 2
    assert bias.value == pytest.approx(0.8) and 0.5 < bias.low < 0.8 < bias.high < 1.1


def test_a_rate_without_items_is_withheld_in_words() -> None:
    crossed = tables([1, 1], [1, 1])
    assert rate_estimate(crossed, specificity(1)).withheld == "no value"
    few = rate_estimate(tables(*panel(40)), exact(2), np.arange(40) // 20)
    assert few.withheld == "the items form 2 clusters, too few to infer beyond them"


# --- means of rates ------------------------------------------------------------------------------


def test_balanced_accuracy_has_no_interval_if_a_label_is_rare() -> None:
    def balanced_estimate(rare: int) -> Estimate:
        people = [1] * rare + [0] * 60
        parts = [rate.by_item(tables([0, *people[1:]], people)) for rate in balanced(2).rates]
        above, below = (np.column_stack([part[end] for part in parts]) for end in (0, 1))
        return estimate(above, scale=SHARE, below=below)

    assert balanced_estimate(4).withheld == "a label has 4 items, and 5 are needed"
    interval = balanced_estimate(5)
    assert interval.value == pytest.approx((4 / 5 + 1) / 2)
    assert interval.low < 0.75 and 0.95 < interval.high <= 1


# --- beyond chance -------------------------------------------------------------------------------


def test_kappa_has_a_jackknife_interval_on_the_arctanh_scale() -> None:
    judge, people = panel(80)
    crossed = tables(judge, people)
    interval = kappa_estimate(crossed)
    rest = [statistic(np.delete(crossed, item, axis=0), kappa).value for item in range(80)]
    error = np.sqrt(79 * np.var(rest)) / (1 - interval.value**2)
    half = stats.t.ppf(0.975, 79) * error
    ends = np.tanh([np.arctanh(interval.value) - half, np.arctanh(interval.value) + half])
    assert [interval.low, interval.high] == pytest.approx(ends.tolist())


def test_one_disagreement_of_twenty_leaves_much_of_the_scale_open() -> None:
    people = [0, 1] * 10
    interval = kappa_estimate(tables([1, *people[1:]], people), labels=(10, 10))
    assert interval.value == pytest.approx(0.9)
    assert interval.low < 0.5 and 0.98 < interval.high < 1


def test_a_rare_label_bounds_the_freedom() -> None:
    people = [1] * 8 + [0] * 92
    judge = [1] * 6 + [0] * 2 + [1] * 2 + [0] * 90
    crossed = tables(judge, people)
    jackknife = jackknife_sums(statistic(crossed, kappa))
    interval = kappa_estimate(crossed, labels=(92, 8))
    half = stats.t.ppf(0.975, 7) * jackknife.error / (1 - jackknife.value**2)
    assert np.arctanh(interval.high) - np.arctanh(interval.low) == pytest.approx(2 * half)


@pytest.mark.parametrize(
    ("sizes", "labels", "reason"),
    [
        (np.ones(19), (10, 9), "19 items, and 20 are needed"),
        (np.full(9, 4), (20, 16), "9 clusters, and 10 are needed"),
        (np.ones(40), (36, 4), "a label has 4 items, and 5 are needed"),
        (np.ones(40), (40,), "only one label is used"),
        (np.ones(40), (35, 5), ""),
        (np.array([*[1] * 14, 46]), (), "the items form 15 clusters, too few to infer beyond them"),
        (np.ones(20), (), ""),
    ],
)
def test_intervals_are_withheld_in_words(
    sizes: Floats, labels: tuple[int, ...], reason: str
) -> None:
    interval = jackknife_estimate(0.5, 0.1, sizes, scale=KAPPA, labels=labels)
    assert interval.withheld == reason
    assert np.isnan(interval.low) == bool(reason)


def test_perfect_agreement_has_no_interval_beyond_chance() -> None:
    people = [0, 1] * 20
    interval = kappa_estimate(tables(people, people), labels=(20, 20))
    assert interval.value == 1 and np.isnan(interval.low)
    assert interval.withheld == "no item differs from the others"


def test_a_kappa_that_needs_one_item_has_no_interval() -> None:
    people = [1] + [0] * 39
    interval = kappa_estimate(tables(people, people))
    assert interval.withheld == "not defined without one of the items"


def test_items_that_any_rater_gives_a_label_are_counted() -> None:
    assert items_by_label(np.array([[0.5, 0.5], [0, 1], [np.nan, np.nan]])).tolist() == [1, 2]
