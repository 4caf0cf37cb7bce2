"""The package and its user."""

import pytest
from inside.grading import Raised


def test_total(candidate):
    assert candidate.call("solution:total", [1, 2, 3]) == 14


def test_no_sides(candidate):
    assert candidate.call("solution:total", []) == 0


def test_the_package_exports_two_names(candidate):
    assert candidate.run("import shapes\nsorted(shapes.__all__)") == ["Square", "area"]


def test_they_live_in_their_module(candidate):
    source = "import shapes\n[shapes.area.__module__, shapes.Square.__module__]"
    assert candidate.run(source) == ["shapes.plane", "shapes.plane"]


def test_a_side_that_is_not_above_0_is_refused(candidate):
    with pytest.raises(Raised) as fault:
        candidate.call("solution:total", [1, 0])
    assert fault.value.kind == "ValueError"
