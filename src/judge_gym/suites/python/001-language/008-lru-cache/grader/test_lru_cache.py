"""Against a plain list that is searched."""

import random

import pytest
from inside.grading import Raised

SOURCE = """
    from solution import Cache
    cache = Cache(size)
    found = []
    for name, *args in calls:
        found.append([getattr(cache, name)(*args), len(cache)])
    found
"""


def test_the_entry_used_longest_ago_goes(candidate):
    calls = [["put", "a", 1], ["put", "b", 2], ["get", "a"], ["put", "c", 3], ["get", "b"]]
    calls += [["get", "a"], ["get", "c"]]
    found = candidate.run(SOURCE, size=2, calls=calls)
    assert [value for value, _ in found] == [None, None, 1, None, None, 1, 3]


def test_replacing_lets_nothing_go(candidate):
    calls = [["put", "a", 1], ["put", "b", 2], ["put", "a", 3], ["get", "b"], ["get", "a"]]
    assert candidate.run(SOURCE, size=2, calls=calls)[-2:] == [[2, 2], [3, 2]]


def test_random_calls_agree_with_a_list(candidate):
    rng = random.Random(11)
    kept, calls, expected = [], [], []
    for _ in range(800):
        key = rng.choice("abcdefgh")
        before = [value for name, value in kept if name == key]
        if rng.random() < 0.5:
            calls.append(["get", key])
            result = before[0] if before else None
            kept = [*(e for e in kept if e[0] != key), *((key, v) for v in before)]
        else:
            calls.append(["put", key, rng.randint(0, 9)])
            result = None
            kept = [*(e for e in kept if e[0] != key), (key, calls[-1][2])][-4:]
        expected.append([result, len(kept)])
    assert candidate.run(SOURCE, size=4, calls=calls) == expected


def test_a_large_cache_is_fast(candidate):
    source = """
        from solution import Cache
        cache = Cache(100_000)
        for n in range(200_000):
            cache.put(str(n), n)
            cache.get(str(n - 99_999))
        len(cache)
    """
    assert candidate.run(source) == 100_000


def test_a_size_below_one_is_refused(candidate):
    with pytest.raises(Raised) as fault:
        candidate.run("from solution import Cache\nCache(0)\n'not refused'")
    assert fault.value.kind == "ValueError"
