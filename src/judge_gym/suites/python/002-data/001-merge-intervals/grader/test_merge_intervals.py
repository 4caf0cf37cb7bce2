"""Against sets of numbers."""

import random

SOURCE = """
    from solution import merge
    [merge([tuple(pair) for pair in case]) for case in cases]
"""


def members(pairs):
    return {number for low, high in pairs for number in range(low, high + 1)}


def test_worked_cases(candidate):
    cases = [[], [[5, 7]], [[1, 3], [4, 6]], [[8, 9], [1, 5], [2, 3]], [[1, 1], [3, 3]]]
    expected = [[], [[5, 7]], [[1, 6]], [[1, 5], [8, 9]], [[1, 1], [3, 3]]]
    assert candidate.run(SOURCE, cases=cases) == expected


def test_random_cases_hold_the_same_numbers_in_few_intervals(candidate):
    rng = random.Random(4)
    cases = []
    for _ in range(200):
        starts = [rng.randint(-20, 20) for _ in range(rng.randint(0, 8))]
        cases.append([[start, start + rng.randint(0, 6)] for start in starts])
    for case, merged in zip(cases, candidate.run(SOURCE, cases=cases), strict=True):
        assert members(merged) == members(case)
        gaps = [(a[1], b[0]) for a, b in zip(merged, merged[1:], strict=False)]
        assert all(after > before + 1 for before, after in gaps)


def test_the_argument_is_not_changed(candidate):
    source = """
        from solution import merge
        given = [(3, 4), (1, 2)]
        merge(given)
        given
    """
    assert candidate.run(source) == [[3, 4], [1, 2]]
