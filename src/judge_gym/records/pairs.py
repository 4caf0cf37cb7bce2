"""Recorded decisions of judges on pairs of responses."""

from typing import NamedTuple


class PairDecision(NamedTuple):
    """A judge's decision on a pair in one of its orders, as a row of samples."""

    evidence: str
    """The published id of the pair."""
    truth: int
    flipped: bool
    """Whether the responses were shown in the reversed order."""
    decision: int | None
    """The better response, 1 or 2, or 3 for a tie, whichever was shown first; None without one."""
    category: str = ""
    """Empty if unknown."""
    cluster: str = ""
    """What makes pairs dependent, such as their question; empty: nothing does."""
