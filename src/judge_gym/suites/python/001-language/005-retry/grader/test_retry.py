"""How often a function is called, and what comes out."""

import pytest
from inside.grading import Raised

FLAKY = """
    from solution import retry
    calls = []
    @retry(times, OSError, KeyError)
    def flaky(*args, **kwargs):
        "Says what it was given."
        calls.append(1)
        if len(calls) <= failures:
            raise kind(f"call {len(calls)}")
        return [list(args), kwargs, len(calls)]
"""


def run(candidate, last, times=3, failures=0, kind="OSError"):
    source = FLAKY.replace("raise kind", f"raise {kind}")
    return candidate.run(source + f"\n    {last}", times=times, failures=failures)


def test_arguments_and_result_pass_through(candidate):
    assert run(candidate, "flaky(1, 2, a=3)") == [[1, 2], {"a": 3}, 1]


def test_it_tries_again(candidate):
    assert run(candidate, "flaky()", failures=2) == [[], {}, 3]


def test_the_last_exception_is_raised(candidate):
    last = """try:
        flaky()
    except OSError as fault:
        told = [str(fault), len(calls)]
    told"""
    assert run(candidate, last, failures=9) == ["call 3", 3]


def test_other_exceptions_are_raised_at_once(candidate):
    last = """try:
        flaky()
    except ValueError as fault:
        told = [str(fault), len(calls)]
    told"""
    assert run(candidate, last, failures=9, kind="ValueError") == ["call 1", 1]


def test_every_named_exception_counts(candidate):
    assert run(candidate, "flaky()", failures=1, kind="KeyError") == [[], {}, 2]


def test_name_and_docstring_are_kept(candidate):
    assert run(candidate, "[flaky.__name__, flaky.__doc__]") == ["flaky", "Says what it was given."]


def test_each_call_starts_anew(candidate):
    last = "[flaky(), flaky()][1][2]"
    assert run(candidate, last, failures=2) == 4


def test_no_call_at_all_is_refused(candidate):
    with pytest.raises(Raised) as fault:
        candidate.run("from solution import retry\nretry(0, OSError)\n'not refused'")
    assert fault.value.kind == "ValueError"
