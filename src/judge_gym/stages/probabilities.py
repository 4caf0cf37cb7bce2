"""Reading a probability off a labelled final line; null where it is not plainly there."""

import re

from judge_gym.stages.reading import clean_lines, labelled_lines, standing_together

_NUMBER = r"\d{0,6}(?:[.,]\d{1,12})?"
_VALUE = re.compile(
    rf"""[\s*_`"'(\[<]*+(?:(?:about|approximately|approx\.?|roughly|around|ca\.?)\s++|[~≈])?+\s*+
    (?P<number>(?=[\d.,]){_NUMBER})(?![\d])\s*+
    (?:(?P<percent>%|percent\b|per\s+cent\b)|(?:/|out\s+of\b|in\b)\s*+(?P<whole>{_NUMBER})(?!\d))?+
    (?P<rest>.*)\Z""",
    re.I | re.X | re.S,
)
# "0.7-0.8", "0.7 to 0.8", "0.7 or 0.8": two numbers are no probability.
_SECOND = re.compile(r"[\s*_`%]*+(?:-|–|—|to\b|or\b|and\b|±|\+/-)\s*+[~.]?\d", re.I)
_WORDS = re.compile(r"[\s*_`]*+[^\W\d_]")


def read_probability(text: str, name: str = "probability") -> float | None:
    r"""The probability on the last line that the name labels.

    >>> read_probability("Stages are close.\nPROBABILITY: 85%")
    0.85
    >>> read_probability("PROBABILITY: 7 out of 10"), read_probability("I would say 0.7")
    (0.7, None)
    >>> read_probability("PROBABILITY: 0.0 to 1.0 scale: 0.75") is None
    True
    """
    lines = clean_lines(text)
    found = [line for line in labelled_lines(lines, name) if not line.heading]
    values = {_value(line.payload) for line in standing_together(lines, found)}
    return values.pop() if len(values) == 1 else None


def _value(payload: str) -> float | None:
    match = _VALUE.match(payload)
    if match is None or _SECOND.match(match["rest"]) or _WORDS.match(match["rest"]):
        return None
    try:
        value = float(match["number"].replace(",", "."))
        whole = 100.0 if match["percent"] else float((match["whole"] or "1").replace(",", "."))
    except ValueError:
        return None
    return value / whole if whole > 0 and value <= whole else None
