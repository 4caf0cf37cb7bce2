"""docs/architecture.md shows what is: its picture is current and the functions it names exist."""

import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DRAWING: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "architecture.py"))


def test_the_picture_shows_the_imports_of_the_sources() -> None:
    picture = (ROOT / "docs" / "images" / "architecture.svg").read_text(encoding="utf-8")
    assert picture == DRAWING["svg"](DRAWING["imports"]()), "run: make docs"


def test_every_package_is_described() -> None:
    described = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.M) for name in
                 re.findall(r"`(\w+)`", row)}  # fmt: skip
    assert DRAWING["imports"]().keys() - {"demo", "samples"} <= described


def test_every_function_that_the_page_names_exists() -> None:
    missing = []
    for module, path in re.findall(r"`(judge_gym[\w.]*):([\w.]+)`", PAGE):
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is None:
            missing.append(f"{module}:{path}")
    assert missing == []


def test_a_sample_takes_at_most_18_functions_from_the_study_file_to_the_report() -> None:
    walk = PAGE.partition("## One sample")[2].partition("\n## ")[0]
    assert 10 <= len(re.findall(r"^\d+\. ", walk, re.M)) <= 18


def test_packages_stand_above_what_they_import() -> None:
    graph = {"top": {"middle", "base"}, "middle": {"base"}, "base": set[str]()}
    assert DRAWING["levels"](graph) == {"base": 0, "middle": 1, "top": 2}
    assert DRAWING["reduced"](graph) == {"top": {"middle"}, "middle": {"base"}, "base": set()}


@pytest.mark.slow
def test_the_walk_of_a_sample_is_what_a_run_passes_and_short() -> None:
    script = str(ROOT / "scripts" / "trace_run.py")
    printed = subprocess.run([sys.executable, script, "--print"], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.strip() in PAGE, "run: make docs"
    assert int(printed.stdout.partition(" ")[0]) <= 30
