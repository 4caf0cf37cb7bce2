"""Whether a setup gives the same verdict when it is asked again."""

from collections.abc import Mapping

from judge_gym.analysis.frames import CELL_OF_REPLICATES
from judge_gym.analysis.measures import column
from judge_gym.analysis.measures.means import split
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.verdicts import Verdicts


@column(
    "consistency",
    "consistency",
    "The share of equal verdicts among pairs of repeats; an abstention is a verdict. Does it say "
    "the same again?",
    order=40,
)
def equal_repeats(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Counts equal and all pairs of repeats.

    Another rubric, or a pair shown in the other order, is not a repeat. Where the provider repeats
    its own text, only another series is.
    """
    rows = verdicts.rows.assign(setup=verdicts.setup)
    read = rows[rows["asked"] & ~rows["unreadable"]]
    cells = read[["setup", *CELL_OF_REPLICATES]].duplicated()
    read = read[~(read["repeats"] & cells)]
    by = [read["setup"], read["unit"], read["rubric"], read["flipped"]]
    n = read.groupby(by, observed=True).size()
    same = read.groupby([*by, read["mask"]], observed=True).size()
    equal = (same * (same - 1) / 2).groupby(level=[0, 1]).sum()
    pairs = (n * (n - 1) / 2).groupby(level=[0, 1]).sum()
    return dict(split(equal, pairs))
