"""A command reads and checks the study file that it names once."""

import shlex
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Call, OnlySections
from judge_gym.errors import DesignError
from judge_gym.lab import Lab
from judge_gym.lab.workers import Workers
from judge_gym.studies import file as studies_file
from judge_gym.studies.yaml_lines import load_yaml

COMMANDS = """
run FILE
run FILE --background
plan FILE
plan FILE --power 0.1
plan FILE --next
status FILE
judges FILE
report FILE
export FILE --out out.csv
usage FILE
answers FILE
resume FILE
retry FILE
pause FILE
cancel FILE
retune FILE --budget calls=900
reparse FILE
labels status FILE
labels split FILE
score make FILE
swap make FILE --suggest
evidence add FILE
"""
OPENED: Counter[str] = Counter()
"""How often each file was opened."""


def _count_opens(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        OPENED[str(arguments[0])] += 1


@pytest.fixture(scope="module", autouse=True)
def _counting() -> None:
    sys.addaudithook(_count_opens)  # for good: Python removes none


def test_every_command_opens_and_checks_its_study_file_once(
    call: Call, finished: Path, monkeypatch: pytest.MonkeyPatch, only_sections: OnlySections
) -> None:
    only_sections()
    checks = 0

    def load_and_count(text: str) -> Any:
        nonlocal checks
        checks += 1
        return load_yaml(text)

    monkeypatch.setattr(studies_file, "load_yaml", load_and_count)
    monkeypatch.setattr(Workers, "start", lambda self, options: None)
    counts = {}
    for line in COMMANDS.strip().splitlines():
        opened, checks = OPENED[str(finished)], 0
        words = shlex.split(line.replace("FILE", str(finished)))
        said = call(*words)
        assert said.code == 0, (line, said.err)
        counts[line] = (OPENED[str(finished)] - opened, checks)
    assert counts == dict.fromkeys(counts, (1, 1))


def test_a_study_that_was_read_is_refused_under_other_knobs(
    lab: Lab, write_study: Callable[..., Path]
) -> None:
    source = lab.studies.read(write_study(), {"verdict.method": "subset"})
    _, prepared = lab.runs.estimate(source)
    methods = {each.design.verdict.method for each in prepared.sweep.experiments}
    assert methods == {"subset"}
    with pytest.raises(DesignError, match="read under other knobs"):
        lab.runs.plan(source, overrides={"verdict.method": "single"})
