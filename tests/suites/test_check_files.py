"""The checks of the Python suite: nothing that a candidate sends turns one off."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path

import pytest

SCRIPT = resources.files("judge_gym.suites") / "python" / "kit" / "check_files.py"
UNUSED = "import os\n"
UNTYPED = "def double(n):\n    return 2 * n\n"
Check = Callable[[str, Mapping[str, str]], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    def run(name: str, files: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        command = [sys.executable, "-I", str(SCRIPT), name]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run


@pytest.mark.parametrize(
    "files",
    [
        {".ignore": "*.py\n"},
        {".gitignore": "*.py\n", ".ruffignore": "*.py\n"},
        {"ruff.toml": "exclude = ['*.py']\n", "pyproject.toml": "[tool.ruff]\nexclude = ['*']\n"},
        {"solution.py": "from build.hidden import x as x\n", "build/hidden.py": UNUSED},
        {"solution.py": "import os  # noqa\n"},
        {"solution.py": "# ruff: noqa\nimport os\n"},
    ],
)
def test_lint_reads_every_file_whatever_a_candidate_sends(
    check: Check, files: dict[str, str]
) -> None:
    done = check("lint", {"solution.py": UNUSED} | files)
    assert done.returncode == 1 and "F401" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "files",
    [
        {"solution.py": "# mypy: ignore-errors\n" + UNTYPED},
        {"solution.py": "# type: ignore\n" + UNTYPED},
        {"solution.py": UNTYPED.replace(":\n", ":  # type: ignore[no-untyped-def]\n", 1)},
        {  # a character of UTF-8 is two of Latin-1, so that columns differ
            "solution.py": f"# coding: latin-1\nX = '{'é' * 60}'\n"
            f"def double(n): return '{'é' * 60}'  # type: ignore\n"
        },
        {
            "mypy.ini": "[mypy]\nignore_errors = True\n",
            "solution.pyi": "def double(n: int) -> int: ...\n",
            "solution.py": "from part import double as double\n",
            "part.pyi": "def double(n: int) -> int: ...\n",
            "part.py": UNTYPED,
        },
    ],
)
def test_types_are_checked_whatever_a_candidate_sends(check: Check, files: dict[str, str]) -> None:
    done = check("types", files)
    assert done.returncode == 1 and "no-untyped-def" in done.stdout


def test_a_clean_candidate_passes_both_checks(check: Check) -> None:
    files = {
        "latin.py": "# coding: latin-1\nX = 'é'\n",
        "solution.py": 'def double(n: int) -> int:\n    """# type: ignore"""\n    return 2 * n\n',
    }
    assert check("lint", files).returncode == 0
    assert check("types", files).returncode == 0
