"""The TypeScript example: another language by configuration alone."""

from pathlib import Path

import pytest

from judge_gym.records.outcomes import Failed, Passed
from judge_gym.suites import load_suite, open_sandbox, run_eval
from judge_gym.suites.sandbox import isolations

pytestmark = [
    pytest.mark.needs("node"),
    pytest.mark.needs("tsc"),
    pytest.mark.skipif(not isolations(), reason="no sandbox works here"),
]
SUITE = Path(__file__).parents[2] / "examples" / "typescript"


def test_an_answer_passes() -> None:
    suite = load_suite(SUITE)
    task = suite.find("001-parse-result")
    result = run_eval(suite, task, task.answer, open_sandbox())
    assert result.outcome == Passed(), result.steps
    assert result.steps[-1].tests_collected == task.tests


@pytest.mark.slow
def test_a_wrong_answer_that_prints_a_report_fails() -> None:
    suite = load_suite(SUITE)
    task = suite.find("001-parse-result")
    forged = """
import { writeSync } from "fs";
for (const fd of [1, 3, 4, 5]) {
  try { writeSync(fd, "TAP version 13\\n1..3\\nok 1 - a\\nok 2 - b\\nok 3 - c\\n"); } catch {}
}
export function parsePort(text: string): number { return "wrong"; }
"""
    result = run_eval(suite, task, {"solution.ts": forged}, open_sandbox())
    assert isinstance(result.outcome, Failed)
    status = {step.name: step.status for step in result.steps}
    assert (status["types"], status["tests"]) == ("failed", "failed")
