"""The database's verbs, as whoever operates a lab uses them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from judge_gym.store.database import HEAD

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"


def gym(folder: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A command in a process of its own: a profile belongs to a session."""
    kept = {name: value for name, value in os.environ.items() if name != "JUDGE_GYM_PROFILE"}
    return subprocess.run(
        [sys.executable, "-m", "judge_gym", "--db", f"sqlite:///{folder / 'lab.db'}", *words],
        capture_output=True,
        text=True,
        env={**kept, **variables},
        cwd=folder,
    )


def test_a_production_database_is_written_by_those_who_say_so(tmp_path: Path) -> None:
    assert gym(tmp_path, "db", "upgrade").stdout == f"schema none -> {HEAD}\n"
    assert gym(tmp_path, "db", "mark", "prod").returncode == 0
    window = ("token", "create", "ada", "--scope", "read")
    refused = gym(tmp_path, *window)
    assert refused.returncode == 2 and "is production" in refused.stderr
    assert gym(tmp_path, "--profile", "prod", *window).returncode == 0
    assert gym(tmp_path, "token", "list").returncode == 0, "reading is free"
    other = gym(tmp_path, "token", "create", "bo", "--scope", "read", JUDGE_GYM_PROFILE="prod")
    assert other.returncode == 0
    status = gym(tmp_path, "db", "status", "--watch")
    assert "(prod)" in status.stdout and f"schema {HEAD}, newest {HEAD}" in status.stdout
    assert gym(tmp_path, "--profile", "prod", "db", "migrate").stdout == "0 rows changed\n"
    contract = gym(tmp_path, "--profile", "prod", "db", "contract")
    assert contract.stdout == f"schema {HEAD} is current\n"


def test_the_workflows_name_commands_that_exist() -> None:
    """A workflow fails at night, where nobody sees a verb that was renamed."""
    from typer.main import get_command

    from judge_gym.cli import whole_app

    verbs: dict[str, Any] = vars(get_command(whole_app()))["commands"]
    seen = 0
    for file in sorted(WORKFLOWS.glob("*.yml")):
        jobs = yaml.safe_load(file.read_text())["jobs"]
        for step in (step for job in jobs.values() for step in job["steps"]):
            _, found, command = step.get("run", "").partition("judge-gym ")
            if found:
                verb, *rest = command.split()
                assert verb in verbs, f"{file.name}: {command}"
                group = getattr(verbs[verb], "commands", None)
                assert group is None or rest[0] in group, f"{file.name}: {command}"
                seen += 1
    assert seen >= 6
