"""At a clock of the grader's own."""

import random

SOURCE = """
    from solution import Limiter
    now = [0.0]
    limiter = Limiter(calls, seconds, lambda: now[0])
    found = []
    for time, who in events:
        now[0] = time
        found.append(limiter.allow(who))
    found
"""


def run(candidate, calls, seconds, events):
    return candidate.run(SOURCE, calls=calls, seconds=seconds, events=events)


def test_so_many_and_no_more(candidate):
    events = [[0, "a"], [1, "a"], [2, "a"], [9, "a"]]
    assert run(candidate, 2, 10, events) == [True, True, False, False]


def test_the_span_ends_exactly(candidate):
    events = [[0, "a"], [4, "a"], [10, "a"], [13, "a"], [14, "a"]]
    assert run(candidate, 2, 10, events) == [True, True, True, False, True]


def test_a_refused_call_does_not_count(candidate):
    events = [[0, "a"], [5, "a"], [9, "a"], [10, "a"]]
    assert run(candidate, 1, 10, events) == [True, False, False, True]


def test_people_are_independent(candidate):
    events = [[0, "a"], [0, "b"], [1, "a"], [1, "b"], [2, "c"]]
    assert run(candidate, 1, 10, events) == [True, True, False, False, True]


def test_random_events_agree_with_a_plain_count(candidate):
    rng = random.Random(8)
    time, events, expected, made = 0.0, [], [], {"a": [], "b": []}
    for _ in range(500):
        time += rng.choice([0, 0.25, 0.5, 1, 2.5])
        who = rng.choice("ab")
        events.append([time, who])
        allowed = sum(time - 4 < moment for moment in made[who]) < 3
        made[who] += [time] if allowed else []
        expected.append(allowed)
    assert run(candidate, 3, 4, events) == expected
