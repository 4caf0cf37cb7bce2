"""Threads meet at events; that a thread waits is seen by the cache's own count."""

import pytest
from inside.grading import Raised

START = """
    import threading
    import time
    from solution import Cache

    now = [0.0]
    loads = []
    release = threading.Event()
    started = threading.Event()

    def until(condition):
        end = time.monotonic() + 5
        while not condition():
            assert time.monotonic() < end, "nothing happened within 5 s"
            time.sleep(0.001)

    def in_thread(function, *args):
        ended = []
        def work():
            try:
                ended.append(function(*args))
            except Exception as error:
                ended.append(f"{type(error).__name__}: {error}")
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        def join():
            thread.join(5)
            return ended[0] if ended else "it waits"
        return join

    def slow(key):
        loads.append(key)
        number = len(loads)
        started.set()
        assert release.wait(5)
        return f"{key}{number}"

    def quick(key):
        loads.append(key)
        return f"{key}{len(loads)}"

"""


def run(candidate, source):
    return candidate.run(START + source)


def test_a_value_is_stored_until_it_is_too_old(candidate):
    source = """
    cache = Cache(quick, 10, lambda: now[0])
    seen = []
    for moment in (0, 9.5, 10, 19.5, 20):
        now[0] = moment
        seen.append(cache.get("a"))
    seen
    """
    assert run(candidate, source) == ["a1", "a1", "a2", "a2", "a3"]


def test_the_age_counts_from_the_end_of_the_load(candidate):
    source = """
    def late(key):
        now[0] += 5
        return quick(key)
    cache = Cache(late, 10, lambda: now[0])
    seen = [cache.get("a")]
    now[0] = 14.5
    seen.append(cache.get("a"))
    now[0] = 15
    seen.append(cache.get("a"))
    seen
    """
    assert run(candidate, source) == ["a1", "a1", "a2"]


def test_callers_of_one_key_share_one_load(candidate):
    source = """
    cache = Cache(slow, 10, lambda: now[0])
    joins = [in_thread(cache.get, "a") for _ in range(6)]
    until(lambda: cache.waiting("a") == 5)
    release.set()
    [[join() for join in joins], loads, cache.waiting("a"), cache.get("a")]
    """
    assert run(candidate, source) == [["a1"] * 6, ["a"], 0, "a1"]


def test_a_failed_load_fails_for_all_and_is_not_stored(candidate):
    source = """
    def failing(key):
        value = slow(key)
        if len(loads) == 1:
            raise LookupError("gone")
        return value
    cache = Cache(failing, 10, lambda: now[0])
    joins = [in_thread(cache.get, "a") for _ in range(3)]
    until(lambda: cache.waiting("a") == 2)
    release.set()
    [[join() for join in joins], len(loads), cache.get("a")]
    """
    assert run(candidate, source) == [["LookupError: gone"] * 3, 1, "a2"]


def test_other_keys_do_not_wait(candidate):
    source = """
    def load(key):
        return slow(key) if key == "slow" else quick(key)
    cache = Cache(load, 10, lambda: now[0])
    stored = cache.get("stored")
    first = in_thread(cache.get, "slow")
    assert started.wait(5)
    others = [in_thread(cache.get, "stored")(), in_thread(cache.get, "new")()]
    release.set()
    [stored, others, first()]
    """
    assert run(candidate, source) == ["stored1", ["stored1", "new3"], "slow2"]


def test_forget_removes_a_value_and_no_other(candidate):
    source = """
    cache = Cache(quick, 10, lambda: now[0])
    seen = [cache.get("a"), cache.get("b")]
    cache.forget("a")
    cache.forget("never loaded")
    seen + [cache.get("a"), cache.get("b")]
    """
    assert run(candidate, source) == ["a1", "b2", "a3", "b2"]


FORGET = """
    releases = [threading.Event(), threading.Event()]
    begun = [threading.Event(), threading.Event()]
    def load(key):
        number = len(loads)
        loads.append(key)
        if number < 2:
            begun[number].set()
            assert releases[number].wait(5)
            if number == 0 and fails:
                raise LookupError("old")
        return f"{key}{number}"
    cache = Cache(load, 10, lambda: now[0])
    old = [in_thread(cache.get, "a")]
    assert begun[0].wait(5)
    old.append(in_thread(cache.get, "a"))
    until(lambda: cache.waiting("a") == 1)
    in_thread(cache.forget, "a")()
    left = cache.waiting("a")
    new = [in_thread(cache.get, "a")]
    assert begun[1].wait(5)
    new.append(in_thread(cache.get, "a"))
    until(lambda: cache.waiting("a") == 1)
    for number in order:
        releases[number].set()
        for join in (old, new)[number]:
            join()
    [left, [join() for join in old], [join() for join in new], cache.get("a"), len(loads)]
    """


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_detached_load_serves_those_that_wait_and_is_not_stored(candidate, order):
    source = f"    fails, order = False, {order}\n" + FORGET
    assert run(candidate, source) == [0, ["a0", "a0"], ["a1", "a1"], "a1", 2]


def test_a_detached_load_that_fails_does_not_disturb_the_new_one(candidate):
    source = "    fails, order = True, [0, 1]\n" + FORGET
    old = ["LookupError: old"] * 2
    assert run(candidate, source) == [0, old, ["a1", "a1"], "a1", 2]


def test_a_load_may_get_another_key(candidate):
    source = """
    def load(key):
        return key if key == "leaf" else key + cache.get("leaf")
    cache = Cache(load, 10, lambda: now[0])
    in_thread(cache.get, "top ")()
    """
    assert run(candidate, source) == "top leaf"


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("keys", ["aa", "aba"])
def test_a_load_that_needs_its_own_result_is_refused(candidate, keys, forgets):
    source = f"""
    keys, forgets = {keys!r}, {forgets}
    def load(key):
        loads.append(key)
        if len(loads) < len(keys):
            if forgets:
                cache.forget(key)
            return cache.get(keys[len(loads)])
        return "end"
    cache = Cache(load, 10, lambda: now[0])
    [in_thread(cache.get, "a")()[:13], len(loads), cache.waiting("a"), in_thread(cache.get, "c")()]
    """
    assert run(candidate, source) == ["RuntimeError:", len(keys) - 1, 0, "end"]


def test_an_error_of_the_load_is_raised_as_it_is(candidate):
    with pytest.raises(Raised) as error:
        run(candidate, "    Cache(lambda key: {}[key], 1, lambda: 0.0).get('x')\n")
    assert error.value.kind == "KeyError"
