"""People's rate: closed forms, published numbers, other libraries, and coverage by simulation."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.frames import own_rows, tidy
from judge_gym.analysis.judges.beside_people import judged_units
from judge_gym.analysis.judges.rate import (
    NOT_RANDOM,
    people_rate,
    rate_sentence,
    rogan_gladen,
)
from judge_gym.analysis.judges.setups import setups_of
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.measures import LabelScale
from judge_gym.analysis.stats.intervals import Floats
from judge_gym.analysis.verdicts import of_setups

SCORES = np.array([0.0, 1.0, 0.0])
"""Of the verdicts fail and pass, and of what cannot be read."""


def drawn(
    rng: np.random.Generator,
    *,
    items: int = 200,
    labels: int = 60,
    prevalence: float = 0.3,
    abstains: float = 0.0,
    size: int = 1,
    whole: bool = False,
    resemblance: float = 0.2,
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Labels, shares of verdicts and clusters of items; the judge is right on 85 and 90 %.

    Whole clusters are labelled, or items of any cluster.
    """
    base = np.full(items // size, prevalence)
    if size > 1:
        spread = 1 / resemblance - 1
        base = rng.beta(prevalence * spread, (1 - prevalence) * spread, items // size)
    codes = np.repeat(np.arange(items // size), size)
    truth = rng.random(items) < base[codes]
    verdict = np.where(truth, rng.random(items) < 0.85, rng.random(items) < 0.1).astype(int)
    verdict = np.where(rng.random(items) < abstains, 2, verdict)
    if whole:
        has_label = np.isin(codes, rng.permutation(items // size)[: labels // size])
    else:
        has_label = np.isin(np.arange(items), rng.permutation(items)[:labels])
    return np.where(has_label, truth, np.nan), np.eye(3)[verdict], codes


# --- the corrected rate --------------------------------------------------------------------------


def test_with_few_labels_it_is_the_power_tuned_mean_written_out() -> None:
    labels, shares, _ = drawn(np.random.default_rng(3), labels=25, prevalence=0.5)
    rate = people_rate(labels, shares, SCORES)
    has_label, called = ~np.isnan(labels), shares[:, 1]
    truth, seen = labels[has_label], called[has_label]

    def plain(weight: float) -> float:
        return float(weight * called.mean() + (truth - weight * seen).mean())

    def variance(weight: float) -> float:
        part = np.where(has_label, np.nan_to_num(labels) - truth.mean(), 0) / 25
        part -= weight * np.where(has_label, called - seen.mean(), 0) / 25
        return float(((part + weight * (called - called.mean()) / 200) ** 2).sum())

    grid = np.linspace(0, 1, 1001)
    assert rate.weight == pytest.approx(grid[np.argmin([variance(w) for w in grid])], abs=0.01)
    assert rate.corrected.value == pytest.approx(plain(rate.weight))


def test_a_judge_that_always_says_the_same_leaves_the_labels_as_they_are() -> None:
    labels, _, codes = drawn(np.random.default_rng(4))
    rate = people_rate(labels, np.ones((200, 1)), np.array([1.0]), codes)
    assert rate.weight == 0
    assert rate.corrected == rate.labels_alone
    assert rate.corrected.value == pytest.approx(np.nanmean(labels))
    assert rate.judge.value == 1


def test_a_judge_that_is_always_right_gives_the_rate_of_all_items() -> None:
    rng = np.random.default_rng(5)
    truth = (rng.random(400) < 0.4).astype(float)
    labels = np.where(np.arange(400) < 80, truth, np.nan)
    rate = people_rate(labels, np.eye(2)[truth.astype(int)], np.array([0.0, 1.0]))
    assert rate.corrected.value == pytest.approx(truth.mean(), abs=0.01)
    width = rate.corrected.high - rate.corrected.low
    assert width < 0.6 * (rate.labels_alone.high - rate.labels_alone.low)


def test_a_missing_verdict_drops_no_label() -> None:
    labels, shares, _ = drawn(np.random.default_rng(6), labels=120, abstains=0.96)
    rate = people_rate(labels, shares, SCORES)
    assert (rate.labels, rate.corrected.n, rate.items) == (120, 120, 200)


def test_rare_labels_of_independent_items_have_clopper_and_pearsons_interval() -> None:
    labels = np.concatenate([[1.0], np.zeros(29), np.full(70, np.nan)])
    rate = people_rate(labels, np.ones((100, 1)), np.array([0.0])).labels_alone
    exact = stats.binomtest(1, 30).proportion_ci(0.95, "exact")
    assert (rate.low, rate.high) == pytest.approx((exact.low, exact.high))


def test_labels_of_one_kind_in_clusters_count_as_clusters() -> None:
    labels, codes = np.zeros(60), np.repeat(np.arange(12), 5)
    rate = people_rate(labels, np.ones((60, 1)), np.array([0.0]), codes).corrected
    assert rate.high == pytest.approx(stats.binomtest(0, 12).proportion_ci(0.95, "exact").high)


def test_frequent_labels_have_students_interval() -> None:
    labels = np.concatenate([np.tile([1.0, 0.0], 20), np.full(70, np.nan)])
    rate = people_rate(labels, np.ones((110, 1)), np.array([0.0])).labels_alone
    reach = stats.t.interval(0.95, 39, 0.5, stats.sem(labels[:40]))
    assert (rate.low, rate.high) == pytest.approx(reach)


def test_known_chances_of_being_labelled_are_undone() -> None:
    labels = np.concatenate([np.ones(20), np.zeros(20), np.full(20, np.nan)])
    chances = np.concatenate([np.full(20, 0.9), np.full(20, 0.3), np.full(20, 0.5)])
    rate = people_rate(labels, np.ones((60, 1)), np.array([0.0]), inclusion=chances)
    assert rate.labels_alone.value == pytest.approx((20 / 0.9) / (20 / 0.9 + 20 / 0.3))


def test_differences_of_two_systems_are_estimated_on_their_own_scale() -> None:
    rng = np.random.default_rng(7)
    difference = rng.choice([-1.0, 0.0, 1.0], 300, p=[0.1, 0.5, 0.4])
    labels = np.where(np.arange(300) < 90, difference, np.nan)
    verdicts = np.eye(3)[difference.astype(int) + 1]
    rate = people_rate(labels, verdicts, np.array([-1.0, 0.0, 1.0]), scale=(-1, 1), is_rate=False)
    assert rate.corrected.value == pytest.approx(difference.mean(), abs=0.02)
    assert not rate.rogan_gladen.known


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (np.full(40, np.nan), "needs 10 labelled items; there are none"),
        (np.where(np.arange(40) < 9, 1.0, np.nan), "needs 10 labelled items; there are 9"),
        (np.where(np.arange(40) < 12, 1.0, np.nan), "labels lie in too few clusters"),
    ],
)
def test_what_is_too_little_for_an_interval_is_named(labels: Floats, reason: str) -> None:
    codes = np.repeat(np.arange(8), 5)
    rate = people_rate(labels, np.ones((40, 1)), np.array([1.0]), codes)
    assert rate.withheld.startswith(reason)
    assert not rate.corrected.known
    assert reason in rate_sentence(rate, "Pass rate")


# --- labels that are no random sample ------------------------------------------------------------


def test_the_comparison_of_verdicts_is_pearsons_where_items_are_independent() -> None:
    labels, shares, codes = drawn(np.random.default_rng(8), items=400, labels=100, abstains=0.3)
    rate = people_rate(labels, shares, SCORES)
    has_label = ~np.isnan(labels)
    table = np.stack([shares[has_label].sum(axis=0), shares[~has_label].sum(axis=0)])
    expected = stats.chi2_contingency(table, correction=False).pvalue
    assert rate.sample_p == pytest.approx(expected, rel=0.02)
    assert people_rate(labels, shares, SCORES, codes).sample_p == rate.sample_p


def test_labels_of_what_the_judge_failed_are_no_random_sample() -> None:
    labels, shares, _ = drawn(np.random.default_rng(9), items=400, labels=400)
    chosen = (shares[:, 0] == 1) & (np.arange(400) < 150)
    rate = people_rate(np.where(chosen, labels, np.nan), shares, SCORES)
    assert rate.warning == NOT_RANDOM
    assert rate_sentence(rate, "Pass rate").endswith(f"L{NOT_RANDOM[1:]}.")


# --- sentences and tables ------------------------------------------------------------------------


def test_the_sentence_has_all_three_estimates() -> None:
    labels, shares, _ = drawn(np.random.default_rng(10))
    rate = people_rate(labels, shares, SCORES)

    def ends(low: float, high: float) -> str:
        return f"[{100 * low:.0f}, {100 * high:.0f}]"

    assert rate_sentence(rate, "Pass rate") == (
        f"Pass rate: judge {100 * rate.judge.value:.0f} %, corrected "
        f"{100 * rate.corrected.value:.0f} % {ends(*rate.corrected[1:3])}; labels alone "
        f"{100 * rate.labels_alone.value:.0f} % {ends(*rate.labels_alone[1:3])}."
    )


def judged(stages: list[str], n_stages: int, **more: Any) -> pd.DataFrame:
    """A tidy frame of a judge's verdicts on items 0, 1, ...; none is an abstention."""
    rows = [
        {"judge.model": "j", "tag": "t", "evidence": item, "replicate": 0, "n_stages": n_stages}
        | {"status": "scored" if stage else "abstained", "stages": stage}
        | more
        for item, stage in enumerate(stages)
    ]
    return tidy(pd.DataFrame(rows))


def rated(stages: list[int]) -> pd.DataFrame:
    rows = [{"tag": "t", "evidence": n, "rater": "a", "stage": s} for n, s in enumerate(stages)]
    return pd.DataFrame(rows, columns=["tag", "evidence", "rater", "stage"])


def rate_of_table(frame: pd.DataFrame, labels: pd.DataFrame, **options: Any) -> Any:
    return judge_table(frame, labels, **options)["rate"]


def test_two_labels_have_a_rate_and_longer_scales_a_mean() -> None:
    rate = rate_of_table(judged(["1", "2", "", "2"] * 10, 2), rated([1, 2, 2] * 4), positive="2")
    assert (rate["items"], rate["labelled"]) == (40, 12)
    assert rate["raw"]["value"] == pytest.approx(0.5)  # what cannot be read is not positive
    mean = rate_of_table(judged(["1", "3", "", "5"] * 10, 5), rated([1, 3, 5] * 4))
    assert mean["raw"]["value"] == pytest.approx(3.0)  # of the readable: 1, 3 and 5
    assert mean["labels"]["value"] == pytest.approx(3.0)


def test_items_that_only_another_judge_answered_stay_in() -> None:
    other = judged(["1", "2"] * 20, 2).assign(**{"judge.model": "k"})
    frame = tidy(pd.concat([judged(["2"] * 20, 2), other], ignore_index=True))
    table = judge_table(frame, rated([1, 2] * 15), positive="2")
    verdicts = of_setups(own_rows(frame), setups_of(own_rows(frame)), rated([1, 2] * 15))
    scale = LabelScale("binary", ("1", "2"), 1)
    labels = verdicts.references["agreement"].labels
    units = [judged_units(verdicts, index, scale, labels) for index in range(2)]
    assert [len(part.units) for part in units if part is not None] == [40, 40]
    assert table["rate"] is not None
    assert (table["rate"]["items"], table["rate"]["labelled"]) == (40, 30)


def test_nominal_labels_and_no_labels_have_no_rate() -> None:
    frame = judged(["1", "2"] * 20, 2)
    assert rate_of_table(frame, rated([])) is None
    nominal = judged(["1", "2", "3", "1"] * 10, 3, rubric_kind="nominal")
    assert rate_of_table(nominal, rated([1, 2] * 6)) is None


# --- coverage ------------------------------------------------------------------------------------

FILES = 400


def coverage(prevalence: float, **world: Any) -> dict[str, float]:
    """The share of intervals that hold the prevalence, of those that are shown."""
    rng = np.random.default_rng(15)
    hits: dict[str, list[bool]] = {"corrected": [], "labels_alone": [], "rogan_gladen": []}
    for _ in range(FILES):
        labels, shares, codes = drawn(rng, prevalence=prevalence, **world)
        rate = people_rate(labels, shares, SCORES, codes)
        for name, covered in hits.items():
            estimate = getattr(rate, name)
            if estimate.known:
                covered.append(estimate.low <= prevalence <= estimate.high)
    return {name: float(np.mean(some)) for name, some in hits.items() if len(some) > FILES / 2}


@pytest.mark.simulation
@pytest.mark.parametrize("prevalence", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("abstains", [0.0, 0.96])
@pytest.mark.parametrize(("items", "labels"), [(60, 30), (200, 30), (200, 60), (200, 120)])
def test_intervals_of_independent_items_cover(
    items: int, labels: int, prevalence: float, abstains: float
) -> None:
    shares = coverage(prevalence, items=items, labels=labels, abstains=abstains)
    assert min(shares.values()) > 0.93 - 2.5 * np.sqrt(0.93 * 0.07 / FILES), shares


@pytest.mark.simulation
@pytest.mark.parametrize("prevalence", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("resemblance", [0.2, 0.6])
@pytest.mark.parametrize(("items", "labels"), [(60, 30), (200, 30), (200, 60), (200, 120)])
def test_intervals_of_items_in_clusters_cover(
    items: int, labels: int, resemblance: float, whole: bool, prevalence: float
) -> None:
    world = {"items": items, "labels": labels, "size": 5, "whole": whole}
    shares = coverage(prevalence, resemblance=resemblance, **world)
    assert min(shares.values()) > 0.93 - 2.5 * np.sqrt(0.93 * 0.07 / FILES), shares


@pytest.mark.simulation
def test_a_random_sample_is_rarely_doubted_and_a_biased_one_often() -> None:
    rng = np.random.default_rng(16)
    doubted = []
    for _ in range(FILES):
        labels, shares, codes = drawn(rng, size=5, labels=60, whole=True)
        doubted.append(bool(people_rate(labels, shares, SCORES, codes).warning))
    assert np.mean(doubted) < 0.03
    missed = []
    for _ in range(FILES):
        labels, shares, codes = drawn(rng, labels=200)
        chance = np.where(shares[:, 1] == 1, 0.6, 0.2)
        labels = np.where(rng.random(200) < chance, labels, np.nan)
        missed.append(not people_rate(labels, shares, SCORES, codes).warning)
    assert np.mean(missed) < 0.1


# --- corrected prevalence ------------------------------------------------------------------------


def decisions(right: int, n: int) -> Floats:
    return np.repeat([1.0, 0.0], [right, n - right])


def test_a_herd_with_an_imperfect_test() -> None:
    """23 of 150 cows test positive; sensitivity .96, specificity .89: 5.1 per 100 are ill."""
    estimate = rogan_gladen(decisions(23, 150), decisions(96, 100), decisions(89, 100))
    assert estimate.value == pytest.approx(0.051, abs=5e-4)
    assert estimate.low == 0
    assert 0.10 < estimate.high < 0.20


def test_with_decisions_it_is_the_binomial_interval_of_lang_and_reiczigel() -> None:
    x, n, a, m, b, k = 60, 200, 45, 50, 52, 60
    z = stats.norm.ppf(0.975)
    p, se, sp = (x + z**2 / 2) / (n + z**2), (a + 1) / (m + 2), (b + 1) / (k + 2)
    sharp = se + sp - 1
    middle = (p + sp - 1) / sharp
    v_se, v_sp = se * (1 - se) / (m + 2), sp * (1 - sp) / (k + 2)
    error = np.sqrt(p * (1 - p) / (n + z**2) + v_se * middle**2 + v_sp * (1 - middle) ** 2) / sharp
    shift = 2 * z**2 * (middle * v_se - (1 - middle) * v_sp)
    estimate = rogan_gladen(decisions(x, n), decisions(a, m), decisions(b, k))
    assert estimate.low == pytest.approx(middle + shift - z * error)
    assert estimate.high == pytest.approx(middle + shift + z * error)


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    estimate = rogan_gladen(decisions(5, 10), decisions(5, 10), decisions(5, 10))
    assert np.isnan(estimate.value)
    assert not rogan_gladen(decisions(5, 10), decisions(9, 10), np.array([])).known


@pytest.mark.parametrize("replicates", [1, 5])
def test_the_interval_of_a_corrected_prevalence_covers(replicates: int) -> None:
    """Judges decide by replicate; the items' own difficulty makes replicates alike."""
    rng = np.random.default_rng(15)
    hits, prevalence = 0, 0.3

    def called(ill: npt.NDArray[np.bool_]) -> Floats:
        chance = np.where(ill, rng.beta(8, 2, len(ill)), rng.beta(2, 8, len(ill)))
        share: Floats = rng.binomial(replicates, chance) / replicates
        return share

    for _ in range(panels := 1000):
        ill = rng.random(200) < prevalence
        known = rng.random(60) < prevalence
        errors = called(known)
        estimate = rogan_gladen(called(ill), errors[known], 1 - errors[~known])
        hits += estimate.low <= prevalence <= estimate.high
    reach = stats.binomtest(hits, panels).proportion_ci(0.99, "wilson")
    assert reach.low <= 0.97
    assert reach.high >= 0.93
