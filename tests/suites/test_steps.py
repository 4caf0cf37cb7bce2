"""The steps: what stops, what goes on, what is counted, and whose fault it is."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.records.outcomes import EvalResult, Failed, Inconclusive, Passed, StepResult
from judge_gym.suites import (
    CodeTask,
    Limits,
    Sandbox,
    Step,
    Suite,
    WrongAnswer,
    load_suite,
    open_sandbox,
    run_eval,
)
from judge_gym.suites.install import dependency_folder, install
from judge_gym.suites.sandbox import isolations
from judge_gym.suites.steps import GraderReport, check_answers, outcome, read_tap
from suites_kit import EACH_LANE
from tables import each_row

pytestmark = pytest.mark.skipif(not isolations(), reason="no sandbox works here")

GOOD = "def double(n: int) -> int:\n    return 2 * n\n"
GRADER = """
def test_two(candidate):
    assert candidate.call("solution:double", 2) == 4

def test_zero(candidate):
    assert candidate.call("solution:double", 0) == 0
"""
Of = Callable[..., EvalResult]


@pytest.fixture(scope="module")
def suite() -> Suite:
    """The steps of the shipped suite, around one eval of our own; types are slow and left out."""
    whole = load_suite("python")
    task = CodeTask(
        "001-a", "001-x", "Double.", {"solution.py": GOOD}, {"test_x.py": GRADER}, tests=2,
        limits=Limits(seconds=10),
    )  # fmt: skip
    steps = {name: step for name, step in whole.steps.items() if name != "types"}
    return replace(whole, evals=(task,), steps=steps)


@pytest.fixture
def judge(suite: Suite, tmp_path: Path) -> Of:
    """Judges a text as `solution.py`, with the suite or the eval changed."""

    def of(
        source: str | Mapping[str, str], steps: Mapping[str, Step] | None = None, **changes: object
    ) -> EvalResult:
        task = replace(suite.evals[0], **changes)  # type: ignore[arg-type]
        files = {"solution.py": source} if isinstance(source, str) else source
        whole = replace(suite, steps=suite.steps if steps is None else steps)
        return run_eval(whole, task, files, open_sandbox(installed=tmp_path / "installed"))

    return of


def statuses(result: EvalResult) -> dict[str, str]:
    return {step.name: step.status for step in result.steps}


def test_a_right_answer_passes_every_step(judge: Of) -> None:
    result = judge(GOOD)
    assert result.outcome == Passed()
    assert statuses(result) == {
        "filesystem": "passed",
        "install": "skipped",
        "build": "passed",
        "lint": "passed",
        "types": "skipped",
        "tests": "passed",
    }
    tests = result.steps[-1]
    assert (tests.tests_passed, tests.tests_collected) == (2, 2)
    assert result.isolation in isolations()


def test_a_failing_build_stops(judge: Of) -> None:
    result = judge("def double(n:\n")
    assert isinstance(result.outcome, Failed)
    assert result.outcome.step == "build"
    assert "SyntaxError" in result.steps[2].output
    assert statuses(result)["tests"] == "skipped"


def test_failing_lint_goes_on(judge: Of) -> None:
    result = judge("import os  # noqa: F401\n" + GOOD)
    assert isinstance(result.outcome, Failed)
    assert result.outcome.step == "lint"
    assert "F401" in result.outcome.reason and "unused" in result.outcome.reason
    assert statuses(result)["tests"] == "passed"


def test_a_candidates_own_settings_do_not_count(judge: Of) -> None:
    files = {"solution.py": "import os\n" + GOOD, "ruff.toml": "lint.select = []\n"}
    files["pyproject.toml"] = "[tool.ruff]\nexclude = ['*.py']\n"
    assert statuses(judge(files))["lint"] == "failed"


def test_a_wrong_answer_fails_its_tests_and_the_ratio_is_kept(judge: Of) -> None:
    result = judge(GOOD.replace("2 * n", "n"))
    assert isinstance(result.outcome, Failed)
    tests = result.steps[-1]
    assert (tests.tests_passed, tests.tests_collected) == (1, 2)
    assert "test_two" in tests.reason


def test_too_few_tests_do_not_count(judge: Of) -> None:
    result = judge(GOOD, tests=3)
    assert result.outcome == Failed("tests", "2 tests were collected, 3 are expected")


def test_a_skipped_test_is_not_passed(judge: Of) -> None:
    grader = GRADER + "\nimport pytest\n@pytest.mark.skip\ndef test_x(): pass\n"
    result = judge(GOOD, grader={"test_x.py": grader})
    assert (result.steps[-1].tests_passed, result.steps[-1].tests_collected) == (2, 3)
    assert isinstance(result.outcome, Failed)


def test_static_evals_are_written_and_tested_only(judge: Of) -> None:
    grader = "def test_x(candidate):\n    assert candidate.files['notes.md'] == 'héllo'\n"
    result = judge({"notes.md": "héllo"}, pipeline="static", grader={"test_x.py": grader}, tests=1)
    assert result.outcome == Passed()
    ran = {name for name, status in statuses(result).items() if status != "skipped"}
    assert ran == {"filesystem", "tests"}


def test_a_hanging_build_is_the_candidates_fault_if_the_answer_does_not_hang(
    judge: Of, suite: Suite
) -> None:
    steps = {**suite.steps, "build": replace(suite.steps["build"], seconds=10)}
    found = judge("import time\ntime.sleep(600)", steps).outcome
    assert found == Failed("build", "not done within 10 s")


def test_a_build_that_hangs_with_the_answer_too_is_infrastructure(judge: Of, suite: Suite) -> None:
    steps = {**suite.steps, "build": Step("build", ("sleep", "60"), 0.3)}
    found = judge("while True: pass", steps).outcome
    assert isinstance(found, Inconclusive)
    assert (found.why, found.step) == ("infrastructure", "build")


def test_a_grader_that_breaks_for_everyone_is_infrastructure(judge: Of, suite: Suite) -> None:
    steps = {"tests": Step("tests", ("{python}", "-c", "raise SystemExit(0)"), 20)}
    found = judge(GOOD, steps).outcome
    assert isinstance(found, Inconclusive)
    assert "did not report" in found.reason
    gone = {"tests": Step("tests", ("no-such-runner",), 20)}
    assert isinstance(judge(GOOD, gone).outcome, Inconclusive)


def test_a_grader_that_cannot_be_collected_fails_the_answer_check(suite: Suite) -> None:
    broken = replace(suite.evals[0], grader={"test_x.py": "import no_such_module\n"})
    [check] = check_answers(replace(suite, evals=(broken,)), open_sandbox())
    assert isinstance(check.result.outcome, Failed)
    assert check.problem.startswith("must pass, but fails at tests")


@pytest.mark.slow
def test_the_check_of_answers_counts_the_tests(suite: Suite) -> None:
    [right] = check_answers(suite, open_sandbox())
    assert (right.result.outcome, right.problem) == (Passed(), "")
    more = {"test_x.py": GRADER + "\ndef test_more():\n    pass\n"}
    grown = replace(suite, evals=(replace(suite.evals[0], grader=more),))
    [wrong] = check_answers(grown, open_sandbox())
    assert wrong.result.outcome == Failed("tests", "the grader holds 3 tests, eval.toml expects 2")
    unstated = replace(suite, evals=(replace(suite.evals[0], tests=1),))
    [right] = check_answers(unstated, open_sandbox())
    assert right.result.outcome == Passed(), "where no number is stated, any will do"


@pytest.mark.slow
def test_wrong_answers_must_fail_at_their_step_before_any_other(suite: Suite) -> None:
    def wrong(name: str, text: str) -> WrongAnswer:
        return WrongAnswer(name, name.partition("-")[0], {"solution.py": text})

    unused = "import os\n" + GOOD
    halved = GOOD.replace("2 * n", "n")
    answers = (
        wrong("build-syntax", "def double(n:\n"),
        wrong("lint-unused-import", unused),
        wrong("tests-same-number", halved),
        wrong("tests-right", GOOD),
        wrong("tests-unused-import", unused.replace("2 * n", "n")),
        wrong("lint-same-number", halved),
    )
    task = replace(suite.evals[0], wrong_answers=answers)
    checks = check_answers(suite, open_sandbox(), [task])
    assert [check.wrong for check in checks] == [None, *answers]
    problems = {check.wrong.name: check.problem for check in checks if check.wrong}
    assert [name for name, problem in problems.items() if not problem] == [
        answer.name for answer in answers[:3]
    ]
    assert problems["tests-right"] == "must fail at tests, but passes"
    assert problems["tests-unused-import"].startswith("must fail at tests, but fails at lint: ")
    assert problems["lint-same-number"] == "must fail at lint, but passes"
    assert [check.wrong for check in check_answers(suite, open_sandbox(), [task], wrong=False)] == [
        None
    ]


@pytest.mark.slow
@pytest.mark.parametrize("isolation", EACH_LANE)
def test_every_lane_judges_alike(isolation: str, suite: Suite) -> None:
    on = open_sandbox(isolation)
    good = run_eval(suite, suite.evals[0], {"solution.py": GOOD}, on)
    bad = run_eval(suite, suite.evals[0], {"solution.py": GOOD.replace("2", "3")}, on)
    assert (good.outcome.kind, bad.outcome.kind) == ("passed", "failed")
    assert good.isolation == bad.isolation == isolation


def test_unisolated_runs_judge_too_and_say_so(suite: Suite) -> None:
    on = open_sandbox("none", allow_unisolated=True)
    result = run_eval(suite, suite.evals[0], {"solution.py": GOOD}, on)
    assert result.outcome == Passed(), result.steps
    assert result.isolation == "none"


# --- dependencies --------------------------------------------------------------------------------


def test_dependencies_are_installed_once_and_read_only(suite: Suite, tmp_path: Path) -> None:
    fetch = (
        "{python}",
        "-c",
        "import pathlib; n = pathlib.Path('made.py'); "
        "n.write_text('value = ' + pathlib.Path('list.txt').read_text());"
        f"open({str(tmp_path / 'count')!r}, 'a').write('x')",
    )
    build = (
        "{python}",
        "-I",
        "-c",
        "import sys; sys.path.append('{deps}'); import made; open('{deps}/x', 'w')",
    )
    steps = {"install": Step("install", fetch, 30), "build": Step("build", build, 30)}
    steps |= {"tests": suite.steps["tests"]}
    own = replace(suite, steps=steps, dependencies={"list.txt": "7"})
    on = Sandbox(isolations()[0], installed=tmp_path / "installed")
    for _ in range(2):
        result = run_eval(own, own.evals[0], {"solution.py": GOOD}, on)
        assert statuses(result)["install"] == "passed", result.steps
        assert "Read-only file system" in result.steps[2].output
    assert (tmp_path / "count").read_text() == "x"
    other = replace(own, dependencies={"list.txt": "8"})
    assert dependency_folder(other, on.installed) != dependency_folder(own, on.installed)


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (
            "Success is near\nsolution.py:3: note: see there\n"
            'solution.py:4: error: Incompatible return value type (got "str")  [return-value]\n'
            "Found 1 error in 1 file (checked 1 source file)",
            'solution.py:4: error: Incompatible return value type (got "str")  [return-value]',
        ),
        ("solution.ts(2,7): error TS2322: no\nsome sum", "solution.ts(2,7): error TS2322: no"),
        (
            "x.py:1: SyntaxWarning: invalid\nTraceback:\n  File x\nNameError: name 'y'",
            "NameError: name 'y'",
        ),
        ("", ""),
    ],
)
def test_a_step_that_fails_says_what_it_found_not_how_much(
    printed: str, told: str, suite: Suite
) -> None:
    script = f"print({printed!r}); raise SystemExit(1)"
    step = Step("types", ("{python}", "-c", script), 30)
    own = replace(suite, steps={"types": step, "tests": suite.steps["tests"]})
    result = run_eval(own, own.evals[0], {"solution.py": GOOD}, Sandbox(isolations()[0]))
    assert isinstance(result.outcome, Failed)
    assert result.outcome.reason == "exit code 1" + (f": {told}" if told else "")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("{python}", "-c", "print('no route'); raise SystemExit(4)"), "exit code 4"),
        (("sleep", "60"), "not done within 0.5 s"),
        (("no-such-installer",), "could not be started"),
    ],
)
def test_what_cannot_be_installed_is_infrastructure(
    command: tuple[str, ...], told: str, suite: Suite, tmp_path: Path
) -> None:
    seconds = 0.5 if command[0] == "sleep" else 30
    own = replace(suite, steps={**suite.steps, "install": Step("install", command, seconds)})
    made = install(own, tmp_path)
    assert made.status == "inconclusive"
    assert told in made.reason
    assert list(tmp_path.iterdir()) == []
    result = run_eval(
        own, own.evals[0], {"solution.py": GOOD}, Sandbox(isolations()[0], installed=tmp_path)
    )
    assert isinstance(result.outcome, Inconclusive)
    assert result.outcome.why == "infrastructure"
    assert statuses(result)["build"] == "skipped"


# --- reports and outcomes ------------------------------------------------------------------------


@each_row(
    ("report", "expected"),
    [
        ("TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b\n", GraderReport(2, 1, ("b",))),
        ("ok 1 - a\n    ok 1 - inner\n    1..1\n  ---\n  ...\n1..1\n", GraderReport(1, 1, ())),
        ("1..2\nok 1\nok 2 # SKIP not here\n", GraderReport(2, 1, ("# SKIP not here",))),
        ("1..1\nok 1 - a # todo later\n", GraderReport(1, 0, ("a # todo later",))),
        ("1..3\nok 1\n", GraderReport(3, 1, ("a test that did not run",) * 2)),
        ("1..0\n", GraderReport(0, 0, ())),
        ("ok 1 - a\n", None),
        ("1..1\nok 1\nok 1\n", None),
        ("1..1\n1..1\nok 1\n", None),
        ("1..1\nok 1\nok 2\n", None),
        ("", None),
    ],
)
def test_reports_are_read_strictly(report: str, expected: GraderReport | None) -> None:
    assert read_tap(report) == expected


@given(st.lists(st.tuples(st.booleans(), st.from_regex(r"[a-z]\w{0,8}", fullmatch=True))))
def test_the_plugins_report_is_read_back(tests: list[tuple[bool, str]]) -> None:
    from judge_gym.suites.inside.grading import tap

    outcomes = {f"{n} {name}": passed for n, (passed, name) in enumerate(tests)}
    tally = read_tap("\n".join(tap(outcomes, len(outcomes))))
    assert tally is not None
    assert (tally.collected, tally.passed) == (len(tests), sum(passed for passed, _ in tests))


def test_a_failure_outweighs_what_could_not_be_found_out() -> None:
    def step(name: str, status: str) -> StepResult:
        return StepResult(name, status, 0.0, f"{name} {status}")  # type: ignore[arg-type]

    unsure, wrong = step("types", "inconclusive"), step("tests", "failed")
    assert outcome([step("build", "passed"), unsure, wrong]) == Failed("tests", "tests failed")
    assert outcome([unsure, step("tests", "passed")]) == Inconclusive(
        "infrastructure", "types inconclusive", "types"
    )
    assert outcome([step("build", "passed"), step("types", "skipped")]) == Passed()


def test_invalid_request_of_a_grader_is_answered_with_an_error(judge: Of) -> None:
    grader = """
import json, os

def test_x():
    for asked in (b"nonsense\\n", b'{"command": [], "stdin": ""}\\n', b'{"command": ["true"]}\\n'):
        os.write(4, asked)
        assert json.loads(os.read(5, 65536))["ended"] == "broken"
"""
    result = judge(GOOD, grader={"test_x.py": grader}, tests=1)
    assert result.outcome == Passed(), result.steps[-1].output


def test_suite_within_a_mounted_folder_is_hidden(suite: Suite, tmp_path: Path) -> None:
    place_of_tool = tmp_path / "place"
    (place_of_tool / "bin").mkdir(parents=True)
    tool = place_of_tool / "bin" / "some-tool"
    tool.write_text("#!/bin/sh\necho 1\n")
    tool.chmod(0o755)
    (place_of_tool / "suite").mkdir()
    (place_of_tool / "suite" / "answer.py").write_text("secret")
    tmp_path.chmod(0o755)
    look = f"import os; assert os.listdir('{place_of_tool}/suite') == []"
    steps = {**suite.steps, "build": Step("build", ("{python}", "-I", "-c", look), 30)}
    own = replace(
        suite, folder=place_of_tool / "suite", steps=steps, tools={"some": (str(tool), "v")}
    )
    result = run_eval(own, own.evals[0], {"solution.py": GOOD}, open_sandbox())
    assert result.outcome == Passed(), result.steps


def test_runs_that_are_cut_off_with_the_answer_too_are_infrastructure(judge: Of) -> None:
    """So a machine that is too slow for anyone fails no one."""
    grader = """
def test_x(candidate):
    assert candidate.command(["sleep", "60"]).code == 0
"""
    limits = Limits(seconds=0.3)
    found = judge(GOOD, grader={"test_x.py": grader}, tests=1, limits=limits).outcome
    assert isinstance(found, Inconclusive)
    assert (found.why, found.step) == ("infrastructure", "tests")


@pytest.mark.slow
def test_a_candidate_that_hangs_when_called_fails(judge: Of) -> None:
    source = "def double(n: int) -> int:\n    while True:\n        pass\n"
    result = judge(source, limits=Limits(seconds=5))
    assert isinstance(result.outcome, Failed)
    assert result.outcome.step == "tests"
    assert result.steps[-1].tests_passed == 0
