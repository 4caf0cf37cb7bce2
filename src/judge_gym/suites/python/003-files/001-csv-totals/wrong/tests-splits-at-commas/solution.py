"""Totals by name of a table on standard input."""

import argparse
import sys
from collections import defaultdict
from decimal import Decimal, InvalidOperation


def totals(lines: list[str]) -> dict[str, Decimal]:
    """The total of each name."""
    names = lines[0].split(",") if lines else []
    missing = {"name", "amount"} - set(names)
    if missing:
        raise ValueError(f"missing column: {', '.join(sorted(missing))}")
    table = [dict(zip(names, line.split(","), strict=False)) for line in lines[1:]]
    found: dict[str, Decimal] = defaultdict(Decimal)
    for row in table:
        try:
            amount = Decimal(row["amount"])
        except (InvalidOperation, TypeError):
            raise ValueError(f"no number: {row['amount']!r}") from None
        if not amount.is_finite():
            raise ValueError(f"no number: {row['amount']!r}")
        found[row["name"]] += amount
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
