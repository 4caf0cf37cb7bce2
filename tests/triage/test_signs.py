"""The names by which failures are recognised, in the outputs of real tools."""

from dataclasses import replace

import pytest

from judge_gym.triage.gate import failed_steps
from judge_gym.triage.signs import Sign, error_lines, plain, signs
from made_runs import failed


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("a.py:1:8: F401 `re` imported but unused", Sign("rule", "F401")),
        ("F401 [*] `re` imported but unused\n --> a.py:1:8", Sign("rule", "F401")),
        ("a.py:2: error: Incompatible return value  [return-value]", Sign("rule", "return-value")),
        ("/a.py:3:5 - error: No overload (reportCallIssue)", Sign("rule", "reportCallIssue")),
        ("src/a.ts(3,5): error TS2345: Argument", Sign("rule", "TS2345")),
        ("  3:14  error  Unexpected any  @typescript-eslint/no-explicit-any",
         Sign("rule", "@typescript-eslint/no-explicit-any")),
        ("E   ModuleNotFoundError: No module named 'x'", Sign("exception", "ModuleNotFoundError")),
        ("FAILED t.py::test_a_b - assert 1 == 2", Sign("test", "test_a_b")),
        ("\x1b[31mFAILED\x1b[0m t.py::\x1b[1mtest_a\x1b[0m", Sign("test", "test_a")),
    ],
)  # fmt: skip
def test_a_sign_is_read_out_of_a_tools_output(output: str, expected: Sign) -> None:
    assert expected in signs(failed("a/b", "tests", "", output=output))


@pytest.mark.parametrize("output", ["HTTP 404 at 127.0.0.1:8000", "see PEP 484", "all is well", ""])
def test_other_words_are_no_signs(output: str) -> None:
    assert signs(failed("a/b", "tests", "", output=output)) == ()


def test_a_sign_stands_once() -> None:
    output = "a.py:1:8: F401 x\nb.py:1:8: F401 y\n"
    assert signs(failed("a/b", "lint", "", output=output)) == (Sign("rule", "F401"),)


def test_a_failure_without_its_step_has_the_signs_of_its_reason() -> None:
    result = replace(failed("a/b", "tests", "ValueError: no"), steps=())
    assert signs(result) == (Sign("exception", "ValueError"),)
    assert [error_lines(step) for step in failed_steps(result)] == [[]]


def test_telling_lines_come_before_the_rest() -> None:
    output = "collected 2 items\n...\nE   assert 1 == 2\nFAILED t.py::test_a\n1 failed"
    [step] = failed_steps(failed("a/b", "tests", "", output=output))
    assert error_lines(step) == [
        "E   assert 1 == 2",
        "FAILED t.py::test_a",
    ]


def test_turned_writing_becomes_visible() -> None:
    assert plain("a\u202eb\u2066c\x00d\te\nf") == "a\ufffdb\ufffdcd\te\nf"


@pytest.mark.parametrize(
    "output",
    ["error: " * 60_000, "\n" * 200_000, "  1:1  error" + "  a" * 90_000, "A" * 400_000,
     "\x1b[" * 150_000, "error: [" * 50_000],
)  # fmt: skip
def test_no_output_takes_long_to_read(output: str) -> None:
    """In quadratic time these would take many minutes."""
    result = failed("a/b", "lint", output, output=output)
    signs(result)
    error_lines(*failed_steps(result))
