"""Versions and constraints on them."""

from __future__ import annotations

import re
from dataclasses import dataclass

NUMBER = "(?:0|[1-9][0-9]*)"
VERSION = re.compile(rf"({NUMBER}(?:\.{NUMBER}){{0,3}})(?:-([a-z0-9]+(?:\.[a-z0-9]+)*))?")
CLAUSE = re.compile(r"(==|!=|<=|>=|<|>|~|\^) *(\S+)")


class Version:
    """Up to four numbers, and perhaps a pre-release."""

    def __init__(self, text: str, numbers: tuple[int, ...], pre: tuple[str, ...]) -> None:
        self.text = text
        self.given = numbers
        self.numbers = numbers + (0,) * (4 - len(numbers))
        parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre]
        self._key = (self.numbers, not pre, parts)

    @classmethod
    def parse(cls, text: str) -> Version:
        """Reads a version."""
        match = VERSION.fullmatch(text)
        if match is None:
            raise ValueError(f"not a version: {text!r}")
        numbers = tuple(map(int, match[1].split(".")))
        return cls(text, numbers, tuple(match[2].split(".")) if match[2] else ())

    @property
    def is_prerelease(self) -> bool:
        """Whether it comes before the version of its numbers."""
        return not self._key[1]

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash((self.numbers, self._key[1], tuple(self._key[2])))


def upper_bound(operator: str, version: Version) -> tuple[int, ...]:
    """Returns the numbers that a version has to stay below."""
    given = version.given
    if operator == "~":
        place = min(1, len(given) - 1)
    else:
        place = next((index for index, number in enumerate(given) if number), len(given) - 1)
    numbers = (*given[:place], given[place] + 1)
    return numbers + (0,) * (4 - len(numbers))


@dataclass(frozen=True)
class Constraint:
    """Clauses that all have to hold."""

    clauses: tuple[tuple[str, Version], ...]

    @classmethod
    def parse(cls, text: str) -> Constraint:
        """Reads a constraint."""
        clauses = []
        for part in text.split(",") if text.strip(" ") else []:
            match = CLAUSE.fullmatch(part.strip(" "))
            if match is None:
                raise ValueError(f"not a constraint: {text!r}")
            clauses.append((match[1], Version.parse(match[2])))
        return cls(tuple(clauses))

    def allows(self, version: Version) -> bool:
        """Whether a version satisfies it."""
        if version.is_prerelease and not any(
            operator != "!=" and each.is_prerelease and each.numbers == version.numbers
            for operator, each in self.clauses
        ):
            return False
        return all(holds(operator, version, each) for operator, each in self.clauses)


def holds(operator: str, version: Version, other: Version) -> bool:
    """Whether a version satisfies one clause."""
    if operator in "~^":
        return other <= version and version.numbers < upper_bound(operator, other)
    return {
        "==": version == other,
        "!=": version != other,
        "<": version < other,
        "<=": version <= other,
        ">": version > other,
        ">=": version >= other,
    }[operator]
