"""Tasks in the layout of convex-evals, written here, become a suite."""

import json
from pathlib import Path

import pytest

from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.records.outcomes import Failed, Passed
from judge_gym.suites import load_suite, open_sandbox, run_eval
from judge_gym.suites.convex import PACKAGES, import_convex
from judge_gym.suites.sandbox import isolations
from suites_kit import install_packages

TASK = "Write src/double.ts, which exports double(n: number): number.\n"
ANSWER = "export function double(n: number): number {\n  return 2 * n;\n}\n"
NEEDS_ZOD = '{"dependencies": {"zod": "3.25.76"}}'
IN_PROCESS = """\
import { expect, test } from "vitest";
import { readOutputFile } from "../../../grader";
import { double } from "./answer/src/double";

test("it doubles", () => expect(double(4)).toBe(8));
test("it is short", () => {
  expect(readOutputFile("000-basics", "000-double_it", "src/double.ts").length).toBeLessThan(200);
});
"""
BACKEND = """\
import { expect, test } from "vitest";
import {
  responseClient,
} from "../../../grader";
test("x", async () => expect(await responseClient.query("x")).toBe(1));
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    files = {
        "evals/000-basics/000-double_it/TASK.txt": TASK,
        "evals/000-basics/000-double_it/answer/src/double.ts": ANSWER,
        "evals/000-basics/000-double_it/answer/package.json": NEEDS_ZOD,
        "evals/000-basics/000-double_it/answer/node_modules/zod/index.js": "junk",
        "evals/000-basics/000-double_it/grader.test.ts": IN_PROCESS,
        "evals/000-basics/000-double_it/questions.json": "[]",
        "evals/000-basics/000-double_it/GAPS.txt": "none known",
        "evals/001-backend/003-query/TASK.txt": TASK,
        "evals/001-backend/003-query/answer/index.ts": "export {};\n",
        "evals/001-backend/003-query/grader.test.ts": BACKEND,
        "evals/001-backend/004-untested/TASK.txt": TASK,
        "evals/001-backend/004-untested/answer/index.ts": "export {};\n",
        "runner/models/guidelines.md": "# All\n\n## Types\nNo any.\n",
        "eslint.config.mjs": "export default [];\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize("inner", ["", "evals"])
def test_what_needs_no_backend_becomes_a_suite(
    repository: Path, tmp_path: Path, inner: str
) -> None:
    imported = import_convex(repository / inner, tmp_path / "mine")
    assert imported.evals == ["000-basics/000-double_it"]
    assert imported.skipped == {
        "001-backend/003-query": "its grader needs a Convex backend (responseClient)",
        "001-backend/004-untested": "it has no grader.test.ts",
    }
    assert any("questions.json" in note for note in imported.notes)
    suite = load_suite(tmp_path / "mine")
    assert (suite.name, suite.in_process, [*suite.guidelines]) == ("mine", True, ["Types"])
    assert [*suite.steps] == ["install", "lint", "types", "tests"]
    [task] = suite.evals
    assert (task.task, task.gaps) == (TASK, "none known")
    assert sorted(task.answer) == ["package.json", "src/double.ts"]
    assert sorted(task.grader) == ["grader.test.ts"]
    packages = json.loads(suite.dependencies["package.json"])["dependencies"]
    assert packages == {**PACKAGES, "zod": "3.25.76"}


def test_a_folder_without_tasks_or_without_any_that_runs_is_refused(
    repository: Path, tmp_path: Path
) -> None:
    with pytest.raises(NotFoundError, match="no task in"):
        import_convex(tmp_path / "nowhere", tmp_path / "mine")
    with pytest.raises(ConflictError, match="exists already"):
        import_convex(repository, repository)
    (repository / "evals/000-basics/000-double_it/grader.test.ts").unlink()
    with pytest.raises(DesignError, match="none of 3 evals"):
        import_convex(repository, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


@pytest.mark.slow
@pytest.mark.needs("npm")
@pytest.mark.skipif(not isolations(), reason="no sandbox works here")
def test_an_imported_suite_grades_with_packages_from_npm(repository: Path, tmp_path: Path) -> None:
    import_convex(repository, tmp_path / "mine")
    suite = load_suite(tmp_path / "mine")
    [task] = suite.evals
    sandbox = open_sandbox(installed=tmp_path / "installed")
    install_packages(suite, sandbox.installed)
    right = run_eval(suite, task, task.answer, sandbox)
    assert right.outcome == Passed(), right.steps
    assert right.isolation.endswith(", in-process")
    wrong = {**task.answer, "src/double.ts": "export const double = (n: any) => n * n * n;\n"}
    result = run_eval(suite, task, wrong, sandbox)
    assert isinstance(result.outcome, Failed)
    status = {step.name: step.status for step in result.steps}
    assert (status["lint"], status["types"], status["tests"]) == ("failed", "passed", "failed")
    assert (result.steps[-1].tests_passed, result.steps[-1].tests_collected) == (1, 2)
    assert "no-explicit-any" in result.steps[3].reason
