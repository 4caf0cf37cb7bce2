"""What an archive looks like."""

MAGIC = b"BOX1"
FILE, FOLDER = 0, 1
HASH = 32


class BoxError(ValueError):
    """Something that is no archive, or cannot become one."""


def check_path(path: str) -> None:
    """Refuse a path that could leave its folder."""
    if "\0" in path or path.startswith("/"):
        raise BoxError(f"{path!r} is not a valid path")
