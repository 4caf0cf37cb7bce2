"""What verdicts are measured by, against values by hand and the judge table's numbers."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.planning.components import COMPONENTS
from judge_gym.analysis.planning.purchases import decide
from judge_gym.analysis.planning.quantities import (
    Measurement,
    find_quantities,
    measurements,
    quantities,
    variance_table,
)
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.errors import DesignError
from panel_frames import samples, verdicts

# --- measurements --------------------------------------------------------------------------------


def measurement(
    measure: str, frame: pd.DataFrame, people: pd.DataFrame | None = None
) -> Measurement:
    [chosen] = [one for one in measurements(frame, people) if one.measure == measure]
    return chosen


def by_unit(chosen: Measurement) -> dict[int, float]:
    """The value of each unit, counted from 0 in the order of their evidence."""
    return dict(zip(chosen.verdicts["unit"], chosen.verdicts["value"], strict=True))


def test_a_verdict_without_a_score_is_wrong_unless_the_provider_failed() -> None:
    rows: list[dict[str, Any]] = [
        {"evidence": 1, "stages": "2", "truth": 2, "usd": 0.1},
        {"evidence": 2, "stages": "3", "truth": 2, "usd": 0.1},
        {"evidence": 3, "truth": 2, "usd": 0.1},
        {"evidence": 4, "truth": 2, "usd": 0.1, "status": "provider_error"},
        {"evidence": 5, "stages": "2 3", "truth": 2, "usd": 0.1},
    ]
    values = by_unit(measurement("accuracy", samples(*rows)))
    assert values == {0: 1.0, 1: 0.0, 2: 0.0, 4: 0.5}


def test_replicates_at_temperature_zero_count_as_one() -> None:
    chosen = [("a", item, str(1 + (item + copy) % 3)) for item in range(6) for copy in range(3)]
    [cold] = measurements(verdicts(*chosen, **{"judge.temperature": 0.0}, usd=0.1))
    [warm] = measurements(verdicts(*chosen))
    assert len(cold.verdicts) == 6 and len(warm.verdicts) == 18
    # What is bought of them is one, at the price of one.
    assert (cold.verdicts["calls"] == 1).all() and np.allclose(cold.verdicts["usd"], 0.1)
    assert cold.verdicts["value"].to_list() == pytest.approx([1 / 3] * 6)


def test_both_orders_of_a_pair_are_one_verdict() -> None:
    frame = samples(
        {"stages": "1", "truth": 1, "flipped": False, "replicate": 0, "pair": True, "usd": 0.2},
        {"stages": "2", "truth": 1, "flipped": True, "replicate": 0, "pair": True, "usd": 0.3},
        n_stages=2,
        rubric_kind="nominal",
    )
    [row] = measurement("accuracy", frame).verdicts.to_dict("records")
    assert (row["value"], row["usd"], row["calls"]) == (0.5, pytest.approx(0.5), 2)


def test_agreement_is_the_share_of_raters_with_the_same_stage() -> None:
    frame = verdicts(("a", 1, "2"), ("a", 2, "1"), tag="t")
    people = pd.DataFrame(
        [("t", 1, "x", 2), ("t", 1, "y", 3), ("t", 2, "x", 4)],
        columns=["tag", "evidence", "rater", "stage"],
    )
    assert by_unit(measurement("agreement", frame, people)) == {0: 0.5, 1: 0.0}


def test_the_table_has_a_row_per_component_with_shares_that_sum_to_one() -> None:
    rng = seeded("table")
    chosen = [
        ("a" if judge else "b", item, str(1 + int(np.clip(level + rng.normal(0, 0.7), 0, 3))))
        for item, level in enumerate(rng.uniform(0, 3, 25))
        for judge in (0, 1)
        for _ in range(3)
    ]
    table = variance_table(measurements(verdicts(*chosen))).set_index("component")
    assert list(table.index) == [*COMPONENTS]
    assert table["share"].sum() == pytest.approx(1)
    assert (table["measure"] == "stage").all()
    low, value, high = table.loc["item", ["low", "variance", "high"]].to_numpy(dtype=float)
    assert low < value < high


def test_a_component_that_may_be_nearly_zero_has_no_interval_and_no_end_exceeds_the_scale() -> None:
    for key in range(4, 10):
        rng = seeded("wide", key)
        chosen = [
            (judge, item, str(1 + int(np.clip(level + rng.normal(0, 0.9), 0, 3))))
            for item, level in enumerate(rng.uniform(0, 3, 24))
            for judge in "ab"
            for _ in range(3)
        ]
        table = variance_table(measurements(verdicts(*chosen))).set_index("component")
        known = table["high"].notna()
        assert known["item"]
        assert (table.loc[known, "high"] <= 0.25).all()
        assert (table.loc[known, "high"] <= 100 * table.loc[known, "variance"]).all()
        assert "not clearly above 0" in str(table.loc["item x setup", "note"])


def test_what_is_planned_for_is_the_number_of_the_judge_table() -> None:
    """Ties of a pair, subsets, lost verdicts, raters that differ, and repeats of one text."""
    rng = seeded("one number")
    rows: list[dict[str, Any]] = []
    for item in range(8):
        for judge in ("a", "b"):
            for flipped in (False, True):
                for replicate in range(2):
                    stages = str(rng.choice(["", "1", "2", "3"]))
                    rows.append(
                        {"judge.model": judge, "evidence": item, "flipped": flipped}
                        | {"replicate": replicate, "stages": stages, "truth": 1 + item % 2}
                    )
    pairs = samples(*rows, n_stages=3, pair=True, rubric_kind="nominal", tag="t")
    cold = verdicts(
        *(
            (judge, item, f"{rng.integers(1, 5)}")
            for judge in "ab"
            for item in range(8)
            for _ in "xy"
        ),
        **{"judge.temperature": 0.0},
        tag="t",
    )
    people = pd.DataFrame(
        [
            ("t", item, rater, 1 + (item + place) % 4)
            for item in range(8)
            for place, rater in enumerate("xyz")
        ],
        columns=["tag", "evidence", "rater", "stage"],
    )
    for frame, labels, measure in ((pairs, None, "accuracy"), (cold, people, "agreement")):
        listed = {one.name: one for one in quantities(frame, measurements(frame, labels))}
        for row in judge_table(frame, labels)["rows"]:
            assert row["truth"] is not None and row["truth"]["kind"] == measure
            planned = decide(listed[f"{measure} of {row['setup']}"]).value
            assert planned == pytest.approx(row["truth"]["value"], abs=1e-12)


# --- quantities ----------------------------------------------------------------------------------


def judged() -> pd.DataFrame:
    rng = seeded("judged")
    rows = [
        {
            "judge.model": judge,
            "verdict.method": method,
            "evidence": item,
            "replicate": replicate,
            "status": "scored",
            "stages": str(rng.integers(1, 5)),
            "n_stages": 4,
            "truth": 2,
        }
        for judge in ("x", "y")
        for method in ("single", "subset")
        for item in range(6)
        for replicate in range(2)
    ]
    return tidy(pd.DataFrame(rows))


def test_differences_of_the_most_telling_measure_come_first() -> None:
    frame = judged()
    known = quantities(frame, measurements(frame))
    names = [one.name for one in known]
    assert len({*names}) == len(names)
    assert names[0].startswith("accuracy, ") and " minus " in names[0]
    effect = next(one for one in known if one.name == "stage, verdict.method subset minus single")
    assert sum(effect.weights.values()) == pytest.approx(0)
    assert len(effect.weights) == 4
    assert {one.name for one in known if one.panel} >= {"stage of the panel, verdict.method=single"}
    assert np.isfinite(decide(effect).half)


def test_a_part_of_a_name_finds_quantities_and_an_unknown_one_is_refused() -> None:
    frame = judged()
    known = quantities(frame, measurements(frame))
    assert {one.panel for one in find_quantities(known, "of the PANEL")} == {True}
    exact = "stage of x, verdict.method=single"
    assert [one.name for one in find_quantities(known, exact)] == [exact]
    with pytest.raises(DesignError, match="no quantity contains 'price'; choose of: accuracy"):
        find_quantities(known, "price")
