"""Which build of judge-gym this is: its version, and the commit that it was built or runs from."""

import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
COMMIT_FILE = PACKAGE / "commit.txt"
"""Written into wheels and source archives by `hatch_build.py`."""
UNKNOWN = "unknown build"


def version() -> str:
    """The version of the package."""
    return metadata.version("judge-gym")


@cache
def build() -> str:
    """The commit, with `-dirty` for a changed checkout, if it is known."""
    root = PACKAGE.parents[1]
    # A package that was installed below a checkout of something else is not part of that.
    if PACKAGE.parent.name == "src" and (root / ".git").exists():
        return _commit_of(root) or UNKNOWN
    try:
        return COMMIT_FILE.read_text(encoding="ascii").strip() or UNKNOWN
    except OSError:
        return UNKNOWN


def _commit_of(checkout: Path) -> str:
    """Asks git for the commit of a checkout, if it can say."""
    words = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        described = subprocess.run(
            [*words, "--exclude=*"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return described.stdout.strip()
