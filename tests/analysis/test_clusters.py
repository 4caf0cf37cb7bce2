"""Errors and intervals over clusters, against dense matrices, closed forms and simulations."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.declared import one_sample, two_samples
from judge_gym.analysis.endpoints import expected_stage
from judge_gym.analysis.frames import CELL, ordinal, tidy
from judge_gym.analysis.judges.pairs import (
    compare_judges,
    pair_verdicts,
    recorded_samples,
    score_pairs,
)
from judge_gym.analysis.stats.agreement import nominal_agreement
from judge_gym.analysis.stats.clusters import Codes, Floats, cluster_robust, mean_error, scope
from judge_gym.analysis.stats.comparisons import compare_pair
from judge_gym.analysis.stats.contrasts import contrasts
from judge_gym.analysis.stats.intervals import (
    CORRELATION,
    DISTANCE,
    SHARE,
    UNBOUNDED,
    Estimate,
    Scale,
    Statistic,
    estimate,
    mean_bounds,
    seeded,
)
from judge_gym.analysis.stats.paired_tests import sign_flip
from judge_gym.analysis.verdicts import Verdicts
from judge_gym.records.pairs import PairDecision


def dense_cr2(y: Floats, x: Floats, groups: Any) -> tuple[Floats, Floats]:
    """Errors and degrees of freedom by the definition, with matrices of all observations."""
    n, terms = x.shape
    bread = np.linalg.inv(x.T @ x)
    rest = np.eye(n) - x @ bread @ x.T
    meat, columns = np.zeros((terms, terms)), []
    for group in np.unique(groups):
        mine = groups == group
        lengths, vectors = np.linalg.eigh(rest[np.ix_(mine, mine)])
        inverse = np.where(lengths > 1e-9, np.abs(lengths) ** -0.5, 0.0)
        adjusted = x[mine].T @ vectors @ np.diag(inverse) @ vectors.T
        score = adjusted @ (rest @ y)[mine]
        meat += np.outer(score, score)
        columns.append(rest[:, mine] @ adjusted.T @ bread)
    freedoms = []
    for term in range(terms):
        part = np.column_stack([column[:, term] for column in columns])
        products = part.T @ part
        freedoms.append(np.trace(products) ** 2 / (products**2).sum())
    return np.sqrt(np.diag(bread @ meat @ bread)), np.array(freedoms)


@pytest.mark.parametrize("shared", [False, True], ids=["varied", "one cluster has a term alone"])
def test_errors_and_degrees_of_freedom_are_those_of_dense_matrices(shared: bool) -> None:
    rng = seeded("dense")
    groups = rng.integers(0, 7, 40)
    last = (groups == 3).astype(float) if shared else rng.random(40)
    x = np.column_stack([np.ones(40), rng.integers(0, 2, 40), last])
    y = x @ [0.2, 0.5, -0.1] + rng.normal(size=7)[groups] + rng.normal(size=40)
    fit = cluster_robust(y, x, groups)
    errors, freedoms = dense_cr2(y, x, groups)
    np.testing.assert_allclose(fit.params, np.linalg.lstsq(x, y)[0])
    np.testing.assert_allclose(fit.bse, errors)
    np.testing.assert_allclose(fit.freedoms, freedoms)
    t = np.abs(fit.params / errors)
    np.testing.assert_allclose(fit.pvalues, 2 * stats.t.sf(t, freedoms))
    half = stats.t.ppf(0.975, freedoms) * errors
    np.testing.assert_allclose(fit.conf_int()[:, 0], fit.params - half)


def test_the_error_of_a_mean_is_that_of_cluster_means_where_clusters_are_equal() -> None:
    values, codes = seeded("equal").random(24), np.repeat(np.arange(6), 4)
    means = values.reshape(6, 4).mean(axis=1)
    assert mean_error(values, codes) == pytest.approx((stats.sem(means), 5))
    found = estimate(values, codes, scale=UNBOUNDED)
    assert found.n == 24 and found.value == pytest.approx(values.mean())
    ends = stats.t.interval(0.95, 5, means.mean(), stats.sem(means))
    assert (found.low, found.high) == pytest.approx(ends)


@pytest.mark.parametrize("scale", [UNBOUNDED, SHARE, DISTANCE])
def test_items_that_are_their_own_clusters_change_nothing(scale: Scale) -> None:
    values = seeded("own").beta(0.5, 2, 15)
    values[3] = np.nan
    assert estimate(values, np.arange(15), scale=scale) == estimate(values, scale=scale)
    codes = np.arange(15)
    codes[3] = 0  # it shares a cluster, but its value is missing
    assert estimate(values, codes, scale=scale) == estimate(values, scale=scale)


def test_a_rate_at_the_end_of_its_scale_has_as_many_observations_as_clusters() -> None:
    codes = np.repeat(np.arange(10), 6)
    upper = 1 - 0.025 ** (1 / 10)
    assert estimate(np.zeros(60), codes, scale=SHARE)[:3] == pytest.approx((0, 0, upper))
    assert estimate(np.ones(60), codes, scale=SHARE)[:3] == pytest.approx((1, 1 - upper, 1))
    assert estimate(np.zeros(60), scale=SHARE).high == pytest.approx(1 - 0.025 ** (1 / 60))


def test_a_rate_has_the_interval_of_korn_and_graubard() -> None:
    by_cluster = [0, 0, 1, 1, 2, 3, 3, 4]
    values = np.concatenate([[1.0] * right + [0.0] * (4 - right) for right in by_cluster])
    found = estimate(values, np.repeat(np.arange(8), 4), scale=SHARE)
    p, error = values.mean(), stats.sem(np.array(by_cluster) / 4)
    n = p * (1 - p) / error**2 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 7)) ** 2
    ends = (
        stats.beta.ppf(0.025, n * p, n * (1 - p) + 1),
        stats.beta.ppf(0.975, n * p + 1, n * (1 - p)),
    )
    assert found[:4] == pytest.approx((p, *ends, 32))
    assert found.effective_n == pytest.approx(values.var(ddof=1) / error**2)


@pytest.mark.parametrize("scale", [UNBOUNDED, SHARE, DISTANCE])
def test_four_clusters_have_a_value_and_no_interval(scale: Scale) -> None:
    values, codes = seeded("four").random(40), np.repeat(np.arange(4), 10)
    found = estimate(values, codes, scale=scale)
    assert found.value == pytest.approx(values.mean()) and found.n == 40
    assert np.isnan([found.low, found.high]).all()
    assert found.withheld == "the items form 4 clusters, too few to infer beyond them"
    assert estimate(values, np.repeat(np.arange(5), 8), scale=scale).known, "five of equal size"
    assert np.isnan(mean_bounds(values, values + 0.1, codes)).all()
    within = np.sqrt(values.reshape(4, 10).var(axis=1, ddof=1).mean() / 40)
    half = stats.t.ppf(0.975, 36) * within
    assert scope(values, codes) == f"for these 4 clusters, ± {half:.3g} within them"
    assert scope(values, np.arange(40)) == "" == scope(values, np.repeat(np.arange(5), 8))


def test_a_paired_difference_flips_the_signs_of_clusters() -> None:
    rng = seeded("paired")
    left, right, codes = rng.random(30), rng.random(30), np.repeat(np.arange(6), 5)
    found = compare_pair(left, right, codes, key="k")
    assert found.test == "sign flip of clusters"
    assert found.p == sign_flip((left - right).reshape(6, 5).sum(axis=1), key="k")
    expected = estimate(left - right, codes, scale=UNBOUNDED)
    assert found.difference[:4] == pytest.approx(expected[:4])
    few = compare_pair(left, right, np.repeat(np.arange(3), 10), key="k")
    assert np.isnan([few.p, few.difference.low]).all() and few.d_z == pytest.approx(found.d_z)


def test_a_statistic_leaves_out_whole_clusters() -> None:
    values, codes = seeded("whole").random(60), np.repeat(np.arange(20), 3)
    columns = np.column_stack([values, np.ones(60)])
    mean = Statistic(columns, lambda sums: sums[..., 0] / sums[..., 1])
    by_hand = mean._replace(rows=columns.reshape(20, 3, 2).sum(axis=1))
    over_clusters = estimate(mean, codes, scale=CORRELATION)
    assert over_clusters[:3] == pytest.approx(estimate(by_hand, scale=CORRELATION)[:3])
    assert over_clusters.n == 60 and over_clusters.effective_n == 20
    few = estimate(mean, np.repeat(np.arange(4), 15), scale=CORRELATION)
    assert few.n == 60 and few.value == pytest.approx(values.mean()) and not few.known


def outlets(count: int, panels: int, rng: np.random.Generator) -> tuple[list[Floats], Codes]:
    """Panels of right and wrong verdicts on 30 items of outlets, with correlation .3 within."""
    codes = np.arange(30) % count
    shared = rng.normal(size=(panels, count))[:, codes]
    latent = np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=(panels, 30))
    return list((latent < stats.norm.ppf(0.3)).astype(float)), codes


@pytest.mark.parametrize("scale", [SHARE, UNBOUNDED])
def test_intervals_cover_with_eight_outlets_where_item_errors_do_not(scale: Scale) -> None:
    panels, codes = outlets(8, 400, seeded("outlets"))

    def covered(found: list[Estimate]) -> int:
        return sum(one.low <= 0.3 <= one.high for one in found)

    over_outlets = [estimate(values, codes, scale=scale) for values in panels]
    assert all(one.known for one in over_outlets)
    assert stats.binomtest(covered(over_outlets), 400).proportion_ci(0.99).high >= 0.93
    assert covered([estimate(values, scale=scale) for values in panels]) < 0.92 * 400


# --- through the analyses ------------------------------------------------------------------------


def clustered_samples(clusters: int) -> pd.DataFrame:
    """Two judges, two methods and two replicates on 24 items in clusters."""
    shape = (2, 2, 24, 2)
    judge, method, item, replicate = (axis.ravel() for axis in np.indices(shape))
    rng = seeded("analyses")
    level = 1.2 * rng.normal(size=clusters)[item % clusters] + rng.normal(size=len(item))
    return pd.DataFrame(
        {
            "judge.model": np.array(["sim:a", "sim:b"])[judge],
            "verdict.method": np.array(["single", "subset"])[method],
            "evidence": item,
            "cluster": np.array([f"outlet {one}" for one in range(clusters)])[item % clusters],
            "replicate": replicate,
            "status": "scored",
            "stages": np.clip(np.round(2.5 + level + 0.5 * method), 1, 4).astype(int).astype(str),
            "n_stages": 4,
        }
    )


def test_tables_are_over_clusters_or_say_that_they_hold_for_these() -> None:
    for count in (24, 8, 3):
        frame = tidy(clustered_samples(count))
        stages = expected_stage(ordinal(frame), CELL)
        effects = contrasts(frame).query("endpoint == 'stage' and judge == 'all'").iloc[0]
        agreement = nominal_agreement(frame)
        if count == 24:
            alone = tidy(clustered_samples(24).drop(columns="cluster"))
            pd.testing.assert_frame_equal(stages, expected_stage(ordinal(alone), CELL))
            assert effects["test"] == "sign flip" and "clusters" not in effects["note"]
        elif count == 8:
            assert "scope" not in stages and effects["test"] == "sign flip of clusters"
            assert stages[["low", "high"]].notna().all(axis=None) and effects["p"] <= 1
            assert agreement["low"].isna().all(), "too few clusters for a kappa"
        else:
            assert stages["low"].isna().all() and np.isnan(effects["p"])
            assert stages["scope"].str.startswith("for these 3 clusters, ±").all()
            assert effects["note"].startswith("for these 3 clusters")


def test_pairs_on_one_question_are_one_cluster() -> None:
    def judged(clusters: int, **judges: Any) -> Verdicts:
        return pair_verdicts(
            {
                name: recorded_samples(
                    name,
                    [
                        # Numbers with leading zeros are sorted as they were made.
                        PairDecision(f"{item:02}", 1, flipped, 1 if hit else 2, "", cluster)
                        for item, hit in enumerate(right)
                        for cluster in [f"question {item % clusters}"]
                        for flipped in (False, True)
                    ],
                )
                for name, right in judges.items()
            }
        )

    rng = seeded("questions")
    ours, theirs = (rng.random(8)[np.arange(48) % 8] < rng.random(48) for _ in range(2))
    codes = np.arange(48) % 8
    score = score_pairs(judged(8, a=ours))
    assert score.interval == pytest.approx(estimate(ours, codes, scale=SHARE)[1:3])
    [found] = compare_judges(judged(8, a=ours, b=theirs)).contrasts
    expected = compare_pair(ours, theirs, codes, key=["pairs", "a", "b"])
    assert found.p == expected.p and found.interval == pytest.approx(expected.difference[1:3])
    [few] = compare_judges(judged(3, a=ours, b=theirs)).contrasts
    assert few.interval is None and few.to_json()["p"] is None
    [single] = compare_judges(judged(48, a=ours, b=theirs)).contrasts
    assert (
        single.p == stats.binomtest(single.only_judge, single.only_judge + single.only_other).pvalue
    )


def test_hypotheses_over_few_clusters_are_about_these() -> None:
    rng = seeded("hypotheses")
    values, codes = rng.normal(1, 0.1, 40), np.arange(40) % 4
    few = one_sample(values, clusters=codes)
    assert few.estimate.value == pytest.approx(values.mean()) and np.isnan(few.p)
    assert few.scope == "for these 4 clusters" and few.note.startswith("± ")
    eight = one_sample(values, clusters=np.arange(40) % 8)
    expected = estimate(values, np.arange(40) % 8, scale=UNBOUNDED)
    assert eight.estimate[:4] == pytest.approx(expected[:4])
    assert eight.p < 0.05 and eight.scope == ""
    welch = two_samples(values[:20], values[20:], (np.arange(20), np.arange(20)))
    assert welch.p == pytest.approx(two_samples(values[:20], values[20:]).p)
    assert welch.p == pytest.approx(
        stats.ttest_ind(values[:20], values[20:], equal_var=False).pvalue
    )
    assert np.isnan(two_samples(values[:20], values[20:], (codes[:20], np.arange(20))).p)
