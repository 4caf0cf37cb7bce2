"""What tests of suites share: the lanes of this machine, and a look at what is left running."""

import shutil
import time
from pathlib import Path

import pytest

from judge_gym.suites.sandbox import lanes
from judge_gym.suites.views import LANES, program

EACH_LANE = [
    pytest.param(
        lane,
        marks=[
            pytest.mark.needs(program(lane)),
            pytest.mark.skipif(
                shutil.which(program(lane)) is not None and lane not in lanes(),
                reason=f"the lane {lane} does not work here",
            ),
        ],
    )
    for lane in LANES
]
"""A parameter per lane; one that this machine lacks is skipped, and said so."""


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
