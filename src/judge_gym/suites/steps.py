"""Runs an answer through the steps of a suite.

Every step starts from the candidate's files alone, on a fresh disk: nothing that one step leaves
behind reaches the next. The tests run apart from the candidate (see `inside.grading`).
"""

import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.records.outcomes import (
    FILESYSTEM,
    IN_PROCESS,
    EvalResult,
    Failed,
    Inconclusive,
    Outcome,
    Passed,
    StepResult,
)
from judge_gym.suites.generation import Reply, read_reply, safe_path
from judge_gym.suites.install import INSTALLED, dependency_folder, install
from judge_gym.suites.loader import COMMANDS, STATIC, CodeTask, Step, Suite, WrongAnswer
from judge_gym.suites.sandbox import Job, JobResult, Limits, choose, run

STEPS = (FILESYSTEM, *COMMANDS)
STOPPING = (FILESYSTEM, "install", "build")
"""If one of these does not pass, the rest is skipped."""
TAP_LINE = re.compile(r"(not )?ok (\d+)\b(?: -)?(.*)")
TAP_PLAN = re.compile(r"1\.\.(\d+)\b")
COMPLAINT = re.compile(
    r"(?!.*(: note: |Warning\b))"  # these accompany an error
    r"(\S+:\d+(:\d+)?: |\S+\(\d+,\d+\): |[A-Z]{1,4}\d+ |invalid-syntax: "
    r"|\d+:\d+ +error )"
)
"""How checkers report an error: file, line and column, or a rule."""
UNDECIDED = re.compile(r"# *(skip|todo)\b", flags=re.I)


@dataclass(frozen=True, slots=True)
class GraderReport:
    """The tests that a grader reported."""

    collected: int
    passed: int
    failed: tuple[str, ...]


def read_tap(report: str) -> GraderReport | None:
    """Reads the top-level tests of a TAP report, if it has one plan and no test twice."""
    planned: list[int] = []
    tests: dict[int, tuple[bool, str]] = {}
    lines = report.split("\n")
    for line in lines:
        if plan := TAP_PLAN.match(line):
            planned.append(int(plan[1]))
        elif test := TAP_LINE.match(line):
            passed = not test[1] and not UNDECIDED.search(test[3])
            if int(test[2]) in tests:
                return None
            tests[int(test[2])] = (passed, test[3].strip())
    if len(planned) != 1 or set(tests) - set(range(1, planned[0] + 1)):
        return None
    failed = tuple(name for passed, name in tests.values() if not passed)
    passes = len(tests) - len(failed)
    missing = planned[0] - len(tests)
    return GraderReport(planned[0], passes, failed + ("a test that did not run",) * missing)


# --- one eval ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Where evals run: the isolation, and the folder of installed dependencies."""

    isolation: str
    allow_unisolated: bool = False
    installed: Path = INSTALLED
    stop: threading.Event = field(default_factory=threading.Event)
    """Once it is set, running jobs end with `Interrupted`."""


def open_sandbox(
    isolation: str | None = None, *, allow_unisolated: bool = False, installed: Path = INSTALLED
) -> Sandbox:
    """Opens a sandbox on this machine, without isolation only if that is allowed."""
    return Sandbox(
        choose(isolation, allow_unisolated=allow_unisolated), allow_unisolated, installed
    )


def run_reply(suite: Suite, task: CodeTask, text: str, sandbox: Sandbox) -> EvalResult:
    """Grades a model's answer: reads its files and runs them through the steps.

    An empty answer is inconclusive; one without a readable file is the model's failure, and its
    text is kept.
    """
    reply = read_reply(text)
    if not text.strip():
        step = StepResult(FILESYSTEM, "inconclusive", 0.0, "the reply is empty")
    elif reply.errors or not reply.files:
        errors = reply.errors or (_no_file(reply),)
        step = StepResult(FILESYSTEM, "failed", 0.0, "; ".join(errors), output=text)
    else:
        return run_eval(suite, task, reply.files, sandbox)
    skipped = [_skip(name, FILESYSTEM) for name in COMMANDS if name in suite.steps]
    return _result(suite, task, reply.files, [step, *skipped], sandbox)


def _no_file(reply: Reply) -> str:
    if not reply.unnamed:
        loose = "code without a '## path' and a fence" if reply.loose_code else "only prose"
        return f"the reply holds no file, {loose}"
    many = "its code block stands" if reply.unnamed == 1 else "its code blocks stand"
    return f"the reply holds no file: {many} under no '## path'"


def run_eval(
    suite: Suite, task: CodeTask, files: Mapping[str, str], sandbox: Sandbox
) -> EvalResult:
    """Runs a candidate's files through the steps of a suite."""
    try:
        clean = {safe_path(path): text for path, text in files.items()}
        error = "" if clean else "there is no file"
    except DesignError as refused:
        clean, error = {}, refused.message
    results = [StepResult(FILESYSTEM, "failed" if error else "passed", 0.0, error)]
    for name in COMMANDS:
        if name not in suite.steps or (task.pipeline == "static" and name not in STATIC):
            reason = "the eval is static" if name in suite.steps else "the suite has no such step"
            results.append(StepResult(name, "skipped", 0.0, reason))
        elif stopped := next((r.name for r in results if _stops(r)), None):
            results.append(_skip(name, stopped))
        elif name == "install":
            results.append(install(suite, sandbox.installed))
        else:
            results.append(_run_step(suite, task, name, clean, sandbox))
    return _result(suite, task, files, results, sandbox)


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """How an answer that comes with a suite was graded."""

    result: EvalResult
    wrong: WrongAnswer | None = None
    """The wrong answer that was graded; None for the reference answer."""

    @property
    def problem(self) -> str:
        """What should not have happened, empty if the answer did as it must."""
        outcome = self.result.outcome
        if self.wrong is None and isinstance(outcome, Passed):
            return ""
        if self.wrong and isinstance(outcome, Failed) and outcome.step == self.wrong.step:
            return ""
        must = f"must fail at {self.wrong.step}" if self.wrong else "must pass"
        match outcome:
            case Passed():
                return f"{must}, but passes"
            case Failed():
                return f"{must}, but fails at {outcome.step}: {outcome.reason}"
            case Inconclusive():
                return f"{must}, but is inconclusive at {outcome.step}: {outcome.reason}"


def check_answers(
    suite: Suite,
    sandbox: Sandbox,
    tasks: Sequence[CodeTask] | None = None,
    *,
    wrong: bool = True,
    at_once: int | None = None,
) -> tuple[AnswerCheck, ...]:
    """Runs the reference answers of a suite through the steps, and its wrong answers.

    A reference answer must pass, with the tests expected; a wrong answer must fail first at its
    step, and is not run further than that.

    Args:
        suite: whose answers are run.
        sandbox: where they run.
        tasks: the evals; by default all.
        wrong: also run the wrong answers.
        at_once: answers at once; by default one for each core.

    Raises:
        MissingToolError: a tool that grades is not installed, so that no answer could pass.
    """
    _ = suite.tool_versions

    def check(task: CodeTask, answer: WrongAnswer | None) -> AnswerCheck:
        if answer is not None:
            last = STEPS.index(answer.step) + 1
            steps = {name: step for name, step in suite.steps.items() if name in STEPS[:last]}
            result = run_eval(replace(suite, steps=steps), task, answer.files, sandbox)
            return AnswerCheck(result, answer)
        result = run_eval(suite, task, task.answer, sandbox)
        collected = result.steps[-1].tests_collected
        # Where eval.toml states no number, any will do.
        if isinstance(result.outcome, Passed) and task.tests > 1 and collected != task.tests:
            message = f"the grader holds {collected} tests, eval.toml expects {task.tests}"
            result = replace(result, outcome=Failed("tests", message))
        return AnswerCheck(result)

    answers: list[tuple[CodeTask, WrongAnswer | None]] = []
    for task in suite.evals if tasks is None else tasks:
        answers.append((task, None))
        answers += [(task, answer) for answer in task.wrong_answers if wrong]
    with ThreadPoolExecutor(at_once or os.cpu_count() or 1) as pool:
        return tuple(pool.map(check, *zip(*answers, strict=True)))


def outcome(steps: Sequence[StepResult]) -> Outcome:
    """Combines the outcomes of steps. One failure decides, even if others are inconclusive."""
    for step in steps:
        if step.status == "failed":
            return Failed(step.name, step.reason)
    for step in steps:
        if step.status == "inconclusive":
            return Inconclusive("infrastructure", step.reason, step.name)
    return Passed()


def _result(
    suite: Suite,
    task: CodeTask,
    files: Mapping[str, str],
    steps: Sequence[StepResult],
    sandbox: Sandbox,
) -> EvalResult:
    return EvalResult(
        task.category,
        task.name,
        outcome(steps),
        tuple(steps),
        dict(files),
        isolation=f"{sandbox.isolation}, {IN_PROCESS}" if suite.in_process else sandbox.isolation,
    )


def _stops(result: StepResult) -> bool:
    return result.name in STOPPING and result.status in ("failed", "inconclusive")


def _skip(name: str, after: str) -> StepResult:
    return StepResult(name, "skipped", 0.0, f"{after} did not pass")


# --- the steps -----------------------------------------------------------------------------------


def _run_step(
    suite: Suite, task: CodeTask, name: str, files: Mapping[str, str], sandbox: Sandbox
) -> StepResult:
    """Runs a step.

    If a step did not end by itself, the reference answer is tried: if that does not end either, the
    machine or the grader is at fault, and the step is inconclusive.
    """
    result, ended = _attempt(suite, task, name, files, sandbox)
    if not ended and not _attempt(suite, task, name, task.answer, sandbox)[1]:
        reason = f"{result.reason}; the reference answer fares no better"
        return replace(result, status="inconclusive", reason=reason)
    return result


def _attempt(
    suite: Suite, task: CodeTask, name: str, files: Mapping[str, str], sandbox: Sandbox
) -> tuple[StepResult, bool]:
    """Runs a step and says whether everything that it started ended by itself."""
    step = suite.steps[name]
    if name == "tests":
        return _tests(suite, task, step, files, sandbox)
    ran = _run(suite, step.command, sandbox, files=files, limits=_limits(task, step), kit=suite.kit)
    reason = "" if ran.passed else _reason(ran, step)
    return _step_result(name, ran, reason), ran.ended not in ("time", "broken")


def _tests(
    suite: Suite, task: CodeTask, step: Step, files: Mapping[str, str], sandbox: Sandbox
) -> tuple[StepResult, bool]:
    kit = {f"grader/{path}": text for path, text in task.grader.items()}
    kit |= {**suite.kit, "candidate.json": json.dumps(dict(files))}
    cut_off: list[JobResult] = []

    def answer(asked: Any) -> dict[str, Any]:
        """Runs a grader's command in a fresh sandbox with the candidate's files."""
        match asked:
            case {"command": [str(), *_] as words, "stdin": str(stdin)}:
                command = [str(word) for word in words]
            case _:
                message = 'a grader asks {"command": ["word", ...], "stdin": "text"}'
                return {"ended": "broken", "code": 125, "stdout": "", "stderr": message}
        ran = _run(suite, command, sandbox, files=files, limits=task.limits, stdin=stdin)
        cut_off.extend([ran] if ran.ended in ("time", "broken") else [])
        return {"ended": ran.ended, "code": ran.code, "stdout": ran.stdout, "stderr": ran.stderr}

    ran = _run(
        suite,
        step.command,
        sandbox,
        limits=replace(_limits(task, step), processes=256),
        kit=kit,
        answer=answer,
        env={"PYTHONPATH": "{inside}/..", "CANDIDATE_FILES": "{kit}/candidate.json"},
    )
    counts = read_tap(ran.report) if ran.ended == "exited" else None
    if counts is None:
        why = _reason(ran, step) if ran.ended != "exited" else "the grader did not report"
        return _step_result("tests", ran, why), False
    if counts.collected < task.tests:
        reason = f"{counts.collected} tests were collected, {task.tests} are expected"
    elif counts.failed:
        first = ", ".join(counts.failed[:5]) + (", ..." if len(counts.failed) > 5 else "")
        reason = f"{len(counts.failed)} of {counts.collected} tests failed: {first}"
    else:
        reason = "" if ran.code == 0 else f"the grader ended with code {ran.code}"
    return _step_result("tests", ran, reason, counts), not (reason and cut_off)


def _step_result(
    name: str, ran: JobResult, reason: str, counts: GraderReport | None = None
) -> StepResult:
    """Builds a step's result, which has failed if there is a reason."""
    return StepResult(
        name,
        "failed" if reason else "passed",
        ran.seconds,
        reason,
        ran.output,
        tests_passed=counts.passed if counts else None,
        tests_collected=counts.collected if counts else None,
    )


def _run(
    suite: Suite,
    command: Sequence[str],
    sandbox: Sandbox,
    *,
    limits: Limits,
    files: Mapping[str, str] | None = None,
    kit: Mapping[str, str] | None = None,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    answer: Callable[[Any], Any] | None = None,
) -> JobResult:
    tools = [words[0] for words in suite.tools.values() if words[0] != "{python}"]
    mounts = (
        {"deps": dependency_folder(suite, sandbox.installed)} if "install" in suite.steps else {}
    )
    job = Job(
        command,
        files or {},
        kit or {},
        mounts,
        env or {},
        stdin,
        limits=limits,
        tools=tools,
        hidden=[suite.folder],
    )
    return run(
        job,
        isolation=sandbox.isolation,
        allow_unisolated=sandbox.allow_unisolated,
        answer=answer,
        stop=sandbox.stop,
    )


def _limits(task: CodeTask, step: Step) -> Limits:
    return replace(task.limits, seconds=step.seconds, cpu_seconds=max(1, int(step.seconds)))


def _reason(ran: JobResult, step: Step) -> str:
    """Says why a run did not pass."""
    match ran.ended:
        case "time":
            return f"not done within {step.seconds:g} s"
        case "memory" | "disk":
            return f"more {ran.ended} than allowed"
        case "broken":
            return f"it could not be started: {ran.reason}"
    lines = [line.strip() for line in ran.output.split("\n") if line.strip()]
    if not lines:
        return f"exit code {ran.code}"
    # Checkers end with a count of errors, tracebacks with the error.
    line = next((line for line in lines if COMPLAINT.match(line)), lines[-1])
    return f"exit code {ran.code}: {line[:200]}"
