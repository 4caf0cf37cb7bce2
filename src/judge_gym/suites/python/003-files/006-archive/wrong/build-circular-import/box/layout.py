"""What an archive looks like."""

from box.pack import pack

__all__ = ["pack"]
MAGIC = b"BOX1"
FILE, FOLDER = 0, 1
HASH = 32


class BoxError(ValueError):
    """Something that is no archive, or cannot become one."""


def check_path(path: str) -> None:
    """Refuse a path that could leave its folder."""
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise BoxError(f"{path!r} is not a valid path")
