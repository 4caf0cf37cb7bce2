"""The formats that come with the package."""

import json
from collections.abc import Mapping


def format_json(numbers: Mapping[str, int]) -> str:
    """Returns a JSON object."""
    return json.dumps(dict(numbers), indent=2, sort_keys=True)


def format_lines(numbers: Mapping[str, int]) -> str:
    """Returns a line per name."""
    return "\n".join(f"{name}: {number}" for name, number in numbers.items())
