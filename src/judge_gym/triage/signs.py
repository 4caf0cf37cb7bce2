"""What a failure can be recognised by: the rules, exceptions and tests that its output names."""

import re
from typing import Literal, NamedTuple

from judge_gym.outcomes import FILESYSTEM, EvalResult, StepResult
from judge_gym.triage.gate import failed_steps

SignKind = Literal["rule", "exception", "test"]

LONGEST_LINE = 500
SHOWN_LINES = 8
"""Lines of output that stand for an error."""
# Escape sequences of terminals, and control characters other than tab and line break.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PATTERNS: tuple[tuple[SignKind, re.Pattern[str]], ...] = (
    # ruff and flake8 (`a.py:1:2: F401 ...`, or `F401 [*] ...`), tsc (`error TS2345: ...`)
    ("rule", re.compile(r"(?:^|:\d+: |\berror )([A-Z]{1,5}\d{3,4})\b", re.M)),
    # mypy (`error: ...  [arg-type]`) and pyright (`error: ... (reportCallIssue)`)
    ("rule", re.compile(r"\berror: [^\n]*\[([a-z][a-z0-9-]+)\][ \t]*$", re.M)),
    ("rule", re.compile(r"\berror: [^\n]*\((report[A-Za-z]+)\)[ \t]*$", re.M)),
    # eslint (`  1:2  error  Unexpected any  @typescript-eslint/no-explicit-any`)
    ("rule", re.compile(r"^[ \t]+\d+:\d+[ \t]+(?:error|warning) [^\n]*[ \t]{2,}(\S+)$", re.M)),
    ("exception", re.compile(r"\b([A-Z][A-Za-z]*(?:Error|Exception|Interrupt))\b")),
    ("test", re.compile(r"::(test\w*)")),
)  # fmt: skip


class Sign(NamedTuple):
    """One name that a failing step printed."""

    kind: SignKind
    name: str


def plain(text: str) -> str:
    r"""A text without the colours and control characters of a terminal.

    What turns the direction of writing becomes visible: it can make code look like other code.

    >>> plain("\x1b[31mred\x1b[0m\x00 text")
    'red text'
    """
    shown = _TURNING.sub("\ufffd", text.replace("\r\n", "\n"))
    return _CONTROL.sub("", shown)


def signs(result: EvalResult) -> tuple[Sign, ...]:
    """What the failed steps' reasons and outputs name, each once, in the order of kinds."""
    steps = failed_steps(result)
    text = "\n".join(line for step in steps for line in [*_reason(step), *_lines(printed(step))])
    found: dict[Sign, None] = {}
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            found[Sign(kind, match[1])] = None
    return tuple(found)


def printed(step: StepResult) -> str:
    """What a step's tool printed: the output of `filesystem` is the candidate's own reply."""
    return "" if step.name == FILESYSTEM else step.output


def error_lines(step: StepResult) -> list[str]:
    """The lines of a failed step's output that tell of errors; its last lines where none does."""
    lines = [line for line in _lines(printed(step)) if line.strip()]
    telling = [line for line in lines if re.match(r"E\s|FAILED\b|.*(?i:\berror\b)", line)]
    telling = telling or [line for line in lines if _PATTERNS[0][1].search(line)]
    return telling[:SHOWN_LINES] or lines[-SHOWN_LINES:]


def error_text(result: EvalResult) -> str:
    """The words of the errors themselves: reasons, lines, and the names in them."""
    names = [sign.name.replace("_", " ") for sign in signs(result)]
    lines = [line for step in failed_steps(result) for line in [*_reason(step), *error_lines(step)]]
    return "\n".join([*lines, *names])


def _reason(step: StepResult) -> list[str]:
    """Why a step failed; paths that a candidate chose are no words of a tool."""
    told = re.sub(r"['\"].*['\"]", "", step.reason, flags=re.S)
    return _lines(told if step.name == FILESYSTEM else step.reason)


def _lines(text: str) -> list[str]:
    """The lines of an output, each up to a length: time stays linear whatever was printed."""
    return [line[:LONGEST_LINE] for line in plain(text).splitlines()]
