"""Installs a suite's dependencies once for every sandbox to read.

No candidate's code takes part, so this runs outside of the sandbox: it may use the network, starts
from the suite's own list of dependencies, and every failure is infrastructure.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from judge_gym.records import digest
from judge_gym.records.outcomes import StepResult
from judge_gym.suites.loader import Suite

INSTALLED = Path(".judge-gym/installed")
"""The folder of installed dependencies, by their hash."""
KEPT = 64 << 10


def dependency_folder(suite: Suite, installed: Path = INSTALLED) -> Path:
    """The folder of a suite's dependencies. Another list has another folder."""
    words = suite.steps["install"].command
    return installed / digest([words, dict(suite.dependencies)])[:16]


def install(suite: Suite, installed: Path = INSTALLED) -> StepResult:
    """Runs the suite's install command in a new folder, unless that was done before."""
    final, started = dependency_folder(suite, installed), time.monotonic()
    if final.is_dir():
        return StepResult("install", "passed", 0.0)
    installed.mkdir(parents=True, exist_ok=True)
    workspace = Path(tempfile.mkdtemp(dir=installed))
    workspace.chmod(0o755)  # sandboxes read it as another user
    for path, text in suite.dependencies.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text, encoding="utf-8")
    reason, output = _run(suite, workspace)
    seconds = time.monotonic() - started
    if not reason:
        with contextlib.suppress(OSError):  # another worker was first
            workspace.rename(final)
    shutil.rmtree(workspace, ignore_errors=True)
    return StepResult("install", "inconclusive" if reason else "passed", seconds, reason, output)


def _run(suite: Suite, folder: Path) -> tuple[str, str]:
    """Runs the command and returns why it failed, if it did, and what it printed."""
    step = suite.steps["install"]
    words = [sys.executable if word == "{python}" else word for word in step.command]
    env = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LANG": "C.UTF-8"}
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                words,
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            return f"it could not be started: {error}", ""
        try:
            code = process.wait(step.seconds)
            reason = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            reason = f"not done within {step.seconds:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(max(0, log.tell() - KEPT))
        return reason, log.read().decode("utf-8", "replace")
