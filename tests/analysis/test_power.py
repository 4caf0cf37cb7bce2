"""The power of tests against statsmodels and studies simulated value by value."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.analysis.stats.power import (
    ENDPOINTS,
    MIN_CONCEPTS,
    Spread,
    StudySize,
    pilot_spreads,
    power_table,
)
from judge_gym.errors import DesignError
from judge_gym.protocols import power as hypotheses
from tables import each_row

EVERY = {**ENDPOINTS, **hypotheses.ENDPOINTS}


def planned(
    endpoint: str = "stage", effect: float = 0.1, spread: Spread | None = None, **size: Any
) -> pd.Series:
    """The row of one endpoint."""
    given = {"items": 20, "clusters": size.get("items", 20), "repeats": 1, **size}
    pilot = None if spread is None else {endpoint: spread}
    return power_table({endpoint: StudySize(**given)}, effect, pilot, EVERY).iloc[0]


@each_row("items", [5, 20, 80])
@each_row("effect", [0.05, 0.15])
def test_power_over_items_is_that_of_statsmodels(items: int, effect: float) -> None:
    row = planned(effect=effect, items=items, repeats=4, spread=Spread(0.03, 0.04))
    theirs = TTestPower().power(effect / 0.2, items, 0.05)
    assert row["power"] == pytest.approx(theirs, abs=0.03)


def test_power_over_concepts_is_that_of_two_samples() -> None:
    """The mean of a concept varies by its own effect and by that of its ten items."""
    row = planned(
        "H1 entrenchment",
        items=120,
        concepts=6,
        arms=2,
        spread=Spread(0.02, concept=0.003),
    )
    assert (row["unit"], row["planned"]) == ("concepts per arm", 6)
    theirs = TTestIndPower().power(0.1 / np.sqrt(0.003 + 0.02 / 10), 6, 0.05)
    assert row["power"] == pytest.approx(theirs, abs=0.03)


def test_power_over_concepts_is_what_simulated_studies_reach() -> None:
    rng = seeded("concepts")
    shape = (3000, 2, 5, 8)
    values = rng.normal(0, 0.1, shape) + rng.normal(0, 0.06, shape[:3])[..., None]
    means = values.mean(axis=3) + np.array([0.1, 0.0])[None, :, None]
    p = stats.ttest_ind(means[:, 0], means[:, 1], axis=1, equal_var=False).pvalue
    spread = Spread(0.01, concept=0.0036)
    row = planned("H1 entrenchment", items=80, concepts=5, arms=2, spread=spread)
    assert row["power"] == pytest.approx(np.mean(p < 0.05), abs=0.05)


@each_row("base, repeats", [(0.7, 1), (0.7, 5), (0.1, 3)])
def test_power_of_rates_is_what_simulated_studies_reach(base: float, repeats: int) -> None:
    rng = seeded("rates", base, repeats)
    spread = Spread(0.01, base=base, level=0.02)
    level = np.clip(base + rng.normal(0, np.sqrt(0.02), (2000, 60)), 0, 1)
    other = np.clip(level + 0.1 + rng.normal(0, 0.1, level.shape), 0, 1)
    shares = [rng.binomial(repeats, chance) / repeats for chance in (level, other)]
    p = stats.ttest_rel(*shares, axis=1).pvalue
    # Levels are cut off at 0 and 1, so that the difference is a little below 0.1.
    reached = float((other - level).mean())
    row = planned("accuracy", reached, spread, items=60, repeats=repeats)
    assert row["power"] == pytest.approx(np.mean(p < 0.05), abs=0.05)


def test_clusters_are_the_units_where_items_share_them() -> None:
    row = planned(items=60, clusters=12, spread=Spread(0.02, cluster=0.01))
    assert (row["unit"], row["planned"]) == ("clusters", 12)
    theirs = TTestPower().power(0.1 / np.sqrt(0.01 + 0.02 / 5), 12, 0.05)
    assert row["power"] == pytest.approx(theirs, abs=0.03)


@pytest.mark.parametrize("effect", [0.03, 0.1, 0.4])
def test_needed_units_are_the_fewest_that_reach_the_power(effect: float) -> None:
    spread = Spread(0.02, 0.02)
    row = planned(effect=effect, spread=spread)
    for power in (80, 90):
        need = int(row[f"needed_{power}"])
        at, below = (
            planned(effect=effect, items=n, spread=spread)["power"] for n in (need, need - 1)
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
    concepts = planned("H1 entrenchment", items=40, concepts=2, arms=2)
    assert np.isnan(concepts["power"])
    assert concepts["note"] == "2 concepts per arm, 4 are needed"
    assert concepts["needed_80"] >= MIN_CONCEPTS
    hopeless = planned("H1 entrenchment", 0.0001, items=40, concepts=8, arms=2)
    assert np.isnan(hopeless["needed_80"])


@pytest.mark.parametrize("effect", [0.0, -0.1, 1.5, np.nan])
def test_an_effect_lies_on_the_scale(effect: float) -> None:
    with pytest.raises(DesignError, match="choose a difference above 0, up to 1"):
        planned(effect=effect)


def test_every_endpoint_has_a_power_before_there_is_data() -> None:
    size = StudySize(40, 40, 3)
    arms = {"H1 entrenchment": size._replace(concepts=5, arms=2)}
    table = power_table({**dict.fromkeys(EVERY, size), **arms}, 0.2, endpoints=EVERY)
    assert list(table["endpoint"]) == [*EVERY]
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
    found = [pilot_spreads(pilot(seeded("pilot", n))) for n in range(4)]
    spreads = pd.DataFrame([one["stage"] for one in found])
    # A difference has twice the variance of item x method, and of p (1 - p) / 4 per repeat.
    assert spreads["item"].mean() == pytest.approx(2 * 0.1**2, rel=0.35)
    within = 2 * (0.25 - 0.6**2 / 12 - 0.1**2) / 4
    assert spreads["repeat"].mean() == pytest.approx(within, rel=0.1)
    assert {"stage", "accuracy", "entropy"} <= {*found[0]}
    assert all(one.source.startswith("pilot") for one in found[0].values())


def test_a_pilot_tells_concepts_apart_from_items() -> None:
    rng = seeded("entrenched")
    rows = [
        {
            "judge.model": judge,
            "rubric_author": "third",
            "rubric": concept,
            "concept": f"c{concept}",
            "task_type": "ecc" if concept < 6 else "control",
            "evidence": 100 * concept + item,
            "replicate": replicate,
            "status": "scored",
            "stages": str(1 + rng.binomial(1, chance if judge == "a" else 1 - chance)),
            "n_stages": 2,
        }
        for concept, chance in enumerate(rng.uniform(0.5, 1.0, 12))
        for item in range(6)
        for judge in ("a", "b")
        for replicate in range(4)
    ]
    spread = hypotheses.hypothesis_spreads(tidy(pd.DataFrame(rows)))["H1 entrenchment"]
    assert spread.source == "pilot"
    # The distance of two judges is (2 chance - 1)^2, the square of a uniform variable.
    assert spread.concept == pytest.approx(1 / 5 - 1 / 9, rel=0.6)
    assert spread.item > 0
