"""Before, inside and after."""


def run(candidate, body):
    lines = "\n".join(["from solution import changed", "s = {'depth': 1, 'width': 5}", body])
    return candidate.run(lines)


def test_inside_the_values_are_changed(candidate):
    body = "with changed(s, depth=2, extra=3) as inner:\n    seen = [dict(inner), inner is s]\nseen"
    assert run(candidate, body) == [{"depth": 2, "width": 5, "extra": 3}, True]


def test_afterwards_they_are_back(candidate):
    body = "with changed(s, depth=2, extra=3):\n    pass\ns"
    assert run(candidate, body) == {"depth": 1, "width": 5}


def test_an_exception_passes_and_they_are_back(candidate):
    body = (
        "try:\n    with changed(s, depth=2):\n        raise KeyError('x')\n"
        "except KeyError:\n    s['caught'] = 1\ns"
    )
    assert run(candidate, body) == {"depth": 1, "width": 5, "caught": 1}


def test_other_keys_keep_what_was_done_inside(candidate):
    body = "with changed(s, depth=2):\n    s['width'] = 9\n    s['new'] = 7\ns"
    assert run(candidate, body) == {"depth": 1, "width": 9, "new": 7}


def test_a_named_key_that_is_deleted_inside_comes_back(candidate):
    body = "with changed(s, depth=2, extra=3):\n    s.clear()\ns"
    assert run(candidate, body) == {"depth": 1}


def test_managers_nest(candidate):
    body = (
        "with changed(s, depth=2):\n    with changed(s, depth=3):\n        pass\n"
        "    seen = s['depth']\n[seen, s['depth']]"
    )
    assert run(candidate, body) == [2, 1]
