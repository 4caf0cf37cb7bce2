"""The power of tests against statsmodels and studies simulated value by value."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.planning.components import Components, Size
from judge_gym.analysis.planning.power import (
    ENDPOINTS,
    Rate,
    pilot_components,
    power_table,
)
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.errors import DesignError
from tables import each_row


def planned(
    endpoint: str = "stage",
    effect: float = 0.1,
    assumed: Components | Rate | None = None,
    **size: Any,
) -> pd.Series:
    """The row of one endpoint."""
    full = {"items": 20, "clusters": size.get("items", 20), "repeats": 1, **size}
    pilot = None if assumed is None else {endpoint: assumed}
    return power_table({endpoint: Size(**full)}, effect, pilot).iloc[0]


@each_row("items", [5, 20, 80])
@each_row("effect", [0.05, 0.15])
def test_power_over_items_is_that_of_statsmodels(items: int, effect: float) -> None:
    row = planned(effect=effect, items=items, repeats=4, assumed=Components(0.03, 0.04))
    theirs = TTestPower().power(effect / 0.2, items, 0.05)
    assert row["power"] == pytest.approx(theirs, abs=0.03)


@each_row("base, repeats", [(0.7, 1), (0.7, 5), (0.1, 3)])
def test_power_of_rates_is_what_simulated_studies_reach(base: float, repeats: int) -> None:
    rng = seeded("rates", base, repeats)
    assumed = Rate(0.01, base=base, level=0.02)
    level = np.clip(base + rng.normal(0, np.sqrt(0.02), (2000, 60)), 0, 1)
    other = np.clip(level + 0.1 + rng.normal(0, 0.1, level.shape), 0, 1)
    shares = [rng.binomial(repeats, chance) / repeats for chance in (level, other)]
    p = stats.ttest_rel(*shares, axis=1).pvalue
    # Levels are cut off at 0 and 1, so that the difference is a little below 0.1.
    reached = float((other - level).mean())
    row = planned("accuracy", reached, assumed, items=60, repeats=repeats)
    assert row["power"] == pytest.approx(np.mean(p < 0.05), abs=0.05)


def test_clusters_are_the_units_where_items_share_them() -> None:
    row = planned(items=60, clusters=12, assumed=Components(0.02, cluster=0.01))
    assert (row["unit"], row["planned"]) == ("clusters", 12)
    theirs = TTestPower().power(0.1 / np.sqrt(0.01 + 0.02 / 5), 12, 0.05)
    assert row["power"] == pytest.approx(theirs, abs=0.03)


@pytest.mark.parametrize("effect", [0.03, 0.1, 0.4])
def test_needed_units_are_the_fewest_that_reach_the_power(effect: float) -> None:
    assumed = Components(0.02, 0.02)
    row = planned(effect=effect, assumed=assumed)
    for power in (80, 90):
        need = int(row[f"needed_{power}"])
        at, below = (
            planned(effect=effect, items=n, assumed=assumed)["power"] for n in (need, need - 1)
        )
        assert at >= power / 100
        assert need == 5 or below < power / 100
    assert row["needed_80"] <= row["needed_90"]


def test_the_smallest_effect_is_found_in_eighty_percent_of_studies() -> None:
    row = planned(items=30)
    assert planned(effect=row["smallest_effect"], items=30)["power"] == pytest.approx(0.8, abs=0.01)
    assert planned(effect=row["smallest_effect"] * 0.9, items=30)["power"] < 0.8


def test_too_few_units_have_no_test_and_say_how_many_are_needed() -> None:
    few = planned(items=4)
    assert np.isnan(few["power"]) and np.isnan(few["smallest_effect"])
    assert few["needed_80"] >= 5
    hopeless = planned(effect=0.0001, items=40)
    assert np.isnan(hopeless["needed_80"])


@pytest.mark.parametrize("effect", [0.0, -0.1, 1.5, np.nan])
def test_an_effect_lies_on_the_scale(effect: float) -> None:
    with pytest.raises(DesignError, match="choose a difference above 0, up to 1"):
        planned(effect=effect)


def test_every_endpoint_has_a_power_before_there_is_data() -> None:
    table = power_table(dict.fromkeys(ENDPOINTS, Size(40, 40, 3)), 0.2)
    assert list(table["endpoint"]) == [*ENDPOINTS]
    assert table["power"].between(0.05, 1).all() and (table["source"] == "default").all()


# --- from a pilot --------------------------------------------------------------------------------


def pilot(rng: np.random.Generator, items: int = 60, repeats: int = 4) -> pd.DataFrame:
    """Two methods on the same items; the stage of five differs by item and method."""
    item, method, replicate = (axis.ravel() for axis in np.indices((items, 2, repeats)))
    level = rng.uniform(0.2, 0.8, items)[item] + rng.normal(0, 0.1, (items, 2))[item, method]
    stage = 1 + rng.binomial(4, np.clip(level, 0, 1))
    return tidy(
        pd.DataFrame(
            {
                "judge.model": "a",
                "verdict.method": np.array(["single", "subset"])[method],
                "evidence": item,
                "replicate": replicate,
                "status": "scored",
                "stages": stage.astype(str),
                "n_stages": 5,
                "truth": 3,
            }
        )
    )


def test_a_pilot_gives_the_components_of_differences() -> None:
    found = [pilot_components(pilot(seeded("pilot", n))) for n in range(4)]
    estimates = pd.DataFrame([one["stage"] for one in found])
    # A difference has twice the variance of item x method, and of p (1 - p) / 4 per repeat.
    assert estimates["item"].mean() == pytest.approx(2 * 0.1**2, rel=0.35)
    within = 2 * (0.25 - 0.6**2 / 12 - 0.1**2) / 4
    assert estimates["repeat"].mean() == pytest.approx(within, rel=0.1)
    assert {"stage", "accuracy", "entropy"} <= {*found[0]}
    assert all(one.source.startswith("pilot") for one in found[0].values())
