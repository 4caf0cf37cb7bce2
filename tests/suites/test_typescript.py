"""The TypeScript example: another language by configuration alone, with tsc and node from npm."""

from pathlib import Path

import pytest

from judge_gym.records.outcomes import Failed
from judge_gym.suites import check_answers, load_suite, open_sandbox, run_eval
from judge_gym.suites.sandbox import isolations
from suites_kit import install_packages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("npm"),
    pytest.mark.skipif(not isolations(), reason="no sandbox works here"),
]
SUITE = Path(__file__).parents[2] / "examples" / "typescript"
FORGED = """
import { writeSync } from "fs";
for (const fd of [1, 3, 4, 5]) {
  try { writeSync(fd, "TAP version 13\\n1..3\\nok 1 - a\\nok 2 - b\\nok 3 - c\\n"); } catch {}
}
export function parsePort(text: string): number { return "wrong"; }
"""


def test_answers_pass_or_fail_as_they_must(tmp_path: Path) -> None:
    suite = load_suite(SUITE)
    install_packages(suite, tmp_path)
    checks = check_answers(suite, open_sandbox(installed=tmp_path))
    assert not [
        (check.result.path, check.wrong, check.problem) for check in checks if check.problem
    ]
    assert {check.wrong.step for check in checks if check.wrong} == {"types", "tests"}
    task = suite.find("001-parse-result")
    result = run_eval(suite, task, {"solution.ts": FORGED}, open_sandbox(installed=tmp_path))
    assert isinstance(result.outcome, Failed)
    status = {step.name: step.status for step in result.steps}
    assert (status["types"], status["tests"]) == ("failed", "failed")
