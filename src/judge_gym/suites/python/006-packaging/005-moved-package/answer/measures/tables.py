"""The tables of units, read when they are first used."""

import functools
import json
from importlib.resources import files


@functools.cache
def _read(name: str) -> str:
    return (files("measures") / "data" / name).read_text(encoding="utf-8")


def factors() -> dict[str, dict[str, float]]:
    """Returns how much each unit is, by kind and unit."""
    table: dict[str, dict[str, float]] = json.loads(_read("factors.json"))
    return table


def names() -> dict[str, str]:
    """Returns the names of units."""
    return dict(line.split(" ", 1) for line in _read("names.txt").splitlines())
