"""What is read, and when."""

import pytest
from inside.grading import Raised


def test_windows_in_order(candidate):
    source = "from solution import windows\n[list(windows(iter(range(5)), n)) for n in (1, 3, 5)]"
    expected = [
        [[0], [1], [2], [3], [4]],
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]],
        [[0, 1, 2, 3, 4]],
    ]
    assert candidate.run(source) == expected


def test_a_short_source_gives_nothing(candidate):
    assert candidate.run("from solution import windows\nlist(windows([1, 2], 3))") == []


def test_no_item_is_read_too_early(candidate):
    source = """
        from solution import windows
        read = []
        def source():
            for n in range(1000):
                read.append(n)
                yield n
        found = windows(source(), 3)
        counts = [len(read)]
        for _ in range(3):
            next(found)
            counts.append(len(read))
        counts
    """
    assert candidate.run(source) == [0, 3, 4, 5]


def test_an_endless_source_will_do(candidate):
    source = """
        import itertools
        from solution import windows
        next(windows(itertools.count(), 2))
    """
    assert candidate.run(source) == [0, 1]


def test_a_size_below_one_is_refused_at_once(candidate):
    with pytest.raises(Raised) as fault:
        candidate.run("from solution import windows\nwindows([1], 0)\n'not refused'")
    assert fault.value.kind == "ValueError"
