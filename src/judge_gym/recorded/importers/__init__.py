"""Readers of what other tools and papers recorded, one module a format.

A module has `ABOUT`, a line for users; `detect`, which says whether a path looks like its format;
and `read`, which returns a recording for each question that was judged. Its name, with hyphens, is
the name of the format. Outside packages register such modules as entry points of the group
`judge_gym.importers`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from judge_gym.errors import DesignError, unknown
from judge_gym.recorded.recording import Recording

GROUP = "judge_gym.importers"
AUTO = "auto"
"""In place of a format: the one that fits."""


class Importer(Protocol):
    """A module that reads a format."""

    ABOUT: str
    """What it reads, in a line for users."""

    def detect(self, path: Path) -> bool:
        """Whether a file or folder looks like the format; reads a small part of it."""

    def read(self, path: Path) -> Sequence[Recording]:
        """Reads a file or folder."""


@cache
def importers() -> Mapping[str, Importer]:
    """Lists all formats with their reader, those of outside packages last."""
    own = {
        module.name.replace("_", "-"): import_module(f"{__name__}.{module.name}")
        for module in iter_modules(__path__)
    }
    outside = {entry.name: entry.load() for entry in entry_points(group=GROUP)}
    return cast("Mapping[str, Importer]", {**own, **outside})


def find_importer(format: str, path: Path) -> tuple[str, Importer]:
    """Finds the reader of a format, or of the one that fits a path, with the format's name."""
    readers = importers()
    if format != AUTO:
        if format not in readers:
            choices = (AUTO, *readers)
            raise DesignError(unknown("format", format, choices), choices=choices)
        return format, readers[format]
    fitting = [name for name, reader in readers.items() if reader.detect(path)]
    if len(fitting) != 1:
        which = f"fits {', '.join(fitting)}" if fitting else "fits none"
        raise DesignError(f"{path} {which}; name the format", choices=fitting or tuple(readers))
    return fitting[0], readers[fitting[0]]
