"""A copy of the package with one more group of knobs, which a script is run on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import judge_gym


def ask_with_group(folder: Path, name: str, source: str, script: str) -> dict[str, Any]:
    """Adds a group with a file and a line, and returns the JSON that a script prints under it.

    The file `axes/NAME.py` holds the class `NAMEAxes`.
    """
    package = folder / "judge_gym"
    shutil.copytree(
        Path(judge_gym.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "axes" / f"{name}.py").write_text(source)
    group = f"{name.capitalize()}Axes"
    design = package / "axes" / "__init__.py"
    text = design.read_text()
    for line, added in (
        (
            "from judge_gym.axes.verdict import VerdictAxes\n",
            f"from judge_gym.axes.{name} import {group}\n",
        ),
        ("    prompt: PromptAxes = PromptAxes()\n", f"    {name}: {group} = {group}()\n"),
    ):
        assert text.count(line) == 1
        text = text.replace(line, line + added)
    design.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers
