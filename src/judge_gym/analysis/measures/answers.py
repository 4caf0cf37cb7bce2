"""How answers end: abstentions, and verdicts that cannot be read."""

from collections.abc import Mapping

from judge_gym.analysis.measures import column
from judge_gym.analysis.measures.means import mean_by_setup
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.verdicts import Verdicts


@column(
    "abstained",
    "abstained",
    "The share of verdicts that abstain. How often does it say that it cannot tell?",
    order=60,
)
def abstained(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Averages abstentions over repeats, then over units."""
    return mean_by_setup(verdicts, verdicts.rows["abstained"])


@column(
    "unreadable",
    "unreadable",
    "The share of answers that were refused, cut off or cannot be read. How often is it paid for "
    "nothing?",
    order=61,
)
def unreadable(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Averages unreadable answers over repeats, then over units."""
    return mean_by_setup(verdicts, verdicts.rows["unreadable"])
