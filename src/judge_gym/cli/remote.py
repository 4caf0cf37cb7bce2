"""The lab of another machine, which `--lab` names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from judge_gym.cli.app import read_lab
from judge_gym.errors import NotFoundError, TokenError, unknown

if TYPE_CHECKING:
    from judge_gym.client import Client
    from judge_gym.lab import Lab

REMOTE_TIMEOUT = 30.0
"""Seconds that a remote lab may take to answer."""


@contextmanager
def remote_lab(url: str) -> "Iterator[Client]":
    """Connects to the lab of `--lab`. An error about its token says where the token is from."""
    from judge_gym.client import Client

    try:
        with Client(url, timeout=REMOTE_TIMEOUT) as client:
            yield client
    except TokenError as error:
        raise TokenError(f"{error.message}; --lab takes it from JUDGE_GYM_TOKEN") from error


@contextmanager
def lab_or_remote(url: str | None) -> "Iterator[Lab | Client]":
    """Opens the lab of `--lab`, or the database that the command names."""
    if url is None:
        with read_lab() as lab:
            yield lab
    else:
        with remote_lab(url) as client:
            yield client


def find_eval(lab: "Lab | Client", path: str, *, run: int | None = None, replicate: int = 0) -> int:
    """Finds the number of an eval's result in a run, or in the newest run with one."""
    runs = [row["run"] for row in lab.suites.list_runs()] if run is None else [run]
    choices: set[str] = set()
    for number in reversed(runs):
        for row in lab.suites.show_run(number)["evals"]:
            choices.add(row["path"])
            if (row["path"], row["replicate"]) == (path, replicate):
                return row["eval"]
    where = "any run" if run is None else f"run {run}"
    if path in choices:
        raise NotFoundError(f"there is no replicate {replicate} of {path!r} in {where}")
    raise NotFoundError(unknown("eval", path, sorted(choices), where), choices=sorted(choices))
