"""Words and hyphens."""

import pytest


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Hello,  World!", "hello-world"),
        ("already-a-slug", "already-a-slug"),
        ("  42 ways to -- count  ", "42-ways-to-count"),
        ("under_score.and.dot", "under-score-and-dot"),
        ("!?", ""),
    ],
)
def test_slug(candidate, title, expected):
    assert candidate.call("solution:slug", title) == expected
