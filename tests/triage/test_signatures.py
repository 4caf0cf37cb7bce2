"""Error signatures are read from the outputs of real tools."""

from dataclasses import replace

import pytest

from judge_gym.triage.results import Signature, error_lines, failed_steps, plain, signatures
from made_runs import failed
from tables import each_row


@each_row(
    ("output", "kind", "name"),
    [
        ("a.py:1:8: F401 `re` imported but unused", "rule", "F401"),
        ("F401 [*] `re` imported but unused\n --> a.py:1:8", "rule", "F401"),
        ("a.py:2: error: Incompatible return value  [return-value]", "rule", "return-value"),
        ("/a.py:3:5 - error: No overload (reportCallIssue)", "rule", "reportCallIssue"),
        ("src/a.ts(3,5): error TS2345: Argument", "rule", "TS2345"),
        (
            "  3:14  error  Unexpected any  @typescript-eslint/no-explicit-any",
            "rule",
            "@typescript-eslint/no-explicit-any",
        ),
        ("E   ModuleNotFoundError: No module named 'x'", "exception", "ModuleNotFoundError"),
        ("FAILED t.py::test_a_b - assert 1 == 2", "test", "test_a_b"),
        ("\x1b[31mFAILED\x1b[0m t.py::\x1b[1mtest_a\x1b[0m", "test", "test_a"),
    ],
)
def test_signature_is_read_from_a_tools_output(output: str, kind: str, name: str) -> None:
    assert (kind, name) in signatures(failed("a/b", "tests", "", output=output))


@pytest.mark.parametrize("output", ["HTTP 404 at 127.0.0.1:8000", "see PEP 484", "all is well", ""])
def test_other_words_have_no_signature(output: str) -> None:
    assert signatures(failed("a/b", "tests", "", output=output)) == ()


def test_a_signature_is_listed_once() -> None:
    output = "a.py:1:8: F401 x\nb.py:1:8: F401 y\n"
    assert signatures(failed("a/b", "lint", "", output=output)) == (Signature("rule", "F401"),)


def test_a_failure_without_its_step_has_the_signatures_of_its_reason() -> None:
    result = replace(failed("a/b", "tests", "ValueError: no"), steps=())
    assert signatures(result) == (Signature("exception", "ValueError"),)
    assert [error_lines(step) for step in failed_steps(result)] == [[]]


def test_lines_that_report_errors_come_before_the_rest() -> None:
    output = "collected 2 items\n...\nE   assert 1 == 2\nFAILED t.py::test_a\n1 failed"
    [step] = failed_steps(failed("a/b", "tests", "", output=output))
    assert error_lines(step) == [
        "E   assert 1 == 2",
        "FAILED t.py::test_a",
    ]


def test_bidirectional_control_characters_become_visible() -> None:
    assert plain("a\u202eb\u2066c\x00d\te\nf") == "a\ufffdb\ufffdcd\te\nf"


@pytest.mark.parametrize(
    "output",
    ["error: " * 60_000, "\n" * 200_000, "  1:1  error" + "  a" * 90_000, "A" * 400_000,
     "\x1b[" * 150_000, "error: [" * 50_000],
)  # fmt: skip
def test_any_output_is_read_in_linear_time(output: str) -> None:
    """In quadratic time these would take many minutes."""
    result = failed("a/b", "lint", output, output=output)
    signatures(result)
    error_lines(*failed_steps(result))
