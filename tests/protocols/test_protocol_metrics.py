"""Metrics of the protocol on small panels that can be worked out by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon

from judge_gym.analysis.belief.disagreement import Replicates, squared_distances
from judge_gym.analysis.measures import MEASURES, panel_table
from judge_gym.analysis.stats.intervals import ABOVE_CHANCE, DISTANCE, estimate
from judge_gym.protocols.conflict import conflict
from judge_gym.protocols.entrenchment import entrenchment
from judge_gym.protocols.reference_values import reference_errors
from judge_gym.protocols.report import METRICS
from panel_frames import JUDGE, samples, simulated, verdicts


def judge(found: pd.DataFrame, name: str) -> Any:
    return found[found[JUDGE] == name].iloc[0]


# --- entrenchment --------------------------------------------------------------------------------


def exchanged(ours: str, theirs: str) -> float:
    """The mean divergence over every exchange of labels within a replicate."""
    values = []
    for swaps in np.ndindex(*[2] * len(ours)):
        sides = [(b, a) if s else (a, b) for a, b, s in zip(ours, theirs, swaps, strict=True)]
        shares = [
            np.bincount([int(one) for one in side], minlength=5) / len(ours)
            for side in zip(*sides, strict=True)
        ]
        values.append(jensenshannon(*shares, base=2) ** 2)
    return float(np.mean(values))


def test_entrenchment_is_divergence_above_chance_times_probability() -> None:
    items = {1: ("1112", "3334"), 2: ("1111", "4444"), 3: ("1234", "1234")}
    sure = {1: (0.9, 0.5), 2: (0.8, 0.6), 3: (0.2, 0.4)}
    rows = [
        {JUDGE: name, "evidence": item, "stages": stage, "probe": sure[item][side]}
        for item, sides in items.items()
        for side, name in enumerate("ab")
        for stage in sides[side]
    ]
    found = entrenchment(samples(*rows))
    above = []
    for ours, theirs in items.values():
        shares = [np.bincount([int(s) for s in side], minlength=5) / 4 for side in (ours, theirs)]
        above.append(jensenshannon(*shares, base=2) ** 2 - exchanged(ours, theirs))
    for side, name in enumerate("ab"):
        expected = estimate(
            [over * sure[item][side] for item, over in zip(items, above, strict=True)],
            scale=ABOVE_CHANCE,
        )
        row = judge(found, name)
        assert row["mean"] == pytest.approx(expected.value, abs=0.02), "but for the draws"
        assert row["low"] == pytest.approx(expected.low, abs=0.05)
    both = found[found[JUDGE] != "all"]["mean"].mean()
    assert judge(found, "all")["mean"] == pytest.approx(both)
    assert found["dropped"].tolist() == [0, 0, 0]


def test_an_item_without_a_probability_is_dropped_from_entrenchment() -> None:
    made = verdicts(*[(name, item, "1") for name in "ab" for item in (1, 2) for _ in range(2)])
    made["probe"] = [0.5] * 6 + [np.nan] * 2
    assert entrenchment(made)[["items", "dropped"]].to_numpy().tolist() == [[1, 1]] * 3


def leaning(panels: int, items: int, rng: np.random.Generator) -> pd.DataFrame:
    """Three judges who share a view of an item in part, and are the surer the more they lean."""
    shared = rng.dirichlet([1.5] * 4, (panels, items, 1))
    chances = 0.6 * shared + 0.4 * rng.dirichlet([0.7] * 4, (panels, items, 3))
    frame = simulated(chances, 5, rng)
    sure = rng.beta(6, 3, (panels, items, 3)) + 0.3 * (chances.max(axis=-1) - 0.5)
    cell = frame["evidence"] * 3 + frame[JUDGE].str[-1].astype(int)
    return frame.assign(probe=np.clip(sure, 0, 1).ravel()[cell])


@pytest.mark.simulation
def test_intervals_of_entrenchment_cover_at_12_items() -> None:
    rng = np.random.default_rng(12)
    truth = entrenchment(leaning(2, 2000, rng)).groupby(JUDGE)["mean"].mean()
    found = entrenchment(leaning(120, 12, rng))
    for name, part in found.groupby(JUDGE):
        held = (part["low"] <= truth[name]) & (part["high"] >= truth[name])
        reach = stats.binomtest(int(held.sum()), len(held)).proportion_ci(0.99, "wilson")
        assert reach.high >= 0.92 and reach.low <= 0.97


# --- reference values ----------------------------------------------------------------------------


def test_a_reference_is_compared_to_the_mean_of_the_normalised_stage() -> None:
    made = samples(
        {"evidence": 1, "stages": "1"},  # 0
        {"evidence": 2, "stages": "2"},  # 1/3
        {"evidence": 2, "stages": "3"},
        {"evidence": 3, "stages": "3"},  # 2/3
        {"evidence": 4},
        reference=0.5,
    )
    [found] = reference_errors(made).to_dict("records")
    mean = estimate([0.0, 0.5, 2 / 3], scale=DISTANCE)
    expected = [mean.value - 0.5, mean.low - 0.5, mean.high - 0.5, 3]
    assert [found[name] for name in ("mean", "low", "high", "items")] == pytest.approx(expected)
    table = panel_table(made, METRICS).set_index("metric")
    row = table.loc["reference error"]
    assert [row[name] for name in ("value", "low", "high")] == pytest.approx(expected[:3])
    assert table.loc["accuracy", "note"] == "no known answer"


def test_without_a_reference_value_there_is_no_error() -> None:
    assert reference_errors(samples({"stages": "1"})).empty
    assert reference_errors(samples({"stages": "1"}, reference=0.5, rubric_kind="nominal")).empty


# --- conflict ------------------------------------------------------------------------------------


def test_conflict_of_two_inconsistent_judges_is_their_self_conflict() -> None:
    rows = [(name, item, stage) for name in "ab" for item in (1, 2) for stage in "12"]
    row = conflict(verdicts(*rows)).iloc[0]
    assert row[["k", "own", "joint"]].tolist() == pytest.approx([0.5] * 3)
    assert row["excess"] == pytest.approx(0)
    assert row[["fan_in", "items", "dropped"]].tolist() == [2, 2, 0]


def test_conflict_grows_with_the_number_of_masses() -> None:
    # methods: one judge with support 0.8 on one stage, fused with itself.
    def joint(judges: int) -> float:
        rows = [(f"j{j}", 1, stage) for j in range(judges) for stage in "11112"]
        return float(conflict(verdicts(*rows, n_stages=2))["joint"].item())

    for judges in (2, 4):
        agreed = 0.8**judges + 0.2**judges
        assert joint(judges) == pytest.approx(1 - agreed)


def test_conflict_is_given_beside_the_distance_on_complete_items() -> None:
    rng = np.random.default_rng(2)
    made = simulated(rng.dirichlet(np.ones(4), (1, 5, 3)), 4, rng)
    lost = ((made["evidence"] == 4) & (made[JUDGE] == "judge 0")).to_numpy()
    made["mask"] = np.where(lost, 0, made["mask"])
    made["status"] = np.where(lost, "refused", "scored")
    row = conflict(made).iloc[0]
    assert row[["items", "dropped", "fan_in"]].tolist() == [4, 1, 3]
    sides = [
        Replicates(*(part[name].to_numpy() for name in ("evidence", "replicate", "mask")))
        for _, part in made.groupby(JUDGE)
    ]
    per_item = squared_distances(sides, items=5).mean(axis=1)
    assert row["distance"] == pytest.approx(np.nanmean(per_item))
    assert row["unreadable"] == pytest.approx(4 / 60)


# --- the table of all metrics --------------------------------------------------------------------


def test_the_metrics_of_the_protocol_stand_among_the_others() -> None:
    rng = np.random.default_rng(3)
    made = simulated(rng.dirichlet(np.ones(4), (2, 4, 3)), 3, rng)
    more: dict[str, Any] = {
        "truth": 2.0,
        "reference": np.nan,
        "pair": False,
        "concept": "",
        "tag": "",
    }
    made = made.assign(rubric_author="provided", **more)
    found = panel_table(made, METRICS)
    panels = [one for one in MEASURES.values() if one.panel is not None]
    names = [one.name for one in sorted([*panels, *METRICS], key=lambda one: (one.order, one.name))]
    assert found["metric"].tolist() == names * 2
    values = found[found["task"] == 0].set_index("metric")["value"]
    assert np.isnan(values["swap_sensitivity"]), "no rubric was swapped"
    assert (found["note"] != "").all()
    assert not {one.name for one in METRICS} & {*panel_table(made)["metric"]}


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(verdicts(("a", 1, "1"), ("a", 1, "2"), ("a", 2, "4")), id="one judge"),
        pytest.param(verdicts(("a", 1, ""), ("b", 1, "")), id="nothing scored"),
        pytest.param(verdicts(("a", 1, "1"), ("b", 2, "1")), id="no common item"),
        pytest.param(verdicts(("a", 1, "1"), rubric_kind="nominal"), id="one option"),
    ],
)
def test_undefined_metrics_are_null_and_never_an_error(made: pd.DataFrame) -> None:
    found = panel_table(made, METRICS).set_index("metric")
    assert found.loc[["entrenchment", "conflict"], "value"].isna().all()
    assert found.loc[["entrenchment", "conflict"], "n"].tolist() == [0, 0]
