"""Distributions are made beside the candidate's files: a module, and a folder of metadata."""

import tomllib

START = """
    import os, subprocess, sys
    import importlib
    import importlib.metadata

    def install(distribution, entries, group="reporter.formats"):
        folder = distribution.replace("-", "_") + "-1.0.dist-info"
        os.makedirs(folder)
        with open(folder + "/METADATA", "w") as file:
            file.write(f"Metadata-Version: 2.1\\nName: {distribution}\\nVersion: 1.0\\n")
        lines = [f"{key} = {value}\\n" for key, value in entries.items()]
        with open(folder + "/entry_points.txt", "w") as file:
            file.write(f"[{group}]\\n" + "".join(lines))

    def module(name, text):
        with open(name + ".py", "w") as file:
            file.write(text)

    def attempt(function, *args):
        try:
            return function(*args)
        except PluginError as error:
            return f"{type(error.__cause__).__name__}: {error}"

    def program(*arguments, text=""):
        ran = subprocess.run([sys.executable, "-m", "reporter", *arguments],
                             input=text, capture_output=True, text=True)
        return [ran.returncode, ran.stdout, ran.stderr]

"""
USE = START + "    from solution import PluginError, Registry\n"


def test_the_project_file(candidate):
    about = tomllib.loads(candidate.files["pyproject.toml"])
    project = about["project"]
    assert about["build-system"]["build-backend"] == "hatchling.build"
    assert (project["name"], project["version"]) == ("reporter", "1.0.0")
    assert project["requires-python"].replace(" ", "") == ">=3.11"
    assert project.get("dependencies", []) == []
    assert project["scripts"] == {"reporter": "reporter.__main__:main"}
    assert project["entry-points"] == {
        "reporter.formats": {
            "json": "reporter.builtin:format_json",
            "lines": "reporter.builtin:format_lines",
        }
    }


def test_importing_does_nothing_else(candidate):
    source = """
    looks = []
    original = importlib.metadata.entry_points
    importlib.metadata.entry_points = lambda *a, **k: looks.append(1) or original(*a, **k)
    import solution
    registry = solution.Registry()
    registry.add("x", str)
    [looks, "reporter.builtin" in sys.modules, sorted(solution.__all__)]
    """
    assert candidate.run(START + source) == [[], False, ["PluginError", "Registry"]]


def test_builtin_formats(candidate):
    source = """
    registry = Registry()
    names = registry.names()
    imported = "reporter.builtin" in sys.modules
    numbers = {"b": 1, "a": -2}
    texts = [registry.get(name)(numbers) for name in ("json", "lines")]
    [names, imported, texts, registry.get("lines")({}), registry.problems()]
    """
    texts = ['{\n  "a": -2,\n  "b": 1\n}', "b: 1\na: -2"]
    assert candidate.run(USE + source) == [["json", "lines"], False, texts, "", {}]


def test_plugins_are_imported_when_they_are_used(candidate):
    source = """
    install("some-plugins", {"one": "plug_one:make", "two": "plug_two:Formats.make"})
    install("stranger", {"three": "plug_three:make"}, group="other.group")
    module("plug_one", "def make(numbers):\\n    return 'one'\\n")
    module("plug_two", "class Formats:\\n    def make(numbers):\\n        return 'two'\\n")
    registry = Registry()
    names = registry.names()
    before = ["plug_one" in sys.modules, "plug_two" in sys.modules]
    two = registry.get("two")
    after = ["plug_one" in sys.modules, "plug_two" in sys.modules]
    [names, registry.problems(), before, two({}), after, registry.get("two") is two]
    """
    names = ["json", "lines", "one", "two"]
    assert candidate.run(USE + source) == [names, {}, [False, False], "two", [False, True], True]


def test_a_registry_looks_once(candidate):
    source = """
    install("before", {"one": "plug:make"})
    registry = Registry()
    first = registry.names()
    install("after", {"two": "plug:make"})
    importlib.invalidate_caches()
    message = attempt(registry.get, "two")
    [first, registry.names(), Registry().names(), message.startswith("NoneType") and "two" in message]
    """
    one, two = ["json", "lines", "one"], ["json", "lines", "one", "two"]
    assert candidate.run(USE + source) == [one, one, two, True]


def test_sources_of_one_name(candidate):
    source = """
    install("Zeta", {"json": "plug:zeta", "both": "plug:zeta"})
    install("alpha", {"both": "plug:alpha"})
    install("Beta", {"both": "plug:beta"})
    own = {"json": "reporter.builtin:format_json", "lines": "reporter.builtin:format_lines"}
    install("reporter", own)
    module("plug", "def zeta(n):\\n    return 'zeta'\\ndef alpha(n):\\n    return 'alpha'\\nbeta = zeta\\n")
    registry = Registry()
    problems = registry.problems()
    used = [registry.get(name)({"x": 1}) for name in ("json", "both", "lines")]
    named = [word in problems["both"] for word in ("alpha", "Beta", "Zeta")]
    registry.add("both", lambda numbers: "added")
    registry.add("json", lambda numbers: "added")
    registry.add("json", lambda numbers: "added again")
    [list(problems), named, used, registry.get("both")({}), registry.get("json")({}), registry.names()]
    """
    assert candidate.run(USE + source) == [
        ["both"],
        [True] * 3,
        ["zeta", "alpha", "x: 1"],
        "added",
        "added again",
        ["both", "json", "lines"],
    ]


def test_broken_plugins_do_not_disturb_others(candidate):
    source = """
    install("bad-dist", {"boom": "plug_boom:make", "gone": "plug_none:make", "missing": "plug_ok:other",
                         "number": "plug_ok:number", "ok": "plug_ok:make"})
    module("plug_boom", "open('count', 'a').write('x')\\nraise ZeroDivisionError('boom')\\n")
    module("plug_ok", "number = 3\\ndef make(numbers):\\n    return 'ok'\\n")
    registry = Registry()
    before = registry.problems()
    names = ("boom", "gone", "missing", "number")
    first = {name: attempt(registry.get, name) for name in names}
    again = {name: attempt(registry.get, name) for name in names}
    problems = registry.problems()
    [before, [first[name].split(":")[0] for name in names],
     [name in first[name] and "bad-dist" in first[name] for name in names],
     first == again, [first[name].endswith(problems[name]) for name in names],
     open("count").read(), registry.get("ok")({}), registry.names()]
    """
    causes = ["ZeroDivisionError", "ModuleNotFoundError", "AttributeError", "NoneType"]
    names = ["boom", "gone", "json", "lines", "missing", "number", "ok"]
    expected = [{}, causes, [True] * 4, True, [True] * 4, "x", "ok", names]
    assert candidate.run(USE + source) == expected


def test_a_broken_format_can_be_replaced(candidate):
    source = """
    install("a-dist", {"boom": "plug_none:make"})
    registry = Registry()
    attempt(registry.get, "boom")
    registry.add("boom", lambda numbers: "fine")
    registry.get("boom")({})
    """
    assert candidate.run(USE + source) == "fine"


def test_an_unknown_name_is_refused_with_the_known_ones(candidate):
    source = """
    registry = Registry()
    registry.add("extra", str)
    text = attempt(registry.get, "nope")
    [word in text for word in ("nope", "json", "lines", "extra")] + [registry.problems()]
    """
    assert candidate.run(USE + source) == [True] * 4 + [{}]


def test_other_groups(candidate):
    source = """
    install("a-dist", {"one": "plug:make"}, group="my.group")
    [Registry("my.group").names(), Registry().names()]
    """
    assert candidate.run(USE + source) == [["json", "lines", "one"], ["json", "lines"]]


def test_the_program(candidate):
    source = """
    text = "b 2\\n\\n  a 1 \\nb -5\\n"
    [program(text=text), program("--format", "json", text=text), program("--list", text="nonsense")]
    """
    assert candidate.run(START + source) == [
        [0, "b: -3\na: 1\n", ""],
        [0, '{\n  "a": 1,\n  "b": -3\n}\n', ""],
        [0, "json\nlines\n", ""],
    ]


def test_errors_of_the_program(candidate):
    source = """
    install("bad-dist", {"boom": "plug_none:make", "fails": "plug:make"})
    module("plug", "def make(numbers):\\n    raise LookupError('late')\\n")
    lines = [program(text=text) for text in ("a 1\\n\\na\\n", "a 1 2\\n", "a x\\n", "1.5 1.5\\n")]
    others = [program("--format", name, text="a 1\\n") for name in ("boom", "fails", "none")]
    [[ran[:2] for ran in lines + others], "3" in lines[0][2], "bad-dist" in others[0][2],
     any("Traceback" in ran[2] or not ran[2] for ran in lines + others)]
    """
    codes = [[2, ""]] * 4 + [[1, ""]] * 3
    assert candidate.run(START + source) == [codes, True, True, False]
