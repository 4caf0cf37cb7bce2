"""Finds published data beside the project, and skips tests of it where there are none."""

from pathlib import Path

import pytest

ROOT = next(
    (
        folder / "shared" / "data"
        for folder in Path(__file__).resolve().parents
        if (folder / "shared" / "data").is_dir()
    ),
    None,
)


def published(name: str) -> Path:
    """The folder of a published collection; the test is skipped if it is not there."""
    if ROOT is None or not (ROOT / name).is_dir():
        pytest.skip(f"the published data of {name} are not beside the project")
    return ROOT / name
