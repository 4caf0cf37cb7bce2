"""Converts a value on the command line."""

import sys

from measures import UnitError, tables, to


def main(arguments: list[str]) -> int:
    """Runs the program."""
    try:
        text, source, target = arguments
        result = to(float(text), source, target)
    except UnitError as error:
        print(error, file=sys.stderr)
        return 2
    except ValueError:
        print("usage: solution.py VALUE SOURCE TARGET", file=sys.stderr)
        return 2
    print(format(result, ".6g"), tables.names()[target])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
