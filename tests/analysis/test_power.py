"""Variance components against analysis of variance; plans against statsmodels and simulation."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.analysis.stats.power import COMPONENTS, PLAN, components, needed, power_of
from judge_gym.errors import DesignError
from tables import each_row


def pilot(stages: np.ndarray, **columns: Any) -> pd.DataFrame:
    """Tidy samples of methods x judges x items x replicates; stage 0 is an abstention."""
    method, judge, item, replicate = (axis.ravel() for axis in np.indices(stages.shape))
    chosen = stages.ravel()
    frame = pd.DataFrame(
        {
            "judge.model": np.array(["sim:a", "sim:b"])[judge],
            "verdict.method": np.array(["single", "subset"])[method],
            "evidence": item,
            "replicate": replicate,
            "status": np.where(chosen > 0, "scored", "abstained"),
            "stages": np.where(chosen > 0, chosen.astype(str), ""),
            "n_stages": 4,
        }
    )
    return tidy(frame.assign(**columns))


def one(table: pd.DataFrame, **where: Any) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


def given(between: float, within: float) -> pd.DataFrame:
    """Components as if a pilot had found them."""
    row = {"task": "all", "judge": "sim:a", "quantity": "difference", "calls": 2}
    return pd.DataFrame([{**row, "between": between, "within": within}], columns=COMPONENTS)


def by_analysis_of_variance(values: np.ndarray) -> tuple[float, float]:
    """Balanced one-way components of items x replicates, from mean squares."""
    items, replicates = values.shape
    within = ((values - values.mean(axis=1, keepdims=True)) ** 2).sum() / (items * (replicates - 1))
    between = replicates * ((values.mean(axis=1) - values.mean()) ** 2).sum() / (items - 1)
    return max(0.0, (between - within) / replicates), within


# --- components ----------------------------------------------------------------------------------


def test_balanced_components_are_those_of_the_analysis_of_variance() -> None:
    rng = seeded("balanced")
    stages = np.clip(rng.integers(1, 4, (2, 2, 10, 1)) + rng.integers(0, 2, (2, 2, 10, 4)), 1, 4)
    table = components(pilot(stages))
    values = (stages - 1) / 3
    mean = one(table, judge="sim:b", at="verdict.method=subset")
    assert [mean["between"], mean["within"]] == pytest.approx(by_analysis_of_variance(values[1, 1]))
    assert (mean["items"], mean["replicates"], mean["calls"]) == (10, 4, 1)
    difference = one(table, judge="sim:a", quantity="difference")
    expected = by_analysis_of_variance(values[1, 0] - values[0, 0])
    assert [difference["between"], difference["within"]] == pytest.approx(expected)
    assert difference["calls"] == 2 and difference["knob"] == "verdict.method"
    together = one(table, judge="all", quantity="difference")
    expected = by_analysis_of_variance((values[1] - values[0]).mean(axis=0))
    assert [together["between"], together["within"]] == pytest.approx(expected)
    assert together["calls"] == 4


def test_unbalanced_components_are_unbiased() -> None:
    rng = seeded("unbalanced")
    found = []
    for _ in range(40):
        chance = rng.uniform(0.1, 0.9, (1, 1, 30, 1))
        stages = 1 + rng.binomial(3, np.repeat(chance, 5, axis=-1))
        stages[:, :, ::2, 2:] = 0  # half of the items lost three replicates
        found.append(components(pilot(stages)).loc[0, ["between", "within"]].to_numpy(dtype=float))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    variance = 0.8**2 / 12
    expected = [variance, (0.25 - variance) / 3]  # E[c(1 - c)] / 3 with a mean chance of a half
    assert (np.abs(mean - expected) < 3.5 * error).all()


def test_unbalanced_components_worked_by_hand() -> None:
    stages = np.zeros((1, 1, 2, 8), dtype=int)
    stages[0, 0, 0, :2] = [1, 2]  # mean 1/6, sum of squares 1/18
    stages[0, 0, 1] = 4  # mean 1, no spread in eight replicates
    row = components(pilot(stages)).iloc[0]
    within = (1 / 18) / 8
    assert row["within"] == pytest.approx(within)
    assert row["between"] == pytest.approx((5 / 6) ** 2 / 2 - within * (1 / 2 + 1 / 8) / 2)


def test_one_replicate_tells_nothing_about_replicates() -> None:
    row = components(pilot(np.array([[[[1], [2], [4]]]]))).iloc[0]
    assert np.isnan(row["within"]) and np.isnan(row["between"])
    assert needed(components(pilot(np.array([[[[1], [2], [4]]]]))), 0.1)["items"].isna().all()


def test_an_endpoint_of_cells_alone_is_refused() -> None:
    with pytest.raises(DesignError, match="unknown endpoint 'entropy'"):
        components(pilot(np.ones((1, 1, 2, 2), dtype=int)), "entropy")


# --- plans ---------------------------------------------------------------------------------------


@each_row("items", [3, 10, 40])
@each_row("size", [0.1, 0.5, 1.2])
def test_power_is_that_of_statsmodels(items: int, size: float) -> None:
    theirs = TTestPower().power(size, items, 0.05)
    assert float(power_of(size * 0.3, 0.3**2, items)) == pytest.approx(theirs, abs=1e-6)


def test_certain_effects_have_a_power_of_one_however_large() -> None:
    found = power_of(1.0, [1e-9, 1e-3, 0.5], [3, 1000, 100_000])
    assert found == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("power", [0.8, 0.9])
@pytest.mark.parametrize("effect", [0.02, 0.05, 0.2])
def test_the_items_are_the_fewest_that_reach_the_power(power: float, effect: float) -> None:
    table = needed(given(0.01, 0.04), effect, power, replicates=6)
    variance = 0.01 + 0.04 / table["replicates"].to_numpy(dtype=float)
    items = table["items"].to_numpy(dtype=float)
    assert (power_of(effect, variance, items) >= power).all()
    assert (power_of(effect, variance, items - 1)[items > 2] < power).all()
    theirs = TTestPower().solve_power(effect / np.sqrt(0.05), power=power, alpha=0.05)
    assert items[0] == np.ceil(theirs) or items[0] == 2


def test_the_plan_lists_replicates_and_marks_the_fewest_calls() -> None:
    table = needed(given(0.01, 0.04), 0.05, replicates=8)
    assert list(table.columns) == PLAN
    assert table.groupby("power")["replicates"].agg(list).tolist() == [list(range(1, 9))] * 2
    assert (table["calls"] == 2 * table["items"] * table["replicates"]).all()
    assert (table.groupby("power")["items"].diff().dropna() <= 0).all()
    cheapest = table[table["cheapest"]]
    assert cheapest["power"].tolist() == [0.8, 0.9]
    assert (cheapest["calls"].to_numpy() == table.groupby("power")["calls"].min()).all()


def test_replicates_reduce_calls_only_with_few_items() -> None:
    """With hardly any difference between items, t's degrees of freedom make one item dear."""
    table = needed(given(0.0, 0.04), 0.05, 0.8, replicates=3)
    assert table["calls"].max() < 1.2 * table["calls"].min()


def test_impossible_plans_are_refused_or_unknown() -> None:
    with pytest.raises(DesignError, match="an effect of 0"):
        needed(given(0.1, 0.1), 0.0)
    with pytest.raises(DesignError, match="a power of"):
        needed(given(0.1, 0.1), 0.1, 1.0)
    with pytest.raises(DesignError, match="0 replicates"):
        needed(given(0.1, 0.1), 0.1, replicates=0)
    assert needed(given(0.0, 0.0), 0.1)["items"].isna().all()
    assert needed(given(1.0, 1.0), 1e-6)["items"].isna().all()
    assert not needed(given(0.0, 0.0), 0.1)["cheapest"].any()


def test_predicted_power_is_what_simulated_studies_reach() -> None:
    rng = seeded("power")
    effect, low, high = 0.08, 0.3, 0.6

    def study(items: int, replicates: int, panels: int) -> np.ndarray:
        """Normalised stages of panels x methods x items x replicates; the second is higher."""
        base = rng.uniform(low, high, (panels, 1, items, 1))
        step = effect + rng.uniform(-0.1, 0.1, (panels, 1, items, 1))
        chance = np.concatenate([base, base + step], axis=1)
        drawn: np.ndarray = rng.binomial(3, np.repeat(chance, replicates, axis=-1))
        return drawn

    stages = 1 + study(400, 4, 1)[0][:, None]
    found = components(pilot(stages)).query("quantity == 'difference'")
    plan = needed(found, effect, 0.8, replicates=4).set_index("replicates")
    for replicates in (1, 4):
        items = int(plan["items"].to_numpy()[replicates - 1])
        values = study(items, replicates, 2000).mean(axis=-1) / 3
        p = stats.ttest_rel(values[:, 1], values[:, 0], axis=1).pvalue
        assert np.mean(p < 0.05) == pytest.approx(0.8, abs=0.05)
