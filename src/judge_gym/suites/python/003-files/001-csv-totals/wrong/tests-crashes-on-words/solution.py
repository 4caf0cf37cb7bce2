"""Totals by name of a table on standard input."""

import argparse
import csv
import sys
from collections import defaultdict
from decimal import Decimal


def totals(lines: list[str]) -> dict[str, Decimal]:
    """The total of each name."""
    table = csv.DictReader(lines)
    missing = {"name", "amount"} - set(table.fieldnames or ())
    if missing:
        raise ValueError(f"missing column: {', '.join(sorted(missing))}")
    found: dict[str, Decimal] = defaultdict(Decimal)
    for row in table:
        found[row["name"]] += Decimal(row["amount"])
    return found


def main() -> int:
    """Read, add up, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--top", type=int)
    options = parser.parse_args()
    try:
        found = sorted(totals(sys.stdin.read().splitlines()).items())
    except ValueError as fault:
        print(fault, file=sys.stderr)
        return 2
    if options.top is not None:
        found = sorted(found, key=lambda pair: -pair[1])[: options.top]
    for name, total in found:
        print(f"{name}: {total:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
