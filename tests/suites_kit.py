"""Shared by tests of suites: the isolations of this machine, and the processes left running."""

import shutil
import time
from pathlib import Path

import pytest

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
