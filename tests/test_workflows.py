"""The commands of the workflow files, each job in an environment with what it installs itself."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import postgres
from lab_server import ServedLab, serve_lab

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
FILES = {
    path.name: yaml.safe_load(path.read_text())
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
JOBS = [(name, job) for name, workflow in FILES.items() for job in workflow["jobs"]]
CHECKS = ".ci/run"
"""What runs these tests: it is not run by them."""
INSTALL = "python -m pip install "
FURTHER_TASK = re.compile(r"src/judge_gym/suites/python/\d{3}-[^/]+/(?!001-)")
"""Tasks beyond the first of a category: `test_shipped_answers.py` checks them all."""
KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "XAI_API_KEY",
    "OPENROUTER_API_KEY",
)


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[ServedLab]:
    (tmp_path / "remote").mkdir()
    with serve_lab(tmp_path / "remote", run=False) as opened:
        yield opened


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that version control has, as a runner checks them out, with a part of the tasks."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = tmp_path / "checkout"
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not FURTHER_TASK.match(name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with the values of its expressions; one that is not known here is an error."""
    return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda match: values[match[1]], text)


def run(command: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Runs a step as the host's shell does."""
    done = subprocess.run(
        ["bash", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (
        command,
        done.returncode,
        done.stdout[-2000:],
        done.stderr[-2000:],
    )


@pytest.mark.parametrize(("name", "job"), JOBS, ids=[f"{name}-{job}" for name, job in JOBS])
def test_a_job_has_what_its_commands_need(
    name: str, job: str, checkout: Path, remote: ServedLab, tmp_path: Path
) -> None:
    declared: dict[str, Any] = FILES[name]["jobs"][job]
    steps = [step for step in declared["steps"] if "run" in step]
    if [step["run"] for step in steps] == [CHECKS]:
        assert os.access(ROOT / CHECKS, os.X_OK)
        return
    _, token = remote.lab.tokens.create("ci", "write")
    values = {
        # A release starts with whatever the database holds, a contraction with a schema in use.
        "secrets.JUDGE_GYM_DATABASE_URL": postgres.fresh_url()
        if job == "contract"
        else postgres.empty_url(),
        "secrets.JUDGE_GYM_TOKEN": token,
        "vars.JUDGE_GYM_LAB": remote.url,
        **{f"secrets.{key}": "" for key in KEYS},
    }
    if job == "due":  # the models that a user schedules once, and commits
        words = ["schedule", "python", "--model", "sim:coder-strong", "--write"]
        subprocess.run([sys.executable, "-m", "judge_gym", *words], cwd=checkout, check=True)
    uv = [sys.executable, "-m", "uv"]
    venv = tmp_path / "venv"
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, venv], check=True)
    environment = {
        "PATH": f"{venv}/bin:{os.defpath}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        **{key: filled(str(text), values) for key, text in declared.get("env", {}).items()},
    }
    for step in steps:
        command = filled(step["run"], values)
        if command.startswith("sudo apt-get"):
            continue  # a program of the machine: here the sandbox takes what there is
        if command.startswith(INSTALL):
            installer = f"{' '.join(uv)} pip install --quiet --python {venv}/bin/python "
            run(command.replace(INSTALL, installer), checkout, os.environ)
            continue
        run(command, checkout, environment)
    if job == "due":
        [posted] = remote.lab.suites.list_runs()
        assert (posted["model"], posted["whole"]) == ("sim:coder-strong", True)
        assert sum(posted["counts"].values()) == posted["suite_evals"]
