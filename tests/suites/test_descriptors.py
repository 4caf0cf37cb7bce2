"""A sandbox hears its grader whatever numbers its pipes have in the process that starts it."""

import os
from contextlib import ExitStack

import pytest

from judge_gym.suites import Job, isolations, run

needs_isolation = pytest.mark.skipif(not isolations(), reason="no sandbox works here")


@needs_isolation
@pytest.mark.parametrize("first", range(94, 106, 2))
def test_a_report_arrives_however_many_files_its_host_has_open(first: int) -> None:
    with ExitStack() as held:
        while (lowest := os.open(os.devnull, os.O_RDONLY)) < first:
            held.callback(os.close, lowest)
        os.close(lowest)
        ran = run(Job(["/bin/sh", "-c", "printf told >&3"]), answer=lambda asked: asked)
    assert (ran.ended, ran.code, ran.report, ran.output) == ("exited", 0, "told", "")
