"""Ranges of bytes."""

import re

RANGE = re.compile(r"bytes=[ \t]*([0-9]*)-([0-9]*)[ \t]*", re.IGNORECASE)


class NotSatisfiable(Exception):
    """A range has no byte of the file."""


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """Returns the first and the last byte of a range; None if it is to be ignored."""
    match = RANGE.fullmatch(header.strip(" \t"))
    if match is None or match[1] == match[2] == "":
        return None
    if not match[1]:
        count = min(int(match[2]), size)
        if not count:
            raise NotSatisfiable(header)
        return size - count, size - 1
    first = int(match[1])
    last = int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return None
    if first >= size:
        raise NotSatisfiable(header)
    return first, min(last, size - 1)
