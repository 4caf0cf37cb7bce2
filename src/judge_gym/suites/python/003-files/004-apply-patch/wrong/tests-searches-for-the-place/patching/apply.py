"""A patch of one file is applied."""

from patching.parse import FilePatch


class Conflict(ValueError):
    """A patch does not apply."""


def apply(old: str | None, patch: FilePatch) -> str | None:
    """The new text of a file."""
    if patch.creates != (old is None):
        raise Conflict(patch.path)
    lines = _lines(old or "")
    made: list[str] = []
    done = 0
    for number, hunk in enumerate(patch.hunks, 1):
        first = hunk.start - 1 if hunk.old else hunk.start
        last = first + len(hunk.old)
        places = [n for n in range(done, len(lines) + 1) if lines[n : n + len(hunk.old)] == hunk.old]
        if not places:
            raise Conflict(f"{patch.path}: hunk {number}")
        first = min(places, key=lambda place: abs(place - first))
        last = first + len(hunk.old)
        made += lines[done:first] + hunk.new
        done = last
        if any(not line.endswith("\n") for line in [*made, *lines[done:]][:-1]):
            raise Conflict(f"{patch.path}: hunk {number}")
    made += lines[done:]
    if patch.deletes:
        if made:
            raise Conflict(patch.path)
        return None
    return "".join(made)


def _lines(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])
