"""Exact arithmetic, and who gets the odd cent."""

from fractions import Fraction

import pytest
from inside.grading import Raised


@pytest.mark.parametrize(
    ("cents", "weights", "expected"),
    [
        (100, [1, 1, 1], [34, 33, 33]),
        (100, [1, 2], [33, 67]),
        (5, [0, 1, 1], [0, 3, 2]),
        (0, [3, 4], [0, 0]),
        (7, [5], [7]),
    ],
)
def test_worked_cases(candidate, cents, weights, expected):
    assert candidate.call("solution:split", cents, weights) == expected


def test_large_amounts_are_exact(candidate):
    cents, weights = 10**30 + 1, [1, 2, 4]
    parts = candidate.call("solution:split", cents, weights)
    assert sum(parts) == cents
    exact = [Fraction(cents * weight, 7) for weight in weights]
    assert all(abs(part - share) < 1 for part, share in zip(parts, exact, strict=True))


@pytest.mark.parametrize(("cents", "weights"), [(-1, [1]), (5, [2, -1]), (5, [0, 0])])
def test_what_cannot_be_split_is_refused(candidate, cents, weights):
    with pytest.raises(Raised) as fault:
        candidate.call("solution:split", cents, weights)
    assert fault.value.kind == "ValueError"
