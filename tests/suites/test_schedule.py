"""Which models are due, by the formula and by hand."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.suites import Attempt, due, interval
from judge_gym.suites.schedule import cost_floor
from tables import each_row

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@each_row(
    ("age", "usd", "days"),
    [
        (0, None, 1),
        (365, None, 30.5),
        (730, None, 1 + 59 * 2 / 3),
        (0, 4.99, 1),
        (0, 5, 1),
        (0, 27.5, 7.5),
        (0, 50, 14),
        (0, 500, 14),
        (365, 50, 30.5),
    ],
)
def test_the_interval_by_hand(age: float, usd: float | None, days: float) -> None:
    assert interval(age * DAY, usd) / DAY == pytest.approx(days)


@given(st.floats(0, 10_000), st.floats(0, 10_000), st.floats(0, 1000), st.floats(0, 1000))
def test_older_and_dearer_models_wait_no_less(a: float, b: float, x: float, y: float) -> None:
    young, old = sorted([a, b])
    cheap, dear = sorted([x, y])
    assert interval(young * DAY, cheap) <= interval(old * DAY, dear)
    assert DAY <= interval(old * DAY, dear) < 60 * DAY
    assert cost_floor(None) <= cost_floor(cheap)


def test_due_models_come_first() -> None:
    seen = NOW - 365 * DAY  # 30.5 days apart
    found = due(
        [
            Attempt("waits", seen, NOW - 30 * DAY),
            Attempt("late", seen, NOW - 40 * DAY),
            Attempt("exact", seen, NOW - 30.5 * DAY),
            Attempt("new", NOW),
            Attempt("later", seen, NOW - 60 * DAY),
        ],
        NOW,
    )
    assert [(one.model, one.due) for one in found] == [
        ("new", True),
        ("later", True),
        ("late", True),
        ("exact", True),
        ("waits", False),
    ]
    assert found[0].due_from is None
    assert found[-1].due_from == NOW + 0.5 * DAY
