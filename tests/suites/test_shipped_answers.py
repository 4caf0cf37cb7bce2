"""Answers of the shipped suite: reference answers pass, wrong ones fail at their step."""

import pytest

from judge_gym.suites import SHIPPED, check_answers, load_suite, open_sandbox, select
from judge_gym.suites.sandbox import isolations

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not isolations(), reason="no sandbox works here"),
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("category", sorted(path.name for path in SHIPPED.glob("[0-9]*")))
def test_answers_pass_or_fail_as_they_must(category: str) -> None:
    suite = load_suite("python")
    tasks = select(suite, categories=[category])
    checks = check_answers(suite, open_sandbox(), tasks)
    assert len(checks) == sum(1 + len(task.wrong_answers) for task in tasks)
    assert not [
        (check.result.path, check.wrong, check.problem) for check in checks if check.problem
    ]
