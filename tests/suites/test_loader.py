"""Suites from folders: what is found, what is refused, and what makes a version."""

import ast
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from judge_gym.errors import DesignError, JudgeGymError, MissingToolError, NotFoundError
from judge_gym.suites import SHIPPED, Limits, Sandbox, Suite, check_answers, load_suite
from judge_gym.suites.loader import DIFFICULTIES
from judge_gym.suites.steps import STEPS

TOML = """
name = "small"
[limits]
seconds = 5
[steps.tests]
command = ["{python}", "-m", "pytest"]
[conditions.mine]
without = ["Style"]
extra = "Be brief."
"""
TOML_OF_A = 'pipeline = "static"\ntests = 3\n'
Make = Callable[..., Path]
OF_A = "001-early/001-a/wrong.toml"


def wrong(name: str, old: str, new: str, file: str = "deep/a.py") -> str:
    """An edit of a wrong answer."""
    return f"[[{name}]]\nfile = '{file}'\nold = '{old}'\nnew = '{new}'\n"


WRONG_OF_A = wrong("tests-two", "a =", "a = 3 +") + wrong("tests-two", "3 +", "4 +")


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a small valid suite, with any file replaced; None leaves it out."""

    def write(**changes: str | bytes | None) -> Path:
        files: dict[str, str | bytes | None] = {
            "suite.toml": TOML,
            "guidelines.md": "# All\nBe careful.\n\n## Style\nShort.\n\n## Types\nAll of them.\n",
            "kit/ruff.toml": "lint.select = []\n",
            "002-late/001-b/TASK.txt": "Do b.",
            "002-late/001-b/answer/b.py": "b = 1\n",
            "002-late/001-b/grader/test_b.py": "def test_b(): pass\n",
            "001-early/001-a/TASK.md": "Do a.",
            "001-early/001-a/answer/deep/a.py": "a = 1\n",
            "001-early/001-a/grader/test_a.py": "def test_a(): pass\n",
            "001-early/001-a/eval.toml": f"{TOML_OF_A}[limits]\ndisk_mb = 9\n",
            "001-early/001-a/GAPS.md": "None known.",
            OF_A: wrong("tests-more", "a =", "a = 1 +") + WRONG_OF_A,
        }
        files.update(changes)
        folder = tmp_path / "suite"
        shutil.rmtree(folder, ignore_errors=True)
        for name, text in files.items():
            if text is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return folder

    return write


def test_evals_are_found_in_order(make: Make) -> None:
    suite = load_suite(make())
    assert [task.path for task in suite.evals] == ["001-early/001-a", "002-late/001-b"]
    first, second = suite.evals
    assert (first.task, first.answer, first.gaps) == (
        "Do a.",
        {"deep/a.py": "a = 1\n"},
        "None known.",
    )
    assert (first.pipeline, first.tests, first.limits) == ("static", 3, Limits(5, disk_mb=9))
    assert (second.pipeline, second.tests, second.limits) == ("full", 1, Limits(5))
    assert [(each.name, each.step, each.files) for each in first.wrong_answers] == [
        ("tests-more", "tests", {"deep/a.py": "a = 1 + 1\n"}),
        ("tests-two", "tests", {"deep/a.py": "a = 4 + 1\n"}),
    ]
    assert first.source.grader == {"test_a.py": "def test_a(): pass\n"}
    assert suite.kit == {"ruff.toml": "lint.select = []\n"}


def test_guidelines_are_known_by_section(make: Make) -> None:
    suite = load_suite(make())
    assert suite.guidelines == {
        "general": "Be careful.",
        "Style": "Short.",
        "Types": "All of them.",
    }
    assert list(suite.conditions) == ["default", "no_guidelines", "web_search", "mine"]
    assert list(suite.conditions["mine"].kept(suite.guidelines)) == ["general", "Types"]
    assert load_suite(make(**{"guidelines.md": None, "suite.toml": TOML.split("[cond")[0]}))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"suite.toml": None}, "a suite is a folder with a suite.toml"),
        ({"suite.toml": "name = ["}, "broken TOML"),
        ({"suite.toml": TOML.replace('"small"', "3")}, "needs a name"),
        ({"suite.toml": "colour = 1\n" + TOML}, "unknown key 'colour'"),
        ({"suite.toml": TOML.replace("steps.tests", "steps.test")}, "unknown step 'test'"),
        ({"suite.toml": 'name = "x"'}, "has no step 'tests'"),
        ({"suite.toml": TOML.replace("seconds = 5", "second = 5")}, "unknown limit 'second'"),
        ({"suite.toml": TOML.replace("seconds = 5", "seconds = -1")}, "is above 0; it has -1"),
        ({"suite.toml": TOML.replace("seconds = 5", "disk_mb = 1.5")}, "is a whole number"),
        ({"suite.toml": TOML.replace('["{python}", "-m", "pytest"]', '"pytest"')}, "list of words"),
        ({"suite.toml": TOML.replace('["Style"]', '["Stile"]')}, "unknown section 'Stile'"),
        ({"suite.toml": TOML.replace("extra = ", "extras = ")}, "unknown key of the condition"),
        ({"suite.toml": TOML.replace('"Be brief."', "1")}, "extra of the condition 'mine'"),
        ({"suite.toml": TOML + "[tools]\nx = 1\n"}, "tools.x"),
        ({"001-early/001-a/TASK.txt": "again"}, "both TASK.md and TASK.txt"),
        ({"001-early/001-a/TASK.md": " \n"}, "is empty"),
        ({"001-early/001-a/answer/deep/a.py": None}, "has no answer"),
        ({"001-early/001-a/grader/test_a.py": None}, "has no grader"),
        ({"001-early/001-a/eval.toml": 'pipeline = "dynamic"'}, "unknown pipeline 'dynamic'"),
        ({"001-early/001-a/eval.toml": "tests = 0"}, "no number of tests"),
        ({"001-early/001-a/eval.toml": "tests = true"}, "no number of tests"),
        ({"001-early/001-a/eval.toml": "test = 3"}, "unknown key 'test'"),
        ({"001-early/001-a/eval.toml": "difficulty = 3"}, "'easy', 'medium' or 'hard'"),
        ({OF_A: wrong("two", "1", "2")}, "choose a name such as 'tests-"),
        ({OF_A: wrong("lint-x", "1", "2")}, "choose 'filesystem' or 'tests'"),
        ({"002-late/001-b/wrong.toml": wrong("lint-x", "1", "2")}, "unknown step 'lint'"),
        ({OF_A: wrong("tests-x", "3", "2")}, "stands 0 times in deep/a.py, not once"),
        ({OF_A: wrong("tests-x", "1", "2", "b.py")}, "unknown file of the answer 'b.py'"),
        ({OF_A: "[[tests-x]]\nfile = 'deep/a.py'\nold = '1'"}, "the texts file, new, old"),
        ({OF_A: "[[tests-x]]\nfile = 'deep/a.py'\nold = '1'\nnew = 2"}, "the texts file, new, old"),
        ({"001-early/001-a/answer/a.bin": b"\xff\xfe"}, "no UTF-8"),
        ({"early/001-a/TASK.md": "x"}, "'early' in"),
        ({"003-x/TASK.md": "x"}, "an eval is SUITE/"),
        ({"003-x/notes.md": "x"}, "holds no eval"),
        ({"guidelines.md": "## A\nx\n## A\ny\n"}, "two sections"),
        ({"guidelines.md": "## A\n\n## B\ny\n"}, "is empty"),
        (
            {"001-early/001-a/TASK.md": None, "002-late/001-b/TASK.txt": None},
            "no folder has a TASK.md",
        ),
    ],
)
def test_a_malformed_suite_is_refused(
    make: Make, changes: dict[str, str | bytes | None], told: str
) -> None:
    with pytest.raises(JudgeGymError) as fault:
        load_suite(make(**changes))
    assert told in fault.value.message


def test_a_link_is_refused(make: Make) -> None:
    folder = make()
    (folder / "001-early/001-a/answer/link.py").symlink_to("/etc/passwd")
    with pytest.raises(DesignError, match="is a link"):
        load_suite(folder)


def test_an_eval_is_found_by_path_or_name(make: Make) -> None:
    suite = load_suite(make())
    assert suite.find("001-a").path == suite.find("001-early/001-a").path
    with pytest.raises(NotFoundError) as fault:
        suite.find("001-c")
    assert fault.value.choices == ("001-early/001-a", "002-late/001-b")


@pytest.mark.parametrize(
    "changes",
    [
        {"guidelines.md": "## Style\nLong.\n\n## Types\nAll.\n"},
        {"001-early/001-a/TASK.md": "Do a!"},
        {"001-early/001-a/GAPS.md": "One."},
        {"001-early/001-a/answer/deep/a.py": "a = 2\n"},
        {"001-early/001-a/grader/test_a.py": "def test_z(): pass\n"},
        {"001-early/001-a/eval.toml": "tests = 3\n"},
        {"kit/ruff.toml": "lint.select = ['F']\n"},
        {"install/requirements.txt": "x\n"},
        {"suite.toml": TOML.replace('"pytest"]', '"pytest", "-q"]')},
        {"suite.toml": TOML + '[tools]\npython = ["{python}", "--version"]\n'},
    ],
)
def test_whatever_bears_on_a_score_changes_the_version(
    make: Make, changes: dict[str, str | bytes | None]
) -> None:
    before = load_suite(make()).version
    assert load_suite(make()).version == before
    assert load_suite(make(**changes)).version != before


@pytest.mark.parametrize(
    "changes",
    [
        {OF_A: WRONG_OF_A},
        {OF_A: None},
        {"001-early/001-a/eval.toml": f'{TOML_OF_A}difficulty = "hard"\n[limits]\ndisk_mb = 9\n'},
    ],
)
def test_what_has_no_influence_on_a_score_leaves_the_version(
    make: Make, changes: dict[str, str]
) -> None:
    before = load_suite(make()).version
    assert load_suite(make(**changes)).version == before


def test_a_cache_of_bytecode_does_not_change_the_version(make: Make) -> None:
    folder = make()
    before = load_suite(folder).version
    cached = folder / "001-early/001-a/grader/__pycache__/test_a.pyc"
    cached.parent.mkdir()
    cached.write_bytes(b"\xff")
    assert load_suite(folder).version == before


def test_a_tools_version_is_part_of_it(make: Make, tmp_path: Path) -> None:
    versions = set()
    for number in (1, 2):
        tool = tmp_path / f"tool{number}"
        tool.write_text(f"#!/bin/sh\necho tool {number}\n")
        tool.chmod(0o755)
        link = tmp_path / "tool"
        link.unlink(missing_ok=True)
        link.symlink_to(tool)
        text = TOML + f'[tools]\ntool = ["{link}", "v{number}"]\n'
        suite = load_suite(make(**{"suite.toml": text}))
        # The command differs as well: what it says must be what is hashed.
        versions.add(suite.version)
    assert len(versions) == 2


@pytest.mark.parametrize(
    ("tool", "advice"),
    [
        ("tsc", "the suite needs tsc, but 'no-such-program -v' fails; install it first"),
        (
            "mypy",
            r"the suite needs mypy, but it is not installed; run .* install .*\[suites\]",
        ),
    ],
)
def test_a_missing_tool_is_refused_with_what_to_install(make: Make, tool: str, advice: str) -> None:
    text = TOML + f'[tools]\n{tool} = ["no-such-program", "-v"]\n'
    suite = load_suite(make(**{"suite.toml": text}))
    with pytest.raises(MissingToolError, match=advice):
        _ = suite.version
    with pytest.raises(MissingToolError, match=advice):
        check_answers(suite, Sandbox("none", allow_unisolated=True))


# --- the suite that comes with judge-gym ---------------------------------------------------------


@pytest.fixture(scope="module")
def shipped() -> Suite:
    return load_suite("python")


def test_the_shipped_suite_is_as_large_as_promised(shipped: Suite) -> None:
    assert shipped.folder == SHIPPED
    categories = ("language", "data", "files", "concurrency", "web", "packaging")
    names = [f"{number:03}-{category}" for number, category in enumerate(categories, 1)]
    assert list(dict.fromkeys(task.category for task in shipped.evals)) == names
    assert len(shipped.evals) >= 40
    assert {task.difficulty for task in shipped.evals} == {*DIFFICULTIES}
    assert sum(bool(task.gaps) for task in shipped.evals) >= 2
    assert {task.pipeline for task in shipped.evals} == {"full", "static"}
    assert all(task.tests >= 3 for task in shipped.evals)
    assert list(shipped.steps) == [name for name in STEPS if name in shipped.steps]


def test_every_shipped_eval_has_two_wrong_answers_and_most_fail_at_the_tests(
    shipped: Suite,
) -> None:
    assert [task.path for task in shipped.evals if len(task.wrong_answers) < 2] == []
    for task in shipped.evals:
        assert "tests" in {answer.step for answer in task.wrong_answers}, task.path
        files = [answer.files for answer in task.wrong_answers]
        assert all(other != task.answer for other in files), task.path
    steps = Counter(answer.step for task in shipped.evals for answer in task.wrong_answers)
    assert {"build", "lint", "types", "tests"} <= steps.keys()
    assert steps["tests"] >= steps.total() / 2


def test_no_task_gives_its_answer_away(shipped: Suite) -> None:
    """A task states signatures and data; what stands inside of functions is for the model."""
    for task in shipped.evals:
        for path, text in task.answer.items():
            lines = text.splitlines()
            for node in ast.walk(ast.parse(text)) if path.endswith(".py") else ():
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    body = [
                        line.strip() for line in lines[node.body[0].lineno - 1 : node.end_lineno]
                    ]
                    long = [line for line in body if len(line) > 40 and " import " not in line]
                    assert not [line for line in long if line in task.task], task.path


def test_the_typescript_example_loads() -> None:
    suite = load_suite(Path(__file__).parents[2] / "examples" / "typescript")
    assert {task.category for task in suite.evals} == {"001-basics", "002-types"}
    for task in suite.evals:
        assert {"types", "tests"} <= {wrong.step for wrong in task.wrong_answers}, task.path
    versions = json.loads(suite.dependencies["package.json"])
    pins = [*versions["dependencies"].values(), *versions["optionalDependencies"].values()]
    assert all(re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", pin) for pin in pins)
