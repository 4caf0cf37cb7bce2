"""A patch as text becomes files and hunks."""

import re
from dataclasses import dataclass, field

HEADER = re.compile(r"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@.*", re.S)
NOTHING = "/dev/null"


class Malformed(ValueError):
    """A text is no patch."""


@dataclass
class Hunk:
    """Old lines, where they begin, and what they become; lines have their ends."""

    start: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


@dataclass
class FilePatch:
    """What happens to one file."""

    path: str
    creates: bool
    deletes: bool
    hunks: list[Hunk]


def parse(text: str) -> list[FilePatch]:
    """The files of a patch."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    found: list[FilePatch] = []
    at = 0
    while at < len(lines):
        if not lines[at].startswith("--- "):
            at += 1
            continue
        patch, at = _file(lines, at)
        if patch.path in [other.path for other in found]:
            raise Malformed(f"{patch.path} occurs twice")
        found.append(patch)
    return found


def _file(lines: list[str], at: int) -> tuple[FilePatch, int]:
    if at + 1 >= len(lines) or not lines[at + 1].startswith("+++ "):
        raise Malformed(f"line {at + 2}: no name of the new file")
    old, new = (lines[n][4:].partition("\t")[0] for n in (at, at + 1))
    paths = {_path(name) for name in (old, new) if name != NOTHING}
    if len(paths) != 1:
        raise Malformed(f"line {at + 1}: not one file")
    patch = FilePatch(paths.pop(), old == NOTHING, new == NOTHING, [])
    at += 2
    while at < len(lines) and lines[at].startswith("@@"):
        hunk, at = _hunk(lines, at)
        if patch.creates and hunk.old or patch.deletes and hunk.new:
            raise Malformed(f"line {at}: a file is created with old lines, or deleted with new ones")
        if patch.hunks and hunk.start < _end(patch.hunks[-1]) + (1 if hunk.old else 0):
            raise Malformed(f"line {at}: hunks overlap")
        patch.hunks.append(hunk)
    if not patch.hunks:
        raise Malformed(f"line {at + 1}: no hunk")
    return patch, at


def _end(hunk: Hunk) -> int:
    """The number of the last old line of a hunk, or of the line after which it adds."""
    return hunk.start + max(len(hunk.old) - 1, 0)


def _path(name: str) -> str:
    parts = name.split("/")[1:]
    if not parts or any(part in ("", ".", "..") for part in parts):
        raise Malformed(f"{name!r} is not a name")
    return "/".join(parts)


def _hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    header = HEADER.fullmatch(lines[at])
    if not header:
        raise Malformed(f"line {at + 1}: no header of a hunk")
    old_count, new_count = (int(count or 1) for count in (header[2] or "1", header[4] or "1"))
    hunk = Hunk(int(header[1]))
    at += 1
    while len(hunk.old) < old_count or len(hunk.new) < new_count:
        if at == len(lines) or lines[at].startswith(("--- ", "+++ ")):
            raise Malformed("the last hunk is not complete")
        kind, rest = lines[at][:1] or " ", lines[at][1:]
        sides = {" ": [hunk.old, hunk.new], "-": [hunk.old], "+": [hunk.new]}.get(kind)
        if sides is None:
            raise Malformed(f"line {at + 1}: no line of a hunk")
        at += 1
        end = "\n"
        if at < len(lines) and lines[at].startswith("\\"):
            end = ""
            at += 1
        for side in sides:
            side.append(rest + end)
    if len(hunk.old) > old_count or len(hunk.new) > new_count:
        raise Malformed(f"line {at}: more lines than the hunk counts")
    return hunk, at
