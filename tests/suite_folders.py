"""Suites of trivial evals, made on the spot: a grader is a shell script that looks for a value."""

import json
from pathlib import Path

TASKS_PER_CATEGORY = 50
GRADER = """\
if grep -q '{line}' "$CANDIDATE_FILES"
then printf '1..1\\nok 1 - value\\n' >&3
else printf '1..1\\nnot ok 1 - value\\n' >&3
fi
"""
GUIDELINES = """\
# Guidelines

## Style
No unused imports.

## Colour
Prefer blue.
"""


def write_suite(folder: Path, evals: int, *, name: str = "tiny", seconds: float = 60) -> Path:
    """A suite of evals that each ask for one value; its folder."""
    folder.mkdir(parents=True)
    command = json.dumps(["/bin/sh", "{kit}/grader/check.sh"])
    (folder / "suite.toml").write_text(
        f'name = "{name}"\n[steps.tests]\ncommand = {command}\nseconds = {seconds}\n'
    )
    (folder / "guidelines.md").write_text(GUIDELINES)
    for number in range(evals):
        category = f"{1 + number // TASKS_PER_CATEGORY:03}-values"
        place = folder / category / f"{1 + number % TASKS_PER_CATEGORY:03}-value"
        (place / "answer").mkdir(parents=True)
        (place / "grader").mkdir()
        line = f"VALUE = {1000 + number}"
        (place / "TASK.md").write_text(f"Write value.py, which says: {line}\n")
        (place / "eval.toml").write_text('pipeline = "static"\n')
        (place / "answer" / "value.py").write_text(f"{line}\n")
        (place / "grader" / "check.sh").write_text(GRADER.format(line=line))
    return folder


def known_by(suite: Path, writer: str = "coder-weak", **shares: float) -> str:
    """A simulated writer that knows a suite's answers, without its provider."""
    given = "".join(f"&{fault}={share}" for fault, share in shares.items())
    return f"{writer}?suite={suite}{given}"


def add_lint(suite: Path) -> None:
    """Have a suite complain of a writer's unused import, as a linter would."""
    step = '[steps.lint]\ncommand = ["/bin/sh", "{kit}/look.sh"]\nseconds = 60\n'
    (suite / "suite.toml").write_text((suite / "suite.toml").read_text() + step)
    (suite / "kit").mkdir()
    said = "\n".join(f"  echo 'value.py:{line}:8: F401 unused import'" for line in (1, 2, 3))
    script = f"if grep -q colorsys value.py\nthen\n{said}\n  exit 1\nfi\n"
    (suite / "kit/look.sh").write_text(script)
    for file in suite.glob("*/*/eval.toml"):
        file.unlink()
