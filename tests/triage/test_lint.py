"""Numbers of our reports that a hand edit broke are found; none is found in a sound report."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.errors import DesignError
from judge_gym.records.outcomes import EvalResult, StepResult
from judge_gym.triage import (
    CLASSES,
    PriorReport,
    ReportedFailure,
    find_facts,
    lint_report,
    make_case,
    make_finding,
    split_results,
    write_report,
)
from made_runs import RUN, failed, inconclusive, judge_verdicts, passed, source
from tables import each_row

STEPS = {
    "lint": "a.py:1:1: F401 unused\n",
    "types": "a.py:1: error: no  [arg-type]\n",
    "tests": "E  ValueError: no\nFAILED t.py::test_a\n",
    "install": "",
}
ONE, TWO = "sim:one", "sim:two"
QUOTES = "REASONING: So.\nMODEL CODE:\n```\nx = 1\n```\nEXPECTED CODE:\n```\ninvented\n```"
NAMES = ["eval", "run-the-step", "previous-results", "recommendation", "actions-taken"]
SECTIONS = (
    "Run",
    "Earlier reports",
    "Failures by step",
    "Classification",
    "Each failure",
    "Patterns",
    "Recommendations",
    "Net impact",
)
VERDICTS = [*([name] for name in CLASSES), list(CLASSES[:3]), ["ABSTAIN"], []]


@cache
def made_report(seed: int) -> str:
    """The report of a random run with at least one failure."""
    rng = random.Random(seed)
    results: list[EvalResult] = []
    findings = []
    judges = [ONE, TWO][: rng.randint(1, 2)]
    paths = [
        f"00{rng.randint(0, 1)}-part/{number:03}-{rng.choice(NAMES)}"
        for number in range(rng.randint(1, 5))
    ]
    again = [ReportedFailure(path, "lint", CLASSES[0]) for path in paths if rng.random() < 0.4]
    prior = [PriorReport("r.md", "r", "2026-02-01", "old", "", tuple(again), ())]
    for number, path in enumerate(paths):
        step = rng.choice(sorted(STEPS))
        reason, files = f"{step} 7/9 (1 %): 3 passed, 2 failed", {"a.py": "x = 1"}
        result = failed(path, step, reason, output=STEPS[step], files=files)
        if rng.random() < 0.4:
            further = StepResult("deploy", "failed", 1.0, reason)
            result = replace(result, steps=(*result.steps, further))
        behind = source(result, gaps=f"- {STEPS[step]}" * (number % 3 < 2))
        one = make_case(result, behind, find_facts(result, behind, prior=prior))
        classes = {judge: rng.choices(VERDICTS, k=rng.randint(1, 3)) for judge in judges}
        results.append(result)
        findings.append(make_finding(one, judge_verdicts(one, classes, QUOTES)))
    results += [passed(f"010-part/{n:03}-eval") for n in range(rng.randint(0, 4))]
    lost = range(rng.randint(0, 2))
    results += [inconclusive(f"020-part/{n:03}-eval", "infrastructure") for n in lost]
    return write_report(RUN, split_results(results), findings, date="2026-03-02", prior=prior)


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
    "further steps": ("Failures by step", r"Each failure.* (\d+) of \d+ failures had"),
    "failures in earlier reports": ("Patterns", r"A known.*; (\d+) of \d+ failures stood"),
    "results of a category": ("Patterns", r"\| category .* \((\d+) of its"),
    "scored verdicts": ("Each failure", r"- \*\*Class:\*\*.*/(\d+)\)"),
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
def test_a_report_that_was_not_edited_adds_up(seed: int) -> None:
    assert lint_report(made_report(seed)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLANTED)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_an_edited_number_is_found(kind: str, data: st.DataObject) -> None:
    text, (number, start, end) = data.draw(st.sampled_from(numbers(kind)))
    lines = text.splitlines()
    old = int(lines[number][start:end])
    new = data.draw(st.integers(0, old + 3).filter(lambda value: value != old))
    lines[number] = f"{lines[number][:start]}{new}{lines[number][end:]}"
    mismatches = lint_report("\n".join(lines))
    assert mismatches, f"{old} became {new}"
    assert number + 1 in [one.line for one in mismatches]


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
def test_a_deleted_row_is_found(section: str, pattern: str) -> None:
    changed = [without_line(text, section, pattern) for text in some_reports()]
    assert sum(text is not None for text in changed) > 2
    for text in filter(None, changed):
        assert lint_report(text) != []


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_edited_in_one_place_is_found(name: str) -> None:
    for text in some_reports():
        line, start, end = next(places(text, "Each failure", r"- \*\*Class:\*\* (\w+)"))
        lines = text.splitlines()
        if lines[line][start:end] == name:
            continue
        lines[line] = f"{lines[line][:start]}{name}{lines[line][end:]}"
        [mismatch] = lint_report("\n".join(lines))
        assert (mismatch.line, mismatch.stated) == (line + 1, name)
        assert mismatch.what.endswith("Each failure, Class")


# --- other texts ---------------------------------------------------------------------------------


def test_a_mismatch_names_line_statement_and_count() -> None:
    text = made_report(1)
    line, _, _ = next(places(text, *PLANTED["failed"]))
    failed = len(re.findall("^### [0-9]", text, re.M))
    wrong = text.replace(f"| Failed | {failed} |", "| Failed | 77 |")
    [found] = lint_report(wrong)
    assert str(found) == f"line {line + 1}: Run, Failed: stated 77, counted {failed}"


@each_row("section", SECTIONS)
def test_a_section_that_was_renamed_is_found(section: str) -> None:
    text = made_report(2).replace(f"\n## {section}\n", "\n## Something else\n")
    assert any(section in mismatch.counted for mismatch in lint_report(text))


@pytest.mark.parametrize("text", ["", "# Nothing\n", "## Summary\n\nPassed: 10\nFailed: 3\n"])
def test_a_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(DesignError, match="not a report of judge-gym analyze"):
        lint_report(text)


def test_a_row_that_was_added_to_a_table_is_found() -> None:
    text = made_report(2)
    line, _, _ = next(places(text, *PLANTED["step"]))
    row = "| `deploy` | 1 |"
    lines = text.splitlines()
    lines.insert(line, row)
    [mismatch] = lint_report("\n".join(lines))
    assert (mismatch.line, mismatch.stated, mismatch.counted) == (line + 1, row, "nothing")


def test_notes_and_alignment_are_not_checked() -> None:
    text = made_report(2)
    note = "All 77 of these fail for one reason.\n\n| Mine | 77 |\n| --- | --- |\n| a | 1 |\n"
    edited = text.replace("## Patterns\n", f"## Patterns\n\n{note}")
    edited = edited.replace("| --- | ---: |", "| :--- | -----: |").replace(
        "| Failed |", "|  Failed |"
    )
    assert edited != text
    assert lint_report(edited) == []


def test_quoted_and_fenced_text_and_recorded_actions_are_not_checked() -> None:
    text = made_report(3)
    block = "> | Failed | 9 |\n\n```\n| Total | 9 |\n```\n"
    edited = text.replace("## Failures by step\n", f"{block}\n## Failures by step\n")
    edited = edited.removesuffix("None.\n") + "- 3 of 9 failures were repaired (1 %).\n"
    assert edited != text
    assert lint_report(edited) == []
