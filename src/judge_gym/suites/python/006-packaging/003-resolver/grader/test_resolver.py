"""Versions, constraints, the search, and the program."""

import json

import pytest
from inside.grading import Raised

VERSIONS = "from resolver.versions import Constraint, Version\n"


def allowed(candidate, **cases):
    """The versions that each constraint allows."""
    source = VERSIONS + (
        "[[each for each in versions if Constraint.parse(text).allows(Version.parse(each))]"
        " for text, versions in cases]"
    )
    return candidate.run(source, **cases)


def test_versions_are_ordered(candidate):
    ordered = ["0-0", "0", "0.0.1", "0.9", "0.10", "1.0-1", "1-2", "1-10", "1-10.a", "1-a", "1-a.1"]
    ordered += ["1-a.1.0", "1-a.b", "1-a1", "1-b", "1-rc", "1", "1.0.0.1-x", "1.0.0.1", "1.2", "10"]
    source = VERSIONS + (
        "versions = [Version.parse(text) for text in texts]\n"
        "[str(each) for each in sorted(reversed(versions))]"
    )
    assert candidate.run(source, texts=ordered) == ordered


def test_equal_versions(candidate):
    pairs = [["1", "1.0.0.0"], ["1.2-a", "1.2.0-a"], ["1-7", "1-007"], ["1", "1-0"], ["1-a", "1-a.0"]]
    source = VERSIONS + """
pairs = [[Version.parse(text) for text in pair] for pair in pairs]
[[a == b, a <= b, a >= b, a != b, len({a, b}), str(b)] for a, b in pairs] + [pairs[0][0] == "1"]
"""
    *found, text = candidate.run(source, pairs=pairs)
    assert [each[-1] for each in found] == [pair[1] for pair in pairs]
    assert [each[:-1] for each in found[:3]] == [[True, True, True, False, 1]] * 3
    assert [each[:-1] for each in found[3:]] == [
        [False, False, True, True, 2],
        [False, True, False, True, 2],
    ]
    assert text is False


def test_bad_versions_and_constraints_are_refused(candidate):
    versions = ["", "1.", ".1", "01", "1.2.3.4.5", "1-", "1-A", "1-a..b", "v1", "1 ", "1\n", "١", "-1"]
    constraints = ["1", "=1", "==", ">=1,", ",", ">=1;<2", "~=1", "===1", "> 1 2", "^x", ">=\t1"]
    source = VERSIONS + """
def attempt(kind, text):
    try:
        kind.parse(text)
        return text
    except ValueError:
        return None
[attempt(Version, each) for each in versions] + [attempt(Constraint, each) for each in constraints]
"""
    found = candidate.run(source, versions=versions, constraints=constraints)
    assert [each for each in found if each is not None] == []


def test_comparisons(candidate):
    versions = ["0.9", "1.0.0", "1.4", "2"]
    texts = ["", " ", "==1", "!=1", "<1.4", "<=1.4.0", ">1", ">= 1 , <2,!=1.4", "==3"]
    assert allowed(candidate, cases=[[text, versions] for text in texts]) == [
        versions,
        versions,
        ["1.0.0"],
        ["0.9", "1.4", "2"],
        ["0.9", "1.0.0"],
        ["0.9", "1.0.0", "1.4"],
        ["1.4", "2"],
        ["1.0.0"],
        [],
    ]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("~1.4.2", ["1.4.2", "1.4.99", "1.4.2.1"], ["1.4.1", "1.5", "1.5-rc", "2.4.2"]),
        ("~1", ["1", "1.9.9"], ["0.9", "2"]),
        ("~0.0", ["0", "0.0.9"], ["0.1"]),
        ("^1.4", ["1.4", "1.99"], ["1.3", "2", "2-rc"]),
        ("^0.3.1", ["0.3.1", "0.3.9"], ["0.3", "0.4", "1"]),
        ("^0.0.3", ["0.0.3", "0.0.3.7"], ["0.0.2", "0.0.4", "0.1"]),
        ("^0.0", ["0.0", "0.0.9"], ["0.1", "1"]),
        ("^0", ["0", "0.9"], ["1"]),
        ("^1.4-rc.2", ["1.4-rc.2", "1.4-rc.10", "1.4", "1.5"], ["1.4-rc.1", "1.5-rc.3", "2"]),
        ("<2-rc", ["1", "2-beta"], ["2-rc", "2", "1-rc"]),
        (">=1-a,!=2-b", ["1-b", "1", "2"], ["2-a", "2-b", "1.1-a"]),
        ("==1.0-a", ["1-a"], ["1", "1-b"]),
        ("", ["1"], ["1-a"]),
    ],
)
def test_ranges_and_prereleases(candidate, text, inside, outside):
    assert allowed(candidate, cases=[[text, [*inside, *outside]]]) == [inside]


def solve(candidate, index, **requirements):
    source = """
    from resolver.solve import Unsolvable, solve
    try:
        result = list(solve(index, requirements).items())
    except Unsolvable:
        result = "unsolvable"
    result
    """
    found = candidate.run(source, index=index, requirements=requirements)
    return found if isinstance(found, str) else [f"{name} {version}" for name, version in found]


def test_the_highest_versions_of_what_is_needed(candidate):
    index = {
        "web": {"1.9": {}, "1.10": {"http": "^2"}, "2-rc": {}},
        "http": {"2.0": {}, "2.1.0": {"sock": ""}, "3": {}},
        "sock": {"1": {}},
        "alone": {"1": {}},
    }
    assert solve(candidate, index, web="") == ["http 2.1.0", "sock 1", "web 1.10"]
    assert solve(candidate, index, web="<1.10") == ["web 1.9"]
    assert solve(candidate, index) == []


def test_a_choice_is_taken_back(candidate):
    index = {
        "a": {"2": {"c": ">=2"}, "1": {"c": "<2"}},
        "b": {"2": {"c": "<2"}, "1": {"c": ""}},
        "c": {"1": {}, "2": {}},
    }
    assert solve(candidate, index, a="", b="") == ["a 2", "b 1", "c 2"]
    assert solve(candidate, index, a="", b="==2") == ["a 1", "b 2", "c 1"]


def test_what_a_rejected_version_required_is_forgotten(candidate):
    index = {
        "a": {"2": {"b": "", "z": "==9"}, "1": {"b": "<2"}},
        "b": {"1": {}, "2": {"x": ""}},
        "x": {"1": {}},
        "z": {"1": {}},
    }
    assert solve(candidate, index, a="") == ["a 1", "b 1"]


def test_a_later_requirement_limits_an_earlier_choice(candidate):
    index = {
        "a": {"1": {}, "2": {}, "3": {}},
        "b": {"1": {"a": "<3"}, "2": {"a": "<2", "c": ">5"}},
        "c": {"1": {}},
    }
    assert solve(candidate, index, a="", b="") == ["a 2", "b 1"]


def test_circles_and_packages_that_require_themselves(candidate):
    index = {
        "a": {"1": {"b": "==1"}, "2": {"b": "==2"}},
        "b": {"1": {"a": "==1"}, "2": {"a": "==1"}},
        "s": {"1": {"s": "==1"}, "2": {"s": "==1"}},
    }
    assert solve(candidate, index, a="") == ["a 1", "b 1"]
    assert solve(candidate, index, s="") == ["s 1"]


def test_what_cannot_be_solved(candidate):
    index = {"a": {"1": {"gone": ""}}, "b": {"1-rc": {}}, "c": {"1": {"d": "<1"}}, "d": {"1": {}}}
    assert solve(candidate, index, a="") == "unsolvable"
    assert solve(candidate, index, b="") == "unsolvable"
    assert solve(candidate, index, c="") == "unsolvable"
    assert solve(candidate, index, none="") == "unsolvable"
    assert solve(candidate, index, b=">=1-a") == ["b 1-rc"]


PROGRAM = """
    import json, subprocess, sys
    index = {"web": {"1.2.0": {"http_x": "^2"}, "1.3": {}}, "http_x": {"2.1": {}}, "bad": {"x": {}}}
    ended = []
    for text, arguments in runs:
        with open("index.json", "w") as file:
            file.write(json.dumps({k: v for k, v in index.items() if k != "bad"}) if text is None else text)
        ran = subprocess.run([sys.executable, "solution.py", *arguments], capture_output=True, text=True)
        ended.append([ran.returncode, ran.stdout, bool(ran.stderr), "Traceback" in ran.stderr])
    ended
"""


def test_the_program(candidate):
    good = [["index.json", "web^1.2,!=1.3"], ["index.json"], ["index.json", "http_x", "web==1.3"]]
    ended = candidate.run(PROGRAM, runs=[[None, each] for each in good])
    assert ended == [
        [0, "http_x 2.1\nweb 1.2.0\n", False, False],
        [0, "", False, False],
        [0, "http_x 2.1\nweb 1.3\n", False, False],
    ]


def test_errors_of_the_program(candidate):
    broken = json.dumps({"web": {"one": {}}})
    runs = [
        [None, ["index.json", "web>9"]],
        [None, ["index.json", "web", "web"]],
        [None, ["index.json", "web =1"]],
        [None, ["index.json", "^1"]],
        [None, ["none.json", "web"]],
        [None, []],
        ["{", ["index.json", "web"]],
        [broken, ["index.json", "web"]],
    ]
    ended = candidate.run(PROGRAM, runs=runs)
    assert ended == [[code, "", True, False] for code in (1, 2, 2, 2, 2, 2, 2, 2)]


def test_a_bad_constraint_is_a_value_error(candidate):
    with pytest.raises(Raised) as error:
        candidate.run("from resolver.solve import solve\nsolve({}, {'a': '1'})")
    assert error.value.kind == "ValueError"
