"""The power of hypotheses over concepts, against statsmodels and simulated studies."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.planning.components import Components, Size
from judge_gym.analysis.planning.power import MIN_CONCEPTS, power_table
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.protocols.power import ENDPOINTS, hypothesis_components

H1 = "H1 entrenchment"


def planned(effect: float = 0.1, assumed: Components | None = None, **size: Any) -> pd.Series:
    """The row of the first hypothesis."""
    full = {"clusters": size["items"], "repeats": 1, "arms": 2, **size}
    pilot = None if assumed is None else {H1: assumed}
    return power_table({H1: Size(**full)}, effect, pilot, ENDPOINTS).iloc[0]


def test_power_over_concepts_is_that_of_two_samples() -> None:
    """The mean of a concept varies by its own effect and by that of its ten items."""
    row = planned(
        items=120,
        concepts=6,
        arms=2,
        assumed=Components(0.02, concept=0.003),
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
    assumed = Components(0.01, concept=0.0036)
    row = planned(items=80, concepts=5, arms=2, assumed=assumed)
    assert row["power"] == pytest.approx(np.mean(p < 0.05), abs=0.05)


def test_too_few_concepts_have_no_test_and_say_how_many_are_needed() -> None:
    few = planned(items=40, concepts=2)
    assert np.isnan(few["power"]) and few["needed_80"] >= MIN_CONCEPTS
    assert few["note"] == "2 concepts per arm, 4 are needed"
    assert np.isnan(planned(0.0001, items=40, concepts=8)["needed_80"])


def test_every_hypothesis_has_a_power_before_there_is_data() -> None:
    size = Size(40, 40, 3)
    sizes = {**dict.fromkeys(ENDPOINTS, size), H1: size._replace(concepts=5, arms=2)}
    table = power_table(sizes, 0.2, None, ENDPOINTS)
    assert {*table["endpoint"]} == {*ENDPOINTS}
    assert table["power"].between(0.05, 1).all() and (table["source"] == "default").all()


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
    estimates = hypothesis_components(tidy(pd.DataFrame(rows)))["H1 entrenchment"]
    assert estimates.source == "pilot"
    # The distance of two judges is (2 chance - 1)^2, the square of a uniform variable.
    assert estimates.concept == pytest.approx(1 / 5 - 1 / 9, rel=0.6)
    assert estimates.item > 0
