"""Orders and cycles."""

import random

import pytest
from inside.grading import Raised

CYCLE = """
    from solution import Cycle, order
    try:
        order(needs)
    except Cycle as fault:
        told = list(fault.members)
    told
"""


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ({}, []),
        ({"b": [], "a": []}, ["a", "b"]),
        ({"a": ["c"], "b": []}, ["b", "c", "a"]),
        ({"app": ["web", "db"], "web": ["log"], "db": ["log"]}, ["log", "db", "web", "app"]),
    ],
)
def test_worked_orders(candidate, needs, expected):
    assert candidate.call("solution:order", needs) == expected


def test_a_large_graph(candidate):
    rng = random.Random(3)
    names = [f"p{n:03}" for n in rng.sample(range(300), 300)]
    needs = {name: rng.sample(names[:n], min(n, 3)) for n, name in enumerate(names)}
    found = candidate.call("solution:order", needs)
    expected, left = [], {name: set(before) for name, before in needs.items()}
    while left:
        name = min(name for name, before in left.items() if not before & left.keys())
        expected.append(name)
        del left[name]
    assert found == expected


@pytest.mark.parametrize(
    "needs",
    [
        {"a": ["a"]},
        {"a": ["b"], "b": ["c"], "c": ["a"]},
        {"x": ["a"], "a": ["b"], "b": ["a"], "y": ["x"], "z": []},
    ],
)
def test_a_cycle_is_told(candidate, needs):
    members = candidate.run(CYCLE, needs=needs)
    assert members and len(set(members)) == len(members)
    for name, need in zip(members, [*members[1:], members[0]], strict=True):
        assert need in needs[name]


def test_a_cycle_is_a_value_error(candidate):
    with pytest.raises(Raised) as fault:
        candidate.call("solution:order", {"a": ["a"]})
    assert fault.value.kind == "Cycle"
    source = "from solution import Cycle\nissubclass(Cycle, ValueError)"
    assert candidate.run(source) is True
