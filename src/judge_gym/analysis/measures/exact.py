"""How often verdicts are exactly right, or equal a person's label, and what that rests on."""

import numpy as np

from judge_gym.analysis.measures import Compared, quality
from judge_gym.analysis.measures.terms import Ratio, Terms
from judge_gym.analysis.stats.intervals import SHARE


@quality(
    "exact",
    "exact agreement",
    "The share of all verdicts asked that are the known answer, or the label of a random rater; "
    "one without a score is not. A tie on a pair counts one half where no label is a tie. How "
    "often is it right?",
    order=14,
)
def exact(compared: Compared) -> Terms:
    """Averages over units."""
    return Ratio.mean(compared.units, compared.right, SHARE)


@quality(
    "answered",
    "answered",
    "The share of verdicts with a score, on labelled items. How often does it answer at all?",
    order=90,
    main=False,
)
def answered(compared: Compared) -> Terms:
    """Averages over units."""
    return Ratio.mean(compared.units, compared.answered, SHARE)


@quality(
    "right_of_answered",
    "right of answered",
    "Exact agreement among verdicts with a score. How good is it where it answers?",
    order=91,
    main=False,
)
def right_of_answered(compared: Compared) -> Terms:
    """Relates exact agreement to the share answered."""
    return Ratio(compared.units, compared.right, compared.answered, SHARE)


@quality(
    "majority",
    "agrees with most people",
    "The share of verdicts that are the label most raters gave; items on which raters tie are left "
    "out. How good is it if the majority is right?",
    order=92,
    main=False,
)
def majority(compared: Compared) -> Terms | None:
    """Averages over units with a clear majority."""
    if compared.majority is None:
        return None
    clear = ~np.isnan(compared.majority)
    return Ratio.mean(compared.units[clear], compared.majority[clear], SHARE)
