"""Counts the functions of judge_gym that one sample passes from the command to its row.

It runs the command `run` on a study of one item with one simulated judge, and looks at the stack of
calls, through tasks and threads, at seven moments of the sample's way: its order is queued, its
prompt is written, the ledger is searched, the model is called, the attempt is committed, the answer
is read, and the row is saved. A named function is on the walk if it is on the stack at one of these
moments: whoever follows a sample through the code must pass it. Functions that are called on the
way and have returned are not, nor are comprehensions, lambdas, generated methods and imports.

The walk is written into docs/architecture.md; `--all` prints every function that is entered on
behalf of the order once a worker has taken it up, instead.
"""

import asyncio
import contextlib
import contextvars
import inspect
import io
import json
import os
import re
import sys
import tempfile
import threading
from asyncio import base_events
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = str(ROOT / "src" / "judge_gym") + os.sep
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- the walk of a sample, by scripts/trace_run.py -->", "<!-- end of the walk -->"
MOMENTS = {
    "RunQueue.add": "the order is queued",
    "Scorer.requests": "the prompt is written",
    "Ledger.find": "the ledger is searched",
    "SimulatedModel.complete": "the model is called",
    "Ledger.record": "the attempt is committed",
    "Scorer.read": "the answer is read",
    "Verdicts.save_samples": "the row is saved",
}
COMMAND = "cli/runs.py", "run"
TAKEN_UP = "Workflows._execute"
"""The function with which a worker takes up an order."""
STUDY = {
    "study.yaml": "study: one\nsamples: 1\nprobe: false\nevidence: {items: {files: items.jsonl}}\n"
    "tasks: [{concept: severity, evidence: items, rubric: rubric.json}]\njudges: [sim:balanced]\n",
    "items.jsonl": json.dumps({"title": "An item", "text": "The budget was adopted unanimously."}),
    "rubric.json": json.dumps(
        {
            "kind": "ordinal",
            "stages": [
                {"label": "low", "criteria": ["calm"]},
                {"label": "high", "criteria": ["harsh"]},
            ],
        }
    ),
}
Function = tuple[str, str]
"""The file below `src/judge_gym`, and the qualified name."""


class Tracer:
    """Notes functions of judge_gym as they are called, in every thread."""

    def __init__(self) -> None:
        self.walk: dict[Function, str] = {}
        """The functions on the walk, with the moment that each is reached at."""
        self.entered: dict[Function, None] = {}
        self._tasks: dict[int, tuple[Function, ...]] = {}
        """The stack that began each task."""
        self._threads: dict[CodeType, tuple[Function, ...]] = {}
        """The stack that handed a function to a thread."""
        self._taken_up = contextvars.ContextVar("taken_up", default=False)

    def profile(self, frame: FrameType, event: str, value: Any) -> None:
        """Is called by the interpreter for every call and return."""
        code = frame.f_code
        if code.co_filename == base_events.__file__:
            if code.co_name == "create_task" and event == "return" and value is not None:
                self._tasks[id(value)] = self._stack(frame)
            elif code.co_name == "run_in_executor" and event == "call":
                self._threads[_called(frame.f_locals["func"])] = self._stack(frame)
        elif event == "call" and _is_ours(code):
            if code.co_qualname == TAKEN_UP:
                self._taken_up.set(True)  # for all that is called from here, in any task
            if self._taken_up.get() and not _is_importing(frame):
                self.entered.setdefault(_function(code))
            if moment := MOMENTS.get(code.co_qualname):
                for function in self._stack(frame):
                    self.walk.setdefault(function, moment)

    def _stack(self, frame: FrameType | None) -> tuple[Function, ...]:
        """Returns the functions on the stack, outermost first, with those of whoever began it."""
        codes: list[CodeType] = []
        while frame is not None:
            if _is_ours(frame.f_code):
                codes.append(frame.f_code)
            frame = frame.f_back
        began: tuple[Function, ...] = ()
        try:
            began = self._tasks.get(id(asyncio.current_task()), ())
        except RuntimeError:  # no loop is running in this thread
            if codes:
                began = self._threads.get(codes[-1], ())
        stack = [_function(code) for code in reversed(codes)]
        return (*began, *(stack[stack.index(COMMAND) :] if COMMAND in stack else stack))


def _called(function: Any) -> CodeType:
    while not hasattr(function, "__code__"):  # a partial, also of `Context.run`
        function = function.args[0] if inspect.isbuiltin(function.func) else function.func
    code: CodeType = function.__code__
    return code


def _is_ours(code: CodeType) -> bool:
    named = not code.co_name.startswith("<") and code.co_flags & inspect.CO_NEWLOCALS
    return bool(named) and code.co_filename.startswith(SOURCE)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(SOURCE):
            return True
        frame = frame.f_back
    return False


def _function(code: CodeType) -> Function:
    return code.co_filename.removeprefix(SOURCE), code.co_qualname


@contextlib.contextmanager
def _in_empty_folder() -> Iterator[None]:
    before = Path.cwd()
    os.environ.pop("JUDGE_GYM_DATABASE_URL", None)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in STUDY.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def trace() -> Tracer:
    """Runs the study and returns what was noted."""
    from judge_gym.cli import main

    tracer = Tracer()
    with _in_empty_folder(), contextlib.redirect_stdout(io.StringIO()) as printed:
        threading.setprofile(tracer.profile)
        sys.setprofile(tracer.profile)
        try:
            main(["run", "study.yaml", "--json"])
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert json.loads(printed.getvalue())["status"] == "complete"
    return tracer


def listed(walk: dict[Function, str]) -> str:
    """Returns the walk as Markdown."""
    files = {file for file, _ in walk}
    lines = [
        f"{len(walk)} functions in {len(files)} files, until each of these moments:",
        "",
        "| moment | functions that it is reached through, beside those above |",
        "| --- | --- |",
    ]
    for moment in MOMENTS.values():
        functions = [f"`{file}` `{name}`" for (file, name), at in walk.items() if at == moment]
        lines.append(f"| {moment} | {', '.join(functions)} |")
    return "\n".join(lines)


def page_with(walk: str) -> str:
    """Returns docs/architecture.md with this walk."""
    part = f"{BEGIN}\n{walk}\n{END}"
    pattern = re.escape(BEGIN) + ".*" + re.escape(END)
    return re.sub(pattern, lambda _: part, PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


if __name__ == "__main__":
    traced = trace()
    if "--all" in sys.argv:
        rooms = [file.partition("/")[0] for file, _ in traced.entered]
        sys.stdout.write("".join(f"{file} {name}\n" for file, name in traced.entered))
        sys.stdout.write(f"{len(rooms)} functions, of engine {rooms.count('engine')}\n")
    elif "--print" in sys.argv:
        sys.stdout.write(f"{listed(traced.walk)}\n")
    else:
        PAGE.write_text(page_with(listed(traced.walk)), encoding="utf-8")
        sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
