"""What comes of proposals that revise a rubric or a prompt."""

from typing import Annotated, Literal

from typing_extensions import TypedDict

from judge_gym.records.judge_table import Decider, Quantity
from judge_gym.records.responses import UNTRUSTED, UntrustedText
from judge_gym.records.verdicts import Status

ProposalStatus = Literal["accepted", "not better", "unchanged"] | Status


class ProposalRow(TypedDict):
    """One proposal, and how it did on dev."""

    number: int
    status: ProposalStatus
    """Accepted or not; of one that could not be run, how the assistant's answer failed."""
    tag: str | None
    """Its experiment; null if it was not run."""
    diff: Annotated[str, UNTRUSTED]
    """What changed, as a unified diff."""
    difference: Quantity | None
    """Its measure minus that of the parent on dev, positive where it is better. Below `low` is the
    true difference in at most the share `alpha` of cases."""


class TestedProposal(TypedDict):
    """The best accepted proposal and its parent on test."""

    number: int
    parent: Quantity
    proposal: Quantity
    difference: Quantity
    """With a 95 % interval."""
    uses: int
    """How many different estimates were read from this test part."""


class Improvement(TypedDict):
    """Proposals that revise a rubric or a prompt, from disagreements of a setup with people."""

    sentence: str
    study: str
    setup: UntrustedText
    revised: Literal["rubric", "prompt"]
    assistant: str
    measure: Decider | None
    """What decides; null where no proposal could be run."""
    dev: int
    """Labelled items in dev."""
    test: int
    disagreements: int
    """Of the setup with people, in train and dev."""
    proposals: int
    """The number that was declared."""
    compared: int
    """K: the declared proposals, and those that were tried before."""
    alpha: float
    """.05 / K."""
    rows: list[ProposalRow]
    notes: Annotated[list[str], UNTRUSTED]
    """Why calls of the assistant failed."""
    tested: TestedProposal | None
    """Null where no proposal was accepted."""
    accepted: Annotated[str, UNTRUSTED] | None
    """The accepted rubric as JSON, or the text of the accepted prompt."""
