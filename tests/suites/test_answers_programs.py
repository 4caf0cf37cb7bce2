"""Reference answers of the shipped suite score 100 %, through every step."""

import pytest

from judge_gym.records.outcomes import Passed
from judge_gym.suites import check_answers, load_suite, open_sandbox, select
from judge_gym.suites.sandbox import isolations

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not isolations(), reason="no sandbox works here"),
]


def test_answers_pass() -> None:
    suite = load_suite("python")
    tasks = select(suite, ["003-programs"])
    results = check_answers(suite, open_sandbox(), tasks)
    assert len(results) == len(tasks) >= 4
    assert {result.path: result.outcome for result in results} == {
        task.path: Passed() for task in tasks
    }
