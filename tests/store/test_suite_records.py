"""Suite runs in the store: what goes in comes out, results are only added, boards are derived."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge_gym.errors import NotFoundError
from judge_gym.lab.suite_reports import reports
from judge_gym.records.outcomes import (
    INCONCLUSIVE,
    EvalResult,
    EvalSource,
    Failed,
    Inconclusive,
    Outcome,
    Passed,
    StepResult,
)
from judge_gym.store import Store, SuiteRun
from judge_gym.suites import RunScore, leaderboard
from stores import fresh

EVALS = ("001-a/001-x", "001-a/002-y", "002-b/001-z")
SOURCES = [
    EvalSource(category, name, f"Do {name}.", {"a.py": "A = 1\n"}, {"t.py": "..."}, gaps="none")
    for category, name in (path.split("/") for path in EVALS)
]
OUTCOMES: list[Outcome] = [
    Passed(),
    Failed("tests", "1 of 2 tests failed"),
    *(Inconclusive(why, "no luck", "generation") for why in INCONCLUSIVE),
]


def make_run(
    store: Store, model: str = "sim:coder-weak", series: str = "0", replicates: int = 1
) -> SuiteRun:
    store.suites.save_tasks("tiny", "v1", SOURCES)
    return store.suites.save_run(
        "tiny", "v1", model, "default", {"without": ()}, series, replicates=replicates, evals=EVALS
    )


def result(path: str, outcome: Outcome, replicate: int = 0, usd: float | None = 0.5) -> EvalResult:
    category, name = path.split("/")
    return EvalResult(category, name, outcome, replicate=replicate, usd=usd, seconds=2.0)


def test_evals_of_a_run_have_replicates_of_their_own(template: Path) -> None:
    with fresh(template) as store:
        run = make_run(store)
        again = store.suites.save_run(
            "tiny", "v1", run.model, "default", {"without": ()}, "0", replicates=3, evals=EVALS[:1]
        )
        assert again.id == run.id
        assert dict(again.replicates_of) == {EVALS[0]: 3, EVALS[1]: 1, EVALS[2]: 1}
        assert (again.targets, again.replicates, again.evals) == (5, 3, EVALS)


def test_a_result_loads_with_steps_and_files(template: Path) -> None:
    whole = EvalResult(
        "001-a",
        "001-x",
        Failed("lint", "exit code 1"),
        steps=(
            StepResult("filesystem", "passed", 0.0),
            StepResult("lint", "failed", 0.25, "exit code 1", "a.py:1: unused\n\u00e9 \x00"),
            StepResult("tests", "passed", 1.5, output="ok", tests_passed=3, tests_collected=3),
        ),
        files={"a.py": "import os\n", "b/c.txt": "text"},
        replicate=2,
        seconds=1.25,
        usd=None,
        isolation="bubblewrap",
    )
    with fresh(template) as store:
        run = make_run(store, replicates=3)
        found = store.suites.find_result(store.suites.save_result(run, whole))
        # No database takes a zero character.
        lint = replace(whole.steps[1], output="a.py:1: unused\n\u00e9 \ufffd")
        assert found.result == replace(whole, steps=(whole.steps[0], lint, whole.steps[2]))
        assert found.run_id == run.id
        assert found.at.tzinfo is not None
        [shallow] = store.suites.results(run.id)[run.id]
        assert shallow.result == replace(whole, steps=(), files={})
        assert store.suites.source(run, "001-a", "001-x") == SOURCES[0]


def test_targets_are_raised_and_never_lowered(template: Path) -> None:
    with fresh(template) as store:
        store.suites.save_tasks("tiny", "v1", SOURCES)
        identity: tuple[Any, ...] = ("tiny", "v1", "sim:coder-weak", "default", {}, "0")
        first = store.suites.save_run(*identity, replicates=3, evals=EVALS[:1])
        second = store.suites.save_run(*identity, replicates=1, evals=EVALS[1:])
        assert (first.targets, second.targets, second.id) == (3, 5, first.id)
        assert store.suites.find_run(first.id) == second
        others = [
            store.suites.save_run(*changed, replicates=1, evals=EVALS).id
            for changed in (
                ("other", *identity[1:]),
                ("tiny", "v2", *identity[2:]),
                ("tiny", "v1", "sim:coder-strong", *identity[3:]),
                (*identity[:3], "terse", *identity[4:]),
                (*identity[:4], {"guidelines": False}, "0"),
                (*identity[:5], "1"),
            )
        ]
        assert len({first.id, *others}) == 7, "each of these makes another run"


def test_the_newest_result_of_an_eval_counts_and_older_ones_are_kept(template: Path) -> None:
    with fresh(template) as store:
        run = make_run(store)
        lost = Inconclusive("infrastructure", "away", "generation")
        old = store.suites.save_result(run, result(EVALS[0], lost))
        new = store.suites.save_result(run, result(EVALS[0], Passed()))
        assert [row.id for row in store.suites.results(run.id)[run.id]] == [new]
        assert store.suites.find_result(old).result.outcome == lost


@pytest.mark.parametrize("look", ["find_run", "find_result"], ids=["a run", "an eval of a run"])
def test_unknown_suite_runs_and_results_are_not_found(template: Path, look: str) -> None:
    with fresh(template) as store, pytest.raises(NotFoundError, match="99"):
        getattr(store.suites, look)(99)


written = st.lists(
    st.tuples(
        st.sampled_from(["sim:coder-weak", "sim:coder-strong"]),
        st.sampled_from(["0", "1"]),
        st.sampled_from(EVALS),
        st.sampled_from(OUTCOMES),
        st.sampled_from([None, 0.25, 1.0]),
    ),
    max_size=40,
)


@given(written)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_leaderboard_of_scores_as_they_came_equals_the_one_of_stored_rows(
    template: Path, results: list[tuple[str, str, str, Outcome, float | None]]
) -> None:
    with fresh(template) as store:
        scores: dict[int, RunScore] = {}
        for model, series, path, outcome, usd in results:
            run = make_run(store, model, series)
            store.suites.save_result(run, result(path, outcome, usd=usd))
            [report] = reports(store, [run])
            scores[run.id] = report.score
        stored = leaderboard(report.score for report in reports(store, store.suites.list_runs()))
        assert repr(leaderboard(scores.values())) == repr(stored)  # NaN is not equal to itself
        # A second reckoning, straight from what was written: the last word on each target.
        last = {(m, s, p): outcome for m, s, p, outcome, _ in results}
        for row in stored:
            mine = [key for key in last if key[0] == row.model]
            complete = {s for _, s, _ in mine if sum(key[1] == s for key in mine) == len(EVALS)}
            kinds = [last[key].kind for key in mine if key[1] in complete]
            scored = {s for s in complete if _conclusive(last, row.model, s)}
            assert (row.runs, row.unscored) == (len(scored), len(complete - scored))
            assert row.passed == kinds.count("passed")
            assert row.failed == kinds.count("failed")


def _conclusive(last: dict[tuple[str, str, str], Outcome], model: str, series: str) -> bool:
    own = [outcome for key, outcome in last.items() if key[:2] == (model, series)]
    return any(outcome.kind != "inconclusive" for outcome in own)
