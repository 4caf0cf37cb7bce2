"""Who may import whom (DESIGN section 5), read off the sources."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import judge_gym
from tables import each_row

SOURCE = Path(judge_gym.__file__).parent
# A room imports only what stands on an earlier line, and rooms on one line not each other.
ORDER = """
errors demo
records
verbs
axes client
studies stages
analysis
protocols calibrate recorded
triage
models store sources suites
engine
lab
web
mcp
cli
__main__
"""
LEVEL = {room: n for n, line in enumerate(ORDER.split("\n")) for room in line.split()}
# Libraries that one room alone may import.
HOMES = {
    "store": "sqlalchemy alembic sqlite3 psycopg psycopg2 asyncpg",
    "models": "genai_prices pydantic_ai openai anthropic google xai_sdk mistralai litellm cohere",
    "engine": "dbos",
    "web": "fastapi starlette uvicorn",
    "client": "urllib3",
    "mcp": "mcp mcp_types",
}
HOME = {library: room for room, libraries in HOMES.items() for library in libraries.split()}
# What a pure stage has no business with: files, clocks, chance, processes, networks.
IMPURE = set(
    "os io pathlib shutil tempfile glob time datetime random secrets uuid socket ssl http urllib "
    "subprocess asyncio threading multiprocessing logging requests httpx aiohttp".split()
)
PURE = {"axes", "stages"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "types"}


@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name; a package is named by its folder.

    The answers and graders of the shipped suite are data, some of them broken on purpose.
    """
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "suites" / "python"):
            continue
        parts = ["judge_gym", *path.relative_to(SOURCE).with_suffix("").parts]
        found[".".join(parts if parts[-1] != "__init__" else [*parts[:-1], ""])] = path
    return found


def imported(module: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that a module imports, at whatever depth."""
    package = module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                above = package[: len(package) - level + 1] if level else []
                start = ".".join([*above, *([base] if base else [])])
                yield from ((node.lineno, f"{start}.{name.name}") for name in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[first, *_],
            ):
                match first:
                    case ast.Constant(value=name):
                        yield node.lineno, str(name)
                    case ast.JoinedStr(
                        values=[ast.FormattedValue(value=ast.Name(id="__name__")), *_]
                    ):
                        yield node.lineno, module.rstrip(".")  # a module of its own package
                    case _:
                        yield node.lineno, "a name made at run time"


def faults(module: str, source: str) -> list[str]:
    """Where a module breaks the order."""
    room = module.split(".")[1]
    found = []
    if room not in LEVEL:
        return [f"{module}: the room {room!r} has no place in the order"]
    for line, name in imported(module, source):
        top, *rest = name.split(".")
        if name == "a name made at run time":
            found.append(f"{module}:{line} imports {name}")
        elif top != "judge_gym":
            if (home := HOME.get(top, room)) != room:
                found.append(f"{module}:{line} imports {top}, which only {home} may")
            if room in PURE and top in IMPURE:
                found.append(f"{module}:{line} imports {top}, but {room} is pure")
        elif not rest or rest[0] not in LEVEL:
            found.append(f"{module}:{line} imports {name}, which is no room")
        elif rest[0] != room and LEVEL[rest[0]] >= LEVEL[room]:
            found.append(f"{module}:{line} imports {rest[0]}, which does not stand to its left")
    return found


@each_row("module", [name for name in modules() if name != "judge_gym."])
def test_a_room_imports_only_what_stands_to_its_left(module: str) -> None:
    assert faults(module, modules()[module].read_text(encoding="utf-8")) == []


def test_all_sources_are_looked_at() -> None:
    rooms = {name.split(".")[1] for name in modules() if name != "judge_gym."}
    assert {"errors", "records", "axes", "studies", "stages", "analysis", "models"} <= rooms
    assert {"store", "sources", "engine", "lab", "client", "web", "cli"} <= rooms
    assert any("sqlalchemy" in path.read_text("utf-8") for path in modules().values())


@each_row(
    ("module", "source", "fault"),
    [
        ("judge_gym.axes.x", "from judge_gym.studies import Study", "studies"),
        ("judge_gym.axes.", "import judge_gym.lab", "lab"),
        ("judge_gym.stages.x", "from judge_gym import studies", "studies"),
        ("judge_gym.studies", "from judge_gym.stages import Scorer", "stages"),
        ("judge_gym.store.x", "def f():\n    import judge_gym.models.registry", "models"),
        ("judge_gym.store.x", "from ..models import Registry", "models"),
        ("judge_gym.store.", "from ..engine import Engine", "engine"),
        ("judge_gym.store.x.y", "from ...sources import load_files", "sources"),
        ("judge_gym.engine.x", "from judge_gym.lab.prepare import PreparedStudy", "lab"),
        ("judge_gym.records", "if TYPE_CHECKING:\n    from judge_gym.axes import Design", "axes"),
        ("judge_gym.web.x", "from judge_gym import mcp", "mcp"),
        ("judge_gym.lab", "import mcp.types", "only mcp"),
        ("judge_gym.web.x", "from judge_gym.cli import main", "cli"),
        ("judge_gym.client", "from judge_gym.lab import Lab", "lab"),
        ("judge_gym.client", "from judge_gym.axes import Design", "axes"),
        ("judge_gym.cli.x", "import uvicorn", "only web"),
        ("judge_gym.lab", "from fastapi import FastAPI", "only web"),
        ("judge_gym.lab", "from judge_gym.cli import main", "cli"),
        ("judge_gym.lab", "import_module('judge_gym.cli')", "cli"),
        ("judge_gym.lab", "importlib.import_module('judge_gym.cli.app')", "cli"),
        ("judge_gym.lab", "import_module(f'judge_gym.{room}')", "made at run time"),
        ("judge_gym.cli.x", "from judge_gym import Lab", "no room"),
        ("judge_gym.cli.x", "import judge_gym", "no room"),
        ("judge_gym.helpers", "", "no place"),
        ("judge_gym.lab", "import sqlalchemy as sa", "only store"),
        ("judge_gym.engine.x", "def f():\n    from sqlalchemy.orm import Session", "only store"),
        ("judge_gym.cli.x", "from alembic import command", "only store"),
        ("judge_gym.engine.x", "from openai import OpenAI", "only models"),
        ("judge_gym.lab", "import genai_prices.data_snapshot", "only models"),
        ("judge_gym.analysis.x", "import google.genai as g", "only models"),
        ("judge_gym.store.x", "from dbos import DBOS", "only engine"),
        ("judge_gym.stages.x", "from datetime import datetime", "pure"),
        ("judge_gym.axes.x", "import random", "pure"),
    ],
)
def test_the_check_sees_what_breaks_the_order(module: str, source: str, fault: str) -> None:
    [found] = faults(module, source)
    assert fault in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("judge_gym.axes.x", "from judge_gym.axes._knobs import knob\nfrom . import _knobs"),
        ("judge_gym.lab", "from judge_gym.engine import Engine\nfrom judge_gym.lab import runs"),
        ("judge_gym.store.x", "import sqlalchemy as sa\nfrom judge_gym.store import tables"),
        ("judge_gym.engine.x", "import dbos\nfrom ..store.runs import Run\nfrom . import y"),
        ("judge_gym.cli.", "import os, time\nfrom judge_gym.lab import Lab"),
    ],
)
def test_the_check_lets_the_rest_pass(module: str, source: str) -> None:
    assert faults(module, source) == []


FACES = ("cli", "mcp", "web")
INNER = ("store", "engine", "models")
"""Parts of `Lab` that faces leave to its nouns."""


def inner_uses(module: str, source: str) -> list[str]:
    """Returns where a face reaches past the nouns of a lab: `lab.store`, `self._lab.engine`."""
    return [
        f"{module}:{node.lineno} uses {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in INNER
        if re.search(r"(^|\W|_)(lab|opened)$", ast.unparse(node.value))
    ]


def test_faces_reach_data_only_through_the_nouns_of_lab() -> None:
    found = [
        use
        for name, path in modules().items()
        if name.split(".")[1] in FACES
        for use in inner_uses(name, path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source", ["lab.store.queries.tags()", "self._lab.engine.idle()", "x = opened.models"]
)
def test_the_check_of_faces_sees_what_is_inside(source: str) -> None:
    assert inner_uses("judge_gym.web.x", source)
    assert inner_uses("judge_gym.web.x", "lab.runs.start(x)\nstore.engine\njudge_gym.models") == []


def test_the_package_itself_is_lazy() -> None:
    """At run time it imports the standard library alone; type checkers see the public names."""
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    names = [
        name.split(".")[0]
        for node in tree.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for _, name in imported("judge_gym.", ast.unparse(node))
    ]
    assert set(names) <= {"importlib", "typing", "a name made at run time"}


def test_no_module_has_a_name_that_says_nothing() -> None:
    parts = {part for name in modules() for part in name.split(".")}
    assert not parts & VAGUE_NAMES


def test_no_group_is_repeated_possessively() -> None:
    """Python 3.11 before 3.11.5 reads `(?:-x)*+` wrongly; `(?>(?:-x)*)` means the same."""
    possessive = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,{}]+\})\+")
    found = [
        f"{path.name}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "re.compile" in line or 'rf"' in line or 'r"' in line
        if possessive.search(line)
    ]
    assert found == []


OF_THE_SYSTEM = {"PATH", "FONTCONFIG_FILE"}
READ_VARIABLE = re.compile(r'environ(?:\.get\(|\.pop\(|\[)\s*"(\w+)"')
NAMED_VARIABLE = re.compile(r'"(JUDGE_GYM_[A-Z_]+|[A-Z]+_API_(?:KEY|URL)|[A-Z_]+_BASE_URL)"')


def test_every_variable_that_the_code_reads_is_listed_for_operators(tmp_path: Path) -> None:
    named: set[str] = set()
    files = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.toml")]
    for file in files:
        if not {"inside", "python"} & {*file.relative_to(SOURCE).parts}:  # run in the sandbox
            text = file.read_text(encoding="utf-8")
            named |= {*READ_VARIABLE.findall(text), *NAMED_VARIABLE.findall(text)}
    assert {"JUDGE_GYM_TOKEN", "JUDGE_GYM_PROFILE", "OPENAI_API_KEY"} <= named
    with judge_gym.Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        listed = {row["name"] for row in lab.admin.environment()}
    assert named - OF_THE_SYSTEM <= listed
