"""The comparison of two setups: A minus B, on the items that both judged."""

from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from judge_gym.records.judge_table import ColumnHead, Decider, JudgeRow, Quantity
from judge_gym.records.responses import UNTRUSTED, UntrustedText

Endpoint = Literal["accuracy", "agreement", "stage"]


class ComparedItem(TypedDict):
    """An item on which the usual verdicts of A and B differ."""

    concept: UntrustedText
    task: UntrustedText
    """The task of A that asked about it."""
    evidence: Any
    title: UntrustedText
    a: UntrustedText
    """The usual verdict of A, with how often it was given: `polite, 3 of 5`."""
    b: UntrustedText
    tag_a: str
    tag_b: str
    truth: Annotated[str | None, UNTRUSTED]
    people: Annotated[dict[str, int], UNTRUSTED]
    """How many people gave each label."""
    gap: float
    """How far apart the mean stages are, as a share of the scale; of options without an order, how
    far apart the distributions of verdicts are, from 0 (the same) to 1 (disjoint)."""


class SetupComparison(TypedDict):
    """Two setups side by side, with a sentence that states the result."""

    sentence: UntrustedText
    stage_sentence: UntrustedText
    """How far apart their mean stages are, where the sentence is about quality; else empty."""
    endpoint: Endpoint | None
    """What the sentence compares: quality where it is known, else the mean stage."""
    difference: Quantity | None
    """A minus B, on the items that both judged, with its 95 % interval."""
    stage: Quantity | None
    """The mean stage of A minus that of B, from 0 (first stage) to 1 (last)."""
    a: JudgeRow
    b: JudgeRow
    judged_by_both: int
    differing: int
    """The number of items on which their usual verdicts differ."""
    items: list[ComparedItem]
    """Those furthest apart, the furthest first."""
    setups: list[JudgeRow]
    """All setups, with intervals that hold for all of them together."""
    measure: Decider
    """The measure that decides which setup is best, and of which `difference` is one if quality is
    compared."""
    columns: list[ColumnHead]
    """The quantities that any setup has, the deciding measure first."""
    simulated: str
    notes: Annotated[list[str], UNTRUSTED]
