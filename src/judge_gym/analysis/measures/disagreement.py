"""How often setups give different verdicts on the same unit."""

from collections.abc import Mapping

from judge_gym.analysis.measures import column
from judge_gym.analysis.measures.means import split
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.verdicts import Verdicts


@column(
    "disagreement",
    "disagrees with others",
    "The share of pairs of verdicts with another setup, on the same item, that differ. Which setup "
    "stands alone?",
    order=80,
    main=False,
)
def disagreement(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Computes by unit the chance that another setup gives another verdict.

    Setups are compared where their scales have the same number of stages.
    """
    rows = verdicts.rows.assign(setup=verdicts.setup)
    scored = rows.loc[rows["asked"] & (rows["mask"] != 0), ["setup", "unit", "n_stages", "mask"]]
    if scored["setup"].nunique() < 2:
        return {}
    key = ["unit", "n_stages"]
    counts = scored.groupby(["setup", *key, "mask"]).size().rename("share")
    shares = (counts / counts.groupby(level=["setup", *key]).transform("sum")).reset_index()
    shares["all"] = shares.groupby([*key, "mask"])["share"].transform("sum")
    other_setups = shares.groupby(key)["setup"].transform("nunique") - 1
    alike = shares["share"] * (shares["all"] - shares["share"])
    shares["equal"] = alike / other_setups.where(other_setups > 0)
    equal = shares.dropna().groupby(["setup", "unit"])["equal"].sum()
    return dict(split(1 - equal))
