"""Levels at which the intervals of a whole table hold together."""

import numpy as np
import pytest
from scipy import stats

from judge_gym.analysis.judges.standing import difference_interval, pairwise_level


def test_differences_of_all_pairs_hold_at_the_level_of_tukeys_range() -> None:
    rows = np.eye(4)  # independent setups of equal variance
    reach = stats.studentized_range.ppf(0.95, 4, np.inf) / np.sqrt(2)
    assert pairwise_level(rows) == pytest.approx(2 * stats.norm.cdf(reach) - 1, abs=0.002)


def test_one_difference_needs_no_correction() -> None:
    assert pairwise_level(np.eye(2)) == 0.95
    assert pairwise_level(np.zeros((3, 5))) == 0.95, "setups that never differ"


def test_the_interval_of_a_difference_is_students_and_needs_enough_clusters() -> None:
    differences = np.random.default_rng(3).normal(0.1, 0.2, 30)
    low, high = stats.t.interval(0.95, 29, differences.mean(), stats.sem(differences))
    assert difference_interval(differences, np.arange(30)) == pytest.approx((low, high))
    assert difference_interval(differences, np.arange(30) % 3) == (None, None)
