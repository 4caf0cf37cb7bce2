"""What a failure can be recognised by: the rules, exceptions and tests that its output names."""

import re
from typing import Literal, NamedTuple

from judge_gym.outcomes import EvalResult
from judge_gym.triage.gate import failed_step, failure_of

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
    """What a failure's reason and its step's output name, each once, in the order of kinds."""
    text = "\n".join([*_lines(failure_of(result).reason), *_output(result)])
    found: dict[Sign, None] = {}
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            found[Sign(kind, match[1])] = None
    return tuple(found)


def error_lines(result: EvalResult) -> list[str]:
    """The lines of a failing step's output that tell of errors; its last lines where none does."""
    lines = [line for line in _output(result) if line.strip()]
    telling = [line for line in lines if re.match(r"E\s|FAILED\b|.*(?i:\berror\b)", line)]
    telling = telling or [line for line in lines if _PATTERNS[0][1].search(line)]
    return telling[:SHOWN_LINES] or lines[-SHOWN_LINES:]


def error_text(result: EvalResult) -> str:
    """The words of an error itself: its reason, its lines, and the names in them."""
    names = [sign.name.replace("_", " ") for sign in signs(result)]
    return "\n".join([*_lines(failure_of(result).reason), *error_lines(result), *names])


def _output(result: EvalResult) -> list[str]:
    step = failed_step(result)
    return _lines(step.output) if step else []


def _lines(text: str) -> list[str]:
    """The lines of an output, each up to a length: time stays linear whatever was printed."""
    return [line[:LONGEST_LINE] for line in plain(text).splitlines()]
