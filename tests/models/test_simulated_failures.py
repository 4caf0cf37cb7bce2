"""What simulated judges make of failed evals, and that they read other material as before."""

from dataclasses import replace

import pytest

from judge_gym.models.simulated import verdict_distribution
from judge_gym.models.simulated.failures import Failure, failure_in
from judge_gym.records import Request
from judge_gym.stages import Scorer, ScoreTarget
from judge_gym.triage import (
    CLASSES,
    RUBRIC,
    Case,
    failure_study,
    find_facts,
    make_case,
)
from judge_gym.triage.findings import occurs, read_remarks
from made_runs import DATES, RESULTS, RUN, SLUG, SLUG_ANSWER, SLUG_CODE, SORTED, SOURCES, cases

FAULT, STRICT, _, GAP = CLASSES


def request(one: Case, judge: str = "sim:judge") -> Request:
    experiment = failure_study(RUN.id, [one], [judge]).sweep.experiments[0]
    target = ScoreTarget(RUBRIC, one.evidence, one.evidence.text, 0)
    [made] = Scorer(experiment.design, 0, "0").requests([target])
    return made


def shares(one: Case) -> dict[str, float]:
    """The exact mass of each class in a judge's verdicts, and of abstentions."""
    asked = request(one)
    titles = {label: name for name in CLASSES for label in _labels(asked, name)}
    found = dict.fromkeys([*CLASSES, "abstained"], 0.0)
    for verdict, share in verdict_distribution(asked).items():
        for label in verdict.labels:
            found[titles[label]] += share / len(verdict.labels)
        found["abstained"] += share * (verdict.status == "abstained")
    return found


def _labels(asked: Request, name: str) -> list[str]:
    lines = asked.messages[1].content.splitlines()
    return [
        line.split()[1].rstrip(":") for line in lines if line.startswith("Option ") and name in line
    ]


@pytest.mark.parametrize(
    ("failed", "expected"), [(SLUG, FAULT), (DATES, STRICT)], ids=["tests", "lint"]
)
def test_a_judge_says_what_the_error_speaks_of_and_seldom_abstains(
    failed: object, expected: str
) -> None:
    [one] = [one for one in cases() if one.result is failed]
    found = shares(one)
    assert found["abstained"] < 0.05
    assert max(CLASSES, key=lambda name: found[name]) == expected


def test_a_documented_gap_explains_a_failure_whatever_was_printed() -> None:
    told = SOURCES[SORTED.path]
    silent = replace(told, gaps="")
    gap, plain = (make_case(SORTED, files, find_facts(SORTED, files)) for files in (told, silent))
    assert gap.facts.gap is not None
    before, after = shares(plain)[GAP], shares(gap)[GAP]
    assert before < 0.05 < 0.4 < after


def test_only_the_error_and_the_facts_are_read_for_signs() -> None:
    """Grader and answer name exceptions that nobody raised."""
    files = replace(SOURCES[DATES.path], grader={"t.py": "raises(ValueError)\n" * 50})
    one = make_case(DATES, files, find_facts(DATES, files))
    shown = failure_in(one.evidence.text)
    assert shown is not None
    assert {sign for sign in shown.evidence} == {"F401", "E501"}


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        (SLUG, "fails at tests, line 2 of slug.py: AssertionError: assert 'a--b' == 'a-b'."),
        (DATES, "fails at lint, line 3 of dates.py: F401 'os' imported but unused."),
    ],
    ids=["tests", "lint"],
)
def test_reasoning_names_the_step_the_line_and_the_error(failed: object, expected: str) -> None:
    [one] = [one for one in cases() if one.result is failed]
    shown = failure_in(one.evidence.text)
    assert shown is not None
    remarks = read_remarks(shown.remarks("Verdict."))
    assert expected in remarks.reasoning


def test_quotes_occur_in_the_evidence() -> None:
    [one] = [one for one in cases() if one.result is SLUG]
    shown = failure_in(one.evidence.text)
    assert shown is not None
    remarks = read_remarks(shown.remarks("That speaks for MODEL_FAULT.") + "\n\nVERDICT: A")
    assert occurs(remarks.model_code, SLUG_CODE) and occurs(remarks.expected_code, SLUG_ANSWER)
    assert "replace(' ', '-')" in remarks.model_code
    assert "split()" in remarks.expected_code
    assert remarks.reasoning.endswith("That speaks for MODEL_FAULT.")


def test_a_fence_in_the_code_does_not_end_a_quote() -> None:
    shown = Failure("", {"error": "", "candidate": "```\nx = 1\n```", "answer": "y = 2"})
    assert read_remarks(shown.remarks("")).model_code == "```\nx = 1\n```"


def test_nothing_to_compare_is_nothing_to_quote() -> None:
    same = Failure("", {"error": "", "candidate": "x\n", "answer": "x\n"})
    assert same.difference() == ("", "")
    remarks = read_remarks(same.remarks("No class fits."))
    assert (remarks.model_code, remarks.expected_code) == ("", "")


@pytest.mark.parametrize("text", ["", "AssertionError", "<error-1>\nx\n</error-1>", str(RESULTS)])
def test_other_material_is_no_failure(text: str) -> None:
    assert failure_in(text) is None


def test_the_line_of_a_traceback_counts_and_what_a_kit_suppresses_does_not() -> None:
    error = (
        '--- build ---\nFile "/kit/import_solution.py", line 5\n'
        "import solution  # noqa: E402, F401\n"
        '  File "/mnt/solution.py", line 1\n'
        '  File "/mnt/solution.py", line 2\nSyntaxError: invalid syntax'
    )
    files = {"candidate": "--- solution.py ---\na = 1\nb =", "answer": "--- solution.py ---\na = 2"}
    failure = Failure("", {"error": error, **files})
    assert failure.evidence == ["SyntaxError"]
    assert failure.reason().startswith("The candidate fails at build, line 2 of solution.py: ")
