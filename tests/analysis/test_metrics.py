"""Metrics on small panels that can be worked out by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.measures import MEASURES, Summary, panel_measure, panel_table
from judge_gym.analysis.measures.abstention import abstention
from judge_gym.analysis.measures.known_answers import known_answers
from judge_gym.analysis.measures.uncertainty import uncertainty
from judge_gym.analysis.stats.intervals import undefined
from judge_gym.analysis.verdicts import Dataset, Verdicts
from panel_frames import JUDGE, samples, simulated, verdicts


def judge(found: pd.DataFrame, name: str) -> Any:
    return found[found[JUDGE] == name].iloc[0]


# --- ground truth --------------------------------------------------------------------------------


def test_known_stages_have_clopper_and_pearsons_interval() -> None:
    rows = [
        {"evidence": item, "truth": 2, "stages": "2" if item < 7 else "1"} for item in range(10)
    ]
    row: Any = known_answers(samples(*rows)).iloc[0]
    exact = stats.binomtest(7, 10).proportion_ci()
    assert row[["mean", "low", "high"]].tolist() == pytest.approx([0.7, *exact])


def test_accuracy_is_that_of_the_judge_table_and_a_verdict_without_a_score_is_not_right() -> None:
    made = samples(
        {"stages": "2", "truth": 2},
        {"stages": "2 3", "truth": 2, "evidence": 2},
        {"truth": 2, "evidence": 3},
        {"evidence": 4, "stages": "1"},
        {JUDGE: "b", "truth": 2},
    )
    found: Any = known_answers(made, [JUDGE]).set_index(JUDGE)
    assert found["mean"].tolist() == pytest.approx([(1 + 0.5 + 0) / 3, 0])
    assert found[["n", "scored"]].to_numpy().tolist() == [[3, 2], [1, 0]]
    exact = {row["setup"]: row["measures"]["exact"]["value"] for row in judge_table(made)["rows"]}
    assert exact == found["mean"].to_dict()


def test_nothing_known_is_an_empty_table() -> None:
    assert known_answers(samples({"stages": "1"})).empty


# --- belief --------------------------------------------------------------------------------------


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
    more: dict[str, Any] = {
        "truth": 2.0,
        "reference": np.nan,
        "pair": False,
        "concept": "",
        "tag": "",
    }
    found = panel_table(made.assign(rubric_author="provided", **more))
    assert list(found.columns) == ["task", "variant", "metric", "value", "low", "high", "n", "note"]
    panels = [one for one in MEASURES.values() if one.panel is not None]
    names = [one.name for one in sorted(panels, key=lambda one: (one.order, one.name))]
    assert found["metric"].tolist() == names * 2
    values = found[found["task"] == 0].set_index("metric")["value"]
    assert values["subset_size"] == 1 and values["uncertainty_gap"] == 0
    assert values["abstention"] == 0
    assert (found["note"] != "").all()


def test_a_registered_metric_is_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge_gym.analysis.measures.MEASURES", dict(MEASURES))

    @panel_measure("items", order=0)
    def items(data: Dataset, panel: Verdicts) -> Summary:
        return Summary(undefined(len(panel.units), 0.5), f"of {data.frame.shape[0]} samples")

    found = panel_table(verdicts(("a", 1, "1"), ("b", 1, "2"), ("a", 2, "1")))
    row = found.iloc[0]
    assert row[["metric", "value", "n", "note"]].tolist() == ["items", 0.5, 2, "of 3 samples"]
    assert len(found) == 1 + sum(one.panel is not None for one in MEASURES.values())


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
    assert found.loc[["polarization"], "value"].isna().all()
    assert found.loc["polarization", "n"] == 0
