"""Results are split by outcome, so that only failures reach a judge."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.errors import DesignError
from judge_gym.records.outcomes import (
    INCONCLUSIVE,
    EvalResult,
    Failed,
    Inconclusive,
    Outcome,
    Passed,
)
from judge_gym.triage import Facts, make_case, result_name, split_results
from made_runs import RESULTS, SLUG, failed, inconclusive, passed, source

NO_FACTS = Facts(None, (), None, 0, (), 0, 0, 0, ())
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Passed()),
    st.builds(Failed, st.sampled_from(["lint", "tests"]), st.text(max_size=20)),
    st.builds(Inconclusive, st.sampled_from(INCONCLUSIVE), st.text(max_size=20)),
)


@settings(deadline=None)
@given(st.lists(outcomes, max_size=12))
def test_results_are_split_by_the_type_of_their_outcome(drawn: list[Outcome]) -> None:
    results = [EvalResult("000-c", f"{n:03}-e", outcome) for n, outcome in enumerate(drawn)]
    split = split_results(results)
    for kind, side in (
        ("passed", split.passed),
        ("failed", split.failed),
        ("inconclusive", split.inconclusive),
    ):
        assert list(side) == [result for result in results if result.outcome.kind == kind]


def test_words_about_infrastructure_do_not_excuse_a_failure() -> None:
    result = failed("a/b", "tests", "connection refused: rate limit, timed out", output="ENOSPC")
    assert split_results([result]).failed == (result,)


@pytest.mark.parametrize("why", INCONCLUSIVE)
def test_an_inconclusive_result_is_refused_as_evidence(why: str) -> None:
    result = inconclusive("a/b", why)  # type: ignore[arg-type]
    with pytest.raises(DesignError, match="a/b is inconclusive; only failed results are judged"):
        make_case(result, source(result), NO_FACTS)


def test_a_passed_result_is_refused_as_evidence() -> None:
    result = passed("a/b")
    with pytest.raises(DesignError, match="a/b is passed"):
        make_case(result, source(result), NO_FACTS)


def test_replicates_are_distinguished_and_duplicates_refused() -> None:
    again = failed(SLUG.path, "tests", "no", replicate=1)
    assert [result_name(r) for r in split_results([again, SLUG]).failed] == [
        SLUG.path,
        f"{SLUG.path}#1",
    ]
    with pytest.raises(DesignError, match="two results of 000-strings/001-slugify"):
        split_results([SLUG, SLUG])


def test_the_denominator_leaves_out_inconclusive_results() -> None:
    split = split_results(RESULTS)
    assert (len(split.passed), len(split.failed), len(split.inconclusive)) == (5, 4, 2)
    assert split.conclusive == 9
