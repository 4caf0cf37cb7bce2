"""The package as users install it: built, then installed into clean environments elsewhere.

What installs needs the package index, as `make test` itself does.
"""

import email
import json
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from judge_gym.records.build import UNKNOWN, build

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
SMOKE = (
    *("test_sample_frames.py", "test_studies.py", "analysis/test_clusters.py"),
    *("analysis/test_frames.py", "analysis/test_purchases.py", "store/test_ledger.py"),
    *("sources/test_fetcher.py", "sources/test_articles.py", "mcp_server/test_tools.py"),
)
"""Tests that use most base dependencies; together under a minute."""
TOOLS = ("hypothesis", "httpx", "pytest-timeout", "pytest-xdist")
"""What these tests import besides the package and its extra `suites`."""


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command that must succeed."""
    done = subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source archive and the wheel that was made from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--installer", "uv", "--outdir", folder, ROOT, cwd=folder)
    return folder


def wheel(built: Path) -> Path:
    [file] = built.glob("*.whl")
    return file


def environment(folder: Path, *requirements: str | Path) -> Path:
    """Returns the folder of the programs of a new environment that holds these packages."""
    uv = [sys.executable, "-m", "uv"]
    run(*uv, "venv", "--quiet", "--python", sys.executable, folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(*uv, "pip", "install", "--quiet", "--python", python, *requirements, cwd=folder)
    return python.parent


def test_wheel_and_source_archive_are_complete(built: Path) -> None:
    with zipfile.ZipFile(wheel(built)) as archive:
        names = {*archive.namelist()}
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        about = email.message_from_bytes(archive.read(metadata))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (about["Name"], about["Version"]) == (project["name"], project["version"])
    assert about["License-Expression"] == "MIT" and about["License-File"] == "LICENSE"
    assert about["Requires-Python"] == ">=3.11" and about["Summary"] and about["Author"]
    assert about["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in about.get_all("Classifier", [])
    package = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*")}
    expected = {
        str(path) for path in package if path.suffix != ".pyc" and (ROOT / "src" / path).is_file()
    }
    assert "judge_gym/py.typed" in expected
    expected |= {"judge_gym/commit.txt"} if build() != UNKNOWN else set()
    assert {name for name in names if ".dist-info/" not in name} == expected
    [source] = built.glob("*.tar.gz")
    with tarfile.open(source) as files:
        shipped = {name.partition("/")[2] for name in files.getnames()}
    assert shipped >= {"LICENSE", "README.md", "pyproject.toml", "constraints.txt", "Dockerfile"}
    assert "hatch_build.py" in shipped
    assert shipped >= {f"src/{name}" for name in expected}


def test_an_installed_package_works_outside_the_tree(built: Path, tmp_path: Path) -> None:
    constraints = ROOT / "constraints.txt"
    bin = environment(tmp_path, f"{wheel(built)}[suites]", "--constraint", constraints)
    lab = bin / "judge-gym"
    run(lab, "init", "pilot", "--example", "review", cwd=tmp_path)
    assert f"({build()})" in run(lab, "--version", cwd=tmp_path).stdout
    [study] = (tmp_path / "pilot").glob("*.yaml")
    result = json.loads(run(lab, "run", study, "--json", cwd=tmp_path).stdout)
    assert result["status"] == "complete"
    run(lab, "report", study, "--out", tmp_path / "report.html", cwd=tmp_path)
    checked = run(lab, "suite", "check", "python", "--evals", "001-language/001", cwd=tmp_path)
    assert "1 of 1 reference answers pass" in checked.stderr


def test_the_first_error_is_the_command_that_mends_it(tmp_path: Path) -> None:
    constraints = ROOT / "constraints.txt"
    lab = environment(tmp_path, ROOT, "--constraint", constraints) / "judge-gym"
    words = [str(lab), "suite", "check", "python", "--limit", "1"]
    refused = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2 and "the suite needs" in refused.stderr
    command = shlex.split(refused.stderr.strip().rpartition("; run ")[2])
    assert command[:3] == ["uv", "pip", "install"], "as it was installed"
    # Here uv is a module of the tests' environment, and not on the path.
    run(sys.executable, "-m", *command, "--quiet", "--constraint", constraints, cwd=tmp_path)
    assert "1 of 1 reference answers pass" in run(*words, cwd=tmp_path).stderr


def test_the_lowest_direct_versions_work(built: Path, tmp_path: Path) -> None:
    pins = (ROOT / "constraints.txt").read_text().split()
    bin = environment(
        tmp_path,
        *("--resolution", "lowest-direct", "--requirements", ROOT / "pyproject.toml"),
        *("--extra", "suites"),
        *(pin for pin in pins if pin.partition("==")[0] in TOOLS),
    )
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps"]
    run(*uv, "--python", bin / "python", wheel(built), cwd=tmp_path)
    tests = [ROOT / "tests" / name for name in SMOKE]
    options = ["-q", "-o", "addopts=", "-o", "filterwarnings=", "-p", "no:cacheprovider"]
    run(
        bin / "python",
        "-m",
        "pytest",
        *options,
        "-m",
        "not slow and not simulation",
        "-k",
        "not postgres",
        *tests,
        cwd=ROOT,
    )
