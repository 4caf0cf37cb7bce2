"""Metrics on small panels that can be worked out by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon

from judge_gym.analysis.belief.disagreement import squared_distances
from judge_gym.analysis.measures import METRICS, Summary, metric, panel_table
from judge_gym.analysis.measures.abstention import abstention
from judge_gym.analysis.measures.known_answers import ground_truth
from judge_gym.analysis.measures.uncertainty import uncertainty
from judge_gym.analysis.stats.intervals import ABOVE_CHANCE, DISTANCE, estimate, undefined
from judge_gym.analysis.verdicts import Dataset, Verdicts
from judge_gym.protocols.conflict import conflict
from judge_gym.protocols.entrenchment import entrenchment
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


# --- ground truth --------------------------------------------------------------------------------


def test_known_stages_have_clopper_and_pearsons_interval() -> None:
    rows = [
        {"evidence": item, "truth": 2, "stages": "2" if item < 7 else "1"} for item in range(10)
    ]
    row: Any = ground_truth(samples(*rows)).iloc[0]
    exact = stats.binomtest(7, 10).proportion_ci()
    assert row["measure"] == "right"
    assert row[["mean", "low", "high"]].tolist() == pytest.approx([0.7, *exact])


def test_a_reference_is_compared_to_the_mean_of_the_normalised_stage() -> None:
    made = samples(
        {"evidence": 1, "stages": "1"},  # 0
        {"evidence": 2, "stages": "2"},  # 1/3
        {"evidence": 2, "stages": "3"},
        {"evidence": 3, "stages": "3"},  # 2/3
        {"evidence": 4},
        reference=0.5,
    )
    [found] = ground_truth(made).to_dict("records")
    mean = estimate([0.0, 0.5, 2 / 3], scale=DISTANCE)
    expected = [mean.value - 0.5, mean.low - 0.5, mean.high - 0.5, 3]
    assert found["measure"] == "error"
    assert [found[name] for name in ("mean", "low", "high", "items")] == pytest.approx(expected)
    table = panel_table(made).set_index("metric")
    row = table.loc["reference error"]
    assert [row[name] for name in ("value", "low", "high")] == pytest.approx(expected[:3])
    assert table.loc["accuracy", "note"] == "no known answer"


def test_nothing_known_is_an_empty_table() -> None:
    assert ground_truth(samples({"stages": "1"})).empty
    assert ground_truth(samples({"stages": "1"}, reference=0.5, rubric_kind="nominal")).empty


# --- belief --------------------------------------------------------------------------------------


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
        Verdicts(*(part[name].to_numpy() for name in ("evidence", "replicate", "mask")))
        for _, part in made.groupby(JUDGE)
    ]
    per_item = squared_distances(sides, items=5).mean(axis=1)
    assert row["distance"] == pytest.approx(np.nanmean(per_item))
    assert row["unreadable"] == pytest.approx(4 / 60)


def test_the_gap_is_plausibility_minus_belief_over_stages() -> None:
    # {1, 2}: both are plausible and neither believed, so 2 of 4 stages are open; {3}: none is.
    made = verdicts(("a", 1, "1 2"), ("a", 1, "3"), ("a", 2, "1 2 3 4"), ("b", 1, "4"))
    found = uncertainty(made)
    assert judge(found, "a")["gap"] == pytest.approx((0.25 + 1) / 2)
    assert judge(found, "a")["size"] == pytest.approx((1.5 + 4) / 2)
    assert judge(found, "b")[["gap", "size", "items", "dropped"]].tolist() == [0, 1, 1, 1]
    assert judge(found, "all")["gap"] == pytest.approx(((0.25 + 0) / 2 + 1) / 2)


def test_unreadable_is_apart_from_abstained() -> None:
    made = samples(
        {"evidence": 1}, {"evidence": 1, "stages": "1"},
        {"evidence": 2, "status": "parse_failed"}, {"evidence": 2, "status": "truncated"},
    )  # fmt: skip
    row = judge(abstention(made), "a")
    assert row[["abstained", "unreadable"]].tolist() == [0.25, 0.5]
    assert row[["items", "n", "effective_n"]].tolist() == [2, 4, 1]


# --- the table of all metrics --------------------------------------------------------------------


def test_every_panel_has_a_row_for_every_metric() -> None:
    rng = np.random.default_rng(3)
    made = simulated(rng.dirichlet(np.ones(4), (2, 4, 3)), 3, rng)
    more: dict[str, Any] = {"truth": 2.0, "reference": np.nan, "pair": False}
    found = panel_table(made.assign(rubric_author="provided", **more))
    assert list(found.columns) == ["task", "variant", "metric", "value", "low", "high", "n", "note"]
    names = [one.name for one in sorted(METRICS.values())]
    assert len(names) == len(METRICS) and found["metric"].tolist() == names * 2
    values = found[found["task"] == 0].set_index("metric")["value"]
    assert np.isnan(values["swap_sensitivity"]), "no rubric was swapped"
    assert values["subset_size"] == 1 and values["uncertainty_gap"] == 0
    assert values["abstention"] == 0
    assert (found["note"] != "").all()


def test_a_registered_metric_is_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge_gym.analysis.measures.METRICS", dict(METRICS))

    @metric("items", order=0)
    def items(data: Dataset, panel: Verdicts) -> Summary:
        return Summary(undefined(len(panel.units), 0.5), f"of {data.frame.shape[0]} samples")

    found = panel_table(verdicts(("a", 1, "1"), ("b", 1, "2"), ("a", 2, "1")))
    row = found.iloc[0]
    assert row[["metric", "value", "n", "note"]].tolist() == ["items", 0.5, 2, "of 3 samples"]
    assert len(found) == len(METRICS) + 1


def test_series_are_pooled_for_consistency_alone() -> None:
    rows = [
        {JUDGE: name, "evidence": item, "stages": stage, "series": series, "replicate": replicate,
         "display": f"A={replicate + 1}"}
        for name in "ab" for item in (1, 2, 3) for series in ("x", "y")
        for replicate, stage in enumerate("12" if series == "x" else f"1{item}")
    ]  # fmt: skip
    found = panel_table(samples(*rows)).set_index(["variant", "metric"])
    steady = found.xs("consistency", level="metric")
    assert steady.index.tolist() == ["series=x", "series=y"]
    # By item, the second display was read as 2 and as the item's number; the first never varies.
    expected = [((2 - item) / 3) ** 2 / 2 / 2 for item in (1, 2, 3)]
    assert steady["value"].tolist() == pytest.approx([np.mean(expected)] * 2)
    assert found.loc[("series=x", "polarization"), "n"] == 3


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
    found = panel_table(made).set_index("metric")
    assert found.loc[["polarization", "entrenchment", "conflict"], "value"].isna().all()
    assert found.loc[["polarization", "entrenchment", "conflict"], "n"].tolist() == [0, 0, 0]
