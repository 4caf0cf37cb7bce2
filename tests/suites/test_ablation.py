"""What leaving a guideline out does, with known effects and known noise."""

import math

import numpy as np
import pytest
from scipy import stats

from judge_gym.errors import DesignError
from judge_gym.records.outcomes import EvalResult, Failed, Inconclusive, Passed
from judge_gym.suites import Condition, ablate, ablations

GUIDELINES = {"Types": "a", "Style": "b", "Errors": "c"}


def drawn(rates: list[float], replicates: int, seed: int) -> list[EvalResult]:
    rng = np.random.default_rng(seed)
    return [
        EvalResult(
            "001-a",
            f"{n:03}-x",
            Passed() if rng.random() < rate else Failed("tests", ""),
            replicate=replicate,
        )
        for n, rate in enumerate(rates)
        for replicate in range(replicates)
    ]


def test_one_section_is_left_out_at_a_time() -> None:
    made = ablations(GUIDELINES)
    assert [one.name for one in made] == ["without Types", "without Style", "without Errors"]
    assert [list(one.kept(GUIDELINES)) for one in made] == [
        ["Style", "Errors"],
        ["Types", "Errors"],
        ["Types", "Style"],
    ]
    assert [one.without for one in ablations(GUIDELINES, ["Style"])] == [("Style",)]
    with pytest.raises(DesignError, match="unknown section 'Stile'"):
        ablations(GUIDELINES, ["Stile"])
    assert Condition("x", guidelines=False).kept(GUIDELINES) == {}


def test_a_large_effect_is_a_regression_and_no_effect_is_none() -> None:
    rates = [0.9] * 12
    base = drawn(rates, 8, 1)
    effects = ablate(
        base, {"without Types": drawn([0.2] * 12, 8, 2), "without Style": drawn(rates, 8, 3)}
    )
    hurt, same = effects
    assert (hurt.verdict, same.verdict) == ("regression", "no effect shown")
    assert hurt.difference.high < 0
    assert hurt.regressions and not hurt.improvements
    assert any(change.beyond_noise for change in hurt.regressions)
    assert not any(change.beyond_noise for change in same.changes)
    assert hurt.p <= hurt.q


def test_an_improvement_is_one() -> None:
    [effect] = ablate(drawn([0.1] * 12, 8, 1), {"x": drawn([0.9] * 12, 8, 2)})
    assert effect.verdict == "improvement"
    assert len(effect.improvements) == 12


def test_a_flip_of_one_replicate_is_within_noise() -> None:
    base = drawn([1.0] * 12, 1, 1)
    other = drawn([1.0] * 11 + [0.0], 1, 2)
    [effect] = ablate(base, {"x": other})
    [change] = effect.regressions
    assert (change.eval, change.base, change.under) == ("001-a/011-x", 1.0, 0.0)
    assert not change.beyond_noise
    assert effect.verdict == "no effect shown"


def test_changes_are_fishers_and_the_difference_is_paired() -> None:
    base, under = drawn([0.7] * 6, 5, 4), drawn([0.4] * 6, 5, 5)
    [effect] = ablate(base, {"x": under})

    def passed(rows: list[EvalResult], path: str) -> int:
        return sum(row.outcome.kind == "passed" for row in rows if row.path == path)

    for change in effect.changes:
        was, now = passed(base, change.eval), passed(under, change.eval)
        table = [[was, 5 - was], [now, 5 - now]]
        assert change.p == pytest.approx(stats.fisher_exact(table).pvalue)
    differences = [change.under - change.base for change in effect.changes]
    expected = stats.ttest_1samp(differences, 0).confidence_interval()
    assert effect.difference.value == pytest.approx(np.mean(differences))
    assert effect.difference.low == pytest.approx(expected.low)


def test_inconclusive_replicates_are_no_failures() -> None:
    base = drawn([1.0] * 3, 2, 1)
    broken = [EvalResult("001-a", "000-x", Inconclusive("rate_limit", ""))]
    [effect] = ablate(base, {"x": [*broken, *drawn([1.0] * 3, 2, 2)[2:]]})
    assert effect.unpaired == ("001-a/000-x",)
    assert [change.eval for change in effect.changes] == ["001-a/001-x", "001-a/002-x"]
    assert effect.regressions == ()


def test_without_effects_few_are_found() -> None:
    """The false alarms of 60 ablations of three sections, at 5 %."""
    alarms = 0
    for seed in range(60):
        base = drawn([0.5] * 12, 4, 10 * seed)
        effects = ablate(base, {str(n): drawn([0.5] * 12, 4, 10 * seed + n) for n in (1, 2, 3)})
        alarms += any(effect.verdict != "no effect shown" for effect in effects)
        assert not any(math.isnan(effect.q) for effect in effects)
    assert alarms <= stats.binom.ppf(0.999, 60, 0.08)


def test_the_interval_of_a_difference_keeps_to_what_shares_allow() -> None:
    base, under = drawn([1, 1, 1], 3, 0), drawn([0, 0, 1], 3, 1)
    [effect] = ablate(base, {"without": under})
    assert effect.difference.value == pytest.approx(-2 / 3)
    assert -1 <= effect.difference.low < -2 / 3 < effect.difference.high <= 1
