"""Compares the files of a model's reply with those of the reference answer, line by line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal, NamedTuple

CONTEXT = 3
"""Unchanged lines that are shown around a change."""
MAX_LINES = 5_000
"""Longer files are not compared."""
MAX_WIDTH = 400
"""Changes within longer lines are not marked."""
ALIKE = 0.5
"""Changes within two lines are marked if they have at least this share in common."""

Kind = Literal["same", "removed", "added", "gap"]
FileStatus = Literal[
    "identical", "different", "only in the answer", "only in the reply", "too long"
]


class Part(NamedTuple):
    """A piece of a line, and whether it differs from the other side."""

    text: str
    changed: bool = False


class DiffLine(NamedTuple):
    """A line of a comparison; a gap stands for unchanged lines that are not shown."""

    kind: Kind
    parts: Sequence[Part] = ()
    answer: int | None = None
    """Its number in the reference answer."""
    reply: int | None = None
    """Its number in the reply."""
    hidden: int = 0
    """The number of lines that a gap stands for."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The comparison of one file."""

    path: str
    status: FileStatus
    lines: Sequence[DiffLine]

    def count(self, kind: Kind) -> int:
        """Returns the number of lines of a kind."""
        return sum(line.kind == kind for line in self.lines)


def compare_files(
    answer: Mapping[str, str], reply: Mapping[str, str], *, context: int | None = CONTEXT
) -> list[FileDiff]:
    """Returns the comparison of each file of either side; all lines where the context is None."""
    return [
        _compare(path, answer.get(path), reply.get(path), context)
        for path in sorted({*answer, *reply})
    ]


def _compare(path: str, answer: str | None, reply: str | None, context: int | None) -> FileDiff:
    before, after = (answer or "").splitlines(), (reply or "").splitlines()
    if len(before) > MAX_LINES or len(after) > MAX_LINES:
        return FileDiff(path, "too long", ())
    status: FileStatus = "identical" if answer == reply else "different"
    if answer is None:
        status = "only in the reply"
    elif reply is None:
        status = "only in the answer"
    lines = tuple(_lines(before, after))
    return FileDiff(path, status, lines if context is None else tuple(_folded(lines, context)))


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[DiffLine]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, other, other_end in matcher.get_opcodes():
        if tag == "equal":
            for number, text in enumerate(before[start:end]):
                line_number = other + number + 1
                yield DiffLine("same", (Part(text),), start + number + 1, line_number)
            continue
        removed, added = before[start:end], after[other:other_end]
        marked = _marked(removed, added)
        for number, parts in enumerate(marked[0], start + 1):
            yield DiffLine("removed", parts, answer=number)
        for number, parts in enumerate(marked[1], other + 1):
            yield DiffLine("added", parts, reply=number)


def _marked(
    removed: Sequence[str], added: Sequence[str]
) -> tuple[list[Sequence[Part]], list[Sequence[Part]]]:
    """Returns lines on both sides of a change, with what changed within lines that are alike."""
    left: list[Sequence[Part]] = [(Part(text),) for text in removed]
    right: list[Sequence[Part]] = [(Part(text),) for text in added]
    for number, (old, other) in enumerate(zip(removed, added, strict=False)):
        if max(len(old), len(other)) > MAX_WIDTH:
            continue
        matcher = SequenceMatcher(None, old, other, autojunk=False)
        if matcher.ratio() < ALIKE:
            continue
        codes = matcher.get_opcodes()
        left[number] = [Part(old[a:b], tag != "equal") for tag, a, b, _, _ in codes if b > a]
        right[number] = [Part(other[a:b], tag != "equal") for tag, _, _, a, b in codes if b > a]
    return left, right


def _folded(lines: Sequence[DiffLine], context: int) -> Iterator[DiffLine]:
    """Replaces unchanged lines far from any change by a gap."""
    changes = [number for number, line in enumerate(lines) if line.kind != "same"]
    near_changes = {
        number
        for change in changes
        for number in range(change - context, change + context + 1)
        if 0 <= number < len(lines)
    }
    for visible, numbers in groupby(range(len(lines)), near_changes.__contains__):
        if visible:
            yield from (lines[number] for number in numbers)
        else:
            yield DiffLine("gap", hidden=len(list(numbers)))
