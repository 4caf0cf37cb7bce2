"""What is known about a failure before any judge is asked."""

from dataclasses import replace

import pytest

from judge_gym.records.outcomes import (
    EvalResult,
    Failed,
    Inconclusive,
    Outcome,
    Passed,
    StepResult,
    StepStatus,
)
from judge_gym.suites.steps import outcome
from judge_gym.triage import PriorReport, ReportedFailure, find_facts
from judge_gym.triage.facts import gap_entries
from made_runs import DATES, SLUG, SORTED, SOURCES, UNUSED, failed, passed, source

LOST = Inconclusive("infrastructure", "lost")
WRONG = Failed("tests", "wrong")


def prior(
    *failures: str, actions: tuple[str, ...] = (), version: str = "old", date: str = "2026-02-01"
) -> PriorReport:
    reported = tuple(ReportedFailure(name, "lint", "OVERLY_STRICT") for name in failures)
    return PriorReport(f"reports/{date}.md", "r", date, version, "", reported, actions)


@pytest.mark.parametrize(
    ("reference", "expected", "word"),
    [
        (passed(SLUG.path), (), "passes this grader."),
        (failed(SLUG.path, "tests", "wrong"), ("tests",), "fails this grader too, at tests."),
        (replace(passed(SLUG.path), outcome=LOST), None, "not known"),
        (None, None, "not known"),
    ],
)
def test_the_reference_answer_passes_fails_or_is_not_known(
    reference: EvalResult | None, expected: tuple[str, ...] | None, word: str
) -> None:
    found = find_facts(SLUG, SOURCES[SLUG.path], reference=reference)
    assert found.reference_failed == expected
    assert word in found.sentences()[0]


def steps(**statuses: StepStatus) -> EvalResult:
    """A result with these steps, in their order."""
    made = tuple(StepResult(name, status, 0.1, "no") for name, status in statuses.items())
    return replace(SLUG, steps=made, outcome=outcome(made))


def test_a_reference_that_fails_at_one_step_only_does_not_excuse_another() -> None:
    candidate = steps(lint="failed", tests="failed")
    lint_only = find_facts(
        candidate, SOURCES[SLUG.path], reference=steps(lint="failed", tests="passed")
    )
    assert (lint_only.reference_failed, lint_only.own_steps) == (("lint",), ("tests",))
    [sentence, *_] = lint_only.sentences()
    assert "fails at lint, but passes tests, where the candidate fails; at lint both" in sentence
    other = find_facts(
        steps(lint="passed", tests="failed"),
        SOURCES[SLUG.path],
        reference=steps(lint="failed", tests="passed"),
    )
    assert other.sentences()[0].endswith("that is not the same failure.")
    both = find_facts(candidate, SOURCES[SLUG.path], reference=candidate)
    assert "fails this grader too, at lint, tests." in both.sentences()[0]
    unknown = steps(lint="failed", tests="inconclusive")
    assert find_facts(candidate, SOURCES[SLUG.path], reference=unknown).own_steps == ()


def test_another_model_fails_an_eval_if_one_of_its_replicates_does() -> None:
    others: dict[str, list[Outcome]] = {
        "a:first": [WRONG, Passed()],
        "a:last": [Passed(), Passed(), WRONG],
        "a:lost": [WRONG, LOST],
        "a:never": [LOST],
        "a:well": [Passed(), Passed()],
    }
    found = find_facts(SLUG, SOURCES[SLUG.path], others=others)
    assert (found.others_failed, found.others) == (("a:first", "a:last", "a:lost"), 4)
    [sentence] = [one for one in found.sentences() if one.startswith("Other models")]
    assert "fail this eval: 3 of 4." in sentence
    assert "3 of 8 fail" in sentence


# --- gaps ----------------------------------------------------------------------------------------


def test_entries_are_list_items_and_paragraphs_without_headings() -> None:
    text = "# Known gaps\n\nTies are open.\n\n- one\n  goes on\n- two\n\n1. three\n\nTitle\n=====\n"
    assert gap_entries(text) == ("Ties are open.", "one\n  goes on", "two", "three", "Title")


@pytest.mark.parametrize("text", ["", "# Gaps\n", "None.", "# Gaps\n\nNo known gaps.\n", "\n\n"])
def test_a_file_without_entries_has_none(text: str) -> None:
    assert gap_entries(text) == ()
    assert find_facts(SLUG, source(SLUG, gaps=text)).gap is None


def test_a_gap_matches_by_a_rule_that_it_names() -> None:
    found = find_facts(UNUSED, source(UNUSED, gaps="- Docs are thin.\n- Rule F401 is too strict."))
    assert found.gap is not None
    assert (found.gap.entry, found.gap_entries) == ("Rule F401 is too strict.", 2)
    assert "f401" in found.gap.shared


def test_a_gap_matches_by_several_words_of_the_error() -> None:
    found = find_facts(SORTED, SOURCES[SORTED.path])
    assert found.gap is not None
    assert "ties" in found.gap.shared


@pytest.mark.parametrize(
    "gaps",
    [
        "- Unicode accents are open.",
        "- The tests fail sometimes.",
        "- The order of imports is open.",  # one word alone is shared
    ],
)
def test_a_gap_about_something_else_does_not_match(gaps: str) -> None:
    found = find_facts(SORTED, source(SORTED, gaps=gaps))
    assert found.gap is None
    assert "None shares words with this error." in found.sentences()[1]


def test_a_gap_that_has_a_rule_within_a_longer_word_does_not_match() -> None:
    result = failed("a/b", "lint", "", output="a.py:1:1: E501 Line")
    assert find_facts(result, source(result, gaps="- XE5012 happens.")).gap is None


def test_a_gap_may_match_the_error_of_any_failed_step() -> None:
    lint, tests = UNUSED.steps[-1], SORTED.steps[-1]
    both = replace(UNUSED, steps=(lint, tests))
    gaps = "- How ties are ordered is open; the grader keeps their order."
    assert find_facts(UNUSED, source(both, gaps=gaps)).gap is None
    assert find_facts(both, source(both, gaps=gaps)).gap is not None


@pytest.mark.parametrize(
    ("reason", "reply"),
    [
        ("the reply holds no file", "error: F401, as ties are ordered\nAssertionError"),
        ("the path '/F401 ties are ordered' is not relative to the project folder", ""),
        ("the path \"it's F401\" names no file; the path '/ties ordered' names no file", ""),
    ],
)
def test_the_reply_of_a_candidate_matches_no_gap(reason: str, reply: str) -> None:
    result = failed("a/b", "filesystem", reason, output=reply)
    gaps = "- Rule F401 is too strict.\n- How ties are ordered is open."
    assert find_facts(result, source(result, gaps=gaps)).gap is None


# --- earlier reports -----------------------------------------------------------------------------


def test_an_eval_that_did_not_fail_before_has_no_earlier_report() -> None:
    assert (
        find_facts(SLUG, SOURCES[SLUG.path], prior=[prior("000-strings/999-other")]).earlier == ()
    )


def test_an_eval_that_failed_before_has_an_earlier_failure() -> None:
    [earlier] = find_facts(UNUSED, SOURCES[UNUSED.path], prior=[prior(UNUSED.path)]).earlier
    assert (earlier.date, earlier.classification, earlier.fix) == (
        "2026-02-01",
        "OVERLY_STRICT",
        None,
    )


@pytest.mark.parametrize(
    ("action", "version", "is_fix", "word"),
    [
        ("Dropped F401 from the lint configuration.", "new", True, "the eval still fails"),
        ("Reworded 002-initials.", "new", True, "the eval still fails"),
        ("Reworded 002-initials.", "old", True, "has not changed since"),
        ("Reworded 002-initials.", "", True, "the eval still fails"),
        ("Reworded 002-initials-long.", "new", False, "no fix is recorded"),
        ("Dropped E501.", "new", False, "no fix is recorded"),
    ],
)
def test_a_fix_counts_if_it_names_the_eval_or_its_rule(
    action: str, version: str, is_fix: bool, word: str
) -> None:
    reports = [prior(UNUSED.path, actions=(action,))]
    found = find_facts(UNUSED, SOURCES[UNUSED.path], prior=reports, version=version)
    assert found.earlier[0].fix == (action if is_fix else None)
    assert word in found.sentences()[-1]


def test_every_earlier_report_is_a_fact() -> None:
    reports = [prior(DATES.path, date="2026-01-01"), prior(DATES.path, date="2026-02-01")]
    found = find_facts(DATES, SOURCES[DATES.path], prior=reports)
    assert [one.date for one in found.earlier] == ["2026-01-01", "2026-02-01"]
