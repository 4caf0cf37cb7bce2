"""The difference of two systems by labels and verdicts; coverage stands in the simulations."""

import numpy as np
import pytest
from scipy import stats

from judge_gym.analysis.judges.rate import people_rate
from judge_gym.analysis.judges.systems import SystemDifference, SystemItems, system_difference
from judge_gym.analysis.stats.intervals import Floats

SCORES = np.array([0.0, 1.0, 0.0])
"""Fail, pass, unreadable."""
ITEMS = 200


def system(seed: int, *, first: int = 0, favour: float = 0.0, labelled: float = 1.0) -> SystemItems:
    """A system whose items people pass at .6, as the judge does but for its favour."""
    rng = np.random.default_rng(seed)
    good = rng.random(ITEMS) < 0.6
    verdict = (rng.random(ITEMS) < np.where(good, 0.9, 0.2 + favour)).astype(int)
    verdict[rng.random(ITEMS) < 0.05] = 2
    chosen = np.random.default_rng(first).random(ITEMS) < labelled
    return SystemItems(
        items=np.arange(first, first + ITEMS),
        labels=np.where(chosen, good, np.nan),
        shares=np.eye(3)[verdict],
        clusters=np.arange(first, first + ITEMS),
        lengths=rng.normal(100 + 50 * favour, 10, ITEMS),
    )


def passed(of: SystemItems) -> Floats:
    """1 for each item that the judge passed, else 0."""
    values: Floats = of.shares[:, 1]
    return values


def test_with_all_labels_the_difference_is_that_of_the_labels() -> None:
    a, b = system(1, favour=0.5), system(2)
    found = system_difference(a, b, SCORES)
    gaps = a.labels - b.labels
    assert found.shared and found.paired_labels and found.items == ITEMS
    assert found.corrected.value == pytest.approx(gaps.mean())
    half = stats.t.ppf(0.975, ITEMS - 1) * stats.sem(gaps)
    assert (found.corrected.high - found.corrected.low) / 2 == pytest.approx(half, rel=0.02)
    assert found.judged.value == pytest.approx((passed(a) - passed(b)).mean())


def test_the_judges_favour_is_corrected_by_a_part_of_the_labels() -> None:
    found = system_difference(system(1, favour=0.5, labelled=0.5), system(2, labelled=0.5), SCORES)
    assert found.judged.low > 0.05
    assert found.corrected.low < 0 < found.corrected.high
    alone = found.labels_alone
    assert found.corrected.high - found.corrected.low < alone.high - alone.low
    assert found.length.low > 20


def test_other_items_of_each_system_are_independent_estimates() -> None:
    a, b = system(1, favour=0.5, labelled=0.5), system(2, first=1000, labelled=0.5)
    found = system_difference(a, b, SCORES)
    rates = [people_rate(one.labels, one.shares, SCORES, one.clusters).corrected for one in (a, b)]
    assert not found.shared and found.items == 2 * ITEMS
    assert found.corrected.value == pytest.approx(rates[0].value - rates[1].value)
    halves = [(rate.high - rate.low) / 2 for rate in rates]
    half = (found.corrected.high - found.corrected.low) / 2
    assert half == pytest.approx(np.hypot(halves[0], halves[1]), rel=0.02)


def test_labels_of_different_items_are_not_compared_item_by_item() -> None:
    a, b = system(1, labelled=0.5), system(2, labelled=0.5)
    labelled = ~np.isnan(a.labels)
    rng = np.random.default_rng(0)
    # B has labels on the other items.
    labels = np.where(~labelled, rng.random(ITEMS) < 0.6, np.nan)
    b = SystemItems(b.items, labels, b.shares, b.clusters, b.lengths)
    found = system_difference(a, b, SCORES)
    assert found.shared and not found.paired_labels
    assert found.corrected.known
    assert found.judged.value == pytest.approx((passed(a) - passed(b)).mean())


def test_items_of_one_system_alone_take_no_part_where_most_are_shared() -> None:
    a, b = system(1), system(2)
    part = a.on(np.arange(150))
    found = system_difference(part, b, SCORES)
    both: SystemDifference = system_difference(part, b.on(np.arange(150)), SCORES)
    assert found.items == 150
    assert found.corrected == both.corrected


def test_without_labels_nothing_is_corrected() -> None:
    found = system_difference(system(1, labelled=0.0), system(2, labelled=0.0), SCORES)
    assert np.isnan(found.corrected.value) and not found.corrected.known
    assert "there are none" in found.withheld
    assert found.judged.known


def test_items_in_clusters_are_less_certain() -> None:
    a, b = system(1, labelled=0.6), system(2, labelled=0.6)

    def shared(of: SystemItems) -> SystemItems:
        """Items in clusters of ten, sorted so that those of a cluster are alike."""
        order = np.argsort(np.nan_to_num(a.labels - b.labels, nan=0.0), kind="stable")
        clusters = np.zeros(ITEMS, dtype=np.int64)
        clusters[order] = np.arange(ITEMS) // 10
        return SystemItems(of.items, of.labels, of.shares, clusters, of.lengths)

    alone, together = (
        system_difference(first, second, SCORES).corrected
        for first, second in ((a, b), (shared(a), shared(b)))
    )
    assert together.value == pytest.approx(alone.value, abs=0.03)
    assert together.high - together.low > 1.5 * (alone.high - alone.low)
