"""Scores and the leaderboard, against plain arithmetic and published intervals."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judge_gym.analysis.stats.intervals import SHARE, estimate
from judge_gym.records.outcomes import EvalResult, Failed, Inconclusive, Outcome, Passed
from judge_gym.suites import RunScore, leaderboard, run_score

KINDS: dict[str, Outcome] = {
    "p": Passed(),
    "f": Failed("tests", "x"),
    "i": Inconclusive("infrastructure", "x"),
    "r": Inconclusive("rate_limit", "x"),
}


def results(letters: str, usd: float | None = 0.5, seconds: float = 2.0) -> list[EvalResult]:
    """An eval per letter."""
    return [
        EvalResult("001-a", f"{n:03}-x", KINDS[letter], usd=usd, seconds=seconds)
        for n, letter in enumerate(letters)
    ]


def scored(
    letters: str,
    run: str = "r",
    ended: float = 0.0,
    complete: bool = True,
    model: str = "m",
    version: str = "v",
    usd: float | None = 0.5,
) -> RunScore:
    return run_score(
        results(letters, usd),
        run=run,
        model=model,
        condition="default",
        version=version,
        ended=ended,
        complete=complete,
    )


def test_inconclusive_evals_leave_the_denominator_and_are_shown() -> None:
    run = scored("ppfir")
    assert (run.passed, run.failed, run.score) == (2, 1, 2 / 3)
    assert run.inconclusive == {"infrastructure": 1, "rate_limit": 1}
    assert (run.usd, run.seconds) == (2.5, 2.0)


def test_a_run_without_a_conclusive_eval_has_no_score() -> None:
    run = scored("iii")
    assert run.score is None
    assert math.isnan(run.estimate.value)
    [row] = leaderboard([run])
    assert (row.runs, row.unscored, row.inconclusive) == (0, 1, 3)
    assert math.isnan(row.score.value) and math.isnan(row.sd)


@pytest.mark.parametrize("letters", ["ppf", "pppp", "ffff", "pfpfpfpfpi", "p"])
def test_a_single_run_has_clopper_and_pearsons_interval(letters: str) -> None:
    right, n = letters.count("p"), letters.count("p") + letters.count("f")
    low, high = proportion_confint(right, n, method="beta")
    found = scored(letters).estimate
    assert found.value == pytest.approx(right / n)
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)


def test_several_runs_are_clustered_by_eval() -> None:
    """The interval is over what each eval passed on average; runs do not count as more evals."""
    runs = ["ppffpfpp", "ppfffpfp", "pffpfpfp"]
    [row] = leaderboard([scored(text, f"r{n}", n) for n, text in enumerate(runs)])
    means = [sum(run[n] == "p" for run in runs) / 3 for n in range(8)]
    assert row.score[:3] == pytest.approx(estimate(means, scale=SHARE)[:3])
    scores = [run.count("p") / 8 for run in runs]
    assert row.sd == pytest.approx(statistics.pstdev(scores))
    assert row.score.n == 8


def test_the_mean_is_of_runs_also_where_evals_are_missing() -> None:
    [row] = leaderboard([scored("ppfi", "a"), scored("fffp", "b", 1)])
    assert row.score.value == pytest.approx((2 / 3 + 1 / 4) / 2)
    assert row.score.low < row.score.value < row.score.high


def test_few_evals_without_variance_leave_the_score_open() -> None:
    [row] = leaderboard([scored("pppp", "a"), scored("ffff", "b", 1)])
    assert (row.score.value, row.sd) == (0.5, 0.5)
    assert row.score.low < 0.25 and row.score.high > 0.75


def test_the_last_ten_complete_runs_count() -> None:
    old = [scored("ffff", f"old{n}", n) for n in range(5)]
    new = [scored("pppp", f"new{n}", 10 + n) for n in range(10)]
    unfinished = [scored("ffff", "open", 99, complete=False)]
    [row] = leaderboard([*new, *unfinished, *old])
    assert (row.runs, row.score.value, row.sd) == (10, 1.0, 0.0)


def test_an_unknown_price_is_null_and_not_0() -> None:
    [row] = leaderboard([scored("pf", usd=None)])
    assert row.usd is None
    [row] = leaderboard([scored("pf", "a", usd=None), scored("pf", "b", usd=2.0)])
    assert row.usd == 4.0
    mixed = [*results("p", 1.0), *results("f", None)]
    run = run_score(mixed, run="x", model="m", condition="e", version="v", ended=0)
    assert run.usd is None


def test_versions_are_not_mixed_and_the_best_comes_first() -> None:
    rows = leaderboard(
        [
            scored("pf", "1", model="a"),
            scored("pp", "2", model="b"),
            scored("ff", "3", model="b", version="w"),
            scored("ii", "4", model="c"),
        ]
    )
    assert [(row.version, row.model) for row in rows] == [
        ("v", "b"),
        ("v", "a"),
        ("v", "c"),
        ("w", "b"),
    ]


def test_categories_add_up() -> None:
    made = [EvalResult("001-a", "1", Passed()), EvalResult("002-b", "1", Failed("lint", ""))]
    made.append(EvalResult("002-b", "2", Inconclusive("judge_error", "")))
    run = run_score(made, run="x", model="m", condition="e", version="v", ended=0)
    assert run.categories() == {"001-a": (1, 1), "002-b": (0, 1)}


RUNS = st.lists(
    st.builds(
        scored,
        st.text(st.sampled_from("pfir"), max_size=6),
        st.sampled_from([f"run{n}" for n in range(20)]),
        st.integers(0, 5).map(float),
        st.booleans(),
        st.sampled_from(["m", "n"]),
        st.sampled_from(["v", "w"]),
        st.sampled_from([None, 0.1, 0.7]),
    ),
    max_size=40,
)


@given(RUNS, st.randoms(use_true_random=False))
def test_leaderboard_does_not_depend_on_the_order_of_runs(
    runs: list[RunScore], rng: random.Random
) -> None:
    distinct = list({run.run: run for run in runs}.values())
    shuffled = rng.sample(distinct, len(distinct))
    assert repr(leaderboard(shuffled)) == repr(leaderboard(distinct))


@given(st.text(st.sampled_from("pfir"), max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_results_does_not_matter(letters: str, rng: random.Random) -> None:
    rows = results(letters)
    shuffled = rng.sample(rows, len(rows))
    about = {"run": "r", "model": "m", "condition": "e", "version": "v", "ended": 0.0}
    assert run_score(shuffled, **about) == run_score(rows, **about)  # type: ignore[arg-type]
