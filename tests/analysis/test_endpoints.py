"""Endpoints of a cell, against numbers worked out by hand and against scipy."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judge_gym.analysis.endpoints import (
    distributions,
    expected_stage,
    once_per_call,
    stage_weights,
    status_rates,
    varied_knobs,
    with_variant,
)
from judge_gym.records import STATUSES

JUDGE = "judge.model"
steady = settings(deadline=None, derandomize=True, max_examples=50)
ROW = {
    JUDGE: "a",
    "evidence": 1,
    "replicate": 0,
    "status": "scored",
    "stages": "1",
    "n_stages": 4,
    "rubric_kind": "ordinal",
}


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    """A frame of samples; each is a call of its own unless it says otherwise."""
    return pd.DataFrame([{**ROW, "call_id": number, **row} for number, row in enumerate(rows, 1)])


def cell(found: pd.DataFrame, column: str, **where: Any) -> Any:
    """The one value of a column where other columns have these values."""
    for name, value in where.items():
        found = found[found[JUDGE if name == "judge" else name] == value]
    assert len(found) == 1, found
    return found[column].item()


# --- status rates --------------------------------------------------------------------------------


def test_every_status_is_counted_and_has_its_share() -> None:
    ends = ["scored", "scored", "scored", "abstained", "refused", "parse_failed", "truncated"]
    rows = [{"status": s, "stages": "2" if s == "scored" else ""} for s in ends]
    rates = status_rates(frame(*rows, {JUDGE: "b", "status": "provider_error"}), [JUDGE])
    assert cell(rates, "n", judge="a") == 7
    counts = {status: cell(rates, status, judge="a") for status in STATUSES}
    assert counts == dict(zip(STATUSES, (3, 1, 1, 1, 1, 0), strict=True))
    assert cell(rates, "share_scored", judge="a") == pytest.approx(3 / 7)
    assert cell(rates, "share_provider_error", judge="b") == 1
    assert cell(rates, "share_scored", judge="b") == 0


@steady
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(STATUSES)), min_size=1))
def test_shares_of_a_group_sum_to_one_and_counts_to_all(rows: list[tuple[str, str]]) -> None:
    made = frame(*({JUDGE: judge, "status": status} for judge, status in rows))
    rates = status_rates(made, [JUDGE])
    assert rates["n"].sum() == len(rows)
    assert rates[[f"share_{s}" for s in STATUSES]].sum(axis=1).tolist() == pytest.approx(
        [1.0] * len(rates)
    )


# --- one observation per call --------------------------------------------------------------------


def test_a_call_that_two_experiments_share_counts_once() -> None:
    shared = {"call_id": 7, "stages": "4"}
    made = frame({**shared, "tag": "x"}, {**shared, "tag": "y"}, {"tag": "y", "stages": "1"})
    assert cell(status_rates(made, [JUDGE]), "n", judge="a") == 2
    assert cell(distributions(made, [JUDGE]), "share", stage=4) == pytest.approx(1 / 2)
    assert cell(expected_stage(made, [JUDGE]), "mean", judge="a") == pytest.approx(1 / 2)
    apart = status_rates(made, [JUDGE, "tag"])
    assert apart["n"].tolist() == [1, 2], "in another group it is an observation there too"


def test_samples_without_a_call_are_observations_of_their_own() -> None:
    made = frame({"call_id": None, "stages": "1"}, {"call_id": None, "stages": "4"})
    assert len(once_per_call(made, [JUDGE])) == 2


# --- distributions -------------------------------------------------------------------------------


def test_a_subset_spreads_its_weight_equally_over_its_stages() -> None:
    found = distributions(frame({"stages": "2 3"}, {"stages": "2"}, {"stages": "1 2 3"}), [JUDGE])
    shares = dict(zip(found["stage"], found["share"], strict=True))
    assert shares == pytest.approx({1: 1 / 9, 2: (1 / 2 + 1 + 1 / 3) / 3, 3: (1 / 2 + 1 / 3) / 3})
    assert found["scored"].tolist() == pytest.approx([3] * 3), "three verdicts carry a score"


def test_only_scored_samples_have_weight() -> None:
    made = frame(
        {"stages": "1"}, {"status": "abstained", "stages": ""}, {"status": "refused", "stages": ""}
    )
    weights = stage_weights(made)
    assert weights[["stage", "weight"]].to_numpy().tolist() == [[1, 1.0]]
    assert cell(distributions(made, [JUDGE]), "share", stage=1) == 1


def test_stages_of_two_digits_are_one_stage() -> None:
    assert stage_weights(frame({"stages": "1 12", "n_stages": 26}))["stage"].tolist() == [1, 12]


subsets = st.sets(st.integers(1, 6), min_size=1).map(lambda chosen: " ".join(map(str, chosen)))


@steady
@given(st.lists(st.tuples(st.sampled_from("abc"), subsets), min_size=1, max_size=30))
def test_a_distribution_sums_to_one(rows: list[tuple[str, str]]) -> None:
    made = frame(*({JUDGE: judge, "stages": stages, "n_stages": 6} for judge, stages in rows))
    found = distributions(made, [JUDGE])
    assert found.groupby(JUDGE)["share"].sum().tolist() == pytest.approx(
        [1.0] * made[JUDGE].nunique()
    )
    assert (found["share"] > 0).all()


def test_there_is_no_distribution_where_nothing_was_scored() -> None:
    made = frame({"status": "abstained", "stages": ""}, {JUDGE: "b"})
    assert distributions(made, [JUDGE])[JUDGE].tolist() == ["b"]
    assert distributions(made[:1], [JUDGE]).empty


# --- expected stage ------------------------------------------------------------------------------

# Per item, replicates pooled: item 1 at stage 1 and 2 of 4, item 2 at 4, item 3 at {2, 3}.
THREE_ITEMS = frame(
    {"evidence": 1, "stages": "1"},
    {"evidence": 1, "stages": "2"},
    {"evidence": 2, "stages": "4"},
    {"evidence": 2, "status": "abstained", "stages": ""},
    {"evidence": 3, "stages": "2 3"},
)
PER_ITEM = [(0 + 1 / 3) / 2, 1.0, (1 / 3 + 2 / 3) / 2]


def test_the_expected_stage_is_normalised_and_averaged_over_items() -> None:
    found = expected_stage(THREE_ITEMS, [JUDGE])
    assert cell(found, "mean", judge="a") == pytest.approx(np.mean(PER_ITEM))
    assert cell(found, "items", judge="a") == 3


def test_its_interval_is_students_over_items() -> None:
    found = expected_stage(THREE_ITEMS, [JUDGE])
    low, high = stats.t.interval(0.95, df=2, loc=np.mean(PER_ITEM), scale=stats.sem(PER_ITEM))
    assert cell(found, "low", judge="a") == pytest.approx(low)
    assert cell(found, "high", judge="a") == pytest.approx(high)


def test_scales_compare() -> None:
    made = frame({"stages": "3", "n_stages": 5}, {JUDGE: "b", "stages": "2", "n_stages": 3})
    assert expected_stage(made, [JUDGE])["mean"].tolist() == pytest.approx([0.5, 0.5])


def test_one_item_has_a_mean_and_no_interval() -> None:
    found = expected_stage(frame({"stages": "2"}, {"stages": "3"}), [JUDGE])
    assert cell(found, "mean", judge="a") == pytest.approx(0.5)
    assert cell(found, "items", judge="a") == 1
    assert found[["low", "high"]].isna().all(axis=None), "undefined is null, never 0"


def test_a_judge_that_scored_nothing_has_no_expected_stage() -> None:
    made = frame({"stages": "2"}, {JUDGE: "b", "status": "refused", "stages": ""})
    assert expected_stage(made, [JUDGE])[JUDGE].tolist() == ["a"]


def test_a_nominal_rubric_is_refused() -> None:
    made = frame({}, {"rubric_kind": "nominal"})
    with pytest.raises(ValueError, match="nominal"):
        expected_stage(made, [JUDGE])


@steady
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 5)).map(
            lambda pair: {"evidence": pair[0], "stages": str(pair[1]), "n_stages": 5}
        ),
        min_size=1,
        max_size=20,
    )
)
def test_the_expected_stage_agrees_with_a_plain_computation(rows: list[dict[str, Any]]) -> None:
    found = expected_stage(frame(*rows), [JUDGE])
    items = {row["evidence"] for row in rows}
    means = [
        float(np.mean([(int(r["stages"]) - 1) / 4 for r in rows if r["evidence"] == item]))
        for item in items
    ]
    assert cell(found, "mean", judge="a") == pytest.approx(np.mean(means))
    if len(means) > 1 and np.ptp(means) > 0:
        low, _ = stats.t.interval(
            0.95, df=len(means) - 1, loc=np.mean(means), scale=stats.sem(means)
        )
        assert cell(found, "low", judge="a") == pytest.approx(low)


# --- variants ------------------------------------------------------------------------------------


def test_a_variant_names_the_levels_of_what_varies_and_of_nothing_else() -> None:
    made = frame(
        {"verdict.method": "single", "verdict.abstain": True, "rubric.scale": 4},
        {"verdict.method": "subset", "verdict.abstain": True, "rubric.scale": 4},
        {"verdict.method": "single", "verdict.abstain": False, "rubric.scale": 4, JUDGE: "b"},
    )
    assert varied_knobs(made) == ["verdict.method", "verdict.abstain"]
    assert with_variant(made)["variant"].tolist() == [
        "verdict.method=single, verdict.abstain=true",
        "verdict.method=subset, verdict.abstain=true",
        "verdict.method=single, verdict.abstain=false",
    ]


def test_nothing_varied_is_the_base() -> None:
    made = frame({"verdict.method": "single"}, {"verdict.method": "single", JUDGE: "b"})
    assert varied_knobs(made) == []
    assert with_variant(made)["variant"].tolist() == ["base", "base"]


def test_an_unset_knob_is_a_level_too() -> None:
    made = frame({"judge.temperature": None}, {"judge.temperature": 0.5})
    named = with_variant(made)
    assert len(named) == 2, "no sample is lost"
    assert named["variant"].nunique() == 2
