"""The judge table: which setup to use, how good it is, and at what price."""

from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from judge_gym.records.responses import UNTRUSTED, AnyRow, UntrustedText

MIN_CLUSTERS = 20
"""The number of clusters of items below which setups are not compared."""
Standing = Literal["best", "tied", "worse", "unknown"]
TruthKind = Literal["accuracy", "agreement"]


class Quantity(TypedDict):
    """An estimate; its interval is null where it is withheld."""

    value: float
    low: float | None
    high: float | None
    n: int
    """The number of items it is based on."""


class Quality(Quantity):
    """How often a setup is right, or agrees with people."""

    kind: TruthKind


class ChosenQuality(Quality):
    """The quality of the recommended setup, corrected for its having been chosen."""

    method: Literal["test split", "cross-fitted", "single setup"]


class JudgeRow(TypedDict):
    """A setup: a model with a design and a source of its rubric.

    Shares lie between 0 and 1. Every quantity after `standing` may be null.
    """

    setup: UntrustedText
    """The model and what differs from the usual design: `gpt-4o, method subset`."""
    judge: str
    knobs: AnyRow
    """The level of each knob that varies between setups."""
    rubric: str
    """The source of its rubric: `own`, `provided` or a model."""
    tags: list[str]
    items: int
    verdicts: int
    """The number of verdicts that were asked, without failed calls."""
    failed_calls: int
    """The number of verdicts without an answer of the provider, which no share counts."""
    on_frontier: bool | None
    """Whether no setup is both at least as good and cheaper; null if either is unknown."""
    difference: Quantity | None
    """Its quality minus that of the compared setup with the highest estimate, on the items that all
    compared setups judged; null for that one."""
    at_most_worse: float | None
    """By how much the best setup is at most better; null if the standing is unknown."""
    truth: Quality | None
    standing: Standing
    consistency: Quantity | None
    """The share of equal verdicts among pairs of repeats."""
    position_bias: Quantity | None
    """Among decided verdicts on pairs, the share for the response shown first minus the other."""
    abstained: Quantity | None
    unreadable: Quantity | None
    """The share of refused, truncated and unreadable answers."""
    usd_per_1000: Quantity | None
    """The median price of 1,000 verdicts, both orders of a pair being one."""
    seconds: Quantity | None
    """The median time of a verdict."""
    answered: Quantity | None
    """Among verdicts on items with a known answer or labels, the share with a score."""
    right_of_answered: Quantity | None
    """The quality among these."""
    majority: Quantity | None
    """The accuracy against the label that most raters gave; items on which raters tie are out."""
    disagreement: Quantity | None
    """The share of pairs of verdicts with another setup, on the same item, that differ."""


class KnobEffect(Quantity):
    """What a level of a knob does to quality, against the level that names leave out.

    It is the mean over items of the difference between setups that differ in this knob alone; its
    interval holds for all effects of the table together.
    """

    knob: str
    level: Annotated[Any, UNTRUSTED]
    base: Annotated[Any, UNTRUSTED]
    setups: int
    """The number of pairs of setups."""


class SplitUse(TypedDict):
    """The split that a table used: the choice is made on train, estimates are of test."""

    train: int
    """The number of items with a known answer or labels in train."""
    test: int
    uses: int
    """How many different estimates were read from test so far, this one among them."""


class JudgeTable(TypedDict):
    """The setups of studies or experiments, the best first, with a sentence on top."""

    sentence: UntrustedText
    chosen: Annotated[str | None, UNTRUSTED]
    """The setup that the sentence recommends."""
    chosen_quality: ChosenQuality | None
    kind: TruthKind | None
    """What `truth` of the rows is; null if accuracy is unknown."""
    people_with_each_other: Quantity | None
    """The share of equal labels among pairs of raters on the same items."""
    constant: float | None
    """The quality of always giving the most frequent answer or label."""
    raters: int
    known_items: int
    """The number of items with a known answer or labels."""
    compared_items: int
    """The number of items on which setups were compared: all compared ones judged them."""
    clusters: int
    """The number of clusters among these; each item is its own where none is given."""
    margin: float | None
    """The size below which the study calls a difference negligible."""
    split: SplitUse | None
    simulated: str
    """A warning that judges were simulated; empty if none was."""
    notes: Annotated[list[str], UNTRUSTED]
    effects: list[KnobEffect]
    """What each level of each varied knob does to quality."""
    rows: list[JudgeRow]
