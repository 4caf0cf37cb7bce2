"""Arithmetic that does not add up is found, whoever wrote it; none is found where it does."""

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.errors import DesignError
from judge_gym.outcomes import EvalResult
from judge_gym.triage import CLASSES, case, find_facts, finding, gate, lint_report, write_report
from made_runs import RUN, failed, inconclusive, opinions, passed, source

STEPS = {
    "lint": "a.py:1:1: F401 unused\n",
    "types": "a.py:1: error: no  [arg-type]\n",
    "tests": "E  ValueError: no\nFAILED t.py::test_a\n",
    "install": "",
}
ONE, TWO = "sim:one", "sim:two"
QUOTES = "REASONING: So.\nMODEL CODE:\n```\nx = 1\n```\nEXPECTED CODE:\n```\ninvented\n```"
NAMES = ["eval", "run-the-step", "previous-results", "recommendation", "actions-taken"]
VERDICTS = [*([name] for name in CLASSES), list(CLASSES[:3]), ["ABSTAIN"], []]


@cache
def made_report(seed: int) -> str:
    """The report of a run of any make, with at least one failure."""
    rng = random.Random(seed)
    results: list[EvalResult] = []
    findings = []
    judges = [ONE, TWO][: rng.randint(1, 2)]
    for number in range(rng.randint(1, 5)):
        step = rng.choice(sorted(STEPS))
        path = f"00{rng.randint(0, 1)}-part/{number:03}-{rng.choice(NAMES)}"
        reason, files = f"{step} 7/9 (1 %): 3 passed, 2 failed", {"a.py": "x = 1"}
        result = failed(path, step, reason, output=STEPS[step], files=files)
        behind = source(result, gaps=f"- {STEPS[step]}" * (number % 3 < 2))
        one = case(result, behind, find_facts(result, behind))
        said = {judge: rng.choices(VERDICTS, k=rng.randint(1, 3)) for judge in judges}
        results.append(result)
        findings.append(finding(one, opinions(one, said, QUOTES)))
    results += [passed(f"010-part/{n:03}-eval") for n in range(rng.randint(0, 4))]
    lost = range(rng.randint(0, 2))
    results += [inconclusive(f"020-part/{n:03}-eval", "infrastructure") for n in lost]
    return write_report(RUN, gate(results), findings, date="2026-03-02")


def some_reports() -> list[str]:
    return [made_report(seed) for seed in range(16)]


# What a number stands in: section, and pattern of the line with the number as its group.
PLANTED = {
    "evals": ("Run", r"\| Evals \| (\d+) \|"),
    "passed": ("Run", r"\| Passed \| (\d+) \|"),
    "failed": ("Run", r"\| Failed \| (\d+) \|"),
    "inconclusive": ("Run", r"\| Inconclusive \| (\d+) \|"),
    "pass rate": ("Run", r"\| Pass rate \| (\d+)\.\d % "),
    "pass rate's numerator": ("Run", r"\| Pass rate \|.*\((\d+)/"),
    "pass rate's denominator": ("Run", r"\| Pass rate \|.*/(\d+)\)"),
    "step": ("Failures by step", r"\| `\w+` \| (\d+) \|"),
    "total of steps": ("Failures by step", r"\| \*\*Total.*\*\*(\d+)\*\*"),
    "class": ("Classification", r"\| \w+ \| (\d+) \|"),
    "total of classes": ("Classification", r"\| \*\*Total.*\*\*(\d+)\*\*"),
    "share of a class": ("Each failure", r"- \*\*Class:\*\*.* (\d+)\.\d %"),
    "verdicts": ("Each failure", r"- \*\*Verdicts:\*\* (\d+) asked"),
    "verdicts of a status": ("Each failure", r"- \*\*Verdicts:\*\* .*asked: (\d+) "),
    "quotes": ("Each failure", r"- \*\*Quotes:\*\* (\d+) made"),
    "missing quotes": ("Each failure", r"- \*\*Quotes:\*\*.* (\d+) not in"),
    "all failures": ("Patterns", r"A known gap.* (\d+) failures;"),
    "failures with a gap": ("Patterns", r"A known gap.* (\d+) of \d+ failures;"),
    "share in the table": ("Classification", r"\| .*(?:FAULT|STRICT|TASK|GAP).* \| (\d+) % \|"),
    "number of a section": ("Each failure", r"### (\d+)\. "),
    "judges that differ": ("Conflict between judges", r"Judges come.* (\d+) of \d+ failures"),
    "pattern": ("Patterns", r"\| [^|]+ \| (\d+) \| `"),
    "judged failures": ("Conflict between judges", r"Judges come.* of (\d+) failures"),
    "recommendations": ("Recommendations", r"### .* \((\d+)\)"),
    "actionable": ("Net impact", r"\| Actionable.*\| (\d+) \|"),
    "genuine": ("Net impact", r"\| Genuine.*\| (\d+) \|"),
    "undecided": ("Net impact", r"\| Undecided \| (\d+) \|"),
    "total of impact": ("Net impact", r"\| \*\*Total.*\*\*(\d+)\*\*"),
    "adjusted pass rate": ("Net impact", r"Pass rate without.* (\d+)\.\d % "),
    "adjusted denominator": ("Net impact", r"Pass rate without.*/(\d+)\)"),
}


def places(text: str, section: str, pattern: str) -> Iterator[tuple[int, int, int]]:
    """Line, start and end of every number of a kind."""
    here = ""
    for number, line in enumerate(text.splitlines()):
        here = line[3:] if line.startswith("## ") else here
        match = re.match(pattern, line) if here == section else None
        if match:
            yield number, match.start(1), match.end(1)


@cache
def numbers(kind: str) -> list[tuple[str, tuple[int, int, int]]]:
    """Every number of a kind in some reports."""
    return [(text, place) for text in some_reports() for place in places(text, *PLANTED[kind])]


@settings(max_examples=25, deadline=None)
@given(st.integers(0))
def test_our_reports_add_up(seed: int) -> None:
    assert lint_report(made_report(seed)) == []


@pytest.mark.parametrize("kind", PLANTED)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_a_number_that_is_changed_is_found(kind: str, data: st.DataObject) -> None:
    text, (number, start, end) = data.draw(st.sampled_from(numbers(kind)))
    lines = text.splitlines()
    old = int(lines[number][start:end])
    new = data.draw(st.integers(0, old + 3).filter(lambda value: value != old))
    lines[number] = f"{lines[number][:start]}{new}{lines[number][end:]}"
    complaints = lint_report("\n".join(lines))
    assert complaints, f"{old} became {new}"
    if kind not in ("passed", "inconclusive"):  # which others contradict, where they stand
        assert number + 1 in [one.line for one in complaints]


def without_line(text: str, section: str, pattern: str) -> str | None:
    """The text without the first line of a kind."""
    found = next(places(text, section, pattern), None)
    lines = text.splitlines()
    return None if found is None else "\n".join([*lines[: found[0]], *lines[found[0] + 1 :]])


@pytest.mark.parametrize(
    ("section", "pattern"),
    [
        ("Classification", r"\| (`\d+-part/[\w-]+`) \| `\w+` \| "),
        ("Failures by step", r"\| (`\w+`) \| "),
        ("Inconclusive", r"\| (`\d+-part/\d+-eval`)"),
        ("Recommendations", r"(- `)"),
    ],
)
def test_a_row_that_is_missing_is_found(section: str, pattern: str) -> None:
    changed = [without_line(text, section, pattern) for text in some_reports()]
    assert sum(text is not None for text in changed) > 2
    for text in filter(None, changed):
        assert lint_report(text) != []


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_is_changed_in_one_place_is_found(name: str) -> None:
    for text in some_reports():
        line, start, end = next(places(text, "Each failure", r"- \*\*Class:\*\* (\w+)"))
        lines = text.splitlines()
        if lines[line][start:end] == name:
            continue
        lines[line] = f"{lines[line][:start]}{name}{lines[line][end:]}"
        [complaint] = lint_report("\n".join(lines))
        assert (complaint.line, complaint.stated) == (line + 1, name)
        assert complaint.what.startswith("class of 00")


# --- reports of people ---------------------------------------------------------------------------

BY_HAND = """# Run analysis: claude-x (default)

- **Run ID**: `jn72t14a9`
- **Model**: claude-x
- **Date**: 2026-02-06
- **Pass rate**: 31/36 (86%)

## Failure summary

| Step | Count |
|------|-------|
| eslint | 3 |
| tsc | 1 |
| tests | 1 |

5 of 36 evals did something else, 3 of 9 would pass with luck, and one failed 3 times.

## Classification

| Eval | Category | Failed step | Classification | Reasoning |
|---|---|---|---|---|
| 001-a | 000-x | eslint | **OVERLY_STRICT** | 2/3 (10%) of the rules are odd |
| 002-b | 000-x | eslint | OVERLY_STRICT | as above |
| 003-c | 001-y | eslint | `MODEL_FAULT` | 4 failed before |
| 004-d | 001-y | tsc | Ambiguous task | unclear |
| 005-e | 001-y | tests | MODEL_FAULT | wrong sum |

## Cross-cutting patterns

2 failures share one rule. In the previous run 9 failed.
### 006-run-step (000-x)
- Classification: none

## Previous reports

| Run | Failures |
|---|---|
| jn70 | 8 |

Pass rate then: 28/36 (78%).

## Net impact

3 of 5 failures are actionable; 2 are genuine model faults.

- OVERLY_STRICT: 2
- AMBIGUOUS_TASK: 1
"""


def test_a_report_of_a_person_that_adds_up_is_left_alone() -> None:
    assert lint_report(BY_HAND) == []


@pytest.mark.parametrize(
    ("right", "wrong", "line", "stated", "counted"),
    [
        ("31/36 (86%)", "31/36 (68%)", 6, "68 %", "86 %"),
        ("31/36 (86%)", "30/36 (83%)", 6, "36", "35"),
        ("31/36 (86%)", "31/37 (84%)", 6, "37", "36"),
        ("| eslint | 3 |", "| eslint | 2 |", 12, "2", "3"),
        ("| tests | 1 |", "| tests | 1 |\n| deploy | 1 |", 15, "1", "0"),
        ("| tests | 1 |", "| tests | 1 |\n| **Total** | 6 |", 15, "6", "5"),
        ("- OVERLY_STRICT: 2", "- OVERLY_STRICT: 3", 46, "3", "2"),
        ("3 of 5 failures are", "4 of 5 failures are", 44, "4", "3"),
        ("3 of 5 failures are", "3 of 6 failures are", 44, "6", "5"),
        ("2 are genuine model", "1 are genuine model", 44, "1", "2"),
        ("| **OVERLY_STRICT** |", "| MODEL_FAULT |", 46, "2", "1"),
    ],
)
def test_an_error_of_a_person_is_found_with_line_stated_and_counted(
    right: str, wrong: str, line: int, stated: str, counted: str
) -> None:
    assert BY_HAND.count(right) == 1
    found = lint_report(BY_HAND.replace(right, wrong))
    assert (line, stated, counted) in [(one.line, one.stated, one.counted) for one in found]


@pytest.mark.parametrize(
    ("text", "stated", "counted"),
    [
        ("## Summary\n\nPassed: 10\nFailed: 3\nTotal evals: 12\n", "12", "13"),
        ("| Step | Failures |\n|-|-|\n| a | 2 |\n| b | 2 |\n| Total | 5 |\n", "5", "4"),
        ("# R\n\n7/9 evals passed (87.8 %)\n", "87.8 %", "77.8 %"),
        ("## Recommendations\n\n### Eval improvements (2)\n\n- one\n  - inner\n", "2", "1"),
    ],
)
def test_a_fragment_is_checked_as_far_as_it_goes(text: str, stated: str, counted: str) -> None:
    assert (stated, counted) in [(one.stated, one.counted) for one in lint_report(text)]


def test_a_complaint_reads_as_a_sentence() -> None:
    [found] = lint_report("| Step | Failures |\n|-|-|\n| a | 2 |\n| Total | 5 |\n")[:1]
    assert str(found) == "line 4: total of Failures: stated 5, counted 2"


@pytest.mark.parametrize("text", ["", "# Nothing\n", "3/4 of them.\n", "```\nPassed: 3\n```"])
def test_what_states_nothing_is_no_report(text: str) -> None:
    with pytest.raises(DesignError, match="no analysis report"):
        lint_report(text)


def test_what_is_quoted_or_fenced_is_not_checked() -> None:
    quoted = "Failed: 1\n\n> 1/2 (90 %)\n\n```\n| Total | 9 |\n1/2 (90 %)\n```\n\n`1/2 (90 %)`\n"
    assert lint_report(quoted) == []
