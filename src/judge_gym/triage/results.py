"""The results of a run: by outcome, with their failed steps and what those steps printed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from judge_gym.errors import DesignError
from judge_gym.records.outcomes import (
    FILESYSTEM,
    EvalResult,
    Failed,
    Inconclusive,
    Passed,
    StepResult,
)

MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK, KNOWN_GAP = CLASSES = (
    "MODEL_FAULT",
    "OVERLY_STRICT",
    "AMBIGUOUS_TASK",
    "KNOWN_GAP",
)
UNDECIDED = "undecided"
"""The class of a failure on which the verdicts tie, or of which none was scored."""


@dataclass(frozen=True, slots=True)
class ResultsByOutcome:
    """The results of a run by outcome. Every count of a report counts these."""

    passed: tuple[EvalResult, ...]
    failed: tuple[EvalResult, ...]
    inconclusive: tuple[EvalResult, ...]

    @property
    def evals(self) -> int:
        """The number of distinct evals: fewer than results where there are replicates."""
        return len({result.path for result in (*self.passed, *self.failed, *self.inconclusive)})

    @property
    def conclusive(self) -> int:
        """The denominator of the pass rate."""
        return len(self.passed) + len(self.failed)

    def name(self, result: EvalResult) -> str:
        """Names a result in a report. Among replicates, the first is numbered, too."""
        name = result_name(result)
        alone = self.evals == self.conclusive + len(self.inconclusive)
        return name if alone or result.replicate else f"{name}#0"


def split_results(results: Iterable[EvalResult]) -> ResultsByOutcome:
    """Splits results by outcome, each part sorted by name.

    The type decides, never the words of a reason: a candidate may print "connection refused".
    """
    by_name: dict[str, EvalResult] = {}
    for result in results:
        if result_name(result) in by_name:
            raise DesignError(f"two results of {result_name(result)}; number the replicates")
        by_name[result_name(result)] = result
    ordered = [by_name[name] for name in sorted(by_name)]
    return ResultsByOutcome(
        passed=tuple(result for result in ordered if isinstance(result.outcome, Passed)),
        failed=tuple(result for result in ordered if isinstance(result.outcome, Failed)),
        inconclusive=tuple(
            result for result in ordered if isinstance(result.outcome, Inconclusive)
        ),
    )


def result_name(result: EvalResult) -> str:
    """The eval's path, with the replicate's number where it is not the first."""
    return f"{result.path}#{result.replicate}" if result.replicate else result.path


def failure_of(result: EvalResult) -> Failed:
    """Reads how a result failed. Any other outcome is refused."""
    if not isinstance(result.outcome, Failed):
        raise DesignError(
            f"{result_name(result)} is {result.outcome.kind}; only failed results are judged"
        )
    return result.outcome


def failed_steps(result: EvalResult) -> tuple[StepResult, ...]:
    """Lists the failed steps of a failure in order, of which the first decided."""
    outcome = failure_of(result)
    failed = tuple(step for step in result.steps if step.status == "failed")
    if any(step.name == outcome.step for step in failed):
        return failed
    # Its record is gone, or passed: a reference answer fails by the number of its tests.
    return (StepResult(outcome.step, "failed", 0.0, outcome.reason), *failed)


def reply_of(result: EvalResult) -> str:
    """What a model wrote instead of files: the output of the failed step `filesystem`."""
    return "".join(step.output for step in failed_steps(result) if step.name == FILESYSTEM)


# --- error signatures ----------------------------------------------------------------------------


SignatureKind = Literal["rule", "exception", "test"]

LONGEST_LINE = 500
SHOWN_LINES = 8
"""The most lines of output that are shown of an error."""
# Escape sequences of terminals, and control characters other than tab and line break.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BIDIRECTIONAL = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PATTERNS: tuple[tuple[SignatureKind, re.Pattern[str]], ...] = (
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


class Signature(NamedTuple):
    """One name that a failed step printed."""

    kind: SignatureKind
    name: str


def plain(text: str) -> str:
    r"""Removes the colours and control characters of a terminal.

    Characters that change the direction of writing become visible: they can disguise code.

    >>> plain("\x1b[31mred\x1b[0m\x00 text")
    'red text'
    """
    visible = _BIDIRECTIONAL.sub("\ufffd", text.replace("\r\n", "\n"))
    return _CONTROL.sub("", visible)


def signatures(result: EvalResult) -> tuple[Signature, ...]:
    """Lists what the failed steps' reasons and outputs name, each once, ordered by kind."""
    steps = failed_steps(result)
    text = "\n".join(
        line for step in steps for line in [*_reason(step), *_lines(printed_text(step))]
    )
    names: dict[Signature, None] = {}
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            names[Signature(kind, match[1])] = None
    return tuple(names)


def printed_text(step: StepResult) -> str:
    """What a step's tool printed. `filesystem` has no tool, and its output is the reply."""
    return "" if step.name == FILESYSTEM else step.output


def error_lines(step: StepResult) -> list[str]:
    """Selects a failed step's lines that report errors, or else its last lines."""
    lines = [line for line in _lines(printed_text(step)) if line.strip()]
    errors = [line for line in lines if re.match(r"E\s|FAILED\b|.*(?i:\berror\b)", line)]
    errors = errors or [line for line in lines if _PATTERNS[0][1].search(line)]
    return errors[:SHOWN_LINES] or lines[-SHOWN_LINES:]


def error_text(result: EvalResult) -> str:
    """Joins a failure's errors: reasons, error lines and the names in them."""
    names = [signature.name.replace("_", " ") for signature in signatures(result)]
    lines = [line for step in failed_steps(result) for line in [*_reason(step), *error_lines(step)]]
    return "\n".join([*lines, *names])


def _reason(step: StepResult) -> list[str]:
    """Splits a step's reason into lines, without paths that the candidate chose."""
    unquoted = re.sub(r"['\"].*['\"]", "", step.reason, flags=re.S)
    return _lines(unquoted if step.name == FILESYSTEM else step.reason)


def _lines(text: str) -> list[str]:
    """Cuts each line of an output to a length, so that matching takes linear time."""
    return [line[:LONGEST_LINE] for line in plain(text).splitlines()]
