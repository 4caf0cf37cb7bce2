"""Regressions against a sandwich written out, group means, and simulated clusters."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.regression.linear_model import OLS
from statsmodels.regression.mixed_linear_model import MixedLM

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.stats.clusters import cluster_robust
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.protocols.regressions import (
    COLLINEAR,
    COLUMNS,
    ONE_LEVEL,
    OWN,
    QUALITY,
    UNCRITICISED,
    ordered_logit,
    random_intercept,
    regressions,
)

JUDGES = ("sim:a", "sim:b", "sim:c")


def panel(key: str, items: int = 14, **columns: Any) -> pd.DataFrame:
    """Raw samples: two concepts, three judges, two methods, three replicates."""
    shape = (2, 3, 2, items, 3)
    concept, judge, method, item, replicate = (axis.ravel() for axis in np.indices(shape))
    rng = seeded(key)
    chance = 0.3 + 0.1 * judge + 0.1 * concept + rng.uniform(0, 0.3, items)[item]
    stage = 1 + rng.binomial(3, chance)
    wide = (method == 1) & (rng.random(len(stage)) < 0.4) & (stage < 4)
    return pd.DataFrame(
        {
            "concept": np.array(["fascism", "backsliding"])[concept],
            "task_type": "ecc",
            "judge.model": np.array(JUDGES)[judge],
            "verdict.method": np.array(["single", "subset"])[method],
            "evidence": item,
            "replicate": replicate,
            "status": "scored",
            "stages": np.where(wide, [f"{s} {s + 1}" for s in stage], stage.astype(str)),
            "n_stages": 4,
        }
    ).assign(**columns)


def row(table: pd.DataFrame, model: str, term: str) -> pd.Series:
    found = table[(table["model"] == model) & (table["term"] == term)]
    assert len(found) == 1
    return found.iloc[0]


def note(table: pd.DataFrame, model: str, term: str) -> str:
    return str(row(table, model, term)["note"])


# --- the main model ------------------------------------------------------------------------------


def test_on_a_balanced_panel_estimates_are_differences_of_means() -> None:
    frame = tidy(panel("balanced"))
    table = regressions(frame, sensitivity=False)
    assert list(table.columns) == COLUMNS
    score = frame["stages"].str.split().map(lambda s: (np.mean([int(i) for i in s]) - 1) / 3)
    by_judge = score.groupby(frame["judge.model"]).mean()
    by_method = score.groupby(frame["verdict.method"]).mean()
    found = row(table, "score", "judge.model=sim:c")
    assert found["estimate"] == pytest.approx(by_judge["sim:c"] - by_judge["sim:a"])
    assert (found["n"], found["clusters"]) == (2 * 3 * 2 * 14, 14)
    found = row(table, "ablation", "verdict.method=subset")
    assert found["estimate"] == pytest.approx(by_method["subset"] - by_method["single"])
    assert found["low"] < found["estimate"] < found["high"]


def test_the_gap_is_regressed_over_subset_verdicts() -> None:
    frame = tidy(panel("gap"))
    table = regressions(frame, sensitivity=False)
    subset = frame[frame["verdict.method"] == "subset"]
    gap = subset["stages"].str.contains(" ") * 2 / 4
    means = gap.groupby(subset["judge.model"]).mean()
    found = row(table, "uncertainty gap", "judge.model=sim:b")
    assert found["estimate"] == pytest.approx(means["sim:b"] - means["sim:a"])
    only_single = tidy(panel("gap").query("`verdict.method` == 'single'"))
    assert "uncertainty gap" not in set(regressions(only_single, sensitivity=False)["model"])


def test_the_score_is_of_contested_concepts_and_the_ablation_of_all() -> None:
    frame = panel("types")
    frame["task_type"] = np.where(frame["concept"] == "fascism", "ecc", "control")
    table = regressions(tidy(frame), sensitivity=False)
    assert note(table, "score", "task") == ONE_LEVEL
    assert row(table, "score", "intercept")["n"] == 3 * 2 * 14
    assert row(table, "ablation", "intercept")["n"] == 2 * 3 * 2 * 14
    untyped = regressions(tidy(panel("types", task_type="")), sensitivity=False)
    assert row(untyped, "score", "intercept")["n"] == 2 * 3 * 2 * 14


def test_intervals_cover_where_items_are_alike_and_plain_ones_do_not() -> None:
    """A slope on what varies between items: replicates and judges are no more items."""
    rng = seeded("coverage")
    groups = np.repeat(np.arange(40), 6)
    covered = plain = 0
    for _ in range(400):
        x = np.column_stack([np.ones(240), rng.normal(size=40)[groups]])
        y = 0.3 * x[:, 1] + rng.normal(size=40)[groups] + rng.normal(size=240)
        low, high = cluster_robust(y, x, groups).conf_int()[1]
        covered += low <= 0.3 <= high
        low, high = OLS(y, x).fit().conf_int()[1]
        plain += low <= 0.3 <= high
    interval = stats.binomtest(covered, 400).proportion_ci(0.99)
    assert interval.high >= 0.93 and interval.low <= 0.97
    assert plain / 400 < 0.8


def test_intervals_cover_where_cells_are_alike_by_item_and_by_rubric() -> None:
    """The effect of what varies between rubrics: items alone are not the clusters."""
    rng = seeded("two ways")
    item, rubric = (axis.ravel() for axis in np.indices((30, 20)))
    covered = one_way = 0
    for _ in range(400):
        x = np.column_stack([np.ones(600), rng.normal(size=20)[rubric]])
        alike = 0.5 * rng.normal(size=30)[item] + rng.normal(size=20)[rubric]
        y = 0.3 * x[:, 1] + alike + rng.normal(size=600)
        low, high = cluster_robust(y, x, item, rubric).conf_int()[1]
        covered += low <= 0.3 <= high
        low, high = cluster_robust(y, x, item).conf_int()[1]
        one_way += low <= 0.3 <= high
    interval = stats.binomtest(covered, 400).proportion_ci(0.99)
    assert interval.high >= 0.93 and interval.low <= 0.97
    assert one_way / 400 < 0.6


def test_ten_rubrics_are_clusters_beside_the_items_and_nine_are_not() -> None:
    for rubrics in (9, 10):
        frame = panel("rubrics", items=12)
        frame["rubric"] = frame["replicate"] * 4 + frame["evidence"] % 4
        frame["rubric"] = frame["rubric"].clip(upper=rubrics - 1)
        table = regressions(tidy(frame), sensitivity=False)
        told = note(table, "score", "judge.model=sim:b")
        assert told == ("clustered on evidence and on 10 rubrics" if rubrics == 10 else "")


# --- what cannot be estimated --------------------------------------------------------------------


@pytest.mark.parametrize(("items", "outlets"), [(4, 4), (20, 4)])
def test_with_few_clusters_there_are_estimates_without_errors(items: int, outlets: int) -> None:
    samples = panel("few", items=items)
    samples["cluster"] = "outlet " + (samples["evidence"] % outlets).astype(str)
    table = regressions(tidy(samples))
    main = table[table["model"] == "score"].dropna(subset="estimate")
    assert len(main) == 4 and main[["se", "low", "high", "p"]].isna().all(axis=None)
    assert main["note"].str.startswith("for these 4 clusters: 3.0 degrees of freedom").all()
    for model in ("score, ordered logit", "score, random intercept"):
        assert note(table, model, "all").startswith("not fitted"), model


def test_without_residual_variance_there_are_no_errors() -> None:
    table = regressions(tidy(panel("flat", stages="2")))
    assert row(table, "score", "intercept")["estimate"] == pytest.approx(1 / 3)
    assert table["se"].isna().all()
    assert not table["model"].str.contains(",").any()  # nothing for other models to differ on


@pytest.mark.parametrize("seed", range(4))
def test_the_ordered_logit_is_that_of_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = np.column_stack([rng.integers(0, 2, 200), rng.normal(size=200)]).astype(float)
    stage = np.digitize(matrix @ [seed, -0.5] + rng.logistic(size=200), [-1, 0.3, 2])
    groups = rng.integers(0, 15, 200)
    clusters = {"cov_type": "cluster", "cov_kwds": {"groups": groups}}
    model = OrderedModel(stage, matrix, distr="logit")
    wanted = model.fit(method="bfgs", gtol=1e-8, disp=False, **clusters)
    found = ordered_logit(stage, matrix, groups)
    assert found is not None
    np.testing.assert_allclose(found[0], wanted.params[:2], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found[1], wanted.bse[:2], rtol=1e-5)


def test_a_model_that_does_not_converge_is_a_row_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("judge_gym.protocols.regressions.ordered_logit", lambda *_: None)
    table = regressions(tidy(panel("lost", items=12)))
    assert note(table, "score, ordered logit", "all") == "not fitted: did not converge"
    assert np.isfinite(row(table, "score", "intercept")["se"])


def test_a_term_that_is_the_same_for_every_item_has_no_error() -> None:
    frame = panel("certain")
    fixed = frame["judge.model"].map({"sim:a": "1", "sim:c": "4"})
    frame["stages"] = fixed.fillna(frame["stages"])
    table = regressions(tidy(frame), sensitivity=False)
    found = row(table, "uncertainty gap", "judge.model=sim:c")
    assert found["estimate"] == pytest.approx(0.0, abs=1e-12) and np.isnan(found["p"])
    assert found["note"] == "insufficient: no variance between items"


def test_terms_of_one_level_or_collinear_are_left_out_by_name() -> None:
    frame = panel("collinear")
    frame["evidence.view"] = "neutralized"
    subset = frame["verdict.method"] == "subset"
    frame["presentation.first"] = np.where(subset, "evidence", "rubric")
    table = regressions(tidy(frame), sensitivity=False)
    assert note(table, "ablation", "evidence.view") == ONE_LEVEL
    assert note(table, "ablation", "verdict.method=subset") == COLLINEAR
    assert np.isfinite(row(table, "ablation", "presentation.first=evidence")["se"])


def test_a_difference_between_tasks_is_not_a_knob() -> None:
    frame = panel("forced")
    frame["evidence.view"] = np.where(frame["concept"] == "fascism", "neutralized", "raw")
    table = regressions(tidy(frame), sensitivity=False)
    assert note(table, "ablation", "evidence.view=neutralized") == COLLINEAR


# --- rubric quality ------------------------------------------------------------------------------


def test_the_quality_of_a_judges_own_rubric_is_flagged() -> None:
    frame = panel("own", observability=0.5, discriminability=0.7)
    frame["rubric_author"] = frame["judge.model"]
    table = regressions(tidy(frame), sensitivity=False)
    assert note(table, "score", QUALITY) == OWN
    assert note(table, "uncertainty gap", QUALITY) == OWN
    assert not table["model"].str.contains("others").any()


def test_a_rubric_that_no_critic_saw_has_no_quality() -> None:
    frame = panel("provided")
    table = regressions(tidy(frame.assign(protocol="contested-concepts")), sensitivity=False)
    assert note(table, "score", QUALITY) == UNCRITICISED
    neutral = regressions(tidy(frame), sensitivity=False)
    assert QUALITY not in {*neutral["term"]}, "without a protocol there is no critic to miss"


def test_the_quality_of_others_rubrics_is_recovered_from_swaps() -> None:
    quality = {"sim:a": 0.2, "sim:b": 0.5, "sim:c": 0.9}
    parts = []
    for author in JUDGES:
        part = panel("swapped", items=30, rubric_author=author, rubric=JUDGES.index(author))
        part["is_swap"] = part["judge.model"] != author
        part["observability"] = part["discriminability"] = quality[author]
        judge, item = part["judge.model"].map(JUDGES.index), part["evidence"]
        chance = 0.1 + 0.4 * quality[author] + 0.1 * judge + 0.01 * item
        part["stages"] = (1 + seeded("quality", author).binomial(3, chance)).astype(str)
        parts.append(part)
    table = regressions(tidy(pd.concat(parts, ignore_index=True)), sensitivity=False)
    assert note(table, "score", QUALITY) == OWN
    found = row(table, "score under others' rubrics", QUALITY)
    assert found["estimate"] == pytest.approx(0.4, abs=0.1)
    assert np.isnan(found["p"]) and np.isnan(found["low"])
    assert found["note"].startswith("3 rubrics")
    assert found["n"] == 2 * 3 * 2 * 30 * 2
    judge = row(table, "score under others' rubrics", "judge.model=sim:c")
    assert judge["low"] < 0.2 < judge["high"]


def rubrics_of_others(key: object, rubrics: int, slope: float) -> pd.DataFrame:
    """Verdicts of one judge under many rubrics, which move its stage by chance and by quality."""
    rng = seeded("rubrics", key)
    rubric, item = (axis.ravel() for axis in np.indices((rubrics, 12)))
    quality, effect = rng.uniform(0.2, 0.9, rubrics), rng.normal(0, 0.12, rubrics)
    chance = 0.4 + slope * (quality - 0.55) + effect
    stage = 1 + rng.binomial(3, np.clip(chance, 0, 1)[rubric])
    return tidy(
        pd.DataFrame(
            {
                "concept": "fascism",
                "task_type": "ecc",
                "judge.model": "sim:a",
                "evidence": item,
                "replicate": 0,
                "status": "scored",
                "stages": stage.astype(str),
                "n_stages": 4,
                "rubric": rubric,
                "rubric_author": [f"sim:{n}" for n in rubric],
                "observability": quality[rubric],
                "discriminability": quality[rubric],
            }
        )
    )


@pytest.mark.simulation
def test_rubric_quality_is_tested_over_rubrics_and_not_over_items() -> None:
    def tested(key: object, rubrics: int, slope: float) -> pd.Series:
        return row(
            regressions(rubrics_of_others(key, rubrics, slope), sensitivity=False), "score", QUALITY
        )

    assert np.isnan(tested("few", 9, 0.5)["p"])
    found = [tested(number, 12, 0.0) for number in range(25)]
    # Over items, a null would be rejected in about half of these panels.
    assert np.mean([one["p"] < 0.05 for one in found]) <= 0.12
    assert np.mean([one["low"] <= 0 <= one["high"] for one in found]) >= 0.88
    strong = tested("strong", 14, 0.9)
    assert strong["p"] < 0.05 and strong["low"] < 0.9 < strong["high"]
    assert strong["note"].startswith("error over 14 rubrics")


# --- sensitivity ---------------------------------------------------------------------------------


def test_sensitivity_models_point_the_same_way() -> None:
    table = regressions(tidy(panel("sensitive", items=20)))
    for model in ("score", "score, random intercept", "score, ordered logit"):
        found = row(table, model, "judge.model=sim:c")
        assert found["estimate"] > 0 and found["p"] < 0.01 and found["clusters"] == 20
    least = row(table, "score", "judge.model=sim:b")["estimate"]
    mixed = row(table, "score, random intercept", "judge.model=sim:b")["estimate"]
    assert mixed == pytest.approx(least, abs=1e-6)  # every item has every judge


@pytest.mark.parametrize("spread", [0.2, 1.0, 5.0])
def test_a_random_intercept_is_that_of_the_library_for_mixed_models(spread: float) -> None:
    rng = seeded("mixed", spread)
    groups = np.sort(rng.integers(0, 15, 120))  # groups of many sizes
    x = np.column_stack([np.ones(120), rng.normal(size=15)[groups], rng.normal(size=120)])
    y = x @ [0.2, 0.5, -0.1] + spread * rng.normal(size=15)[groups] + rng.normal(size=120)
    found, fit = random_intercept(y, x, groups), MixedLM(y, x, groups=groups).fit()
    np.testing.assert_allclose(found.params, fit.fe_params, rtol=1e-3)
    np.testing.assert_allclose(found.errors, fit.bse_fe, rtol=5e-3)
    between = float(fit.cov_re[0, 0])
    assert found.between == pytest.approx(between / (between + fit.scale), rel=1e-2)


def test_a_random_intercept_that_vanishes_is_a_note_and_no_warning() -> None:
    frame = panel("boundary", items=12)
    rng = seeded("boundary")
    frame["stages"] = "1"
    for _, part in frame.groupby("evidence"):  # every item has each stage as often as the others
        frame.loc[part.index, "stages"] = rng.permutation(np.resize(list("1234"), len(part)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = regressions(tidy(frame))
    mixed = table[table["model"].str.endswith("random intercept")]
    assert len(mixed) and mixed["note"].str.contains("boundary").any()
    assert mixed["se"].notna().all()


@pytest.mark.parametrize("stages", [{"sim:a": "1", "sim:c": "4"}, {"sim:c": "4"}])
def test_a_judge_that_separates_stages_has_no_odds(stages: dict[str, str]) -> None:
    frame = panel("separated", items=12)
    frame["stages"] = frame["judge.model"].map(stages).fillna(frame["stages"])
    logit = regressions(tidy(frame)).query("model == 'score, ordered logit'")
    assert logit["note"].str.startswith("not fitted: ").all()
    assert len(logit) == 1 and logit["estimate"].isna().all()


def test_scales_that_differ_have_no_common_stages() -> None:
    frame = panel("scales", items=12)
    frame["n_stages"] = frame["rubric.scale"] = np.where(frame["concept"] == "fascism", 4, 5)
    table = regressions(tidy(frame))
    assert note(table, "score, ordered logit", "all") == "not fitted: stages of several scales"


def test_many_cells_are_drawn_by_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge_gym.protocols.regressions.SENSITIVITY_CELLS", 120)
    table = regressions(tidy(panel("large", items=20)))
    found = row(table, "score, ordered logit", "judge.model=sim:b")
    assert (found["n"], found["clusters"]) == (120, 10) and "10 of 20 clusters" in found["note"]
    for model in ("score", "score, random intercept"):
        assert row(table, model, "intercept")["n"] == 240
