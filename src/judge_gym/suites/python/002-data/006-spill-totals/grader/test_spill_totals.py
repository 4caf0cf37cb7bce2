"""Sums, files, memory, and what is left behind."""

import random

import pytest
from inside.grading import Raised

START = """
import os, random, tempfile
from solution import totals
folder = tempfile.mkdtemp()
def left():
    return len(os.listdir(folder))
"""


def run(candidate, source, **inputs):
    return candidate.run(f"{START}\n{source}", **inputs)


def summed(candidate, rows, limit):
    source = "[list(totals(((k, n) for k, n in rows), limit, folder)), left()]"
    found, files = run(candidate, source, rows=rows, limit=limit)
    assert files == 0
    return found


def expected(rows):
    sums = {}
    for key, number in rows:
        sums[key] = sums.get(key, 0) + number
    return [[key, sums[key]] for key in sorted(sums)]


def test_sums_in_order(candidate):
    rows = [["b", 2], ["a", 1], ["b", 3], ["c", 0], ["a", -1]]
    assert summed(candidate, rows, 10) == [["a", 0], ["b", 5], ["c", 0]]
    assert summed(candidate, [], 1) == []


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_random_rows_with_small_limits(candidate, limit):
    rng = random.Random(limit)
    keys = ["", "a", "A", "ä", "aa", "\U0001f600", "\uffff", "z", "10", "9"]
    rows = [[rng.choice(keys), rng.randint(-5, 5)] for _ in range(200)]
    assert summed(candidate, rows, limit) == expected(rows)


def test_keys_of_any_characters_and_large_numbers(candidate):
    keys = ["a\nb", "a\tb", "a\r", "a", '"', "a,b", "\\n", "", "\x00", "\u2028", " a ", "\r\n", "a\x85"]
    rows = [[key, 10**30 + n] for n, key in enumerate(keys * 2)]
    assert summed(candidate, rows, 3) == expected(rows)


def test_no_file_is_written_if_all_keys_fit(candidate):
    source = """
found = totals([("a", 1), ("b", 2), ("a", 3)], 2, folder)
[list(next(found)), left(), list(next(found)), left()]
"""
    assert run(candidate, source) == [["a", 4], 0, ["b", 2], 0]


def test_nothing_happens_before_the_first_item(candidate):
    source = """
read = []
def rows():
    for n in range(9):
        read.append(n)
        yield str(n), n
found = totals(rows(), 2, folder)
before = [len(read), left()]
first = next(found)
[before, list(first), len(read), left() > 0]
"""
    assert run(candidate, source) == [[0, 0], ["0", 0], 9, True]


def test_a_limit_below_one_is_refused_at_once(candidate):
    with pytest.raises(Raised) as fault:
        run(candidate, "totals([], 0, folder)\n'not refused'")
    assert fault.value.kind == "ValueError"


def test_closing_removes_the_files(candidate):
    source = """
found = totals(((str(n), 1) for n in range(500)), 3, folder)
next(found)
before = left()
found.close()
[before > 0, left()]
"""
    assert run(candidate, source) == [True, 0]


def test_an_exception_of_the_source_passes_and_the_files_are_removed(candidate):
    source = """
def rows():
    for n in range(500):
        yield str(n), 1
    raise KeyError("source")
try:
    list(totals(rows(), 3, folder))
except KeyError as fault:
    told = [str(fault), left()]
told
"""
    assert run(candidate, source) == ["'source'", 0]


def test_memory_grows_little(candidate):
    source = """
import resource
def rows():
    for n in range(100_000):
        yield f"{n * 7919 % 100_000:0500}", n
    for n in range(0, 100_000, 5):
        yield f"{n:0500}", 1
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
count = total = 0
for key, number in totals(rows(), 2_000, folder):
    count, total = count + 1, total + number
[count, total, (peak() - before) // 1024]
"""
    count, total, megabytes = run(candidate, source)
    assert (count, total) == (100_000, 100_000 * 99_999 // 2 + 20_000)
    assert megabytes <= 20


def test_few_files_are_open_and_many_runs_are_fast(candidate):
    source = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 64,) * 2)
rng = random.Random(5)
rows = [(f"k{rng.randrange(20_000)}", 1) for _ in range(60_000)]
found = list(totals(iter(rows), 20, folder))
[sum(n for _, n in found), found == sorted(found), len(found) == len({k for k, _ in rows}), left()]
"""
    assert run(candidate, source) == [60_000, True, True, 0]
