"""Shared by tests of suites: isolations of this machine, packages, and processes left running."""

import os
import shutil
import time
from pathlib import Path

import pytest

from judge_gym.suites import Suite
from judge_gym.suites.install import install
from judge_gym.suites.mounts import ISOLATIONS, program
from judge_gym.suites.sandbox import isolations

EACH_LANE = [
    pytest.param(
        isolation,
        marks=[
            pytest.mark.needs(program(isolation)),
            pytest.mark.skipif(
                shutil.which(program(isolation)) is not None and isolation not in isolations(),
                reason=f"the isolation {isolation} does not work here",
            ),
        ],
    )
    for isolation in ISOLATIONS
]
"""A parameter per isolation; one that this machine lacks is skipped, and said so."""


def install_packages(suite: Suite, folder: Path) -> None:
    """Installs what a suite needs, or skips the test; with REQUIRE=all it fails instead."""
    result = install(suite, folder)
    if result.status != "passed":
        reason = f"the packages of {suite.name} cannot be installed: {result.reason}"
        if os.environ.get("REQUIRE") == "all":
            pytest.fail(f"{reason}\n{result.output}")
        pytest.skip(reason)


def running(token: str) -> list[int]:
    """The processes, of whatever user, whose command line holds a token."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                line = (path / "cmdline").read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            if token.encode() in line:
                found.append(int(path.name))
    return found


def none_left(token: str) -> bool:
    """Whether no process with the token is left, or is soon."""
    last = time.monotonic() + 60
    while running(token) and time.monotonic() < last:
        time.sleep(0.05)
    return not running(token)
