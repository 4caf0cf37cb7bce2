"""The shipped graders notice: an answer whose functions do nothing fails all but a few tests."""

import ast
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from judge_gym.records.outcomes import EvalResult, Failed
from judge_gym.suites import CodeTask, load_suite, open_sandbox, run_eval
from judge_gym.suites.sandbox import isolations

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not isolations(), reason="no sandbox works here"),
]


class WithoutBodies(ast.NodeTransformer):
    """Leaves nothing in a function."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [ast.Return(ast.Constant(None))]
        return node


def without_bodies(source: str) -> str:
    return ast.unparse(ast.fix_missing_locations(WithoutBodies().visit(ast.parse(source))))


def test_answers_that_do_nothing_fail() -> None:
    whole = load_suite("python")
    suite = replace(whole, steps={"tests": whole.steps["tests"]})
    on = open_sandbox()

    def judged(task: CodeTask) -> EvalResult:
        files = {
            path: without_bodies(text) for path, text in task.answer.items() if path.endswith(".py")
        }
        return run_eval(suite, task, files or {"other.txt": "x"}, on)

    with ThreadPoolExecutor(2) as pool:
        for task, result in zip(suite.evals, pool.map(judged, suite.evals), strict=True):
            tests = result.steps[-1]
            assert isinstance(result.outcome, Failed), task.path
            assert tests.tests_passed is not None and tests.tests_collected == task.tests
            assert tests.tests_passed <= task.tests // 2, (task.path, tests)
