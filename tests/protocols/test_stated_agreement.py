"""What judges say of experts, against lists of triples, numbers by hand, and known populations."""

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.frames import tidy
from judge_gym.protocols.stated_agreement import (
    OWN_RUBRICS,
    PEOPLE,
    SAME_RUBRIC,
    calibration,
    majority_of_three,
    most_telling,
    probed_verdicts,
    reliability,
)
from tables import each_row

JUDGE = "judge.model"


def sample(judge: str, item: int, replicate: int, stages: str, **more: Any) -> dict[str, Any]:
    """A probed verdict; no stage is an abstention, which nobody probes."""
    row: dict[str, Any] = {JUDGE: judge, "evidence": item, "replicate": replicate, "n_stages": 4}
    row |= {"status": "scored" if stages else "abstained", "stages": stages}
    return row | {"probe": 0.9 if stages else np.nan} | more


def random_panel(seed: int, judges: int = 4, items: int = 3, replicates: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sets = ["1", "2", "3", "4", "1 2", "2 3", "1 2 3", "2 4", ""]
    rows = [
        sample(f"judge {j}", i, r, str(rng.choice(sets)))
        for j in range(judges)
        for i in range(items)
        for r in range(replicates)
    ]
    return tidy(pd.DataFrame(rows).sample(frac=1.0, random_state=seed))


def agreement(ours: str, other: str) -> float:
    """The share of the other's stages that are among ours."""
    chosen = set(other.split())
    return len(set(ours.split()) & chosen) / len(chosen)


def listed(a: list[float]) -> float:
    """The reference, by listing every ordered pair and triple of distinct verdicts."""
    if len(a) < 3:
        return np.nan
    pairs = [x * y for x, y in permutations(a, 2)]
    triples = [x * y * z for x, y, z in permutations(a, 3)]
    return float(3 * np.mean(pairs) - 2 * np.mean(triples))


# --- the reference -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_reference_is_the_mean_over_distinct_verdicts_of_others_on_other_displays(
    seed: int,
) -> None:
    frame = random_panel(seed)
    found = probed_verdicts(frame)
    rows = frame[[JUDGE, "evidence", "replicate", "stages"]].to_dict("records")
    for row, y, pool in zip(rows, found["y"], found["pool"], strict=True):
        others = [
            agreement(row["stages"], other["stages"])
            for other in rows
            if other["evidence"] == row["evidence"] and other["stages"]
            if other[JUDGE] != row[JUDGE] and other["replicate"] != row["replicate"]
        ]
        assert pool == len(others)
        expected = listed(others) if row["stages"] else np.nan
        assert y == pytest.approx(expected, nan_ok=True, abs=1e-9)


def test_three_verdicts_give_the_chance_that_most_of_them_agree() -> None:
    rng = np.random.default_rng(1)
    for a in rng.random((20, 3)):
        both = [a[i] * a[j] * (1 - a[k]) for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 2, 0))]
        sums = np.array([[3.0, a.sum(), (a**2).sum(), (a**3).sum()]])
        assert majority_of_three(sums) == pytest.approx(sum(both) + a.prod())


def test_of_yes_and_no_it_is_the_share_of_triples_with_a_majority() -> None:
    a = np.array([1, 1, 0, 1, 0, 0, 1], dtype=float)
    sums = np.array([[len(a), *[a.sum()] * 3]])
    expected = np.mean([sum(triple) >= 2 for triple in combinations(a, 3)])
    assert majority_of_three(sums) == pytest.approx(float(expected))


def test_fewer_than_three_others_are_no_reference() -> None:
    rows = [sample(j, 1, r, "1") for j in "ab" for r in range(3)]
    assert probed_verdicts(tidy(pd.DataFrame(rows)))["y"].isna().all()
    rows += [sample("b", 1, 3, "2")]
    found = probed_verdicts(tidy(pd.DataFrame(rows))).set_index([JUDGE, "replicate"])
    assert found.loc[("a", 0), "pool"] == 3
    assert found.loc[("a", 0), "y"] == pytest.approx(1.0)  # two of three chose 1


def test_it_is_unbiased_for_the_share_that_agrees() -> None:
    rng = np.random.default_rng(2)
    q, items = 0.6, 4000
    agrees = (rng.random((items, 5)) < q).astype(float)
    first = agrees.sum(axis=1)
    y = majority_of_three(np.stack([np.full(items, 5.0), first, first, first], axis=1))
    error = y.std(ddof=1) / np.sqrt(items)
    assert abs(y.mean() - (3 * q**2 - 2 * q**3)) < 3.3 * error


# --- which verdicts are compared -----------------------------------------------------------------


def own_and_swapped(swapped: str) -> pd.DataFrame:
    """Three judges under rubrics of their own, and a's also used by some of them."""
    rng = np.random.default_rng(11)
    rows = [
        sample(j, item, r, str(rng.choice(["1", "2", "3"])), rubric=n)
        for n, j in enumerate("abc")
        for item in range(4)
        for r in range(4)
    ]
    rows += [
        sample(j, item, r, "1", rubric=0, is_swap=True)
        for j in swapped
        for item in range(4)
        for r in range(4)
    ]
    return tidy(pd.DataFrame(rows))


@pytest.mark.parametrize("swapped", ["b", "bc"])
def test_verdicts_meet_others_under_the_same_rubric_where_swaps_have_it(swapped: str) -> None:
    frame = own_and_swapped(swapped)
    found = probed_verdicts(frame)
    for place, row in enumerate(frame.to_dict("records")):
        others = frame[
            (frame[JUDGE] != row[JUDGE])
            & (frame["evidence"] == row["evidence"])
            & (frame["replicate"] != row["replicate"])
        ]
        same = others[others["rubric"] == row["rubric"]]
        pool = same if len(same) else others[~others["is_swap"]]
        assert found["reference"].iloc[place] == (SAME_RUBRIC if len(same) else OWN_RUBRICS)
        assert found["pool"].iloc[place] == len(pool)
        chosen = [agreement(row["stages"], stages) for stages in pool["stages"]]
        assert found["y"].iloc[place] == pytest.approx(listed(chosen))
    assert set(found.loc[found[JUDGE] == "a", "reference"]) == {SAME_RUBRIC}
    assert most_telling(found) == OWN_RUBRICS  # four items are too few to compare them alone


def test_people_take_the_place_of_judges_where_three_labelled_an_item() -> None:
    frame = own_and_swapped("")
    given = {0: "123", 1: "112", 2: "33", 3: ""}  # the stages that raters gave, by item
    labels = pd.DataFrame(
        [
            {"tag": tag, "evidence": item, "rater": f"r{n}", "stage": int(stage)}
            for tag in frame["tag"].unique()
            for item, stages in given.items()
            for n, stage in enumerate(stages)
        ]
    )
    found = probed_verdicts(frame, labels)
    for row, y, pool, reference in zip(
        frame.to_dict("records"), found["y"], found["pool"], found["reference"], strict=True
    ):
        stages = given[row["evidence"]]
        assert (reference == PEOPLE) == (len(stages) == 3)
        if len(stages) == 3:
            assert pool == 3
            assert y == (stages.count(row["stages"]) >= 2)


def test_draws_of_a_shared_rubric_have_separate_pools() -> None:
    rows = [
        sample(j, 1, r, str(1 + draw), rubric=draw, rubric_draw=draw)
        for j in "ab"
        for draw in range(2)
        for r in range(4)
    ]
    found = probed_verdicts(tidy(pd.DataFrame(rows)))
    assert (found["reference"] == SAME_RUBRIC).all()
    assert found["y"].tolist() == [1.0] * 16
    assert found["pool"].tolist() == [3] * 16


def test_judges_with_their_own_rubrics_share_a_pool() -> None:
    rows = [sample(j, 1, r, "1", rubric=n) for n, j in enumerate("ab") for r in range(4)]
    found = probed_verdicts(tidy(pd.DataFrame(rows)))
    assert (found["reference"] == OWN_RUBRICS).all()
    assert found["y"].tolist() == [1.0] * 8


def test_pools_are_per_item_task_and_variant_with_each_call_once() -> None:
    rows = [
        sample(j, 1, r, "1", concept=concept, call_id=100 * n + 10 * ord(j) + r)
        for n, concept in enumerate(("x", "y"))
        for j in "ab"
        for r in range(4)
    ]
    twice = tidy(pd.DataFrame(rows + rows[:4]))
    found = probed_verdicts(twice)
    assert len(found) == 16
    assert found["pool"].tolist() == [3] * 16


# --- summaries -----------------------------------------------------------------------------------


def known(p: list[float], y: list[float], item: list[int]) -> pd.DataFrame:
    """Probed verdicts with their reference, as `probed_verdicts` gives them."""
    rows = pd.DataFrame({"p": p, "y": y, "evidence": item, "outcome": "probed", "size": 1})
    return rows.assign(judge="j", cluster="")


def test_samples_are_counted_by_outcome() -> None:
    rows = [sample(j, 1, r, "1") for j in "ab" for r in range(4)]
    rows += [
        sample("a", 1, 4, ""),
        sample("a", 1, 5, "", status="parse_failed"),
        sample("a", 1, 6, "1", probe=np.nan, probe_status="parse_failed"),
        sample("a", 1, 7, "1", probe=np.nan),
        sample("c", 2, 0, "1"),
    ]
    [found] = calibration(probed_verdicts(tidy(pd.DataFrame(rows)))).to_dict("records")
    counts = ["probed", "abstained", "unread", "probe_unread", "unprobed", "without_reference"]
    assert [found[name] for name in counts] == [9, 1, 1, 1, 1, 1]


def test_the_brier_score_is_that_of_the_event_itself() -> None:
    rng = np.random.default_rng(3)
    p, y = rng.random(12), rng.random(12)
    [found] = calibration(known(p.tolist(), y.tolist(), list(range(12)))).to_dict("records")
    if_true, if_false = (1 - p) ** 2, p**2
    assert found["brier"] == pytest.approx((y * if_true + (1 - y) * if_false).mean())
    assert found["bias"] == pytest.approx((p - y).mean())
    half = stats.t.ppf(0.975, 11) * (p - y).std(ddof=1) / np.sqrt(12)
    assert found["bias_high"] - found["bias_low"] == pytest.approx(2 * half)


def test_replicates_of_an_item_are_averaged_first() -> None:
    [found] = calibration(known([0.9, 0.9, 0.5], [0.5, 0.3, 0.5], [1, 1, 2])).to_dict("records")
    assert found["items"] == 2
    assert found["bias"] == pytest.approx((0.5 + 0.0) / 2)


def test_calibration_error_and_curve_by_hand() -> None:
    verdicts = known([0.95, 1.0, 0.9, 0.3, 0.35], [0.5, 0.6, 0.7, 0.4, 0.5], [1, 2, 3, 1, 2])
    [found] = calibration(verdicts).to_dict("records")
    gap_high, gap_low = (2.85 - 1.8) / 3, (0.65 - 0.9) / 2
    assert found["error"] == pytest.approx((3 * abs(gap_high) + 2 * abs(gap_low)) / 5)
    curve = reliability(verdicts)
    assert curve["bin"].tolist() == [0.3, 0.9]
    assert curve["stated"].tolist() == pytest.approx([0.325, 0.95])
    assert curve["y"].tolist() == pytest.approx([0.45, 0.6])
    assert curve["verdicts"].tolist() == [2, 3]


@each_row("edge", [round(0.1 * n, 1) for n in range(10)])
def test_a_probability_on_an_edge_is_in_the_bin_above(edge: float) -> None:
    assert reliability(known([edge], [0.5], [1]))["bin"].tolist() == [edge]


def test_hallucination_is_the_share_of_confident_verdicts_that_others_contradict() -> None:
    verdicts = known([0.9, 0.85, 0.8, 0.95, 0.9], [0.2, 0.5, 0.1, 0.8, 0.49], [1, 2, 3, 4, 5])
    [found] = calibration(verdicts).to_dict("records")
    assert found["hallucination"] == pytest.approx(2 / 4)  # .8 is not above .8
    assert found["hallucination_with_ties"] == pytest.approx(3 / 4)


def test_a_table_by_size_compares_at_equal_size() -> None:
    verdicts = probed_verdicts(random_panel(7, judges=4, items=6, replicates=5))
    found = calibration(verdicts, ["size"]).set_index("size")
    assert found["probed"].sum() == (verdicts["outcome"] == "probed").sum()
    wide = verdicts[(verdicts["size"] == 2) & verdicts["y"].notna()]
    by_item = (wide["p"] - wide["y"]).groupby(wide["evidence"]).mean()
    assert found.loc[2, "bias"] == pytest.approx(by_item.mean())
    assert found["bias"].isna()[0]  # abstentions


def test_an_answer_that_variants_share_is_held_against_the_mean_of_their_references() -> None:
    """Judge a was asked once for both variants; b agrees in one of them and not in the other."""
    rows = [
        sample("a", item, r, "1", probe_call_id=10 * item + r, **{"rubric.critic": critic})
        for critic in ("x", "y")
        for item in range(2)
        for r in range(4)
    ]
    rows += [
        sample("b", item, r, "1" if critic == "x" else "2", **{"rubric.critic": critic})
        for critic in ("x", "y")
        for item in range(2)
        for r in range(4)
    ]
    verdicts = probed_verdicts(tidy(pd.DataFrame(rows)))
    for order in (verdicts, verdicts[::-1]):
        found = calibration(order, [JUDGE]).set_index(JUDGE).loc["a"]
        assert found["probed"] == 16
        assert found["without_reference"] == 0
        assert found["bias"] == pytest.approx(0.9 - 0.5)
        assert reliability(order[order[JUDGE] == "a"])["verdicts"].tolist() == [8]


def test_without_probes_calibration_is_undefined() -> None:
    rows = [sample(j, 1, r, "1", probe=np.nan) for j in "ab" for r in range(4)]
    verdicts = probed_verdicts(tidy(pd.DataFrame(rows)))
    [found] = calibration(verdicts).to_dict("records")
    assert found["unprobed"] == 8
    assert all(np.isnan(found[name]) for name in ("bias", "brier", "error", "hallucination"))
    assert reliability(verdicts).empty


# --- coverage ------------------------------------------------------------------------------------


def test_the_interval_of_the_bias_covers_at_12_items() -> None:
    """Three judges choose stage 1 with an item's own probability q, and state .8."""
    rng = np.random.default_rng(4)
    panels, items, judges, replicates = 400, 12, 3, 4
    q = rng.beta(2, 2, (panels, items, 1, 1))
    one = rng.random((panels, items, judges, replicates)) < q
    at = np.indices(one.shape).reshape(4, -1)
    frame = pd.DataFrame(
        {
            "concept": at[0],
            "evidence": at[1],
            JUDGE: at[2].astype(str),
            "replicate": at[3],
            "stages": np.where(one, "1", "2").reshape(-1),
            "status": "scored",
            "n_stages": 2,
            "probe": 0.8,
        }
    )
    verdicts = probed_verdicts(tidy(frame.astype({"concept": str})))
    by_item = (verdicts["p"] - verdicts["y"]).groupby([verdicts["task"], verdicts["evidence"]])
    means = by_item.mean().to_numpy().reshape(panels, items)
    half = stats.t.ppf(0.975, items - 1) * means.std(axis=1, ddof=1) / np.sqrt(items)
    # The stated .8 less E[q M(q) + (1 - q) M(1 - q)], M(q) = 3q^2 - 2q^3, q from beta(2, 2).
    q = rng.beta(2, 2, 2_000_000)
    majority = 3 * q**2 - 2 * q**3
    truth = 0.8 - float((q * majority + (1 - q) * (1 - majority)).mean())
    hits = int((np.abs(means.mean(axis=1) - truth) <= half).sum())
    reach = stats.binomtest(hits, panels).proportion_ci(0.99, "wilson")
    assert reach.low <= 0.97
    assert reach.high >= 0.92
    first = verdicts[verdicts["task"] == verdicts["task"].iloc[0]]
    [found] = calibration(first).to_dict("records")
    row = means[int(frame["concept"].iloc[0])]
    assert found["bias"] == pytest.approx(row.mean())


@pytest.mark.simulation
@pytest.mark.parametrize("over", [0.25, 0.0])
@pytest.mark.parametrize(("items", "least"), [(12, 0.92), (40, 0.93)])
def test_intervals_of_brier_score_and_calibration_error_cover(
    items: int, least: float, over: float
) -> None:
    """Verdicts whose reference y scatters about q, stated as q and a quarter more, or as q."""
    rng = np.random.default_rng(items)

    def drawn(panels: int, items: int) -> pd.DataFrame:
        item = rng.normal(size=(panels, items, 1))
        q = 1 / (1 + np.exp(-(item + rng.normal(0, 0.7, (panels, items, 10)))))
        stated = np.clip(np.round(q + over + rng.normal(0, 0.05, q.shape), 2), 0, 1)
        panel, place, _ = (axis.ravel() for axis in np.indices(q.shape))
        columns = {"panel": panel, "evidence": panel * items + place, "outcome": "probed"}
        columns["cluster"] = ""
        return pd.DataFrame({**columns, "p": stated.ravel(), "y": rng.binomial(15, q).ravel() / 15})

    truth = calibration(drawn(1, 30_000)).iloc[0]
    found = calibration(drawn(120, items), ["panel"])
    for name in ("brier", "error"):
        held = (found[f"{name}_low"] <= truth[name]) & (found[f"{name}_high"] >= truth[name])
        reach = stats.binomtest(int(held.sum()), len(held)).proportion_ci(0.99, "wilson")
        assert reach.high >= least
        # An error of 0 may be held more often; the interval of a bounded mean is conservative.
        assert reach.low <= 0.97 or over == 0.0 or name == "brier"
