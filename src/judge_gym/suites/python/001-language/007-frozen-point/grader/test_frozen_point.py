"""A value behaves like a number."""

import pytest
from inside.grading import Raised


def run(candidate, expression):
    return candidate.run(f"from solution import Vector\n{expression}")


def test_arithmetic(candidate):
    source = "[[v.x, v.y] for v in (Vector(1, 2) + Vector(3, 5), Vector(1, 2) - Vector(3, 5))]"
    assert run(candidate, source) == [[4, 7], [-2, -3]]


def test_multiplication_from_both_sides(candidate):
    source = "[[v.x, v.y] for v in (Vector(1, 2) * 3, 3 * Vector(1, 2))]"
    assert run(candidate, source) == [[3, 6], [3, 6]]


def test_length(candidate):
    assert run(candidate, "abs(Vector(3, 4))") == 5


def test_equality_and_hash(candidate):
    source = (
        "[Vector(1, 2) == Vector(1, 2), Vector(1, 2) == Vector(2, 1), Vector(1, 2) == (1, 2),"
        " len({Vector(1, 2), Vector(1, 2), Vector(2, 1)})]"
    )
    assert run(candidate, source) == [True, False, False, 2]


def test_repr(candidate):
    assert run(candidate, "repr(Vector(1, 2))") == "Vector(x=1, y=2)"


def test_it_cannot_be_changed(candidate):
    source = """
v = Vector(1, 2)
try:
    v.x = 5
except Exception:
    pass
v.x"""
    assert run(candidate, source) == 1


def test_adding_something_else_is_a_type_error(candidate):
    with pytest.raises(Raised) as fault:
        run(candidate, "Vector(1, 2) + 1")
    assert fault.value.kind == "TypeError"
