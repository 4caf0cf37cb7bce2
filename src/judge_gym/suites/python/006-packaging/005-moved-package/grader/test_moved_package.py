"""Old and new names, with the warnings that each statement of a user's file gives."""

import json

import pytest
from inside.grading import Raised

WARNINGS = """
    import sys
    import warnings

    def warned(statement, names=None):
        names = {} if names is None else names
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            exec(compile(statement, "user.py", "exec"), names)
        return [[str(each.message), each.category.__name__, each.filename, each.lineno] for each in records]

"""
UNITS = {"m": "metre", "km": "kilometre", "cm": "centimetre", "mi": "mile"}
UNITS |= {"kg": "kilogram", "g": "gram", "lb": "pound"}
FACTORS = {
    "length": {"m": 1, "km": 1000, "cm": 0.01, "mi": 1609.344},
    "mass": {"kg": 1, "g": 0.001, "lb": 0.45359237},
}


def check(records, *names, line=1):
    """One warning, at a line of the user, that has both names."""
    assert len(records) == 1, records
    [[message, category, filename, number]] = records
    assert (category, filename, number) == ("DeprecationWarning", "user.py", line)
    for name in names:
        assert name in message


def test_the_tables(candidate):
    source = """
    from measures import tables
    first = tables.factors()
    first["length"]["m"] = 5
    first.clear()
    tables.names().clear()
    [tables.factors(), list(tables.names().items())]
    """
    factors, names = candidate.run(source)
    assert factors == FACTORS
    assert names == [list(item) for item in UNITS.items()]
    assert json.loads(candidate.files["measures/data/factors.json"]) == FACTORS
    lines = candidate.files["measures/data/names.txt"].splitlines()
    assert lines == [f"{unit} {name}" for unit, name in UNITS.items()]


def test_conversion(candidate):
    source = """
    import measures, measures.convert as c
    same = [measures.Quantity is c.Quantity, measures.to is c.convert, measures.UnitError is c.UnitError]
    far = c.Quantity(2, "mi").to("km")
    [measures.to(3, "km", "m"), measures.to(1, "lb", "g"), far.value, far.unit, far == c.Quantity(3.218688, "km"),
     issubclass(c.UnitError, ValueError), same, list(measures.__all__)]
    """
    *numbers, value, unit, equal, error, same, names = candidate.run(source)
    assert numbers == [3000, pytest.approx(453.59237)]
    assert (value, unit) == (pytest.approx(3.218688), "km")
    assert (error, same, names) == (True, [True] * 3, ["Quantity", "UnitError", "to"])


@pytest.mark.parametrize("units", [("m", "kg"), ("x", "m"), ("m", "x"), ("x", "x"), ("", "length")])
def test_units_that_do_not_fit(candidate, units):
    with pytest.raises(Raised) as error:
        candidate.call("measures.convert:convert", 1, *units)
    assert error.value.kind == "UnitError"


def test_everything_works_from_an_archive(candidate):
    source = """
    import os, pathlib, subprocess, sys, zipfile
    with zipfile.ZipFile("all.zip", "w") as archive:
        for folder in ("measures", "units"):
            for path in pathlib.Path(folder).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, str(path))
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import measures, units, measures.tables as t; "
            "assert 'all.zip' in measures.__file__; import units.tables; "
            "print(measures.to(1, 'km', 'm'), t.names()['lb'], units.tables is t)")
    ran = subprocess.run([sys.executable, "-I", "-W", "ignore", "-c", code, os.path.abspath("all.zip")],
                         capture_output=True, text=True)
    ran.stdout + ran.stderr[-500:]
    """
    assert candidate.run(source) == "1000.0 pound True\n"


def test_importing_reads_no_file(candidate):
    source = """
    import sys
    opened = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    import measures, measures.convert, measures.tables, units
    before = [name for name in opened if name.endswith((".json", ".txt"))]
    measures.tables.names()
    measures.tables.names()
    [before, len([name for name in opened if name.endswith("names.txt")])]
    """
    assert candidate.run(source) == [[], 1]


def test_importing_the_old_package_alone_does_nothing(candidate):
    source = """
    records = warned("import units")
    [records, [name for name in sys.modules if name.split(".")[0] == "measures"]]
    """
    assert candidate.run(WARNINGS + source) == [[], []]


@pytest.mark.parametrize(
    ("old", "new"),
    [("Quantity", "Quantity"), ("UnitError", "UnitError"), ("convert_units", "to")],
)
def test_old_attributes(candidate, old, new):
    source = f"""
    names = {{}}
    first = warned("import units\\nx = units.{old}", names)
    second = warned("\\n\\nfrom units import {old}", names)
    third = warned("y = units.{old}", names)
    import measures
    [first, second, third, names["x"] is names["y"] is names["{old}"] is measures.{new}]
    """
    first, second, third, same = candidate.run(WARNINGS + source)
    check(first, f"units.{old}", f"measures.{new}", line=2)
    check(second, f"units.{old}", f"measures.{new}", line=3)
    check(third, f"units.{old}", f"measures.{new}")
    assert same


@pytest.mark.parametrize(("old", "new"), [("conversion", "convert"), ("tables", "tables")])
@pytest.mark.parametrize(
    "statement",
    ["import units.OLD", "from units import OLD", "import units\nunits.OLD", "import units.OLD as x",
     "import importlib; importlib.import_module('units.OLD')"],
)
def test_old_modules(candidate, old, new, statement):
    source = f"""
    records = warned("\\n" + statement)
    import measures.{new} as module
    import units
    units.{old}.answer = 42
    import units.{old} as again
    [records, units.{old} is module, again is module, sys.modules["units.{old}"] is module,
     module.answer, module.__name__]
    """
    records, *same = candidate.run(WARNINGS + source, statement=statement.replace("OLD", old))
    check(records, f"units.{old}", f"measures.{new}", line=2 + statement.count("\n"))
    assert same == [True, True, True, 42, f"measures.{new}"]


def test_names_of_old_modules(candidate):
    source = """
    names = {}
    records = warned("from units.conversion import Quantity, convert", names)
    import measures
    [records, names["Quantity"] is measures.Quantity, names["convert"] is measures.to]
    """
    records, *same = candidate.run(WARNINGS + source)
    check(records, "units.conversion", "measures.convert")
    assert same == [True, True]


def test_old_pickles_can_be_read(candidate):
    source = """
    import pickle, warnings
    warnings.simplefilter("ignore")
    old = (b"\\x80\\x02cunits.conversion\\nQuantity\\nq\\x00)\\x81q\\x01}q\\x02(X\\x05\\x00\\x00\\x00valueq\\x03K\\x03"
           b"X\\x04\\x00\\x00\\x00unitq\\x04X\\x02\\x00\\x00\\x00kmq\\x05ub.")
    value = pickle.loads(old)
    import measures
    [type(value) is measures.Quantity, value == measures.Quantity(3, "km"), value.to("m").value,
     pickle.loads(pickle.dumps(value)) == value]
    """
    assert candidate.run(source) == [True, True, 3000, True]


def test_other_attributes(candidate):
    source = """
    import units
    records = warned("import units\\nhasattr(units, 'nothing')")
    try:
        units.nothing
    except AttributeError as error:
        text = str(error)
    errors = []
    for statement in ("from units import nothing", "import units.nothing", "from units.conversion import nothing"):
        try:
            warned(statement)
        except ImportError as error:
            errors.append(type(error).__name__)
    names = {"Quantity", "UnitError", "convert_units", "conversion", "tables"}
    [records, text, errors, names <= set(dir(units))]
    """
    errors = ["ImportError", "ModuleNotFoundError", "ImportError"]
    text = "module 'units' has no attribute 'nothing'"
    assert candidate.run(WARNINGS + source) == [[], text, errors, True]


def test_the_program(candidate):
    def run(*arguments):
        ran = candidate.command(["{python}", "-W", "error", "solution.py", *arguments])
        return ran.code, ran.stdout, bool(ran.stderr), "Traceback" in ran.stderr

    assert run("5000", "m", "km") == (0, "5 kilometre\n", False, False)
    assert run("-1e3", "lb", "kg") == (0, "-453.592 kilogram\n", False, False)
    for wrong in (["1", "m"], ["x", "m", "km"], ["1", "m", "kg"], ["1", "m", "x"], []):
        assert run(*wrong) == (2, "", True, False)
