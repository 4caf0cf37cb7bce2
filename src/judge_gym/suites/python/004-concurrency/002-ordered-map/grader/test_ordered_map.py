"""Threads meet at events and barriers, whose timeouts only a wrong answer reaches."""

import pytest
from inside.grading import Raised

START = """
    import threading
    import time
    from solution import ordered_map

    taken, calls = [], []

    def source(count, broken=None):
        for number in range(count):
            if number == broken:
                raise KeyError(number)
            taken.append(number)
            yield number

"""


def run(candidate, source):
    return candidate.run(START + source)


def test_results_are_in_the_order_of_the_items(candidate):
    source = """
    second = threading.Event()
    def work(number):
        if number % 2 == 0:
            assert second.wait(5)
            second.clear()
        else:
            second.set()
        return number * 10
    list(ordered_map(work, source(20), 2))
    """
    assert run(candidate, source) == [number * 10 for number in range(20)]


def test_no_items_give_no_results(candidate):
    assert run(candidate, "    list(ordered_map(str, source(0), 3))\n") == []


def test_calls_run_at_the_same_time_in_no_more_threads_than_workers(candidate):
    source = """
    together = threading.Barrier(3, timeout=5)
    threads = set()
    def work(number):
        together.wait()
        threads.add(threading.current_thread().name)
        return number
    [list(ordered_map(work, source(9), 3)), len(threads)]
    """
    assert run(candidate, source) == [list(range(9)), 3]


@pytest.mark.parametrize("workers", [0, -1])
def test_too_few_workers_are_refused_by_the_call_itself(candidate, workers):
    with pytest.raises(Raised) as error:
        run(candidate, f"    ordered_map(str, source(1), {workers})\n    None\n")
    assert error.value.kind == "ValueError"


def test_nothing_happens_before_the_first_request(candidate):
    source = """
    before = threading.active_count()
    results = ordered_map(calls.append, source(5), 2)
    time.sleep(0.05)
    [taken, calls, threading.active_count() - before]
    """
    assert run(candidate, source) == [[], [], 0]


def test_each_request_takes_what_fills_the_window(candidate):
    source = """
    seen = []
    results = ordered_map(str, source(6), 3)
    for result in results:
        seen.append([result, len(taken)])
    seen
    """
    assert run(candidate, source) == [
        ["0", 3],
        ["1", 4],
        ["2", 5],
        ["3", 6],
        ["4", 6],
        ["5", 6],
    ]


def test_a_new_call_starts_while_an_older_one_still_runs(candidate):
    source = """
    third = threading.Event()
    def work(number):
        if number == 2:
            third.set()
        if number == 1:
            assert third.wait(5)
        return number
    list(ordered_map(work, source(4), 2))
    """
    assert run(candidate, source) == [0, 1, 2, 3]


def test_an_exception_comes_in_its_place_and_ends_everything(candidate):
    source = """
    running = threading.Event()
    ended = []
    def work(number):
        calls.append(number)
        if number == 1:
            assert running.wait(5)
            raise ZeroDivisionError("one")
        if number == 2:
            running.set()
            time.sleep(0.1)
            ended.append(number)
        return number
    before = threading.active_count()
    results = ordered_map(work, source(9), 2)
    seen = []
    try:
        for result in results:
            seen.append(result)
    except ZeroDivisionError as error:
        seen.append(str(error))
    left = threading.active_count() - before
    [seen, ended, left, taken, sorted(calls), list(results), len(taken)]
    """
    assert run(candidate, source) == [[0, "one"], [2], 0, [0, 1, 2], [0, 1, 2], [], 3]


def test_a_source_that_raises_does_so_after_the_results_before_it(candidate):
    source = """
    before = threading.active_count()
    results = ordered_map(str, source(9, broken=2), 4)
    seen = []
    try:
        for result in results:
            seen.append(result)
    except KeyError as error:
        seen.append(repr(error))
    [seen, list(results), threading.active_count() - before]
    """
    assert run(candidate, source) == [["0", "1", "KeyError(2)"], [], 0]


def test_closing_waits_for_calls_and_starts_none(candidate):
    source = """
    running, ended = threading.Event(), []
    def work(number):
        calls.append(number)
        if number == 1:
            running.set()
            time.sleep(0.1)
            ended.append(number)
        return number
    before = threading.active_count()
    results = ordered_map(work, source(9), 2)
    first = next(results)
    assert running.wait(5)
    results.close()
    [first, ended, sorted(calls), taken, threading.active_count() - before, list(results)]
    """
    assert run(candidate, source) == [0, [1], [0, 1], [0, 1], 0, []]
