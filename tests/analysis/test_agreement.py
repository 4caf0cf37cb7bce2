"""Agreement against published tables, against statsmodels and krippendorff, and in simulation."""

from collections.abc import Callable
from functools import partial
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from judge_gym.analysis.frames import ordinal, tidy
from judge_gym.analysis.stats.agreement import (
    Level,
    Rating,
    cohen_kappa,
    fleiss_kappa,
    intraclass_correlation,
    items_by_label,
    krippendorff_alpha,
    nominal_agreement,
    ordinal_agreement,
    ratings,
    share_alike,
)
from judge_gym.analysis.stats.intervals import KAPPA, Floats, Statistic, estimate
from judge_gym.analysis.verdicts import panels
from judge_gym.errors import DesignError

NONE = np.nan
# Krippendorff's 12 units (columns) and 4 coders.
TEXTBOOK = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
        [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
    ]
)
# Fleiss (1971): 10 subjects, 14 raters, 5 categories.
FLEISS = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ],
    dtype=float,
)
# Shrout and Fleiss (1979): 6 targets, 4 judges.
SHROUT = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]],
    dtype=float,
)


def counted(rated: Floats, stages: int) -> Floats:
    """How many raters gave each stage to each item that at least two rated."""
    counts = (rated[:, :, None] == np.arange(1, stages + 1)).sum(axis=1).astype(float)
    kept: Floats = counts[counts.sum(axis=1) > 1]
    return kept


def sample(judge: str, item: int, stages: str, **more: Any) -> dict[str, Any]:
    """A verdict; no stage is an abstention."""
    status = "scored" if stages else "abstained"
    row = {"judge.model": judge, "evidence": item, "replicate": 0, "n_stages": 4}
    return {**row, "status": status, "stages": stages, **more}


def panel(rated: Floats, **more: Any) -> pd.DataFrame:
    """A tidy frame in which every rating is one verdict; a column per judge."""
    rows = [
        sample(f"judge {j}", i, "" if np.isnan(stage) else str(int(stage)), **more)
        for i, row in enumerate(rated)
        for j, stage in enumerate(row)
    ]
    return tidy(pd.DataFrame(rows))


def value(found: pd.DataFrame, measure: str) -> float:
    return float(found.set_index("measure")["value"][measure])


# --- the measures --------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_alpha_of_the_textbook_table(level: Level, alpha: float) -> None:
    assert krippendorff_alpha(counted(TEXTBOOK.T, 5), level).value == pytest.approx(alpha, abs=5e-4)


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_alpha_is_that_of_the_package_on_any_table_with_gaps(level: Level) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        rated = rng.integers(1, 6, (rng.integers(4, 30), rng.integers(2, 6))).astype(float)
        rated[rng.random(rated.shape) < 0.2] = np.nan
        expected = krippendorff.alpha(rated.T, level_of_measurement=level)
        assert krippendorff_alpha(counted(rated, 5), level).value == pytest.approx(expected)


def test_fleiss_kappa_of_his_own_table() -> None:
    assert fleiss_kappa(FLEISS).value == pytest.approx(0.210, abs=5e-4)
    assert fleiss_kappa(FLEISS).value == pytest.approx(statsmodels_fleiss(FLEISS))


@pytest.mark.parametrize(("power", "weights"), [(0, None), (1, "linear"), (2, "quadratic")])
def test_kappa_of_two_raters_is_that_of_statsmodels(power: int, weights: str | None) -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        first = rng.integers(1, 5, 40)
        second = np.where(rng.random(40) < 0.5, first, rng.integers(1, 5, 40))
        table = np.histogram2d(first, second, bins=[np.arange(0.5, 5)] * 2)[0]
        expected = cohens_kappa(table, wt=weights, return_results=False)
        rated = np.stack([first, second], axis=1).astype(float)
        assert cohen_kappa(rated, power).value == pytest.approx(expected)


def test_kappa_of_three_raters_is_the_mean_over_pairs() -> None:
    rated = np.random.default_rng(3).integers(1, 5, (30, 3)).astype(float)
    pairs = [cohen_kappa(rated[:, pair], 2).value for pair in ([0, 1], [0, 2], [1, 2])]
    assert cohen_kappa(rated, 2).value == pytest.approx(np.mean(pairs))


def test_intraclass_correlation_of_shrout_and_fleiss() -> None:
    assert intraclass_correlation(SHROUT).value == pytest.approx(0.29, abs=5e-3)


@pytest.mark.parametrize(
    "measure",
    [
        partial(krippendorff_alpha, level="nominal"),
        partial(krippendorff_alpha, level="ordinal"),
        fleiss_kappa,
        partial(cohen_kappa, power=1),
        intraclass_correlation,
    ],
)
def test_sums_over_some_items_give_what_these_items_give_alone(
    measure: Callable[[Floats], Statistic],
) -> None:
    rng = np.random.default_rng(4)
    table = rng.multinomial(5, [0.5, 0.3, 0.2], 12).astype(float)
    whole = measure(table)
    picks = np.concatenate([rng.integers(0, 12, (6, 12)), np.array([range(12)] * 2)])
    together = whole.of(whole.rows[picks].sum(axis=1))
    np.testing.assert_allclose(together, [measure(table[some]).value for some in picks])


def test_agreement_is_undefined_if_no_disagreement_is_expected() -> None:
    same = np.full((5, 3), 2.0)
    assert np.isnan(cohen_kappa(same, 2).value)
    assert np.isnan(intraclass_correlation(same).value)
    assert np.isnan(krippendorff_alpha(counted(same, 4), "ordinal").value)
    assert np.isnan(fleiss_kappa(counted(same, 4)).value)


# --- ratings -------------------------------------------------------------------------------------


def rating(*stages: str) -> dict[str, float]:
    rows = [sample("j", 1, chosen, replicate=r) for r, chosen in enumerate(stages)]
    [verdicts] = panels(tidy(pd.DataFrame(rows)))
    kinds: tuple[Rating, ...] = ("most", "median", "expected")
    return {kind: ratings(verdicts, kind).item() for kind in kinds}


def test_a_rating_summarises_replicates() -> None:
    assert rating("1", "4", "4", "2", "2 4") == {
        "most": 4,  # 2.5 of 5
        "median": 2,  # 1 of 5 on 1, and 1.5 on 2
        "expected": pytest.approx((1 + 4 + 4 + 2 + 3) / 5),
    }


def test_tied_stages_have_no_most_frequent_stage() -> None:
    found = rating("1", "2", "1 2")
    assert np.isnan(found["most"])
    assert [found["median"], found["expected"]] == pytest.approx([1, 1.5])


def test_swaps_abstentions_and_repeated_calls_do_not_count() -> None:
    rows = [
        sample("j", 1, "2", call_id=1),
        sample("j", 1, "1", call_id=2, is_swap=True),
        sample("j", 1, "4", call_id=3, replicate=1),
        sample("j", 1, "4", call_id=3, replicate=1),
        sample("j", 1, "", call_id=4, replicate=2),
        sample("j", 2, "", call_id=5),
    ]
    frame = tidy(pd.DataFrame(rows).fillna({"is_swap": False}).astype({"is_swap": bool}))
    [verdicts] = panels(frame)
    assert ratings(verdicts, "expected")[:, 0].tolist() == [3.0, pytest.approx(np.nan, nan_ok=True)]


# --- tables --------------------------------------------------------------------------------------


def test_the_textbook_coders_as_judges() -> None:
    frame = panel(TEXTBOOK.T, n_stages=5)
    nominal, ordered = nominal_agreement(frame), ordinal_agreement(ordinal(frame))
    assert value(nominal, "alpha_nominal") == pytest.approx(0.743, abs=5e-4)
    assert value(ordered, "alpha_ordinal") == pytest.approx(0.815, abs=5e-4)
    complete = TEXTBOOK.T[~np.isnan(TEXTBOOK.T).any(axis=1)]
    assert value(nominal, "fleiss_kappa") == pytest.approx(
        statsmodels_fleiss(counted(complete, 5)[:, :4])
    )
    assert value(ordered, "icc") == pytest.approx(intraclass_correlation(complete).value)
    items = nominal.set_index("measure")[["items", "dropped"]]
    assert list(items.loc["alpha_nominal"]) == [11, 1]
    assert list(items.loc["fleiss_kappa"]) == [8, 4]


def test_every_estimate_has_an_interval_and_none_ends_above_1() -> None:
    rng = np.random.default_rng(5)
    stage = rng.integers(1, 5, (20, 1))
    frame = panel(np.where(rng.random((20, 3)) < 0.8, stage, rng.integers(1, 5, (20, 3))) * 1.0)
    found = pd.concat([nominal_agreement(frame), ordinal_agreement(ordinal(frame))])
    assert (found["low"] < found["value"]).all()
    assert (found["value"] < found["high"]).all()
    assert found["high"].max() <= 1
    again = pd.concat([nominal_agreement(frame), ordinal_agreement(ordinal(frame))])
    pd.testing.assert_frame_equal(found, again)


def test_a_single_judge_has_no_agreement() -> None:
    found = nominal_agreement(panel(np.array([[1.0], [2.0], [3.0]])))
    assert found["value"].isna().all()
    assert found["judges"].tolist() == [1, 1, 1]


def test_a_frame_without_judges_gives_an_empty_table() -> None:
    none = panel(np.array([[1.0, 2.0]]), is_swap=True)
    assert nominal_agreement(none).empty
    assert {"task", "measure", "value"} <= set(ordinal_agreement(ordinal(none)).columns)


def test_a_judge_that_only_abstains_has_no_agreement() -> None:
    found = ordinal_agreement(ordinal(panel(np.array([[1.0, NONE], [2.0, NONE], [3.0, NONE]]))))
    assert found["value"].isna().all()
    assert found["dropped"].tolist() == [3] * 4


def test_judges_with_their_own_rubrics_are_marked() -> None:
    rows = [sample(j, i, "1", rubric=r) for j, r in (("a", 1), ("b", 2)) for i in range(3)]
    own = nominal_agreement(tidy(pd.DataFrame(rows)))
    common = nominal_agreement(tidy(pd.DataFrame(rows).assign(rubric=1)))
    assert not own["shared_rubric"].any()
    assert common["shared_rubric"].all()


# --- order ---------------------------------------------------------------------------------------


def test_ordinal_measures_refuse_a_nominal_rubric() -> None:
    frame = panel(np.array([[1.0, 2.0], [2.0, 2.0]]), rubric_kind="nominal")
    assert not nominal_agreement(frame).empty
    with pytest.raises(DesignError, match="nominal rubric"):
        ordinal(frame)


def checked_by_mypy(frame: pd.DataFrame) -> None:
    """Order does not type-check on a frame that may be nominal: `make check` wants the ignore."""
    nominal_agreement(frame)
    ordinal_agreement(ordinal(frame))
    nominal_agreement(ordinal(frame))
    ordinal_agreement(frame)  # type: ignore[arg-type]


# --- coverage ------------------------------------------------------------------------------------


def draw(rng: np.random.Generator, items: int) -> Floats:
    """Three judges who place a latent position with a bias of their own and noise."""
    seen = rng.normal(size=(items, 1)) + [-0.3, 0.0, 0.3] + 0.8 * rng.normal(size=(items, 3))
    return np.digitize(seen, [-0.7, 0.0, 0.7]).astype(float) + 1


@pytest.mark.parametrize("items", [20, 30])
def test_intervals_of_alpha_cover_from_20_items_on(items: int) -> None:
    rng = np.random.default_rng(7)
    measure = partial(krippendorff_alpha, level="ordinal")
    truth = measure(counted(draw(rng, 200_000), 4)).value
    hits = 0
    for _ in range(panels := 300):
        alpha = estimate(measure(counted(draw(rng, items), 4)), scale=KAPPA)
        hits += alpha.low <= truth <= alpha.high
    assert stats.binomtest(hits, panels).proportion_ci(0.99, "wilson").high >= 0.93
    assert hits <= 0.99 * panels


def pass_fail(rng: np.random.Generator, items: int, reliable: float, passes: float) -> Floats:
    """Two raters who know the label of an item with a probability, and guess otherwise."""
    label = rng.random((items, 1)) < passes
    guess = rng.random((items, 2)) < passes
    return np.where(rng.random((items, 2)) < reliable, label, guess).astype(float)


@pytest.mark.parametrize(("reliable", "passes"), [(0.95, 0.5), (0.95, 0.8), (0.8, 0.7)])
@pytest.mark.parametrize("items", [20, 60])
def test_intervals_of_kappa_cover_on_two_labels(reliable: float, passes: float, items: int) -> None:
    rng = np.random.default_rng(items)
    truth = cohen_kappa(pass_fail(rng, 200_000, reliable, passes), 0).value
    estimates = []
    for _ in range(300):
        rated = pass_fail(rng, items, reliable, passes)
        kappa = cohen_kappa(rated, 0)._replace(labels=items_by_label(rated))
        estimates.append(estimate(kappa, scale=KAPPA))
    hits = [kappa.low <= truth <= kappa.high for kappa in estimates if kappa.known]
    assert len(hits) > 60
    assert stats.binomtest(sum(hits), len(hits)).proportion_ci(0.99, "wilson").high >= 0.93


def test_one_disagreement_leaves_kappa_uncertain() -> None:
    rated = np.repeat([[1.0, 1.0], [2.0, 2.0]], 10, axis=0)
    rated[0, 1] = 2.0
    kappa = estimate(cohen_kappa(rated, 0), scale=KAPPA)
    assert kappa.value == pytest.approx(0.9)
    assert kappa.low < 0.6 and 0.97 < kappa.high < 1, "was [0.90, 1.00]"


def test_an_interval_needs_items_clusters_and_labels_that_differ() -> None:
    def reason(rated: Floats, clusters: int) -> str:
        labels, alike = items_by_label(rated), share_alike(rated)
        kappa = cohen_kappa(rated, 0)._replace(labels=labels, alike=alike)
        return estimate(kappa, np.arange(len(rated)) % clusters, scale=KAPPA).withheld

    rng = np.random.default_rng(2)
    rated = pass_fail(rng, 60, 0.8, 0.6) + 1
    assert reason(rated, 60) == "" == reason(rated, 10)
    assert reason(rated, 9) == "9 clusters, and 10 are needed"
    assert reason(rated[:19], 19) == "19 items, and 20 are needed"
    rare = np.repeat([[1.0, 1.0], [2.0, 2.0], [3.0, 2.0]], [30, 26, 4], axis=0)
    assert items_by_label(rare) == (30, 30, 4)
    assert reason(rare, 60) == "a label has 4 items, and 5 are needed"
    alike = np.repeat([[1.0, 1.0], [2.0, 2.0], [1.0, 2.0]], [50, 8, 2], axis=0)
    assert reason(alike, 60).startswith("nearly all labels are alike")
    assert reason(np.repeat(alike, 2, axis=0), 120) == "", "20 items have the rare label"
    same = np.repeat([[1.0, 1.0], [2.0, 2.0]], 30, axis=0)
    assert reason(same, 60) == "no item differs from the others"
