"""Effects of length: other libraries, a penalised likelihood written out, and simulation."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import optimize, special

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.beside_people import column_effects
from judge_gym.analysis.judges.length import (
    column_effect,
    effect_sentence,
    firth,
)
from judge_gym.analysis.stats.intervals import Estimate, Floats
from judge_gym.errors import DesignError

Drawn = tuple[Floats, Floats, Floats, npt.NDArray[np.int64]]


def drawn(
    rng: np.random.Generator,
    *,
    items: int = 200,
    effect: float = 0.5,
    passed: float = 0.5,
    sharpness: float = 3.0,
    size: int = 1,
) -> tuple[Drawn, Floats]:
    """Verdicts, lengths, labels and clusters, and the slope of each item's chance of a pass.

    Better texts are longer, and items of a cluster resemble each other in all of it.
    """
    count = items // size
    codes = np.repeat(np.arange(count), size)
    shared = rng.normal(size=(3, count))[:, codes] * np.array([[0.7], [0.7], [0.5]]) * (size > 1)
    x = shared[0] + rng.normal(size=items)
    quality = 0.5 * x + shared[1] + rng.normal(size=items)
    label = quality > np.quantile(quality, 1 - passed)
    chance = special.expit(-sharpness / 2 + sharpness * label + effect * x + shared[2])
    verdict = (rng.random(items) < chance).astype(float)
    lengths = np.round(np.exp2(9 + x))
    return (verdict, lengths, label.astype(float), codes), chance * (1 - chance) * effect


# --- the regression ------------------------------------------------------------------------------


def test_coefficients_maximise_the_penalised_likelihood() -> None:
    (y, lengths, label, _), _ = drawn(np.random.default_rng(1), items=40)
    matrix = np.column_stack([np.ones(40), np.log2(lengths) - 9, label])

    def negative(coefficients: Floats) -> float:
        chance = special.expit(matrix @ coefficients)
        information = (matrix.T * (chance * (1 - chance))) @ matrix
        likelihood = special.xlogy(y, chance) + special.xlogy(1 - y, 1 - chance)
        return -float(likelihood.sum() + np.linalg.slogdet(information)[1] / 2)

    best = optimize.minimize(negative, np.zeros(3), tol=1e-10).x
    assert firth(y, matrix, np.ones((1, 40)))[0] == pytest.approx(best, abs=1e-4)


def test_coefficients_stay_finite_where_verdicts_follow_labels_without_exception() -> None:
    label = np.repeat([0.0, 1.0], 20)
    matrix = np.column_stack([np.ones(40), label])
    # Of a two-by-two table, Firth's estimate adds half an observation to each cell.
    expected = [np.log(0.5 / 20.5), 2 * np.log(20.5 / 0.5)]
    assert firth(label, matrix, np.ones((1, 40)))[0] == pytest.approx(expected)


def test_many_fits_are_those_without_the_rows() -> None:
    (y, lengths, label, _), _ = drawn(np.random.default_rng(2), items=40)
    matrix = np.column_stack([np.ones(40), np.log2(lengths) - 9, label])
    keep = 1.0 - np.eye(40)[:5]
    some = [firth(np.delete(y, k), np.delete(matrix, k, 0), np.ones((1, 39)))[0] for k in range(5)]
    assert firth(y, matrix, keep) == pytest.approx(np.stack(some), abs=1e-6)


def test_the_marginal_effect_is_that_of_statsmodels_on_many_items() -> None:
    (y, lengths, label, _), slopes = drawn(np.random.default_rng(3), items=3_000)
    matrix = np.column_stack([np.ones(3_000), np.log2(lengths), label])
    margin = sm.Logit(y, matrix).fit(disp=0).get_margeff()
    effect = column_effect(y, lengths, label, np.arange(3_000)).effect
    assert effect.value == pytest.approx(margin.margeff[0], abs=2e-4)
    assert effect.value == pytest.approx(slopes.mean(), abs=0.02)
    assert (effect.high - effect.low) / 4 == pytest.approx(margin.margeff_se[0], rel=0.15)


def test_stages_have_the_coefficient_of_least_squares() -> None:
    (y, lengths, label, codes), _ = drawn(np.random.default_rng(4))
    matrix = np.column_stack([np.ones(200), np.log2(lengths), label])
    fit = sm.OLS(y, matrix).fit()
    effect = column_effect(y, lengths, label, codes, is_rate=False)
    assert effect.effect.value == pytest.approx(fit.params[1])
    assert not effect.failed.known


def test_other_numbers_count_by_standard_deviation() -> None:
    (y, lengths, label, codes), _ = drawn(np.random.default_rng(5))
    warm = np.log2(lengths)
    effect = column_effect(y, warm, label, codes, column="warmth", is_rate=False)
    fit = sm.OLS(y, np.column_stack([np.ones(200), warm, label])).fit()
    assert effect.unit == "standard deviation"
    assert effect.effect.value == pytest.approx(fit.params[1] * warm.std(ddof=1))


def test_failed_and_passed_items_have_effects_of_their_own() -> None:
    (y, lengths, label, codes), _ = drawn(np.random.default_rng(6), items=400, passed=0.3)
    whole = column_effect(y, lengths, label, codes)
    passed = label == 1
    alone = column_effect(y[passed], lengths[passed], label[passed], codes[passed])
    assert whole.passed == alone.effect
    few = column_effect(y[passed][:19], lengths[passed][:19], label[passed][:19], codes[:19])
    assert not few.passed.known


# --- sentences -----------------------------------------------------------------------------------


def test_a_clear_effect_is_told_in_points_per_doubling() -> None:
    data, _ = drawn(np.random.default_rng(7), items=600, effect=1.0)
    effect = column_effect(*data)
    value, low, high = (f"{100 * part:.0f}" for part in effect.effect[:3])
    assert effect_sentence(effect, "pass") == (
        f"Length: verdicts are “pass” {value} points [{low}, {high}] more often per doubling, at "
        "equal label of people."
    )
    fewer, lengths, label, codes = data
    opposite = column_effect(1 - fewer, lengths, 1 - label, codes)
    assert f"{value} points [{low}, {high}] less often" in effect_sentence(opposite, "pass")


def test_without_an_effect_it_is_not_clear_yet() -> None:
    data, _ = drawn(np.random.default_rng(8))
    effect = replace(column_effect(*data), effect=Estimate(0.03, -0.021, 0.08, 200))
    assert effect_sentence(effect) == (
        "Length: not clear yet, +3 points [-2, +8] per doubling, at equal label of people."
    )


def test_without_labels_length_cannot_be_told_from_quality() -> None:
    (y, lengths, _, codes), _ = drawn(np.random.default_rng(9))
    effect = column_effect(y, lengths, np.full(200, np.nan), codes)
    assert effect_sentence(effect) == ("Length: cannot be told from quality: label 60 items.")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"numbers": np.full(60, 5.0)}, "all items have the same number"),
        ({"positive": np.repeat([0.0, 1.0], 30)}, "fewer than 5 verdicts differ"),
        ({"clusters": np.repeat([0, 1, 2], 20)}, "the numbers differ between too few clusters"),
        ({"numbers": np.where(np.arange(60) < 15, 5.0, np.nan)}, "needs 20 labelled items"),
    ],
)
def test_why_there_is_no_interval_is_told(change: dict[str, Any], reason: str) -> None:
    rng = np.random.default_rng(10)
    data: dict[str, Any] = {
        "positive": rng.integers(0, 2, 60).astype(float),
        "numbers": rng.integers(100, 900, 60).astype(float),
        "labels": np.repeat([0.0, 1.0], 30),
        "clusters": np.arange(60),
    }
    effect = column_effect(**(data | change))
    assert effect.withheld.startswith(reason)
    assert not effect.effect.known
    assert reason in effect_sentence(effect)


# --- frames --------------------------------------------------------------------------------------


def judged(data: Drawn, **columns: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A tidy frame of one judge, and people's labels."""
    verdict, lengths, label, codes = data
    items = np.arange(len(verdict))
    frame = pd.DataFrame({"judge.model": "j", "tag": "t", "evidence": items, "replicate": 0})
    frame = frame.assign(status="scored", stages=(1 + verdict.astype(int)).astype(str), n_stages=2)
    frame = frame.assign(length=lengths, cluster=codes.astype(str), **columns)
    rated = pd.DataFrame({"tag": "t", "evidence": items, "rater": "a", "stage": 1 + label})
    return tidy(frame), rated.astype({"stage": int})


def test_a_frame_gives_the_effect_of_its_arrays() -> None:
    data, _ = drawn(np.random.default_rng(11), size=5)
    frame, labels = judged(data)
    frame["length"] *= 2  # doublings from any length on are the same
    [effect] = column_effects(frame, labels, positive="2").values()
    assert effect.effect.value == pytest.approx(column_effect(*data).effect.value)
    assert (effect.items, effect.withheld) == (200, "")
    assert column_effects(frame, labels.iloc[:0]) == {}


def test_any_numeric_column_can_be_named() -> None:
    (verdict, lengths, label, codes), _ = drawn(np.random.default_rng(18), size=5)
    frame, labels = judged((verdict, lengths, label, codes), warmth=np.log2(lengths))
    [effect] = column_effects(frame, labels, column="warmth", positive="2").values()
    alone = column_effect(verdict, np.log2(lengths), label, codes, column="warmth")
    assert (effect.column, effect.unit) == ("warmth", "standard deviation")
    assert effect.effect.value == pytest.approx(alone.effect.value)


def test_pairs_are_left_out() -> None:
    data, _ = drawn(np.random.default_rng(12))
    assert column_effects(*judged(data, pair=True)) == {}


def test_a_column_must_exist_and_hold_numbers() -> None:
    data, _ = drawn(np.random.default_rng(13))
    frame, labels = judged(data, source="web")
    with pytest.raises(DesignError, match="no column 'words'"):
        column_effects(frame, labels, column="words")
    with pytest.raises(DesignError, match="'source' is not of numbers"):
        column_effects(frame, labels, column="source")


# --- coverage ------------------------------------------------------------------------------------

FILES = 200


@pytest.mark.simulation
@pytest.mark.parametrize("effect", [0.0, 0.5])
@pytest.mark.parametrize("passed", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize(("items", "sharpness"), [(60, 3.0), (200, 3.0), (200, 6.0)])
def test_intervals_cover_the_marginal_effect(
    items: int, sharpness: float, size: int, passed: float, effect: float
) -> None:
    world = {"effect": effect, "passed": passed, "sharpness": sharpness, "size": size}
    _, slopes = drawn(np.random.default_rng(14), items=100_000, **world)  # type: ignore[arg-type]
    rng = np.random.default_rng(15)
    hits = []
    for _ in range(FILES):
        data, _ = drawn(rng, items=items, **world)  # type: ignore[arg-type]
        estimate = column_effect(*data).effect
        if estimate.known:
            hits.append(estimate.low <= slopes.mean() <= estimate.high)
    assert np.mean(hits) > 0.93 - 2.5 * np.sqrt(0.93 * 0.07 / len(hits))


@pytest.mark.simulation
def test_a_real_effect_of_length_is_mostly_seen_at_200_labels() -> None:
    rng = np.random.default_rng(16)
    clear = [column_effect(*drawn(rng, effect=0.6)[0]).is_clear for _ in range(FILES)]
    assert np.mean(clear) > 0.7
