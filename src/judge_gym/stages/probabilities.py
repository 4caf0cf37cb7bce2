"""Reads a probability from a labelled final line; None if it is not stated clearly."""

import re

from judge_gym.stages.answer_lines import adjacent_lines, clean_lines, labelled_lines

# A comma is a decimal separator only after a zero: "0,85", not "1,000".
_NUMBER = r"(?:0?\.\d{1,12}|0,\d{1,12}|\d{1,6}(?:\.\d{1,12})?)"
_VALUE = re.compile(
    rf"""[\s*_`"'(\[]*+(?>(?:(?:about|approximately|approx\.?|roughly|around|ca\.?)\s++|[~≈]\s*+)?)
    (?P<number>{_NUMBER})(?>(?:\s*+(?P<percent>%|percent\b|per\s+cent\b)|
    \s*+(?:/|⁄|out\s+of\b|in\b)\s*+(?P<whole>\d{{1,6}})(?![\d.,]\d))?)
    (?P<rest>.*)\Z""",
    re.I | re.X | re.S,
)
# After the number: nothing, or punctuation and a comment that does not begin with a number.
_REST = re.compile(
    r"[\s*_`\"')\]]*+(?:\.?+\s*+\Z|[.;,(–—-]++\s*+[^\s\d.<>=~].*\Z|\([^)]*+\)\.?\s*+\Z)", re.S
)


def read_probability(text: str, name: str = "probability") -> float | None:
    r"""Returns the probability on the last line that the name labels; None if it is unclear.

    >>> read_probability("Stages are close.\nPROBABILITY: 85%")
    0.85
    >>> read_probability("PROBABILITY: 7 out of 10"), read_probability("I would say 0.7")
    (0.7, None)
    >>> read_probability("PROBABILITY: 0.0 to 1.0 scale: 0.75") is None
    True
    """
    lines = clean_lines(text)
    found = [line for line in labelled_lines(lines, name) if not line.heading]
    values = {_value(line.payload) for line in adjacent_lines(lines, found)}
    return values.pop() if len(values) == 1 else None


def _value(payload: str) -> float | None:
    match = _VALUE.match(payload)
    if match is None or not _REST.match(match["rest"]):
        return None
    value = float(match["number"].replace(",", "."))
    if match["whole"] and value + int(match["whole"]) == 100:
        return None  # "50/50" and "40/60" are odds, not fractions
    whole = 100 if match["percent"] else int(match["whole"] or 1)
    return value / whole if whole > 0 and value <= whole else None
