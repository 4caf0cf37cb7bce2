"""Whether the response of a pair that is shown first has an advantage."""

from collections.abc import Mapping

from judge_gym.analysis.measures import column
from judge_gym.analysis.measures.means import split
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.stats.intervals import SIGNED_SHARE
from judge_gym.analysis.verdicts import TIE, Verdicts


@column(
    "position_bias",
    "position bias",
    "Among decided verdicts on pairs shown in both orders, the share for the response shown first "
    "minus that for the second. Does the order decide?",
    order=50,
    unit="points",
)
def position_bias(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Counts decisions for the first response minus those for the second, and all decisions."""
    rows = verdicts.rows.assign(setup=verdicts.setup)
    rows = rows[rows["asked"]]
    both = rows.groupby(["setup", "unit"])["flipped"].transform("nunique") == 2
    decided = rows[rows["pair"].astype(bool) & both & rows["mask"].isin((1, 2, 1 << (TIE - 1)))]
    side = decided["mask"].map({1: 1.0, 2: -1.0}).fillna(0.0)
    toward_first = side.where(~decided["flipped"].astype(bool), -side)
    sums = toward_first.groupby([decided["setup"], decided["unit"]]).agg(["sum", "count"])
    return dict(split(sums["sum"], sums["count"], SIGNED_SHARE))
