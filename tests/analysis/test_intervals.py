"""Intervals and errors, against other libraries' and closed forms."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from judge_gym.analysis.intervals import clustered_error, seeded, student, wilson


@pytest.mark.parametrize(("right", "n"), [(0, 5), (3, 7), (12, 12), (40, 100)])
def test_a_share_has_wilsons_interval(right: int, n: int) -> None:
    found = wilson(right, n)
    assert (found.low, found.high) == pytest.approx(
        proportion_confint(right, n, method="wilson"), abs=1e-12
    )


def test_a_mean_has_students_interval() -> None:
    values = seeded("student").normal(size=12)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = student([*values, np.nan])
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert found.n == 12


def test_the_clustered_error_is_that_of_a_regression_on_a_constant() -> None:
    rng = seeded("clusters")
    clusters = rng.integers(0, 9, 60)
    values = rng.normal(size=60) + rng.normal(size=9)[clusters]
    fitted = sm.OLS(values, np.ones(60)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
    )
    assert clustered_error(values, clusters) == pytest.approx(float(fitted.bse[0]))


def test_with_a_cluster_for_each_value_the_clustered_error_is_the_plain_one() -> None:
    values = seeded("plain").normal(size=30)
    plain = values.std() / np.sqrt(30)
    assert clustered_error(values, np.arange(30)) == pytest.approx(plain)
