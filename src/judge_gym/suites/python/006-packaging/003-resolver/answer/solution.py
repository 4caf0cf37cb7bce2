"""Prints versions that fit together."""

import json
import re
import sys

from resolver.solve import Unsolvable, solve

REQUIREMENT = re.compile(r"([A-Za-z0-9_-]+)(.*)", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Runs the program."""
    try:
        file, *requirements = arguments
        with open(file, encoding="utf-8") as source:
            index = json.load(source)
        wanted: dict[str, str] = {}
        for text in requirements:
            match = REQUIREMENT.fullmatch(text)
            if match is None or match[1] in wanted:
                raise ValueError(f"not a new requirement: {text!r}")
            wanted[match[1]] = match[2]
        chosen = solve(index, wanted)
    except Unsolvable as error:
        print(error, file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, version in chosen.items():
        print(name, version)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
