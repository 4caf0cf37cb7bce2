"""Judges against people: a plain form of the test, published numbers, closed forms, simulation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.frames import ordinal, tidy
from judge_gym.analysis.judges.people import (
    alt_test,
    alt_test_raters,
    labelled,
    majority_agreement,
    prediction_powered,
    prediction_powered_mean,
    rogan_gladen,
)
from judge_gym.analysis.stats.intervals import UNBOUNDED, Floats, estimate
from judge_gym.errors import DesignError


def verdicts(stages: Sequence[object], *, judge: str = "j", **more: Any) -> pd.DataFrame:
    """A tidy frame: the judge's verdict on items 0, 1, ...; replicates are divided by a slash."""
    rows = [
        {"judge.model": judge, "tag": "t", "evidence": item, "replicate": r, "n_stages": 4}
        | {"status": "scored", "stages": chosen}
        | more
        for item, each in enumerate(stages)
        for r, chosen in enumerate(str(each).split("/"))
    ]
    return tidy(pd.DataFrame(rows))


def labels(by_rater: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """What raters say of items 0, 1, ...; 0 is nothing."""
    rows = [
        {"tag": "t", "evidence": item, "rater": rater, "stage": stage}
        for rater, stages in by_rater.items()
        for item, stage in enumerate(stages)
        if stage
    ]
    return pd.DataFrame(rows)


def only(found: pd.DataFrame) -> dict[str, Any]:
    [row] = found.to_dict("records")
    return {str(name): value for name, value in row.items()}


# --- labels --------------------------------------------------------------------------------------


def test_labels_go_to_the_cells_of_their_experiment() -> None:
    frame = verdicts(["1", "2"])
    given = pd.concat([labels({"ann": [1, 2]}), labels({"bob": [3, 3]}).assign(tag="elsewhere")])
    assert labelled(frame, given)["rater"].tolist() == ["ann", "ann"]


def test_a_stage_beyond_the_scale_is_refused() -> None:
    with pytest.raises(DesignError, match="stage 5 by rater 'ann'; choose 1 to 4"):
        labelled(verdicts(["1"]), labels({"ann": [5]}))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DesignError, match="no column 'rater'"):
        labelled(verdicts(["1"]), labels({"ann": [1]}).drop(columns="rater"))


def test_without_labels_there_are_tables_without_rows() -> None:
    frame, none = verdicts(["1", "2"]), labels({"a": [1]}).iloc[:0]
    assert majority_agreement(frame, none).empty
    assert alt_test(frame, none).empty
    assert prediction_powered(ordinal(frame), none).empty


def test_agreement_with_the_majority_by_hand() -> None:
    frame = verdicts(["1/1/2/1", "3 4", "2", "4"])
    given = labels({"a": [1, 3, 2, 1], "b": [1, 3, 3, 1], "c": [2, 1, 0, 1]})
    found = only(majority_agreement(frame, given))
    assert found["value"] == pytest.approx((0.75 + 0.5 + 0.0) / 3)
    assert (found["items"], found["tied"], found["raters"]) == (3, 1, 3)


# --- the alternative annotator test --------------------------------------------------------------


def plain_alt_test(
    judge: list[int], raters: dict[str, list[int]], ordered: bool, epsilon: float
) -> tuple[float, float]:
    """Winning rate and advantage, written out: one rater left out, the others as the measure."""

    def score(stage: int, others: list[int]) -> float:
        if ordered:
            return -float(np.sqrt(np.mean([(stage - other) ** 2 for other in others])))
        return float(np.mean([stage == other for other in others]))

    p_values, advantages = [], []
    for name, own in raters.items():
        rater_wins, judge_wins = [], []
        for item, stage in enumerate(own):
            others = [said[item] for other, said in raters.items() if other != name and said[item]]
            if stage and others:
                mine, its = score(stage, others), score(judge[item], others)
                rater_wins.append(float(mine >= its - 1e-12))
                judge_wins.append(float(its >= mine - 1e-12))
        gap = np.array(rater_wins) - np.array(judge_wins)
        t = (gap.mean() - epsilon) / (gap.std(ddof=1) / np.sqrt(len(gap)))
        p_values.append(float(stats.t.cdf(t, len(gap) - 1)))
        advantages.append(float(np.mean(judge_wins)))
    m = len(p_values)
    harmonic = sum(1 / k for k in range(1, m + 1))
    ranked = sorted(p_values)
    passing = [k for k in range(1, m + 1) if ranked[k - 1] <= k / m * 0.05 / harmonic]
    return max(passing, default=0) / m, float(np.mean(advantages))


@pytest.mark.parametrize("kind", ["ordinal", "nominal"])
@pytest.mark.parametrize(("annotators", "epsilon"), [("experts", 0.2), ("crowd", 0.1)])
def test_the_alt_test_is_the_plain_one(kind: str, annotators: Any, epsilon: float) -> None:
    rng = np.random.default_rng(11)
    for noise in (0.2, 0.5, 0.9):
        truth = rng.integers(1, 5, 60)

        def noisy(share: float, truth: npt.NDArray[np.int64] = truth) -> list[int]:
            return [int(x) for x in np.where(rng.random(60) < share, rng.integers(1, 5, 60), truth)]

        raters = {name: noisy(0.4) for name in "abcd"}
        raters["d"] = [stage if item % 3 else 0 for item, stage in enumerate(raters["d"])]
        judge = noisy(noise)
        found = only(alt_test(verdicts(judge, rubric_kind=kind), labels(raters), annotators))
        omega, advantage = plain_alt_test(judge, raters, kind == "ordinal", epsilon)
        assert found["omega"] == pytest.approx(omega)
        assert found["advantage"] == pytest.approx(advantage)
        assert found["passed"] is (omega >= 0.5)
        assert found["missing"] == ""


def test_a_tie_is_a_win_for_both() -> None:
    frame = verdicts(["2"] * 30)
    each = alt_test_raters(frame, labels({name: [2] * 30 for name in "abc"}))
    assert each["advantage"].tolist() == [1.0] * 3
    assert each["difference"].tolist() == [0.0] * 3
    assert each["p"].tolist() == [0.0] * 3  # no worse than any rater on any item
    assert only(alt_test(frame, labels({name: [2] * 30 for name in "abc"})))["passed"] is True


def test_a_judge_that_is_always_farther_off_fails() -> None:
    found = only(alt_test(verdicts(["4"] * 30), labels({name: [1] * 30 for name in "abc"})))
    assert (found["omega"], found["advantage"], found["passed"]) == (0.0, 0.0, False)


@pytest.mark.parametrize(
    ("items", "raters", "enough"), [(29, "abc", 0), (30, "ab", 2), (30, "a", 0)]
)
def test_missing_data_for_the_alt_test_are_named(items: int, raters: str, enough: int) -> None:
    given = labels({name: [1] * items for name in raters})
    found = only(alt_test(verdicts(["1"] * items), given))
    assert found["passed"] is None
    assert np.isnan(found["omega"])
    assert found["missing"].startswith(f"{enough} raters share at least 30 judged items")


@pytest.mark.simulation
def test_false_positive_rate_of_the_alt_test() -> None:
    """Raters agree; a judge that is off on a fifth of the items is just as bad as may be (.2)."""
    rng = np.random.default_rng(11)
    judges, items = 300, 40
    given = labels({rater: [2] * items for rater in ("ann", "bob", "cid")})

    def passed(right: float) -> float:
        judge, item = (axis.ravel() for axis in np.indices((judges, items)))
        frame = pd.DataFrame(
            {
                "judge.model": [f"j{number}" for number in judge],
                "evidence": item,
                "stages": np.where(rng.random(len(item)) < right, "2", "4"),
                **{"tag": "t", "replicate": 0, "n_stages": 4, "status": "scored"},
            }
        )
        found = alt_test(tidy(frame), given)
        assert len(found) == judges
        return float(found["passed"].astype(bool).mean())

    reach = stats.binomtest(round(passed(0.8) * judges), judges).proportion_ci(0.99, "wilson")
    assert reach.low <= 0.06
    assert passed(1.0) == 1.0


def test_unknown_annotators_are_refused() -> None:
    with pytest.raises(DesignError, match="choose 'experts', 'skilled' or 'crowd'"):
        alt_test(verdicts(["1"]), labels({"a": [1]}), "wizards")  # type: ignore[arg-type]


# --- the prediction-powered mean -----------------------------------------------------------------


def test_the_estimate_is_the_rectified_mean_of_predictions() -> None:
    rng = np.random.default_rng(12)
    truth = rng.normal(size=15)
    predicted, elsewhere = 2 * truth + rng.normal(size=15), 2.2 * rng.normal(size=80)
    found, weight = prediction_powered_mean(truth, predicted, elsewhere)
    assert 0 < weight < 1
    rectifier = np.mean(truth - weight * predicted)
    assert found.value == pytest.approx(weight * elsewhere.mean() + rectifier)

    def variance(w: float) -> float:
        """What the interval is made of, up to degrees of freedom."""
        pooled = np.concatenate([predicted, elsewhere]).var(ddof=1)
        own = -2 * w * np.cov(truth, predicted)[0, 1] + w**2 * pooled
        return float(w**2 * pooled / 80 + own / 15)

    grid = np.linspace(0, 1, 1001)
    assert weight == pytest.approx(grid[np.argmin([variance(w) for w in grid])], abs=1e-3)


def test_useless_predictions_leave_the_labels_unchanged() -> None:
    truth = np.array([0.1, 0.5, 0.4, 0.9, 0.2])
    found, weight = prediction_powered_mean(truth, -truth, np.array([0.3, 0.1, 0.6]))
    assert weight == 0
    assert found.value == pytest.approx(truth.mean())
    assert prediction_powered_mean(truth, truth, np.array([])) == (
        estimate(truth, scale=UNBOUNDED),
        0.0,
    )


def test_verdicts_beyond_the_labels_sharpen_peoples_mean() -> None:
    rng = np.random.default_rng(13)
    truth = rng.integers(1, 5, 120)
    frame = verdicts(truth.tolist())
    given = labels({name: truth[:12].tolist() for name in "ab"})
    found = only(prediction_powered(ordinal(frame), given))
    assert (found["labelled"], found["unlabelled"]) == (12, 108)
    assert found["people"] == pytest.approx((truth[:12].mean() - 1) / 3)
    assert found["judge"] == pytest.approx((truth.mean() - 1) / 3)
    assert found["high"] - found["low"] < 0.6 * (found["people_high"] - found["people_low"])


@pytest.mark.parametrize("likeness", [0.0, 0.6, 0.95])
def test_its_interval_covers_at_12_labels(likeness: float) -> None:
    rng = np.random.default_rng(14)
    hits = 0
    for _ in range(panels := 1000):
        predicted = rng.normal(size=112)
        truth = likeness * predicted + np.sqrt(1 - likeness**2) * rng.normal(size=112)
        found, _ = prediction_powered_mean(truth[:12], predicted[:12], predicted[12:])
        hits += found.low <= 0 <= found.high
    reach = stats.binomtest(hits, panels).proportion_ci(0.99, "wilson")
    assert reach.low <= 0.97
    assert reach.high >= 0.92


# --- corrected prevalence ------------------------------------------------------------------------


def decisions(right: int, n: int) -> Floats:
    return np.repeat([1.0, 0.0], [right, n - right])


def test_a_herd_with_an_imperfect_test() -> None:
    """23 of 150 cows test positive; sensitivity .96, specificity .89: 5.1 per 100 are ill."""
    found = rogan_gladen(decisions(23, 150), decisions(96, 100), decisions(89, 100))
    assert found.value == pytest.approx(0.051, abs=5e-4)
    assert found.low == 0
    assert 0.10 < found.high < 0.20


def test_with_decisions_it_is_the_binomial_interval_of_lang_and_reiczigel() -> None:
    x, n, a, m, b, k = 60, 200, 45, 50, 52, 60
    z = stats.norm.ppf(0.975)
    p, se, sp = (x + z**2 / 2) / (n + z**2), (a + 1) / (m + 2), (b + 1) / (k + 2)
    sharp = se + sp - 1
    middle = (p + sp - 1) / sharp
    v_se, v_sp = se * (1 - se) / (m + 2), sp * (1 - sp) / (k + 2)
    error = np.sqrt(p * (1 - p) / (n + z**2) + v_se * middle**2 + v_sp * (1 - middle) ** 2) / sharp
    shift = 2 * z**2 * (middle * v_se - (1 - middle) * v_sp)
    found = rogan_gladen(decisions(x, n), decisions(a, m), decisions(b, k))
    assert found.low == pytest.approx(middle + shift - z * error)
    assert found.high == pytest.approx(middle + shift + z * error)


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    found = rogan_gladen(decisions(5, 10), decisions(5, 10), decisions(5, 10))
    assert np.isnan(found.value)
    assert not rogan_gladen(decisions(5, 10), decisions(9, 10), np.array([])).known


@pytest.mark.parametrize("replicates", [1, 5])
def test_the_interval_of_a_corrected_prevalence_covers(replicates: int) -> None:
    """Judges decide by replicate; the items' own difficulty makes replicates alike."""
    rng = np.random.default_rng(15)
    hits, prevalence = 0, 0.3

    def called(ill: npt.NDArray[np.bool_]) -> Floats:
        chance = np.where(ill, rng.beta(8, 2, len(ill)), rng.beta(2, 8, len(ill)))
        share: Floats = rng.binomial(replicates, chance) / replicates
        return share

    for _ in range(panels := 1000):
        ill = rng.random(200) < prevalence
        known = rng.random(60) < prevalence
        errors = called(known)
        found = rogan_gladen(called(ill), errors[known], 1 - errors[~known])
        hits += found.low <= prevalence <= found.high
    reach = stats.binomtest(hits, panels).proportion_ci(0.99, "wilson")
    assert reach.low <= 0.97
    assert reach.high >= 0.93
