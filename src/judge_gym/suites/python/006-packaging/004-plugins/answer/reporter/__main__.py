"""The command."""

import argparse
import re
import sys
from collections.abc import Iterable

from reporter.registry import PluginError, Registry

LINE = re.compile(r"\s*(\S+)\s+([+-]?[0-9]+)\s*")


def read_numbers(lines: Iterable[str]) -> dict[str, int]:
    """Returns the sums of the lines by name, or raises ValueError."""
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} is not a name and a number: {line.strip()!r}")
        numbers[match[1]] = numbers.get(match[1], 0) + int(match[2])
    return numbers


def main() -> int:
    """Prints a report of standard input."""
    parser = argparse.ArgumentParser(prog="reporter")
    parser.add_argument("--format", default="lines")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    registry = Registry()
    if arguments.list:
        print("\n".join(registry.names()))
        return 0
    try:
        numbers = read_numbers(sys.stdin)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        report = registry.get(arguments.format)(numbers)
    except PluginError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:
        print(f"the format {arguments.format!r} failed: {error!r}", file=sys.stderr)
        return 1
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
