"""What reaches a judge, and what never does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.errors import DesignError
from judge_gym.outcomes import INCONCLUSIVE, EvalResult, Failed, Inconclusive, Outcome, Passed
from judge_gym.triage import Facts, case, gate, result_name
from made_runs import RESULTS, SLUG, failed, inconclusive, passed, source

NO_FACTS = Facts(None, (), None, 0, (), 0, 0, 0, ())
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Passed()),
    st.builds(Failed, st.sampled_from(["lint", "tests"]), st.text(max_size=20)),
    st.builds(Inconclusive, st.sampled_from(INCONCLUSIVE), st.text(max_size=20)),
)


@settings(deadline=None)
@given(st.lists(outcomes, max_size=12))
def test_every_result_is_on_one_side_of_the_gate_by_its_type(drawn: list[Outcome]) -> None:
    results = [EvalResult("000-c", f"{n:03}-e", outcome) for n, outcome in enumerate(drawn)]
    gated = gate(results)
    for kind, side in (
        ("passed", gated.passed),
        ("failed", gated.failed),
        ("inconclusive", gated.inconclusive),
    ):
        assert list(side) == [result for result in results if result.outcome.kind == kind]


def test_words_of_infrastructure_do_not_excuse_a_failure() -> None:
    result = failed("a/b", "tests", "connection refused: rate limit, timed out", output="ENOSPC")
    assert gate([result]).failed == (result,)


@pytest.mark.parametrize("why", INCONCLUSIVE)
def test_what_is_inconclusive_is_refused_as_evidence(why: str) -> None:
    result = inconclusive("a/b", why)  # type: ignore[arg-type]
    with pytest.raises(DesignError, match="a/b is inconclusive; only what failed is judged"):
        case(result, source(result), NO_FACTS)


def test_what_passed_is_refused_as_evidence() -> None:
    result = passed("a/b")
    with pytest.raises(DesignError, match="a/b is passed"):
        case(result, source(result), NO_FACTS)


def test_replicates_are_told_apart_and_repetitions_refused() -> None:
    again = failed(SLUG.path, "tests", "no", replicate=1)
    assert [result_name(r) for r in gate([again, SLUG]).failed] == [SLUG.path, f"{SLUG.path}#1"]
    with pytest.raises(DesignError, match="two results of 000-strings/001-slugify"):
        gate([SLUG, SLUG])


def test_the_denominator_leaves_out_what_is_inconclusive() -> None:
    gated = gate(RESULTS)
    assert (len(gated.passed), len(gated.failed), len(gated.inconclusive)) == (5, 4, 2)
    assert gated.conclusive == 9
