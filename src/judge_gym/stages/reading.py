"""Reading labelled lines out of free text, in time linear in its length.

An answer ends in a line such as `VERDICT: B`. The last such line decides; earlier ones that
reasoning separates from it are superseded; two that stand together and differ decide nothing.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

INVISIBLE = dict.fromkeys(
    [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF, 0xAD, 0x180E]
)
# What may decorate a line: quotes, bullets, headings, emphasis, fences, brackets, numbering.
DECORATION = r"\s>*_#`~•+|\"'“”‘’\[\](){}<$\\"
BARE = re.compile(rf"[{DECORATION}\-–—=.:!,;/&]*+\Z")


class Labelled(NamedTuple):
    """A labelled line: where it stands, what follows the label, and whether a heading labels it."""

    line: int
    payload: str
    heading: bool = False


def clean_lines(text: str) -> list[str]:
    """The lines of a text without invisible characters and with one form for each character."""
    return unicodedata.normalize("NFKC", text.translate(INVISIBLE)).splitlines()


@lru_cache(maxsize=16)
def _label(word: str) -> re.Pattern[str]:
    """A line that opens with the word and a separator; possessive quantifiers keep it linear."""
    inside = r"[\s*_`\"'\])]*+"
    separator = rf"(?>(?:\s+is\b)?){inside}(?:[:=]|(?<=\s)[-–—](?=\s))[\s*_`]*+"
    prefix = rf"(?>(?:(?:my|the|our|final|overall)\s++){{0,3}}){word}{separator}"
    return re.compile(rf"[{DECORATION}\-–—\d.:]*+(?>(?:{prefix})+)(?P<payload>.*)\Z", re.I | re.S)


@lru_cache(maxsize=16)
def _heading(word: str) -> re.Pattern[str]:
    return re.compile(rf"[{DECORATION}\d.]*+(?>(?:final\s++)?){word}[{DECORATION}]*+\Z", re.I)


def labelled_lines(lines: list[str], word: str) -> Iterator[Labelled]:
    """Every line that the word labels; where nothing follows it, the next written line is taken.

    A bare heading (`## Verdict`) may label the line below it too; the reader drops it where that
    line says something else.
    """
    label, heading = _label(word), _heading(word)
    below_taken = -1
    for number, line in enumerate(lines):
        if number == below_taken:
            continue
        match = label.match(line)
        if match and not BARE.match(match["payload"]):
            yield Labelled(number, match["payload"])
        elif match or heading.match(line):
            below = next((i for i in range(number + 1, len(lines)) if not BARE.match(lines[i])), -1)
            if below > 0 and not label.match(lines[below]) and not heading.match(lines[below]):
                below_taken = below
                yield Labelled(below, lines[below], heading=match is None)
            elif match:
                yield Labelled(number, "")


def standing_together(lines: list[str], found: list[Labelled]) -> list[Labelled]:
    """The last labelled line, and those before it that nothing but decoration separates from it."""
    together = found[-1:]
    for earlier in reversed(found[:-1]):
        between = lines[earlier.line + 1 : together[-1].line]
        if not all(BARE.match(line) for line in between):
            break
        together.append(earlier)
    return together
