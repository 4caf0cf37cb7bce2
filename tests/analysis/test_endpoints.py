"""Endpoints of a cell, against numbers worked out by hand and against scipy."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judge_gym.analysis.belief.masses import sources, stage_masks
from judge_gym.analysis.endpoints import (
    GAP,
    cell_endpoints,
    distributions,
    expected_stage,
    judge_endpoints,
    sample_values,
    stage_bounds,
    status_rates,
)
from judge_gym.analysis.frames import CELL, OrdinalFrame, once_per_call, ordinal, tidy
from judge_gym.analysis.stats.intervals import DISTANCE, estimate, mean_bounds, seeded
from judge_gym.errors import DesignError
from judge_gym.records import STATUSES
from panel_frames import samples, simulated

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
    "cluster": "",
    "repeats": False,
}


def frame(*rows: dict[str, Any]) -> OrdinalFrame:
    """A frame of samples, each with its own call by default; `ordinal` still checks it."""
    made = [{**ROW, "call_id": number, **row} for number, row in enumerate(rows, 1)]
    masks = [
        int(stage_masks([row["stages"]], frame=row["n_stages"])[0])
        if row["status"] == "scored"
        else 0
        for row in made
    ]
    return OrdinalFrame(pd.DataFrame(made).assign(mask=masks))


def replicated(stages: list[str], **columns: Any) -> pd.DataFrame:
    """One judge's replicates; no stage is an abstention."""
    given: dict[str, Any] = {JUDGE: "a", "evidence": "e", "n_stages": 4, **columns}
    made = pd.DataFrame({"stages": stages, "replicate": range(len(stages))}).assign(**given)
    return tidy(made.assign(status=np.where(made["stages"] == "", "abstained", "scored")))


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
    assert distributions(made, [JUDGE])["stage"].tolist() == [1]
    assert cell(distributions(made, [JUDGE]), "share", stage=1) == 1


def test_stages_of_two_digits_are_one_stage() -> None:
    found = distributions(frame({"stages": "1 12", "n_stages": 26}), [JUDGE])
    assert found["stage"].tolist() == [1, 12]


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


def test_scales_of_different_lengths_are_comparable() -> None:
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
    with pytest.raises(DesignError, match="nominal"):
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
    if len(means) > 1:
        assert cell(found, "low", judge="a") == pytest.approx(estimate(means, scale=DISTANCE).low)


# --- every endpoint of a cell --------------------------------------------------------------------


def test_a_cell_by_hand() -> None:
    # Stages 2, {2, 3} and 4 of 4, and one abstention.
    made = samples({"stages": "2"}, {"stages": "2 3"}, {"stages": "4"}, {})
    found = cell_endpoints(made).iloc[0].to_dict()
    shares = [0, 1.5 / 3, 0.5 / 3, 1 / 3]
    places = [1 / 3, 1.5 / 3, 1.0]
    expected = {
        "n": 4,
        "effective_n": 3,
        "share_scored": 0.75,
        "share_abstained": 0.25,
        "expected_stage": (2 + 2.5 + 4) / 3,
        "stage": np.mean(places),
        "subset_size": 4 / 3,
        "singleton_rate": 2 / 3,
        "entropy": stats.entropy(shares, base=2),
        "entropy_all": stats.entropy([0.75 * share for share in shares] + [0.25], base=2),
        "mid_mass": 2 / 3,
        "mid_mass_all": 2 / 4,
        "jitter": np.var(places, ddof=1),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_a_cell_averages_what_was_scored_and_counts_abstentions_apart() -> None:
    found = cell_endpoints(replicated(["1", "4", "2 3", ""])).iloc[0]
    assert found["stage"] == pytest.approx((0 + 1 + 0.5) / 3)
    assert found["abstention"] == 0.25
    assert found["subset_size"] == pytest.approx(4 / 3)
    assert found["entropy"] == pytest.approx(stats.entropy([1 / 3, 1 / 6, 1 / 6, 1 / 3], base=2))
    assert np.isnan(found["agreement"]) and np.isnan(found["probability"])


def test_a_subset_agrees_with_the_truth_by_the_share_that_it_gives_it() -> None:
    values = sample_values(replicated(["2", "2 3", "1", ""], truth=2))["agreement"]
    assert values.tolist()[:3] == [1.0, 0.5, 0.0] and np.isnan(values[3])
    assert sample_values(replicated(["2"], truth="unclear"))["agreement"].tolist() == [
        pytest.approx(np.nan, nan_ok=True)
    ]


def test_the_uncertainty_gap_is_that_of_the_belief_functions() -> None:
    rng = seeded("gap")
    masks = rng.integers(0, 16, 200)
    texts = [" ".join(str(s + 1) for s in range(4) if mask >> s & 1) for mask in masks]
    items = np.arange(200) % 10
    expected = sources(items, masks, frame=4, cells=10).masses.uncertainty_gap()
    found = cell_endpoints(replicated(texts, evidence=items, verdict="subset"))
    np.testing.assert_allclose(found[GAP], expected)


def test_a_cell_of_abstentions_has_no_stage() -> None:
    found = cell_endpoints(replicated(["", ""])).iloc[0]
    assert found["abstention"] == 1
    assert found[["stage", "subset_size", "entropy", GAP]].isna().all()


def test_a_call_and_a_probe_count_once() -> None:
    frame = replicated(["1", "1", "4"], call_id=[5, 5, 6], probe=[0.2, 0.2, 0.8])
    found = cell_endpoints(frame).iloc[0]
    assert found["stage"] == 0.5 and found["probability"] == 0.5
    shared_probe = replicated(
        ["1", "1", "1"], call_id=[1, 2, 3], probe=[0.2, 0.2, 0.8], probe_call_id=[7, 7, 8]
    )
    assert cell_endpoints(shared_probe).iloc[0]["probability"] == 0.5


def test_the_middle_is_one_stage_of_an_odd_scale_and_none_of_two() -> None:
    odd = samples(
        {"stages": "3"}, {"stages": "2"}, {"stages": "2 3 4"}, {"stages": "1"}, n_stages=5
    )
    assert cell_endpoints(odd)["mid_mass"].item() == pytest.approx((1 + 1 / 3) / 4)
    two = cell_endpoints(samples({"stages": "1"}, {"stages": "2"}, n_stages=2))
    assert two[["mid_mass", "mid_mass_all"]].isna().all(axis=None)


def test_a_cell_without_a_score_is_undefined_but_for_what_no_score_means() -> None:
    found = cell_endpoints(samples({}, {"status": "refused"})).iloc[0]
    undefined = ["expected_stage", "stage", "subset_size", "singleton_rate"]
    assert found[[*undefined, "entropy", "mid_mass", "jitter"]].isna().all()
    assert (found["effective_n"], found["entropy_all"], found["mid_mass_all"]) == (0, 1 - 1, 0)


def test_one_verdict_has_no_jitter() -> None:
    assert np.isnan(cell_endpoints(samples({"stages": "2"}))["jitter"].item())


def test_nominal_options_have_no_stage_but_an_entropy() -> None:
    made = samples({"stages": "1"}, {"stages": "2"}, rubric_kind="nominal")
    found = cell_endpoints(made).iloc[0]
    ordered = ["expected_stage", "stage", "mid_mass", "mid_mass_all", "jitter"]
    assert found[ordered].isna().all()
    assert found["entropy"] == pytest.approx(1)


def test_verdicts_under_a_rivals_rubric_are_left_out() -> None:
    made = samples({"stages": "1"}, {"stages": "4", "is_swap": True})
    assert cell_endpoints(made)["expected_stage"].tolist() == [1]


def test_a_configured_judge_has_an_interval_over_items_and_its_rates() -> None:
    made = samples(
        {"evidence": 1, "stages": "1"},
        {"evidence": 1, "stages": "2"},
        {"evidence": 2, "stages": "4"},
        {"evidence": 2},
        {"evidence": 3, "stages": "2 3"},
        {"evidence": 3, "status": "truncated"},
    )
    found: Any = judge_endpoints(made).set_index("endpoint")
    row = found.loc["stage"]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(
        estimate(PER_ITEM, scale=DISTANCE)[:3]
    )
    # The same on the scale of stages.
    stage = found.loc["expected_stage", ["mean", "low", "high"]].to_numpy(float)
    assert stage == pytest.approx(1 + 3 * np.array(estimate(PER_ITEM, scale=DISTANCE)[:3]))
    assert row[["items", "n", "effective_n"]].tolist() == [3, 6, 4]
    assert row[["abstained", "unreadable"]].tolist() == pytest.approx([1 / 6, 1 / 6])
    singletons = found.loc["singleton_rate"]
    exact = stats.binomtest(2, 3).proportion_ci()
    assert singletons[["mean", "low", "high"]].tolist() == pytest.approx([2 / 3, *exact])


@pytest.mark.slow
def test_coverage_of_the_expected_stage_at_twelve_items() -> None:
    rng = np.random.default_rng(1)
    panels, items, replicates = 600, 12, 5
    chances = rng.dirichlet(np.ones(4), (panels, items, 1))
    truth = 0.5  # the mean over the population of items that panels draw from
    made = simulated(chances, replicates, rng)
    found = expected_stage(ordinal(made), ["task"])
    covered = ((found["low"] <= truth) & (found["high"] >= truth)).mean()
    assert covered >= 0.93
    assert (found["high"] - found["low"]).mean() < 0.36, "an interval that covers all is no use"


def test_missing_verdicts_bound_the_expected_stage() -> None:
    rows: list[dict[str, Any]] = [
        {"evidence": item, "stages": "2" if item % 2 else "3"} for item in range(10)
    ]
    whole = cell_endpoints(samples(*rows))
    assert stage_bounds(whole, CELL).empty, "nothing is missing"
    gone = cell_endpoints(samples(*rows, *({"evidence": item} for item in range(10))))
    [row] = stage_bounds(gone, CELL).to_dict("records")
    # Half of the verdicts abstained, so each item is between half its stage and half more.
    least = np.array([0.5 / 3 if item % 2 else 1.0 / 3 for item in range(10)])
    assert (row["lowest"], row["highest"]) == pytest.approx(mean_bounds(least, least + 0.5))


def test_differences_between_rubrics_or_orders_are_not_jitter() -> None:
    frame = samples(
        {"stages": "1", "rubric": 1}, {"stages": "1", "rubric": 1},
        {"stages": "4", "rubric": 2}, {"stages": "3", "rubric": 2},
    )  # fmt: skip
    # Of four verdicts two squares are free: none under the first rubric, (1/6)^2 twice below.
    assert cell_endpoints(frame)["jitter"].item() == pytest.approx(2 * (1 / 6) ** 2 / 2)
