"""Candidates that would rather cheat than solve: none passes, none leaves a process behind."""

import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from judge_gym.records.outcomes import EvalResult, Failed, Inconclusive
from judge_gym.suites import CodeTask, Sandbox, Suite, load_suite, open_sandbox, run_eval, run_reply
from judge_gym.suites.sandbox import isolations
from suites_kit import none_left

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not isolations(), reason="no sandbox works here"),
]

WRONG = "def slug(text: str) -> str:\n    return 'wrong'\n"
FAKE_TAP = "TAP version 13\\n1..5\\nok 1 - a\\nok 2 - b\\nok 3 - c\\nok 4 - d\\nok 5 - e\\n"
FORGE = f"""
import os
said = b"{FAKE_TAP}"
for number in range(1, 256):
    try:
        os.write(number, said)
    except OSError:
        pass
print("5 passed in 0.01s")
"""
PATCH = """
import builtins, sys, json, os
class Equal(str):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = str.__hash__
for name in ("pytest", "_pytest", "_pytest.python", "_pytest.runner", "_pytest.reports"):
    module = sys.modules.setdefault(name, type(sys)(name))
    module.main = lambda *a, **k: 0
json.dumps = lambda *a, **k: '{"value": true}'
def slug(text: str) -> str:
    return Equal("x")
"""
SEARCH = '''
import os
OWN = (os.path.abspath(__file__), os.path.abspath("__pycache__"))
found = []
for folder, folders, files in os.walk("/"):
    if folder.startswith(("/proc", "/usr", "/dev")) or os.path.basename(folder) == "lib":
        folders.clear()
        continue
    for name in files:
        path = os.path.join(folder, name)
        try:
            if "hello-world" in open(path, encoding="utf-8", errors="replace").read(100_000):
                found.append(path)
            if "test_slug" in name or name in ("candidate.json", "conftest.py"):
                found.append(path)
                os.unlink(path)
        except OSError:
            pass
def slug(text: str) -> str:
    """Says what was found; were it the grader, it would be told apart from a wrong answer."""
    raise LookupError(repr(sorted(path for path in found if not path.startswith(OWN))))
'''
EXITS = {
    "exits with 0 at import": f"import os\nos._exit(0)\n{WRONG}",
    "exits politely": f"import sys\nsys.exit(0)\n{WRONG}",
    "exits when called": "import os\ndef slug(text: str) -> str:\n    os._exit(0)\n",
    "prints fake results": FORGE + WRONG,
    "prints and exits": FORGE + "import os\nos._exit(0)\n",
    "patches what it can reach": PATCH,
    "kills everything": f"import os, signal\nos.kill(-1, signal.SIGTERM)\n{WRONG}",
}
PLANTED = {
    "conftest.py": "def pytest_runtest_makereport(item, call): raise SystemExit(0)\n",
    "pytest.py": "import sys; sys.exit(0)\n",
    "_pytest/__init__.py": "import sys; sys.exit(0)\n",
    "sitecustomize.py": "import os; os._exit(0)\n",
    "usercustomize.py": "import os; os._exit(0)\n",
    "inside/grading.py": "import os; os._exit(0)\n",
    "ast.py": 'import os; os.write(1, b\'{"value": "hello-world"}\'); os._exit(0)\n',
    "json.py": 'import os; os.write(1, b\'{"value": "hello-world"}\'); os._exit(0)\n',
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "grader/test_slug.py": "def test_ok(): pass\n",
    "test_slug.py": "def test_ok(): pass\n",
}


@pytest.fixture(scope="module")
def suite() -> Suite:
    """The shipped suite without its slow steps; cheating is a matter of build and tests."""
    whole = load_suite("python")
    return replace(whole, steps={name: whole.steps[name] for name in ("build", "tests")})


@pytest.fixture(scope="module")
def task(suite: Suite) -> CodeTask:
    found = suite.find("001-slug")
    return replace(found, limits=replace(found.limits, seconds=5, processes=16, memory_mb=128))


@pytest.fixture(scope="module")
def on() -> Sandbox:
    return open_sandbox()


def failed(result: EvalResult) -> Failed:
    assert isinstance(result.outcome, Failed), result
    return result.outcome


@pytest.mark.parametrize("source", EXITS.values(), ids=EXITS)
def test_no_trick_passes(source: str, suite: Suite, task: CodeTask, on: Sandbox) -> None:
    result = run_eval(suite, task, {"solution.py": source}, on)
    assert failed(result).step in ("build", "tests")
    tests = result.steps[-1]
    assert tests.tests_passed in (0, None)
    assert result.isolation == on.isolation


def test_planted_files_change_nothing(suite: Suite, task: CodeTask, on: Sandbox) -> None:
    result = run_eval(suite, task, {"solution.py": WRONG, **PLANTED}, on)
    assert failed(result).step == "tests"
    assert (result.steps[-1].tests_passed, result.steps[-1].tests_collected) == (0, 5)


def test_planted_files_do_not_harm_a_right_answer(
    suite: Suite, task: CodeTask, on: Sandbox
) -> None:
    harmless = {name: PLANTED[name] for name in PLANTED if name not in ("ast.py", "json.py")}
    result = run_eval(suite, task, {**task.answer, **harmless}, on)
    assert result.outcome.kind == "passed", result.steps


def test_the_grader_is_nowhere_to_be_found(suite: Suite, task: CodeTask, on: Sandbox) -> None:
    result = run_eval(suite, task, {"solution.py": SEARCH}, on)
    assert failed(result).step == "tests"
    assert result.steps[-1].tests_collected == 5
    assert "LookupError: []" in result.steps[-1].output


def test_the_grader_itself_is_not_overwritten(suite: Suite, task: CodeTask, on: Sandbox) -> None:
    before = {path: path.read_bytes() for path in suite.folder.rglob("*") if path.is_file()}
    overwrite = """
import glob, os
for path in glob.glob("/box/**", recursive=True) + glob.glob("/mnt/**", recursive=True):
    try:
        open(path, "w").close()
    except OSError:
        pass
"""
    assert failed(run_eval(suite, task, {"solution.py": overwrite + WRONG}, on))
    assert before == {path: path.read_bytes() for path in before}


def test_one_that_hangs_with_a_child_fails_and_leaves_nothing(
    suite: Suite, task: CodeTask, on: Sandbox
) -> None:
    token = secrets.token_hex(8)
    source = f"""
import subprocess, sys, time
subprocess.Popen(
    [sys.executable, "-I", "-c", "import time; time.sleep(600)", "{token}"], start_new_session=True
)
time.sleep(600)
"""
    short = replace(
        suite,
        steps={"build": replace(suite.steps["build"], seconds=10), "tests": suite.steps["tests"]},
    )
    result = run_eval(short, task, {"solution.py": source}, on)
    assert failed(result) == Failed("build", "not done within 10 s")
    assert [step.status for step in result.steps if step.name == "tests"] == ["skipped"]
    assert none_left(token)


def test_forks_and_memory_fail_and_leave_nothing(suite: Suite, task: CodeTask, on: Sandbox) -> None:
    token = secrets.token_hex(8)
    source = f"""
import os, subprocess, sys
code = "x = bytearray(b'x' * 2**26); input()"
def slug(text: str) -> str:
    held = []
    while True:
        try:
            if os.fork() == 0:
                os.execv(sys.executable, [sys.executable, "-I", "-c", code, "{token}"])
        except OSError:
            pass
        held.append(bytearray(b"x" * 2**20))
"""
    result = run_eval(suite, task, {"solution.py": source}, on)
    assert failed(result).step == "tests"
    assert "no answer: ended by" in result.steps[-1].output
    assert none_left(token)


@pytest.mark.parametrize(
    "path",
    ["../out.py", "/etc/cron.d/x", "a/../../out.py", "C:\\x.py", "..\\out.py", "~/x.py", "a//b.py"],
)
def test_paths_that_leave_the_folder_fail(
    path: str, suite: Suite, task: CodeTask, on: Sandbox, tmp_path: Path
) -> None:
    reply = f"# Files\n## {path}\n```\nx\n```\n## solution.py\n```\n{WRONG}```\n"
    result = run_reply(suite, task, reply, on)
    assert failed(result).step == "filesystem"
    assert result.steps[0].output == reply
    assert {step.status for step in result.steps[1:]} == {"skipped"}
    assert failed(run_eval(suite, task, {path: "x"}, on)).step == "filesystem"


def test_an_empty_reply_is_inconclusive_and_one_without_files_is_not(
    suite: Suite, task: CodeTask, on: Sandbox
) -> None:
    empty = run_reply(suite, task, " \n", on)
    assert empty.outcome == Inconclusive("infrastructure", "the reply is empty", "filesystem")
    chat = run_reply(suite, task, "I would rather not.", on)
    assert chat.outcome == Failed("filesystem", "the reply holds no file, only prose")
    assert chat.steps[0].output == "I would rather not."
    code = run_reply(suite, task, "def add(a, b): ...", on)
    reason = "the reply holds no file, code without a '## path' and a fence"
    assert code.outcome == Failed("filesystem", reason)
    bare = run_reply(suite, task, "Here it is:\n```python\nx = 1\n```\n", on)
    told = "the reply holds no file: its code block stands under no '## path'"
    assert bare.outcome == Failed("filesystem", told)
