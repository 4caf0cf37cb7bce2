"""The grader's side: a pytest plugin that asks for runs of the candidate and reports in TAP.

Graders run where no candidate's code ever is: pytest, the tests and what they expect are out of its
reach. The `candidate` fixture has its code run in a sandbox of its own, each time a fresh one, and
brings back plain data. So a candidate can lie about nothing but its own answers.
"""

import json
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

REPORT, ASK, ANSWER = 3, 4, 5


class Raised(Exception):
    """The candidate's code raised an exception, whose name is `kind`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class Silent(Exception):
    """The candidate's code ended without an answer: it hung, exited, or used too much."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of the candidate ended."""

    ended: str
    code: int
    stdout: str
    stderr: str


class Candidate:
    """What a grader can ask of a candidate."""

    @property
    def files(self) -> Mapping[str, str]:
        """Its files, as text. Never import them here."""
        with open(os.environ["CANDIDATE_FILES"], encoding="utf-8") as file:
            files: dict[str, str] = json.load(file)
        return files

    def command(self, words: Sequence[str], stdin: str = "") -> Run:
        """Run a command in a fresh sandbox that holds the candidate's files."""
        message = json.dumps({"command": list(words), "stdin": stdin}).encode() + b"\n"
        while message:
            message = message[os.write(ASK, message) :]
        return Run(**json.loads(_line(ANSWER)))

    def run(self, source: str, **inputs: Any) -> Any:
        """Run Python beside the candidate's modules: the value of the last expression.

        Args:
            source: statements; their indentation is taken off.
            inputs: plain data, by the names that the statements know it by.
        """
        request = json.dumps({"source": textwrap.dedent(source).strip(), "inputs": inputs})
        ran = self.command(["{python}", "-I", "{inside}/calling.py"], request)
        try:
            said = json.loads(ran.stdout)
            if "raised" in said:
                raise Raised(*map(str, said["raised"]))
            return said["value"]
        except (ValueError, TypeError, KeyError, RecursionError):
            said = f"no answer: ended by {ran.ended}, code {ran.code}\n{ran.stderr}"
            raise Silent(said) from None

    def call(self, target: str, *args: Any, **kwargs: Any) -> Any:
        """Call `module:name` with plain data."""
        module, _, name = target.partition(":")
        source = f"import {module}\n{module}.{name}(*args, **kwargs)"
        return self.run(source, args=list(args), kwargs=kwargs)


def _line(descriptor: int) -> bytes:
    read = bytearray()
    while not read.endswith(b"\n"):
        part = os.read(descriptor, 1 << 16)
        if not part:
            raise Silent("the host is gone")
        read += part
    return bytes(read)


@pytest.fixture(scope="session")
def candidate() -> Candidate:
    """The code under test, at arm's length."""
    return Candidate()


# --- the report ----------------------------------------------------------------------------------

_outcomes: dict[str, bool] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Passes a test if all of it passes, and fails one that is skipped."""
    before = _outcomes.get(report.nodeid, True)
    _outcomes[report.nodeid] = before and report.passed and not hasattr(report, "wasxfail")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be collected is a test that fails."""
    if not report.passed:
        _outcomes[f"collection of {report.nodeid}"] = False


def tap(outcomes: Mapping[str, bool], collected: int) -> Iterator[str]:
    """The report's lines: a plan of all that was collected, and a line for each that ran."""
    yield "TAP version 13"
    broken = sum(name.startswith("collection of ") for name in outcomes)
    yield f"1..{collected + broken}"
    for number, (name, passed) in enumerate(outcomes.items(), 1):
        name = " ".join(name.replace("#", "_").split())
        yield f"{'ok' if passed else 'not ok'} {number} - {name}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Say how each test ended, where only this process can."""
    text = "\n".join(tap(_outcomes, session.testscollected)) + "\n"
    os.write(REPORT, text.encode())
