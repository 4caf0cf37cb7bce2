"""What a check of coverage returns: whether intervals hold at the size of a study."""

from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from judge_gym.records.responses import UNTRUSTED, UntrustedText

Verdict = Literal["holds", "wide", "fails", "withheld"]
"""Coverage beyond simulation error: at least 93 %, above 97 %, below 93 %, or no interval."""


class Rate(TypedDict):
    """A share of panels, with the 99 % interval of its simulation error."""

    value: float
    low: float
    high: float


class CoverageRow(TypedDict):
    """How often the intervals of one quantity contain its true value."""

    quantity: str
    """The column of the judge table."""
    verdict: Verdict
    coverage: Rate | None
    """The share of panels in which the intervals of all setups hold, of those that print one."""
    printed: float
    """The share of panels that print an interval."""
    width: float | None
    too_low: float | None
    """The share of panels with an interval that ends below the true value."""
    too_high: float | None
    reason: str
    """Why no interval is printed, where the table says it."""


class CoverageReport(TypedDict):
    """Whether the intervals of a judge table hold for studies like this one."""

    sentence: UntrustedText
    panels: int
    seed: int
    study: Annotated[dict[str, Any], UNTRUSTED]
    """What was measured of the study, and what the panels therefore are."""
    quantities: list[CoverageRow]
    false_worse: Rate | None
    """How often a setup is called worse although all are equal; null if none are compared."""
    equal_panels: int
    unchecked: list[str]
    """Quantities of the table whose true value the simulation does not know."""
    notes: list[str]


def quantity_words(name: str) -> str:
    """Names a quantity of the judge table for people.

    >>> quantity_words("truth"), quantity_words("right_of_answered")
    ('accuracy', 'right of answered')
    """
    words = {
        "truth": "accuracy",
        "chosen_quality": "the sentence's number",
        "difference": "difference from the best setup",
    }
    return words.get(name, name.replace("_", " "))
